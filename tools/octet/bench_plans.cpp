// See bench.h. Which plans are timed: the planner's choice, forced kernels, the cheapest
// candidates.
#include <algorithm>

#include <fmt/format.h>

#include "bench.h"

namespace octet::tool {

std::string kernel_and_split(const GemmPlan& plan) {
  return fmt::format("{}:{}", plan.kernel, plan.split);
}

std::vector<ChosenPlan> choose_plans(const BenchOptions& options, const GemmProblem& problem,
                                     const DeviceSpec& device) {
  const bool any = options.force.empty() && options.force_split == 0;
  if (any && options.candidates == 0) {
    const auto plan =
        options.table ? plan_gemm(problem, device, *options.table) : plan_gemm(problem, device);
    return {{0, plan.value()}};
  }
  const auto most = static_cast<std::size_t>(std::max(1, options.candidates));
  const auto all = plan_candidates(problem, device, any ? static_cast<int>(most) : 1 << 20);
  const std::vector<GemmPlan>& plans = all.value();
  // A name that is one kernel's and the beginning of others' means that kernel.
  const bool exact = std::any_of(plans.begin(), plans.end(), [&](const GemmPlan& plan) {
    return plan.kernel == options.force;
  });
  std::vector<ChosenPlan> chosen;
  for (std::size_t i = 0; i < plans.size() && chosen.size() < most; ++i) {
    const std::string kernel = plans[i].kernel;
    if (exact ? kernel != options.force : kernel.find(options.force) == std::string::npos) continue;
    if (options.force_split != 0 && plans[i].split != options.force_split) continue;
    chosen.push_back({static_cast<int>(i), plans[i]});
  }
  if (chosen.empty()) {
    throw Error(OCTET_UNSUPPORTED,
                fmt::format("{}: none of its {} candidates is {}{} (`octet plan --json` lists "
                            "them, and why other kernels are none)",
                            problem.to_string(), plans.size(), options.force,
                            options.force_split > 0 ? fmt::format(":{}", options.force_split)
                                                    : std::string()));
  }
  return chosen;
}

std::vector<GemmProblem> chain_problems(int rows) {
  constexpr std::pair<int, int> kWeights[] = {{2112, 7168}, {576, 7168},   {24576, 1536},
                                              {32768, 512}, {7168, 16384}, {4096, 7168},
                                              {7168, 2048}, {18432, 7168}};
  std::vector<GemmProblem> problems;
  for (const auto& [n, k] : kWeights) {
    GemmProblem p;
    p.m = rows;
    p.n = n;
    p.k = k;
    problems.push_back(p);
  }
  return problems;
}

}  // namespace octet::tool
