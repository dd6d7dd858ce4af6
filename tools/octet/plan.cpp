// `octet plan`: how a problem would be computed, and why. Runs nothing; only cuda and cuda:N
// need a device.
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "devices.h"
#include "json_text.h"
#include "octet/octet.hpp"
#include "option_parser.h"
#include "table_file.h"

namespace octet::tool {
namespace {

struct PlanOptions {
  std::string problem;
  std::string device = "cpu";
  std::string table;  // file, or empty
  bool json = false;
};

// The N of "cuda:N", 0 of "cuda"; nothing if the text is neither.
std::optional<int32_t> cuda_ordinal(std::string_view text) {
  constexpr std::string_view kName = "cuda";
  if (!text.starts_with(kName)) return {};
  text.remove_prefix(kName.size());
  if (text.empty()) return 0;
  int32_t ordinal = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + 1, end, ordinal);
  const bool whole = text.front() == ':' && error == std::errc{} && at == end && ordinal >= 0;
  return whole ? std::optional(ordinal) : std::nullopt;
}

DeviceSpec find_device(const std::string& text) {
  if (const auto ordinal = cuda_ordinal(text)) {
    const auto device = cuda::device_spec(*ordinal);
    if (!device.ok()) throw NoDevice(device.message());
    return device.value();
  }
  const auto device = DeviceSpec::preset(text);
  if (!device.ok()) {
    throw std::runtime_error(device.message() + ", or cuda or cuda:N for one of this machine");
  }
  return device.value();
}

// All candidates, cheapest prediction first.
nlohmann::json candidates_json(const GemmProblem& problem, const DeviceSpec& device) {
  nlohmann::json all = nlohmann::json::array();
  for (const GemmPlan& plan : plan_candidates(problem, device, INT32_MAX).value()) {
    all.push_back({{"kernel", plan.kernel},
                   {"split", plan.split},
                   {"sms", plan.sms},
                   {"workspace_bytes", plan.workspace_bytes},
                   {"predicted_us", plan.predicted_us}});
  }
  return all;
}

// What the explanation says below "refused": a reason, indented by two, then kernels by four.
nlohmann::json refused_json(const std::string& explanation) {
  nlohmann::json all = nlohmann::json::array();
  std::istringstream lines(explanation);
  std::string line;
  while (std::getline(lines, line) && line != "refused") {
  }
  while (std::getline(lines, line)) {
    if (line.starts_with("    ") && !all.empty()) {
      all.back()["kernels"] = line.substr(4);
    } else if (line.starts_with("  ")) {
      all.push_back({{"reason", line.substr(2)}, {"kernels", ""}});
    }
  }
  return all;
}

int run_plan(const PlanOptions& options) {
  const GemmProblem problem = GemmProblem::parse(options.problem).value();
  const DeviceSpec device = find_device(options.device);
  std::optional<TunedTable> table;
  if (!options.table.empty()) {
    table = read_table("--table", options.table);
    tell_unused(*table, options.table, device);
  }
  const GemmPlan plan =
      (table ? plan_gemm(problem, device, *table) : plan_gemm(problem, device)).value();
  const std::string explanation = explain(problem, device, table ? &*table : nullptr).value();
  if (!options.json) {
    fmt::print("{}", explanation);
    return kRight;
  }
  const nlohmann::json report = {{"problem", problem.to_string()},
                                 {"device", plan.device},
                                 {"kernel", plan.kernel},
                                 {"split", plan.split},
                                 {"sms", plan.sms},
                                 {"workspace_bytes", plan.workspace_bytes},
                                 {"predicted_us", plan.predicted_us},
                                 {"plan", plan.to_string()},
                                 {"candidates", candidates_json(problem, device)},
                                 {"refused", refused_json(explanation)}};
  fmt::print("{}\n", json_text(report));
  return kRight;
}

}  // namespace

Command add_plan(CLI::App& app) {
  Subcommand plan(app, "plan", "how a problem would be computed, and why");
  const auto options = std::make_shared<PlanOptions>();
  plan.add("problem", options->problem, "a problem string, e.g. dense_m4096n7168k2048").required();
  plan.add("--device", options->device,
           "cpu, h100_sxm, h100_pcie, h200, h800, h20 or gh200 (no such device is needed); cuda "
           "or cuda:N for a device of this machine")
      .shows_default();
  plan.add("--table", options->table, "a tuned table that the planner asks first");
  plan.flag("--json", options->json, "print JSON, with every candidate");
  plan.footer(
      "Runs nothing. Says the plan, what the candidates are predicted to take, and why others are "
      "none.\n"
      "\nExamples:\n"
      "  octet plan dense_m64n7168k2048 --device h200\n"
      "  octet plan masked_g32m192n4096k7168 --device cuda --json\n"
      "  octet plan dense_m48n7168k2048 --device h200 --table mine.txt\n"
      "\nThe grammar of problems: docs/problem-string.md. Exit codes: 0 right; 2 bad input, or no "
      "plan for\nthis problem; 3 no usable device (--device cuda).\n");
  return {plan.app(), [options] { return run_plan(*options); }};
}

}  // namespace octet::tool
