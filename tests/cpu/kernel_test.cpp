// The CPU kernels against the law (ref/gemm.h), bit for bit: every instruction set that this
// processor has, forced in turn, on random small views of every class of input that has its own way
// through the arithmetic. Outputs lie between guard bands and start poisoned.
#include <cfenv>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/float_types.h"
#include "core/views.h"
#include "cpu/isa.h"
#include "cpu/kernel_problems.h"
#include "cpu/run.h"

namespace oct {
namespace {

using namespace kernel_problems;  // NOLINT(google-build-using-namespace): made for this file

constexpr octet_isa kIsas[] = {OCTET_ISA_PORTABLE, OCTET_ISA_AVX2, OCTET_ISA_AVX512};

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

// Kernels that hold exponents in few bits: a power of two, the highest of its row, meets the least
// element that there is, and the largest product is made by others. One negative product is cut,
// toward zero and not downward: a unit, and nothing hides it.
TEST_P(Kernels, TheLeastBesideAPowerOfTwo) {
  constexpr int64_t kRows = 9, kColumns = 70, kLength = 32;
  constexpr uint8_t kPower = 0x78, kLeast = 0x81, kOther = 0x68, kOne = 0x38;  // 256, -2^-9, 64, 1
  Random r(13);
  for (const bool least_in_a : {false, true}) {
    for (const uint8_t least : {kLeast, uint8_t{0x89}, uint8_t{0x91}}) {
      Problem p = make(r, OCTET_E4M3, Codes::kGaussian, Scales::kOrdinary);
      const auto fill = [&](std::vector<uint16_t>& data, int64_t rows, uint8_t first,
                            uint8_t second) {
        data.assign(static_cast<std::size_t>(rows * kLength / 2), kOne * 0x0101);
        auto* codes = reinterpret_cast<uint8_t*>(data.data());
        for (int64_t i = 0; i < rows; ++i) {
          codes[i * kLength + 8] = first;
          codes[i * kLength + 9] = second;
        }
      };
      fill(p.a, kRows, least_in_a ? least : kPower, least_in_a ? kPower : kOther);
      fill(p.b, kColumns, least_in_a ? kPower : least, least_in_a ? kOther : kPower);
      p.view = core::DenseView{};
      p.view.m = kRows;
      p.view.n = kColumns;
      p.view.k = p.view.a_ld = p.view.b_ld = kLength;
      p.view.in_type = OCTET_E4M3;
      p.view.d_type = OCTET_F32;
      p.view.d_ld = kColumns;
      p.view.a = p.a.data();
      p.view.b = p.b.data();
      p.sfa.assign(kRows, 1.0f);
      p.sfb.assign(kColumns, 1.0f);
      p.view.sfa = {p.sfa.data(), 1, 1};
      p.view.sfb = {p.sfb.data(), 1, 1};
      p.alias = false;
      p.c.clear();
      p.d.assign(static_cast<std::size_t>((kRows * kColumns + 2 * kGuard) * 4), 0xa5);
      EXPECT_TRUE(equal(p, computed(p, GetParam(), 1, nullptr), expected(p)))
          << static_cast<int>(least) << (least_in_a ? " in A" : " in B");
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
                      __builtin_cpu_supports("avx512vbmi") &&
                      __builtin_cpu_supports("avx512bitalg") &&
                      __builtin_cpu_supports("avx512vnni");
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
