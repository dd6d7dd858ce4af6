// Whether two operands share a byte, against a walk over every run of both; and through check():
// slices of one buffer beside each other are fine, one byte in common is not.
#include "core/regions.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "octet/octet.hpp"
#include "support/random.h"

namespace {

using oct::core::Region;
using oct::core::Sharing;
using oct::testing_support::Random;

struct Drawn {
  int64_t at, width;
  Region::Level levels[3];

  Region region() const {
    return {reinterpret_cast<const void*>(at), width, {levels[0], levels[1], levels[2]}};
  }
  std::vector<char> bytes(int64_t size) const {
    std::vector<char> marks(static_cast<std::size_t>(size), 0);
    for (int64_t i = 0; i < levels[0].count; ++i) {
      for (int64_t j = 0; j < levels[1].count; ++j) {
        for (int64_t k = 0; k < levels[2].count; ++k) {
          const int64_t from =
              at + i * levels[0].stride + j * levels[1].stride + k * levels[2].stride;
          for (int64_t b = 0; b < width; ++b) marks[static_cast<std::size_t>(from + b)] = 1;
        }
      }
    }
    return marks;
  }
};

// Strides that leave room for what they repeat, as those of matrices do.
Drawn draw(Random& random, const Drawn* like) {
  Drawn d{};
  d.at = random.between(1, 400);
  d.width = random.between(1, 9);
  int64_t extent = d.width;
  for (int i = 0; i < 3; ++i) {
    auto& level = d.levels[i];
    level.count = random.chance(0.3) ? 1 : random.between(2, 6);
    level.stride = extent + random.between(0, 20);
    if (like != nullptr && random.chance(0.8)) {
      level.stride = std::max(extent, like->levels[i].stride);
    }
    extent += (level.count - 1) * level.stride;
  }
  return d;
}

TEST(Regions, SharingIsThatOfTheBytes) {
  Random random(41);
  int counts[2] = {};
  for (int i = 0; i < 30000; ++i) {
    const Drawn x = draw(random, nullptr);
    const Drawn y = draw(random, random.chance(0.5) ? &x : nullptr);
    constexpr int64_t kSize = 1 << 14;
    const auto a = x.bytes(kSize), b = y.bytes(kSize);
    bool share = false;
    for (std::size_t j = 0; j < a.size(); ++j) share = share || (a[j] && b[j]);
    const Sharing want = share ? Sharing::kSome : Sharing::kNone;
    ASSERT_EQ(sharing(x.region(), y.region()), want) << i;
    ASSERT_EQ(sharing(y.region(), x.region()), want) << i;
    // Apart though their spans are not.
    const bool spans =
        x.region().begin() < y.region().end() && y.region().begin() < x.region().end();
    if (spans) ++counts[share];
  }
  EXPECT_GT(counts[0], 1000);
  EXPECT_GT(counts[1], 1000);
}

TEST(Regions, EmptyOnesShareNothing) {
  int x = 0;
  const Region all(&x, 100), none, null(nullptr, 100), no_rows(&x, 4, {{8, 0}});
  for (const Region& r : {none, null, no_rows}) {
    EXPECT_TRUE(r.empty());
    EXPECT_EQ(sharing(r, all), Sharing::kNone);
    EXPECT_EQ(sharing(all, r), Sharing::kNone);
  }
  EXPECT_EQ(sharing(all, all), Sharing::kSome);
}

using namespace octet;

// check() of D[64,64] (FP32, accumulating) after `change`.
std::string checked(void (*change)(GemmArgs&, float*)) {
  alignas(256) static float buffer[64 * 128 * 4];
  alignas(256) static std::uint8_t a[64 * 128], b[64 * 128];
  alignas(16) static float sfa[64], sfb[1], bias[64];
  const GemmProblem p = GemmProblem::parse("dense_m64n64k128_f32_acc_bias").value();
  const GemmPlan plan = plan_gemm(p, DeviceSpec::preset("cpu").value()).value();
  GemmArgs args;
  args.a = matrix(a, 64, 128);
  args.b = matrix(b, 64, 128);
  args.sfa = column_major_scales(sfa, 64);
  args.sfb = row_major_scales(sfb, 1);
  args.bias = bias;
  args.d = matrix(buffer, 64, 64, 128);
  args.c = matrix(buffer + 64, 64, 64, 128);
  change(args, buffer);
  return check(plan, args).message();
}

TEST(Regions, SlicesOfOneBufferAreApart) {
  EXPECT_EQ(checked([](GemmArgs&, float*) {}), "");  // C and D the halves of one buffer
  EXPECT_EQ(checked([](GemmArgs& x, float* buffer) { x.c.data = buffer + 63; }),
            "c overlaps d: c must be d itself (same data, ld and group_stride) or apart from it");
  EXPECT_EQ(checked([](GemmArgs& x, float* buffer) { x.c.data = buffer + 65; }),
            "c overlaps d: c must be d itself (same data, ld and group_stride) or apart from it");
  // A beside D: 256 bytes of D, 128 of A, in rows of 512 bytes.
  EXPECT_EQ(checked([](GemmArgs& x, float* buffer) {
              x.a = matrix(buffer + 64, 64, 128, 512);
              x.c = x.d;
            }),
            "");
  EXPECT_EQ(checked([](GemmArgs& x, float* buffer) {
              x.a = matrix(buffer + 60, 64, 128, 512);
              x.c = x.d;
            }),
            "d overlaps a: what is written must not share memory with what is read");
  // Bias between two rows, and behind the last.
  EXPECT_EQ(checked([](GemmArgs& x, float* buffer) {
              x.bias = buffer + 128 * 7 + 64;
              x.c = x.d;
            }),
            "");
  EXPECT_EQ(checked([](GemmArgs& x, float* buffer) {
              x.bias = buffer + 128 * 7 + 65;
              x.c = x.d;
            }),
            "d overlaps bias: what is written must not share memory with what is read");
  // Different pitches: rows of D (512 bytes) meet rows of A (336 bytes) somewhere.
  EXPECT_EQ(checked([](GemmArgs& x, float* buffer) {
              x.a = matrix(buffer + 64, 64, 128, 336);
              x.c = x.d;
            }),
            "d overlaps a: what is written must not share memory with what is read");
}

TEST(Regions, APitchThatIsNeverFollowedMayDiffer) {
  float d[64], sfb[1];
  alignas(16) float sfa[4];
  alignas(16) std::uint8_t a[128], b[64 * 128];
  const GemmProblem p = GemmProblem::parse("dense_m1n64k128_f32_acc").value();
  const GemmPlan plan = plan_gemm(p, DeviceSpec::preset("cpu").value()).value();
  GemmArgs args;
  args.a = matrix(a, 1, 128);
  args.b = matrix(b, 64, 128);
  args.sfa = {sfa, 1, 4, 0};
  args.sfb = row_major_scales(sfb, 1);
  args.d = matrix(d, 1, 64, 64);
  args.c = matrix(d, 1, 64, 1000);
  EXPECT_EQ(check(plan, args).message(), "");
}

// Found by fuzzing: a bias_group_stride that nothing follows overflowed as bytes.
TEST(Regions, StridesThatAreNeverFollowedMayBeAnything) {
  using namespace octet;
  alignas(256) static char memory[4096];
  const auto at = [](int64_t i) { return static_cast<void*>(memory + i); };
  for (const int64_t wild :
       {INT64_MIN, INT64_MIN / 2 - 1, int64_t{-1}, INT64_MAX / 2 + 1, INT64_MAX}) {
    const GemmProblem problem = GemmProblem::parse("dense_m1n16k16_bias_acc").value();
    const GemmPlan plan = plan_gemm(problem, DeviceSpec::preset("cpu").value()).value();
    GemmArgs args;
    args.a = {at(0), 1, 16, 16, wild};
    args.b = {at(256), 16, 16, 16, wild};
    args.d = {at(1024), 1, 16, 16, wild};
    args.c = {at(1280), 1, 16, 16, wild};
    args.sfa = {static_cast<const float*>(at(1536)), 1, 4, wild};
    args.sfb = {static_cast<const float*>(at(1792)), 1, 1, wild};
    args.bias = at(2048);
    args.bias_group_stride = wild;
    const Status status = check(plan, args);
    EXPECT_TRUE(status.ok()) << wild << ": " << status.message();
    args.d.data = args.a.data;
    EXPECT_FALSE(check(plan, args).ok()) << wild;
  }
}

}  // namespace
