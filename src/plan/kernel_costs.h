// What a K-block costs in each kernel, measured: the cost model's one table. Cycles of an H200's SM
// under load, fitted with the constants of cost_model.cpp to 2,404 forced timings of 403 shapes,
// and to 1,108 without a split K of 241 others, whose kernels were older. What the tensor cores of
// another device need beyond the H200's is added by the cost model.
#pragma once

#include <string_view>

#include "kernel_abi/kernel_table.h"

namespace oct::plan {

struct KernelCost {
  std::string_view kernel;
  double alone;     // cycles of a K-block where a CTA has the SM to itself
  double shared;    // where the SM holds as many CTAs as the name says; 0: it never shares
  double tile = 0;  // us of a tile beside its K-blocks, its share of D and what every kernel takes
};

inline constexpr KernelCost kKernelCosts[] = {
    {"normal_m256n128", 1262, 0, -0.06},
    {"normal_m256n128_cn2", 1253, 0, 0.01},
    {"normal_m128n256", 1250, 0, -0.15},
    {"normal_m128n256_cm2", 1274, 0, -0.17},
    {"normal_m128n192", 942, 0, 0.10},
    {"normal_m128n192_cm2", 986, 0, 0.13},
    {"normal_m128n128_x2", 696, 0, -0.07},
    {"normal_m128n160", 807, 0, 0.12},
    {"normal_m128n144", 753, 0, 0.26},
    {"normal_m128n96_x2", 587, 0, 0.06},

    {"normal_m256n96", 1023, 0, -0.08},
    {"normal_m128n64_x2", 438, 0},
    {"normal_m64n128_x2", 491, 0},
    {"normal_m64n144_x2_w1", 550, 0},
    {"normal_m64n64_x2_o2", 418, 605},
    {"normal_m64n32_x2_o2", 259, 431},
    {"normal_m128n64_seq", 432, 0},
    {"swapped_w64t8_x2_o2", 169, 425},
    {"swapped_w64t8_k2_x2_b2", 188, 0},
    {"swapped_w64t8_b2_o3", 308, 866},
    {"swapped_w64t8_k4", 1147, 0},
    {"swapped_w128t8_o2", 348, 1243},
    {"swapped_w64t16_x2_o2", 215, 524},
    {"swapped_w64t16_k2_x2_b2", 425, 0},
    {"swapped_w64t16_b2_o3", 328, 910},
    {"swapped_w64t16_k4", 1229, 0},
    {"swapped_w128t16_o2", 487, 1332},
    {"swapped_w64t32_x2_o2", 313, 499},
    {"swapped_w64t32_k2_x2", 429, 0},
    {"swapped_w64t32_o3", 329, 947},
    {"swapped_w128t32_o2", 544, 1517},
    {"swapped_w64t64_x2_o2", 546, 697},
    {"swapped_w64t64_k2_x2", 952, 0},
    {"swapped_w192t64", 782, 0, 0.04},
    {"swapped_w256t64", 1133, 0, 0.06},
    // Grouped: 255 forced timings of 45 problems; 256x128 with a cluster and 64x32 by 40 of 20.
    {"normal_m256n128_g", 1275, 0},
    {"normal_m256n128_cn2_g", 1190, 0, 0.75},
    {"normal_m128n256_g", 1240, 0},
    {"normal_m128n128_x2_g", 723, 0},
    {"normal_m64n256_g", 880, 0},
    {"normal_m128n64_seq_g", 503, 0},
    {"swapped_w128t8_o2_g", 438, 760},
    {"swapped_w128t16_o2_g", 488, 794},
    {"swapped_w64t32_x2_o2_g", 370, 535},
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
