// How many ranges a batch_invariant plan cuts K into. A function of N and K alone: not of the
// device, the SM budget, a tuned table or the number of rows, so that a row of D has the same bits
// in any batch. Chosen so that small N still occupies about 132 SMs in decode, where it matters.
#pragma once

#include <cstdint>

#include "core/math.h"
#include "octet/octet.h"

namespace oct::plan {

constexpr int invariant_split(int64_t n, int64_t k) {
  constexpr int64_t kTypicalSms = 132;
  constexpr int64_t kRowsPerTile = 64;  // of B, in decode
  constexpr int64_t kFewestBlocks = 4;  // K-blocks in a range, to be worth a reduction
  constexpr int kMostRanges = 8;        // a portable cluster
  const int64_t tiles = core::ceil_div(n, kRowsPerTile);
  const int64_t blocks = core::ceil_div(k, core::kBlockK);
  int split = 1;
  while (split < kMostRanges && tiles * (2 * split) <= kTypicalSms &&
         blocks >= kFewestBlocks * 2 * split) {
    split *= 2;
  }
  return split;
}

// The split that the problem itself fixes, or 0.
constexpr int fixed_split(const octet_gemm_problem& problem) {
  if (problem.split > 0) return problem.split;
  return problem.batch_invariant ? invariant_split(problem.n, problem.k) : 0;
}

}  // namespace oct::plan
