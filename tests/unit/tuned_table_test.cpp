// Tuned tables: text and back, every sentence about a line, which problems a table decides, and
// what is passed over.
#include "plan/tuned_table.h"

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/plan_cache.h"
#include "octet/octet.hpp"
#include "plan/shipped_tables.h"
#include "support/problems.h"

namespace {

using namespace octet;
using oct::testing_support::Random;

const std::string kHeader = "octet tuned table 1\ndevice: h200\nsms: 132\n";
const std::string kEntry =
    "dense_m16n7168k2048: kernel=swapped_w64t16_k2_x2_b2 split=4 ctas=132 us=6.570\n";

DeviceSpec device(const std::string& name) { return DeviceSpec::preset(name).value(); }
GemmProblem problem(const std::string& text) { return GemmProblem::parse(text).value(); }
TunedTable table(const std::string& text) { return TunedTable::parse(text).value(); }

TEST(TunedTable, PrintsAndParses) {
  const std::string text =
      kHeader + "gpu: NVIDIA H200\ndriver: 580.159.04, CUDA 13.0\noctet: 0.1.0\n" +
      "dense_m1n576k7168: kernel=swapped_w64t8_x2_o2 split=8 ctas=240 us=4.573\n" +
      "dense_m16n576k7168: kernel=swapped_w64t16_x2_o2 split=8 ctas=240 us=4.793\n" + kEntry +
      "batched_g4m16n512k512: kernel=a_kernel_of_tomorrow split=1 ctas=1 us=0.001\n";
  EXPECT_EQ(table(text).to_string(), text);
  // Remarks, empty lines, line ends, order and what does not matter are not kept.
  const std::string loose =
      "octet tuned table 1\r\n# a remark\r\n\r\nsms: 132\ndevice: h200\r\n" + kEntry +
      "dense_m1n576k7168_f16_bias_sfarow_pdl_seed3: kernel=swapped_w64t8_x2_o2 split=8 "
      "ctas=240 us=4.5734";
  EXPECT_EQ(table(loose).to_string(),
            kHeader + "dense_m1n576k7168: kernel=swapped_w64t8_x2_o2 split=8 ctas=240 us=4.573\n" +
                kEntry);
  EXPECT_EQ(table(kHeader).to_string(), kHeader);
}

TEST(TunedTable, RefusesWithTheLine) {
  const std::string entry = kEntry.substr(0, kEntry.size() - 1);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = entry;
    return line.replace(line.find(from), from.size(), to);
  };
  const std::string form =
      "expected kernel=NAME split=NUMBER ctas=NUMBER us=NUMBER after the problem";
  const std::pair<std::string, std::string> cases[] = {
      {"", "line 1: expected \"octet tuned table 1\""},
      {"octet tuned table 2\n", "line 1: expected \"octet tuned table 1\""},
      {"octet tuned table 1\ndevice: h200\n", "line 3: expected sms: NUMBER before this"},
      {"octet tuned table 1\n" + entry, "line 2: expected device: NAME before this"},
      {kHeader + "nonsense\n", "line 4: expected KEY: VALUE or PROBLEM: kernel=..."},
      {kHeader + "sms: 132\n", "line 4: sms is given twice"},
      {kHeader + "device: h200\n", "line 4: device is given twice"},
      {kHeader + "gpu: x\ngpu: y\n", "line 5: gpu is given twice"},
      {kHeader + "gpu: \n", "line 4: expected 1 to 200 printable characters for gpu"},
      {kHeader + "gpu: a\tb\n", "line 4: expected 1 to 200 printable characters for gpu"},
      {kHeader + "weather: fine\n",
       "line 4: expected device, sms, gpu, driver, octet or date before the colon"},
      {"octet tuned table 1\ndevice: cpu\n",
       "line 2: expected the name of a GPU, 1 to 31 letters, digits, _ - or ."},
      {"octet tuned table 1\nsms: 0\n", "line 2: expected a number from 1 to 1024 for sms"},
      {kHeader + kEntry + "gpu: late\n", "line 5: expected the header before the first problem"},
      {kHeader + with("m16", "m"),
       "line 4: problem string \"dense_mn7168k2048\", at character 7: expected a number from 0 to "
       "2147483647 for m"},
      {kHeader + with("k2048", "k2048_split4"),
       "line 4: expected a problem whose split the planner chooses"},
      {kHeader + with("k2048", "k2048_inv"),
       "line 4: expected a problem whose split the planner chooses"},
      {kHeader + with("kernel=", "kern="), "line 4: " + form},
      {kHeader + with(" us=6.570", ""), "line 4: " + form},
      {kHeader + entry + " more=1", "line 4: " + form},
      {kHeader + with("swapped_w64t16_k2_x2_b2", "a/b"),
       "line 4: expected a kernel's name, 1 to 63 letters, digits, _ - or ."},
      {kHeader + with("split=4", "split=65"), "line 4: expected a number from 1 to 64 for split"},
      {kHeader + with("split=4", "split=04"), "line 4: expected a number from 1 to 64 for split"},
      {kHeader + with("split=4", "split="), "line 4: expected a number from 1 to 64 for split"},
      {kHeader + with("ctas=132", "ctas=-1"), "line 4: expected a number from 1 to 65535 for ctas"},
      {kHeader + with("us=6.570", "us=0"),
       "line 4: expected microseconds from 0.001 to 1e9 for us"},
      {kHeader + with("us=6.570", "us=nan"),
       "line 4: expected microseconds from 0.001 to 1e9 for us"},
      {kHeader + with("us=6.570", "us="), "line 4: expected microseconds from 0.001 to 1e9 for us"},
      {kHeader + kEntry + "\n" + with("k2048", "k2048_bias"),
       "line 6: the choice is already given in line 4 (dense_m16n7168k2048 stands for all problems "
       "that differ in nothing that decides it)"},
  };
  for (const auto& [text, sentence] : cases) {
    const auto got = TunedTable::parse(text);
    EXPECT_EQ(got.status().code(), OCTET_INVALID_ARGUMENT) << text;
    EXPECT_EQ(got.message(), "tuned table, " + sentence);
  }
}

TEST(TunedTable, DecidesForTheProblemsItNames) {
  const TunedTable t = table(kHeader + kEntry);
  const DeviceSpec h200 = device("h200");
  const auto tuned = [&](const std::string& text, const DeviceSpec& d) {
    return plan_gemm(problem(text), d, t).value();
  };
  const GemmPlan plan = tuned("dense_m16n7168k2048", h200);
  EXPECT_EQ(plan.to_string(),
            "dense_m16n7168k2048 @ h200: kernel=swapped_w64t16_k2_x2_b2 split=4 sms=132 "
            "workspace=0 us=6.57");
  EXPECT_EQ(GemmPlan::parse(plan.to_string()).value(), plan);
  // What does not change the choice does not matter, and stays in the plan's problem.
  for (const char* text : {"dense_m16n7168k2048_f16", "dense_m16n7168k2048_bias_sfarow",
                           "dense_m16n7168k2048_sfbcol_pdl_wready", "dense_m16n7168k2048_seed9"}) {
    const GemmPlan other = tuned(text, h200);
    EXPECT_EQ(std::string(other.kernel), plan.kernel) << text;
    EXPECT_EQ(other.split, 4) << text;
    EXPECT_EQ(GemmProblem::parse(text).value().to_string() + plan.to_string().substr(19),
              other.to_string());
  }
  // A dependent launch has an entry of its own where its weights are ready, if there is one.
  const TunedTable both = table(
      kHeader + kEntry +
      "dense_m16n7168k2048_f16_pdl_wready: kernel=swapped_w64t16_k4 split=4 ctas=132 us=5.385\n");
  EXPECT_NE(both.to_string().find("dense_m16n7168k2048_pdl_wready: "), std::string::npos);
  for (const auto& [text, kernel] :
       {std::pair("dense_m16n7168k2048_bias_pdl_wready", "swapped_w64t16_k4"),
        std::pair("dense_m16n7168k2048_pdl", "swapped_w64t16_k2_x2_b2"),
        std::pair("dense_m16n7168k2048", "swapped_w64t16_k2_x2_b2")}) {
    EXPECT_EQ(std::string(plan_gemm(problem(text), h200, both).value().kernel), kernel) << text;
  }
  // Everything else is the model's.
  for (const char* text :
       {"dense_m17n7168k2048", "dense_m16n7168k2048_f32", "dense_m16n7168k2048_acc",
        "dense_m16n7168k2048_sms66", "dense_m16n7168k2048_split2", "dense_m16n7168k2048_inv",
        "batched_g1m16n7168k2048"}) {
    EXPECT_EQ(tuned(text, h200), plan_gemm(problem(text), h200).value()) << text;
  }
  // Another device, or a part of this one.
  DeviceSpec part = h200;
  part.sms = 60;
  for (auto& clusters : part.active_clusters) clusters = clusters * 60 / 132;
  for (const DeviceSpec& d : {device("h20"), device("h100_sxm"), part}) {
    EXPECT_EQ(tuned("dense_m16n7168k2048", d),
              plan_gemm(problem("dense_m16n7168k2048"), d).value());
  }
  EXPECT_EQ(tuned("dense_m16n7168k2048", device("cpu")).split, 1);
  const std::string reasons = explain(problem("dense_m16n7168k2048"), h200, &t).value();
  EXPECT_EQ(reasons.substr(0, reasons.find('\n')), plan.to_string());
  EXPECT_NE(reasons.find("measured: 6.57 us, by the tuned table given; predicted "),
            std::string::npos);
}

TEST(TunedTable, PassesOverWhatCannotRunAndNamesIt) {
  const DeviceSpec h200 = device("h200");
  EXPECT_EQ(table(kHeader + kEntry).check(h200).message(), "");
  EXPECT_EQ(table(kHeader + kEntry).check(device("h20")).message(),
            "the tuned table is of h200, 132 SMs: none of it is used for h20, 78 SMs");
  const std::pair<std::string, std::string> cases[] = {
      {"kernel=swapped_w64t16 split=1 ctas=132",
       "plan.kernel = \"swapped_w64t16\": must be \"cpu\" or the name of a kernel of this build"},
      {"kernel=swapped_w64t16_k2_x2_b2 split=3 ctas=132",
       "its 2 pipelines need a multiple of as many ranges"},
      {"kernel=normal_m128n256 split=2 ctas=132", "no room for partial sums beside the ring"},
      {"kernel=swapped_w64t16_k2_x2_b2 split=4 ctas=131",
       "ctas = 131: must be a multiple of 2, from 2 to 132"},
      {"kernel=swapped_w64t16_k2_x2_b2 split=4 ctas=134",
       "ctas = 134: must be a multiple of 2, from 2 to 132"},
  };
  for (const auto& [choice, why] : cases) {
    const TunedTable t = table(kHeader + "dense_m16n7168k2048: " + choice + " us=1\n");
    const std::string said = t.check(h200).message();
    EXPECT_TRUE(said.starts_with("tuned table: dense_m16n7168k2048 with ")) << said;
    EXPECT_TRUE(said.ends_with("is not used: " + why)) << said;
    EXPECT_EQ(plan_gemm(problem("dense_m16n7168k2048"), h200, t).value(),
              plan_gemm(problem("dense_m16n7168k2048"), h200).value())
        << choice;
  }
}

TEST(TunedTable, TakesWhatWasMeasured) {
  TunedTable t = table(kHeader);
  const DeviceSpec h200 = device("h200");
  std::vector<GemmPlan> plans;
  for (const char* text : {"dense_m64n576k7168", "batched_g8m16n512k512", "dense_m16n7168k2048_f32",
                           "dense_m8n576k7168"}) {
    const GemmProblem p = problem(text);
    GemmPlan plan = plan_candidates(p, h200, 3).value()[2];
    plan.predicted_us = 1.25 + static_cast<double>(plans.size());
    EXPECT_EQ(t.set(plan).message(), "");
    plans.push_back(plan);
  }
  for (const GemmPlan& plan : plans) {
    GemmProblem p;
    static_cast<octet_gemm_problem&>(p) = plan.problem;
    EXPECT_EQ(plan_gemm(p, h200, t).value(), plan);
  }
  EXPECT_EQ(t.check(h200).message(), "");
  // The last measurement of a problem counts.
  plans[0].predicted_us = 9;
  EXPECT_EQ(t.set(plans[0]).message(), "");
  EXPECT_EQ(plan_gemm(problem("dense_m64n576k7168_bias"), h200, t).value().predicted_us, 9);
  EXPECT_EQ(table(t.to_string()).to_string(), t.to_string());

  const auto refused = [&](const std::string& text, const char* preset, double us) {
    GemmPlan plan = plan_candidates(problem(text), device(preset), 1).value()[0];
    plan.predicted_us = us;
    return t.set(plan).message();
  };
  EXPECT_EQ(refused("dense_m16n512k512", "h20", 1),
            "plan.device = \"h20\": must be \"h200\", as the table");
  EXPECT_EQ(refused("dense_m16n512k512_inv", "h200", 1),
            "plan.problem = dense_m16n512k512_inv: must be one whose split the planner chooses");
  EXPECT_EQ(refused("dense_m16n512k512", "h200", 0),
            "plan.predicted_us = 0: must be what was measured, from 0.001 to 1e9");
  GemmPlan no_ctas = plans[1];
  no_ctas.sms = 0;
  EXPECT_EQ(t.set(no_ctas).message(), "plan.sms = 0: must be 1 or more");
  // What is set can be read back.
  for (const int32_t ctas : {65535, 65536, 70000, 2147483647}) {
    GemmPlan many = plans[1];
    many.sms = ctas;
    TunedTable one = table(kHeader);
    EXPECT_EQ(one.set(many).message(),
              ctas == 65535 ? ""
                            : "plan.sms = " + std::to_string(ctas) + ": must be 65535 or less");
    EXPECT_EQ(table(one.to_string()).to_string(), one.to_string());
  }
}

TEST(TunedTable, PrintsIntoTheCallersRoom) {
  const TunedTable t = table(kHeader + kEntry);
  std::size_t needed = 0;
  ASSERT_EQ(octet_tuned_table_print(t.get(), nullptr, 0, &needed), OCTET_OK);
  std::string text(needed, 'x');
  EXPECT_EQ(octet_tuned_table_print(t.get(), text.data(), needed - 1, nullptr),
            OCTET_INVALID_ARGUMENT);
  EXPECT_EQ(octet_tuned_table_print(t.get(), nullptr, 0, nullptr), OCTET_INVALID_ARGUMENT);
  EXPECT_EQ(octet_tuned_table_print(t.get(), text.data(), needed, nullptr), OCTET_OK);
  EXPECT_EQ(text.substr(0, needed - 1), kHeader + kEntry);
  EXPECT_EQ(octet_tuned_table_create(nullptr, nullptr), OCTET_INVALID_ARGUMENT);
  EXPECT_STREQ(octet_status_message(), "text is null: must point to a tuned table's text");
  EXPECT_EQ(octet_tuned_table_create("x", nullptr), OCTET_INVALID_ARGUMENT);
  EXPECT_EQ(octet_tuned_table_set(nullptr, nullptr), OCTET_INVALID_ARGUMENT);
  EXPECT_EQ(octet_tuned_table_check(t.get(), nullptr), OCTET_INVALID_ARGUMENT);
  EXPECT_EQ(octet_cuda_context_set_table(nullptr, t.get()), OCTET_INVALID_ARGUMENT);
  octet_tuned_table_destroy(nullptr);
}

// The table that ships decides without being given, by the rules of any table.
TEST(TunedTable, OneShipsForTheH200) {
  std::ifstream in(OCTET_SOURCE_DIR "/tables/h200.txt");
  std::stringstream text;
  text << in.rdbuf();
  const TunedTable file = table(text.str());
  const DeviceSpec h200 = device("h200");
  EXPECT_EQ(file.to_string(), text.str());
  EXPECT_EQ(file.check(h200).message(), "");
  // What the library carries is the file, and all of it is used.
  const oct::plan::TableView ships = oct::plan::shipped_table(h200);
  EXPECT_EQ(oct::plan::check_table(ships, h200).message(), "");
  oct::plan::TunedTable carried;
  carried.device = ships.device;
  carried.sms = ships.sms;
  carried.entries.assign(ships.entries.begin(), ships.entries.end());
  const std::string printed = oct::plan::to_string(carried);
  const auto choices = [](const std::string& all) { return all.substr(all.find("dense_")); };
  EXPECT_EQ(choices(printed), choices(text.str()));
  EXPECT_GE(carried.entries.size(), 90u);

  int others = 0;
  for (const oct::plan::TunedEntry& e : carried.entries) {
    GemmProblem p;
    static_cast<octet_gemm_problem&>(p) = e.problem;
    const GemmPlan plan = plan_gemm(p, h200).value();
    EXPECT_EQ(std::string(plan.kernel), e.kernel);
    EXPECT_EQ(plan.split, e.split);
    EXPECT_EQ(plan.sms, e.ctas);
    EXPECT_EQ(plan.predicted_us, e.us);
    EXPECT_NE(explain(p, h200).value().find("measured: "), std::string::npos);
    // Neither another device, nor a problem whose split is given or invariant, nor a budget.
    const DeviceSpec h100 = device("h100_sxm");
    EXPECT_EQ(plan_gemm(p, h100).value(), plan_candidates(p, h100, 1).value()[0]);
    GemmProblem q = p;
    q.batch_invariant = 1;
    EXPECT_EQ(plan_gemm(q, h200).value(), plan_candidates(q, h200, 1).value()[0]);
    q = p;
    q.split = 2;
    EXPECT_EQ(plan_gemm(q, h200).value(), plan_candidates(q, h200, 1).value()[0]);
    q = p;
    q.sm_budget = 100;
    EXPECT_EQ(plan_gemm(q, h200).value(), plan_candidates(q, h200, 1).value()[0]);
    const GemmPlan model = plan_candidates(p, h200, 1).value()[0];
    others += std::string(model.kernel) != e.kernel || model.split != e.split ? 1 : 0;
  }
  EXPECT_GT(others, 10) << "a table that says what the model says anyway need not ship";
  // A table that is given comes first; what it does not name, the one that ships still decides.
  const TunedTable given = table(kHeader + kEntry);
  EXPECT_EQ(plan_gemm(problem("dense_m16n7168k2048"), h200, given).value().predicted_us, 6.57);
  EXPECT_EQ(plan_gemm(problem("dense_m16n576k7168"), h200, given).value(),
            plan_gemm(problem("dense_m16n576k7168"), h200).value());
}

// The cache of a context: finds what was kept as long as there is room, and never another plan.
TEST(PlanCache, KeepsPlansByProblem) {
  using oct::cuda::PlanCache;
  PlanCache cache;
  Random random(17);
  std::vector<octet_gemm_plan> plans;
  int lost = 0;
  for (int i = 0; i < 4000; ++i) {
    octet_gemm_plan plan{};
    plan.struct_size = sizeof plan;
    plan.problem = oct::testing_support::draw_any_problem(random);
    plan.split = i + 1;
    cache.keep(plan);
    ASSERT_NE(cache.find(plan.problem), nullptr);
    EXPECT_EQ(cache.find(plan.problem)->split, i + 1);
    plans.push_back(plan);
    if (i == 127) {
      for (const octet_gemm_plan& p : plans) lost += cache.find(p.problem) == nullptr ? 1 : 0;
      EXPECT_LE(lost, 2) << "an eighth of its room is nearly free of collisions";
    }
  }
  std::size_t found = 0;
  for (const octet_gemm_plan& plan : plans) {
    const octet_gemm_plan* got = cache.find(plan.problem);
    if (got == nullptr) continue;
    ++found;
    EXPECT_TRUE(oct::core::equal(got->problem, plan.problem));
  }
  EXPECT_GT(found, PlanCache::kPlaces * 9 / 10);
  octet_gemm_plan again = plans.back();
  again.split = 7;
  cache.keep(again);
  EXPECT_EQ(cache.find(again.problem)->split, 7);
  cache.clear();
  for (const octet_gemm_plan& plan : plans) EXPECT_EQ(cache.find(plan.problem), nullptr);
}

}  // namespace
