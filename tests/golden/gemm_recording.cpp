// See gemm_recording.h.
#include "golden/gemm_recording.h"

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "core/check.h"
#include "core/float_types.h"
#include "core/problem.h"
#include "core/views.h"
#include "cpu/run.h"
#include "kernel_abi/kernel_table.h"
#include "plan/candidates.h"
#include "plan/planner.h"
#include "ref/gemm.h"

namespace oct::golden {
namespace {

template <typename Run>
Compute on_host(Run run) {
  return [run](const octet_gemm_plan& plan, const GemmInputs& inputs, uint8_t* d_memory) {
    const octet_gemm_args args = inputs.args(inputs.host_memory(d_memory));
    if (Status s = core::check_args(plan, args); !s.ok()) return s;
    return run(core::expand(plan, args));
  };
}

// D's memory before the call, then what `compute` makes of it.
Status computed(const octet_gemm_plan& plan, const GemmInputs& inputs, const Compute& compute,
                testing_support::Buffer& d_memory) {
  d_memory = inputs.d;
  return compute(plan, inputs, d_memory.data());
}

octet_gemm_plan make_plan(const octet_gemm_problem& problem, const octet_device_spec& device,
                          const char* kernel, int split, int64_t ctas) {
  octet_gemm_plan plan{};
  plan.struct_size = sizeof plan;
  plan.problem = problem;
  plan.split = split;
  plan.sms = static_cast<int32_t>(ctas);
  std::snprintf(plan.kernel, sizeof plan.kernel, "%s", kernel);
  std::snprintf(plan.device, sizeof plan.device, "%s", device.name);
  return plan;
}

std::string first_difference(const octet_gemm_problem& p, const std::vector<uint8_t>& got,
                             const std::vector<uint8_t>& want) {
  const auto element = static_cast<std::size_t>(core::size_of(p.d_type));
  if (got.size() != want.size()) {
    return std::to_string(got.size()) + " bytes against " + std::to_string(want.size());
  }
  std::size_t count = 0, first = 0;
  for (std::size_t i = 0; i < got.size(); i += element) {
    if (std::memcmp(&got[i], &want[i], element) == 0) continue;
    if (count++ == 0) first = i / element;
  }
  if (count == 0) return "";
  uint32_t x = 0, y = 0;
  std::memcpy(&x, &got[first * element], element);
  std::memcpy(&y, &want[first * element], element);
  const auto row = static_cast<int64_t>(first) / p.n;
  char text[160];
  std::snprintf(text, sizeof text,
                "%zu elements differ, the first at group %lld [%lld, %lld]: %#x against %#x", count,
                static_cast<long long>(row / p.m), static_cast<long long>(row % p.m),
                static_cast<long long>(static_cast<int64_t>(first) % p.n), x, y);
  return text;
}

}  // namespace

Compute compute_on_cpu(octet_isa isa) {
  return on_host([isa](const core::Work& work) { return cpu::run(work, {1, isa}, nullptr); });
}

Compute compute_by_reference() {
  return on_host([](const core::Work& work) {
    ref::run(work);
    return Status{};
  });
}

octet_gemm_problem case_problem(const GemmCase& which, std::size_t index) {
  octet_gemm_problem p;
  if (Status s = core::parse_problem(which.problem, p); !s.ok()) {
    throw std::runtime_error(s.message());
  }
  p.seed = static_cast<uint32_t>(index + 1);
  return p;
}

std::vector<octet_gemm_plan> case_plans(const octet_gemm_problem& problem,
                                        const octet_device_spec& device) {
  std::vector<octet_gemm_plan> plans;
  const int split = problem.split > 0 ? problem.split : 1;
  for (const abi::KernelRow& row : abi::kKernels) {
    const abi::TileConfig tile = abi::parse_kernel(row.name);
    if (!plan::serves(tile, problem, device, split).ok()) continue;
    plans.push_back(
        make_plan(problem, device, row.name, split, plan::most_ctas(tile, problem, device, split)));
  }
  return plans;
}

Recording record(std::span<const GemmCase> cases, const octet_device_spec& device,
                 const Compute& compute) {
  Recording out;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const octet_gemm_problem problem = case_problem(cases[i], i);
    const GemmInputs inputs(problem, cases[i].input_class, cases[i].scales);
    GemmRecord r;
    r.problem = core::to_string(problem);
    r.input_class = cases[i].input_class;
    r.scale_class = static_cast<uint32_t>(cases[i].scales);
    r.split = static_cast<uint32_t>(problem.split > 0 ? problem.split : 1);
    r.input_checksum = inputs.checksum();
    for (const octet_gemm_plan& plan : case_plans(problem, device)) {
      testing_support::Buffer d;
      const auto wrong = [&](const std::string& what) {
        out.wrong.push_back(plan::to_string(plan) + ": " + what);
      };
      if (Status s = computed(plan, inputs, compute, d); !s.ok()) {
        wrong(s.message());
        continue;
      }
      if (!inputs.outside_is_untouched(d.data())) wrong("wrote outside D");
      std::vector<uint8_t> elements = inputs.elements(d.data());
      if (r.runs.empty()) {
        r.d = std::move(elements);
      } else if (std::string what = first_difference(problem, elements, r.d); !what.empty()) {
        wrong("against " + r.runs[0].kernel + ": " + what);
        continue;
      }
      r.runs.push_back({plan.kernel, static_cast<uint32_t>(plan.sms)});
    }
    if (r.runs.empty()) {
      out.wrong.push_back(r.problem + ": no kernel computed it");
      continue;
    }
    out.file.records.push_back(std::move(r));
  }
  return out;
}

std::string disagreement(const GemmRecord& record, const Compute& compute) {
  octet_gemm_problem problem;
  if (Status s = core::parse_problem(record.problem, problem); !s.ok()) return s.message();
  const std::string name = record.problem + ": ";
  if (record.input_class >= kClasses || record.scale_class >= kScaleClasses || record.split < 1 ||
      record.split > core::kMaxSplit || record.runs.empty() ||
      (problem.split > 0 && record.split != static_cast<uint32_t>(problem.split))) {
    return name + "an absurd record";
  }
  const GemmInputs inputs(problem, record.input_class, static_cast<ScaleClass>(record.scale_class));
  if (inputs.checksum() != record.input_checksum) {
    return name + "the inputs drawn here are not those that were recorded";
  }
  octet_device_spec device{};
  std::snprintf(device.name, sizeof device.name, "%s", "cpu");
  const octet_gemm_plan plan = make_plan(problem, device, "cpu", static_cast<int>(record.split), 0);
  testing_support::Buffer d;
  if (Status s = computed(plan, inputs, compute, d); !s.ok()) return name + s.message();
  if (!inputs.outside_is_untouched(d.data())) return name + "wrote outside D";
  const std::string what = first_difference(problem, inputs.elements(d.data()), record.d);
  return what.empty() ? "" : name + what;
}

}  // namespace oct::golden
