// What a candidate is predicted to take. Figures: docs/performance-log.md says how each was
// obtained.
#pragma once

#include <cmath>

#include "octet/octet.h"
#include "plan/geometry.h"

namespace oct::plan {

// What a candidate is predicted to take, in microseconds.
struct Cost {
  double launch = 0;    // an empty launch, and clusters that have to be placed
  double fill = 0;      // from the first request to the first product
  double stream = 0;    // operands from DRAM, and D
  double math = 0;      // tensor cores, promotion and L2 over all waves
  double work = 0;      // stream and math together: a little more than the longer of the two
  double exchange = 0;  // partial sums between the ranges of K
  double store = 0;  // D, as far as it does not hide under the next tile, and what else tiles cost
  // To a thousandth, beyond which no prediction means anything.
  double total() const {
    return std::floor((launch + fill + work + exchange + store) * 1000 + 0.5) / 1000;
  }
};

// What of the cost model is the same for all candidates of a problem.
struct Traffic {
  double blocks, d_bytes, read;
  double weights;      // bytes of B
  double elements;     // of D
  double rows;         // of A, every group's rounded up to 8
  double m, n;         // of a group
  double l2_rate;      // bytes a cycle of rows pitched so that L2 gives every SM
  bool whole_lines;    // of L2: rows of A and B
  bool whole_sectors;  // rows of D
};

Traffic traffic_of(const octet_gemm_problem& problem);

// Cycles that L2 takes for a K-block of one CTA on every SM, the same for all splits of a kernel;
// 0: no limit. `kernel`: its place in the table.
double l2_cycles_of(int kernel, const Geometry& geometry, const Traffic& traffic);

// All of a candidate's cost but `work`.
Cost predict_parts(int kernel, const Geometry& geometry, const Traffic& traffic, double l2_cycles,
                   const octet_device_spec& device, int split);
// ... and that, which takes as long as all the rest.
void finish(Cost& cost);
// A total that the candidate's can only exceed, found without finish().
double least_total(const Cost& cost);

}  // namespace oct::plan
