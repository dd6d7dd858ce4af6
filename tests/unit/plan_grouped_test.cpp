// Plans of problems grouped over M: every one has a kernel, its tile follows the rows that a group
// is expected to have, and whatever fixes the split gets the kernel that takes any.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/types.h"
#include "cuda/launch_params.h"
#include "kernel_abi/group_order.h"
#include "kernel_abi/tile_config.h"
#include "kernel_launches.h"
#include "octet/octet.hpp"
#include "plan/candidates.h"
#include "plan/invariant_split.h"
#include "support/host_warp.h"
#include "support/problems.h"

namespace {

using namespace octet;
using oct::testing_support::Random;

GemmProblem random_problem(Random& random) {
  GemmProblem p;
  p.grouping = static_cast<octet_grouping>(random.between(OCTET_CONTIGUOUS, OCTET_MASKED));
  p.groups = random.log_uniform(1, 512);
  p.m = random.log_uniform(1, 9000);
  p.n = random.log_uniform(1, 10000);
  p.k = random.log_uniform(1, 10000);
  if (p.grouping == OCTET_MASKED) p.max_m = 2 * p.m;
  if (random.chance(0.2)) p.d_type = OCTET_F32;
  if (random.chance(0.2)) p.even = 1;
  if (random.chance(0.2)) p.batch_invariant = 1;
  if (random.chance(0.2)) p.split = static_cast<std::int32_t>(random.between(1, 20));
  if (random.chance(0.2)) p.sm_budget = static_cast<std::int32_t>(random.between(1, 78));
  return p;
}

TEST(PlanGrouped, EveryProblemHasAKernelAndTheQuickSearchFindsIt) {
  Random random(17);
  for (int i = 0; i < 3000; ++i) {
    const GemmProblem p = random_problem(random);
    const DeviceSpec device = DeviceSpec::preset(random.pick({"h200", "h20", "h100_pcie"})).value();
    const auto plan = plan_gemm(p, device);
    ASSERT_TRUE(plan.ok()) << plan.message();
    const oct::abi::TileConfig tile = oct::abi::parse_kernel(plan.value().kernel);
    EXPECT_TRUE(tile.grouped) << plan.value().to_string();
    const int split = oct::plan::fixed_split(p);
    EXPECT_EQ(plan.value().split, std::max(1, split)) << plan.value().to_string();
    if (split > 1) {
      EXPECT_TRUE(tile.sequential) << plan.value().to_string();
    }
    const auto all = oct::plan::list_candidates(p, device, split, nullptr);
    ASSERT_FALSE(all.empty());
    EXPECT_STREQ(all[0].name(), plan.value().kernel) << p.to_string();
    EXPECT_EQ(all[0].cost.total(), plan.value().predicted_us) << p.to_string();
  }
}

// Many groups of a few rows: a tile of 64 rows would be padding, and one of 8 for hundreds of rows
// would read the weights over and over.
TEST(PlanGrouped, TheTileFollowsTheRowsOfAGroup) {
  const DeviceSpec device = DeviceSpec::preset("h200").value();
  const auto height = [&](std::int64_t rows, const char* kind) {
    const std::string text = std::string(kind) + "_g64m" + std::to_string(rows) + "n4096k4096_even";
    return oct::abi::parse_kernel(
               plan_gemm(GemmProblem::parse(text).value(), device).value().kernel)
        .tile_m;
  };
  for (const char* kind : {"offsets", "masked", "aligned", "contiguous"}) {
    EXPECT_EQ(height(1, kind), 8) << kind;
    EXPECT_EQ(height(8, kind), 8) << kind;
    EXPECT_LE(height(16, kind), 16) << kind;
    EXPECT_LE(height(32, kind), 64) << kind;
    EXPECT_GE(height(128, kind), 64) << kind;
    EXPECT_GE(height(4096, kind), 128) << kind;
  }
}

// Field report F31: of decode with few tokens an expert, most of the work was padding elsewhere.
TEST(PlanGrouped, FewTokensAnExpertArePaddedToEight) {
  using oct::abi::GroupTile;
  constexpr oct::abi::TileConfig kTile = oct::abi::parse_kernel("swapped_w128t8_o2_g");
  const DeviceSpec device = DeviceSpec::preset("h200").value();
  Random random(31);
  for (const char* text : {"offsets_g128m1n4096k2048", "offsets_g256m4n4096k2048",
                           "masked_g128m2n7168k2048_maxm64", "offsets_g64m3n2048k7168"}) {
    const GemmProblem p = GemmProblem::parse(text).value();
    ASSERT_STREQ(plan_gemm(p, device).value().kernel, "swapped_w128t8_o2_g") << text;
    // Sizes of 0 to 4 rows, as a router would deal them out.
    std::vector<std::int32_t> numbers;
    std::int64_t rows = 0, padded = 0;
    if (p.grouping == OCTET_OFFSETS) numbers.push_back(0);
    for (std::int64_t g = 0; g < p.groups; ++g) {
      const std::int64_t size = random.between(0, 4);
      rows += size;
      padded += size > 0 ? 8 : 0;
      numbers.push_back(static_cast<std::int32_t>(p.grouping == OCTET_OFFSETS ? rows : size));
    }
    octet_gemm_args args{};
    args.a.rows = p.grouping == OCTET_OFFSETS ? rows : p.max_m;
    args.group_offsets = args.group_counts = numbers.data();
    const auto order = oct::kernel_launches::group_order({"", kTile, 1}, p, args);
    oct::abi::GroupWalk<kTile, oct::testing_support::HostWarp> scheduler(order, {});
    std::int64_t issued = 0;
    for (std::uint32_t unit = 0;; ++unit) {
      const GroupTile t = scheduler.find(unit);
      if (t.group < 0) break;
      issued += kTile.tile_m;
    }
    EXPECT_EQ(issued, padded * ceil_div(p.n, kTile.tile_n)) << text;
  }
}

TEST(PlanGrouped, TheExpectationIsAHint) {
  const DeviceSpec device = DeviceSpec::preset("h200").value();
  for (const char* text : {"offsets_g8m0n512k512", "masked_g8m0n512k512_maxm64",
                           "contiguous_g8m0n512k512", "aligned_g0m5n512k512"}) {
    EXPECT_TRUE(supports(GemmProblem::parse(text).value(), device).ok()) << text;
  }
}

TEST(PlanGrouped, OtherGroupingsAreRefusedForTheirOwnReason) {
  const DeviceSpec device = DeviceSpec::preset("h200").value();
  EXPECT_EQ(
      supports(GemmProblem::parse("kgrouped_g4m256n256k512_bf16in").value(), device).message(),
      "kgrouped_g4m256n256k512_bf16in on h200: no kernel takes it (the first, "
      "normal_m256n128_kg: serves e4m3 operands with 1D1D scales)");
  // Of the kernels for its grouping, not of the first of all.
  EXPECT_EQ(supports(GemmProblem::parse("offsets_g4m256n256k512_1d1d").value(), device).message(),
            "offsets_g4m256n256k512_1d1d on h200: no kernel takes it (the first, "
            "normal_m256n128_g: serves e4m3 operands with 1D2D scales)");
}

// How many rows there are is told by the arguments alone: what a tile's coordinates cannot reach is
// refused there.
TEST(PlanGrouped, RowsBeyondTheCoordinatesAreRefusedWithTheArguments) {
  using oct::abi::parse_kernel;
  const oct::abi::TileConfig tile = parse_kernel("normal_m64n256_g");
  GemmProblem p = GemmProblem::parse("offsets_g3m1n8k16").value();
  EXPECT_EQ(oct::plan::takes_rows(tile, p, 2147482624).message(), "");
  EXPECT_EQ(oct::plan::takes_rows(tile, p, 2147482625).message(),
            "serves grouped problems of at most 2147482624 rows");
  p.n = 100000;
  EXPECT_EQ(oct::plan::takes_rows(tile, p, 2147482624).message(), "2^31 tiles or more");
}

}  // namespace
