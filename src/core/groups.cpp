// See groups.h.
#include "core/groups.h"

#include "core/math.h"

namespace oct::core {

int64_t index_at(const void* data, octet_type type, int64_t i) {
  return type == OCTET_I64 ? static_cast<const int64_t*>(data)[i]
                           : int64_t{static_cast<const int32_t*>(data)[i]};
}

int64_t masked_rows(const octet_gemm_problem& problem, const octet_gemm_args& args, int64_t g) {
  return clamp(index_at(args.group_counts, OCTET_I32, g), 0, problem.max_m);
}

Range group_rows(const octet_gemm_problem& problem, const octet_gemm_args& args, int64_t g,
                 int64_t before) {
  const int64_t rows = args.a.rows;
  int64_t first = 0;
  int64_t last = 0;
  if (problem.grouping == OCTET_OFFSETS) {
    first = clamp(index_at(args.group_offsets, problem.index_type, g), before, rows);
    last = index_at(args.group_offsets, problem.index_type, g + 1);
  } else {
    first = clamp(round_up(before, problem.alignment), 0, rows);
    last = index_at(args.group_ends, OCTET_I32, g);
  }
  return {first, clamp(last, first, rows)};
}

int64_t contiguous_owner(const octet_gemm_problem& problem, const octet_gemm_args& args,
                         int64_t row) {
  const auto* index = static_cast<const int32_t*>(args.group_index);
  const int64_t block = index[row / problem.alignment * problem.alignment];
  const int64_t own = index[row];
  return own == block && own >= 0 && own < problem.groups ? own : -1;
}

Range group_k(const octet_gemm_problem& problem, const octet_gemm_args& args, int64_t g,
              int64_t packed_start) {
  const int64_t total = args.a.cols;
  int64_t first = packed_start;
  int64_t count = index_at(args.group_counts, problem.index_type, g);
  if (!problem.packed) {
    first =
        clamp(index_at(args.group_offsets, problem.index_type, g), 0, total) / kBlockK * kBlockK;
  }
  count = clamp(count, 0, total - first);
  if (problem.packed) count = count / kBlockK * kBlockK;
  return {first, first + count};
}

}  // namespace oct::core
