// Who owns a row of D, or a piece of K, read from the grouping metadata in the plainest way: one
// row after the other, every group asked. Written from the interface's description alone and
// independent of the library, whose own reading is compared with it.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/octet.h"

namespace oct::testing_support {

// Buffers of A: the batch, or the groups of a masked problem; else 1. And of D.
int64_t a_buffers(const octet_gemm_problem& problem);
int64_t d_buffers(const octet_gemm_problem& problem);

// Group that owns row r of buffer g of D at [g * d.rows + r], or -1. Where bad metadata decreases,
// a group begins no earlier than any group before it has begun or ended.
std::vector<int64_t> row_owners(const octet_gemm_problem& problem, const octet_gemm_args& args);

struct Piece {
  int64_t start, length;
};
// K-grouped: positions in sumK, one piece for each group.
std::vector<Piece> k_pieces(const octet_gemm_problem& problem, const octet_gemm_args& args);

}  // namespace oct::testing_support
