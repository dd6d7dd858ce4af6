// What `octet tune` makes of measurements, without a device: the fastest candidate of each problem,
// the CSV of a run, files of tables; and plans chosen with a table.
#include "tune.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench.h"
#include "cases_file.h"
#include "table_file.h"

namespace {

using namespace octet;
using namespace octet::tool;

const DeviceSpec& h200() {
  static const DeviceSpec device = DeviceSpec::preset("h200").value();
  return device;
}
GemmPlan candidate(const std::string& problem, int index) {
  return plan_candidates(GemmProblem::parse(problem).value(), h200(), index + 1).value().back();
}
BenchRow row(const std::string& problem, int index, double us) {
  BenchRow r;
  r.problem = problem;
  r.plan = candidate(problem, index).to_string();
  r.candidate = index;
  r.us = us;
  return r;
}
template <typename Body>
std::string refusal(Body body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Tune, TakesTheFastestOfEachProblem) {
  std::vector<BenchRow> rows{row("dense_m16n7168k2048", 0, 7), row("dense_m16n7168k2048", 1, 6),
                             row("dense_m16n7168k2048", 2, 6), row("dense_m1n576k7168", 0, 5),
                             row("dense_m1n576k7168", 1, 5.5)};
  rows.push_back(row("dense_m1n576k7168", 2, 1));
  rows.back().plan = "dense_m1n576k7168 @ h200: kernel=gone split=1";
  rows.push_back(row("dense_m1n576k7168", 3, 1));
  rows.back().us.reset();
  const std::vector<GemmPlan> plans = fastest_plans(rows);
  ASSERT_EQ(plans.size(), 2u);
  GemmPlan want = candidate("dense_m16n7168k2048", 1);  // of equals the cheaper prediction
  want.predicted_us = 6;
  EXPECT_EQ(plans[0], want);
  want = candidate("dense_m1n576k7168", 0);
  want.predicted_us = 5;
  EXPECT_EQ(plans[1], want);
}

TEST(Tune, TablesKeepTheRecordAndJoin) {
  const BenchHeader header{{"date", "today"}, {"gpu", "NVIDIA\tH200"}, {"commit", "x"}};
  TunedTable table = empty_table(header, h200());
  EXPECT_EQ(table.to_string(),
            "octet tuned table 1\ndevice: h200\nsms: 132\ngpu: NVIDIA?H200\ndate: today\n");
  GemmPlan plan = candidate("dense_m16n7168k2048", 2);
  plan.predicted_us = 3;
  table.set(plan).value();
  const TunedTable joined = with_header(empty_table({{"date", "tomorrow"}}, h200()), table);
  EXPECT_NE(joined.to_string().find("date: tomorrow\ndense_m16n7168k2048: kernel="),
            std::string::npos);
  EXPECT_EQ(joined.to_string().find("today"), std::string::npos);
  EXPECT_TRUE(is_table_of(joined, h200()));
  DeviceSpec part = h200();
  part.sms = 13;
  EXPECT_FALSE(is_table_of(joined, part));
  EXPECT_FALSE(is_table_of(joined, DeviceSpec::preset("h20").value()));

  BenchOptions options;
  options.table = std::make_shared<TunedTable>(TunedTable::parse(joined.to_string()).value());
  const GemmProblem p = GemmProblem::parse("dense_m16n7168k2048").value();
  ASSERT_EQ(choose_plans(options, p, h200()).size(), 1u);
  EXPECT_EQ(choose_plans(options, p, h200())[0].plan, plan);
}

TEST(Tune, ReadsTheCsvOfARun) {
  const std::string path = testing::TempDir() + "octet_tune.csv";
  std::vector<BenchRow> rows{row("dense_m16n7168k2048", 0, 7), row("dense_m16n7168k2048", 1, 6),
                             row("dense_m1n576k7168", 0, 5)};
  {
    CsvWriter csv;
    std::string why_not;
    ASSERT_TRUE(csv.open(path, {{"gpu", "NVIDIA H200"}, {"date", "today"}}, why_not));
    for (const BenchRow& r : rows) csv.row(r);
  }
  CandidateRun run = read_candidates(path);
  ASSERT_EQ(run.rows.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(run.rows[i].problem, rows[i].problem);
    EXPECT_EQ(run.rows[i].plan, rows[i].plan);
    EXPECT_EQ(run.rows[i].us, rows[i].us);
    EXPECT_EQ(run.rows[i].candidate, rows[i].candidate);
  }
  EXPECT_EQ(run.header[0], (std::pair<std::string, std::string>{"gpu", "NVIDIA H200"}));
  EXPECT_STREQ(device_of(run, path).name, "h200");
  // Of an interrupted run the last problem does not count.
  std::ofstream(path, std::ios::app) << "# stopped: interrupted\n";
  run = read_candidates(path);
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_EQ(run.rows.back().problem, "dense_m16n7168k2048");

  const auto refused = [&](const std::string& text) {
    std::ofstream(path) << text;
    return refusal([&] { device_of(read_candidates(path), path); });
  };
  const std::string plan = candidate("dense_m1n576k7168", 0).to_string();
  EXPECT_EQ(refused("problem,us,plan\n"),
            path +
                ":1: no column candidate: must be what `octet bench --candidates N --csv` writes");
  EXPECT_EQ(refused("problem,us,plan,candidate\na,b\n"),
            path + ":2: 2 fields: must be 4, as columns");
  EXPECT_EQ(refused("problem,us,plan,candidate\na,fast,b,0\n"),
            path + ":2: us = fast: must be microseconds");
  EXPECT_EQ(refused("problem,us,plan,candidate\na,1,b,\n"),
            path +
                ":2: column candidate is empty: must be a number, as `octet bench --candidates N "
                "--csv` writes it");
  EXPECT_EQ(refused("problem,us,plan,candidate\na,,b,1\n"),
            path +
                ":2: column us is empty: must be a number, as `octet bench --candidates N --csv` "
                "writes it");
  EXPECT_EQ(refused("problem,us,plan,candidate\na,1,b,one\n"),
            path + ":2: candidate = one: must be a number");
  EXPECT_EQ(refused("problem,us,plan,candidate\na,1,b,0\n"),
            "--from " + path + ": \"b\" is no plan");
  EXPECT_EQ(refused("# nothing\n"), "--from " + path + ": holds no measurement");
  EXPECT_EQ(refused("problem,us,plan,candidate\na,1," + plan + ",0\na,1,x @ h20: kernel=y,1\n"),
            "--from " + path + ": plans of h200 and of h20: must be of one device");
  EXPECT_EQ(refused("problem,us,plan,candidate\ndense_m2n576k7168,1," + plan + ",0\n"),
            "--from " + path + ": problem dense_m2n576k7168 has the plan \"" + plan +
                "\": must be a plan of that problem");
  std::remove(path.c_str());
  EXPECT_EQ(refusal([&] { read_candidates(path); }), "--from " + path + ": cannot be read");
}

TEST(Tune, OfProblemsATableDoesNotTellApartTheFastestStays) {
  std::vector<GemmPlan> plans;
  for (const auto& [problem, index, us] : {std::tuple{"dense_m16n576k7168", 0, 5.0},
                                           {"dense_m16n576k7168_bias", 1, 3.0},
                                           {"dense_m16n576k7168_f16", 2, 4.0}}) {
    plans.push_back(candidate(problem, index));
    plans.back().predicted_us = us;
  }
  std::sort(plans.begin(), plans.end(),
            [](const GemmPlan& x, const GemmPlan& y) { return x.predicted_us < y.predicted_us; });
  do {
    TunedTable table = empty_table({}, h200());
    set_fastest(table, plans);
    EXPECT_NE(table.to_string().find("us=3.000"), std::string::npos) << table.to_string();
  } while (std::next_permutation(plans.begin(), plans.end(), [](const auto& x, const auto& y) {
    return x.predicted_us < y.predicted_us;
  }));
}

TEST(Tune, WhatMayNeverEndIsNotRead) {
  const std::string pipe = testing::TempDir() + "octet_tune_pipe";
  std::remove(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::vector<GemmProblem> problems;
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    EXPECT_EQ(refusal([&] { read_table("--table", path); }),
              "--table " + path + ": is not a regular file");
    EXPECT_EQ(refusal([&] { read_candidates(path); }),
              "--from " + path + ": is not a regular file");
    EXPECT_EQ(refusal([&] { read_cases(path, problems); }),
              "--file " + path + ": is not a regular file");
  }
  std::remove(pipe.c_str());
}

TEST(Tune, TablesAreRead) {
  const std::string path = testing::TempDir() + "octet_tune_table.txt";
  const std::string text = empty_table({}, h200()).to_string();
  std::ofstream(path) << text;
  EXPECT_EQ(read_table("--table", path).to_string(), text);
  std::ofstream(path) << "something\n";
  EXPECT_EQ(refusal([&] { read_table("--table", path); }),
            "--table " + path + ": tuned table, line 1: expected \"octet tuned table 1\"");
  std::remove(path.c_str());
  EXPECT_EQ(refusal([&] { read_table("--table", path); }), "--table " + path + ": cannot be read");
  EXPECT_EQ(refusal([&] { read_table("--table", testing::TempDir()); }),
            "--table " + testing::TempDir() + ": cannot be read");
  EXPECT_EQ(refusal([&] { require_writable("-o", "/nonexistent/x"); }),
            "-o /nonexistent/x: cannot be written (No such file or directory)");
  EXPECT_EQ(refusal([&] { require_writable("-o", testing::TempDir()); }),
            "-o " + testing::TempDir() + ": is a folder: must be a file");
  EXPECT_EQ(refusal([&] { require_writable("-o", "octet_tune_table.txt"); }), "");
}

}  // namespace
