// A random problem with everything that a call needs, in host memory of exactly the declared size.
// Unkind by default: odd strides, bytes between rows and rows without an owner hold NaN codes and
// NaN scales, D is full of a pattern and stands between guards. Copies are deep; args() points into
// this copy. A GPU test copies each buffer and translates the pointers of args().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/octet.h"
#include "support/buffers.h"
#include "support/fill.h"
#include "support/group_sizes.h"

namespace oct::testing_support {

struct CaseOptions {
  SizeMode sizes = SizeMode::kSeeded;
  DataClass data = DataClass::kGaussian;
  bool poison = true;                     // what no group owns holds NaN; otherwise zeros
  bool odd_strides = true;                // rows, groups and scales further apart than they must be
  bool gaps = true;                       // rows and pieces of K between and around the groups
  bool c_is_d = false;                    // accumulate in place
  std::vector<int64_t> group_sizes = {};  // instead of drawn ones
};

struct HostCase {
  // All choices follow from problem.seed. Same seed and sizes, same owned values, whatever the
  // options.
  HostCase(const octet_gemm_problem& problem, const CaseOptions& options = {});

  octet_gemm_args args() const;
  std::string name() const;  // problem string and what the options add

  octet_gemm_problem problem;
  CaseOptions options;
  std::vector<int64_t> sizes;  // rows, or K, of each group
  octet_gemm_args shape;       // all of args() but the pointers
  int64_t d_guard = 0;         // bytes of `d` before D begins
  Buffer a, b, c, d, sfa, sfb, bias, group_index, group_offsets, group_ends, group_counts;
};

// A plan of the CPU backend with this split (0: the planner's choice).
octet_gemm_plan cpu_plan(const octet_gemm_problem& problem, int split = 0);

}  // namespace oct::testing_support
