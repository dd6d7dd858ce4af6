// How a kernel's tiles lie over a problem, and how many CTAs walk them: what the planner, its cost
// model and the launcher agree on. Pure.
#pragma once

#include "kernel_abi/tile_config.h"
#include "octet/octet.h"

namespace oct::plan {

struct Geometry {
  int cluster_split = 1;             // CTAs of a cluster that share K
  int cluster = 1;                   // CTAs of a cluster
  int64_t units_m = 0, units_n = 0;  // units of work (a tile, or a multicast cluster's tiles)
  int64_t units = 0;                 // over all batches
  double share = 1;                  // of a whole tile's time that one takes on average, where some
                                     // have rows for a part of it only
  int64_t grid = 0;                  // CTAs
  int64_t band = 1;                  // width of the bands that the units are walked in
  bool bands_along_n = false;
};

// `ctas`: at most so many CTAs are launched (octet_gemm_plan.sms).
Geometry make_geometry(const abi::TileConfig& tile, const octet_gemm_problem& problem, int split,
                       int64_t ctas);

// The parts of make_geometry(), for whoever looks at many splits of one kernel: how tiles lie over
// D, which all splits share; the clusters; the grid.
Geometry lay_tiles(const abi::TileConfig& tile, const octet_gemm_problem& problem);
void set_clusters(Geometry& geometry, const abi::TileConfig& tile, int split);
void set_grid(Geometry& geometry, int64_t ctas);

// CTAs that the kernel may occupy: all SMs times what fits on one, or one for each SM of a budget.
int64_t most_ctas(const abi::TileConfig& tile, const octet_gemm_problem& problem,
                  const octet_device_spec& device, int split);

// The same, where the size of the cluster is known.
int64_t most_ctas_in(int cluster, const abi::TileConfig& tile, const octet_gemm_problem& problem,
                     const octet_device_spec& device);

}  // namespace oct::plan
