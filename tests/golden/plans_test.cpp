// The planner's choices for fixed problems against those that were reviewed, and what any sound
// choice keeps to: no tile that is far larger than the problem while a smaller one is there, no
// split where there is work for every SM without one.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "golden/plan_lines.h"
#include "kernel_abi/tile_config.h"
#include "support/random.h"

namespace {

using namespace octet;
using oct::testing_support::Random;

TEST(PlanGolden, TheChoicesAreTheReviewedOnes) {
  std::ifstream in(OCTET_GOLDEN_DIR "/plans.txt");
  ASSERT_TRUE(in);
  const std::vector<std::string> now = oct::golden::plan_lines();
  std::string line;
  std::size_t at = 0;
  for (; std::getline(in, line); ++at) {
    ASSERT_LT(at, now.size());
    EXPECT_EQ(now[at], line) << "if this is meant: build/release/print_plans > "
                                "tests/golden/plans.txt, and review the difference";
  }
  EXPECT_EQ(at, now.size());
}

TEST(PlanGolden, CoversEveryRegimeOnThreeDevices) {
  std::set<std::string> problems;
  std::map<std::string, int> kinds;
  for (const GemmProblem& p : oct::golden::plan_problems()) {
    EXPECT_TRUE(problems.insert(p.to_string()).second) << p.to_string();
    ++kinds[p.grouping == OCTET_BATCHED ? "batched"
            : p.m <= 64                 ? "few rows"
            : p.m <= 2048               ? "mid"
                                        : "large"];
  }
  EXPECT_GE(problems.size(), 60u);
  EXPECT_GE(kinds["few rows"], 20);
  EXPECT_GE(kinds["mid"], 15);
  EXPECT_GE(kinds["large"], 8);
  EXPECT_GE(kinds["batched"], 5);
}

std::int64_t padded(std::int64_t size, int tile) { return ceil_div(size, tile) * tile; }

// Rows of tokens come in eights, columns in the 32 of the narrowest tile: what a tile computes
// beyond those is waste. Between two heights of a family it comes to 64 rows for 17 to 24.
TEST(PlanGolden, NoTileIsFarLargerThanTheProblem) {
  constexpr double kMostRows = 2.7, kMostElements = 3;
  Random random(14);
  for (int i = 0; i < 4000; ++i) {
    GemmProblem p;
    p.m = random.log_uniform(1, 20000);
    p.n = random.log_uniform(64, 40000);
    p.k = random.log_uniform(128, 20000);
    for (const char* name : oct::golden::kPlanDevices) {
      const GemmPlan plan = plan_gemm(p, DeviceSpec::preset(name).value()).value();
      const oct::abi::TileConfig tile = oct::abi::parse_kernel(plan.kernel);
      const double rows =
          static_cast<double>(padded(p.m, tile.tile_m)) / static_cast<double>(padded(p.m, 8));
      const double columns =
          static_cast<double>(padded(p.n, tile.tile_n)) / static_cast<double>(padded(p.n, 32));
      EXPECT_LE(rows, kMostRows) << plan.to_string();
      EXPECT_LE(rows * columns, kMostElements) << plan.to_string();
    }
  }
}

// Partial sums over a cluster cost time, which idle SMs pay for, or a last wave that would be empty
// but for a few tiles: after some waves neither is left.
TEST(PlanGolden, KIsNotSplitWhereTilesFillTheDevice) {
  // Half an empty wave in seven is 7 %; where pitches are odd, SMs and not DRAM set the time of
  // decode.
  constexpr std::int64_t kMostWaves = 7;
  Random random(15);
  for (int i = 0; i < 4000; ++i) {
    GemmProblem p;
    p.m = random.log_uniform(1, 20000);
    p.n = random.log_uniform(64, 40000);
    p.k = random.log_uniform(128, 20000);
    for (const char* name : oct::golden::kPlanDevices) {
      const DeviceSpec device = DeviceSpec::preset(name).value();
      const GemmPlan plan = plan_gemm(p, device).value();
      const oct::abi::TileConfig tile = oct::abi::parse_kernel(plan.kernel);
      if (plan.split <= tile.k_groups) continue;
      const std::int64_t tiles = ceil_div(p.m, tile.tile_m) * ceil_div(p.n, tile.tile_n);
      EXPECT_LE(tiles, kMostWaves * device.sms * tile.ctas_per_sm) << plan.to_string();
    }
  }
}

// Where tensor cores are the limit, their time is what a tile's padding and last wave make of it.
TEST(PlanGolden, SlowTensorCoresGetLargeTiles) {
  const DeviceSpec h20 = DeviceSpec::preset("h20").value();
  Random random(16);
  for (int i = 0; i < 2000; ++i) {
    GemmProblem p;
    p.m = random.log_uniform(1500, 20000);
    p.n = random.log_uniform(1500, 40000);
    p.k = random.log_uniform(1024, 20000);
    const GemmPlan plan = plan_gemm(p, h20).value();
    const oct::abi::TileConfig tile = oct::abi::parse_kernel(plan.kernel);
    EXPECT_GE(tile.tile_m * tile.tile_n, 128 * 64) << plan.to_string();
  }
}

}  // namespace
