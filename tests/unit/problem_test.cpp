// The problem string and everything that follows from a problem without running it: printing,
// parsing, hashing, device presets, supports() and explain(). Through the public
// interface.
#include "core/problem.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
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

TEST(ProblemString, RoundTripsOverEveryField) {
  Random random(1);
  std::size_t longest = 0;
  for (int i = 0; i < 20000; ++i) {
    const GemmProblem p = wrap(draw_any_problem(random));
    ASSERT_EQ(supports(p, cpu_device()).message(), "");
    const std::string text = p.to_string();
    const auto back = GemmProblem::parse(text);
    ASSERT_EQ(back.message(), "");
    ASSERT_TRUE(back.value() == p) << text;
    ASSERT_EQ(back.value().to_string(), text);
    longest = std::max(longest, text.size());
  }
  EXPECT_LT(longest + 1, static_cast<std::size_t>(OCTET_TEXT_CAPACITY));
  EXPECT_GT(longest, 120u);  // the generator sets many options at once
}

TEST(ProblemString, SmallProblemsToo) {
  Random random(2);
  for (int i = 0; i < 5000; ++i) {
    const auto regime = static_cast<oct::testing_support::Regime>(i % 5);
    const GemmProblem p = wrap(draw_problem(random, regime, 1 << 20));
    EXPECT_TRUE(GemmProblem::parse(p.to_string()).value() == p) << p.to_string();
  }
}

// Options in any order are read; one order is printed.
TEST(ProblemString, CanonicalOrder) {
  const char* canonical =
      "contiguous_g8m100n256k512_1d1d_f32_acc_biasbf16_sfarow_sfbodd_align64_keeppad_split4_inv_"
      "sms78_"
      "pdl_wready_even_seed7";
  EXPECT_EQ(GemmProblem::parse(canonical).value().to_string(), canonical);
  std::vector<std::string> options;
  std::stringstream in(canonical);
  std::string word, head;
  std::getline(in, word, '_');
  head = word;
  std::getline(in, word, '_');
  head += "_" + word;
  while (std::getline(in, word, '_')) options.push_back(word);
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    for (std::size_t j = options.size(); j > 1; --j) {
      std::swap(options[j - 1], options[random.bits() % j]);
    }
    std::string text = head;
    for (const auto& option : options) text += "_" + option;
    EXPECT_EQ(GemmProblem::parse(text).value().to_string(), canonical) << text;
  }
}

TEST(ProblemString, DefaultsAreLeftOut) {
  EXPECT_EQ(GemmProblem::parse("dense_m4096n7168k2048").value().to_string(),
            "dense_m4096n7168k2048");
  EXPECT_EQ(GemmProblem::parse("dense_m1n1k1_split0").value().to_string(), "dense_m1n1k1");
  EXPECT_EQ(GemmProblem::parse("kgrouped_g2m1n1k1_1d1d").value().to_string(), "kgrouped_g2m1n1k1");
  const GemmProblem p = GemmProblem::parse("masked_g32m192n4096k7168").value();
  EXPECT_EQ(p.grouping, OCTET_MASKED);
  EXPECT_EQ(p.groups, 32);
  EXPECT_EQ(p.max_m, 256);  // 1.3 * 192 = 249.6, rounded up to 128
  EXPECT_EQ(p.in_type, OCTET_E4M3);
  EXPECT_EQ(p.granularity, OCTET_1D2D);
  EXPECT_EQ(p.d_type, OCTET_BF16);
  const GemmProblem fresh;
  EXPECT_EQ(fresh.to_string(), "dense_m0n0k0");
}

TEST(ProblemString, EveryErrorNamesItsPlace) {
  const char* kinds =
      "expected dense_, batched_, contiguous_, offsets_, aligned_, masked_ or kgrouped_";
  const std::string options =
      "expected an option, one of 1d1d, bf16in, f32, f16, acc, bias, biasbf16, biasf16, sfarow, "
      "sfaodd, sfbrow, sfbcol, sfbodd, align<number>, maxm<number>, i64, packed, keeppad, "
      "split<number>, inv, sms<number>, pdl, wready, even, seed<number>";
  const Wrong wrongs[] = {
      {"", 0, kinds},
      {"dense", 0, kinds},
      {"Dense_m1n1k1", 0, kinds},
      {" dense_m1n1k1", 0, kinds},
      {"dense_", 6, "expected m and a number"},
      {"dense_g1m1n1k1", 6, "expected m and a number"},
      {"masked_m1n1k1", 7, "expected g and the number of groups"},
      {"masked_g", 8, "expected a number from 0 to 2147483647 for g"},
      {"dense_m", 7, "expected a number from 0 to 2147483647 for m"},
      {"dense_m-1n1k1", 7, "expected a number from 0 to 2147483647 for m"},
      {"dense_m+1n1k1", 7, "expected a number from 0 to 2147483647 for m"},
      {"dense_m 1n1k1", 7, "expected a number from 0 to 2147483647 for m"},
      {"dense_m01n1k1", 7, "expected a number without leading zeros"},
      {"dense_m2147483648n1k1", 7, "expected at most 2147483647 for m"},
      {"dense_m1n99999999999999999999k1", 9, "expected a number from 0 to 2147483647 for n"},
      {"dense_m1k1n1", 8, "expected n and a number"},
      {"dense_m1n1", 10, "expected k and a number"},
      {"dense_m1n1k1 ", 12, "expected _ and an option, or the end"},
      {"dense_m1n1k1.5", 12, "expected _ and an option, or the end"},
      {"dense_m1n1k1_", 13, options.c_str()},
      {"dense_m1n1k1__acc", 13, options.c_str()},
      {"dense_m1n1k1_ACC", 13, options.c_str()},
      {"dense_m1n1k1_f32x", 13, options.c_str()},
      {"dense_m1n1k1_split", 18, "expected a number after split"},
      {"dense_m1n1k1_maxm_even", 17, "expected a number after maxm"},
      {"dense_m1n1k1_split-1", 13, options.c_str()},
      {"dense_m1n1k1_split01", 18, "expected a number without leading zeros"},
      {"dense_m1n1k1_split2x", 19, "expected _ and an option, or the end"},
      {"dense_m1n1k1_seed4294967296", 17, "expected at most 4294967295 for seed"},
      {"dense_m1n1k1_acc_acc", 17, "option acc repeats or contradicts an earlier one"},
      {"dense_m1n1k1_f32_f16", 17, "option f16 repeats or contradicts an earlier one"},
      {"dense_m1n1k1_sfarow_sfaodd", 20, "option sfaodd repeats or contradicts an earlier one"},
      {"dense_m1n1k1_bias_biasf16", 18, "option biasf16 repeats or contradicts an earlier one"},
  };
  for (const Wrong& wrong : wrongs) {
    const auto result = GemmProblem::parse(wrong.text);
    EXPECT_EQ(result.message(), "problem string \"" + std::string(wrong.text) +
                                    "\", at character " + std::to_string(wrong.position) + ": " +
                                    wrong.want);
    EXPECT_EQ(result.status().code(), OCTET_INVALID_ARGUMENT);
  }
}

// Whatever is changed in a good string: either it is refused, or it is a problem that prints and
// parses.
// Whatever sizes a string gives, what it leaves out breaks no rule of its own.
TEST(ProblemString, DefaultsFitTheLargestSizes) {
  for (const char* m : {"0", "1", "1651910240", "1651910248", "2000000000", "2147483647"}) {
    const auto p = octet::GemmProblem::parse("masked_g1m" + std::string(m) + "n1k1");
    EXPECT_TRUE(p.ok()) << p.message();
    EXPECT_EQ(p.value().to_string(), "masked_g1m" + std::string(m) + "n1k1");
  }
}

TEST(ProblemString, MutationsNeverConfuse) {
  Random random(4);
  const std::string letters = "abcdefgknmoprstuw_0123456789-+ .\n\xff";
  int accepted = 0;
  for (int i = 0; i < 30000; ++i) {
    std::string text = wrap(draw_any_problem(random)).to_string();
    const int64_t changes = random.between(1, 4);
    for (int64_t j = 0; j < changes; ++j) {
      const std::size_t at = random.bits() % (text.size() + 1);
      switch (random.between(0, 3)) {
        case 0: text.insert(at, 1, letters[random.bits() % letters.size()]); break;
        case 1: text = text.substr(0, at); break;
        case 2: text += text.substr(at); break;
        default:
          if (at < text.size()) text[at] = letters[random.bits() % letters.size()];
      }
    }
    const auto result = GemmProblem::parse(text);
    if (!result.ok()) {
      ASSERT_NE(result.message(), "");
      continue;
    }
    ++accepted;
    ASSERT_TRUE(GemmProblem::parse(result.value().to_string()).value() == result.value()) << text;
  }
  EXPECT_GT(accepted, 1000);
}

TEST(ProblemString, EqualityAndHashSeeEveryField) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    const octet_gemm_problem base = draw_any_problem(random);
    int fields = 0;
    std::set<uint64_t> hashes{oct::core::hash(base)};
    // Field number `which` is changed, all others stay.
    const auto change = [&](int which) {
      octet_gemm_problem x = base, y = base;
      int at = 0;
      oct::core::for_each_field(x, y, [&](auto& field, auto&) {
        using Field = std::remove_const_t<std::remove_reference_t<decltype(field)>>;
        if (at++ == which) const_cast<Field&>(field) = static_cast<Field>(field + 1);
      });
      fields = at;
      return x;
    };
    change(0);
    for (int which = 0; which < fields; ++which) {
      const octet_gemm_problem changed = change(which);
      EXPECT_FALSE(wrap(changed) == wrap(base)) << which;
      hashes.insert(std::hash<GemmProblem>()(wrap(changed)));
    }
    EXPECT_EQ(hashes.size(), static_cast<std::size_t>(fields) + 1);
    EXPECT_EQ(fields, 24);
  }
  // The list of fields covers the struct: 24 fields and struct_size fill it without a hole.
  EXPECT_EQ(sizeof(octet_gemm_problem), 6 * sizeof(int64_t) + 19 * sizeof(int32_t) + 4);
}

// The CPU backend gives the bits of any device's plan: its name alone does not make a CPU of it.
TEST(Device, OnlyTheCpuIsNamedCpu) {
  const GemmProblem p = GemmProblem::parse("dense_m64n256k512").value();
  DeviceSpec named = DeviceSpec::preset("h200").value();
  std::snprintf(named.name, sizeof named.name, "cpu");
  EXPECT_EQ(supports(p, named).message(),
            "device.name = \"cpu\": must be another one: \"cpu\" has compute capability 0.0");
  DeviceSpec other = DeviceSpec::preset("cpu").value();
  std::snprintf(other.name, sizeof other.name, "mine");
  EXPECT_EQ(supports(p, other).message(),
            "device.name = \"mine\": must be \"cpu\" where the compute capability is 0");
  DeviceSpec hopper = DeviceSpec::preset("cpu").value();
  hopper.compute_major = 9;
  EXPECT_FALSE(supports(p, hopper).ok());
}

TEST(Device, Presets) {
  const char* names[] = {"h100_sxm", "h100_pcie", "h200", "h800", "h20", "gh200", "cpu"};
  ASSERT_EQ(octet_device_preset_count(), 7);
  for (int32_t i = 0; i < 7; ++i) {
    ASSERT_STREQ(octet_device_preset_name(i), names[i]);
    const DeviceSpec device = DeviceSpec::preset(names[i]).value();
    EXPECT_STREQ(device.name, names[i]);
    if (i == 6) continue;
    EXPECT_EQ(device.compute_major, 9);
    EXPECT_EQ(device.compute_minor, 0);
    EXPECT_EQ(device.active_clusters[0], device.sms);
    EXPECT_GT(device.fp8_flops_per_second, device.bf16_flops_per_second);
    for (int c = 1; c < 5; ++c) {
      EXPECT_LE(device.active_clusters[c] * (1 << c), device.sms) << names[i];
    }
  }
  EXPECT_EQ(octet_device_preset_name(-1), nullptr);
  EXPECT_EQ(octet_device_preset_name(7), nullptr);
}

TEST(Device, SupportsAndExplainAnswerWithoutRunning) {
  Random random(7);
  const DeviceSpec h200 = DeviceSpec::preset("h200").value();
  for (int i = 0; i < 2000; ++i) {
    const GemmProblem p = wrap(draw_any_problem(random));
    EXPECT_EQ(supports(p, cpu_device()).message(), "");
    const auto why = explain(p, cpu_device());
    ASSERT_EQ(why.message(), "");
    const std::string plan = plan_gemm(p, cpu_device()).value().to_string();
    EXPECT_EQ(why.value().substr(0, plan.size()), plan);
    EXPECT_EQ(why.value().back(), '\n');
    // A device without a kernel says so in words and never fails otherwise.
    const Status status = supports(p, h200);
    if (!status.ok()) {
      EXPECT_FALSE(status.message().empty());
      EXPECT_EQ(status.message(), plan_gemm(p, h200).message());
      EXPECT_EQ(status.message(), explain(p, h200).message());
    }
  }
}

TEST(Device, ExplainCutsToCapacity) {
  const GemmProblem p = GemmProblem::parse("dense_m64n256k512_inv").value();
  const DeviceSpec device = cpu_device();
  const std::string all = explain(p, device).value();
  char text[20];
  std::size_t needed = 0;
  ASSERT_EQ(octet_plan_explain(&p, &device, text, sizeof text, &needed), OCTET_OK);
  EXPECT_EQ(needed, all.size() + 1);
  EXPECT_EQ(std::string(text), all.substr(0, 19));
}

// Every `code span` of docs/problem-string.md that looks like a problem is one.
TEST(ProblemString, TheExamplesOfItsPageParse) {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/docs/problem-string.md");
  ASSERT_TRUE(file.good());
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  int examples = 0;
  std::set<std::string> kinds;
  for (std::size_t at = text.find('`'); at != std::string::npos; at = text.find('`', at + 1)) {
    const std::size_t end = text.find('`', at + 1);
    ASSERT_NE(end, std::string::npos) << "unclosed `";
    const std::string span = text.substr(at + 1, end - at - 1);
    at = end;
    if (!std::regex_search(span, std::regex("^[a-z]+_(g[0-9]+)?m[0-9]+n"))) continue;
    const auto result = GemmProblem::parse(span);
    EXPECT_EQ(result.message(), "") << span;
    if (!result.ok()) continue;
    EXPECT_EQ(result.value().to_string(), span);
    kinds.insert(span.substr(0, span.find('_')));
    ++examples;
  }
  EXPECT_GE(examples, 12);
  EXPECT_EQ(kinds.size(), 7u);  // every kind has an example
  for (const char* option :
       {"1d1d",   "bf16in", "f32",    "f16",    "acc",    "bias", "biasbf16", "biasf16", "sfarow",
        "sfaodd", "sfbrow", "sfbcol", "sfbodd", "align",  "maxm", "i64",      "packed",  "keeppad",
        "split",  "inv",    "sms",    "pdl",    "wready", "even", "seed"}) {
    EXPECT_NE(text.find("| `" + std::string(option)), std::string::npos) << option;
  }
}

// Each number of a hand-made device that would make a plan meaningless.
TEST(Device, NumbersOutOfRangeAreNamed) {
  const octet::DeviceSpec good = octet::DeviceSpec::preset("h200").value();
  const octet::GemmProblem problem = octet::GemmProblem::parse("dense_m64n256k512").value();
  EXPECT_TRUE(octet::supports(problem, good).ok());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto message = [&](auto change) {
    octet::DeviceSpec device = good;
    change(device);
    return octet::supports(problem, device).message();
  };
  EXPECT_EQ(message([](auto& d) { d.sms = 0; }), "device.sms = 0: must be from 1 to 1024");
  EXPECT_EQ(message([](auto& d) { d.sms = 2147483647; }),
            "device.sms = 2147483647: must be from 1 to 1024");
  EXPECT_EQ(message([](auto& d) { d.active_clusters[1] = 2147483647; }),
            "device.active_clusters = 2147483647: must be from 0 to device.sms");
  EXPECT_EQ(message([](auto& d) { d.dram_bytes_per_second = 0; }),
            "device.dram_bytes_per_second = 0: must be from 1e6 to 1e18");
  EXPECT_EQ(message([&](auto& d) { d.fp8_flops_per_second = nan; }),
            "device.fp8_flops_per_second = nan: must be from 1e6 to 1e18");
  EXPECT_EQ(message([](auto& d) { d.launch_seconds = -1; }),
            "device.launch_seconds = -1: must be from 0 to 1");
}

}  // namespace
