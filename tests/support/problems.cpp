// See problems.h.
#include "support/problems.h"

#include <algorithm>

#include "core/problem.h"

namespace oct::testing_support {
namespace {

int64_t edge(Random& random, int64_t most) {
  const int64_t unit = random.pick<int64_t>({8, 16, 32, 64, 128});
  return std::max<int64_t>(1, unit * random.log_uniform(1, std::max<int64_t>(1, most / unit)) +
                                  random.between(-1, 1));
}

void draw_sizes(Random& random, Regime regime, octet_gemm_problem& p) {
  switch (regime) {
    case Regime::kTiny:
      p.m = random.between(0, 20);
      p.n = random.between(0, 20);
      p.k = random.between(0, 20);
      break;
    case Regime::kDecode:
      p.m = random.log_uniform(1, 16);
      p.n = random.log_uniform(16, 600);
      p.k = random.log_uniform(64, 1100);
      break;
    case Regime::kPrefill:
      p.m = random.log_uniform(64, 700);
      p.n = random.log_uniform(1, 200);
      p.k = random.log_uniform(1, 400);
      break;
    case Regime::kLongK:
      p.m = random.log_uniform(1, 6);
      p.n = random.log_uniform(1, 6);
      p.k = random.log_uniform(1000, 10000);
      break;
    case Regime::kEdges:
      p.m = edge(random, 200);
      p.n = edge(random, 260);
      p.k = edge(random, 520);
      break;
  }
}

// Options that are allowed with any sizes; the grouping is set.
void draw_options(Random& random, octet_gemm_problem& p) {
  const bool k_grouped = p.grouping == OCTET_K_GROUPED;
  p.in_type = random.chance(0.25) ? OCTET_BF16 : OCTET_E4M3;
  p.granularity = p.in_type == OCTET_BF16           ? OCTET_SCALE_NONE
                  : k_grouped || random.chance(0.4) ? OCTET_1D1D
                                                    : OCTET_1D2D;
  p.d_type = random.pick({OCTET_BF16, OCTET_F16, OCTET_F32});
  if (!k_grouped && random.chance(0.3)) {
    p.bias_type = random.pick({OCTET_BF16, OCTET_F16, OCTET_F32});
  }
  p.accumulate = random.chance(0.3) ? 1 : 0;
  p.sfa_layout = random.pick({OCTET_COLUMN_MAJOR, OCTET_ROW_MAJOR, OCTET_COLUMN_MAJOR_ODD});
  p.sfb_layout = random.pick({OCTET_COLUMN_MAJOR, OCTET_ROW_MAJOR, OCTET_COLUMN_MAJOR_ODD});
  if (p.grouping == OCTET_OFFSETS || k_grouped) {
    p.index_type = random.pick({OCTET_I32, OCTET_I64});
  }
  if (p.grouping == OCTET_CONTIGUOUS) {
    p.alignment = random.pick<int64_t>({64, 128, 128, 192, 256});
    p.zero_padding = random.chance(0.7) ? 1 : 0;
  }
  if (p.grouping == OCTET_ALIGNED) p.alignment = random.pick<int64_t>({1, 3, 8, 64, 100, 128});
  if (k_grouped && random.chance(0.4)) p.packed = 1;
  if (random.chance(0.3)) p.split = static_cast<int32_t>(random.log_uniform(1, core::kMaxSplit));
  p.batch_invariant = random.chance(0.15) ? 1 : 0;
  p.even = random.chance(0.2) ? 1 : 0;
  p.seed = static_cast<uint32_t>(random.bits());
}

int64_t& largest(octet_gemm_problem& p) {
  return p.k >= p.m && p.k >= p.n ? p.k : p.m >= p.n ? p.m : p.n;
}

}  // namespace

octet_gemm_problem draw_problem(Random& random, Regime regime, int64_t work) {
  octet_gemm_problem p = core::default_problem();
  p.grouping = static_cast<octet_grouping>(random.between(OCTET_DENSE, OCTET_K_GROUPED));
  if (p.grouping != OCTET_DENSE) {
    p.groups = random.chance(0.03) ? 0 : random.log_uniform(1, random.chance(0.1) ? 40 : 6);
  }
  draw_sizes(random, regime, p);
  while (p.groups * p.m * p.n * p.k > work) {
    int64_t& size = largest(p);
    size = size * 2 / 3;
  }
  draw_options(random, p);
  if (p.grouping == OCTET_MASKED) {
    p.max_m = random.chance(0.5) ? core::default_max_m(p.m) : p.m + random.between(0, 9);
  }
  return p;
}

octet_gemm_problem draw_any_problem(Random& random) {
  octet_gemm_problem p = core::default_problem();
  const auto any_size = [&] {
    return random.chance(0.1) ? random.pick<int64_t>({0, core::kMaxSize})
                              : random.log_uniform(1, core::kMaxSize);
  };
  p.grouping = static_cast<octet_grouping>(random.between(OCTET_DENSE, OCTET_K_GROUPED));
  if (p.grouping != OCTET_DENSE) p.groups = any_size();
  p.m = any_size();
  p.n = any_size();
  p.k = any_size();
  draw_options(random, p);
  if (p.grouping == OCTET_MASKED) {
    p.max_m = core::default_max_m(p.m);
    if (random.chance(0.5)) p.max_m = any_size();
    if (p.m > 0) p.max_m = std::max<int64_t>(1, p.max_m);
  }
  if (p.grouping == OCTET_CONTIGUOUS && random.chance(0.5)) {
    p.alignment = 64 * random.log_uniform(1, core::kMaxSize / 64);
  }
  if (p.grouping == OCTET_ALIGNED && random.chance(0.5))
    p.alignment = random.log_uniform(1, core::kMaxSize);
  if (random.chance(0.3)) p.sm_budget = static_cast<int32_t>(random.log_uniform(1, core::kMaxSize));
  p.dependent_launch = random.chance(0.3) ? 1 : 0;
  p.weights_ready = random.chance(0.3) ? 1 : 0;
  if (random.chance(0.3)) p.seed = 0;
  return p;
}

}  // namespace oct::testing_support
