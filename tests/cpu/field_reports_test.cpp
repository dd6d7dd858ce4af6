// Inputs that broke libraries of this kind, as their users reported them: one test for each row of
// the list that needs no GPU, under the row's id, and its relatives (F01 and F14 are in
// large_operands_test.cpp). Results are compared with the reference to the bit: all of D, or a
// sample of it where the reference would take minutes.
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/check.h"
#include "core/float_types.h"
#include "core/math.h"
#include "core/problem.h"
#include "core/views.h"
#include "octet/octet.hpp"
#include "ref/gemm.h"
#include "support/against_reference.h"
#include "support/compare.h"
#include "support/host_case.h"
#include "support/ownership.h"
#include "support/sanitized.h"

namespace {

using namespace oct::testing_support;

octet_gemm_problem problem(const std::string& text) {
  return octet::GemmProblem::parse(text).value();
}
HostCase make(const std::string& text, CaseOptions options = {}) {
  return HostCase(problem(text), options);
}
HostCase with_sizes(const std::string& text, std::vector<int64_t> sizes) {
  CaseOptions options;
  options.group_sizes = std::move(sizes);
  return make(text, options);
}
void expect_right(const std::string& text, const CaseOptions& options = {}) {
  HostCase c = make(text, options);
  EXPECT_EQ(run_and_compare(c), "");
}
float d_at(const HostCase& c, int64_t group, int64_t row, int64_t col) {
  const octet_gemm_args args = c.args();
  return oct::core::load_element(args.d.data, c.problem.d_type,
                                 group * args.d.group_stride + row * args.d.ld + col);
}

TEST(FieldReports, F02_OddNumberOfKBlocks) {
  expect_right("dense_m3n7168k1152");
  for (const int blocks : {1, 3, 5, 7, 11}) {
    expect_right("dense_m33n192k" + std::to_string(128 * blocks));
  }
}

TEST(FieldReports, F03_OneKBlockAndKOf103) {
  const int64_t columns = kSanitized ? 200 : 2048;
  const std::string size = "dense_m7168n" + std::to_string(columns) + "k";
  expect_right(size + "128");
  HostCase exact = make(size + "103");
  ASSERT_EQ(run_and_compare(exact), "");
  for (const int64_t padded : {112, 128}) {
    HostCase c = make(size + std::to_string(padded));
    const octet_gemm_args from = exact.args(), to = c.args();
    const auto copy = [&](const octet_matrix& x, const octet_matrix& y) {
      for (int64_t r = 0; r < x.rows; ++r) {
        char* row = static_cast<char*>(y.data) + r * y.ld;
        std::memset(row, 0, static_cast<std::size_t>(padded));
        std::memcpy(row, static_cast<char*>(x.data) + r * x.ld, 103);
      }
    };
    copy(from.a, to.a);
    copy(from.b, to.b);
    for (int64_t r = 0; r < 7168; ++r) c.sfa.as<float>()[r] = exact.sfa.as<float>()[r];
    for (int64_t r = 0; r < octet::ceil_div(columns, 128); ++r) {
      c.sfb.as<float>()[r * to.sfb.row_stride] = exact.sfb.as<float>()[r * from.sfb.row_stride];
    }
    ASSERT_EQ(run_and_compare(c), "");
    for (int64_t r = 0; r < 7168; ++r) {
      ASSERT_EQ(std::memcmp(static_cast<char*>(from.d.data) + r * from.d.ld * 2,
                            static_cast<char*>(to.d.data) + r * to.d.ld * 2,
                            static_cast<std::size_t>(columns) * 2),
                0)
          << "row " << r << " padded to " << padded;
    }
  }
}

TEST(FieldReports, F04_LastKBlockHalfFull) {
  HostCase c = make("dense_m4n7168k576");
  EXPECT_EQ(octet::k_blocks(576), 5);
  EXPECT_EQ(run_and_compare(c), "");
}

TEST(FieldReports, F05_1d1dOneThousandFiveHundredRows) {
  expect_right("dense_m1536n256k2048_1d1d");
}

TEST(FieldReports, F06_1d1dOddRows) {
  expect_right("dense_m1n256k2048_1d1d");
  expect_right("dense_m133n256k512_1d1d");
}

TEST(FieldReports, F07_ContiguousOneRow) {
  CaseOptions options;
  options.group_sizes = {1};
  const auto start = std::chrono::steady_clock::now();
  expect_right("contiguous_g1m1n24576k1536", options);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(FieldReports, F08_KGroupedRepeats) {
  const HostCase before =
      with_sizes(kSanitized ? "kgrouped_g8m768n200k192_f32" : "kgrouped_g8m768n2048k192_f32",
                 {128, 128, 256, 256, 128, 256, 256, 256});
  HostCase first = before;
  ASSERT_EQ(run_and_compare(first), "");
  for (int repeat = 0; repeat < (kSanitized ? 2 : 6); ++repeat) {
    HostCase again = before;
    const octet_gemm_plan plan = cpu_plan(again.problem);
    const octet_gemm_args args = again.args();
    octet_cpu_options options;
    octet_cpu_options_init(&options);
    options.threads = 1 + repeat;
    ASSERT_EQ(octet_cpu_run(&plan, &args, &options, nullptr), OCTET_OK);
    ASSERT_EQ(compare_results(again, first), "") << repeat;
  }
}

TEST(FieldReports, F09_KGroupedChannelOfZeros) {
  const int64_t columns = kSanitized ? 200 : 2048;
  HostCase c =
      with_sizes("kgrouped_g4m2048n" + std::to_string(columns) + "k192_f32", {256, 128, 128, 256});
  const octet_gemm_args args = c.args();
  const int64_t channel = 1234;
  std::memset(static_cast<char*>(args.a.data) + channel * args.a.ld, 0,
              static_cast<std::size_t>(args.a.cols));
  for (int64_t kb = 0; kb < octet::k_blocks(args.a.cols); ++kb) {
    c.sfa.as<float>()[channel * args.sfa.row_stride + kb * args.sfa.k_stride] = 0;
  }
  const HostCase before = c;
  ASSERT_EQ(run_and_compare(c), "");
  for (int64_t g = 0; g < 4; ++g) {
    for (int64_t n = 0; n < columns; ++n) {
      ASSERT_EQ(d_at(c, g, channel, n), 0.0f);
      ASSERT_FALSE(std::signbit(d_at(c, g, channel, n)));
    }
  }
  HostCase again = before;
  ASSERT_EQ(run_and_compare(again), "");
  EXPECT_EQ(compare_results(again, c), "");
}

TEST(FieldReports, F10_MaskedBuffersOfAnyHeight) {
  for (const int64_t rows : {8, 16, 32, 63, 65}) {
    for (const int64_t filled : {rows, rows - 1, int64_t{1}}) {
      HostCase c = with_sizes("masked_g5m8n72k260_maxm" + std::to_string(rows),
                              {rows, filled, 0, filled, rows});
      EXPECT_EQ(run_and_compare(c), "");
    }
  }
}

TEST(FieldReports, F11_PaddingRowsAreWrittenAsZeros) {
  HostCase c = with_sizes("contiguous_g3m100n140k300", {100, 1, 129});
  ASSERT_EQ(run_and_compare(c), "");
  const std::vector<int64_t> owners = row_owners(c.problem, c.args());
  int padding = 0;
  for (std::size_t r = 0; r < owners.size(); ++r) {
    for (int64_t n = 0; n < 140 && owners[r] < 0; ++n) {
      ASSERT_EQ(d_at(c, 0, static_cast<int64_t>(r), n), 0.0f);
    }
    padding += owners[r] < 0;
  }
  EXPECT_GE(padding, 28 + 127 + 127);
  HostCase kept = with_sizes("contiguous_g3m100n140k300_keeppad", {100, 1, 129});
  EXPECT_EQ(run_and_compare(kept), "");
}

// The work is counted, not timed: the rows of all pieces are the real rows, whatever follows them.
TEST(FieldReports, F12_TrailingPaddingIsNoWork) {
  const int64_t real = 300, trailing = 10240;
  for (const char* text : {"contiguous_g3m100n64k128", "contiguous_g3m100n64k128_keeppad"}) {
    HostCase c = with_sizes(text, {100, 100, 100});
    const int64_t rows = 3 * 128 + trailing;
    std::vector<int32_t> index(static_cast<std::size_t>(rows), -1);
    for (int64_t g = 0; g < 3; ++g) {
      std::fill_n(index.begin() + g * 128, 100, static_cast<int32_t>(g));
    }
    std::vector<uint8_t> a(static_cast<std::size_t>(rows * 128), 0x7f);
    std::vector<float> sfa(static_cast<std::size_t>(rows), std::nanf(""));
    std::vector<uint16_t> d(static_cast<std::size_t>(rows * 64), 0xa5a5);
    octet_gemm_args args = c.args();
    args.a = octet::matrix(a.data(), rows, 128);
    args.sfa = octet::column_major_scales(sfa.data(), rows);
    args.d = octet::matrix(d.data(), rows, 64);
    args.group_index = index.data();
    const octet_gemm_plan plan = cpu_plan(c.problem);
    ASSERT_TRUE(oct::core::check_args(plan, args).ok());
    const oct::core::Work work = oct::core::expand(plan, args);
    int64_t computed = 0, zeroed = 0;
    for (const auto& v : work.gemms) computed += v.m;
    for (const auto& z : work.zeros) zeroed += z.rows;
    EXPECT_EQ(computed, real);
    EXPECT_EQ(zeroed, c.problem.zero_padding ? rows - real : 0);
    EXPECT_LE(work.gemms.size() + work.zeros.size(), 7u);  // trailing rows are one piece at most
    ASSERT_EQ(octet_cpu_run(&plan, &args, nullptr, nullptr), OCTET_OK);
    EXPECT_EQ(d.back(), c.problem.zero_padding ? 0 : 0xa5a5);
  }
}

TEST(FieldReports, F13_EmptyGroupsAreNoWork) {
  CaseOptions options;
  options.sizes = SizeMode::kMostlyEmpty;
  HostCase c = make("masked_g256m40n96k256_maxm64_f32_seed3", options);
  const oct::core::Work work = oct::core::expand(cpu_plan(c.problem), c.args());
  int64_t rows = 0, groups = 0, computed = 0;
  for (const int64_t size : c.sizes) {
    rows += size;
    groups += size > 0;
  }
  for (const auto& v : work.gemms) computed += v.m;
  EXPECT_GT(groups, 8);
  EXPECT_LT(groups, 100);
  EXPECT_EQ(static_cast<int64_t>(work.gemms.size()), groups);
  EXPECT_EQ(computed, rows);
  ASSERT_EQ(run_and_compare(c), "");
  for (std::size_t g = 0; g < c.sizes.size(); ++g) {
    for (int64_t r = 0; r < c.sizes[g]; ++r) {
      ASSERT_TRUE(std::isfinite(d_at(c, static_cast<int64_t>(g), r, 95)));
    }
  }
}

TEST(FieldReports, F15_EveryM) {
  for (int m = 1; m <= 130; ++m) {
    expect_right("dense_m" + std::to_string(m) + "n72k200_seed" + std::to_string(m));
  }
}

TEST(FieldReports, F16_LastPartialTileOfM) {
  const std::vector<std::string> widths =
      kSanitized ? std::vector<std::string>{"130"} : std::vector<std::string>{"1024", "2048"};
  for (const char* m : {"1040", "1056", "1088"}) {
    for (const std::string& n : widths) {
      for (const char* k : {"1024", "2048"}) {
        expect_right(std::string("dense_m") + m + "n" + n + "k" + k);
      }
    }
  }
}

TEST(FieldReports, F17_ScalesOfTheSecondTile) {
  CaseOptions options;
  options.data = DataClass::kOnes;
  HostCase c = make("dense_m256n128k128_f32", options);
  for (int64_t r = 0; r < 256; ++r) c.sfa.as<float>()[r] = r < 128 ? 2.0f : 4.0f;
  ASSERT_EQ(run_and_compare(c), "");
  EXPECT_EQ(d_at(c, 0, 0, 0), 256.0f);
  EXPECT_EQ(d_at(c, 0, 127, 127), 256.0f);
  EXPECT_EQ(d_at(c, 0, 128, 0), 512.0f);
  EXPECT_EQ(d_at(c, 0, 255, 127), 512.0f);
}

TEST(FieldReports, F18_NNotAMultipleOf128) {
  for (const char* n : {"576", "2112"}) {
    for (const char* k : {"1024", "7168"}) {
      for (const char* m : {"1", "16", "32", "64", "83", "128", "256", "512"}) {
        if (kSanitized && std::stoi(k) * std::stoi(m) > 150000) continue;
        expect_right(std::string("dense_m") + m + "n" + n + "k" + k);
      }
    }
  }
}

TEST(FieldReports, F19_SmallN) {
  expect_right("dense_m64n16k1024");
  expect_right("dense_m1n16k1024_1d1d");
  expect_right("dense_m130n1k1024");
}

// Strides say how scales lie: both layouts give the same bits, and a mix-up is refused, not
// computed.
TEST(FieldReports, F20_ScaleLayouts) {
  HostCase columns = make("dense_m60n256k512_f32_seed5"),
           rows = make("dense_m60n256k512_f32_sfarow_seed5");
  ASSERT_EQ(run_and_compare(columns), "");
  ASSERT_EQ(run_and_compare(rows), "");
  for (int64_t m = 0; m < 60; ++m) ASSERT_EQ(d_at(columns, 0, m, 255), d_at(rows, 0, m, 255)) << m;
  octet_gemm_args mixed = columns.args();
  mixed.sfa = rows.args().sfa;
  const octet_gemm_plan plan = cpu_plan(columns.problem);
  EXPECT_EQ(octet_cpu_run(&plan, &mixed, nullptr, nullptr), OCTET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(octet_status_message()).find("sfa has row_stride"), std::string::npos);
}

TEST(FieldReports, F21_DeadExpertsScales) {
  HostCase c = make("dense_m40n384k512_f32");
  const octet_gemm_args args = c.args();
  for (int64_t kb = 0; kb < 4; ++kb)
    c.sfb.as<float>()[args.sfb.row_stride + kb * args.sfb.k_stride] = 1e-23f;
  ASSERT_EQ(run_and_compare(c), "");
  for (int64_t n = 128; n < 256; ++n) ASSERT_LT(std::fabs(d_at(c, 0, 39, n)), 1e-12f);
  EXPECT_GT(std::fabs(d_at(c, 0, 39, 300)), 1e-6f);
}

TEST(FieldReports, F22_StaleBytesInPadding) {
  for (const char* text :
       {"contiguous_g3m90n130k300", "offsets_g3m90n130k300", "masked_g3m20n130k300",
        "aligned_g3m90n130k300", "kgrouped_g3m33n40k150"}) {
    CaseOptions clean;
    clean.poison = false;
    HostCase x = make(text), y = make(text, clean);
    ASSERT_EQ(run_and_compare(x), "");
    ASSERT_EQ(run_and_compare(y), "");
    EXPECT_EQ(compare_results(x, y), "");
  }
}

TEST(FieldReports, F23_BlockOfZeros) {
  std::vector<float> x(2 * 256, 0.0f);
  x[300] = 3.0f;  // row 1 has something in its first block alone
  std::vector<uint8_t> codes(2 * 256, 0x55);
  std::vector<float> scales(8, -1.0f);
  octet::QuantizeArgs q;
  q.x = octet::matrix(x.data(), 2, 256);
  q.codes = octet::matrix(codes.data(), 2, 256);
  q.scales = scales.data();
  q.row_stride = 1;
  q.k_stride = 4;
  octet::cpu::quantize(q).value();
  EXPECT_EQ(scales[0], 0.0f);
  EXPECT_EQ(scales[5], 0.0f);
  octet::cpu::dequantize(q).value();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], i == 300 ? 3.0f : 0.0f);
  HostCase c = make("dense_m2n16k256_f32");
  std::memcpy(c.sfa.data(), scales.data(), sizeof(float) * 2);
  octet_gemm_args args = c.args();
  args.a = q.codes;
  args.sfa = octet::column_major_scales(scales.data(), 4);
  const octet_gemm_plan plan = cpu_plan(c.problem);
  ASSERT_EQ(octet_cpu_run(&plan, &args, nullptr, nullptr), OCTET_OK) << octet_status_message();
  for (int64_t n = 0; n < 16; ++n) EXPECT_EQ(d_at(c, 0, 0, n), 0.0f);
}

TEST(FieldReports, F24_OddPitchOfScales) {
  for (const int64_t m : {1, 5, 133, 1001}) {
    expect_right("dense_m" + std::to_string(m) + "n130k300_sfaodd_sfbodd");
  }
  HostCase c = make("dense_m133n130k300");
  octet_gemm_args args = c.args();
  args.sfa.k_stride = 133;
  const octet_gemm_plan plan = cpu_plan(c.problem);
  EXPECT_EQ(octet_check(&plan, &args), OCTET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(octet_status_message()).find("k_stride 133"), std::string::npos);
}

TEST(FieldReports, F25_AllGroupsEmpty) {
  CaseOptions empty;
  empty.sizes = SizeMode::kAllEmpty;
  for (const char* text :
       {"contiguous_g8m64n130k300", "offsets_g8m64n130k300", "masked_g8m64n130k300",
        "aligned_g8m64n130k300", "kgrouped_g8m64n130k300", "contiguous_g8m0n130k300",
        "offsets_g8m0n130k300", "masked_g8m0n130k300", "aligned_g0m0n130k300", "dense_m0n130k300",
        "batched_g0m4n130k300", "dense_m4n0k300"}) {
    expect_right(text, empty);
  }
}

TEST(FieldReports, F26_AGroupWithoutK) {
  for (const char* text : {"kgrouped_g3m40n50k128_f32", "kgrouped_g3m40n50k128_packed_f32"}) {
    HostCase c = with_sizes(text, {128, 0, 256});
    ASSERT_EQ(run_and_compare(c), "");
    for (int64_t n = 0; n < 50; ++n) EXPECT_EQ(d_at(c, 1, 39, n), 0.0f);
    HostCase added = with_sizes(std::string(text) + "_acc", {128, 0, 256});
    ASSERT_EQ(run_and_compare(added), "");
    const octet_gemm_args args = added.args();
    for (int64_t n = 0; n < 50; ++n) {
      EXPECT_EQ(d_at(added, 1, 39, n),
                added.c.as<float>()[args.c.group_stride + 39 * args.c.ld + n]);
    }
  }
}

TEST(FieldReports, F27_RowsPerExpertWithoutPadding) {
  for (const char* nk :
       {kSanitized ? "n200k6144" : "n2048k6144", kSanitized ? "n6144k200" : "n6144k2048"}) {
    HostCase c = with_sizes(std::string("offsets_g4m289") + nk, {193, 257, 321, 385});
    EXPECT_EQ(run_and_compare(c), "");
  }
}

TEST(FieldReports, F28_AlignmentOf64And128) {
  for (const char* kind : {"contiguous", "aligned"}) {
    for (const char* k : {"128", "200", "256"}) {
      for (const char* alignment : {"_align64", ""}) {
        expect_right(std::string(kind) + "_g4m128n256k" + k + alignment + "_seed28");
      }
    }
  }
}

TEST(FieldReports, F29_RefusalNamesTheStride) {
  HostCase c = make("dense_m40n64k1000");
  octet_gemm_args args = c.args();
  args.a.ld = 1000;
  const octet_gemm_plan plan = cpu_plan(c.problem);
  EXPECT_EQ(octet_cpu_run(&plan, &args, nullptr, nullptr), OCTET_INVALID_ARGUMENT);
  EXPECT_EQ(
      std::string(octet_status_message()),
      "a.ld = 1000: must be a multiple of 16 elements (16 bytes; rows of A are read by the copy "
      "engine)");
}

// Nothing is allocated or run to answer: sizes far beyond any memory are answered too.
TEST(FieldReports, F30_SupportsAnswersBeforehand) {
  const auto cpu = octet::DeviceSpec::preset("cpu").value();
  const auto h200 = octet::DeviceSpec::preset("h200").value();
  for (const char* text : {"dense_m128n2048k4096", "dense_m129n2048k4096", "dense_m129n2048k8192",
                           "dense_m2147483647n2147483647k2147483647"}) {
    const auto p = octet::GemmProblem::parse(text).value();
    EXPECT_EQ(octet::supports(p, cpu).message(), "");
    const octet::Status status = octet::supports(p, h200);
    EXPECT_TRUE(status.ok() || (status.code() == OCTET_UNSUPPORTED && !status.message().empty()));
  }
}

TEST(FieldReports, F31_FewTokensPerExpertAreFewRows) {
  std::vector<int64_t> sizes;
  int64_t real = 0;
  for (int64_t g = 0; g < 128; ++g) {
    sizes.push_back(1 + g % 4);
    real += sizes.back();
  }
  for (const char* text : {"offsets_g128m3n64k256", "masked_g128m3n64k256_maxm64"}) {
    HostCase c = with_sizes(text, sizes);
    const oct::core::Work work = oct::core::expand(cpu_plan(c.problem), c.args());
    int64_t rows = 0;
    for (const auto& v : work.gemms) rows += v.m;
    EXPECT_EQ(rows, real);
    EXPECT_EQ(run_and_compare(c), "");
  }
}

}  // namespace
