// What `octet verify` has seen, and how it tells: differences as they come (or, with --json, at the
// end), a line of progress on a terminal, a summary, the exit code.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "octet/octet.hpp"
#include "verify_case.h"

namespace octet::tool {

class VerifyReport {
 public:
  VerifyReport(int32_t device, std::size_t shapes, bool json);

  double seconds() const;

  void expect(const std::string& kernel);  // every kernel told here must be compared at least once
  void shape_done() { ++shapes_done_; }
  // A plan was run; `difference` to the CPU's bits, if there is one.
  void compared(const GemmPlan& plan, int64_t outputs, const std::optional<Difference>& difference);
  // Something could not be run that should have been.
  void failed(const std::string& where, const std::string& message);
  // Nothing more comes, for this reason. A fault fails the check, an end of the time does not.
  void stop(const std::string& reason, bool fault);

  // Prints the summary; the exit code.
  int finish() const;

 private:
  // What was compared of one kernel.
  struct Tally {
    std::map<int32_t, int64_t> problems_of_split;
    int64_t problems = 0, outputs = 0, wrong = 0;  // wrong: problems that differ
  };

  void describe(const GemmPlan& plan, int64_t outputs, const Difference& difference);
  void tell(const std::string& where, const std::string& message, nlohmann::json details);
  void show_progress();
  void clear_progress() const;
  std::vector<std::string> unchecked() const;
  nlohmann::json to_json() const;

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const std::string device_, driver_;
  const std::size_t shapes_;
  const bool json_, shows_progress_;
  std::map<std::string, Tally> tallies_;
  std::size_t shapes_done_ = 0;
  int64_t problems_ = 0, outputs_ = 0, mismatches_ = 0, failures_ = 0;
  nlohmann::json told_ = nlohmann::json::array();
  std::string stopped_;
  double shown_at_ = -1;
};

}  // namespace octet::tool
