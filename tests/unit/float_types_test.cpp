// Every code of every small format, both ways, against an independent reading in double arithmetic;
// and rounding at and around every midpoint between neighbouring codes.
#include "core/float_types.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace oct::core {
namespace {

// A format by its numbers: value = (-1)^sign * 2^(field - bias) * 1.mantissa.
struct Format {
  const char* name;
  int bits, mantissa, bias;
  bool infinity;     // has one; else only the last code of each sign is NaN
  uint32_t largest;  // code of the largest finite magnitude
};

constexpr Format kE4m3{"e4m3", 8, 3, 7, false, 0x7e};
constexpr Format kBf16{"bf16", 16, 7, 127, true, 0x7f7f};
constexpr Format kF16{"f16", 16, 10, 15, true, 0x7bff};

double value(const Format& f, uint32_t code) {
  const uint32_t magnitude = code & ((1u << (f.bits - 1)) - 1);
  const uint32_t field = magnitude >> f.mantissa;
  const double fraction =
      std::ldexp(static_cast<double>(magnitude & ((1u << f.mantissa) - 1)), -f.mantissa);
  double x = field == 0 ? std::ldexp(fraction, 1 - f.bias)
                        : std::ldexp(1 + fraction, static_cast<int>(field) - f.bias);
  if (magnitude > f.largest) {
    x = f.infinity && magnitude == f.largest + 1 ? std::numeric_limits<double>::infinity()
                                                 : std::numeric_limits<double>::quiet_NaN();
  }
  return code >> (f.bits - 1) ? -x : x;
}

float decode(const Format& f, uint32_t code) {
  if (f.bits == 8) return e4m3_to_f32(static_cast<uint8_t>(code));
  return f.bias == 127 ? bf16_to_f32(static_cast<uint16_t>(code))
                       : f16_to_f32(static_cast<uint16_t>(code));
}

uint32_t encode(const Format& f, float x) {
  if (f.bits == 8) return f32_to_e4m3(x);
  return f.bias == 127 ? f32_to_bf16(x) : f32_to_f16(x);
}

class FloatTypes : public testing::TestWithParam<Format> {};

TEST_P(FloatTypes, EveryCodeDecodesToItsValue) {
  const Format& f = GetParam();
  for (uint32_t code = 0; code < 1u << f.bits; ++code) {
    const double want = value(f, code);
    const float got = decode(f, code);
    if (std::isnan(want)) {
      ASSERT_EQ(std::bit_cast<uint32_t>(got), 0x7fffffffu) << f.name << " " << code;
    } else {
      ASSERT_EQ(got, want) << f.name << " " << code;
      ASSERT_EQ(std::signbit(got), std::signbit(want)) << f.name << " " << code;
    }
  }
}

TEST_P(FloatTypes, EveryCodeComesBack) {
  const Format& f = GetParam();
  const uint32_t nan = f.bits == 8 ? 0x7f : 0x7fff;
  for (uint32_t code = 0; code < 1u << f.bits; ++code) {
    const double x = value(f, code);
    ASSERT_EQ(encode(f, static_cast<float>(x)), std::isnan(x) ? nan : code)
        << f.name << " " << code;
  }
}

TEST_P(FloatTypes, MidpointsGoToTheEvenNeighbour) {
  const Format& f = GetParam();
  const uint32_t sign = 1u << (f.bits - 1);
  for (uint32_t code = 0; code < f.largest; ++code) {
    const double middle = (value(f, code) + value(f, code + 1)) / 2;
    const float x = static_cast<float>(middle);
    if (x != middle) continue;  // BF16's smallest midpoint lies below FP32
    const uint32_t even = code & 1 ? code + 1 : code;
    const float inf = std::numeric_limits<float>::infinity();
    ASSERT_EQ(encode(f, x), even) << f.name << " " << code;
    ASSERT_EQ(encode(f, -x), even | sign) << f.name << " " << code;
    ASSERT_EQ(encode(f, std::nextafterf(x, -inf)), code) << f.name << " " << code;
    ASSERT_EQ(encode(f, std::nextafterf(x, inf)), code + 1) << f.name << " " << code;
  }
}

TEST_P(FloatTypes, BeyondTheLargest) {
  const Format& f = GetParam();
  const float largest = static_cast<float>(value(f, f.largest));
  const float inf = std::numeric_limits<float>::infinity();
  const uint32_t beyond = f.infinity ? f.largest + 1 : f.largest;
  // Half a unit beyond the largest: where rounding would leave the range.
  const double unit = value(f, f.largest) - value(f, f.largest - 1);
  const double edge = value(f, f.largest) + unit / 2;
  EXPECT_EQ(encode(f, largest), f.largest);
  if (edge < std::numeric_limits<float>::max()) {
    EXPECT_EQ(encode(f, std::nextafterf(static_cast<float>(edge), 0)), f.largest);
    EXPECT_EQ(encode(f, static_cast<float>(edge)), beyond);
  }
  EXPECT_EQ(encode(f, std::numeric_limits<float>::max()), beyond);
  EXPECT_EQ(encode(f, inf), beyond);
  EXPECT_EQ(encode(f, -inf), beyond | 1u << (f.bits - 1));
}

TEST_P(FloatTypes, NotANumberIsCanonical) {
  const Format& f = GetParam();
  const uint32_t nan = f.bits == 8 ? 0x7f : 0x7fff;
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff812345u, 0x7fffffffu}) {
    EXPECT_EQ(encode(f, std::bit_cast<float>(bits)), nan);
    EXPECT_EQ(std::bit_cast<uint32_t>(canonical_f32(std::bit_cast<float>(bits))), 0x7fffffffu);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, FloatTypes, testing::Values(kE4m3, kBf16, kF16),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(FloatTypesE4m3, EveryFp32ExponentAgreesWithDoubleArithmetic) {
  // Every FP32 with 9 leading significand bits and a sticky bit: all cases that rounding can tell
  // apart.
  for (uint32_t top = 0; top < 1u << 16; ++top) {
    for (const uint32_t sticky : {0u, 1u}) {
      const uint32_t bits = top << 15 | sticky;
      const float x = std::bit_cast<float>(bits);
      if (!std::isfinite(x)) continue;
      const double magnitude = std::fabs(double{x});
      const int exponent = magnitude == 0 ? -6 : std::max(std::ilogb(magnitude), -6);
      const double unit = std::ldexp(1.0, exponent - 3);
      double want = std::min(std::nearbyint(magnitude / unit) * unit, 448.0);
      if (std::signbit(x)) want = -want;
      ASSERT_EQ(e4m3_to_f32(f32_to_e4m3(x)), want) << bits;
    }
  }
}

}  // namespace
}  // namespace oct::core
