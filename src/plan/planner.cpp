// See planner.h.
#include "plan/planner.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "core/fp_environment.h"
#include "core/problem.h"
#include "core/refusals.h"
#include "plan/candidates.h"
#include "plan/device_presets.h"
#include "plan/invariant_split.h"
#include "plan/shipped_tables.h"

namespace oct::plan {
namespace {

using core::refuse;
using core::Rule;

void copy_name(char* to, std::size_t room, std::string_view name) {
  std::memset(to, 0, room);
  std::memcpy(to, name.data(), std::min(name.size(), room - 1));
}

octet_gemm_plan empty_plan(const octet_gemm_problem& problem, const octet_device_spec& device) {
  octet_gemm_plan plan{};
  plan.struct_size = sizeof plan;
  plan.problem = problem;
  copy_name(plan.device, sizeof plan.device, device_name(device));
  return plan;
}

Status plan_cpu(const octet_gemm_problem& problem, const octet_device_spec& device,
                octet_gemm_plan& plan) {
  plan = empty_plan(problem, device);
  copy_name(plan.kernel, sizeof plan.kernel, kCpuName);
  // Splitting buys nothing on a processor; it is there to give the bits of a GPU plan.
  plan.split = std::max(1, fixed_split(problem));
  return {};
}

// Whether every operand could lie in a device's memory; keeps the planner's products inside int64.
bool fits_a_device(const octet_gemm_problem& p) {
  constexpr double kMostElements = 0x1p44;
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
  const auto k = static_cast<double>(p.k), groups = static_cast<double>(p.groups);
  return groups * std::max({m * n, m * k, n * k, m, n, k}) <= kMostElements;
}

octet_gemm_plan plan_of(const Candidate& candidate, const octet_gemm_problem& problem,
                        const octet_device_spec& device) {
  octet_gemm_plan plan = empty_plan(problem, device);
  copy_name(plan.kernel, sizeof plan.kernel, candidate.name());
  plan.split = candidate.split;
  plan.sms = static_cast<int32_t>(candidate.ctas);
  plan.predicted_us = candidate.cost.total();
  return plan;
}

octet_gemm_plan plan_of(const TunedEntry& entry, const octet_gemm_problem& problem,
                        const octet_device_spec& device) {
  octet_gemm_plan plan = empty_plan(problem, device);
  std::memcpy(plan.kernel, entry.kernel, sizeof plan.kernel);
  plan.split = entry.split;
  plan.sms = entry.ctas;
  plan.predicted_us = entry.us;
  return plan;
}

// Of the table given (or null), else of the one that ships.
const TunedEntry* measured(const octet_gemm_problem& problem, const octet_device_spec& device,
                           const TunedTable* table) {
  if (table != nullptr) {
    if (const TunedEntry* e = find_tuned(table->view(), problem, device)) return e;
  }
  return find_tuned(shipped_table(device), problem, device);
}

Status check_extents(const octet_gemm_problem& problem, const octet_device_spec& device) {
  if (fits_a_device(problem)) return {};
  return refuse(Rule::kNoKernel,
                {{"problem", core::to_string(problem)},
                 {"device", std::string(device_name(device))},
                 {"want", "an operand of more than 2^44 elements fits no device"}});
}

// With the first kernel's reason: the first that is not made for other groupings, where there is
// one.
Status no_kernel(const octet_gemm_problem& problem, const octet_device_spec& device,
                 const std::vector<Refused>& refused) {
  auto first = std::find_if(refused.begin(), refused.end(),
                            [](const Refused& r) { return !r.other_grouping; });
  if (first == refused.end()) first = refused.begin();
  return refuse(Rule::kNoKernel,
                {{"problem", core::to_string(problem)},
                 {"device", std::string(device_name(device))},
                 {"want", refused.empty() ? std::string("this build has no kernels")
                                          : fmt::format("no kernel takes it (the first, {}: {})",
                                                        first->kernel, first->why)}});
}

Status find_candidates(const octet_gemm_problem& problem, const octet_device_spec& device,
                       std::vector<Candidate>& candidates, std::vector<Refused>& refused) {
  if (Status s = check_extents(problem, device); !s.ok()) return s;
  candidates = list_candidates(problem, device, fixed_split(problem), &refused);
  return candidates.empty() ? no_kernel(problem, device, refused) : Status{};
}

// Each reason once, with the kernels it was said of and their splits.
std::string refused_text(const std::vector<Refused>& refused) {
  struct Reason {
    std::string why, kernels;
    const char* last;  // kernel named
  };
  std::vector<Reason> reasons;  // in the order of the kernels
  for (const Refused& r : refused) {
    const auto at = std::find_if(reasons.begin(), reasons.end(),
                                 [&](const Reason& reason) { return reason.why == r.why; });
    if (at == reasons.end()) {
      reasons.push_back({r.why, fmt::format("{} (split {})", r.kernel, r.split), r.kernel});
    } else if (at->last == r.kernel) {
      at->kernels.insert(at->kernels.size() - 1, fmt::format(", {}", r.split));
    } else {
      at->kernels += fmt::format(", {} (split {})", r.kernel, r.split);
      at->last = r.kernel;
    }
  }
  std::string text = refused.empty() ? "" : "refused\n";
  for (const Reason& r : reasons) text += fmt::format("  {}\n    {}\n", r.why, r.kernels);
  return text;
}

// Where a measured choice stands among the predicted ones.
std::string measured_text(const TunedEntry& entry, bool ships,
                          const std::vector<Candidate>& candidates) {
  const auto at = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.split == entry.split && std::string_view(c.name()) == entry.kernel;
  });
  std::string text =
      fmt::format("measured: {:.2f} us, by {}", entry.us,
                  ships ? "the tuned table that ships with the library" : "the tuned table given");
  if (at != candidates.end()) {
    text += fmt::format("; predicted {:.2f}, number {} of {}", at->cost.total(),
                        at - candidates.begin() + 1, candidates.size());
  }
  return text + "\n";
}

Status check_all(const octet_gemm_problem& problem, const octet_device_spec& device) {
  if (Status s = core::check_problem(problem); !s.ok()) return s;
  if (Status s = check_device(device); !s.ok()) return s;
  if (!is_cpu(device) && problem.sm_budget > device.sms) {
    return refuse(Rule::kSmBudget, {{"got", core::text(problem.sm_budget)},
                                    {"want", core::text(device.sms)},
                                    {"device", std::string(device_name(device))}});
  }
  return {};
}

}  // namespace

Status supports(const octet_gemm_problem& problem, const octet_device_spec& device) {
  octet_gemm_plan plan;
  return plan_gemm(problem, device, nullptr, plan);
}

Status plan_gemm(const octet_gemm_problem& problem, const octet_device_spec& device,
                 const TunedTable* table, octet_gemm_plan& plan) {
  const core::FpEnvironment environment;
  if (Status s = check_all(problem, device); !s.ok()) return s;
  if (is_cpu(device)) return plan_cpu(problem, device, plan);
  if (Status s = check_extents(problem, device); !s.ok()) return s;
  if (const TunedEntry* entry = measured(problem, device, table)) {
    plan = plan_of(*entry, problem, device);
    return {};
  }
  const int split = fixed_split(problem);
  if (const std::optional<Candidate> best = cheapest(problem, device, split)) {
    plan = plan_of(*best, problem, device);
    return {};
  }
  std::vector<Refused> refused;
  list_candidates(problem, device, split, &refused);
  return no_kernel(problem, device, refused);
}

Status plan_candidate(const octet_gemm_problem& problem, const octet_device_spec& device,
                      int32_t index, octet_gemm_plan& plan, int32_t& count) {
  count = 0;
  if (Status s = check_all(problem, device); !s.ok()) return s;
  std::vector<Candidate> candidates;
  if (is_cpu(device)) {
    count = 1;
  } else {
    std::vector<Refused> refused;
    if (Status s = find_candidates(problem, device, candidates, refused); !s.ok()) return s;
    count = static_cast<int32_t>(candidates.size());
  }
  if (index < 0) return refuse(Rule::kNegative, {{"arg", "index"}, {"got", core::text(index)}});
  if (index >= count) {
    return refuse(Rule::kTooLarge, {{"arg", "index"},
                                    {"got", core::text(index)},
                                    {"want", fmt::format("{} ({} candidate{})", count - 1, count,
                                                         count == 1 ? "" : "s")}});
  }
  if (is_cpu(device)) return plan_cpu(problem, device, plan);
  plan = plan_of(candidates[static_cast<std::size_t>(index)], problem, device);
  return {};
}

Status explain(const octet_gemm_problem& problem, const octet_device_spec& device,
               const TunedTable* table, std::string& text) {
  const core::FpEnvironment environment;
  if (Status s = check_all(problem, device); !s.ok()) return s;
  octet_gemm_plan plan;
  if (is_cpu(device)) {
    if (Status s = plan_cpu(problem, device, plan); !s.ok()) return s;
    text = to_string(plan) + "\n";
    text += fmt::format("The CPU backend computes K in {} range{}: {}.\n", plan.split,
                        plan.split == 1 ? "" : "s",
                        problem.split > 0         ? "the problem asks for it"
                        : problem.batch_invariant ? "batch_invariant derives it from N and K alone"
                                                  : "splitting K buys nothing on a processor");
    return {};
  }
  std::vector<Candidate> candidates;
  std::vector<Refused> refused;
  if (Status s = find_candidates(problem, device, candidates, refused); !s.ok()) return s;
  const TunedEntry* const entry = measured(problem, device, table);
  const bool ships = entry == find_tuned(shipped_table(device), problem, device);
  plan = entry != nullptr ? plan_of(*entry, problem, device)
                          : plan_of(candidates.front(), problem, device);
  text = to_string(plan) + "\n\n";
  if (entry != nullptr) text += measured_text(*entry, ships, candidates);
  text +=
      "predicted time in us: launch + fill + work (stream and math together) + exchange + store\n";
  text += fmt::format("  {:<26} {:>5} {:>5} {:>8} {:>7} {:>6} {:>8} {:>8} {:>9} {:>6}\n", "kernel",
                      "split", "ctas", "total", "launch", "fill", "stream", "math", "exchange",
                      "store");
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < std::min(candidates.size(), kShown); ++i) {
    const Candidate& c = candidates[i];
    text += fmt::format(
        "  {:<26} {:>5} {:>5} {:>8.2f} {:>7.2f} {:>6.2f} {:>8.2f} {:>8.2f} {:>9.2f} "
        "{:>6.2f}\n",
        c.name(), c.split, c.ctas, c.cost.total(), c.cost.launch, c.cost.fill, c.cost.stream,
        c.cost.math, c.cost.exchange, c.cost.store);
  }
  if (candidates.size() > kShown) {
    text += fmt::format("  and {} more\n", candidates.size() - kShown);
  }
  text += refused_text(refused);
  return {};
}

}  // namespace oct::plan
