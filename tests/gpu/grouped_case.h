// Random problems grouped over M, with the processor's result, for the device test: group counts
// and sizes that tiles fit badly, and grouping metadata that nobody should write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/problem.h"
#include "core/views.h"
#include "cpu/run.h"
#include "support/host_case.h"
#include "support/random.h"

namespace oct::test {

using HostOptions = testing_support::CaseOptions;
using testing_support::HostCase;
using testing_support::Random;

// A problem, its operands in host memory, and D as the processor leaves it.
struct GroupedCase {
  HostCase host;
  std::vector<uint8_t> want;  // all of host.d
};

inline std::vector<uint8_t> processor_result(const HostCase& c, int split, int threads) {
  HostCase copy = c;
  const octet_gemm_plan plan = testing_support::cpu_plan(c.problem, split);
  cpu::Options options;
  options.threads = threads;
  const core::Work work = core::expand(plan, copy.args());
  if (Status s = cpu::run(work, options, nullptr); !s.ok()) throw std::runtime_error(s.message());
  return {copy.d.data(), copy.d.data() + copy.d.size()};
}

// Sizes around a tile's height, or very uneven ones.
inline std::vector<int64_t> hostile_sizes(Random& random, int64_t groups, int64_t most_rows) {
  std::vector<int64_t> sizes(static_cast<std::size_t>(groups), 0);
  const int64_t tile = random.pick<int64_t>({8, 16, 32, 64, 128, 256});
  const auto kind = random.between(0, 4);
  int64_t left = most_rows;
  for (int64_t i = 0; i < groups; ++i) {
    int64_t& size = sizes[static_cast<std::size_t>(i)];
    switch (kind) {
      case 0: size = random.pick<int64_t>({0, 1, tile - 1, tile, tile + 1}); break;
      case 1: size = random.chance(0.8) ? 0 : random.between(1, 3 * tile); break;
      case 2: size = random.between(0, 2 * tile); break;
      case 3: size = random.chance(0.3) ? 0 : random.log_uniform(1, left + 1) - 1; break;
      default: size = 0; break;  // all in one group, below
    }
    size = std::min(size, left);
    left -= size;
  }
  if (kind == 4) sizes[static_cast<std::size_t>(random.between(0, groups - 1))] = most_rows;
  return sizes;
}

inline octet_gemm_problem random_grouped_problem(Random& random) {
  octet_gemm_problem p = core::default_problem();
  p.grouping = static_cast<octet_grouping>(random.between(OCTET_CONTIGUOUS, OCTET_MASKED));
  p.groups = random.chance(0.1) ? random.between(65, 512) : random.log_uniform(1, 64);
  p.n = random.chance(0.4)
            ? random.pick<int64_t>({1, 8, 16, 64, 127, 128, 129, 256, 264, 576, 1000})
            : random.log_uniform(1, 800);
  p.k = random.chance(0.3) ? random.pick<int64_t>({0, 1, 16, 103, 128, 129, 256, 576, 1152})
                           : random.log_uniform(1, 900);
  while (p.groups * p.n * p.k > 3000000) (p.n > p.k ? p.n : p.k) = std::max(p.n, p.k) * 2 / 3;
  p.m = random.log_uniform(1, 200);
  p.d_type = random.chance(0.6) ? OCTET_BF16 : random.chance(0.5) ? OCTET_F16 : OCTET_F32;
  if (random.chance(0.2)) p.bias_type = random.pick({OCTET_BF16, OCTET_F16, OCTET_F32});
  if (random.chance(0.2)) p.accumulate = 1;
  p.sfa_layout = random.chance(0.5) ? OCTET_COLUMN_MAJOR
                                    : random.pick({OCTET_ROW_MAJOR, OCTET_COLUMN_MAJOR_ODD});
  if (random.chance(0.2)) p.sfb_layout = random.pick({OCTET_COLUMN_MAJOR, OCTET_COLUMN_MAJOR_ODD});
  if (p.grouping == OCTET_OFFSETS) p.index_type = random.pick({OCTET_I32, OCTET_I64});
  if (p.grouping == OCTET_CONTIGUOUS) {
    p.alignment = random.pick<int64_t>({64, 128, 128, 192, 256, 512});
    p.zero_padding = random.chance(0.6) ? 1 : 0;
  }
  if (p.grouping == OCTET_ALIGNED) {
    p.alignment = random.pick<int64_t>({1, 3, 8, 64, 100, 128, 5000});
  }
  if (random.chance(0.3)) p.sm_budget = static_cast<int32_t>(random.between(1, 132));
  if (random.chance(0.3)) p.dependent_launch = 1;
  if (p.dependent_launch && random.chance(0.5)) p.weights_ready = 1;
  p.seed = static_cast<uint32_t>(random.bits());
  return p;
}

// Makes the metadata of a case something that validate() would name.
inline void spoil(HostCase& c, Random& random) {
  const octet_gemm_problem& p = c.problem;
  const int64_t rows = c.shape.a.rows;
  const auto bad = [&]() -> int64_t {
    switch (random.between(0, 5)) {
      case 0: return -1 - random.between(0, 1000);
      case 1: return rows + random.between(1, 1000);
      case 2: return INT32_MAX;
      case 3: return INT32_MIN;
      case 4: return p.groups + random.between(0, 5);
      default: return random.between(0, std::max<int64_t>(rows, 1));
    }
  };
  const auto put = [&](testing_support::Buffer& buffer, octet_type type) {
    const int64_t count = buffer.size() / (type == OCTET_I64 ? 8 : 4);
    for (int64_t i = 0; i < count; ++i) {
      if (!random.chance(0.2)) continue;
      if (type == OCTET_I64) {
        buffer.as<int64_t>()[i] = bad() * (random.chance(0.2) ? int64_t{1} << 32 : 1);
      } else {
        buffer.as<int32_t>()[i] = static_cast<int32_t>(bad());
      }
    }
  };
  put(c.group_index, OCTET_I32);
  put(c.group_offsets, p.index_type);
  put(c.group_ends, OCTET_I32);
  put(c.group_counts, OCTET_I32);
}

// `spoiled`: with bad metadata. Rows that it makes somebody's hold poison, which both sides compute
// with.
inline GroupedCase make_grouped_case(uint64_t seed, bool spoiled) {
  Random random(seed);
  octet_gemm_problem p = random_grouped_problem(random);
  HostOptions options;
  options.odd_strides = random.chance(0.5);
  options.gaps = random.chance(0.6);
  options.c_is_d = random.chance(0.5);
  options.data =
      random.pick({testing_support::DataClass::kGaussian, testing_support::DataClass::kGaussian,
                   testing_support::DataClass::kAnyFinite, testing_support::DataClass::kAnything,
                   testing_support::DataClass::kSubnormal});
  const int64_t work = std::max<int64_t>(p.n, 64) * std::max<int64_t>(p.k, 64);
  const int64_t most_rows = std::clamp<int64_t>(400000000 / work, 40, p.groups > 64 ? 1200 : 2500);
  options.group_sizes = hostile_sizes(random, p.groups, most_rows);
  if (p.grouping == OCTET_MASKED) {
    const int64_t tallest =
        *std::max_element(options.group_sizes.begin(), options.group_sizes.end());
    p.max_m = std::max<int64_t>(1, tallest + (random.chance(0.4) ? 0 : random.between(0, 70)));
    // Buffers of the tallest group for every group: keep them small.
    while (p.groups * p.max_m * (p.k + p.n) > 30000000 && p.max_m > 8) {
      p.max_m /= 2;
      for (int64_t& size : options.group_sizes) size = std::min(size, p.max_m);
    }
  }
  GroupedCase c{HostCase(p, options), {}};
  if (spoiled) spoil(c.host, random);
  c.want = processor_result(c.host, 1, 1);
  return c;
}

// Inputs that broke libraries of this kind, by the number of the report; sizes of their groups.
struct FieldReport {
  const char* id;
  std::string problem;
  std::vector<int64_t> sizes;
  bool gaps = false;  // padding blocks and rows between groups and behind them
};

inline std::vector<FieldReport> field_reports() {
  std::vector<FieldReport> all = {
      {"F07", "contiguous_g1m1n24576k1536", {1}},
      {"F11", "contiguous_g4m100n512k512", {100, 1, 128, 37}, true},
      {"F11 untouched", "contiguous_g4m100n512k512_keeppad", {100, 1, 128, 37}, true},
      {"F22", "contiguous_g3m70n256k384", {70, 70, 70}, true},
      {"F25 offsets", "offsets_g5m0n256k384", {0, 0, 0, 0, 0}, true},
      {"F25 masked", "masked_g5m0n256k384_maxm64", {0, 0, 0, 0, 0}},
      {"F25 contiguous", "contiguous_g5m0n256k384", {0, 0, 0, 0, 0}, true},
      {"F28", "contiguous_g4m128n512k256", {128, 100, 127, 90}},
      {"F28 by 64", "contiguous_g4m128n512k256_align64", {128, 100, 127, 90}},
      {"F28 aligned", "aligned_g4m128n512k256_align64", {128, 100, 127, 90}},
  };
  for (const int64_t rows : {8, 16, 32, 63, 65}) {
    all.push_back({"F10",
                   "masked_g6m8n512k384_maxm" + std::to_string(rows),
                   {rows, rows - 1, 1, rows, 0, rows}});
  }
  for (const int64_t rows : {193, 257, 321, 385}) {
    const std::string m = std::to_string(rows);
    all.push_back({"F27", "offsets_g2m" + m + "n2048k6144", {rows, rows}});
    all.push_back({"F27", "offsets_g2m" + m + "n6144k2048", {rows, rows}});
  }
  // One group in eight has rows.
  FieldReport sparse{"F13", "masked_g256m4n512k384_maxm64", {}};
  for (int64_t g = 0; g < 256; ++g) sparse.sizes.push_back(g % 8 == 3 ? 1 + g % 64 : 0);
  all.push_back(sparse);
  return all;
}

}  // namespace oct::test
