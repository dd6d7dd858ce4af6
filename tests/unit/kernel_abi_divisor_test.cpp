// Division by multiplication, against the processor's own; and the cut of K that is made with it.
#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "core/views.h"
#include "kernel_abi/divisor.h"
#include "kernel_abi/tile_order.h"

namespace oct::abi {
namespace {

constexpr uint32_t kLast = 0x7fffffffu;  // largest numerator, and largest divisor

uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// Wrong quotients among the numerators around the first and last multiples of d, where a multiplier
// that is too large or too small shows first, and among some in between.
int64_t wrong_quotients(uint32_t d) {
  const Divisor divisor = make_divisor(d);
  int64_t wrong = divisor.divisor != d;
  const auto look = [&](uint64_t n) {
    if (n > kLast) return;
    wrong += divisor.divide(static_cast<uint32_t>(n)) != static_cast<uint32_t>(n) / d;
  };
  const uint64_t most = kLast / d;
  for (const uint64_t multiple : {uint64_t{0}, uint64_t{1}, most / 2, most - 1, most, most + 1}) {
    const uint64_t n = multiple * d;
    if (n > 0) look(n - 1);
    look(n);
    look(n + 1);
  }
  look(kLast);
  look(kLast - 1);
  look(mix(d) >> 1);
  return wrong;
}

TEST(KernelAbiDivisor, EveryDivisorUpToAMillion) {
  for (uint32_t d = 1; d <= 1u << 20; ++d) ASSERT_EQ(wrong_quotients(d), 0) << "divisor " << d;
}

TEST(KernelAbiDivisor, DivisorsOfEverySize) {
  for (int power = 0; power < 31; ++power) {
    for (int64_t off = -1000; off <= 1000; ++off) {
      const int64_t d = (int64_t{1} << power) + off;
      if (d < 1 || d > kLast) continue;
      ASSERT_EQ(wrong_quotients(static_cast<uint32_t>(d)), 0) << "divisor " << d;
    }
  }
  for (uint32_t d = kLast; d > kLast - 1000; --d) ASSERT_EQ(wrong_quotients(d), 0) << d;
  for (uint32_t i = 0; i < 1000000; ++i) {
    const uint32_t d = std::max(1u, mix(i) >> (1 + i % 31));
    ASSERT_EQ(wrong_quotients(d), 0) << "divisor " << d;
  }
}

TEST(KernelAbiDivisor, EveryNumeratorOfSmallDivisors) {
  for (uint32_t d = 1; d <= 300; ++d) {
    const Divisor divisor = make_divisor(d);
    int64_t wrong = 0;
    for (uint32_t n = 0; n < 1u << 16; ++n) {
      const uint32_t q = divisor.divide(n);
      wrong += q != n / d || n - q * divisor.divisor != n % d;
    }
    ASSERT_EQ(wrong, 0) << "divisor " << d;
  }
}

TEST(KernelAbiDivisor, DefaultDividesByOne) {
  for (const uint32_t n : {0u, 1u, 12345u, kLast}) EXPECT_EQ(Divisor{}.divide(n), n);
  static_assert(make_divisor(7).divide(700) == 100, "usable in constant expressions");
}

// docs/numerics.md, section 2, is what core::split_range() computes with 64-bit division.
TEST(KernelAbiRangeCut, AgreesWithTheDefinition) {
  constexpr uint32_t kMostBlocks = 1u << 24;  // K of 2^31 - 1
  for (int split = 1; split <= 64; ++split) {
    const auto same = [split](uint32_t blocks) {
      const RangeCut cut = make_range_cut(blocks, static_cast<uint32_t>(split));
      int32_t next = 0;
      for (int i = 0; i < split; ++i) {
        const core::BlockRange want = core::split_range(blocks, split, i);
        const BlockRange got = cut.range(static_cast<uint32_t>(i));
        if (got.first != want.first || got.last != want.last || got.first != next) return false;
        next = got.last;
      }
      return next == static_cast<int32_t>(blocks);
    };
    for (uint32_t blocks = 0; blocks <= 400; ++blocks) ASSERT_TRUE(same(blocks)) << blocks;
    for (uint32_t i = 0; i < 2000; ++i) {
      const uint32_t blocks = (mix(i) >> 8) >> i % 20;
      ASSERT_TRUE(same(blocks)) << blocks << " blocks, split " << split;
    }
    for (uint32_t off = 0; off < 100; ++off) ASSERT_TRUE(same(kMostBlocks - off)) << off;
  }
}

}  // namespace
}  // namespace oct::abi
