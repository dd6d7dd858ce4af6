// Prints docs/limits.md from the table of refusals (src/core/refusals.cpp), so that documentation
// and library cannot differ. A test holds that the checked-in page is what this prints.
//
//   octet_limits_doc > docs/limits.md      octet_limits_doc --check docs/limits.md
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/refusals.h"

namespace {

constexpr const char* kIntroduction = R"(# Limits

Everything that Octet refuses, with the sentence it says and the reason. `supports()` and `plan_gemm()` apply the rules of
a problem, `check()` and every run also those of the arguments; `validate()` reads grouping metadata and scales too. A
sentence names the argument, what it was and what is wanted; words in braces stand for values. The first rule broken is
the one told, nothing is written, and nothing is ever reinterpreted to make a call fit.

This page is printed by `octet_limits_doc` from the table that the library itself uses; do not edit it.

## What works and what is refused

| | works | refused |
|---|---|---|
| M, N, K | any from 0 to 2147483647: odd ones, 103, a half-full last K-block, an odd number of K-blocks; results of more than 2^31 elements | negative or larger sizes |
| groups | any number, 0 too; empty groups anywhere | several groups in a dense problem |
| A and B | any pitch of at least one row that is a multiple of 16 bytes, based on a multiple of 16 bytes | other pitches and bases: rows are read by the copy engine. Pad the pitch, not the problem |
| C and D | any pitch of at least one row; C apart from D, or D itself; column slices of one buffer side by side | C or an input that shares memory with D in any other way |
| operand types | e4m3 with FP32 scales; BF16 without scales | e5m2, FP4, mixed types; UE8M0 scales in a GEMM |
| results | BF16, FP16, FP32 | |
| scales | 1D2D and 1D1D; row-major, column-major, any pitch, stride 0 to repeat one | strides that contradict `sfa_layout` or `sfb_layout`; 1D2D in K-grouped problems |
| contiguous | blocks of 64, 128, 192, ... rows, ending in rows of -1 or not | other alignments (offsets problems need none) |
| offsets, aligned offsets | any alignment; gaps, rows before the first and after the last group | |
| masked | any count up to `max_m`, whatever `max_m` is | |
| K-grouped | group starts at multiples of 128 with any true K; packed groups of multiples of 128; K of 0 | a bias |
| bad grouping metadata | is clamped: nothing outside the declared extents is touched, and `validate()` names it | |
| split | 1 to 64 ranges of K, more than there are K-blocks too | more than 64 |
| devices | planning for any preset without a device; the CPU backend anywhere | compute capabilities other than 9.0 |
| quantisation | FP32, BF16, FP16; 1x128, 128x128; both axes; transposed; FP32, power-of-two and UE8M0 scales; any edge | scales written to one place (stride 0; reading them so is fine); codes longer than K rounded up to 128 |
)";

const char* code_word(octet_code code) {
  switch (code) {
    case OCTET_INVALID_ARGUMENT: return "invalid argument";
    case OCTET_UNSUPPORTED: return "unsupported";
    case OCTET_NO_DEVICE: return "no device";
    case OCTET_NOT_PREPARED: return "not prepared";
    case OCTET_DEVICE_ERROR: return "device error";
    case OCTET_OUT_OF_MEMORY: return "out of memory";
    case OCTET_INTERNAL: return "internal fault";
    default: return "other";
  }
}

std::string page() {
  std::ostringstream out;
  out << kIntroduction;
  std::vector<std::string_view> topics;  // in the order of the table
  for (const auto& rule : oct::core::rule_texts()) {
    bool seen = false;
    for (const auto topic : topics) seen = seen || topic == rule.topic;
    if (!seen) topics.push_back(rule.topic);
  }
  for (const auto topic : topics) {
    out << "\n## " << topic << "\n\n| sentence | code | why |\n|---|---|---|\n";
    for (const auto& rule : oct::core::rule_texts()) {
      if (topic != rule.topic) continue;
      out << "| `" << rule.sentence << "` | " << code_word(rule.code) << " | " << rule.why
          << (*rule.why != 0 ? " |\n" : "|\n");
    }
  }
  return out.str();
}

int check(const char* path) {
  std::ifstream file(path);
  std::stringstream have;
  have << file.rdbuf();
  std::istringstream want(page());
  std::string have_line, want_line;
  for (int line = 1;; ++line) {
    const bool more_want = static_cast<bool>(std::getline(want, want_line));
    const bool more_have = static_cast<bool>(std::getline(have, have_line));
    if (!more_want && !more_have) return 0;
    if (more_want == more_have && want_line == have_line) continue;
    std::cerr << path << ":" << line << ": differs from the table of refusals\n  there: "
              << (more_have ? have_line : "(the end)")
              << "\n  wanted: " << (more_want ? want_line : "(the end)")
              << "\nrun: octet_limits_doc > docs/limits.md\n";
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--check") return check(argv[2]);
  if (argc != 1) {
    std::cerr << "usage: octet_limits_doc [--check FILE]\n";
    return 2;
  }
  std::cout << page();
  return 0;
}
