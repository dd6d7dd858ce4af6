// See group_sizes.h.
#include "support/group_sizes.h"

#include <algorithm>

#include "support/random.h"

namespace oct::testing_support {
namespace {

int64_t near_average(const octet_gemm_problem& p, int64_t average, Random& random) {
  if (p.even) return average;
  const int64_t low = (7 * average + 9) / 10, high = 13 * average / 10;
  return low >= high ? average : random.between(low, high);
}

}  // namespace

std::vector<int64_t> draw_group_sizes(const octet_gemm_problem& p, SizeMode mode) {
  Random random(p.seed ^ 0x67726f757073u);
  const int64_t average = p.grouping == OCTET_K_GROUPED ? p.k : p.m;
  int64_t left = average * p.groups;  // uneven: what is not given away yet
  std::vector<int64_t> sizes(static_cast<std::size_t>(p.groups));
  for (int64_t& size : sizes) {
    switch (mode) {
      case SizeMode::kSeeded: size = near_average(p, average, random); break;
      case SizeMode::kUneven:
        size = random.chance(0.3) ? 0 : random.log_uniform(1, left + 1) - 1;
        left -= size;
        break;
      case SizeMode::kMostlyEmpty:
        size = random.chance(0.125) ? near_average(p, average, random) : 0;
        break;
      case SizeMode::kAllEmpty: size = 0; break;
    }
    if (p.grouping == OCTET_MASKED) size = std::min(size, p.max_m);
    if (p.packed) size = (size + 64) / 128 * 128;
  }
  return sizes;
}

}  // namespace oct::testing_support
