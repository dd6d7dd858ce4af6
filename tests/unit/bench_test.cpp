// The benchmark's parts that need no device: floors against those of the dense baseline, regimes,
// statistics, layouts of operands, which plans are timed, and what is written.
#include "bench.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench_floor.h"
#include "bench_layout.h"
#include "bench_report.h"
#include "bench_statistics.h"
#include "cases_file.h"
#include "check_failed.h"
#include "core/groups.h"
#include "octet/octet.hpp"
#include "support/group_sizes.h"
#include "support/ownership.h"

namespace {

using namespace octet;
using namespace octet::tool;

GemmProblem problem(const std::string& text) { return GemmProblem::parse(text).value(); }
double floor_of(const std::string& text) {
  const GemmProblem p = problem(text);
  return floor_us(work_of(p), p.in_type);
}

// Floors of an H200 in the dense baseline, in microseconds, rounded to 0.1.
constexpr int kRows[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
struct Weight {
  int n, k;
  double floors[12];
};
constexpr Weight kBaseline[] = {
    {2112, 7168, {5.3, 5.3, 5.3, 5.3, 5.4, 5.6, 6.6, 11.3, 20.5, 39.1, 76.2, 150.3}},
    {576, 7168, {2.9, 2.9, 2.9, 2.9, 3.0, 3.1, 3.4, 4.5, 7.1, 12.1, 22.2, 42.5}},
    {24576, 1536, {10.2, 10.2, 10.3, 10.5, 10.9, 11.6, 13.6, 25.1, 48.2, 94.5, 187.0, 371.9}},
    {32768, 512, {5.6, 5.7, 5.9, 6.1, 6.5, 7.4, 9.3, 12.9, 22.6, 43.1, 84.2, 166.4}},
    {7168, 16384, {27.4, 27.4, 27.5, 27.6, 27.8, 28.2, 38.0, 73.9, 145.9, 289.7, 577.4, 1152.8}},
    {4096, 7168, {8.3, 8.4, 8.4, 8.4, 8.6, 8.8, 11.0, 20.0, 38.0, 73.9, 145.9, 289.7}},
    {7168, 2048, {5.2, 5.2, 5.2, 5.3, 5.4, 5.6, 6.5, 11.0, 20.0, 38.0, 73.9, 145.9}},
    {18432, 7168, {30.5, 30.6, 30.7, 30.8, 31.1, 31.8, 42.5, 82.9, 163.8, 325.7, 649.3, 1296.7}},
    {7168, 18432, {30.5, 30.6, 30.6, 30.8, 31.0, 31.4, 42.5, 82.9, 163.8, 325.7, 649.3, 1296.7}}};

TEST(BenchFloor, IsTheBaselinesInEveryRow) {
  for (const Weight& w : kBaseline) {
    for (int i = 0; i < 12; ++i) {
      GemmProblem p;
      p.m = kRows[i];
      p.n = w.n;
      p.k = w.k;
      EXPECT_EQ(std::round(floor_us(work_of(p), p.in_type) * 10) / 10, w.floors[i])
          << p.to_string();
    }
  }
}

TEST(BenchFloor, CountsWhatAProblemMoves) {
  // In the baseline of BF16 and of weight gradients.
  EXPECT_NEAR(floor_of("dense_m4096n7168k2048_bf16in"), 145.9, 0.05);
  EXPECT_NEAR(floor_of("dense_m1n7168k16384_bf16in"), 52.7, 0.05);
  EXPECT_NEAR(floor_of("dense_m7168n4096k2048_1d1d_f32_acc"), 73.9, 0.05);
  EXPECT_NEAR(floor_of("masked_g6m20n7168k3072"), 31.0, 0.05);
  EXPECT_NEAR(floor_of("batched_g4m16n7168k2048"), 2 + 4 * (floor_of("dense_m16n7168k2048") - 2),
              1e-9);
  const Work plain = work_of(problem("dense_m64n128k256"));
  EXPECT_EQ(plain.bytes, 64 * 256 + 128 * 256 + 2 * 64 * 128);
  EXPECT_EQ(plain.flops, 2.0 * 64 * 128 * 256);
  EXPECT_EQ(work_of(problem("dense_m64n128k256_f32_acc")).bytes,
            64 * 256 + 128 * 256 + 8 * 64 * 128);
  const Work grouped = work_of(problem("kgrouped_g4m64n128k256_f32"));
  EXPECT_EQ(grouped.bytes, 4 * (64 * 256 + 128 * 256 + 4 * 64 * 128));
  EXPECT_EQ(grouped.flops, 4 * plain.flops);
}

TEST(BenchFloor, Regimes) {
  const std::pair<const char*, const char*> expected[] = {
      {"dense_m64n576k7168", "dense decode M<=64"},
      {"dense_m65n576k7168", "dense mid 128-2048"},
      {"dense_m2048n576k7168", "dense mid 128-2048"},
      {"dense_m4096n576k7168", "dense large >=4096"},
      {"dense_m64n576k7168_pdl", "dense with options"},
      {"dense_m64n576k7168_f32", "dense with options"},
      {"dense_m64n576k7168_bf16in", "BF16 dense"},
      {"dense_m2112n4096k7168_1d1d_f32_acc", "weight gradient"},
      {"kgrouped_g4m4096n7168k8192_f32_acc", "weight gradient"},
      {"batched_g4m16n7168k2048", "batched"},
      {"masked_g32m192n4096k2048", "masked 192/1024 rows"},
      {"masked_g32m20n4096k2048", "masked 20 rows"},
      {"contiguous_g32m256n4096k2048", "contiguous 32x256"},
      {"offsets_g32m256n4096k2048", "offsets 32x256 (unpadded)"},
      {"contiguous_g4m8192n4096k2048", "contiguous/aligned large"},
      {"aligned_g4m8192n4096k2048", "contiguous/aligned large"}};
  for (const auto& [text, regime] : expected) EXPECT_EQ(regime_of(problem(text)), regime) << text;
}

TEST(BenchStatistics, MedianSpreadAndMean) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(spread({10, 9, 11}), 0.2);
  EXPECT_EQ(spread({}), 0);
  EXPECT_NEAR(geometric_mean({1, 4, 16}), 4, 1e-12);
  EXPECT_EQ(geometric_mean({}), 0);
}

// Every set passes the rules of a call, sets share no byte, and together they exceed the caches.
TEST(BenchLayout, SetsAreValidApartAndCold) {
  for (const char* text :
       {"dense_m1n2112k7168", "dense_m8192n32768k512", "dense_m100n103k103_f32_acc_biasbf16",
        "dense_m64n256k384_sfarow_sfbcol_f16", "dense_m33n256k384_sfaodd_sfbodd",
        "dense_m64n256k1000_1d1d_f32", "dense_m7n264k1000_bf16in",
        "batched_g3m100n200k300_bias_acc", "contiguous_g5m100n200k300", "offsets_g9m33n72k200_i64",
        "aligned_g9m33n72k200_align8_acc", "masked_g6m20n4096k2048_bias"}) {
    const GemmProblem p = problem(text);
    const OperandLayout x = layout_of(p);
    const bool own = p.grouping == OCTET_BATCHED || p.grouping == OCTET_MASKED;
    ASSERT_GE(x.sets, kFewestSets);
    const std::pair<const OperandExtent*, std::int64_t> extents[] = {{&x.a, 0},   {&x.b, 1},
                                                                     {&x.sfa, 2}, {&x.sfb, 3},
                                                                     {&x.c, 4},   {&x.d, 5},
                                                                     {&x.bias, 6}};
    std::int64_t bytes = 0;
    char* base[7];
    for (const auto& [extent, i] : extents) {
      EXPECT_EQ(extent->bytes % 256, 0);
      bytes += extent->bytes;
      base[i] = reinterpret_cast<char*>((i + 1) << 40);  // addresses alone are looked at
    }
    EXPECT_GT(bytes * x.sets, kColdBytes) << text;
    const OperandBases bases{base[0], base[1], base[2],
                             base[3], base[4], base[5],
                             base[6], nullptr, reinterpret_cast<char*>(9ll << 40)};
    const GemmPlan plan = plan_gemm(p, DeviceSpec::preset("cpu").value()).value();
    for (const int set : {0, 1, x.sets - 1}) {
      const GemmArgs args = args_of(p, x, bases, set, 0);
      EXPECT_EQ(check(plan, args).message(), "") << text;
      EXPECT_EQ(static_cast<char*>(args.b.data) - base[1], set * x.b.bytes);
    }
    // What a set's matrices reach fits its part of the buffer.
    const std::int64_t last = (p.groups - 1) * x.b.group_stride + (p.n - 1) * x.b.ld + p.k;
    EXPECT_LE(last * (p.in_type == OCTET_BF16 ? 2 : 1), x.b.bytes) << text;
    EXPECT_LE((((own ? p.groups : 1) - 1) * x.d.group_stride + (x.groups.rows - 1) * x.d.ld + p.n) *
                  (p.d_type == OCTET_F32 ? 4 : 2),
              x.d.bytes);
  }
}

// K of each group, where it starts, and what the floor counts.
TEST(BenchGroups, GroupsOverKAreWhatTheStringSays) {
  for (const char* text : {"kgrouped_g6m256n264k512_f32_acc", "kgrouped_g5m40n72k300_i64_seed5",
                           "kgrouped_g7m40n72k300_packed", "kgrouped_g3m40n72k1_even"}) {
    const GemmProblem p = problem(text);
    const auto sizes =
        oct::testing_support::draw_group_sizes(p, oct::testing_support::SizeMode::kSeeded);
    EXPECT_EQ(group_sizes(p), sizes) << text;
    const OperandLayout x = layout_of(p);
    EXPECT_EQ(x.groups.real_k, std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
    EXPECT_EQ(x.groups.rows, p.m);
    // A run reads the metadata without clamping anything.
    std::vector<char> metadata(x.groups.metadata.begin(), x.groups.metadata.end());
    char* base[7];
    for (std::int64_t i = 0; i < 7; ++i) base[i] = reinterpret_cast<char*>((i + 1) << 40);
    const OperandBases bases{base[0], base[1], base[2], base[3],        base[4],
                             base[5], base[6], nullptr, metadata.data()};
    const GemmPlan plan = plan_gemm(p, DeviceSpec::preset("cpu").value()).value();
    const GemmArgs args = args_of(p, x, bases, 1, 0);
    EXPECT_EQ(check(plan, args).message(), "") << text;
    std::int64_t start = 0;
    for (std::size_t g = 0; g < sizes.size(); ++g) {
      const oct::core::Range k = oct::core::group_k(p, args, static_cast<std::int64_t>(g), start);
      EXPECT_EQ(k.first, start) << text;
      EXPECT_EQ(k.last - k.first, sizes[g]) << text;
      start += (sizes[g] + 127) / 128 * 128;
    }
    EXPECT_EQ(start, x.groups.cols) << text;
  }
}

// The sizes that a problem string stands for, as the tests draw them, and metadata that a run
// reads without clamping anything.
TEST(BenchGroups, SizesAndMetadataAreWhatTheStringSays) {
  for (const char* text :
       {"contiguous_g5m100n200k300", "contiguous_g3m70n200k300_align64_even",
        "offsets_g9m33n72k200_i64_seed5", "offsets_g40m1n72k200", "aligned_g9m33n72k200_align8",
        "masked_g6m20n4096k2048", "masked_g6m200n96k48_maxm130"}) {
    const GemmProblem p = problem(text);
    const auto sizes =
        oct::testing_support::draw_group_sizes(p, oct::testing_support::SizeMode::kSeeded);
    EXPECT_EQ(group_sizes(p), sizes) << text;
    const GroupLayout groups = group_layout(p);
    const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    EXPECT_EQ(groups.real_rows, sum) << text;
    GemmArgs args;
    args.a.rows = args.d.rows = groups.rows;
    args.group_index = args.group_offsets = args.group_ends = args.group_counts =
        groups.metadata.data();
    std::vector<std::int64_t> owned(sizes.size());
    for (const std::int64_t owner : oct::testing_support::row_owners(p, args)) {
      if (owner >= 0) ++owned[static_cast<std::size_t>(owner)];
    }
    EXPECT_EQ(owned, sizes) << text;
  }
  EXPECT_EQ(group_layout(problem("dense_m100n200k300")).rows, 100);
  EXPECT_EQ(group_layout(problem("batched_g3m100n200k300")).real_rows, 300);
}

TEST(BenchLayout, ReplaysAreLongAndUseEverySetEquallyOften) {
  for (const double us : {0.6, 2.0, 5.3, 100.0, 5000.0}) {
    for (const int sets : {3, 18, 66}) {
      const int launches = launches_for(us, sets);
      EXPECT_GE(launches * us, kLeastReplayUs);
      EXPECT_EQ(launches % sets, 0);
      EXPECT_LT((launches - sets) * us, kLeastReplayUs);
    }
  }
}

TEST(BenchPlans, TheChoiceForcedKernelsAndCandidates) {
  const DeviceSpec h200 = DeviceSpec::preset("h200").value();
  const GemmProblem p = problem("dense_m16n7168k2048");
  const auto all = plan_candidates(p, h200, 1000).value();
  BenchOptions options;
  ASSERT_EQ(choose_plans(options, p, h200).size(), 1u);
  EXPECT_EQ(choose_plans(options, p, h200)[0].plan, plan_gemm(p, h200).value());
  options.candidates = 5;
  ASSERT_EQ(choose_plans(options, p, h200).size(), 5u);
  EXPECT_EQ(choose_plans(options, p, h200)[4].candidate, 4);
  EXPECT_EQ(choose_plans(options, p, h200)[4].plan, all[4]);
  // A whole name is that kernel, not those that begin so.
  options.candidates = 1000;
  options.force = "swapped_w64t16_k4";
  for (const ChosenPlan& c : choose_plans(options, p, h200)) {
    EXPECT_EQ(c.plan.kernel, options.force);
    EXPECT_EQ(c.plan, all[static_cast<std::size_t>(c.candidate)]);
  }
  options.force_split = 8;
  ASSERT_EQ(choose_plans(options, p, h200).size(), 1u);
  EXPECT_EQ(kernel_and_split(choose_plans(options, p, h200)[0].plan), "swapped_w64t16_k4:8");
  options.force = "swapped_w64";
  options.force_split = 0;
  std::set<std::string> kernels;
  for (const ChosenPlan& c : choose_plans(options, p, h200)) kernels.insert(c.plan.kernel);
  EXPECT_GT(kernels.size(), 3u);
  options.force = "normal_m1n1";
  try {
    choose_plans(options, p, h200);
    ADD_FAILURE() << "no kernel has this name";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "dense_m16n7168k2048: none of its " + std::to_string(all.size()) +
                                " candidates is normal_m1n1 (`octet plan --json` lists them, and "
                                "why other kernels are none)");
  }
}

BenchRow row(const std::string& text, double us, double floor) {
  BenchRow r;
  r.problem = text;
  r.regime = regime_of(problem(text));
  r.us = us;
  r.floor_us = floor;
  r.plan = text + " @ h200: kernel=x split=1";
  r.kernel = "x:1";
  return r;
}

TEST(BenchReport, CsvRows) {
  EXPECT_EQ(csv_field("a b"), "a b");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
  BenchRow r = row("dense_m16n7168k2048", 7, 5);
  EXPECT_EQ(csv_line(r),
            "dense_m16n7168k2048,7.000,5.000,1.4000,,,dense_m16n7168k2048 @ h200: kernel=x "
            "split=1,,,,,,,");
  r.cublaslt_us = 10;
  r.pdl_us = 5.5;
  r.block_us = 14;
  r.spread = 0.0123;
  r.cublaslt_fastest_us = 9;
  r.candidate = 2;
  EXPECT_EQ(csv_line(r),
            "dense_m16n7168k2048,7.000,5.000,1.4000,10.000,0.7000,dense_m16n7168k2048 @ h200: "
            "kernel=x split=1,5.500,14.000,0.0123,,,9.000,2");
  EXPECT_EQ(csv_columns().substr(0, 65),
            "problem,us,floor_us,over_floor,cublaslt_us,over_cublaslt,plan,pdl");
}

TEST(BenchReport, TheFileIsWholeAtAnyMoment) {
  const std::string path = testing::TempDir() + "octet_bench_report.csv";
  const auto contents = [&] {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  };
  CsvWriter csv;
  csv.comment("lost", "not open yet");
  std::string why_not;
  ASSERT_TRUE(csv.open(path, {{"gpu", "a\nb"}}, why_not));
  EXPECT_EQ(contents(), "# gpu: a b\n" + csv_columns() + "\n");
  csv.row(row("dense_m16n7168k2048", 7, 5));
  EXPECT_EQ(contents().back(), '\n');
  EXPECT_NE(contents().find("\ndense_m16n7168k2048,7.000,"), std::string::npos);
  std::remove(path.c_str());
  CsvWriter nowhere;
  EXPECT_FALSE(nowhere.open("/nonexistent/x.csv", {}, why_not));
  EXPECT_EQ(why_not, "--csv /nonexistent/x.csv: cannot be written (No such file or directory)");
  CsvWriter full;
  try {
    full.open("/dev/full", {}, why_not);
    ADD_FAILURE() << "a full disk was not told";
  } catch (const CheckFailed& error) {
    EXPECT_STREQ(
        error.what(),
        "--csv /dev/full: writing failed (No space left on device); what was written before "
        "is in it");
  }
}

TEST(BenchReport, SummariesByRegime) {
  std::vector<BenchRow> rows{row("dense_m16n7168k2048", 10, 5), row("dense_m16n576k7168", 9, 2),
                             row("dense_m4096n4096k7168", 11, 10)};
  rows[0].cublaslt_us = 5;
  rows[1].pdl_us = 2;
  BenchRow refused;
  refused.problem = "dense_m1n1k1";
  refused.regime = "dense decode M<=64";
  rows.push_back(refused);
  const auto summaries = summarize(rows);
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].regime, "dense decode M<=64");
  EXPECT_EQ(summaries[0].rows, 2u);
  EXPECT_NEAR(summaries[0].over_floor, 3, 1e-12);
  EXPECT_EQ(summaries[0].worst_over_floor, 4.5);
  EXPECT_EQ(summaries[0].worst_problem, "dense_m16n576k7168");
  EXPECT_EQ(summaries[0].over_cublaslt, 2);
  EXPECT_EQ(summaries[0].pdl_over_floor, 1);
  EXPECT_EQ(summaries[1].over_cublaslt, 0);
  EXPECT_NE(table_summary(rows).find("over floor 3.000 (worst 4.50 dense_m16n576k7168)"),
            std::string::npos);
  EXPECT_NE(report_json({{"gpu", "x"}}, rows).find("\"over_cublaslt\": 2.0"), std::string::npos);
}

TEST(BenchReport, ThePlannersChoiceAgainstTheFastest) {
  std::vector<BenchRow> rows;
  const auto add = [&](const char* text, int candidate, double us) {
    rows.push_back(row(text, us, 1));
    rows.back().candidate = candidate;
  };
  add("dense_m16n7168k2048", 0, 8);
  add("dense_m16n7168k2048", 1, 4);
  add("dense_m16n576k7168", 0, 4);
  add("dense_m16n576k7168", 1, 6);
  add("dense_m1n576k7168", 3, 6);  // its choice was not measured
  const ChoiceSummary c = summarize_choices(rows);
  EXPECT_EQ(c.problems, 2u);
  EXPECT_NEAR(c.mean_loss, std::sqrt(2.0), 1e-12);
  EXPECT_EQ(c.worst_loss, 2);
  EXPECT_EQ(c.worst_problem, "dense_m16n7168k2048");
  // Other candidates do not count as results of their problem.
  ASSERT_EQ(summarize(rows).size(), 1u);
  EXPECT_EQ(summarize(rows)[0].rows, 2u);
}

TEST(BenchCases, TheFilesAreOfProblems) {
  std::vector<GemmProblem> problems;
  read_cases(OCTET_SOURCE_DIR "/cases/dense.txt", problems);
  ASSERT_EQ(problems.size(), 108u);
  std::set<std::string> expected, got;
  for (const Weight& w : kBaseline) {
    for (const int m : kRows) {
      expected.insert("dense_m" + std::to_string(m) + "n" + std::to_string(w.n) + "k" +
                      std::to_string(w.k));
    }
  }
  for (const GemmProblem& p : problems) got.insert(p.to_string());
  EXPECT_EQ(got, expected);

  const std::string path = testing::TempDir() + "octet_cases.txt";
  const auto refusal = [&](const std::string& text) {
    std::ofstream(path) << text;
    try {
      read_cases(path, problems);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("# remark\n\n  dense_m1n2k3  # remark\n"), "");
  EXPECT_EQ(problems.back().to_string(), "dense_m1n2k3");
  EXPECT_EQ(refusal("dense_m1n2k3\ndense_m1\n").substr(0, path.size() + 2), path + ":2");
  problems.clear();
  EXPECT_EQ(refusal("# nothing\n"), "--file " + path + ": holds no problem string");
  std::remove(path.c_str());
}

TEST(BenchChain, HasTheWeightsOfALayer) {
  const auto chain = chain_problems(16);
  ASSERT_EQ(chain.size(), 8u);
  std::int64_t bytes = 0;
  for (const GemmProblem& p : chain) {
    EXPECT_EQ(p.m, 16);
    bytes += p.n * p.k;
  }
  EXPECT_GT(bytes, kColdBytes);
}

}  // namespace
