// `octet plan`: how a problem would be computed, and why. Runs nothing and needs no device.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "octet/octet.hpp"

namespace octet::tool {
namespace {

struct PlanOptions {
  std::string problem;
  std::string device = "cpu";
  bool json = false;
};

int run_plan(const PlanOptions& options) {
  const GemmProblem problem = GemmProblem::parse(options.problem).value();
  const DeviceSpec device = DeviceSpec::preset(options.device).value();
  const GemmPlan plan = plan_gemm(problem, device).value();
  if (!options.json) {
    fmt::print("{}", explain(problem, device).value());
    return kRight;
  }
  const nlohmann::json report = {{"problem", problem.to_string()},
                                 {"device", plan.device},
                                 {"kernel", plan.kernel},
                                 {"split", plan.split},
                                 {"sms", plan.sms},
                                 {"workspace_bytes", plan.workspace_bytes},
                                 {"predicted_us", plan.predicted_us},
                                 {"plan", plan.to_string()}};
  fmt::print("{}\n", report.dump(2));
  return kRight;
}

}  // namespace

Command add_plan(CLI::App& app) {
  auto* plan = app.add_subcommand("plan", "how a problem would be computed, and why");
  const auto options = std::make_shared<PlanOptions>();
  plan->add_option("problem", options->problem, "a problem string, e.g. dense_m4096n7168k2048")
      ->required();
  plan->add_option("--device", options->device,
                   "cpu, h100_sxm, h100_pcie, h200, h800, h20 or gh200 (no such device is needed)")
      ->capture_default_str();
  plan->add_flag("--json", options->json, "print JSON");
  return {plan, [options] { return run_plan(*options); }};
}

}  // namespace octet::tool
