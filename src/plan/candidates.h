// Which kernels serve a problem, how their tiles lie over it, and what each would take: the list
// the planner chooses from. Pure: the same arguments give the same list on any machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/refusals.h"
#include "core/status.h"
#include "kernel_abi/kernel_table.h"
#include "octet/octet.h"
#include "plan/cost_model.h"
#include "plan/geometry.h"
#include "plan/kernel_facts.h"

namespace oct::plan {

// Grouped kernels, whose tiles only the device can count: the most that there may be, where A has
// `rows` rows in all (masked: each group's buffer).
int64_t most_grouped_tiles(const abi::TileConfig& tile, const octet_gemm_problem& problem,
                           int64_t rows);
// Why a grouped kernel does not take so many rows, which no problem but a masked one tells.
std::optional<core::Rule> objection_to_rows(const abi::TileConfig& tile,
                                            const octet_gemm_problem& problem, int64_t rows);
Status takes_rows(const abi::TileConfig& tile, const octet_gemm_problem& problem, int64_t rows);

// Why the kernel does not compute the problem with K cut into `split`, as a rule: nothing is
// allocated. None where it does.
std::optional<core::Rule> objection(const abi::TileConfig& tile, const octet_gemm_problem& problem,
                                    const octet_device_spec& device, int split);

// Whether the kernel computes the problem with K cut into `split`, or the reason in words.
Status serves(const abi::TileConfig& tile, const octet_gemm_problem& problem,
              const octet_device_spec& device, int split);

struct Candidate {
  int kernel = 0;  // place in the kernel table
  int split = 1;
  int64_t ctas = 0;
  Cost cost;
  const char* name() const { return abi::kKernels[kernel].name; }
};

struct Refused {
  const char* kernel;
  int split;
  std::string why;
  bool other_grouping;  // made for other groupings than the problem's
};

// Every kernel and split that serves the problem, cheapest first. problem.split, when given, is the
// only split tried; `forced_split` > 0 likewise (batch_invariant plans). `refused` may be null.
std::vector<Candidate> list_candidates(const octet_gemm_problem& problem,
                                       const octet_device_spec& device, int forced_split,
                                       std::vector<Refused>* refused);

// The first of that list, or none where it is empty. Allocates nothing, and is many times faster:
// it is what a call with a new shape waits for.
std::optional<Candidate> cheapest(const octet_gemm_problem& problem,
                                  const octet_device_spec& device, int forced_split);

}  // namespace oct::plan
