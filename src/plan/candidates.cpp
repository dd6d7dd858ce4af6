// See candidates.h. Figures of the cost model: docs/performance-log.md says how each was obtained.
#include "plan/candidates.h"

#include <algorithm>
#include <cmath>

#include "core/math.h"
#include "core/problem.h"
#include "core/refusals.h"
#include "core/types.h"
#include "kernel_abi/smem_layout.h"
#include "plan/kernel_costs.h"
#include "plan/longer_of_two.h"

namespace oct::plan {
namespace {

using core::ceil_div;
using core::refuse;
using core::Rule;

// So that no row of a tile, which may begin anywhere, lies beyond 2^31.
constexpr int64_t kMostGroupedRows = (int64_t{1} << 31) - 1024;

int64_t k_blocks(const octet_gemm_problem& p) { return ceil_div(p.k, core::kBlockK); }

// Most clusters of this size that are resident with one CTA on an SM.
int64_t resident_clusters(const octet_device_spec& device, int cluster) {
  int log = 0;
  while ((1 << log) < cluster) ++log;
  if (cluster == 1 || log > 4) return device.sms;
  return device.active_clusters[log];
}

// Tiles along M that all groups have together, when each has 0.7 to 1.3 of the rows expected, as
// the sizes do that a problem's seed draws. An expectation of 0 rows says that nobody knows.
int64_t expected_tiles(const abi::TileConfig& tile, const octet_gemm_problem& p) {
  constexpr int kSteps = 12;
  const int64_t m = std::max<int64_t>(1, p.m);
  int64_t tiles = 0;
  for (int i = 0; i < kSteps; ++i) {
    const int64_t percent = p.even ? 100 : 70 + 5 * i + (i >= kSteps / 2 ? 5 : 0);
    int64_t rows = std::max<int64_t>(1, m * percent / 100);
    if (p.grouping == OCTET_MASKED) rows = std::min(rows, std::max<int64_t>(1, p.max_m));
    tiles += ceil_div(rows, tile.tile_m);
  }
  return ceil_div(tiles * p.groups, kSteps);
}

// M-tiles of a band: those in flight at a time form a compact block of D.
int64_t grouped_band(const abi::TileConfig& tile) { return std::max(1, 2048 / tile.tile_m); }

// The part of a geometry that all splits share: how tiles lie over D.
Geometry lay_tiles(const abi::TileConfig& tile, const octet_gemm_problem& p) {
  Geometry g;
  if (tile.grouped) {
    if (p.n == 0 || p.groups == 0) return g;
    g.units_m = expected_tiles(tile, p);
    g.units_n = ceil_div(p.n, tile.tile_n);
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

// Why a kernel does not serve a problem: the rule alone, as nobody may ask for the sentence. First
// what is known without its geometry, then the rest.
using Objection = std::optional<Rule>;

Objection objection_to_split(const abi::TileConfig& tile, const octet_gemm_problem& p, int split,
                             int64_t blocks) {
  if (!tile.valid) return Rule::kInternal;
  if (tile.grouped && !core::is_m_grouped(p.grouping)) return Rule::kServesGrouped;
  if (tile.k_grouped) {
    if (p.grouping != OCTET_K_GROUPED) return Rule::kServesKGrouped;
    if (tile.packed != (p.packed != 0)) {
      return tile.packed ? Rule::kServesPacked : Rule::kServesUnpacked;
    }
  }
  if (!tile.scheduled() && p.grouping != OCTET_DENSE && p.grouping != OCTET_BATCHED) {
    return Rule::kServesGrouping;
  }
  if (p.in_type != OCTET_E4M3 || p.granularity != (tile.paired ? OCTET_1D1D : OCTET_1D2D)) {
    return tile.paired ? Rule::kServesPairs : Rule::kServesOperands;
  }
  if (split < 1) return Rule::kPlanSplit;
  if (tile.sequential) return {};
  if (tile.scheduled() && split > 1) return Rule::kServesOneRange;
  if (split % tile.k_groups != 0) return Rule::kServesPipelines;
  const int over_cluster = split / tile.k_groups;
  if (over_cluster > 1 && tile.multicast() > 1) return Rule::kServesShared;
  if (over_cluster > 1 && !tile.splits_over_cluster()) return Rule::kServesNoRoom;
  if (over_cluster > kLargestCluster) return Rule::kServesCluster;
  if (split > 1 && blocks < split) return Rule::kServesFewBlocks;
  return {};
}

Objection objection_to_launch(const abi::TileConfig& tile, const octet_gemm_problem& p,
                              const octet_device_spec& device, const Geometry& g, const Ring& ring,
                              int64_t ctas) {
  if (g.units >= (int64_t{1} << 31)) return Rule::kServesTiles;
  if (tile.grouped && p.grouping == OCTET_MASKED) {
    if (const Objection no = objection_to_rows(tile, p, p.max_m)) return no;
  }
  constexpr int64_t kLastCoordinate = (int64_t{1} << 31) - 1024;
  if (tile.multicast() > 1 && (p.m > kLastCoordinate || p.n > kLastCoordinate)) {
    return Rule::kServesCoordinates;
  }
  if (ring.stages < 2 * tile.k_groups || ring.total > device.shared_memory_bytes) {
    return Rule::kServesMemory;
  }
  if (ctas < g.cluster) return Rule::kServesBudget;
  return {};
}

Status in_words(Rule rule, const abi::TileConfig& tile, int split) {
  switch (rule) {
    case Rule::kInternal: return refuse(rule, {{"got", "the name of a kernel without a tile"}});
    case Rule::kPlanSplit:
      return refuse(rule, {{"got", core::text(split)}, {"want", core::text(core::kMaxSplit)}});
    case Rule::kServesPipelines: return refuse(rule, {{"want", core::text(tile.k_groups)}});
    case Rule::kServesRows: return refuse(rule, {{"want", core::text(kMostGroupedRows)}});
    case Rule::kServesCluster: return refuse(rule, {{"want", core::text(kLargestCluster)}});
    case Rule::kServesBudget: {
      Geometry g;
      set_clusters(g, tile, split);
      return refuse(rule, {{"got", core::text(g.cluster)}});
    }
    default: return refuse(rule, {});
  }
}

// The logarithm to base 2, as a straight line between powers: the same on every machine.
double doublings(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // [0.5, 1)
  return x <= 0 ? 0 : exponent - 2 + 2 * fraction;
}

// What of the cost model is the same for all candidates of a problem.
struct Traffic {
  double blocks, groups, d_bytes, read;
  double weights;         // bytes of B
  double unaligned_port;  // bytes a cycle that an SM can request of rows pitched so; 0: no limit
  double rows;            // of A, every group's rounded up to 8
};

Traffic traffic_of(const octet_gemm_problem& p) {
  Traffic t;
  t.blocks = static_cast<double>(k_blocks(p));
  t.groups = static_cast<double>(p.groups);
  t.rows = static_cast<double>(core::round_up(p.m, 8)) * t.groups;
  t.d_bytes = static_cast<double>(p.m) * static_cast<double>(p.n) * t.groups *
              (p.d_type == OCTET_F32 ? 4 : 2) * (p.accumulate ? 2 : 1);
  t.read =
      (static_cast<double>(p.m) + static_cast<double>(p.n)) * static_cast<double>(p.k) * t.groups;
  t.weights = static_cast<double>(p.n) * static_cast<double>(p.k) * t.groups;
  // The pitch is taken to be K, rounded up to what the copy engine needs. 128 bytes of K then lie
  // in two lines of L2, and in five sectors of it where rows begin in the middle of one.
  const int64_t pitch = core::round_up(p.k, 16);
  // Groups over K share a pitch that nobody knows here.
  t.unaligned_port = p.grouping == OCTET_K_GROUPED ? 0
                     : pitch % 32 != 0 ? 26.5 : pitch % 64 != 0 ? 37 : pitch % 128 != 0 ? 44 : 0;
  return t;
}

// All of a candidate's cost but `work`, which is longer_of_two(math, stream).
// Fitted to 660 forced timings of 94 shapes on an H200 (docs/performance-log.md, 2026-11-30): 5.1 %
// root mean square; its choice costs 1.1 % on average over the fastest one measured, at worst 14 %.
Cost predict_parts(int kernel, const octet_gemm_problem& p, const Geometry& g,
                   const Traffic& traffic, const octet_device_spec& device, int split) {
  constexpr double kClock = 1700;          // cycles in a microsecond, under load
  constexpr double kFill = 0.9;            // to the first product, and from the last one
  constexpr double kClusterLaunch = 0.41;  // clusters of more than two CTAs have to be placed
  constexpr double kMeeting = 0.18;        // ranges of K wait for each other
  constexpr double kExchange = 3.5;        // us for 64 KB of partial sums of a CTA
  constexpr double kStore = 1.24;          // us for 64 KB of D
  constexpr double kHiddenStore = 1.02;    // where it leaves under the next tile's WGMMA
  constexpr double kStreamed = 0.953;      // of the DRAM rate that tiles reach
  constexpr double kBusy = 0.35;           // of the SMs, that saturate DRAM
  constexpr double kPort = 64;             // bytes a cycle that an SM takes from L2
  constexpr double kMeasuredTensorRate = 1672e12 / 132;  // of an SM of the device that was measured
  const abi::TileConfig& tile = kKernelFacts[static_cast<std::size_t>(kernel)].tile;
  Cost c;
  if (g.units == 0) return c;
  const double clusters = static_cast<double>(g.grid / g.cluster);
  const double waves = std::ceil(static_cast<double>(g.units) / clusters);
  const double range = std::ceil(traffic.blocks / (tile.sequential ? 1 : split));
  const double per_sm = std::clamp(static_cast<double>(g.grid) / device.sms, 1.0,
                                   static_cast<double>(tile.ctas_per_sm));
  const double slower = kMeasuredTensorRate * device.sms / device.fp8_flops_per_second;

  // Cycles of one K-block of a tile: as measured; where tensor cores are slower than those
  // measured, their difference comes on top, as what they did not hide there they do not hide here.
  // But no less than an SM's port takes to bring the operands in.
  const KernelCost& cost = kKernelCosts[kernel];
  double cycles = cost.alone;
  if (tile.ctas_per_sm > 1) {
    cycles += (cost.shared - cost.alone) * (per_sm - 1) / (tile.ctas_per_sm - 1);
  }
  const double tensor = 2.0 * tile.piece_cols() * tile.pieces() * tile.math_groups() * per_sm;
  cycles += tensor * (slower - 1);
  const double operands =
      static_cast<double>(core::kBlockK) * (tile.tile_m + tile.tile_n) * tile.k_groups * per_sm;
  const double requested = static_cast<double>(core::kBlockK) *
                           (static_cast<double>(tile.tile_m) / tile.cluster_n +
                            static_cast<double>(tile.tile_n) / tile.cluster_m) *
                           tile.k_groups * per_sm;
  cycles = std::max({cycles, tensor * slower, operands / kPort,
                     traffic.unaligned_port > 0 ? requested / traffic.unaligned_port : 0.0});
  if (tile.grouped) {
    // Rows that are none cost power. Not fitted yet: of two tiles that stream weights equally
    // fast it prefers the one that holds fewer of them.
    constexpr double kPadding = 0.1;  // for every doubling
    const double held = static_cast<double>(g.units_m) * tile.tile_m;
    cycles *= 1 + kPadding * std::max(0.0, doublings(held / std::max(8.0, traffic.rows)));
  }

  c.launch = device.launch_seconds * 1e6 + (g.cluster > 2 ? kClusterLaunch : 0);
  c.fill = kFill;
  c.math = waves * range * cycles / kClock;
  // With few SMs at work, DRAM is limited by what they have in flight.
  const double busy = static_cast<double>(g.grid) / per_sm / (kBusy * device.sms);
  // Weights that are the 64-row operand pass by once for every tile of tokens; the second time they
  // mostly lie in L2.
  constexpr double kAgain = 0.3;
  const double again = tile.normal() || tile.grouped
                           ? 0
                           : kAgain * (static_cast<double>(g.units_m) - 1) * traffic.weights;
  c.stream = (traffic.read + again + traffic.d_bytes) /
             (device.dram_bytes_per_second * kStreamed * std::min(1.0, busy)) * 1e6;
  if (g.cluster_split > 1) c.exchange = waves * kExchange * tile.partial_bytes() / 65536.0;
  if (g.cluster_split > 1 || tile.k_groups > 1) c.exchange += waves * kMeeting;
  double tile_store = tile.tile_m * tile.tile_n * 2.0 / 65536.0;
  // Wider elements, and C that is read.
  if (tile.paired) tile_store *= (p.d_type == OCTET_F32 ? 2 : 1) * (p.accumulate ? 2 : 1);
  c.store =
      tile_store * (tile.pieces() == 2 ? kStore + (waves - 1) * kHiddenStore : waves * kStore);
  return c;
}

// A total that the candidate's can only exceed, found without its longer_of_two(): that is at least
// the longer of the two but for its rounding, and total() rounds by half a thousandth.
double least_total(const Cost& c) {
  const double work = std::max(c.math, c.stream) * (1 - 1e-9);
  return c.launch + c.fill + work + c.exchange + c.store - 0.001;
}

// Visits every kernel with every split that a problem may take, in the order of the table:
// serves(candidate), its cost without `work`, or refused(kernel, split, rule).
template <typename Serves, typename RefusedBy>
void for_each_candidate(const octet_gemm_problem& p, const octet_device_spec& device,
                        int forced_split, Serves serves, RefusedBy refused) {
  const int only = forced_split > 0 ? forced_split : p.split;
  const Traffic traffic = traffic_of(p);
  const int64_t blocks = k_blocks(p);
  for (int kernel = 0; kernel < abi::kKernelCount; ++kernel) {
    const KernelFacts& facts = kKernelFacts[static_cast<std::size_t>(kernel)];
    const abi::TileConfig& tile = facts.tile;
    Geometry g = lay_tiles(tile, p);
    for (int over = 1; over <= kLargestCluster; ++over) {
      const int split = only > 0 ? only : tile.sequential ? 1 : over * tile.k_groups;
      Objection no = objection_to_split(tile, p, split, blocks);
      if (!no) {
        set_clusters(g, tile, split);
        const int64_t ctas = most_ctas_in(g.cluster, tile, p, device);
        no = objection_to_launch(tile, p, device, g,
                                 facts.rings[static_cast<std::size_t>(g.cluster_split)], ctas);
        if (!no) {
          set_grid(g, ctas);
          serves(Candidate{kernel, split, ctas, predict_parts(kernel, p, g, traffic, device, split)});
        }
      }
      if (no) refused(kernel, split, *no);
      if (only > 0 || tile.sequential || tile.multicast() > 1) break;
      if (!tile.splits_over_cluster()) break;
    }
  }
}

// Whether a kernel is made for other groupings, or for other operands in that grouping.
bool other_grouping(Rule rule) {
  return rule == Rule::kServesGrouping || rule == Rule::kServesGrouped ||
         rule == Rule::kServesKGrouped || rule == Rule::kServesPacked ||
         rule == Rule::kServesUnpacked;
}

void finish(Cost& cost) { cost.work = longer_of_two(cost.math, cost.stream); }

}  // namespace

int64_t most_grouped_tiles(const abi::TileConfig& tile, const octet_gemm_problem& p, int64_t rows) {
  if (rows == 0 || p.n == 0) return 0;
  int64_t tiles = 0;
  if (p.grouping == OCTET_CONTIGUOUS) {
    tiles = ceil_div(rows, p.alignment) * ceil_div(p.alignment, tile.tile_m);
  } else if (p.grouping == OCTET_MASKED) {
    tiles = p.groups * ceil_div(rows, tile.tile_m);
  } else {
    // Every group but for its last tile has whole ones.
    tiles = std::min(rows, rows / tile.tile_m + p.groups);
  }
  return p.groups == 0 && p.grouping != OCTET_CONTIGUOUS ? 0 : tiles * ceil_div(p.n, tile.tile_n);
}

std::optional<Rule> objection_to_rows(const abi::TileConfig& tile, const octet_gemm_problem& p,
                                      int64_t rows) {
  if (rows > kMostGroupedRows) return Rule::kServesRows;
  if (most_grouped_tiles(tile, p, rows) >= (int64_t{1} << 31)) return Rule::kServesTiles;
  return {};
}

Status takes_rows(const abi::TileConfig& tile, const octet_gemm_problem& p, int64_t rows) {
  const Objection no = objection_to_rows(tile, p, rows);
  return no ? in_words(*no, tile, 1) : Status{};
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

std::optional<Rule> objection(const abi::TileConfig& tile, const octet_gemm_problem& p,
                              const octet_device_spec& device, int split) {
  if (const Objection no = objection_to_split(tile, p, split, k_blocks(p))) return no;
  Geometry g = lay_tiles(tile, p);
  set_clusters(g, tile, split);
  return objection_to_launch(tile, p, device, g, make_ring(tile, g.cluster_split),
                             most_ctas_in(g.cluster, tile, p, device));
}

Status serves(const abi::TileConfig& tile, const octet_gemm_problem& p,
              const octet_device_spec& device, int split) {
  const Objection no = objection(tile, p, device, split);
  return no ? in_words(*no, tile, split) : Status{};
}

std::vector<Candidate> list_candidates(const octet_gemm_problem& p, const octet_device_spec& device,
                                       int forced_split, std::vector<Refused>* refused_list) {
  std::vector<Candidate> out;
  for_each_candidate(
      p, device, forced_split,
      [&](Candidate c) {
        finish(c.cost);
        out.push_back(c);
      },
      [&](int kernel, int split, Rule rule) {
        if (refused_list == nullptr) return;
        const KernelFacts& facts = kKernelFacts[static_cast<std::size_t>(kernel)];
        refused_list->push_back({abi::kKernels[kernel].name, split,
                                 in_words(rule, facts.tile, split).message(),
                                 other_grouping(rule)});
      });
  std::stable_sort(out.begin(), out.end(), [](const Candidate& x, const Candidate& y) {
    return x.cost.total() < y.cost.total();
  });
  return out;
}

std::optional<Candidate> cheapest(const octet_gemm_problem& p, const octet_device_spec& device,
                                  int forced_split) {
  std::optional<Candidate> best;
  double least = 0;
  for_each_candidate(
      p, device, forced_split,
      [&](Candidate c) {
        if (best && least_total(c.cost) >= least) return;
        finish(c.cost);
        const double total = c.cost.total();
        if (best && !(total < least)) return;
        best = c;
        least = total;
      },
      [](int, int, Rule) {});
  return best;
}

}  // namespace oct::plan
