// From a plan and its arguments to what a launch needs: kernel parameters with encoded tensor maps,
// the grid, the cluster.
#pragma once

#include "core/status.h"
#include "cuda/driver.h"
#include "kernel_abi/kernel_params.h"
#include "octet/octet.h"

namespace oct::cuda {

struct Launch {
  abi::KernelParams params;
  uint32_t grid = 0;  // CTAs; 0: nothing to do
  uint32_t threads = 0, cluster = 1, shared_bytes = 0;
  bool dependent = false;
};

// What the scheduler of a grouped kernel reads; `band`: of the plan's geometry.
abi::GroupOrder make_group_order(const abi::TileConfig& tile, const octet_gemm_problem& problem,
                                 const octet_gemm_args& args, int64_t band);

// What the scheduler of a K-grouped kernel reads.
abi::KGroups make_k_groups(const octet_gemm_problem& problem, const octet_gemm_args& args);

// The plan and the arguments have passed core::check_args(), and the kernel serves the problem
// (plan::serves()). Allocates nothing.
Status make_launch(const Driver& driver, const octet_gemm_plan& plan, const octet_gemm_args& args,
                   Launch& out);

}  // namespace oct::cuda
