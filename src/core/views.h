// Turns a grouped call into dense pieces. Backends that run in host memory (ref, cpu) compute a
// list of plain dense GEMMs; this file is the only one that knows what the groupings mean and how
// bad grouping metadata is clamped. Nothing here reads A, B, C, D or scales.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/octet.h"

namespace oct::core {

// Scales of one operand: element (r, kb) is data[r * row_stride + kb * k_stride].
struct ScaleView {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t k_stride = 0;
};

// One dense GEMM in host memory: D[m,n] = A[m,k] * B[n,k]^T (+ bias[n]) (+ C[m,n]).
struct DenseView {
  int64_t m = 0, n = 0, k = 0;
  octet_type in_type = OCTET_E4M3;
  const void* a = nullptr;  // [m,k], rows a_ld elements apart
  int64_t a_ld = 0;
  const void* b = nullptr;  // [n,k], rows b_ld elements apart
  int64_t b_ld = 0;
  ScaleView sfa;           // row = row of A
  ScaleView sfb;           // row = row of B / sfb_rows
  int64_t sfb_rows = 128;  // 128 (1D2D) or 1 (1D1D)
  octet_type d_type = OCTET_BF16;
  void* d = nullptr;  // [m,n]
  int64_t d_ld = 0;
  const void* c = nullptr;  // [m,n] of d_type, or null
  int64_t c_ld = 0;
  octet_type bias_type = OCTET_NONE;
  const void* bias = nullptr;  // [n], or null
  int split = 1;               // ranges that K is cut into, as NUMERICS section 2
};

// Rows of D to be filled with zeros (padding rows of contiguous groupings).
struct ZeroRows {
  void* d = nullptr;  // first row
  int64_t rows = 0, n = 0, d_ld = 0;
  octet_type d_type = OCTET_BF16;
};

struct Work {
  std::vector<DenseView> gemms;  // none is empty in m or n; k may be 0
  std::vector<ZeroRows> zeros;
};

// `plan` and `args` have passed check().
Work expand(const octet_gemm_plan& plan, const octet_gemm_args& args);

// Range i of `blocks` K-blocks cut into `split`: [first, last).
struct BlockRange {
  int64_t first, last;
};
constexpr BlockRange split_range(int64_t blocks, int split, int i) {
  return {blocks * i / split, blocks * (i + 1) / split};
}

}  // namespace oct::core
