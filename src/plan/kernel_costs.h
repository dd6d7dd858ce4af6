// What a K-block costs in each kernel, measured: the cost model's one table. Cycles of an H200's SM
// under load, fitted with the constants of cost_model.cpp to 1,084 forced timings of 163 shapes,
// and to 1,404 without a split K of 300 others (docs/performance-log.md, sixth state). What the
// tensor cores of another device need beyond the H200's is added by the cost model.
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
    {"normal_m256n128", 1247, 0},
    {"normal_m256n128_cn2", 1186, 0},
    {"normal_m128n256", 1219, 0},
    {"normal_m128n256_cm2", 1228, 0},
    {"normal_m128n192", 915, 0},
    {"normal_m128n192_cm2", 965, 0},
    {"normal_m128n128_x2", 693, 0},
    {"normal_m128n160", 824, 0},
    {"normal_m128n144", 783, 0},
    {"normal_m128n96_x2", 596, 0},

    {"normal_m256n96", 1035, 0},
    {"normal_m128n64_x2", 485, 0},
    {"normal_m64n128_x2", 501, 0},
    {"normal_m64n144_x2_w1", 550, 0},
    {"normal_m64n64_x2_o2", 443, 659},
    {"normal_m64n32_x2_o2", 271, 490},
    {"normal_m128n64_seq", 459, 0},
    {"swapped_w64t8_x2_o2", 168, 433},
    {"swapped_w64t8_k2_x2_b2", 188, 0},
    {"swapped_w64t8_b2_o3", 308, 915},
    {"swapped_w64t8_k4", 1147, 0},
    {"swapped_w128t8_o2", 342, 1281},
    {"swapped_w64t16_x2_o2", 208, 535},
    {"swapped_w64t16_k2_x2_b2", 431, 0},
    {"swapped_w64t16_b2_o3", 337, 959},
    {"swapped_w64t16_k4", 1229, 0},
    {"swapped_w128t16_o2", 498, 1408},
    {"swapped_w64t32_x2_o2", 336, 517},
    {"swapped_w64t32_k2_x2", 418, 0},
    {"swapped_w64t32_o3", 359, 1046},
    {"swapped_w128t32_o2", 552, 1554},
    {"swapped_w64t64_x2_o2", 581, 764},
    {"swapped_w64t64_k2_x2", 931, 0},
    {"swapped_w192t64", 718, 0},
    {"swapped_w256t64", 1196, 0},
    // Grouped: 255 forced timings of 45 problems.
    {"normal_m256n128_g", 1275, 0},
    {"normal_m256n128_cn2_g", 1245, 0},
    {"normal_m128n256_g", 1240, 0},
    {"normal_m128n128_x2_g", 723, 0},
    {"normal_m64n256_g", 880, 0},
    {"normal_m128n64_seq_g", 503, 0},
    {"swapped_w128t8_o2_g", 438, 760},
    {"swapped_w128t16_o2_g", 488, 794},
    {"swapped_w64t32_x2_o2_g", 380, 560},
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
