// See geometry.h.
#include "plan/geometry.h"

#include <algorithm>

#include "core/math.h"
#include "kernel_abi/balanced_walk.h"

namespace oct::plan {
namespace {

using core::ceil_div;

// Most clusters of this size that are resident with one CTA on an SM.
int64_t resident_clusters(const octet_device_spec& device, int cluster) {
  int log = 0;
  while ((1 << log) < cluster) ++log;
  if (cluster == 1 || log > 4) return device.sms;
  return device.active_clusters[log];
}

// Tiles along M that all groups have together, when each has 0.7 to 1.3 of the rows expected, as
// the sizes do that a problem's seed draws. An expectation of 0 rows says that nobody knows.
void expect_tiles(const abi::TileConfig& tile, const octet_gemm_problem& p, Geometry& g) {
  constexpr int kSteps = 12;
  const int64_t m = std::max<int64_t>(1, p.m);
  int64_t tiles = 0;
  double whole = 0;
  for (int i = 0; i < kSteps; ++i) {
    const int64_t percent = p.even ? 100 : 70 + 5 * i + (i >= kSteps / 2 ? 5 : 0);
    int64_t rows = std::max<int64_t>(1, m * percent / 100);
    if (p.grouping == OCTET_MASKED) rows = std::min(rows, std::max<int64_t>(1, p.max_m));
    const int64_t count = ceil_div(rows, tile.tile_m);
    tiles += count;
    whole += static_cast<double>(count);
    if (tile.ragged()) {
      const auto pieces = static_cast<uint32_t>(ceil_div(rows - (count - 1) * tile.tile_m, 64));
      whole += abi::cost_of_pieces(tile, pieces) / 8.0 - 1;
    }
  }
  g.units_m = ceil_div(tiles * p.groups, kSteps);
  g.share = whole / static_cast<double>(tiles);
}

// M-tiles of a band: those in flight at a time form a compact block of D.
int64_t grouped_band(const abi::TileConfig& tile) { return std::max(1, 2048 / tile.tile_m); }

}  // namespace

Geometry lay_tiles(const abi::TileConfig& tile, const octet_gemm_problem& p) {
  Geometry g;
  if (tile.grouped) {
    if (p.n == 0 || p.groups == 0) return g;
    expect_tiles(tile, p, g);
    g.units_n = ceil_div(p.n, int64_t{tile.tile_n} * tile.cluster_n);
    g.units = g.units_m * g.units_n;
    g.band = grouped_band(tile);
    return g;
  }
  if (p.m == 0 || p.n == 0 || p.groups == 0) return g;
  const int64_t tiles_m = ceil_div(p.m, tile.tile_m), tiles_n = ceil_div(p.n, tile.tile_n);
  g.units_m = tile.cluster_m == 1 ? tiles_m : ceil_div(tiles_m, tile.cluster_m);
  g.units_n = tile.cluster_n == 1 ? tiles_n : ceil_div(tiles_n, tile.cluster_n);
  g.units = g.units_m * g.units_n * p.groups;
  // The block of D in flight reads (its rows + its columns) of operands: bands make it compact.
  // Banding along the axis whose operand is the larger keeps the other one in L2.
  g.bands_along_n = g.units_n * tile.tile_n >= g.units_m * tile.tile_m;
  const int across = g.bands_along_n ? tile.tile_n * tile.cluster_n : tile.tile_m * tile.cluster_m;
  g.band = std::max(1, 2048 / across);
  return g;
}

void set_clusters(Geometry& g, const abi::TileConfig& tile, int split) {
  g.cluster_split =
      tile.sequential || tile.multicast() > 1 ? 1 : std::max(1, split / tile.k_groups);
  g.cluster = tile.multicast() * g.cluster_split;
}

void set_grid(Geometry& g, int64_t ctas) {
  if (g.units > 0) {
    g.grid = g.cluster * std::max<int64_t>(1, std::min(g.units, ctas / g.cluster));
  }
}

int64_t most_ctas_in(int cluster, const abi::TileConfig& tile, const octet_gemm_problem& p,
                     const octet_device_spec& device) {
  // A budget leaves the other SMs alone, so no more CTAs than SMs: two on one SM would be spread.
  if (p.sm_budget > 0 && p.sm_budget < device.sms) return p.sm_budget / cluster * cluster;
  return resident_clusters(device, cluster) * cluster * tile.ctas_per_sm;
}

Geometry make_geometry(const abi::TileConfig& tile, const octet_gemm_problem& p, int split,
                       int64_t ctas) {
  Geometry g = lay_tiles(tile, p);
  set_clusters(g, tile, split);
  set_grid(g, ctas);
  return g;
}

int64_t most_ctas(const abi::TileConfig& tile, const octet_gemm_problem& p,
                  const octet_device_spec& device, int split) {
  Geometry g;
  set_clusters(g, tile, split);
  return most_ctas_in(g.cluster, tile, p, device);
}

}  // namespace oct::plan
