// See planner.h.
#include "plan/planner.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/problem.h"
#include "core/refusals.h"
#include "plan/device_presets.h"
#include "plan/invariant_split.h"

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
  copy_name(plan.kernel, sizeof plan.kernel, "cpu");
  // Splitting buys nothing on a processor; it is there to give the bits of a GPU plan.
  plan.split = problem.split > 0         ? problem.split
               : problem.batch_invariant ? invariant_split(problem.n, problem.k)
                                         : 1;
  return {};
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
  return plan_gemm(problem, device, plan);
}

Status plan_gemm(const octet_gemm_problem& problem, const octet_device_spec& device,
                 octet_gemm_plan& plan) {
  if (Status s = check_all(problem, device); !s.ok()) return s;
  if (is_cpu(device)) return plan_cpu(problem, device, plan);
  return refuse(Rule::kNoKernel, {{"problem", core::to_string(problem)},
                                  {"device", std::string(device_name(device))},
                                  {"want", "this build has no kernel for it"}});
}

Status explain(const octet_gemm_problem& problem, const octet_device_spec& device,
               std::string& text) {
  octet_gemm_plan plan;
  if (Status s = plan_gemm(problem, device, plan); !s.ok()) return s;
  text = to_string(plan) + "\n";
  text += fmt::format("The CPU backend computes K in {} range{}: {}.\n", plan.split,
                      plan.split == 1 ? "" : "s",
                      problem.split > 0         ? "the problem asks for it"
                      : problem.batch_invariant ? "batch_invariant derives it from N and K alone"
                                                : "splitting K buys nothing on a processor");
  return {};
}

}  // namespace oct::plan
