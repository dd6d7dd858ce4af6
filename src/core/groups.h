// What grouping metadata means, one group or row at a time, with every value clamped so that
// nothing outside the declared extents is ever addressed. Bad metadata is named by validate.h, not
// here.
#pragma once

#include <cstdint>

#include "octet/octet.h"

namespace oct::core {

struct Range {
  int64_t first, last;
};

// Element i of group_offsets or group_counts (int32 or int64).
int64_t index_at(const void* data, octet_type type, int64_t i);

// Masked: rows of group g, clamped to [0, max_m].
int64_t masked_rows(const octet_gemm_problem& problem, const octet_gemm_args& args, int64_t g);

// Offsets and aligned: rows of group g, clamped to the rows of A. `before` is where the group
// before ended (its Range::last; 0 for the first): offsets that decrease are raised to it, so that
// no row has two owners, whatever the metadata says.
Range group_rows(const octet_gemm_problem& problem, const octet_gemm_args& args, int64_t g,
                 int64_t before);

// Contiguous: the group that owns `row`, or -1. The block of `alignment` rows belongs to the index
// at its first row; rows of the block with another index are padding.
int64_t contiguous_owner(const octet_gemm_problem& problem, const octet_gemm_args& args,
                         int64_t row);

// K-grouped: the K of group g as positions in sumK, the start rounded down to a multiple of 128.
// Packed: `packed_start` is where the group before ended, and lengths are rounded down to 128.
Range group_k(const octet_gemm_problem& problem, const octet_gemm_args& args, int64_t g,
              int64_t packed_start);

}  // namespace oct::core
