// Plans as values and as text: they survive printing, name the place of every error, refuse what
// contradicts itself; and the candidates and the split that they are made of. Through the public
// interface.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/octet.hpp"
#include "support/problems.h"
#include "text_tests.h"

namespace {

using namespace octet;
using namespace octet_text_tests;
using oct::testing_support::draw_any_problem;
using oct::testing_support::draw_problem;
using oct::testing_support::Random;

TEST(Plan, RoundTripsAndCompares) {
  Random random(6);
  std::size_t longest = 0;
  for (int i = 0; i < 5000; ++i) {
    GemmPlan plan = plan_gemm(wrap(draw_any_problem(random)), cpu_device()).value();
    EXPECT_STREQ(plan.kernel, "cpu");
    if (plan.problem.split == 0 && !plan.problem.batch_invariant) {
      plan.split = static_cast<int32_t>(random.between(1, 64));
    }
    plan.sms = static_cast<int32_t>(random.between(0, 200));
    plan.workspace_bytes = random.log_uniform(1, int64_t{1} << 40) - 1;
    plan.predicted_us = std::exp2(random.unit() * 60 - 20);
    const std::string text = plan.to_string();
    longest = std::max(longest, text.size());
    const auto back = GemmPlan::parse(text);
    ASSERT_EQ(back.message(), "");
    ASSERT_TRUE(back.value() == plan) << text;
    ASSERT_EQ(back.value().to_string(), text);
    for (int field = 0; field < 7; ++field) {
      GemmPlan other = plan;
      switch (field) {
        case 0: other.split = plan.split % 64 + 1; break;
        case 1: other.sms += 1; break;
        case 2: other.workspace_bytes += 1; break;
        case 3: other.predicted_us *= 1.5; break;
        case 4: other.kernel[0] = 'x'; break;
        case 5: other.device[2] = 'x'; break;
        default: other.problem.seed += 1;
      }
      EXPECT_FALSE(other == plan) << field;
    }
  }
  EXPECT_LT(longest + 95, static_cast<std::size_t>(OCTET_TEXT_CAPACITY));  // longest names
}

TEST(Plan, ErrorsNameTheirPlace) {
  const std::string good = "dense_m1n1k1 @ cpu: kernel=cpu split=1 sms=0 workspace=0 us=0";
  EXPECT_EQ(GemmPlan::parse(good).message(), "");
  const Wrong wrongs[] = {
      {"", 0, "expected PROBLEM @ DEVICE: ..."},
      {"dense_m1n1k1", 0, "expected PROBLEM @ DEVICE: ..."},
      {"dense_m1n1k1 @ ", 15, "expected the device's name, 1 to 31 characters"},
      {"dense_m1n1k1 @ c pu: kernel", 15,
       "expected the device's name of letters, digits, _ - and ."},
      {"dense_m1n1k1 @ cpu: split=1", 18, "expected : kernel="},
      {"dense_m1n1k1 @ cpu: kernel= split=1", 27, "expected the kernel's name, 1 to 63 characters"},
      {"dense_m1n1k1 @ cpu: kernel=cpu", 30, "expected split="},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=x", 37, "expected a number"},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=1 sms=99999999999", 43, "expected a number"},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=1 sms=0 workspace=0 us=0 ", 61, "expected the end"},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=1 sms=-1 workspace=0 us=0", 43, "expected a number"},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=1 sms=0", 44, "expected workspace="},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=1 sms=0 workspace=0 us=nan", 60, "expected a number"},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=1 sms=0 workspace=0 us=inf", 60, "expected a number"},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=1 sms=0 workspace=0 us=-0", 60, "expected a number"},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=1 sms=0 workspace=0 us=1e999", 60,
       "expected a number"},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=01", 37, "expected a number without leading zeros"},
      {"dense_m1n1k1 @ cpu: kernel=cpu split=+1", 37, "expected a number"},
  };
  for (const Wrong& wrong : wrongs) {
    EXPECT_EQ(GemmPlan::parse(wrong.text).message(),
              "plan string, at character " + std::to_string(wrong.position) + ": " + wrong.want)
        << wrong.text;
  }
  EXPECT_EQ(GemmPlan::parse("dense_m1n1 @ cpu").message(),
            "problem string \"dense_m1n1\", at character 10: expected k and a number");
}

// What a plan says of itself agrees, whoever made it: printed, parsed, checked and run alike.
TEST(Plan, ContradictionsAreRefused) {
  const struct {
    const char* text;
    const char* want;
  } wrongs[] = {
      {"dense_m1n1k1_split4 @ cpu: kernel=cpu split=2",
       "plan.split = 2: must be 4, as split of its problem says"},
      {"dense_m1n1k1_inv @ cpu: kernel=cpu split=7",
       "plan.split = 7: must be 1, as batch_invariant of its problem says"},
      {"dense_m1n1k1 @ cpu: kernel=nonsense split=1",
       "plan.kernel = \"nonsense\": must be \"cpu\" or the name of a kernel of this build"},
      {"dense_m1n1k1 @ h200: kernel=cpu split=1",
       "plan.device = \"h200\", plan.kernel = \"cpu\": \"cpu\" must stand for both or for neither"},
      {"dense_m1n1k1 @ cpu: kernel=normal_m128n128_x2 split=1",
       "plan.device = \"cpu\", plan.kernel = \"normal_m128n128_x2\": \"cpu\" must stand for both "
       "or "
       "for neither"},
  };
  for (const auto& wrong : wrongs) EXPECT_EQ(GemmPlan::parse(wrong.text).message(), wrong.want);

  const GemmPlan good = GemmPlan::parse("dense_m1n1k1 @ cpu: kernel=cpu split=1").value();
  EXPECT_EQ(good.to_string(), "dense_m1n1k1 @ cpu: kernel=cpu split=1");
  const std::function<void(GemmPlan&)> spoils[] = {
      [](GemmPlan& x) { x.problem.grouping = 77; },
      [](GemmPlan& x) { x.problem.m = -5; },
      [](GemmPlan& x) { x.problem.split = 2; },
      [](GemmPlan& x) { x.split = -3; },
      [](GemmPlan& x) { x.sms = -1; },
      [](GemmPlan& x) { x.workspace_bytes = -1; },
      [](GemmPlan& x) { x.predicted_us = std::nan(""); },
      [](GemmPlan& x) { x.predicted_us = -0.0; },
      [](GemmPlan& x) { x.predicted_us = std::numeric_limits<double>::infinity(); },
      [](GemmPlan& x) { std::fill_n(x.device, sizeof x.device, 'z'); },
      [](GemmPlan& x) { std::fill_n(x.kernel, sizeof x.kernel, 'z'); },
      [](GemmPlan& x) { x.device[0] = '\n'; },
      [](GemmPlan& x) { x.device[0] = 0; },
      [](GemmPlan& x) { x.kernel[0] = 0; },
      [](GemmPlan& x) { x.struct_size = 0; },
  };
  int number = 0;
  for (const auto& spoil : spoils) {
    GemmPlan plan = good;
    spoil(plan);
    char text[2 * OCTET_TEXT_CAPACITY];
    octet_gemm_args args;
    octet_gemm_args_init(&args);
    EXPECT_EQ(octet_gemm_plan_print(&plan, text, sizeof text), OCTET_INVALID_ARGUMENT) << number;
    const std::string message = octet_status_message();
    EXPECT_EQ(message.find_first_not_of(
                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;=_-()\"?"),
              std::string::npos)
        << message;
    for (const octet_code code :
         {octet_check(&plan, &args), octet_validate(&plan, &args), octet_ref_run(&plan, &args),
          octet_cpu_run(&plan, &args, nullptr, nullptr)}) {
      EXPECT_EQ(code, OCTET_INVALID_ARGUMENT) << number;
      EXPECT_EQ(octet_status_message(), message) << number;
    }
    ++number;
  }
}

TEST(Plan, CandidatesAreWhatThePlannerChoosesFrom) {
  const DeviceSpec h200 = DeviceSpec::preset("h200").value();
  for (const char* text : {"dense_m17n7168k2048", "dense_m4000n4096k7168", "dense_m64n576k7168_inv",
                           "batched_g3m200n512k640_split2"}) {
    const GemmProblem p = GemmProblem::parse(text).value();
    const GemmPlan best = plan_gemm(p, h200).value();
    const auto plans = plan_candidates(p, h200, 1000);
    ASSERT_TRUE(plans.ok()) << plans.message();
    ASSERT_GT(plans.value().size(), 1u) << text;
    EXPECT_EQ(plans.value()[0], best);
    EXPECT_EQ(plan_candidates(p, h200, 2).value().size(), 2u);
    for (std::size_t i = 0; i < plans.value().size(); ++i) {
      const GemmPlan& plan = plans.value()[i];
      EXPECT_EQ(plan.problem.m, p.m);
      if (i > 0) {
        EXPECT_GE(plan.predicted_us, plans.value()[i - 1].predicted_us);
        EXPECT_FALSE(plan == plans.value()[i - 1]);
      }
      if (p.split > 0 || p.batch_invariant) {
        EXPECT_EQ(plan.split, best.split);
      }
    }
    // Beyond the last: how many there are is told all the same.
    const auto count = static_cast<std::int32_t>(plans.value().size());
    GemmPlan plan;
    std::int32_t told = -1;
    EXPECT_EQ(octet_plan_candidate(&p, &h200, count, &plan, &told), OCTET_INVALID_ARGUMENT);
    EXPECT_EQ(told, count);
    EXPECT_EQ(std::string(octet_status_message()),
              "index = " + std::to_string(count) + ": must be at most " +
                  std::to_string(count - 1) + " (" + std::to_string(count) + " candidates)");
    EXPECT_EQ(octet_plan_candidate(&p, &h200, -1, &plan, nullptr), OCTET_INVALID_ARGUMENT);
    EXPECT_STREQ(octet_status_message(), "index = -1: must be 0 or more");
  }
  const GemmProblem p = GemmProblem::parse("dense_m64n256k512_bf16in").value();
  EXPECT_EQ(plan_candidates(p, cpu_device(), 8).value(),
            std::vector<GemmPlan>{plan_gemm(p, cpu_device()).value()});
  EXPECT_EQ(plan_candidates(p, h200, 8).message(), plan_gemm(p, h200).message());
}

// Split: given, invariant, or the planner's; a batch-invariant one never looks at m, groups or
// budget.
TEST(Plan, Split) {
  const auto split = [](const std::string& text) {
    return plan_gemm(GemmProblem::parse(text).value(), cpu_device()).value().split;
  };
  EXPECT_EQ(split("dense_m64n256k7168_split5"), 5);
  EXPECT_EQ(split("dense_m64n256k7168_split5_inv"), 5);
  Random random(8);
  for (int i = 0; i < 1000; ++i) {
    GemmProblem p = wrap(draw_any_problem(random));
    p.split = 0;
    p.batch_invariant = 1;
    const int32_t first = plan_gemm(p, cpu_device()).value().split;
    p.m = random.log_uniform(1, 100000);
    p.sm_budget = static_cast<int32_t>(random.between(0, 132));
    if (p.grouping != OCTET_DENSE) p.groups = random.log_uniform(1, 500);
    if (p.grouping == OCTET_MASKED) p.max_m = 2 * p.m;
    EXPECT_EQ(plan_gemm(p, cpu_device()).value().split, first) << p.to_string();
    EXPECT_GE(first, 1);
    EXPECT_LE(first, 64);
  }
}

}  // namespace
