// How far operands and scales reach in memory, and whether a scale matrix lies as its layout says.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/float_types.h"
#include "core/math.h"
#include "octet/octet.h"

namespace oct::core {

// The copy engine's strides are below 2^40 bytes; group strides may span more than one operand.
// With the limit on whole operands they keep every address computation of the library inside int64.
inline constexpr int64_t kLargestStride = int64_t{1} << 31;
inline constexpr int64_t kLargestGroupStride = int64_t{1} << 40;
inline constexpr int64_t kLargestBytes = int64_t{1} << 62;

// first + sum of (count - 1) * stride in bytes, at most kLargestBytes + 1: never overflows.
inline int64_t span_bytes(int64_t element, int64_t first, std::initializer_list<int64_t> terms) {
  __extension__ using Wide = __int128;
  Wide total = first;
  for (auto it = terms.begin(); it != terms.end(); it += 2) {
    total += static_cast<Wide>(it[0] - 1) * it[1];
  }
  total *= element;
  return total > kLargestBytes ? kLargestBytes + 1 : static_cast<int64_t>(total);
}

struct ScaleExtent {
  int64_t rows, blocks, groups;
};

inline ScaleExtent scale_extent_a(const octet_gemm_problem& p, const octet_gemm_args& args) {
  if (p.granularity == OCTET_SCALE_NONE) return {0, 0, 0};
  const bool grouped = p.grouping == OCTET_BATCHED || p.grouping == OCTET_MASKED;
  return {args.a.rows, ceil_div(args.a.cols, kBlockK), grouped ? p.groups : 1};
}

inline ScaleExtent scale_extent_b(const octet_gemm_problem& p, const octet_gemm_args& args) {
  if (p.granularity == OCTET_SCALE_NONE) return {0, 0, 0};
  return {p.granularity == OCTET_1D2D ? ceil_div(p.n, 128) : p.n, ceil_div(args.b.cols, kBlockK),
          p.grouping == OCTET_K_GROUPED ? 1 : p.groups};
}

// One scale for everything, which lies in every layout.
inline bool is_one_scale(const octet_scale_matrix& x, const ScaleExtent& e) {
  return x.row_stride == 0 && x.k_stride == 0 && (e.groups <= 1 || x.group_stride == 0);
}

// A stride along a dimension of one element is never followed and may be anything.
inline bool lies_as(const octet_scale_matrix& x, octet_scale_layout layout, const ScaleExtent& e) {
  if (is_one_scale(x, e)) return true;
  const bool unit_row = e.rows <= 1 || x.row_stride == 1;
  const bool unit_k = e.blocks <= 1 || x.k_stride == 1;
  if (layout == OCTET_ROW_MAJOR) return unit_k;
  if (layout == OCTET_COLUMN_MAJOR_ODD) return unit_row;
  return unit_row && (e.blocks <= 1 || x.k_stride % 4 == 0) &&
         (e.groups <= 1 || x.group_stride % 4 == 0) &&
         reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
}

inline int64_t scale_bytes(const octet_scale_matrix& x, const ScaleExtent& e) {
  if (e.rows == 0 || e.blocks == 0 || e.groups == 0) return 0;
  return span_bytes(4, 1,
                    {e.rows, x.row_stride, e.blocks, x.k_stride, e.groups,
                     e.groups > 1 ? x.group_stride : 0});
}

inline int64_t matrix_bytes(const octet_matrix& x, octet_type type, int64_t groups) {
  if (x.rows == 0 || x.cols == 0 || groups == 0) return 0;
  return span_bytes(size_of(type), x.cols, {x.rows, x.ld, groups, groups > 1 ? x.group_stride : 0});
}

}  // namespace oct::core
