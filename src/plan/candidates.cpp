// See candidates.h. Figures of the cost model: docs/performance-log.md says how each was obtained.
#include "plan/candidates.h"

#include <algorithm>
#include <cmath>

#include "core/math.h"
#include "core/problem.h"
#include "core/refusals.h"
#include "kernel_abi/smem_layout.h"
#include "plan/kernel_costs.h"
#include "plan/longer_of_two.h"

namespace oct::plan {
namespace {

using core::ceil_div;
using core::refuse;
using core::Rule;

int64_t k_blocks(const octet_gemm_problem& p) { return ceil_div(p.k, core::kBlockK); }

// Most clusters of this size that are resident with one CTA on an SM.
int64_t resident_clusters(const octet_device_spec& device, int cluster) {
  int log = 0;
  while ((1 << log) < cluster) ++log;
  if (cluster == 1 || log > 4) return device.sms;
  return device.active_clusters[log];
}

}  // namespace

Geometry make_geometry(const abi::TileConfig& tile, const octet_gemm_problem& p, int split,
                       int64_t ctas) {
  Geometry g;
  g.cluster_split =
      tile.sequential || tile.multicast() > 1 ? 1 : std::max(1, split / tile.k_groups);
  g.cluster = tile.multicast() * g.cluster_split;
  if (p.m == 0 || p.n == 0 || p.groups == 0) return g;
  const int64_t tiles_m = ceil_div(p.m, tile.tile_m), tiles_n = ceil_div(p.n, tile.tile_n);
  g.units_m = ceil_div(tiles_m, tile.cluster_m);
  g.units_n = ceil_div(tiles_n, tile.cluster_n);
  g.units = g.units_m * g.units_n * p.groups;
  g.grid = g.cluster * std::max<int64_t>(1, std::min(g.units, ctas / g.cluster));
  // The block of D in flight reads (its rows + its columns) of operands: bands make it compact.
  // Banding along the axis whose operand is the larger keeps the other one in L2.
  g.bands_along_n = g.units_n * tile.tile_n >= g.units_m * tile.tile_m;
  const int64_t across = (g.bands_along_n ? int64_t{tile.tile_n} * tile.cluster_n
                                          : int64_t{tile.tile_m} * tile.cluster_m);
  g.band = std::max<int64_t>(1, 2048 / across);
  return g;
}

int64_t most_ctas(const abi::TileConfig& tile, const octet_gemm_problem& p,
                  const octet_device_spec& device, int split) {
  const int cluster = make_geometry(tile, p, split, 1 << 30).cluster;
  // A budget leaves the other SMs alone, so no more CTAs than SMs: two on one SM would be spread.
  if (p.sm_budget > 0 && p.sm_budget < device.sms) return p.sm_budget / cluster * cluster;
  return resident_clusters(device, cluster) * cluster * tile.ctas_per_sm;
}

Status serves(const abi::TileConfig& tile, const octet_gemm_problem& p,
              const octet_device_spec& device, int split) {
  if (!tile.valid) return refuse(Rule::kInternal, {{"got", "the name of a kernel without a tile"}});
  if (p.grouping != OCTET_DENSE && p.grouping != OCTET_BATCHED) {
    return refuse(Rule::kServesGrouping, {});
  }
  if (p.in_type != OCTET_E4M3 || p.granularity != OCTET_1D2D) {
    return refuse(Rule::kServesOperands, {});
  }
  if (split < 1) {
    return refuse(Rule::kPlanSplit,
                  {{"got", core::text(split)}, {"want", core::text(core::kMaxSplit)}});
  }
  const int64_t blocks = k_blocks(p);
  if (!tile.sequential) {
    if (split % tile.k_groups != 0) {
      return refuse(Rule::kServesPipelines, {{"want", core::text(tile.k_groups)}});
    }
    const int over_cluster = split / tile.k_groups;
    if (over_cluster > 1 && tile.multicast() > 1) return refuse(Rule::kServesShared, {});
    if (over_cluster > 1 && !tile.splits_over_cluster()) {
      return refuse(Rule::kServesNoRoom, {});
    }
    if (over_cluster > kLargestCluster) {
      return refuse(Rule::kServesCluster, {{"want", core::text(kLargestCluster)}});
    }
    if (split > 1 && blocks < split) return refuse(Rule::kServesFewBlocks, {});
  }
  const Geometry g = make_geometry(tile, p, split, 1 << 30);
  if (g.units >= (int64_t{1} << 31)) return refuse(Rule::kServesTiles, {});
  constexpr int64_t kLastCoordinate = (int64_t{1} << 31) - 1024;
  if (tile.multicast() > 1 && (p.m > kLastCoordinate || p.n > kLastCoordinate)) {
    return refuse(Rule::kServesCoordinates, {});
  }
  const abi::SmemLayout smem = abi::make_smem_layout(tile, g.cluster_split);
  if (smem.stages < 2 * tile.k_groups || smem.total > device.shared_memory_bytes) {
    return refuse(Rule::kServesMemory, {});
  }
  if (most_ctas(tile, p, device, split) < g.cluster) {
    return refuse(Rule::kServesBudget, {{"got", core::text(g.cluster)}});
  }
  return {};
}

// Fitted to 660 forced timings of 94 shapes on an H200 (docs/performance-log.md, 2026-11-30): 5.1 %
// root mean square; its choice costs 1.1 % on average over the fastest one measured, at worst 14 %.
Cost predict(const abi::KernelRow& kernel, const abi::TileConfig& tile, const octet_gemm_problem& p,
             const octet_device_spec& device, int split, int64_t ctas) {
  constexpr double kClock = 1700;          // cycles in a microsecond, under load
  constexpr double kFill = 0.9;            // to the first product, and from the last one
  constexpr double kClusterLaunch = 0.41;  // clusters of more than two CTAs have to be placed
  constexpr double kMeeting = 0.18;        // ranges of K wait for each other
  constexpr double kExchange = 3.5;        // us for 64 KB of partial sums of a CTA
  constexpr double kStore = 1.24;          // us for 64 KB of D
  constexpr double kHiddenStore = 1.02;    // where it leaves under the next tile's WGMMA
  constexpr double kStreamed = 0.953;      // of the DRAM rate that tiles reach
  constexpr double kBusy = 0.35;           // of the SMs, that saturate DRAM
  constexpr double kMeasuredTensorRate = 1672e12 / 132;  // of an SM of the device that was measured
  Cost c;
  const Geometry g = make_geometry(tile, p, split, ctas);
  if (g.units == 0) return c;
  const double blocks = static_cast<double>(k_blocks(p));
  const double clusters = static_cast<double>(g.grid / g.cluster);
  const double waves = std::ceil(static_cast<double>(g.units) / clusters);
  const double range = std::ceil(blocks / (tile.sequential ? 1 : split));  // of one pipeline
  const double per_sm = std::clamp(static_cast<double>(g.grid) / device.sms, 1.0,
                                   static_cast<double>(tile.ctas_per_sm));
  const double slower = kMeasuredTensorRate * device.sms / device.fp8_flops_per_second;

  // Cycles of one K-block of a tile: as measured, but no less than the tensor cores need.
  const KernelCost& cost = kKernelCosts[&kernel - abi::kKernels];
  double cycles = cost.alone;
  if (tile.ctas_per_sm > 1) {
    cycles += (cost.shared - cost.alone) * (per_sm - 1) / (tile.ctas_per_sm - 1);
  }
  const double tensor =
      2.0 * tile.piece_cols() * tile.pieces() * tile.math_groups() * per_sm * slower;
  cycles = std::max(cycles, tensor);

  c.launch = device.launch_seconds * 1e6 + (g.cluster > 2 ? kClusterLaunch : 0);
  c.fill = kFill;
  c.math = waves * range * cycles / kClock;
  const double groups = static_cast<double>(p.groups);
  const double d_bytes = static_cast<double>(p.m) * static_cast<double>(p.n) * groups *
                         (p.d_type == OCTET_F32 ? 4 : 2) * (p.accumulate ? 2 : 1);
  const double read =
      (static_cast<double>(p.m) + static_cast<double>(p.n)) * static_cast<double>(p.k) * groups;
  // With few SMs at work, DRAM is limited by what they have in flight.
  const double busy = static_cast<double>(g.grid) / per_sm / (kBusy * device.sms);
  c.stream =
      (read + d_bytes) / (device.dram_bytes_per_second * kStreamed * std::min(1.0, busy)) * 1e6;
  if (g.cluster_split > 1) c.exchange = waves * kExchange * tile.partial_bytes() / 65536.0;
  if (g.cluster_split > 1 || tile.k_groups > 1) c.exchange += waves * kMeeting;
  const double tile_store = tile.tile_m * tile.tile_n * 2.0 / 65536.0;
  c.store =
      tile_store * (tile.pieces() == 2 ? kStore + (waves - 1) * kHiddenStore : waves * kStore);
  c.work = longer_of_two(c.math, c.stream);
  return c;
}

std::vector<Candidate> list_candidates(const octet_gemm_problem& p, const octet_device_spec& device,
                                       int forced_split, std::vector<Refused>* refused_list) {
  std::vector<Candidate> out;
  const int only = forced_split > 0 ? forced_split : p.split;
  for (const abi::KernelRow& row : abi::kKernels) {
    const abi::TileConfig tile = abi::parse_kernel(row.name);
    for (int over = 1; over <= kLargestCluster; ++over) {
      const int split = only > 0 ? only : tile.sequential ? 1 : over * tile.k_groups;
      if (Status s = serves(tile, p, device, split); s.ok()) {
        Candidate c;
        c.kernel = &row;
        c.tile = tile;
        c.split = split;
        c.ctas = most_ctas(tile, p, device, split);
        c.cost = predict(row, tile, p, device, split, c.ctas);
        out.push_back(c);
      } else if (refused_list != nullptr) {
        refused_list->push_back({row.name, split, s.message()});
      }
      if (only > 0 || tile.sequential || tile.multicast() > 1) break;
      if (!tile.splits_over_cluster()) break;
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Candidate& x, const Candidate& y) {
    return x.cost.total() < y.cost.total();
  });
  return out;
}

}  // namespace oct::plan
