// What a K-block costs in each kernel, measured: the cost model's one table. Cycles of an H200's SM
// under load, fitted with the constants of cost_model.cpp to 1,900 forced timings of 390 shapes
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
    {"normal_m256n128", 1261, 0},
    {"normal_m256n128_cn2", 1307, 0},
    {"normal_m128n256", 1116, 0},
    {"normal_m128n256_cm2", 1152, 0},
    {"normal_m128n192", 870, 0},
    {"normal_m128n192_cm2", 914, 0},
    {"normal_m128n128_x2", 669, 0},
    {"normal_m128n160", 796, 0},
    {"normal_m128n144", 741, 0},
    {"normal_m128n96_x2", 538, 0},

    {"normal_m256n96", 1020, 0},
    {"normal_m128n64_x2", 440, 0},
    {"normal_m64n128_x2", 491, 0},
    {"normal_m64n64_x2_o2", 412, 621},
    {"normal_m64n32_x2_o2", 273, 440},
    {"normal_m128n64_seq", 435, 0},
    {"swapped_w64t8_x2_o2", 182, 465},
    {"swapped_w64t8_k2_x2_b2", 188, 0},
    {"swapped_w64t8_b2_o3", 312, 816},
    {"swapped_w64t8_k4", 1147, 0},
    {"swapped_w128t8_o2", 430, 1131},
    {"swapped_w64t16_x2_o2", 258, 537},
    {"swapped_w64t16_k2_x2_b2", 476, 0},
    {"swapped_w64t16_b2_o3", 342, 843},
    {"swapped_w64t16_k4", 1229, 0},
    {"swapped_w128t16_o2", 488, 1201},
    {"swapped_w64t32_x2_o2", 337, 523},
    {"swapped_w64t32_k2_x2", 558, 0},
    {"swapped_w64t32_o3", 354, 1036},
    {"swapped_w128t32_o2", 570, 1352},
    {"swapped_w64t64_x2_o2", 564, 695},
    {"swapped_w64t64_k2_x2", 931, 0},
    {"swapped_w192t64", 737, 0},
    {"swapped_w256t64", 1030, 0},
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
    {"normal_m256n128_1d1d", 1720, 0},
    {"normal_m192n128_1d1d", 1230, 0},
    {"normal_m128n128_1d1d", 880, 0},
    {"normal_m64n64_1d1d", 400, 0},
    {"normal_m128n64_seq_1d1d", 560, 0},
    {"normal_m256n128_kg", 1650, 0},
    {"normal_m192n128_kg", 1230, 0},
    {"normal_m128n128_kg", 930, 0},
    {"normal_m128n64_seq_kg", 560, 0},
    {"normal_m256n128_kp", 1650, 0},
    {"normal_m128n64_seq_kp", 560, 0},
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
