// How many rows (or how much of K) each group of a grouped problem has. m (k) of the problem is an
// average; its seed draws sizes from 0.7 to 1.3 of it, `even` makes them equal. Other modes are for
// tests of emptiness and imbalance.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/octet.h"

namespace oct::testing_support {

enum class SizeMode {
  kSeeded,       // 0.7 to 1.3 of the average, or equal: what problem strings mean
  kUneven,       // from nothing to nearly everything, the same sum at most
  kMostlyEmpty,  // one group in eight has rows
  kAllEmpty,
};

// One size for each group; at most max_m in masked problems, multiples of 128 in packed ones.
std::vector<int64_t> draw_group_sizes(const octet_gemm_problem& problem, SizeMode mode);

}  // namespace oct::testing_support
