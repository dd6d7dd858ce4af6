// Random problems. draw_problem() draws sizes log-uniformly within a regime, every grouping, type,
// layout and option, small enough to be computed by the reference; draw_any_problem() draws every
// field over its whole range, for strings and checks.
#pragma once

#include <cstdint>

#include "octet/octet.h"
#include "support/random.h"

namespace oct::testing_support {

// What a size range stands for; a test takes them in turn, so that none is left to chance.
enum class Regime {
  kTiny,     // all sizes from 0 to 20
  kDecode,   // few rows, wide N
  kPrefill,  // many rows
  kLongK,    // many K-blocks for a handful of elements
  kEdges,    // one off multiples of 8, 16, 64, 128
};
inline constexpr int kRegimes = 5;

// At most `work` multiply-adds, groups included (approximately: group sizes vary).
octet_gemm_problem draw_problem(Random& random, Regime regime, int64_t work);

// Any valid problem, up to sizes that only planning can bear.
octet_gemm_problem draw_any_problem(Random& random);

}  // namespace oct::testing_support
