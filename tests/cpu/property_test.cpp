// The CPU backend over random problems: equal to the reference to the bit for every instruction set
// and number of threads, nothing written that is not owned, nothing read that is not owned, the
// error of each element within the model's bound, and the bits independent of everything but inputs
// and split.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <gtest/gtest.h>

#include "core/float_types.h"
#include "core/math.h"
#include "core/problem.h"
#include "octet/octet.h"
#include "support/compare.h"
#include "support/error_bound.h"
#include "support/host_case.h"
#include "support/ownership.h"
#include "support/problems.h"
#include "support/sanitized.h"

namespace {

using namespace oct::testing_support;

std::vector<octet_isa> available_isas() {
  std::vector<octet_isa> isas;
  for (octet_isa isa = OCTET_ISA_PORTABLE; isa <= OCTET_ISA_AVX512; ++isa) {
    if (octet_isa_available(isa)) isas.push_back(isa);
  }
  return isas;
}

void run_reference(const octet_gemm_plan& plan, const HostCase& c) {
  const octet_gemm_args args = c.args();
  ASSERT_EQ(octet_ref_run(&plan, &args), OCTET_OK) << c.name() << ": " << octet_status_message();
}

// Runs with the given instruction set and holds that it was the one used.
void run_cpu(const octet_gemm_plan& plan, const HostCase& c, octet_isa isa, int threads) {
  const octet_gemm_args args = c.args();
  octet_cpu_options options;
  octet_cpu_options_init(&options);
  options.isa = isa;
  options.threads = threads;
  octet_cpu_report report{};
  ASSERT_EQ(octet_cpu_run(&plan, &args, &options, &report), OCTET_OK)
      << c.name() << ": " << octet_status_message();
  if (isa != OCTET_ISA_AUTO) {
    ASSERT_EQ(report.isa, isa);
  }
  ASSERT_LE(report.scratch_bytes, int64_t{64} << 20);
  if (threads > 0) {
    ASSERT_LE(report.threads, threads);
  }
}

HostCase draw_case(Random& random, int i, int64_t work) {
  const octet_gemm_problem p = draw_problem(random, static_cast<Regime>(i % kRegimes), work);
  CaseOptions options;
  options.sizes =
      random.chance(0.6) ? SizeMode::kSeeded : static_cast<SizeMode>(random.between(1, 3));
  options.data = static_cast<DataClass>(random.between(0, kDataClasses - 1));
  options.c_is_d = random.chance(0.3);
  return HostCase(p, options);
}

class Shard : public testing::TestWithParam<int> {};

TEST_P(Shard, EqualToTheReference) {
  Random random(100 + static_cast<uint64_t>(GetParam()));
  for (int i = 0; i < (kSanitized ? 100 : 400); ++i) {
    // Now and then large enough for several tiles and panels.
    const HostCase before = draw_case(random, i, random.chance(0.06) ? 3000000 : 60000);
    const octet_gemm_plan plan = cpu_plan(before.problem);
    HostCase want = before;
    run_reference(plan, want);
    ASSERT_EQ(check_untouched(before, want), "");
    for (const octet_isa isa : available_isas()) {
      HostCase got = before;
      const int threads = random.pick({1, 2, 3, 8});
      run_cpu(plan, got, isa, threads);
      ASSERT_EQ(compare_results(got, want), "") << octet_isa_name(isa) << " threads " << threads;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Properties, Shard, testing::Range(0, 8));

// Rows, pitches and pieces of K that no group owns may hold NaN codes and scales, or zeros.
TEST(Property, PaddingChangesNothing) {
  Random random(201);
  for (int i = 0; i < 600; ++i) {
    const HostCase poisoned = draw_case(random, i, 30000);
    CaseOptions options = poisoned.options;
    options.poison = false;
    const HostCase clean(poisoned.problem, options);
    const octet_gemm_plan plan = cpu_plan(poisoned.problem);
    for (const octet_isa isa : available_isas()) {
      HostCase x = poisoned, y = clean;
      run_cpu(plan, x, isa, 2);
      run_cpu(plan, y, isa, 2);
      ASSERT_EQ(compare_results(x, y), "") << octet_isa_name(isa);
      ASSERT_EQ(check_untouched(poisoned, x), "");
    }
  }
}

// Every element against float64 on the dequantised inputs.
TEST(Property, ErrorStaysWithinTheModelsBound) {
  Random random(202);
  double worst[2] = {};  // share of the bound that was used: e4m3, BF16
  int64_t elements = 0;
  for (int i = 0; i < 500; ++i) {
    HostCase c = draw_case(random, i, 20000);
    if (c.options.data >= DataClass::kAnyFinite) continue;
    const octet_gemm_problem& p = c.problem;
    const octet_gemm_plan plan = cpu_plan(p);
    const HostCase before = c;
    run_cpu(plan, c, OCTET_ISA_AUTO, 1);
    const octet_gemm_args args = c.args(), inputs = before.args();
    const std::vector<int64_t> owners = row_owners(p, args);
    for (std::size_t row = 0; row < owners.size(); ++row) {
      if (owners[row] < 0) continue;
      const auto g = static_cast<int64_t>(row) / args.d.rows;
      const auto r = static_cast<int64_t>(row) % args.d.rows;
      for (int64_t n = 0; n < p.n; ++n) {
        const Bounded want = exact_element(plan, inputs, g, owners[row], r, n);
        if (std::isinf(want.bound)) continue;
        const double got = static_cast<double>(
            oct::core::load_element(args.d.data, p.d_type,
                                    g * args.d.group_stride + r * args.d.ld + n));
        const double error = std::fabs(got - want.exact);
        ASSERT_LE(error, want.bound) << c.name() << " D[" << g << "," << r << "," << n
                                     << "] = " << got << ", exact " << want.exact;
        if (p.d_type == OCTET_F32 && want.bound > 0) {
          double& share = worst[p.in_type == OCTET_BF16];
          share = std::max(share, error / want.bound);
        }
        ++elements;
      }
    }
  }
  EXPECT_GT(elements, 20000);
  EXPECT_GT(worst[0], 0.1);  // the bound means something
  EXPECT_GT(worst[1], 0.02);
}

// A row of D has the same bits in a batch of any size.
TEST(Property, BatchInvariant) {
  Random random(203);
  for (int i = 0; i < (kSanitized ? 4 : 24); ++i) {
    octet_gemm_problem p = draw_problem(random, Regime::kPrefill, 600000);
    p.grouping = OCTET_DENSE;
    p.groups = 1;
    p.max_m = 0;
    p.alignment = 128;
    p.packed = 0;
    p.index_type = OCTET_I32;
    p.zero_padding = 1;
    p.split = 0;
    p.batch_invariant = 1;
    p.k = random.pick<int64_t>({1024, 4200});
    // Few columns and much K: cut into several ranges, and into fewer if m took part in the choice.
    p.n = random.log_uniform(1, 24);
    p.m = random.chance(0.5) ? random.between(1030, 1400) : random.log_uniform(2, 200);
    if (p.in_type == OCTET_E4M3 && p.granularity == OCTET_SCALE_NONE) p.granularity = OCTET_1D2D;
    p.sfa_layout = OCTET_COLUMN_MAJOR_ODD;
    HostCase whole(p);
    const HostCase before = whole;
    run_cpu(cpu_plan(p), whole, OCTET_ISA_AUTO, 3);
    for (int64_t rows = 1; rows < p.m; rows += random.log_uniform(1, p.m / 2 + 1)) {
      const int64_t first = random.between(0, p.m - rows);
      HostCase part = before;
      part.problem.m = rows;
      octet_gemm_args args = part.args();
      const int64_t in_size = oct::core::size_of(p.in_type), d_size = oct::core::size_of(p.d_type);
      args.a.rows = args.d.rows = args.c.rows = rows;
      args.a.data = static_cast<char*>(args.a.data) + first * args.a.ld * in_size;
      args.d.data = static_cast<char*>(args.d.data) + first * args.d.ld * d_size;
      if (p.accumulate) args.c.data = static_cast<char*>(args.c.data) + first * args.c.ld * d_size;
      if (args.sfa.data != nullptr) args.sfa.data += first * args.sfa.row_stride;
      const octet_gemm_plan plan = cpu_plan(part.problem);
      ASSERT_EQ(octet_cpu_run(&plan, &args, nullptr, nullptr), OCTET_OK) << octet_status_message();
      const octet_matrix& d = whole.shape.d;
      const char* want = static_cast<const char*>(whole.args().d.data);
      for (int64_t r = 0; r < rows; ++r) {
        ASSERT_EQ(std::memcmp(static_cast<char*>(args.d.data) + r * d.ld * d_size,
                              want + (first + r) * d.ld * d_size,
                              static_cast<std::size_t>(p.n * d_size)),
                  0)
            << whole.name() << " rows " << rows << " from " << first;
      }
    }
  }
}

octet_gemm_problem dense_of(const octet_gemm_problem& p, int64_t m, int64_t k) {
  octet_gemm_problem dense = p;
  const octet_gemm_problem plain = oct::core::default_problem();
  dense.grouping = OCTET_DENSE;
  dense.groups = 1;
  dense.m = m;
  dense.k = k;
  dense.max_m = plain.max_m;
  dense.alignment = plain.alignment;
  dense.packed = plain.packed;
  dense.index_type = plain.index_type;
  dense.zero_padding = plain.zero_padding;
  // A piece may begin anywhere.
  for (octet_scale_layout* layout : {&dense.sfa_layout, &dense.sfb_layout}) {
    if (*layout == OCTET_COLUMN_MAJOR) *layout = OCTET_COLUMN_MAJOR_ODD;
  }
  return dense;
}

// Split K: the sum, ascending, of separate products over the ranges that docs/numerics.md names.
TEST(Property, SplitIsTheSumOfItsRanges) {
  Random random(204);
  for (int i = 0; i < 150; ++i) {
    octet_gemm_problem p = draw_problem(random, Regime::kLongK, 40000);
    p = dense_of(p, p.m, p.k);
    if (p.granularity == OCTET_SCALE_NONE) p.in_type = OCTET_BF16;
    p.d_type = OCTET_F32;
    p.bias_type = OCTET_NONE;
    p.accumulate = 0;
    const int split = static_cast<int>(random.log_uniform(2, 64));
    p.split = split;
    HostCase whole(p);
    run_cpu(cpu_plan(p), whole, OCTET_ISA_AUTO, 2);
    std::vector<float> sum(static_cast<std::size_t>(p.m * p.n)), part(sum.size());
    const int64_t blocks = (p.k + 127) / 128;
    bool first = true;
    for (int64_t s = 0; s < split; ++s) {
      const int64_t begin = blocks * s / split, end = blocks * (s + 1) / split;
      if (begin == end) continue;
      octet_gemm_problem q = dense_of(p, p.m, std::min(end * 128, p.k) - begin * 128);
      q.split = 1;
      octet_gemm_args args = whole.args();
      const int64_t offset = begin * 128 * oct::core::size_of(p.in_type);
      args.a.data = static_cast<char*>(args.a.data) + offset;
      args.b.data = static_cast<char*>(args.b.data) + offset;
      args.a.cols = args.b.cols = q.k;
      if (args.sfa.data != nullptr) {
        args.sfa.data += begin * args.sfa.k_stride;
        args.sfb.data += begin * args.sfb.k_stride;
      }
      args.d = {part.data(), p.m, p.n, p.n, 0};
      const octet_gemm_plan plan = cpu_plan(q);
      ASSERT_EQ(octet_cpu_run(&plan, &args, nullptr, nullptr), OCTET_OK) << octet_status_message();
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] = first ? part[j] : sum[j] + part[j];
      first = false;
    }
    for (int64_t m = 0; m < p.m; ++m) {
      const float* row = static_cast<const float*>(whole.args().d.data) + m * whole.shape.d.ld;
      ASSERT_EQ(std::memcmp(row, sum.data() + m * p.n, static_cast<std::size_t>(p.n) * 4), 0)
          << whole.name();
    }
  }
}

// Each group's rows equal a dense call on that group alone.
TEST(Property, GroupsEqualDenseCalls) {
  Random random(205);
  int groups = 0;
  for (int i = 0; i < 500; ++i) {
    const HostCase before = draw_case(random, i, 30000);
    const octet_gemm_problem& p = before.problem;
    if (p.grouping == OCTET_DENSE) continue;
    HostCase c = before;
    const octet_gemm_plan plan = cpu_plan(p);
    run_cpu(plan, c, OCTET_ISA_AUTO, 2);
    const octet_gemm_args args = before.args();
    const std::vector<int64_t> owners = row_owners(p, args);
    const int64_t in_size = oct::core::size_of(p.in_type), d_size = oct::core::size_of(p.d_type);
    const bool k_grouped = p.grouping == OCTET_K_GROUPED;
    for (int64_t at = 0; at < static_cast<int64_t>(owners.size()) && p.n > 0;) {
      // Rows [row, last) of one buffer with one owner.
      const int64_t g = owners[static_cast<std::size_t>(at)], buffer = at / args.d.rows;
      const int64_t row = at % args.d.rows;
      int64_t last = row;
      while (last < args.d.rows && owners[static_cast<std::size_t>(at)] == g) ++last, ++at;
      if (g < 0) continue;
      ++groups;
      octet_gemm_args one = args;
      const int64_t a_buffer = a_buffers(p) > 1 ? buffer : 0;
      int64_t a = a_buffer * args.a.group_stride + row * args.a.ld, b = g * args.b.group_stride;
      int64_t k = args.a.cols, block = 0;
      if (k_grouped) {
        const Piece piece = k_pieces(p, args)[static_cast<std::size_t>(g)];
        k = piece.length;
        block = piece.start / 128;
        a = p.packed ? p.m * piece.start : piece.start;
        b = p.packed ? p.n * piece.start : piece.start;
        if (p.packed) one.a.ld = one.b.ld = k;
      }
      const octet_gemm_problem dense = dense_of(p, last - row, k);
      one.a.rows = one.d.rows = one.c.rows = last - row;
      one.a.cols = one.b.cols = k;
      if (k > 0) {
        one.a.data = static_cast<char*>(args.a.data) + a * in_size;
        one.b.data = static_cast<char*>(args.b.data) + b * in_size;
      }
      if (p.granularity != OCTET_SCALE_NONE && k > 0) {
        one.sfa.data += a_buffer * args.sfa.group_stride + row * args.sfa.row_stride +
                        block * args.sfa.k_stride;
        one.sfb.data += (k_grouped ? 0 : g * args.sfb.group_stride) + block * args.sfb.k_stride;
      }
      const int64_t d_offset = buffer * args.d.group_stride + row * args.d.ld;
      if (p.accumulate) {
        one.c.data = static_cast<char*>(args.c.data) +
                     (buffer * args.c.group_stride + row * args.c.ld) * d_size;
      }
      if (p.bias_type != OCTET_NONE) {
        one.bias = static_cast<const char*>(args.bias) +
                   g * args.bias_group_stride * oct::core::size_of(p.bias_type);
      }
      Buffer d(((last - row - 1) * args.d.ld + p.n) * d_size);
      one.d.data = d.data();
      octet_gemm_plan dense_plan = cpu_plan(dense);
      dense_plan.split = plan.split;
      ASSERT_EQ(octet_ref_run(&dense_plan, &one), OCTET_OK) << octet_status_message();
      for (int64_t r = 0; r < last - row; ++r) {
        const uint8_t* got = c.d.data() + c.d_guard + (d_offset + r * args.d.ld) * d_size;
        ASSERT_EQ(std::memcmp(got, d.data() + r * args.d.ld * d_size,
                              static_cast<std::size_t>(p.n * d_size)),
                  0)
            << before.name() << " group " << g << " row " << row + r;
      }
    }
  }
  EXPECT_GT(groups, 500);
}

// A caller's rounding mode and flush-to-zero change nothing and are given back.
TEST(Property, CallersFloatingPointModeIsHarmless) {
  Random random(206);
  for (int i = 0; i < 60; ++i) {
    const octet_gemm_problem p = draw_problem(random, static_cast<Regime>(i % kRegimes), 20000);
    CaseOptions options;
    options.data = i % 2 ? DataClass::kSubnormal : DataClass::kGaussian;
    const HostCase before(p, options);
    const octet_gemm_plan plan = cpu_plan(p);
    HostCase want = before;
    run_reference(plan, want);
    for (const octet_isa isa : available_isas()) {
      HostCase got = before, again = before;
      std::fenv_t saved;
      std::fegetenv(&saved);
      std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
      _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
      const unsigned mode = _mm_getcsr() & 0xffc0u;
#endif
      run_cpu(plan, got, isa, 2);
      run_reference(plan, again);
      const bool kept = std::fegetround() == FE_UPWARD;
#if defined(__x86_64__)
      const bool same = (_mm_getcsr() & 0xffc0u) == mode;
#else
      const bool same = true;
#endif
      std::fesetenv(&saved);
      EXPECT_TRUE(kept && same) << octet_isa_name(isa);
      ASSERT_EQ(compare_results(got, want), "") << octet_isa_name(isa);
      ASSERT_EQ(compare_results(again, want), "");
    }
  }
}

// One call with any number of threads, and calls from many threads at once.
TEST(Property, Threads) {
  Random random(207);
  for (const char* text :
       {"dense_m130n200k300_f32", "masked_g9m5n70k260", "kgrouped_g3m40n50k200_acc",
        "contiguous_g4m70n65k128_bias", "dense_m60n90k333_bf16in"}) {
    octet_gemm_problem p;
    ASSERT_TRUE(oct::core::parse_problem(text, p).ok());
    const HostCase before(p);
    const octet_gemm_plan plan = cpu_plan(p);
    HostCase want = before;
    run_reference(plan, want);
    for (const int threads : {0, 1, 2, 3, 4, 7, 16, 33}) {
      HostCase got = before;
      run_cpu(plan, got, OCTET_ISA_AUTO, threads);
      ASSERT_EQ(compare_results(got, want), "") << threads;
    }
    std::vector<HostCase> results(8, before);
    std::vector<std::thread> callers;
    for (HostCase& mine : results) {
      callers.emplace_back([&] { run_cpu(plan, mine, OCTET_ISA_AUTO, 2); });
    }
    for (std::thread& caller : callers) caller.join();
    for (const HostCase& mine : results) ASSERT_EQ(compare_results(mine, want), "");
  }
}

}  // namespace
