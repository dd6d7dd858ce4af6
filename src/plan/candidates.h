// Which kernels serve a problem, how their tiles lie over it, and what each would take: the list
// the planner chooses from. Pure: the same arguments give the same list on any machine.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/refusals.h"
#include "core/status.h"
#include "kernel_abi/kernel_table.h"
#include "octet/octet.h"
#include "plan/kernel_facts.h"

namespace oct::plan {

// How a kernel's tiles are laid over a problem; what the planner and the launcher agree on.
struct Geometry {
  int cluster_split = 1;             // CTAs of a cluster that share K
  int cluster = 1;                   // CTAs of a cluster
  int64_t units_m = 0, units_n = 0;  // units of work (a tile, or a multicast cluster's tiles)
  int64_t units = 0;                 // over all batches
  int64_t grid = 0;                  // CTAs
  int64_t band = 1;                  // width of the bands that the units are walked in
  bool bands_along_n = false;
};

// `ctas`: at most so many CTAs are launched (octet_gemm_plan.sms).
Geometry make_geometry(const abi::TileConfig& tile, const octet_gemm_problem& problem, int split,
                       int64_t ctas);

// Grouped kernels, whose tiles only the device can count: the most that there may be, where A has
// `rows` rows in all (masked: each group's buffer).
int64_t most_grouped_tiles(const abi::TileConfig& tile, const octet_gemm_problem& problem,
                           int64_t rows);
// Why a grouped kernel does not take so many rows, which no problem but a masked one tells.
std::optional<core::Rule> objection_to_rows(const abi::TileConfig& tile,
                                            const octet_gemm_problem& problem, int64_t rows);
Status takes_rows(const abi::TileConfig& tile, const octet_gemm_problem& problem, int64_t rows);

// CTAs that the kernel may occupy: all SMs times what fits on one, or one for each SM of a budget.
int64_t most_ctas(const abi::TileConfig& tile, const octet_gemm_problem& problem,
                  const octet_device_spec& device, int split);

// Why the kernel does not compute the problem with K cut into `split`, as a rule: nothing is
// allocated. None where it does.
std::optional<core::Rule> objection(const abi::TileConfig& tile, const octet_gemm_problem& problem,
                                    const octet_device_spec& device, int split);

// Whether the kernel computes the problem with K cut into `split`, or the reason in words.
Status serves(const abi::TileConfig& tile, const octet_gemm_problem& problem,
              const octet_device_spec& device, int split);

// What a candidate is predicted to take, in microseconds.
struct Cost {
  double launch = 0;    // an empty launch, and clusters that have to be placed
  double fill = 0;      // from the first request to the first product
  double stream = 0;    // operands from DRAM, and D
  double math = 0;      // tensor cores, promotion and L2 over all waves
  double work = 0;      // stream and math together: a little more than the longer of the two
  double exchange = 0;  // partial sums between the ranges of K
  double store = 0;     // D, as far as it does not hide under the next tile
  // To a thousandth, beyond which no prediction means anything.
  double total() const {
    return std::floor((launch + fill + work + exchange + store) * 1000 + 0.5) / 1000;
  }
};

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
