// The CPU kernels against the law (ref/gemm.h), bit for bit: every instruction set that this
// processor has, forced in turn, on random small views of every class of input that has its own way
// through the arithmetic. Outputs lie between guard bands and start poisoned.
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/float_types.h"
#include "core/views.h"
#include "cpu/isa.h"
#include "cpu/run.h"
#include "ref/gemm.h"

namespace oct {
namespace {

using core::DenseView;
using Random = std::mt19937_64;

constexpr octet_isa kIsas[] = {OCTET_ISA_PORTABLE, OCTET_ISA_AVX2, OCTET_ISA_AVX512};

int64_t draw(Random& r, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(r() % static_cast<uint64_t>(high - low + 1));
}
// Small values as likely as large ones.
int64_t draw_log(Random& r, int64_t low, int64_t high) {
  const double x =
      std::uniform_real_distribution<double>(std::log(static_cast<double>(low)),
                                             std::log(static_cast<double>(high) + 1))(r);
  return std::min(high, static_cast<int64_t>(std::exp(x)));
}
float gaussian(Random& r) { return std::normal_distribution<float>()(r); }

// ------------------------------------------------------------------------------------- inputs ----

enum class Codes {
  kGaussian,
  kWideExponents,
  kSubnormals,
  kCancellation,
  kOneLarge,
  kLargest,
  kZeros,
  kAnyFinite,
  kAnyCode,
  kFewNans,
  kCount
};

uint8_t e4m3_code(Random& r, Codes codes, int64_t k, bool is_b) {
  const auto sign = static_cast<uint8_t>(r() & 0x80);
  const auto exponent = [&](int64_t low, int64_t high) {
    return static_cast<uint8_t>(sign | draw(r, low, high) << 3 | (r() & 7));
  };
  switch (codes) {
    case Codes::kGaussian: return core::f32_to_e4m3(gaussian(r) * 120);
    case Codes::kWideExponents: return exponent(0, 14);
    case Codes::kSubnormals: return exponent(0, r() % 4 == 0 ? 1 : 0);
    case Codes::kCancellation:  // pairs of opposite products, and something small
      if (is_b) return static_cast<uint8_t>(0x38 + 8 * (k / 2 % 3));
      if (k % 7 == 0) return exponent(0, 5);
      return static_cast<uint8_t>(0x58 + k / 2 % 8 + (k % 2) * 0x80);
    case Codes::kOneLarge: return k % 32 == 5 ? uint8_t{0x7e} : exponent(0, 7);
    case Codes::kLargest: return static_cast<uint8_t>(sign * (r() % 8 == 0) | 0x7e);
    case Codes::kZeros: return r() % 16 == 0 ? exponent(0, 14) : sign;
    case Codes::kAnyFinite: {
      const auto code = static_cast<uint8_t>(r());
      return (code & 0x7f) == 0x7f ? uint8_t{0x7e} : code;
    }
    case Codes::kAnyCode: return static_cast<uint8_t>(r());
    default:
      if (r() % 997 == 0) return static_cast<uint8_t>(sign | 0x7f);
      return core::f32_to_e4m3(gaussian(r) * 120);
  }
}

uint16_t bf16_code(Random& r, Codes codes, int64_t k, bool is_b) {
  const auto exponent = [&](int64_t low, int64_t high) {
    return static_cast<uint16_t>((r() & 0x807f) | static_cast<uint64_t>(draw(r, low, high)) << 7);
  };
  switch (codes) {
    case Codes::kGaussian: return core::f32_to_bf16(gaussian(r));
    case Codes::kWideExponents: return exponent(100, 150);
    case Codes::kSubnormals: return exponent(0, is_b ? 130 : 2);
    case Codes::kCancellation:
      if (is_b) return static_cast<uint16_t>(0x3f80 + 0x80 * (k / 2 % 3));
      if (k % 7 == 0) return exponent(100, 120);
      return static_cast<uint16_t>(0x4180 + k / 2 % 8 + (k % 2) * 0x8000);
    case Codes::kOneLarge: return k % 16 == 5 ? exponent(135, 140) : exponent(110, 127);
    case Codes::kLargest: return exponent(186, 192);  // products about 2^128
    case Codes::kZeros:
      return r() % 16 == 0 ? exponent(120, 130) : static_cast<uint16_t>(r() & 0x8000);
    case Codes::kAnyFinite: return exponent(0, 254);
    case Codes::kAnyCode: return exponent(0, 255);
    default:
      if (r() % 997 == 0) return static_cast<uint16_t>((r() & 0x8000) | 0x7f80 | (r() % 2));
      return exponent(40, 90);  // products near and below the smallest float
  }
}

enum class Scales { kOrdinary, kTinyAndHuge, kPowers, kZeros, kNotFinite, kCount };

float scale(Random& r, Scales scales) {
  const float x = std::fabs(gaussian(r)) * 0.01f + 1e-6f;
  switch (scales) {
    case Scales::kOrdinary: return x;
    case Scales::kTinyAndHuge:
      return std::ldexp(1.0f + static_cast<float>(r() % 1000) / 1000,
                        static_cast<int>(draw(r, -140, 126)));
    case Scales::kPowers: return std::ldexp(1.0f, static_cast<int>(draw(r, -20, 5)));
    case Scales::kZeros: return r() % 2 ? 0.0f : -x;
    default:
      switch (r() % 8) {
        case 0: return std::numeric_limits<float>::infinity();
        case 1: return -std::numeric_limits<float>::quiet_NaN();
        default: return x;
      }
  }
}

// ------------------------------------------------------------------------------------ problem ----

constexpr int64_t kGuard = 64;  // elements of D before the first row and behind the last

// A view with the memory it points to.
struct Problem {
  DenseView view;
  std::vector<uint16_t> a, b;  // codes; e4m3 operands use the bytes
  std::vector<float> sfa, sfb, bias_values, c_values;
  std::vector<uint8_t> bias, c, d;
  bool alias = false;  // C is D
  std::string name;

  std::vector<uint8_t> poisoned() const {
    if (alias) return d;
    return std::vector<uint8_t>(d.size(), 0xa5);
  }
};

std::vector<uint8_t> stored(const std::vector<float>& values, octet_type type) {
  std::vector<uint8_t> bytes(values.size() * static_cast<std::size_t>(core::size_of(type)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    core::store_element(bytes.data(), type, static_cast<int64_t>(i), values[i]);
  }
  return bytes;
}

Problem make(Random& r, octet_type in_type, Codes codes, Scales scales) {
  Problem p;
  DenseView& v = p.view;
  const bool e4m3 = in_type == OCTET_E4M3;
  v.m = draw_log(r, 1, 40);
  v.n = draw_log(r, 1, 150);
  v.k = r() % 40 == 0 ? 0 : draw_log(r, 1, r() % 4 == 0 ? 1200 : 300);
  v.in_type = in_type;
  v.a_ld = v.k + draw(r, 0, 9);
  v.b_ld = v.k + draw(r, 0, 9);
  v.split = r() % 2 ? 1 : static_cast<int>(draw(r, 1, 8));
  constexpr octet_type kTypes[] = {OCTET_F32, OCTET_BF16, OCTET_F16};
  v.d_type = kTypes[r() % 3];
  v.d_ld = v.n + draw(r, 0, 7);

  // Padding between rows is poisoned too: NaN codes.
  p.a.assign(static_cast<std::size_t>(v.m * v.a_ld + 1), 0xffff);
  p.b.assign(static_cast<std::size_t>(v.n * v.b_ld + 1), 0xffff);
  const auto fill = [&](std::vector<uint16_t>& data, int64_t rows, int64_t ld, bool is_b) {
    auto* bytes = reinterpret_cast<uint8_t*>(data.data());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < v.k; ++k) {
        if (e4m3) {
          bytes[i * ld + k] = e4m3_code(r, codes, k, is_b);
        } else {
          data[static_cast<std::size_t>(i * ld + k)] = bf16_code(r, codes, k, is_b);
        }
      }
    }
  };
  fill(p.a, v.m, v.a_ld, false);
  fill(p.b, v.n, v.b_ld, true);
  v.a = p.a.data();
  v.b = p.b.data();

  const int64_t blocks = (v.k + 127) / 128;
  const auto scale_matrix = [&](std::vector<float>& data, int64_t rows) {
    core::ScaleView s;
    if (r() % 2) {
      s.row_stride = 1;
      s.k_stride = rows + draw(r, 0, 5);
    } else {
      s.k_stride = 1;
      s.row_stride = blocks + draw(r, 0, 3);
    }
    data.assign(static_cast<std::size_t>(rows * s.row_stride + blocks * s.k_stride + 1), 0);
    for (float& x : data) x = scale(r, scales);
    s.data = data.data();
    return s;
  };
  if (e4m3) {
    v.sfb_rows = r() % 2 ? 128 : 1;
    v.sfa = scale_matrix(p.sfa, v.m);
    v.sfb = scale_matrix(p.sfb, (v.n + v.sfb_rows - 1) / v.sfb_rows);
  }

  const auto values = [&](int64_t count) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (float& y : x) y = gaussian(r) * std::ldexp(1.0f, static_cast<int>(draw(r, -8, 8)));
    return x;
  };
  if (r() % 3 == 0) {
    v.bias_type = kTypes[r() % 3];
    p.bias = stored(values(v.n), v.bias_type);
    v.bias = p.bias.data();
  }
  const int64_t size = core::size_of(v.d_type);
  const int64_t elements = v.m * v.d_ld + 2 * kGuard;
  if (r() % 3 == 0) {
    p.alias = r() % 2;
    if (p.alias) {
      p.d = stored(values(elements), v.d_type);
      v.c_ld = v.d_ld;
    } else {
      v.c_ld = v.n + draw(r, 0, 7);
      p.c = stored(values(v.m * v.c_ld), v.d_type);
    }
  }
  if (!p.alias) p.d.assign(static_cast<std::size_t>(elements * size), 0xa5);
  p.name = std::string(e4m3 ? "e4m3" : "bf16") + " codes " +
           std::to_string(static_cast<int>(codes)) + " scales " +
           std::to_string(static_cast<int>(scales)) + " m " + std::to_string(v.m) + " n " +
           std::to_string(v.n) + " k " + std::to_string(v.k) + " split " + std::to_string(v.split) +
           " sfb_rows " + std::to_string(v.sfb_rows) + " d_type " + std::to_string(v.d_type) +
           (v.bias ? " bias" : "") +
           (p.alias       ? " C is D"
            : p.c.empty() ? ""
                          : " C");
  return p;
}

// The problem's view with D in `d`.
DenseView placed(const Problem& p, std::vector<uint8_t>& d) {
  DenseView v = p.view;
  v.d = d.data() + kGuard * core::size_of(v.d_type);
  v.c = p.alias ? v.d : p.c.empty() ? nullptr : static_cast<const void*>(p.c.data());
  return v;
}

std::vector<uint8_t> expected(const Problem& p) {
  std::vector<uint8_t> d = p.poisoned();
  core::Work work;
  work.gemms.push_back(placed(p, d));
  ref::run(work);
  return d;
}

// Where the first difference is, guard bands included.
::testing::AssertionResult equal(const Problem& p, const std::vector<uint8_t>& got,
                                 const std::vector<uint8_t>& want) {
  if (got == want) return ::testing::AssertionSuccess();
  const int64_t size = core::size_of(p.view.d_type);
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i * size < static_cast<int64_t>(got.size()); ++i) {
    if (std::memcmp(&got[static_cast<std::size_t>(i * size)],
                    &want[static_cast<std::size_t>(i * size)],
                    static_cast<std::size_t>(size)) != 0) {
      if (wrong++ == 0) first = i;
    }
  }
  uint32_t x = 0, y = 0;
  std::memcpy(&x, &got[static_cast<std::size_t>(first * size)], static_cast<std::size_t>(size));
  std::memcpy(&y, &want[static_cast<std::size_t>(first * size)], static_cast<std::size_t>(size));
  const int64_t at = first - kGuard;
  return ::testing::AssertionFailure()
         << p.name << ": " << wrong << " wrong, first at D[" << at / p.view.d_ld << ", "
         << at % p.view.d_ld << "] (" << at << " of " << p.view.m * p.view.d_ld << "): got "
         << std::hex << x << ", want " << y;
}

std::vector<uint8_t> computed(const Problem& p, octet_isa isa, int threads, cpu::Report* report) {
  std::vector<uint8_t> d = p.poisoned();
  core::Work work;
  work.gemms.push_back(placed(p, d));
  const Status status = cpu::run(work, {threads, isa}, report);
  EXPECT_TRUE(status.ok()) << status.message();
  return d;
}

class Kernels : public ::testing::TestWithParam<octet_isa> {
 protected:
  void SetUp() override {
    if (!cpu::isa_available(GetParam())) GTEST_SKIP() << "this processor does not have it";
  }
};

void random_views(octet_isa isa, octet_type in_type, int count) {
  Random r(static_cast<uint64_t>(in_type) * 1000 + 7);
  for (int i = 0; i < count; ++i) {
    const auto codes = static_cast<Codes>(i % static_cast<int>(Codes::kCount));
    const auto scales = static_cast<Scales>(r() % static_cast<uint64_t>(Scales::kCount));
    const Problem p = make(r, in_type, codes, scales);
    cpu::Report report;
    const std::vector<uint8_t> got = computed(p, isa, 1, &report);
    ASSERT_EQ(report.isa, isa);
    ASSERT_EQ(report.threads, 1);
    ASSERT_GT(report.scratch_bytes, 0);
    ASSERT_LE(report.scratch_bytes, int64_t{64} << 20);
    ASSERT_TRUE(equal(p, got, expected(p))) << "problem " << i;
  }
}

TEST_P(Kernels, E4m3EqualsTheLaw) { random_views(GetParam(), OCTET_E4M3, 2500); }
TEST_P(Kernels, Bf16EqualsTheLaw) { random_views(GetParam(), OCTET_BF16, 1500); }

// More rows and columns than one tile has, and more tiles than threads.
TEST_P(Kernels, LargerThanATile) {
  Random r(11);
  for (const octet_type in_type : {OCTET_E4M3, OCTET_BF16}) {
    Problem p = make(r, in_type, Codes::kGaussian, Scales::kOrdinary);
    do {
      p = make(r, in_type, Codes::kGaussian, Scales::kOrdinary);
    } while (p.view.k < 100);
    // The same operands, as if they were a taller and a wider matrix.
    p.view.m = 3 * 128 + 5;
    p.view.n = 2 * 512 + 67;
    p.view.k = 70;
    p.view.a_ld = 1;
    p.view.b_ld = 1;
    p.a.resize(600);
    p.b.resize(1300);
    for (uint16_t& x : p.a) {
      x = in_type == OCTET_E4M3
              ? static_cast<uint16_t>(e4m3_code(r, Codes::kGaussian, 0, false) * 0x0101)
              : bf16_code(r, Codes::kGaussian, 0, false);
    }
    for (uint16_t& x : p.b) {
      x = in_type == OCTET_E4M3
              ? static_cast<uint16_t>(e4m3_code(r, Codes::kGaussian, 0, true) * 0x0101)
              : bf16_code(r, Codes::kGaussian, 0, true);
    }
    p.view.a = p.a.data();
    p.view.b = p.b.data();
    p.sfa.assign(1000, 0);
    p.sfb.assign(2000, 0);
    for (float& x : p.sfa) x = scale(r, Scales::kOrdinary);
    for (float& x : p.sfb) x = scale(r, Scales::kOrdinary);
    p.view.sfa = {p.sfa.data(), 1, 1};
    p.view.sfb = {p.sfb.data(), 1, 1};
    p.view.bias = nullptr;
    p.view.d_ld = p.view.n + 3;
    p.alias = false;
    p.c.clear();
    p.d.assign(static_cast<std::size_t>((p.view.m * p.view.d_ld + 2 * kGuard) *
                                        core::size_of(p.view.d_type)),
               0xa5);
    const std::vector<uint8_t> want = expected(p);
    for (const int threads : {1, 2, 3, 7}) {
      cpu::Report report;
      const std::vector<uint8_t> got = computed(p, GetParam(), threads, &report);
      EXPECT_EQ(report.isa, GetParam());
      EXPECT_EQ(report.threads, threads);
      EXPECT_TRUE(equal(p, got, want)) << threads << " threads";
    }
  }
}

// A decode step: one row still gives work to all threads.
TEST_P(Kernels, OneRowTakesAllThreads) {
  Random r(12);
  Problem p = make(r, OCTET_E4M3, Codes::kGaussian, Scales::kOrdinary);
  p.view.m = 1;
  p.view.n = 2000;
  p.view.k = 1024;
  p.view.a_ld = p.view.b_ld = 1024;
  p.a.assign(512, 0);
  p.b.assign(1024 * 1000, 0);
  for (auto* data : {&p.a, &p.b}) {
    for (uint16_t& x : *data) x = static_cast<uint16_t>(r() & 0x7b7b);
  }
  p.view.a = p.a.data();
  p.view.b = p.b.data();
  p.sfa.assign(64, 0.5f);
  p.sfb.assign(4096, 0.25f);
  p.view.sfa = {p.sfa.data(), 8, 1};
  p.view.sfb = {p.sfb.data(), 1, 2};
  p.view.sfb_rows = 128;
  p.view.bias = nullptr;
  p.view.d_ld = 2000;
  p.alias = false;
  p.c.clear();
  p.d.assign(static_cast<std::size_t>((2000 + 2 * kGuard) * core::size_of(p.view.d_type)), 0xa5);
  const std::vector<uint8_t> want = expected(p);
  for (const int threads : {1, 2, 3, 4}) {
    cpu::Report report;
    const std::vector<uint8_t> got = computed(p, GetParam(), threads, &report);
    EXPECT_EQ(report.threads, threads);
    EXPECT_TRUE(equal(p, got, want)) << threads << " threads";
  }
}

// Hundreds of pieces, as a grouped problem has, rows of zeros among them, by any number of threads.
TEST_P(Kernels, ManyViews) {
  Random r(13);
  std::vector<Problem> problems;
  std::vector<std::vector<uint8_t>> want;
  for (int i = 0; i < 300; ++i) {
    problems.push_back(
        make(r, i % 5 == 0 ? OCTET_BF16 : OCTET_E4M3, Codes::kAnyFinite, Scales::kOrdinary));
    want.push_back(expected(problems.back()));
  }
  for (const int threads : {1, 2, 3, 7}) {
    std::vector<std::vector<uint8_t>> got;
    core::Work work;
    for (const Problem& p : problems) {
      got.push_back(p.poisoned());
      work.gemms.push_back(placed(p, got.back()));
    }
    std::vector<uint16_t> zeros(50 * 20, 0xa5a5);
    work.zeros.push_back({zeros.data() + 20, 40, 17, 20, OCTET_BF16});
    cpu::Report report;
    ASSERT_TRUE(cpu::run(work, {threads, GetParam()}, &report).ok());
    EXPECT_EQ(report.isa, GetParam());
    EXPECT_EQ(report.threads, threads);
    for (std::size_t i = 0; i < problems.size(); ++i) {
      EXPECT_TRUE(equal(problems[i], got[i], want[i])) << threads << " threads, view " << i;
    }
    for (int64_t i = 0; i < 1000; ++i) {
      const bool inside = i >= 20 && i < 820 && i % 20 < 17;
      ASSERT_EQ(zeros[static_cast<std::size_t>(i)], inside ? 0 : 0xa5a5) << i;
    }
  }
}

TEST_P(Kernels, NothingToDo) {
  cpu::Report report;
  EXPECT_TRUE(cpu::run({}, {0, GetParam()}, &report).ok());
  EXPECT_EQ(report.isa, GetParam());
  EXPECT_EQ(report.scratch_bytes, 0);
}

// Whatever the caller's floating-point environment: it does no harm, and comes back as it was.
TEST_P(Kernels, CallersFloatingPointEnvironment) {
  Random r(14);
  for (int i = 0; i < 40; ++i) {
    const octet_type in_type = i % 2 ? OCTET_BF16 : OCTET_E4M3;
    const Codes codes = i % 4 < 2 ? Codes::kSubnormals : Codes::kFewNans;
    const Problem p = make(r, in_type, codes, Scales::kTinyAndHuge);
    const std::vector<uint8_t> want = expected(p);
    for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(mode);
#if defined(__x86_64__)
      const unsigned before = _mm_getcsr() | 0x8040u;  // flush to zero, denormals are zero
      _mm_setcsr(before);
#endif
      std::vector<uint8_t> got = p.poisoned();
      core::Work work;
      work.gemms.push_back(placed(p, got));
      const Status status = cpu::run(work, {2, GetParam()}, nullptr);
#if defined(__x86_64__)
      const unsigned after = _mm_getcsr();
#endif
      const int mode_after = std::fegetround();
      std::fesetenv(FE_DFL_ENV);
      ASSERT_TRUE(status.ok());
#if defined(__x86_64__)
      EXPECT_EQ(before, after);
#endif
      EXPECT_EQ(mode, mode_after);
      EXPECT_TRUE(equal(p, got, want)) << "rounding mode " << mode;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Kernels, ::testing::ValuesIn(kIsas),
                         [](const ::testing::TestParamInfo<octet_isa>& each) {
                           return std::string(cpu::isa_name(each.param));
                         });

// What the processor says must be what ran: a build that lost a kernel would skip its tests in
// silence.
TEST(Isa, EveryInstructionSetOfThisProcessorIsTested) {
  EXPECT_TRUE(cpu::isa_available(OCTET_ISA_PORTABLE));
  EXPECT_TRUE(cpu::isa_available(OCTET_ISA_AUTO));
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512vbmi");
  EXPECT_EQ(cpu::isa_available(OCTET_ISA_AVX2), avx2);
  EXPECT_EQ(cpu::isa_available(OCTET_ISA_AVX512), avx512);
  const octet_isa best = avx512 ? OCTET_ISA_AVX512 : avx2 ? OCTET_ISA_AVX2 : OCTET_ISA_PORTABLE;
#else
  const octet_isa best = OCTET_ISA_PORTABLE;
#endif
  cpu::Report report;
  EXPECT_TRUE(cpu::run({}, {}, &report).ok());
  EXPECT_EQ(report.isa, best);
}

TEST(Isa, RefusesWhatIsNotThere) {
  for (const octet_isa isa : kIsas) {
    if (cpu::isa_available(isa)) continue;
    const Status status = cpu::run({}, {1, isa}, nullptr);
    EXPECT_EQ(status.code(), OCTET_UNSUPPORTED);
    EXPECT_NE(status.message().find(std::string("isa = ") + cpu::isa_name(isa)), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find(cpu::available_isas()), std::string::npos) << status.message();
  }
  EXPECT_FALSE(cpu::run({}, {1, 99}, nullptr).ok());
}

}  // namespace
}  // namespace oct
