// The planner's choices as lines: what tests/golden/plans.txt holds and is compared with.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "octet/octet.hpp"

namespace oct::golden {

// One with everything, one with slow tensor cores, one with slow DRAM and fewer SMs.
inline constexpr const char* kPlanDevices[] = {"h200", "h20", "h100_pcie"};

// Of cases/plans.txt, in its order.
inline std::vector<octet::GemmProblem> plan_problems() {
  std::ifstream in(OCTET_SOURCE_DIR "/cases/plans.txt");
  std::vector<octet::GemmProblem> problems;
  std::string line;
  while (std::getline(in, line)) {
    if (!line.empty() && line[0] != '#') {
      problems.push_back(octet::GemmProblem::parse(line).value());
    }
  }
  if (problems.empty()) throw std::runtime_error("cases/plans.txt: cannot be read");
  return problems;
}

inline std::vector<std::string> plan_lines() {
  std::vector<std::string> lines{
      "# The planner's choices for cases/plans.txt: problem, device, kernel, split, CTAs.",
      "# Printed by: build/release/print_plans > tests/golden/plans.txt"};
  for (const char* name : kPlanDevices) {
    const octet::DeviceSpec device = octet::DeviceSpec::preset(name).value();
    for (const octet::GemmProblem& problem : plan_problems()) {
      const auto plan = octet::plan_gemm(problem, device);
      const std::string text = fmt::format("{} {}", problem.to_string(), name);
      lines.push_back(plan.ok() ? fmt::format("{} {} {} {}", text, plan.value().kernel,
                                              plan.value().split, plan.value().sms)
                                : fmt::format("{} refused: {}", text, plan.message()));
    }
  }
  return lines;
}

}  // namespace oct::golden
