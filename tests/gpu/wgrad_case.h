// Random problems with scales on both sides, and their operands, for the device test: dense,
// batched, K-grouped and packed, with group counts, K and metadata that tiles and pipelines fit
// badly.
#pragma once

#include "core/float_types.h"
#include "grouped_case.h"

namespace oct::test {

// K of each group: around a K-block, or very uneven, or none.
inline std::vector<int64_t> hostile_lengths(Random& random, int64_t groups, int64_t most,
                                            bool packed) {
  std::vector<int64_t> sizes(static_cast<std::size_t>(groups), 0);
  const auto kind = random.between(0, 4);
  int64_t left = most;
  for (int64_t& size : sizes) {
    switch (kind) {
      case 0: size = random.pick<int64_t>({0, 1, 127, 128, 129, 255, 256, 257}); break;
      case 1: size = random.chance(0.8) ? 0 : random.between(1, 700); break;
      case 2: size = random.between(0, 500); break;
      case 3: size = random.chance(0.3) ? 0 : random.log_uniform(1, left + 1) - 1; break;
      default: break;  // all in one group, below
    }
    size = std::min(size, left);
    if (packed) size = size / 128 * 128;
    left -= size;
  }
  if (kind == 4) {
    sizes[static_cast<std::size_t>(random.between(0, groups - 1))] =
        packed ? most / 128 * 128 : most;
  }
  return sizes;
}

inline octet_gemm_problem random_pair_problem(Random& random) {
  octet_gemm_problem p = core::default_problem();
  p.granularity = OCTET_1D1D;
  p.sfb_layout = OCTET_COLUMN_MAJOR;
  const auto kind = random.between(0, 9);
  p.grouping = kind < 3 ? OCTET_DENSE : kind == 3 ? OCTET_BATCHED : OCTET_K_GROUPED;
  const auto side = [&] {
    return random.chance(0.5) ? random.pick<int64_t>({1, 8, 63, 64, 65, 127, 128, 129, 133, 200,
                                                      256, 257, 264, 300, 512})
                              : random.log_uniform(1, 600);
  };
  p.m = side();
  p.n = side();
  if (p.grouping == OCTET_K_GROUPED) {
    p.groups = random.chance(0.15) ? random.between(65, 512) : random.log_uniform(1, 40);
    p.k = random.log_uniform(1, 400);
    p.packed = random.chance(0.35) ? 1 : 0;
    p.index_type = random.pick({OCTET_I32, OCTET_I64});
    while (p.groups * p.m * p.n > 4000000) (p.m > p.n ? p.m : p.n) = std::max(p.m, p.n) * 2 / 3;
  } else {
    if (p.grouping == OCTET_BATCHED) p.groups = random.between(0, 4);
    p.k = random.chance(0.4) ? random.pick<int64_t>({0, 1, 16, 103, 127, 128, 129, 256, 576, 1152})
                             : random.log_uniform(1, 2500);
    if (random.chance(0.2)) p.bias_type = random.pick({OCTET_BF16, OCTET_F16, OCTET_F32});
  }
  p.d_type = random.chance(0.5) ? OCTET_F32 : random.chance(0.7) ? OCTET_BF16 : OCTET_F16;
  if (random.chance(0.5)) p.accumulate = 1;
  const auto layout = [&] {
    return random.chance(0.6) ? OCTET_COLUMN_MAJOR
                              : random.pick({OCTET_ROW_MAJOR, OCTET_COLUMN_MAJOR_ODD});
  };
  p.sfa_layout = layout();
  p.sfb_layout = layout();
  if (random.chance(0.3)) p.sm_budget = static_cast<int32_t>(random.between(1, 132));
  if (random.chance(0.2)) p.dependent_launch = 1;
  p.seed = static_cast<uint32_t>(random.bits());
  return p;
}

// Metadata that validate() would name. Lengths stay such that no group's last K-block is cut inside
// another group's data, which the processor leaves out and a device reads: documented as the
// caller's part (bytes up to the next multiple of 128 are zero codes).
inline void spoil_k(HostCase& c, Random& random) {
  const octet_gemm_problem& p = c.problem;
  const int64_t total = c.shape.a.cols;
  const auto put = [&](testing_support::Buffer& buffer, auto value) {
    const int64_t count = buffer.size() / core::size_of(p.index_type);
    for (int64_t i = 0; i < count; ++i) {
      if (!random.chance(0.3)) continue;
      if (p.index_type == OCTET_I64) {
        buffer.as<int64_t>()[i] = value() * (random.chance(0.2) ? int64_t{1} << 32 : 1);
      } else {
        buffer.as<int32_t>()[i] = static_cast<int32_t>(value());
      }
    }
  };
  put(c.group_offsets, [&]() -> int64_t {
    switch (random.between(0, 4)) {
      case 0: return -1 - random.between(0, 1000);
      case 1: return total + random.between(1, 1000);
      case 2: return INT32_MAX;
      case 3: return INT32_MIN;
      default: return random.between(0, std::max<int64_t>(total, 1));
    }
  });
  put(c.group_counts, [&]() -> int64_t {
    switch (random.between(0, 4)) {
      case 0: return -1 - random.between(0, 1000);
      case 1: return (total + random.between(1, 1000)) / 128 * 128 + 128;
      case 2: return INT32_MAX / 128 * 128;
      case 3: return INT32_MIN;
      default: return random.between(0, std::max<int64_t>(total / 128, 1)) * 128;
    }
  });
  // What a length now ends in the middle of must be a K-block's end or the last column.
  if (p.packed) return;
  const int64_t count = p.groups;
  for (int64_t i = 0; i < count; ++i) {
    if (p.index_type == OCTET_I64) {
      int64_t& x = c.group_counts.as<int64_t>()[i];
      if (x > 0) x = (x + 127) / 128 * 128;
    } else {
      int32_t& x = c.group_counts.as<int32_t>()[i];
      if (x > 0 && x < INT32_MAX - 127) x = (x + 127) / 128 * 128;
    }
  }
}

inline GroupedCase make_pair_case(uint64_t seed, bool spoiled) {
  Random random(seed);
  octet_gemm_problem p = random_pair_problem(random);
  if (spoiled) {
    p.grouping = OCTET_K_GROUPED;
    p.groups = std::max<int64_t>(p.groups, random.between(1, 20));
    p.bias_type = OCTET_NONE;
    while (p.groups * p.m * p.n > 2000000) (p.m > p.n ? p.m : p.n) = std::max(p.m, p.n) * 2 / 3;
  }
  HostOptions options;
  options.odd_strides = random.chance(0.5);
  options.gaps = random.chance(0.6);
  options.c_is_d = random.chance(0.5);
  options.data =
      random.pick({testing_support::DataClass::kGaussian, testing_support::DataClass::kGaussian,
                   testing_support::DataClass::kAnyFinite, testing_support::DataClass::kAnything,
                   testing_support::DataClass::kSubnormal});
  if (p.grouping == OCTET_K_GROUPED) {
    const int64_t most = std::clamp<int64_t>(200000000 / std::max<int64_t>(p.m * p.n, 4096), 130,
                                             p.groups > 64 ? 6000 : 9000);
    options.group_sizes = hostile_lengths(random, p.groups, most, p.packed != 0);
  }
  GroupedCase c{HostCase(p, options), {}};
  if (spoiled) spoil_k(c.host, random);
  c.want = processor_result(c.host, 1, 1);
  return c;
}

// Inputs that broke libraries of this kind, by the number of the report; K of their groups.
inline std::vector<FieldReport> weight_gradient_reports() {
  const std::vector<int64_t> f08 = {128, 128, 256, 256, 128, 256, 256, 256};
  const std::vector<int64_t> f09 = {256, 128, 128, 256};
  return {
      {"F05", "dense_m1536n256k2048_1d1d", {}},
      {"F05 f32", "dense_m1536n256k2048_1d1d_f32_acc", {}},
      {"F06", "dense_m1n256k2048_1d1d", {}},
      {"F06", "dense_m133n256k512_1d1d", {}},
      {"F08", "kgrouped_g8m768n2048k192_f32", f08},
      {"F08 packed", "kgrouped_g8m768n2048k192_f32_packed", f08},
      {"F09", "kgrouped_g4m2048n2048k192_f32", f09},
      {"F09 packed", "kgrouped_g4m2048n2048k192_f32_packed", f09},
      {"F26", "kgrouped_g5m256n300k128_f32", {128, 0, 1, 0, 300}},
      {"F26 acc", "kgrouped_g5m256n300k128_f32_acc", {128, 0, 1, 0, 300}},
      {"F26 packed", "kgrouped_g5m256n300k128_f32_acc_packed", {128, 0, 256, 0, 128}},
      {"F26 none", "kgrouped_g3m256n300k128_acc", {0, 0, 0}},
  };
}

}  // namespace oct::test
