// Every sentence the library refuses with, provoked through the public interface and compared to
// the letter. refusal_rows.h has a row for every rule of src/core/refusals.h; the last tests hold
// that no rule is missing, that every message is its rule's sentence, and that no placeholder stays
// unfilled.
#include "core/refusals.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <new>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "capi/guard.h"
#include "octet/octet.hpp"
#include "refusal_rows.h"

namespace {

using namespace octet;
using namespace octet_refusals;
using oct::core::Rule;

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto part : {problem_rows(), kernel_rows(), argument_rows(), found_rows()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  rows.push_back(isa_row());
  return rows;
}

// Rules that only a device or a fault can break.
bool is_exempt(const oct::core::RuleText& entry) {
  return std::string(entry.topic) == "Devices at run time" || std::string(entry.topic) == "Faults";
}

TEST(Refusals, SentencesToTheLetter) {
  for (const Row& row : all_rows()) {
    const Said status = row.attempt();
    EXPECT_EQ(status.message(), row.sentence);
    EXPECT_EQ(status.code(), oct::core::rule_text(row.rule).code) << row.sentence;
  }
}

TEST(Refusals, EveryRuleIsProvoked) {
  std::set<Rule> provoked;
  for (const Row& row : all_rows()) provoked.insert(row.rule);
  for (const auto& entry : oct::core::rule_texts()) {
    EXPECT_EQ(provoked.contains(entry.rule), !is_exempt(entry)) << entry.sentence;
  }
}

// The literal pieces of the rule's sentence, in order, and nothing left of its placeholders.
TEST(Refusals, EveryMessageIsItsRulesSentence) {
  for (const Row& row : all_rows()) {
    const std::string message = row.attempt().message();
    EXPECT_EQ(message.find_first_of("{}"), std::string::npos) << message;
    const std::string sentence = oct::core::rule_text(row.rule).sentence;
    std::size_t at = 0, found = 0;
    while (at < sentence.size()) {
      const std::size_t open = std::min(sentence.find('{', at), sentence.size());
      const std::string piece = sentence.substr(at, open - at);
      found = message.find(piece, found);
      ASSERT_NE(found, std::string::npos) << "'" << piece << "' is not in: " << message;
      if (at == 0 && open > 0) {
        EXPECT_EQ(found, 0u) << message;
      }
      found += piece.size();
      at = open == sentence.size() ? open : sentence.find('}', open) + 1;
    }
    if (sentence.back() != '}') {
      EXPECT_EQ(found, message.size()) << message;
    }
  }
}

TEST(Refusals, TheCallsBeforeTheFaultPass) {
  for (const char* text :
       {kDense, "dense_m64n256k512_bf16in", "dense_m64n256k512_acc", "dense_m64n256k512_biasf16",
        "batched_g2m8n256k512_bias", "offsets_g2m64n256k512_i64", "aligned_g2m64n256k512",
        "masked_g2m64n256k512", "contiguous_g2m64n256k512", "kgrouped_g2m64n256k256",
        "kgrouped_g2m64n256k256_packed"}) {
    const Call c = call(text);
    EXPECT_EQ(validate(c.plan, c.args).message(), "") << text;
  }
  EXPECT_EQ(cpu::quantize(quantize_args()).message(), "");
}

// A failed call leaves its outputs alone, and the message belongs to the calling thread.
TEST(Refusals, NothingIsWrittenOnFailure) {
  GemmProblem p = GemmProblem::parse(kDense).value();
  const GemmProblem before = p;
  EXPECT_EQ(octet_gemm_problem_parse("nonsense", &p), OCTET_INVALID_ARGUMENT);
  EXPECT_TRUE(p == before);
  GemmPlan plan;
  plan.split = 77;
  EXPECT_EQ(octet_gemm_plan_parse("nonsense", &plan), OCTET_INVALID_ARGUMENT);
  EXPECT_EQ(plan.split, 77);
}

// Faults, as the C interface tells them.
TEST(Refusals, FaultsAreTold) {
  EXPECT_EQ(oct::capi::guarded([]() -> oct::Status { throw std::bad_alloc(); }),
            OCTET_OUT_OF_MEMORY);
  EXPECT_EQ(std::string_view(oct::capi::last_message()), "out of memory");
  EXPECT_EQ(oct::capi::guarded([]() -> oct::Status { throw std::runtime_error("this and that"); }),
            OCTET_INTERNAL);
  EXPECT_EQ(std::string_view(oct::capi::last_message()),
            "internal fault, please report it: this and that");
  EXPECT_EQ(oct::capi::guarded([]() -> oct::Status { throw 1; }), OCTET_INTERNAL);
  EXPECT_EQ(std::string_view(oct::capi::last_message()),
            "internal fault, please report it: unknown exception");
  // The room for a sentence is bounded: it is cut behind a whole character, and says so.
  for (std::size_t before = 1990; before < 2060; ++before) {
    const std::string long_one = std::string(before, 'x') + "\u00e4\u00e4\u00e4";
    oct::capi::keep_message(long_one);
    const std::string kept(oct::capi::last_message());
    if (long_one.size() < oct::capi::kMostMessage) {
      EXPECT_EQ(kept, long_one);
      continue;
    }
    ASSERT_TRUE(kept.ends_with(" ...")) << before;
    const std::string rest = kept.substr(0, kept.size() - 4);
    EXPECT_TRUE(long_one.starts_with(rest) && rest.size() >= oct::capi::kMostMessage - 7);
    EXPECT_EQ(std::count(rest.begin(), rest.end(), '\xc3'),
              std::count(rest.begin(), rest.end(), '\xa4'));
  }
}

// No sentence is made anywhere but in the table: limits.md would not have it.
TEST(Refusals, EverySentenceIsInTheTable) {
  const std::regex made(
      R"((return|Status\()\s*\{?\s*(kInvalid|OCTET_(INVALID|UNSUPPORTED|NO_DEVICE|)"
      R"(NOT_PREPARED|DEVICE_ERROR|OUT_OF_MEMORY|INTERNAL)\w*)\s*,)");
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(OCTET_SOURCE_DIR "/src")) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    ++files;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const std::string source = text.str();
    std::smatch match;
    EXPECT_FALSE(std::regex_search(source, match, made)) << path << ": " << match.str();
  }
  EXPECT_GT(files, 50);
}

}  // namespace
