// Random and edge problems for one kernel, and random operands: what the equality test forces
// kernels through.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include "device_case.h"
#include "kernel_abi/tile_config.h"

namespace oct::test {

inline int64_t log_uniform(std::mt19937_64& rng, int64_t low, int64_t high) {
  const double u = static_cast<double>(rng() >> 11) * 0x1p-53;
  return static_cast<int64_t>(
      std::exp(std::log(double(low)) + u * (std::log(double(high) + 1) - std::log(double(low)))));
}

// `small`: for tools that slow a launch down a thousand times.
inline octet_gemm_problem random_problem(std::mt19937_64& rng, const abi::TileConfig& tile,
                                         int round, bool small) {
  static const int64_t edges_k[] = {103, 128, 576, 1152, 1, 16, 127, 129, 256, 2048, 384, 7168, 0};
  static const int64_t edges_n[] = {1, 16, 576, 2112, 129, 127, 128, 256, 8, 1000, 130, 257};
  static const int64_t edges_m[] = {1, 64, 65, 133, 128, 130, 8, 1040, 16, 63, 256, 17};
  const int64_t most_m = tile.normal() ? 1200 : 3 * tile.tile_m;
  octet_gemm_problem p = dense_problem(log_uniform(rng, 1, most_m), log_uniform(rng, 1, 3000),
                                       log_uniform(rng, 1, 2500));
  if (rng() % 3 == 0) p.k = edges_k[rng() % 13];
  if (rng() % 3 == 0) p.n = edges_n[rng() % 12];
  if (rng() % 3 == 0) p.m = edges_m[rng() % 12];
  if (small) {
    p.m = std::min<int64_t>(p.m, tile.tile_m + 70);
    p.n = std::min<int64_t>(p.n, tile.tile_n + 70);
    p.k = std::min<int64_t>(p.k, 1400);
  }
  if (rng() % 6 == 0) {
    p.groups = 1 + rng() % 5;
    p.grouping = OCTET_BATCHED;
  }
  p.d_type = round % 2 == 0 ? OCTET_BF16 : rng() % 2 ? OCTET_F32 : OCTET_F16;
  if (rng() % 4 == 0) p.bias_type = static_cast<octet_type>(OCTET_BF16 + rng() % 3);
  if (rng() % 4 == 0) p.accumulate = 1;
  const auto layout = rng() % 4;
  p.sfa_layout = layout == 0   ? OCTET_ROW_MAJOR
                 : layout == 1 ? OCTET_COLUMN_MAJOR_ODD
                               : OCTET_COLUMN_MAJOR;
  if (rng() % 5 == 0) p.sfb_layout = OCTET_COLUMN_MAJOR_ODD;
  if (rng() % 4 == 0) p.sm_budget = static_cast<int32_t>(1 + rng() % 132);
  if (rng() % 5 == 0) p.dependent_launch = 1;
  if (p.dependent_launch && rng() % 2) p.weights_ready = 1;
  return p;
}

inline CaseOptions random_options(std::mt19937_64& rng) {
  CaseOptions o;
  const auto kind = rng() % 10;
  o.codes = kind < 5    ? Codes::kGaussian
            : kind == 5 ? Codes::kAny
            : kind == 6 ? Codes::kAnyNan
            : kind == 7 ? Codes::kTiny
            : kind == 8 ? Codes::kLarge
                        : Codes::kAny;
  const auto scale = rng() % 8;
  o.scales = scale < 4    ? ScaleKind::kOrdinary
             : scale == 4 ? ScaleKind::kWide
             : scale == 5 ? ScaleKind::kSpecial
             : scale == 6 ? ScaleKind::kTiny
                          : ScaleKind::kOrdinary;
  o.a_pad = 16 * (rng() % 4);
  o.b_pad = 16 * (rng() % 4);
  static const int64_t pads[] = {0, 0, 8, 1, 2, 5, 16};
  o.d_pad = pads[rng() % 7];
  o.c_pad = pads[rng() % 7];
  o.d_shift = rng() % 4 == 0 ? rng() % 9 : 0;
  o.sfa_pad = rng() % 6;
  o.c_is_d = rng() % 2;
  o.share_b = rng() % 3 == 0;
  o.special = rng() % 3 == 0;
  o.one_sfa = rng() % 12 == 0;
  o.one_sfb = rng() % 12 == 0;
  o.share_scales = rng() % 6 == 0;
  o.seed = rng();
  return o;
}

}  // namespace oct::test
