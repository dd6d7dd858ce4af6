// Planning is pure: a plan depends on its arguments alone, not on how the calling thread rounds,
// what it traps, or which variants of functions the C library chose for the processor.
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/octet.hpp"
#include "plan/candidates.h"
#include "plan/invariant_split.h"
#include "plan/longer_of_two.h"
#include "support/problems.h"

namespace {

using namespace octet;
using oct::testing_support::Random;

// Restores the thread's floating-point environment, whatever a test did to it.
class Environment {
 public:
  Environment() { std::fegetenv(&saved_); }
  ~Environment() { std::fesetenv(&saved_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::fenv_t saved_;
};

std::vector<GemmProblem> dense_problems(int count) {
  std::vector<GemmProblem> problems;
  problems.push_back(GemmProblem::parse("dense_m28n1536k7168").value());
  Random random(11);
  while (static_cast<int>(problems.size()) < count) {
    GemmProblem p;
    p.m = random.log_uniform(1, 20000);
    p.n = random.log_uniform(64, 20000);
    p.k = random.log_uniform(128, 20000);
    problems.push_back(p);
  }
  return problems;
}

TEST(Plan, IgnoresTheCallersRoundingMode) {
  const Environment restored;
  const DeviceSpec device = DeviceSpec::preset("h200").value();
  for (const GemmProblem& p : dense_problems(400)) {
    std::fesetround(FE_TONEAREST);
    const GemmPlan want = plan_gemm(p, device).value();
    const std::string reasons = explain(p, device).value();
    for (const int mode : {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
      std::fesetround(mode);
      const GemmPlan got = plan_gemm(p, device).value();
      EXPECT_EQ(std::fegetround(), mode);
      EXPECT_EQ(got.to_string(), want.to_string());
      EXPECT_EQ(explain(p, device).value(), reasons);
      EXPECT_EQ(GemmPlan::parse(want.to_string()).value(), want);
    }
  }
}

// The quick search leaves most predictions unfinished; it must not leave out the cheapest.
TEST(Plan, TheQuickSearchFindsTheFirstOfTheList) {
  Random random(13);
  int found = 0;
  for (int i = 0; i < 6000; ++i) {
    GemmProblem p;
    p.m = random.log_uniform(1, 20000);
    p.n = random.log_uniform(8, 40000);
    p.k = random.log_uniform(16, 30000);
    if (random.chance(0.25)) {
      p.grouping = OCTET_BATCHED;
      p.groups = random.log_uniform(1, 64);
    }
    if (random.chance(0.2)) p.d_type = OCTET_F32;
    if (random.chance(0.2)) p.accumulate = 1;
    if (random.chance(0.2)) p.batch_invariant = 1;
    if (random.chance(0.2)) p.split = static_cast<std::int32_t>(random.between(1, 20));
    const DeviceSpec device = DeviceSpec::preset(random.pick({"h200", "h20", "h100_pcie"})).value();
    if (random.chance(0.2)) {
      p.sm_budget = static_cast<std::int32_t>(random.between(1, device.sms));
    }
    const int split = oct::plan::fixed_split(p);
    const auto all = oct::plan::list_candidates(p, device, split, nullptr);
    const auto best = oct::plan::cheapest(p, device, split);
    ASSERT_EQ(best.has_value(), !all.empty()) << p.to_string();
    if (!best) continue;
    ++found;
    EXPECT_EQ(best->kernel, all[0].kernel) << p.to_string();
    EXPECT_EQ(best->split, all[0].split) << p.to_string();
    EXPECT_EQ(best->ctas, all[0].ctas) << p.to_string();
    EXPECT_EQ(best->cost.total(), all[0].cost.total()) << p.to_string();
  }
  EXPECT_GT(found, 5000);
}

// Against the C library's pow, which is right to less than a unit of its last place.
TEST(Plan, LongerOfTwoIsThePowerMean) {
  Random random(12);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::exp(random.unit() * 30 - 10), y = x * std::exp(random.unit() * 24 - 12);
    const double want = std::pow(std::pow(x, 3.8) + std::pow(y, 3.8), 1 / 3.8);
    EXPECT_NEAR(oct::plan::longer_of_two(x, y) / want, 1, 4e-15) << x << " " << y;
    EXPECT_EQ(oct::plan::longer_of_two(x, y), oct::plan::longer_of_two(y, x));
  }
  EXPECT_EQ(oct::plan::longer_of_two(0, 0), 0);
  EXPECT_EQ(oct::plan::longer_of_two(0, 7.5), 7.5);
  EXPECT_EQ(oct::plan::longer_of_two(3, 3), 3 * oct::plan::longer_of_two(1, 1));
}

}  // namespace
