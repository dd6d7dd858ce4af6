// Plans that a context has made, by problem: room for a thousand, taken once, so that a new shape
// allocates nothing. A problem has four places that it may lie in; where all are taken one is
// forgotten, as a plan is made again in microseconds. Takes no lock: its owner does.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.h"
#include "octet/octet.h"

namespace oct::cuda {

class PlanCache {
 public:
  static constexpr std::size_t kPlaces = 1024, kWays = 4;

  PlanCache() : plans_(kPlaces) {}

  // Null if there is none.
  const octet_gemm_plan* find(const octet_gemm_problem& problem) const {
    const octet_gemm_plan* const first = &plans_[first_place(problem)];
    for (std::size_t i = 0; i < kWays; ++i) {
      if (taken(first[i]) && core::equal(first[i].problem, problem)) return first + i;
    }
    return nullptr;
  }

  void keep(const octet_gemm_plan& plan) {
    octet_gemm_plan* const first = &plans_[first_place(plan.problem)];
    std::size_t place = 0;
    while (place < kWays && taken(first[place]) && !core::equal(first[place].problem, plan.problem))
      ++place;
    if (place == kWays) place = next_forgotten_++ % kWays;
    first[place] = plan;
  }

  void clear() {
    for (octet_gemm_plan& plan : plans_) plan = {};
  }

 private:
  static bool taken(const octet_gemm_plan& plan) { return plan.struct_size != 0; }
  static std::size_t first_place(const octet_gemm_problem& problem) {
    return core::hash(problem) % (kPlaces / kWays) * kWays;
  }

  std::vector<octet_gemm_plan> plans_;
  std::size_t next_forgotten_ = 0;
};

}  // namespace oct::cuda
