// What `octet verify` compares, and how it says where a difference lies.
#include "verify_case.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernel_abi/kernel_table.h"
#include "kernel_tile.h"
#include "plan/candidates.h"

namespace {

using namespace octet;
using namespace octet::tool;

constexpr CaseSpec kSmall{"batched_g2m5n9k300_f32", 2, 1, 3, 2, 1, false, false};

// Byte of output (group, row, col) in the D buffer: guard band, shift, strides of kSmall.
std::size_t byte_of(std::size_t group, std::size_t row, std::size_t col) {
  return 512 + 4 * (2 + group * (5 * 12 + 9) + row * 12 + col);
}

TEST(VerifyCase, EveryProblemHasItsOwnStringAndComputesOnTheProcessor) {
  std::set<std::string> seen;
  for (const CaseSpec& spec : verify_cases()) {
    SCOPED_TRACE(spec.problem);
    const VerifyCase c(spec);
    EXPECT_TRUE(seen.insert(c.problem().to_string()).second);
    const VerifyCase::Bytes one = c.run_on_cpu(1);
    const auto written = c.compare(one, c.buffer(VerifyCase::kD));
    ASSERT_TRUE(written.has_value());
    EXPECT_EQ(written->strays, 0);
    // What D held before can be the result of one output in many.
    EXPECT_GT(written->outputs, c.outputs() * 9 / 10);
    EXPECT_FALSE(c.compare(one, c.run_on_cpu(1)).has_value());
    // The split must show, or a wrong one would pass.
    if (c.problem().k > 1000) {
      EXPECT_TRUE(c.compare(one, c.run_on_cpu(2)).has_value());
    }
  }
}

// Whatever a kernel can be asked for, some problem asks it.
TEST(VerifyCase, EveryKernelIsAskedForEverySplitItHas) {
  const DeviceSpec device = DeviceSpec::preset("h200").value();
  const GemmProblem dense = GemmProblem::parse("dense_m4096n4096k16384").value();
  const GemmProblem grouped = GemmProblem::parse("offsets_g4m4096n4096k16384").value();
  std::vector<GemmProblem> problems;
  for (const CaseSpec& spec : verify_cases()) {
    problems.push_back(GemmProblem::parse(spec.problem).value());
  }
  for (const oct::abi::KernelRow& row : oct::abi::kKernels) {
    const oct::abi::TileConfig tile = oct::abi::parse_kernel(row.name);
    const auto said = parse_kernel_tile(row.name);
    ASSERT_TRUE(said.has_value()) << row.name;
    EXPECT_EQ(said->m, tile.tile_m) << row.name;
    EXPECT_EQ(said->n, tile.tile_n) << row.name;
    EXPECT_EQ(said->normal, tile.normal()) << row.name;
    EXPECT_EQ(said->ctas_per_sm, tile.ctas_per_sm) << row.name;
    const GemmProblem& anything = tile.grouped ? grouped : dense;
    for (int split = 1; split <= 64; ++split) {
      if (!oct::plan::serves(tile, anything, device, split).ok()) continue;
      int asked = 0;
      for (std::size_t i = 0; i < problems.size(); ++i) {
        asked += split <= verify_cases()[i].most_split &&
                 oct::plan::serves(tile, problems[i], device, split).ok();
      }
      EXPECT_GE(asked, 1) << row.name << " with split " << split;
    }
  }
}

TEST(VerifyCase, TheCpuBackendAgreesWithTheNormativeLoops) {
  const VerifyCase c(kSmall);
  GemmPlan plan = plan_gemm(c.problem(), DeviceSpec::preset("cpu").value()).value();
  plan.split = 2;
  std::array<VerifyCase::Bytes, VerifyCase::kBuffers> buffers;
  VerifyCase::Addresses base{};
  for (int i = 0; i < VerifyCase::kBuffers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    buffers[at] = c.buffer(static_cast<VerifyCase::Buffer>(i));
    base[at] = buffers[at].data();
  }
  ref::run(plan, c.args(base)).value();
  EXPECT_EQ(buffers[VerifyCase::kD], c.run_on_cpu(2));
}

TEST(VerifyCase, NamesTheFirstOutputThatDiffers) {
  const VerifyCase c(kSmall);
  const VerifyCase::Bytes want = c.run_on_cpu(1);
  VerifyCase::Bytes got = want;
  const float value = 1.5f;
  std::memcpy(&got[byte_of(1, 3, 8)], &value, 4);
  got[byte_of(1, 4, 0)] ^= 1;
  const auto x = c.compare(got, want);
  ASSERT_TRUE(x.has_value());
  EXPECT_EQ(x->outputs, 2);
  EXPECT_EQ(x->strays, 0);
  EXPECT_TRUE(x->inside);
  EXPECT_EQ(x->group, 1);
  EXPECT_EQ(x->row, 3);
  EXPECT_EQ(x->col, 8);
  EXPECT_EQ(x->got, "0x3fc00000 (1.5)");
  EXPECT_NE(x->want, x->got);
}

TEST(VerifyCase, NamesBytesWrittenOutsideD) {
  const VerifyCase c(kSmall);
  const VerifyCase::Bytes want = c.run_on_cpu(1);
  const auto touched = [&](std::size_t byte) {
    VerifyCase::Bytes got = want;
    got[byte] ^= 0xff;
    const auto x = c.compare(got, want);
    EXPECT_EQ(x->outputs, 0);
    EXPECT_EQ(x->strays, 1);
    return x->place;
  };
  EXPECT_EQ(touched(byte_of(0, 0, 0) - 1), "1 bytes before D");
  EXPECT_EQ(touched(byte_of(0, 0, 9)), "byte 36 of D, between its rows");
  EXPECT_EQ(touched(byte_of(0, 4, 12)), "byte 240 of D, between its rows");  // between groups
  EXPECT_EQ(touched(byte_of(1, 4, 9)), "1 bytes after D");
  EXPECT_EQ(touched(want.size() - 1).find("bytes after D") == std::string::npos, false);
}

TEST(KernelTile, ReadsTheNamesOfBothFamilies) {
  const auto normal = parse_kernel_tile("normal_m64n32_x2_o2");
  ASSERT_TRUE(normal.has_value());
  EXPECT_TRUE(normal->normal);
  EXPECT_EQ(normal->m, 64);
  EXPECT_EQ(normal->n, 32);
  EXPECT_EQ(normal->ctas_per_sm, 2);
  const auto swapped = parse_kernel_tile("swapped_w256t64");
  ASSERT_TRUE(swapped.has_value());
  EXPECT_FALSE(swapped->normal);
  EXPECT_EQ(swapped->m, 64);
  EXPECT_EQ(swapped->n, 256);
  EXPECT_EQ(swapped->ctas_per_sm, 1);
  EXPECT_FALSE(parse_kernel_tile("cpu").has_value());
  EXPECT_FALSE(parse_kernel_tile("normal_m0n0").has_value());
}

TEST(KernelTile, SaysWhereAnOutputWasComputed) {
  EXPECT_EQ(describe_place("normal_m128n256", 300, 520),
            "tile (2, 2) of 128 x 256, row 44 and column 8 of it; warp 2 of a math warpgroup");
  EXPECT_EQ(describe_place("swapped_w64t16_k4", 17, 127),
            "tile (1, 1) of 16 x 64, row 1 and column 63 of it; warp 3 of a math warpgroup");
  EXPECT_EQ(describe_place("cpu", 1, 1), "");
}

}  // namespace
