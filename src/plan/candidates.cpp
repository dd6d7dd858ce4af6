// See candidates.h. Figures of the cost model: docs/performance-log.md says how each was obtained.
#include "plan/candidates.h"

#include <algorithm>
#include <cmath>

#include "core/math.h"
#include "kernel_abi/smem_layout.h"

namespace oct::plan {
namespace {

using core::ceil_div;

Status refused(std::string why) { return {OCTET_UNSUPPORTED, std::move(why)}; }

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
  if (!tile.valid) return refused("no kernel of that name");
  if (p.grouping != OCTET_DENSE && p.grouping != OCTET_BATCHED) {
    return refused("serves dense and batched problems");
  }
  if (p.in_type != OCTET_E4M3 || p.granularity != OCTET_1D2D) {
    return refused("serves e4m3 operands with 1D2D scales");
  }
  if (split < 1) return refused("a split below 1");
  const int64_t blocks = k_blocks(p);
  if (!tile.sequential) {
    if (split % tile.k_groups != 0) {
      return refused("its " + std::to_string(tile.k_groups) +
                     " pipelines need a multiple of as many "
                     "ranges");
    }
    const int over_cluster = split / tile.k_groups;
    if (over_cluster > 1 && tile.multicast() > 1)
      return refused("its cluster shares operands, not K");
    if (over_cluster > 1 && !tile.splits_over_cluster()) {
      return refused("no room for partial sums beside the ring");
    }
    if (over_cluster > kLargestCluster) return refused("clusters have at most 8 CTAs");
    if (split > 1 && blocks < split) return refused("fewer K-blocks than ranges");
  }
  const Geometry g = make_geometry(tile, p, split, 1 << 30);
  if (g.units >= (int64_t{1} << 31)) return refused("2^31 tiles or more");
  constexpr int64_t kLastCoordinate = (int64_t{1} << 31) - 1024;
  if (tile.multicast() > 1 && (p.m > kLastCoordinate || p.n > kLastCoordinate)) {
    return refused("coordinates beyond 2^31 in the second tile of a cluster");
  }
  const abi::SmemLayout smem = abi::make_smem_layout(tile, g.cluster_split);
  if (smem.stages < 2 * tile.k_groups || smem.total > device.shared_memory_bytes) {
    return refused("not enough shared memory");
  }
  if (most_ctas(tile, p, device, split) < g.cluster) {
    return refused("a cluster of " + std::to_string(g.cluster) + " does not fit the SM budget");
  }
  return {};
}

Cost predict(const abi::TileConfig& tile, const octet_gemm_problem& p,
             const octet_device_spec& device, int split, int64_t ctas) {
  constexpr double kClock = 1.7e9;         // of an SM under load
  constexpr double kWgmmaLatency = 110;    // cycles from the last issue to the registers
  constexpr double kL2BytesPerCycle = 28;  // one SM's share of L2 bandwidth
  constexpr double kSmallestWgmma = 32;    // cycles of one instruction, however narrow
  Cost c;
  const Geometry g = make_geometry(tile, p, split, ctas);
  if (g.units == 0) return c;
  const double blocks = static_cast<double>(k_blocks(p));
  const double clusters = static_cast<double>(g.grid / g.cluster);
  const double units_per_cta = std::ceil(static_cast<double>(g.units) / clusters);
  const double range = std::ceil(blocks / (tile.sequential ? 1 : split));  // of one pipeline

  // Cycles of one K-block of a tile.
  const double instruction = std::max(tile.piece_cols() / 2.0, kSmallestWgmma);
  const double tensor = 4 * instruction * tile.pieces() * tile.groups_per_pipeline();
  const double promotion = tile.piece_cols() * (tile.normal() ? 1.2 : 1.5);
  const double chain =
      tile.pieces() *
      (tile.sets == 2 ? std::max(4 * instruction, (4 * instruction + kWgmmaLatency + promotion) / 2)
                      : 4 * instruction + kWgmmaLatency + promotion);
  const double per_sm = static_cast<double>(g.grid) > device.sms ? tile.ctas_per_sm : 1;
  const double tensor_per_sm = tensor * tile.k_groups * per_sm;
  const double block_cycles = std::max(chain, tensor_per_sm);
  const double bytes = (tile.tile_m / tile.cluster_n + tile.tile_n / tile.cluster_m) * 128.0;
  const double l2_cycles = bytes * tile.k_groups * per_sm / kL2BytesPerCycle;

  c.launch = device.launch_seconds * 1e6 - 0.8;
  if (g.cluster > 2) c.launch += 0.3;
  c.fill = 0.8;
  c.math = units_per_cta * range * std::max(block_cycles, l2_cycles) / kClock * 1e6;
  const double d_bytes = static_cast<double>(p.m) * static_cast<double>(p.n) *
                         (p.d_type == OCTET_F32 ? 4 : 2) * (p.accumulate ? 2 : 1) *
                         static_cast<double>(p.groups);
  const double read = (static_cast<double>(p.m) + static_cast<double>(p.n)) *
                      static_cast<double>(p.k) * static_cast<double>(p.groups);
  // With few SMs at work, DRAM is limited by what they have in flight.
  const double busy = std::min<double>(static_cast<double>(g.grid) / per_sm, device.sms);
  const double rate = device.dram_bytes_per_second * std::min(1.0, busy / (0.75 * device.sms));
  c.stream = (read + d_bytes) / rate * 1e6;
  c.digest = std::min<double>(range, 4) * chain / kClock * 1e6 * 0.5;
  if (g.cluster_split > 1) c.exchange = 0.5 + 0.1 * units_per_cta;
  if (tile.k_groups > 1) c.exchange += 0.15 * units_per_cta;
  c.store = units_per_cta * tile.tile_m * tile.tile_n * 2.0 / 40 / kClock * 1e6 * 0.5;
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
        c.cost = predict(tile, p, device, split, c.ctas);
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
