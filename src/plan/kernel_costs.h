// What a K-block costs in each kernel, measured: the cost model's one table. Cycles of an H200's SM
// under load, fitted with the other constants of candidates.cpp to 660 forced timings of 94 shapes
// (docs/performance-log.md, 2026-11-30). What the tensor cores of another device need beyond the
// H200's is added by the cost model.
#pragma once

#include <string_view>

#include "kernel_abi/kernel_table.h"

namespace oct::plan {

struct KernelCost {
  std::string_view kernel;
  double alone;   // cycles of a K-block where a CTA has the SM to itself
  double shared;  // where the SM holds as many CTAs as the name says; 0: it never shares
};

inline constexpr KernelCost kKernelCosts[] = {
    {"normal_m256n128", 1228, 0},
    {"normal_m256n128_cn2", 1222, 0},
    {"normal_m128n256", 1194, 0},
    {"normal_m128n256_cm2", 1204, 0},
    {"normal_m128n192", 902, 0},
    {"normal_m128n192_cm2", 915, 0},
    {"normal_m128n128_x2", 638, 0},
    {"normal_m128n160", 782, 0},
    {"normal_m128n144", 752, 0},
    {"normal_m128n96_x2", 518, 0},

    {"normal_m256n96", 972, 0},
    {"normal_m128n64_x2", 414, 0},
    {"normal_m64n128_x2", 522, 0},
    {"normal_m64n64_x2_o2", 435, 602},
    {"normal_m64n32_x2_o2", 285, 413},
    {"normal_m128n64_seq", 403, 0},
    {"swapped_w64t8_x2_o2", 192, 469},
    {"swapped_w64t8_k2_x2_b2", 188, 0},
    {"swapped_w64t8_b2_o3", 305, 822},
    {"swapped_w64t8_k4", 1147, 0},
    {"swapped_w128t8_o2", 439, 1149},
    {"swapped_w64t16_x2_o2", 264, 532},
    {"swapped_w64t16_k2_x2_b2", 476, 0},
    {"swapped_w64t16_b2_o3", 338, 831},
    {"swapped_w64t16_k4", 1229, 0},
    {"swapped_w128t16_o2", 491, 1201},
    {"swapped_w64t32_x2_o2", 341, 544},
    {"swapped_w64t32_k2_x2", 574, 0},
    {"swapped_w64t32_o3", 347, 1028},
    {"swapped_w128t32_o2", 586, 1361},
    {"swapped_w64t64_x2_o2", 532, 650},
    {"swapped_w64t64_k2_x2", 912, 0},
    {"swapped_w192t64", 750, 0},
    {"swapped_w256t64", 1016, 0},
    // Grouped: 255 forced timings of 45 problems.
    {"normal_m256n128_g", 1275, 0},
    {"normal_m128n256_g", 1240, 0},
    {"normal_m128n128_x2_g", 723, 0},
    {"normal_m64n256_g", 880, 0},
    {"normal_m128n64_seq_g", 503, 0},
    {"swapped_w128t8_o2_g", 438, 760},
    {"swapped_w128t16_o2_g", 488, 794},
    {"swapped_w128t32_o2_g", 798, 1079},
    {"swapped_w256t64_g", 1091, 0},
    // Scales on both sides.
    {"normal_m256n128_1d1d", 1650, 0},
    {"normal_m192n128_1d1d", 1230, 0},
    {"normal_m128n128_1d1d", 930, 0},
    {"normal_m64n64_1d1d", 400, 0},
    {"normal_m128n64_seq_1d1d", 560, 0},
    {"normal_m256n128_kg", 1650, 0},
    {"normal_m192n128_kg", 1230, 0},
    {"normal_m128n128_kg", 930, 0},
    {"normal_m128n64_seq_kg", 560, 0},
    {"normal_m256n128_kp", 2000, 0},
    {"normal_m128n64_seq_kp", 800, 0},
};

namespace detail {
constexpr bool same_order() {
  if (sizeof kKernelCosts / sizeof kKernelCosts[0] != abi::kKernelCount) return false;
  for (int i = 0; i < abi::kKernelCount; ++i) {
    if (kKernelCosts[i].kernel != abi::kKernels[i].name) return false;
  }
  return true;
}
}  // namespace detail
static_assert(detail::same_order(), "a cost for every kernel of the table, in its order");

}  // namespace oct::plan
