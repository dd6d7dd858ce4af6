// See candidates.h.
#include "plan/candidates.h"

#include <algorithm>
#include <cmath>

#include "core/math.h"
#include "core/problem.h"
#include "core/refusals.h"
#include "core/types.h"
#include "kernel_abi/smem_layout.h"
#include "plan/cost_model.h"

namespace oct::plan {
namespace {

using core::ceil_div;
using core::refuse;
using core::Rule;

// So that no row of a tile, which may begin anywhere, lies beyond 2^31.
constexpr int64_t kMostGroupedRows = (int64_t{1} << 31) - 1024;

int64_t k_blocks(const octet_gemm_problem& p) { return ceil_div(p.k, core::kBlockK); }

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
  // Where the last tile ends, even if D ended long before: kernels reckon with 32 bits.
  constexpr int64_t kLastCoordinate = (int64_t{1} << 31) - 1;
  if (core::round_up(p.n, int64_t{tile.tile_n} * tile.cluster_n) > kLastCoordinate ||
      (!tile.grouped &&
       core::round_up(p.m, int64_t{tile.tile_m} * tile.cluster_m) > kLastCoordinate)) {
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
    const double l2_cycles = g.units == 0 ? 0 : l2_cycles_of(kernel, g, traffic);
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
          serves(Candidate{kernel, split, ctas,
                           predict_parts(kernel, g, traffic, l2_cycles, device, split)});
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
  return p.groups == 0 && p.grouping != OCTET_CONTIGUOUS
             ? 0
             : tiles * ceil_div(p.n, int64_t{tile.tile_n} * tile.cluster_n);
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
