// The instruction model against what an H200 recorded, bit for bit, and against the rule's own
// words: directed cases, an independent reading in double arithmetic, and properties.
#include "ref/tensor_core.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/float_types.h"
#include "golden/golden_file.h"

namespace oct {
namespace {

using core::e4m3_to_f32;
using core::f32_to_bf16;
using core::f32_to_e4m3;

uint32_t model(uint32_t format, const golden::Section& s, uint32_t tile, int r, int n) {
  uint32_t acc = s.c[std::size_t{tile} * golden::kTileC + r * golden::kCols + n];
  for (uint32_t step = 0; step < s.steps; ++step) {
    if (format == golden::kE4m3) {
      acc = ref::wgmma_e4m3_k32(s.row(tile, step, r), s.col(tile, step, n), acc);
    } else {
      uint16_t a[16], b[16];
      std::memcpy(a, s.row(tile, step, r), 32);
      std::memcpy(b, s.col(tile, step, n), 32);
      acc = ref::wgmma_bf16_k16(a, b, acc);
    }
  }
  return acc;
}

void expect_golden(const char* name, uint32_t format) {
  const golden::File file =
      golden::unpack(golden::read_bytes(std::string(OCTET_GOLDEN_DIR) + "/" + name));
  ASSERT_EQ(file.format, format);
  std::map<std::pair<uint32_t, uint32_t>, long> cases;  // by class and steps
  for (const golden::Section& s : file.sections) {
    long wrong = 0;
    for (uint32_t tile = 0; tile < s.tiles; ++tile) {
      for (int i = 0; i < golden::kTileC; ++i) {
        const uint32_t gpu = s.d[std::size_t{tile} * golden::kTileC + i];
        const uint32_t got = model(format, s, tile, i / golden::kCols, i % golden::kCols);
        if (got != gpu && wrong++ == 0) {
          ADD_FAILURE() << golden::kClassNames[s.input_class] << ", tile " << tile << " row "
                        << i / golden::kCols << " column " << i % golden::kCols << ": recorded "
                        << std::hex << gpu << ", model " << got;
        }
      }
    }
    EXPECT_EQ(wrong, 0) << golden::kClassNames[s.input_class];
    cases[{s.input_class, s.steps}] += long{s.tiles} * golden::kTileC;
  }
  for (uint32_t input_class = 0; input_class < golden::kClasses; ++input_class) {
    for (const uint32_t steps : {1u, 4u}) {
      const long count = cases[std::pair{input_class, steps}];
      EXPECT_GE(count, 2000) << golden::kClassNames[input_class] << ", " << steps;
    }
  }
}

TEST(Golden, E4m3InstructionsOfAnH200) { expect_golden("instructions_e4m3.bin", golden::kE4m3); }
TEST(Golden, Bf16InstructionsOfAnH200) { expect_golden("instructions_bf16.bin", golden::kBf16); }

TEST(Golden, DamageIsDetected) {
  std::vector<uint8_t> bytes =
      golden::read_bytes(std::string(OCTET_GOLDEN_DIR) + "/instructions_e4m3.bin");
  bytes[bytes.size() / 2] ^= 1;
  EXPECT_THROW(golden::unpack(bytes), std::runtime_error);
  bytes[bytes.size() / 2] ^= 1;
  bytes.pop_back();
  EXPECT_THROW(golden::unpack(bytes), std::runtime_error);
  EXPECT_THROW(golden::unpack({1, 2, 3}), std::runtime_error);
}

// ------------------------------------------------------------------------------ directed cases
// ----

uint32_t e4m3(std::vector<std::pair<double, double>> products, uint32_t c) {
  uint8_t a[32] = {}, b[32] = {};
  for (std::size_t i = 0; i < products.size(); ++i) {
    a[i] = f32_to_e4m3(static_cast<float>(products[i].first));
    b[i] = f32_to_e4m3(static_cast<float>(products[i].second));
  }
  return ref::wgmma_e4m3_k32(a, b, c);
}

uint32_t bf16(std::vector<std::pair<double, double>> products, uint32_t c) {
  uint16_t a[16] = {}, b[16] = {};
  for (std::size_t i = 0; i < products.size(); ++i) {
    a[i] = f32_to_bf16(static_cast<float>(products[i].first));
    b[i] = f32_to_bf16(static_cast<float>(products[i].second));
  }
  return ref::wgmma_bf16_k16(a, b, c);
}

// Each value was read off an H200.
TEST(TensorCore, E4m3KeepsThirteenBitsCutTowardZero) {
  EXPECT_EQ(e4m3({}, 0x3f8003ff), 0x3f800000u);
  EXPECT_EQ(e4m3({}, 0x3f800400), 0x3f800400u);
  EXPECT_EQ(e4m3({}, 0xbf8007ff), 0xbf800400u);
  EXPECT_EQ(e4m3({{16, 16}, {-0x1p-3, 0x1p-3}}, 0), 0x43800000u);
  EXPECT_EQ(e4m3({{16, 16}, {-0x1.8p-3, 0x1p-3}}, 0), 0x43800000u);
}

TEST(TensorCore, E4m3ProductsAreNotNormalised) {
  EXPECT_EQ(e4m3({{1.75, 1.75}, {0x1p-7, 0x1p-6}, {0x1p-7, 0x1p-6}}, 0), 0x40440400u);
  EXPECT_EQ(e4m3({{0x1p-9, 448}, {0x1p-9, 0x1p-3}}, 0), 0x3f600000u);
}

TEST(TensorCore, ZeroProductsDoNotRaiseTheExponent) {
  EXPECT_EQ(e4m3({{0, 448}, {0x1p-9, 0x1p-9}}, 0), 0x36800000u);
  EXPECT_EQ(e4m3({{0, 448}}, 0x30800000), 0x30800000u);
}

TEST(TensorCore, TheAccumulatorIsATermOfTheSum) {
  EXPECT_EQ(e4m3({{0x1p-2, 0x1p-3}}, 0x43800000), 0x43800400u);
  std::vector<std::pair<double, double>> halves(32, {0x1p-3, 0x1p-3});
  EXPECT_EQ(e4m3(halves, 0x43800000), 0x43800000u);
}

TEST(TensorCore, ZerosArePositive) {
  EXPECT_EQ(e4m3({{1, 1}, {-1, 1}}, 0x80000000), 0u);
  EXPECT_EQ(e4m3({}, 0x80000000), 0u);
  EXPECT_EQ(e4m3({}, 0x80000001), 0u);           // cut to zero
  EXPECT_EQ(bf16({}, 0x80000001), 0x80000001u);  // kept: 23 bits
  EXPECT_EQ(bf16({{-0x1p-75, 0x1p-75}}, 0), 0u);
}

TEST(TensorCore, RangeEnds) {
  EXPECT_EQ(e4m3({}, 0x007fffff), 0x007ffc00u);
  EXPECT_EQ(e4m3({}, 0x7f7fffff), 0x7f7ffc00u);
  EXPECT_EQ(bf16({{0x1p127, 1}}, 0x7f000000), 0x7f800000u);
  EXPECT_EQ(bf16({{0x1p127, 2}, {-0x1p127, 1}}, 0), 0x7f000000u);
  EXPECT_EQ(bf16({{0x1p-70, 0x1p-70}}, 0), 0x00000200u);
  EXPECT_EQ(bf16(std::vector<std::pair<double, double>>(8, {0x1p-76, 0x1p-76}), 0), 0x00000001u);
  EXPECT_EQ(bf16({{0x1p-75, 0x1p-74}, {-0x1p-80, 0x1p-79}}, 0), 0x00000001u);  // E >= -133
  EXPECT_EQ(bf16({{0x1p-75, 0x1p-74}, {-0x1p-79, 0x1p-79}}, 0), 0x00000000u);
}

TEST(TensorCore, NotANumberIsCanonical) {
  uint8_t a[32] = {0xff}, b[32] = {};
  EXPECT_EQ(ref::wgmma_e4m3_k32(a, b, 0), 0x7fffffffu);
  EXPECT_EQ(ref::wgmma_e4m3_k32(b, b, 0xffc12345), 0x7fffffffu);
  EXPECT_EQ(ref::wgmma_e4m3_k32(b, b, 0x7f800001), 0x7fffffffu);
  EXPECT_EQ(ref::wgmma_e4m3_k32(b, b, 0xff800000), 0xff800000u);
  uint16_t x[16] = {0x7f80}, y[16] = {0x3f80}, zero[16] = {};
  EXPECT_EQ(ref::wgmma_bf16_k16(x, y, 0), 0x7f800000u);
  EXPECT_EQ(ref::wgmma_bf16_k16(x, zero, 0), 0x7fffffffu);
  EXPECT_EQ(ref::wgmma_bf16_k16(x, y, 0xff800000), 0x7fffffffu);
}

// ---------------------------------------------------------------- an independent reading, doubles
// ----

double cut(double x, int exponent) {
  return std::ldexp(std::trunc(std::ldexp(x, 13 - exponent)), exponent - 13);
}

int exponent_of(uint8_t code) { return std::max((code >> 3 & 15) - 7, -6); }

TEST(TensorCore, E4m3EqualsAReadingInDoubleArithmetic) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300000; ++round) {
    uint8_t a[32], b[32];
    for (int i = 0; i < 32; ++i) {
      do a[i] = static_cast<uint8_t>(random());
      while ((a[i] & 127) == 127);
      do b[i] = static_cast<uint8_t>(random());
      while ((b[i] & 127) == 127);
      if (random() % 3 == 0) a[i] &= 0x80;
      if (round % 4 == 0) a[i] &= 0x8f;  // small ones
    }
    const auto c_bits = static_cast<uint32_t>((random() & 0x807fffff) | (90 + random() % 70) << 23);
    const double c = std::bit_cast<float>(c_bits);
    int largest = std::ilogb(c);
    for (int i = 0; i < 32; ++i) {
      if (double{e4m3_to_f32(a[i])} * e4m3_to_f32(b[i]) != 0) {
        largest = std::max(largest, exponent_of(a[i]) + exponent_of(b[i]));
      }
    }
    double sum = cut(c, largest);
    for (int i = 0; i < 32; ++i) {
      sum += cut(double{e4m3_to_f32(a[i])} * e4m3_to_f32(b[i]), largest);
    }
    if (sum != 0) sum = cut(sum, std::ilogb(sum));
    const uint32_t want = sum == 0 ? 0 : std::bit_cast<uint32_t>(static_cast<float>(sum));
    ASSERT_EQ(ref::wgmma_e4m3_k32(a, b, c_bits), want) << "round " << round;
  }
}

TEST(TensorCore, OrderOfProductsDoesNotMatter) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::pair<uint8_t, uint8_t>> pairs(32);
    for (auto& [x, y] : pairs) {
      x = static_cast<uint8_t>(random());
      y = static_cast<uint8_t>(random());
      if (round % 8 && (x & 127) == 127) x = 0;
      if (round % 8 && (y & 127) == 127) y = 0;
    }
    const auto c = static_cast<uint32_t>(random());
    uint32_t first = 0;
    for (int turn = 0; turn < 3; ++turn) {
      uint8_t a[32], b[32];
      for (std::size_t i = 0; i < 32; ++i) std::tie(a[i], b[i]) = pairs[i];
      const uint32_t d = ref::wgmma_e4m3_k32(a, b, c);
      if (turn == 0) first = d;
      ASSERT_EQ(d, first);
      std::shuffle(pairs.begin(), pairs.end(), random);
    }
  }
}

TEST(TensorCore, ChainsPadWithZeros) {
  std::mt19937_64 random(3);
  for (int k = 0; k <= 130; ++k) {
    std::vector<uint8_t> a(160), b(160);
    std::vector<uint16_t> x(160), y(160);
    for (int i = 0; i < k; ++i) {
      const auto at = static_cast<std::size_t>(i);
      a[at] = static_cast<uint8_t>(random() & 0xf7);
      b[at] = static_cast<uint8_t>(random() & 0xf7);
      x[at] = static_cast<uint16_t>(random() & 0xbfff);
      y[at] = static_cast<uint16_t>(random() & 0xbfff);
    }
    uint32_t e = 0, f = 0;
    for (int i = 0; i < k; i += 32)
      e = ref::wgmma_e4m3_k32(&a[static_cast<std::size_t>(i)], &b[static_cast<std::size_t>(i)], e);
    for (int i = 0; i < k; i += 16)
      f = ref::wgmma_bf16_k16(&x[static_cast<std::size_t>(i)], &y[static_cast<std::size_t>(i)], f);
    EXPECT_EQ(ref::wgmma_chain_e4m3(a.data(), b.data(), k, 0), e) << k;
    EXPECT_EQ(ref::wgmma_chain_bf16(x.data(), y.data(), k, 0), f) << k;
  }
}

}  // namespace
}  // namespace oct
