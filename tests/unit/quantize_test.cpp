// Quantise and dequantise: the CPU's loops against the reference's to the bit, the formula against
// docs/numerics.md section 3, and the special blocks one by one.
#include "cpu/quantize.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/check.h"
#include "core/float_types.h"
#include "core/math.h"
#include "kernel_abi/quantize_formula.h"
#include "octet/octet.h"
#include "ref/quantize.h"
#include "support/sanitized.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace oct {
namespace {

using core::ceil_div;
using core::round_up;

constexpr uint8_t kPoison = 0xa5;

// A quantisation with its memory: odd pitches, poisoned outputs.
struct Case {
  octet_quantize_args args{};
  std::vector<unsigned char> x, codes, scales;

  template <typename Random>
  void draw(Random& random) {
    const auto pick = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
    };
    const auto size = [&] {  // log-uniform, 0 now and then
      return random() % 40 == 0
                 ? int64_t{0}
                 : static_cast<int64_t>(std::exp2(static_cast<double>(random() % 900) / 100.0));
    };
    octet_quantize_args& a = args;
    a = octet_quantize_args{};
    a.struct_size = sizeof a;
    a.block = random() & 1 ? OCTET_BLOCK_1X128 : OCTET_BLOCK_128X128;
    a.axis = static_cast<int32_t>(random() & 1);
    a.transpose = static_cast<int32_t>(random() & 1);
    const octet_type types[] = {OCTET_F32, OCTET_BF16, OCTET_F16};
    a.x_type = types[random() % 3];
    a.scale_format = static_cast<int32_t>(random() % 3);
    a.amax_min = random() % 3 == 0 ? 1e-4f : 0.0f;
    a.threads = static_cast<int32_t>(pick(1, 3));
    a.x.rows = size();
    a.x.cols = size();
    a.x.ld = a.x.cols + pick(0, 5);
    const int64_t lines = a.axis ? a.x.rows : a.x.cols, k = a.axis ? a.x.cols : a.x.rows;
    const int64_t codes_k = random() & 1 ? k : pick(k, round_up(k, 128));
    const bool k_is_cols = (a.axis == 1) != (a.transpose == 1);
    a.codes.rows = k_is_cols ? lines : codes_k;
    a.codes.cols = k_is_cols ? codes_k : lines;
    a.codes.ld = a.codes.cols + pick(0, 5);
    const int64_t scale_lines = a.block == OCTET_BLOCK_1X128 ? lines : ceil_div(lines, 128);
    const int64_t blocks = ceil_div(k, 128);
    if (random() & 1) {
      a.row_stride = 1;
      a.k_stride = std::max<int64_t>(1, scale_lines + pick(0, 3));
    } else {
      a.k_stride = 1;
      a.row_stride = std::max<int64_t>(1, blocks + pick(0, 3));
    }
    x.assign(static_cast<std::size_t>(a.x.rows * a.x.ld * core::size_of(a.x_type)) + 16, 0);
    codes.assign(static_cast<std::size_t>(a.codes.rows * a.codes.ld) + 16, kPoison);
    const int64_t scale_size = a.scale_format == OCTET_SCALES_UE8M0 ? 1 : 4;
    scales.assign(static_cast<std::size_t>((scale_lines * a.row_stride + blocks * a.k_stride + 4) *
                                           scale_size),
                  kPoison);
    std::normal_distribution<float> normal;
    const int kind = static_cast<int>(random() % 5);
    for (int64_t i = 0; i < a.x.rows * a.x.ld; ++i) {
      float value = normal(random);
      if (kind == 1) value = std::ldexp(value, static_cast<int>(pick(-160, 130)));
      if (kind == 2 && random() % 3) value = 0;
      if (kind == 3 && random() % 50 == 0) {
        value = random() & 1 ? std::numeric_limits<float>::infinity()
                             : std::numeric_limits<float>::quiet_NaN();
      }
      if (kind == 4) value = std::ldexp(value, -140);
      core::store_element(x.data(), a.x_type, i, value);
    }
    attach();
  }

  void attach() {
    args.x.data = x.data();
    args.codes.data = codes.data();
    args.scales = scales.data();
  }
};

TEST(Quantize, CpuEqualsReferenceToTheBit) {
  std::mt19937_64 random(11);
  for (int round = 0; round < (testing_support::kSanitized ? 400 : 4000); ++round) {
    Case expected;
    expected.draw(random);
    Case got = expected;
    got.attach();
    ASSERT_TRUE(core::check_quantize(got.args).ok()) << core::check_quantize(got.args).message();
    ref::quantize(expected.args);
    cpu::quantize(got.args);
    ASSERT_EQ(expected.codes, got.codes) << "round " << round;
    ASSERT_EQ(expected.scales, got.scales) << "round " << round;
    ref::dequantize(expected.args);
    cpu::dequantize(got.args);
    ASSERT_EQ(expected.x, got.x) << "round " << round;
  }
}

// One line of 128 numbers.
struct Line {
  std::vector<uint8_t> codes = std::vector<uint8_t>(128);
  float scale = -1;

  explicit Line(const std::vector<float>& x, int32_t format = OCTET_SCALES_F32,
                float amax_min = 0) {
    octet_quantize_args args;
    octet_quantize_args_init(&args);
    args.x = {const_cast<float*>(x.data()), 1, static_cast<int64_t>(x.size()),
              static_cast<int64_t>(x.size()), 0};
    args.codes = {codes.data(), 1, static_cast<int64_t>(x.size()), 128, 0};
    args.scales = &scale;
    args.row_stride = args.k_stride = 1;
    args.scale_format = format;
    args.amax_min = amax_min;
    EXPECT_EQ(octet_cpu_quantize(&args), OCTET_OK) << octet_status_message();
  }
};

TEST(Quantize, ZeroBlockIsExactlyZero) {  // field report F23
  const Line line(std::vector<float>{0.0f, -0.0f, 0.0f});
  EXPECT_EQ(line.scale, 0.0f);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(line.codes[static_cast<std::size_t>(i)], 0);
}

TEST(Quantize, LargestElementBecomes448) {
  for (int exponent = -100; exponent <= 127; ++exponent) {
    const float x = std::ldexp(1.2f, exponent);
    const Line line({x, -x, x / 2});
    EXPECT_EQ(line.scale, std::max(x / 448.0f, 0x1p-126f));
    EXPECT_EQ(line.codes[0], 0x7e) << exponent;
    EXPECT_EQ(line.codes[1], 0xfe) << exponent;
  }
}

TEST(Quantize, TinyBlocksKeepAFiniteReciprocal) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const Line line({tiny, 0x1p-126f});
  EXPECT_EQ(line.scale, 0x1p-126f);
  EXPECT_EQ(line.codes[0], 0);
  EXPECT_EQ(line.codes[1], core::f32_to_e4m3(1.0f));
}

TEST(Quantize, NotFiniteElementsTouchNobody) {
  const float inf = std::numeric_limits<float>::infinity();
  const Line with({1.0f, inf, -inf, std::nanf(""), 0.5f});
  const Line without({1.0f, 0.0f, 0.0f, 0.0f, 0.5f});
  EXPECT_EQ(with.scale, without.scale);
  EXPECT_EQ(with.codes[0], without.codes[0]);
  EXPECT_EQ(with.codes[4], without.codes[4]);
  for (const std::size_t i : {1, 2, 3}) EXPECT_EQ(with.codes[i], 0x7f);
  const Line alone({inf, 0.0f});
  EXPECT_EQ(alone.scale, 0.0f);
  EXPECT_EQ(alone.codes[0], 0x7f);
  EXPECT_EQ(alone.codes[1], 0);
}

TEST(Quantize, PowersOfTwoRoundUp) {
  for (int exponent = -150; exponent <= 127; ++exponent) {
    for (const float mantissa : {1.0f, 1.25f, 1.75f, 1.999f}) {
      const float x = std::ldexp(mantissa, exponent);
      if (x == 0) continue;
      const float scale = Line({x}, OCTET_SCALES_POW2).scale;
      const float plain = std::max(x / 448.0f, 0x1p-126f);
      int found = 0;
      EXPECT_EQ(std::frexp(scale, &found), 0.5f);
      EXPECT_GE(scale, plain);
      EXPECT_LT(scale / 2, plain);
      EXPECT_EQ(quantize::from_ue8m0(quantize::to_ue8m0(scale)), scale);
    }
  }
  EXPECT_EQ(quantize::to_ue8m0(0.0f), 0);
  EXPECT_EQ(quantize::from_ue8m0(0), 0.0f);
  EXPECT_EQ(quantize::from_ue8m0(0xfe), 0x1p127f);
  EXPECT_TRUE(std::isnan(quantize::from_ue8m0(0xff)));
}

TEST(Quantize, AmaxMinKeepsScalesFromVanishing) {
  EXPECT_EQ(Line({1e-9f}, OCTET_SCALES_F32, 1e-4f).scale, 1e-4f / 448.0f);
  EXPECT_EQ(Line({0.0f}, OCTET_SCALES_F32, 1e-4f).scale, 1e-4f / 448.0f);
  EXPECT_EQ(Line({5.0f}, OCTET_SCALES_F32, 1e-4f).scale, 5.0f / 448.0f);
}

TEST(Quantize, ErrorOfAnElementIsHalfAUnit) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 500; ++round) {
    std::vector<float> x(128);
    for (float& v : x) v = normal(random);
    const Line line(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double got = double{core::e4m3_to_f32(line.codes[i])} * line.scale;
      const double unit = std::max(std::fabs(x[i]) / 8.0, std::ldexp(double{line.scale}, -9));
      EXPECT_LE(std::fabs(got - x[i]), unit / 2 * (1 + 1e-5));
    }
  }
}

#if defined(__x86_64__)
TEST(Quantize, TheCallersFloatingPointModeDoesNotMatter) {
  const std::vector<float> x{0x1p-130f, 1e-40f, 0.3f * 0x1p-120f, 0x1p-126f};
  const Line want(x);
  const unsigned int saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040 | 0x6000);  // flush to zero, denormals are zero, round toward zero
  const Line got(x);
  EXPECT_EQ(_mm_getcsr() & 0xe040u, 0xe040u);
  _mm_setcsr(saved);
  EXPECT_EQ(got.scale, want.scale);
  EXPECT_EQ(got.codes, want.codes);
}
#endif

}  // namespace
}  // namespace oct
