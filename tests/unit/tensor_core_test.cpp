// The instruction model against what an H200 recorded, bit for bit, and against the rule's own
// words: directed cases, an independent reading in double arithmetic, and properties.
#include "ref/tensor_core.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/float_types.h"
#include "golden/golden_file.h"
#include "support/sanitized.h"

namespace oct {
namespace {

using core::e4m3_to_f32;
using core::f32_to_bf16;
using core::f32_to_e4m3;
using testing_support::kSanitized;

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

// A right checksum over a wrong layout: one section fewer than promised, bytes left over, a class
// that has no name, another version.
TEST(Golden, WrongLayoutIsRefused) {
  golden::File file;
  file.format = golden::kE4m3;
  file.sections.resize(1);
  file.sections[0].steps = file.sections[0].tiles = 1;
  file.sections[0].resize();
  const std::vector<uint8_t> good = golden::pack(file);
  EXPECT_EQ(golden::unpack(good).sections.size(), 1u);
  const auto unpack_with = [&good](std::size_t at, uint8_t value) {
    std::vector<uint8_t> bytes(good.begin(), good.end() - 8);
    bytes[at] = value;
    const uint64_t sum = golden::fnv1a(bytes.data(), bytes.size());
    const auto* from = reinterpret_cast<const uint8_t*>(&sum);
    bytes.insert(bytes.end(), from, from + sizeof sum);
    return golden::unpack(bytes);
  };
  EXPECT_NO_THROW(unpack_with(8, 1));
  EXPECT_THROW(unpack_with(8, 2), std::runtime_error);                  // version
  EXPECT_THROW(unpack_with(16, 2), std::runtime_error);                 // sections
  EXPECT_THROW(unpack_with(16, 0), std::runtime_error);                 // sections
  EXPECT_THROW(unpack_with(24, golden::kClasses), std::runtime_error);  // class
}

// ------------------------------------------------------------------------- directed cases

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Products = std::vector<std::pair<double, double>>;

Products repeat(std::size_t count, double a, double b) { return Products(count, {a, b}); }

Products operator+(Products left, const Products& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

uint32_t e4m3(const Products& products, uint32_t c) {
  uint8_t a[32] = {}, b[32] = {};
  for (std::size_t i = 0; i < products.size(); ++i) {
    a[i] = f32_to_e4m3(static_cast<float>(products[i].first));
    b[i] = f32_to_e4m3(static_cast<float>(products[i].second));
  }
  return ref::wgmma_e4m3_k32(a, b, c);
}

uint32_t bf16(const Products& products, uint32_t c) {
  uint16_t a[16] = {}, b[16] = {};
  for (std::size_t i = 0; i < products.size(); ++i) {
    a[i] = f32_to_bf16(static_cast<float>(products[i].first));
    b[i] = f32_to_bf16(static_cast<float>(products[i].second));
  }
  return ref::wgmma_bf16_k16(a, b, c);
}

// Every `want` was read off an H200; the sentence says what another rule would have given.
struct Directed {
  const char* sentence;
  Products products;
  uint32_t c, want;
};

TEST(TensorCore, E4m3DirectedCasesOfAnH200) {
  Products alternating;
  for (int pair = 0; pair < 16; ++pair) {
    const double big = pair == 0 ? 64 : pair == 1 ? -64 : 0;
    alternating.push_back({big, std::abs(big)});
    alternating.push_back({0.5, 0.5});
  }
  const Directed cases[] = {
      {"c alone keeps 13 bits: 0x3ff units in the last place go", {}, 0x3f8003ff, 0x3f800000},
      {"c alone keeps 13 bits: 0x400 units stay", {}, 0x3f800400, 0x3f800400},
      {"a negative c is cut toward zero; floor gives bf800800", {}, 0xbf8007ff, 0xbf800400},
      {"256 - 2^-6: a negative term is cut toward zero; floor gives less than 256",
       {{16, 16}, {-0x1p-3, 0x1p-3}},
       0,
       0x43800000},
      {"256 - 1.5 * 2^-6: cut, not rounded to nearest",
       {{16, 16}, {-0x1.8p-3, 0x1p-3}},
       0,
       0x43800000},
      {"3.0625 + 2 * 2^-13: a product in [2, 4) keeps its exponent; normalised gives 40440000",
       {{1.75, 1.75}, {0x1p-7, 0x1p-6}, {0x1p-7, 0x1p-6}},
       0,
       0x40440400},
      {"2^-9 * 448 + 2^-12: a subnormal counts as exponent -6; normalised gives 3f600400",
       {{0x1p-9, 448}, {0x1p-9, 0x1p-3}},
       0,
       0x3f600000},
      {"0 * 448 + 2^-18: a zero product does not raise E; else 0",
       {{0, 448}, {0x1p-9, 0x1p-9}},
       0,
       0x36800000},
      {"0 * 448, c = 2^-30: nor does it against c", {{0, 448}}, 0x30800000, 0x30800000},
      {"c = 256 and one unit of 2^-5: c is a term like the products",
       {{0x1p-2, 0x1p-3}},
       0x43800000,
       0x43800400},
      {"c = 256, 32 halves of a unit: each is cut before the sum; c added afterwards gives "
       "43804000",
       repeat(32, 0x1p-3, 0x1p-3), 0x43800000, 0x43800000},
      {"c = -256, 32 * 448 * 448: the exact sum 6422272 is cut to 13 bits", repeat(32, 448, 448),
       0xc3800000, 0x4ac3fc00},
      {"64 * 64 - 64 * 64, 0.25 in k 16..31: one block of 32; two of 16 give 4",
       Products{{64, 64}, {-64, 64}} + repeat(14, 0, 0) + repeat(16, 0.5, 0.5), 0, 0},
      {"the same with the large ones at even k, 0.25 at odd k: nor interleaved halves", alternating,
       0, 0},
      {"64 * 64 - 64 * 64, 30 * 0.25, c = 0.25: what was cut stays lost",
       Products{{64, 64}, {-64, 64}} + repeat(30, 0.5, 0.5), 0x3e800000, 0},
      {"31 * 3.0625 + 2^-12: the sum is cut once more, to 13 bits; 23 bits give 42bde020",
       repeat(31, 1.75, 1.75) + Products{{0x1p-6, 0x1p-6}}, 0, 0x42bde000},
      {"1 - 1 is +0", {{1, 1}, {-1, 1}}, 0, 0},
      {"1 - 1 with c = -0 is +0", {{1, 1}, {-1, 1}}, 0x80000000, 0},
      {"-0 everywhere is +0, where IEEE 754 says -0", repeat(32, -0.0, 1), 0x80000000, 0},
      {"c = -0 alone is +0", {}, 0x80000000, 0},
      {"c = 2^-149 is below the 13 bits at 2^-126", {}, 0x00000001, 0},
      {"c = -2^-149 is cut to zero, and that is +0", {}, 0x80000001, 0},
      {"the largest subnormal c keeps 13 bits", {}, 0x007fffff, 0x007ffc00},
      {"the largest c stays finite", {}, 0x7f7fffff, 0x7f7ffc00},
      {"32 * 448 * 448 is nothing beside the largest c", repeat(32, 448, 448), 0x7f7fffff,
       0x7f7ffc00},
      {"an infinite c passes through", {{1, 1}}, 0x7f800000, 0x7f800000},
      {"a negative one too", {{448, 448}}, 0xff800000, 0xff800000},
      {"a signalling NaN in c comes out canonical", {{1, 1}}, 0x7f800001, 0x7fffffff},
      {"a negative NaN in c loses sign and payload", {{1, 1}}, 0xffc12345, 0x7fffffff},
      {"1 * 3 from nothing", {{1, 3}}, 0, 0x40400000}};
  for (const Directed& x : cases) EXPECT_EQ(e4m3(x.products, x.c), x.want) << x.sentence;
}

TEST(TensorCore, Bf16DirectedCasesOfAnH200) {
  const Directed cases[] = {
      {"c alone keeps 23 bits", {}, 0x3f800001, 0x3f800001},
      {"1 + 4 * 2^-25: 25 bits are kept below E; with 24 the small ones go",
       Products{{1, 1}} + repeat(4, 0x1p-12, 0x1p-13), 0, 0x3f800001},
      {"1 + 8 * 2^-26: and no more than 25; with 26 they stay",
       Products{{1, 1}} + repeat(8, 0x1p-13, 0x1p-13), 0, 0x3f800000},
      {"1 + 15 * 2^-26, c = 2^-26: one sum of 17 terms",
       Products{{1, 1}} + repeat(15, 0x1p-13, 0x1p-13), 0x32800000, 0x3f800000},
      {"c = 1, -2^-26: cut toward zero; floor gives 3f7fffff",
       {{-0x1p-13, 0x1p-13}},
       0x3f800000,
       0x3f800000},
      {"1 - 2^-25: exact, then cut toward zero", {{1, 1}, {-0x1p-12, 0x1p-13}}, 0, 0x3f7fffff},
      {"1.5 * 1.5 + 4 * 2^-25: below the last place of 2.25",
       Products{{1.5, 1.5}} + repeat(4, 0x1p-12, 0x1p-13), 0, 0x40100000},
      {"1.5 * 1.5 + 8 * 2^-25: the product is not normalised; else 40100000",
       Products{{1.5, 1.5}} + repeat(8, 0x1p-12, 0x1p-13), 0, 0x40100001},
      {"2^-130 * 2^100 + 4 * 2^-53: a subnormal counts as exponent -126; normalised gives 30800004",
       Products{{0x1p-130, 0x1p100}} + repeat(4, 0x1p-26, 0x1p-27), 0, 0x30800000},
      {"0 * 2^100 + 1: a zero product does not raise E", {{0, 0x1p100}, {1, 1}}, 0, 0x3f800000},
      {"2^127 + 2^127 is infinity", {{0x1p127, 1}}, 0x7f000000, 0x7f800000},
      {"2^128 - 2^127: only the sum has to be finite",
       {{0x1p127, 2}, {-0x1p127, 1}},
       0,
       0x7f000000},
      {"2^128 - 2^103 is below 2^128", {{0x1p127, 2}, {-0x1p53, 0x1p50}}, 0, 0x7f7fffff},
      {"2^254 is infinity", {{0x1p127, 0x1p127}}, 0, 0x7f800000},
      {"2^254 - 2^254, c = 1: the products cancel, c was cut",
       {{0x1p127, 0x1p127}, {-0x1p127, 0x1p127}},
       0x3f800000,
       0},
      {"2^-140 is a subnormal result", {{0x1p-70, 0x1p-70}}, 0, 0x00000200},
      {"2^-133 * 1: a subnormal operand", {{0x1p-133, 1}}, 0, 0x00010000},
      {"2^-150 is cut to zero", {{0x1p-75, 0x1p-75}}, 0, 0},
      {"-2^-150 is cut to zero, and that is +0", {{-0x1p-75, 0x1p-75}}, 0, 0},
      {"-2^-200 is cut before the sum", {{-0x1p-100, 0x1p-100}}, 0, 0},
      {"8 * 2^-152: E may go below -126", repeat(8, 0x1p-76, 0x1p-76), 0, 0x00000001},
      {"16 * 2^-153, no zero product: the same", repeat(16, 0x1p-77, 0x1p-76), 0, 0x00000001},
      {"8 * 2^-152, c = 2^-149: c's exponent is -126, the products are cut",
       repeat(8, 0x1p-76, 0x1p-76), 0x00000001, 0x00000001},
      {"2^-149 - 2^-159: E stops at -133, so the small one is cut",
       {{0x1p-75, 0x1p-74}, {-0x1p-80, 0x1p-79}},
       0,
       0x00000001},
      {"2^-149 - 2^-158: and not above -133, so this one counts",
       {{0x1p-75, 0x1p-74}, {-0x1p-79, 0x1p-79}},
       0,
       0},
      {"2^-149 - 2^-152: nor at -126", {{0x1p-75, 0x1p-74}, {-0x1p-76, 0x1p-76}}, 0, 0},
      {"1 - 1 with c = -0 is +0", {{1, 1}, {-1, 1}}, 0x80000000, 0},
      {"-0 everywhere is +0", repeat(16, -0.0, 1), 0x80000000, 0},
      {"c = -0 alone is +0", {}, 0x80000000, 0},
      {"c = -2^-149 alone is kept: 23 bits reach it", {}, 0x80000001, 0x80000001},
      {"an infinity times 1 passes through", {{kInfinity, 1}}, 0, 0x7f800000},
      {"-infinity times 1 with c = infinity is not a number",
       {{-kInfinity, 1}},
       0x7f800000,
       0x7fffffff},
      {"an infinity times 0 is not a number", {{kInfinity, 0}}, 0, 0x7fffffff},
      {"infinity - infinity is not a number", {{kInfinity, 1}, {-kInfinity, 1}}, 0, 0x7fffffff},
      {"a negative NaN in c comes out canonical", {{1, 1}}, 0xffc12345, 0x7fffffff},
      {"2^254 with c = -infinity: only the result overflows, that is no inf - inf",
       {{0x1p127, 0x1p127}},
       0xff800000,
       0xff800000},
      {"1 * 3 from nothing", {{1, 3}}, 0, 0x40400000}};
  for (const Directed& x : cases) EXPECT_EQ(bf16(x.products, x.c), x.want) << x.sentence;
}

// Three of the sums that came out negative, were cut to zero, and were +0 on the H200 (c = 0). The
// golden files hold no such case.
TEST(TensorCore, Bf16NegativeUnderflowOfAnH200IsPositiveZero) {
  const struct {
    uint16_t a[16], b[16];
  } cases[] = {{{0x9660, 0x15ee, 0x175d, 0x962b, 0x9ae5, 0x9534, 0x165d, 0x162f, 0x1648, 0x9716,
                 0x98e5, 0x1be2, 0x97d9, 0x9aba, 0x14cf, 0x9962},
                {0x97b2, 0x991a, 0x9980, 0x1ccf, 0x965e, 0x9a36, 0x1699, 0x9710, 0x149a, 0x1a21,
                 0x157f, 0x990e, 0x9d08, 0x97be, 0x197a, 0x9832}},
               {{0x18af, 0x1a78, 0x95fb, 0x9d27, 0x9585, 0x1c33, 0x9aee, 0x1a5b, 0x9527, 0x965a,
                 0x1788, 0x1cfb, 0x16cc, 0x9dfb, 0x9490, 0x1bb9},
                {0x1c50, 0x9895, 0x19bf, 0x97f3, 0x1da4, 0x9643, 0x94ef, 0x1a73, 0x1d71, 0x1bc8,
                 0x1596, 0x1527, 0x97f3, 0x1722, 0x1e72, 0x99a1}},
               {{0x9701, 0x8c14, 0x8000, 0x9b9e, 0x90fb, 0x1d22, 0x178a, 0x0000, 0x8f1a, 0x908a,
                 0x0000, 0x1d11, 0x1ae1, 0x1777, 0x8000, 0x0000},
                {0x99eb, 0x8000, 0x0c39, 0x0b89, 0x0000, 0x8000, 0x0000, 0x18f3, 0x9c11, 0x8d40,
                 0x1cb2, 0x959c, 0x988f, 0x1baf, 0x8000, 0x92e4}}};
  for (const auto& x : cases) EXPECT_EQ(ref::wgmma_bf16_k16(x.a, x.b, 0), 0u);
}

// ------------------------------------------------------------------------- not a number, infinity

TEST(TensorCore, E4m3NanInAnOperandIsCanonical) {
  const uint8_t zero[32] = {};
  for (const uint8_t nan : {uint8_t{0x7f}, uint8_t{0xff}}) {
    for (std::size_t at = 0; at < 32; ++at) {
      uint8_t a[32] = {};
      a[at] = nan;
      EXPECT_EQ(ref::wgmma_e4m3_k32(a, zero, 0), 0x7fffffffu) << "times 0, at " << at;
      EXPECT_EQ(ref::wgmma_e4m3_k32(zero, a, 0xff800000), 0x7fffffffu) << "c -inf, at " << at;
    }
  }
}

// NaN, inf * 0 and inf - inf give the canonical NaN, else an infinity passes through; read from
// the operands' float values by IEEE 754 arithmetic, which has the same rule but other NaN bits.
TEST(TensorCore, Bf16NonFiniteRulesAreThoseOfIeee754) {
  std::mt19937_64 random(4);
  const uint16_t special[] = {0x7f80, 0xff80, 0x7f80, 0xff80, 0x7f81, 0xffff, 0, 0x8000};
  const int rounds = kSanitized ? 5000 : 50000;
  long nans = 0, infinities = 0;
  for (int round = 0; round < rounds; ++round) {
    uint16_t a[16], b[16];
    double sum = 0;
    for (std::size_t k = 0; k < 16; ++k) {
      // Exponents near 1, so that nothing overflows by itself.
      a[k] = static_cast<uint16_t>((random() & 0x807f) | (120 + random() % 16) << 7);
      b[k] = static_cast<uint16_t>((random() & 0x807f) | (120 + random() % 16) << 7);
      if (random() % 24 == 0) a[k] = special[random() % 8];
      if (random() % 24 == 0) b[k] = special[random() % 8];
      sum += double{core::bf16_to_f32(a[k])} * core::bf16_to_f32(b[k]);
    }
    uint32_t c = static_cast<uint32_t>((random() & 0x807fffff) | (120 + random() % 16) << 23);
    if (random() % 8 == 0) c = static_cast<uint32_t>(special[random() % 6]) << 16;
    sum += std::bit_cast<float>(c);
    const uint32_t d = ref::wgmma_bf16_k16(a, b, c);
    if (std::isnan(sum)) {
      ++nans;
      ASSERT_EQ(d, 0x7fffffffu) << "round " << round;
    } else if (std::isinf(sum)) {
      ++infinities;
      ASSERT_EQ(d, sum < 0 ? 0xff800000u : 0x7f800000u) << "round " << round;
    } else {
      ASSERT_LT(d & 0x7fffffff, 0x7f800000u) << "round " << round;
    }
  }
  EXPECT_GT(nans, rounds / 10);
  EXPECT_GT(infinities, rounds / 10);
}

// ------------------------------------------------------------------------- a reading in doubles

double cut(double x, int exponent) {
  return std::ldexp(std::trunc(std::ldexp(x, 13 - exponent)), exponent - 13);
}

int exponent_of(uint8_t code) { return std::max((code >> 3 & 15) - 7, -6); }

TEST(TensorCore, E4m3EqualsAReadingInDoubleArithmetic) {
  std::mt19937_64 random(1);
  for (int round = 0; round < (kSanitized ? 20000 : 300000); ++round) {
    uint8_t a[32], b[32];
    for (int i = 0; i < 32; ++i) {
      do a[i] = static_cast<uint8_t>(random());
      while ((a[i] & 127) == 127);
      do b[i] = static_cast<uint8_t>(random());
      while ((b[i] & 127) == 127);
      if (random() % 3 == 0) a[i] &= 0x80;
      if (round % 4 == 0) a[i] &= 0x8f;  // small ones
    }
    auto c_bits = static_cast<uint32_t>((random() & 0x807fffff) | (90 + random() % 70) << 23);
    if (round % 16 == 0) c_bits &= 0x80000000;
    if (round % 16 == 1) c_bits &= 0x807fffff;  // subnormal
    const double c = std::bit_cast<float>(c_bits);
    int largest = c == 0 ? -1000 : std::max(std::ilogb(c), -126);
    for (int i = 0; i < 32; ++i) {
      if (double{e4m3_to_f32(a[i])} * e4m3_to_f32(b[i]) != 0) {
        largest = std::max(largest, exponent_of(a[i]) + exponent_of(b[i]));
      }
    }
    double sum = cut(c, largest);
    for (int i = 0; i < 32; ++i) {
      sum += cut(double{e4m3_to_f32(a[i])} * e4m3_to_f32(b[i]), largest);
    }
    if (sum != 0) sum = cut(sum, std::max(std::ilogb(sum), -126));
    const uint32_t want = sum == 0 ? 0 : std::bit_cast<uint32_t>(static_cast<float>(sum));
    ASSERT_EQ(ref::wgmma_e4m3_k32(a, b, c_bits), want) << "round " << round;
  }
}

TEST(TensorCore, OrderOfProductsDoesNotMatter) {
  std::mt19937_64 random(2);
  for (int round = 0; round < (kSanitized ? 2000 : 20000); ++round) {
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
