// The order in which CTAs compute tiles, walked on the host with the functions that the kernels
// call and the parameters that the library launches them with: every tile and every K-block exactly
// once, and the CTAs of a cluster in step.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/math.h"
#include "kernel_abi/tile_order.h"
#include "kernel_launches.h"
#include "plan/planner.h"
#include "support/sanitized.h"

namespace oct::abi {
namespace {

using core::ceil_div;
using kernel_launches::h200;
using kernel_launches::launch;
using kernel_launches::problem;
using kernel_launches::Variant;
using kernel_launches::variants;
using testing_support::kSanitized;

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// What a CTA's roles do in turn: each walks the tiles by itself, with this loop.
template <typename Visit>
int64_t walk_cta(const Variant& v, const cuda::Launch& launch, uint32_t cta, Visit visit) {
  const uint32_t rank = cta % launch.cluster, clusters = launch.grid / launch.cluster;
  int64_t steps = 0;
  for (uint32_t unit = cta / launch.cluster; unit < launch.params.order.units; unit += clusters) {
    visit(tile_at(v.tile, launch.params.order, unit, rank));
    ++steps;
  }
  return steps;
}

// K-blocks that one CTA multiplies for a tile, as the main loops do.
void count_blocks(const Variant& v, const KernelParams& p, uint32_t rank, std::vector<int>& times) {
  const auto add = [&times](BlockRange range) {
    for (int32_t b = range.first; b < range.last; ++b) ++times.at(static_cast<std::size_t>(b));
  };
  if (v.tile.sequential) {
    for (int i = 0; i < p.split; ++i) add(p.cut.range(static_cast<uint32_t>(i)));
    return;
  }
  for (int group = 0; group < v.tile.k_groups; ++group) {
    add(pipeline_range(v.tile, p.cut, p.k_blocks, p.split, rank, group));
  }
}

class Walk {
 public:
  // Empty, or the first thing that is wrong. `ctas`: as in launch().
  std::string check(const Variant& v, const octet_gemm_problem& p, int64_t ctas = 0) {
    const cuda::Launch l = launch(v, kernel_launches::as_served(v, p), ctas);
    const int64_t across = ceil_div(p.n, v.tile.tile_n), down = ceil_div(p.m, v.tile.tile_m);
    const bool all_sms = p.sm_budget == 0 || p.sm_budget == h200().sms;
    int64_t most = all_sms ? h200().sms * v.tile.ctas_per_sm : p.sm_budget;
    if (ctas > 0) most = std::max<int64_t>(ctas, l.cluster);  // one cluster, whatever a plan says
    if (l.grid == 0 || l.grid % l.cluster != 0) return "a grid that is no whole clusters";
    if (l.grid > most) return "more CTAs than allowed";
    visits_.assign(static_cast<std::size_t>(across * down * p.groups), 0);

    for (uint32_t first = 0; first < l.grid; first += l.cluster) {
      path_.clear();
      for (uint32_t rank = 0; rank < l.cluster; ++rank) {
        std::size_t step = 0;
        std::string wrong;
        const int64_t steps = walk_cta(v, l, first + rank, [&](const TileAt& at) {
          if (rank == 0) path_.push_back(at);
          if (!wrong.empty()) return;
          if (step >= path_.size() || !beside(v.tile, path_[step], at, rank)) {
            wrong = "CTAs of a cluster at tiles that do not match";
            return;
          }
          ++step;
          wrong = visit(v.tile, p, at, rank, across, down);
        });
        if (!wrong.empty()) return wrong;
        if (steps != static_cast<int64_t>(path_.size())) return "a CTA leaves before its cluster";
      }
    }
    for (const uint8_t count : visits_) {
      if (count == 0) return "a tile that nobody computes";
    }
    return k_is_whole(v, l);
  }

 private:
  // Where a CTA must be when the first of its cluster is at `first`.
  static bool beside(const TileConfig& t, const TileAt& first, const TileAt& at, uint32_t rank) {
    const int step = static_cast<int>(rank);
    return at.batch == first.batch && at.m0 == first.m0 + (t.cluster_m > 1 ? step * t.tile_m : 0) &&
           at.n0 == first.n0 + (t.cluster_n > 1 ? step * t.tile_n : 0);
  }

  std::string visit(const TileConfig& t, const octet_gemm_problem& p, const TileAt& at,
                    uint32_t rank, int64_t across, int64_t down) {
    if (at.m0 < 0 || at.n0 < 0 || at.m0 % t.tile_m != 0 || at.n0 % t.tile_n != 0 || at.batch < 0 ||
        at.batch >= p.groups) {
      return "a tile that is none";
    }
    const int64_t m = at.m0 / t.tile_m, n = at.n0 / t.tile_n;
    // The second tile of a multicast cluster may lie past the edge, whole; no other may.
    if (m >= down + t.cluster_m - 1 || n >= across + t.cluster_n - 1) return "a tile outside D";
    if (m >= down || n >= across) return "";
    if (t.multicast() == 1 && rank > 0) return "";  // the same tile, another range of K
    uint8_t& count = visits_[static_cast<std::size_t>((at.batch * down + m) * across + n)];
    return ++count == 1 ? "" : "a tile that is computed twice";
  }

  static std::string k_is_whole(const Variant& v, const cuda::Launch& l) {
    const uint32_t sharers = v.tile.multicast() > 1 ? 1 : l.cluster;
    const KernelParams& p = l.params;
    if (v.tile.sequential) {  // its producers know no ranges
      const BlockRange all = pipeline_range(v.tile, p.cut, p.k_blocks, p.split, 0, 0);
      if (all.first != 0 || all.last != p.k_blocks)
        return "a producer that does not bring all of K";
    }
    std::vector<int> times(static_cast<std::size_t>(p.k_blocks), 0);
    for (uint32_t rank = 0; rank < sharers; ++rank) count_blocks(v, l.params, rank, times);
    for (const int count : times) {
      if (count != 1) return "a K-block that is not multiplied once";
    }
    if (v.tile.multicast() == 1) return "";
    for (uint32_t rank = 0; rank < l.cluster; ++rank) {  // both of a multicast need all of K
      std::fill(times.begin(), times.end(), 0);
      count_blocks(v, l.params, rank, times);
      if (std::any_of(times.begin(), times.end(), [](int count) { return count != 1; })) {
        return "CTAs of a multicast with different K-blocks";
      }
    }
    return "";
  }

  std::vector<uint8_t> visits_;
  std::vector<TileAt> path_;
};

std::string text(const Variant& v, const octet_gemm_problem& p) {
  return v.name() + ", " + core::to_string(p);
}

// K-blocks enough for every split, and no multiple of most.
int64_t some_k(const Variant& v) { return 128 * (v.split + 3) - 25; }

TEST(KernelAbiTileOrder, EveryKernelSplitAndSmCount) {
  Walk walk;
  int64_t walks = 0;
  for (const Variant& v : variants()) {
    // Odd numbers of tiles both ways, and more tiles than CTAs.
    octet_gemm_problem p =
        kernel_launches::as_served(v, problem(v.tile.tile_m * 6 + 1, v.tile.tile_n * 22 + 3,
                                              some_k(v)));
    for (int sms = 1; sms <= 132; sms += kSanitized ? 13 : 1) {
      p.sm_budget = 0;
      ASSERT_EQ(walk.check(v, p, sms), "") << text(v, p) << ", plan for " << sms << " CTAs";
      p.sm_budget = sms;
      if (!plan::serves(v.tile, p, h200(), v.split).ok()) {
        const int cluster = plan::make_geometry(v.tile, p, v.split, 132).cluster;
        ASSERT_LT(sms, cluster) << text(v, p) << ": a budget with room for a cluster is refused";
        continue;
      }
      ASSERT_EQ(walk.check(v, p), "") << text(v, p);
      ++walks;
    }
  }
  // 132 budgets each (11 under sanitizers), less the few that are smaller than a cluster.
  EXPECT_GE(walks, (kSanitized ? 10 : 125) * static_cast<int64_t>(variants().size()));
}

TEST(KernelAbiTileOrder, EveryKernelOnManyShapes) {
  constexpr int64_t kSizes[] = {1, 2, 63, 64, 65, 127, 129, 500, 513, 1000, 2049, 4097};
  constexpr int kBudgets[] = {0, 131, 77, 8};
  Walk walk;
  uint64_t seed = 0;
  for (const Variant& v : variants()) {
    for (const int64_t batches : {1, 2, 7}) {
      for (const int64_t m : kSizes) {
        for (const int64_t n : kSizes) {
          octet_gemm_problem p = problem(m, n, some_k(v), batches);
          if (batches > 1 && m * n > 1000000) continue;
          // A third of the shapes (fewer under sanitizers), another third for each variant.
          if (mix(++seed) % (kSanitized ? 60 : 3) != 0) continue;
          p.sm_budget = kBudgets[mix(seed + 1000000) % 4];
          ASSERT_EQ(walk.check(v, p), "") << text(v, p);
        }
      }
    }
  }
}

TEST(KernelAbiTileOrder, MoreThan2To31Outputs) {
  Walk walk;
  for (const Variant& v : variants()) {
    // 2^31 outputs and more, of one very long and of two balanced shapes, in tiles that can all be
    // walked: those of small kernels are too many for long ones.
    const int64_t tile = int64_t{v.tile.tile_m} * v.tile.tile_n;
    if (tile < (kSanitized ? 256 * 128 : 128 * 64) || v.split % 3 != 1) continue;
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{65537, 40001}, {9, 2147483000 / 8}}) {
      if (m < 64 && v.tile.tile_m > 64) continue;
      const octet_gemm_problem p = problem(m, n, some_k(v));
      ASSERT_GT(p.m * p.n, int64_t{1} << 31);
      ASSERT_EQ(walk.check(v, p), "") << text(v, p);
    }
  }
}

// Shapes whose tiles are too many to be walked: a unit's place against its number counted back with
// 64-bit arithmetic, at the edges of batches and bands and anywhere.
TEST(KernelAbiTileOrder, PlacesOfUpTo2To31Units) {
  constexpr int64_t kHuge[] = {1, 7, 1000, 46341, 1234567, 2147482624, 2147483647};
  constexpr int64_t kBatches[] = {1, 3, 65521};
  int64_t shapes = 0, units = 0;
  for (const abi::KernelRow& row : kKernels) {
    const TileConfig tile = parse_kernel(row.name);
    if (tile.grouped) continue;  // kernel_abi_group_order_test.cpp
    const Variant v{row.name, tile, tile.k_groups};
    for (const int64_t m : kHuge) {
      for (const int64_t n : kHuge) {
        for (const int64_t batches : kBatches) {
          const octet_gemm_problem p = problem(m, n, 1024, batches);
          if (!plan::supports(p, h200()).ok()) continue;  // D of more than 2^44 elements
          if (!plan::serves(tile, p, h200(), v.split).ok()) continue;
          ++shapes;
          const plan::Geometry g = plan::make_geometry(tile, p, v.split, 132);
          const TileOrder order = launch(v, kernel_launches::as_served(v, p)).params.order;
          ASSERT_EQ(order.units, g.units) << text(v, p);
          const int64_t across = g.bands_along_n ? g.units_n : g.units_m;
          const int64_t along = g.bands_along_n ? g.units_m : g.units_n;
          const auto number = [&](const Unit& u) {
            const int64_t cross = g.bands_along_n ? u.n : u.m, down = g.bands_along_n ? u.m : u.n;
            const int64_t band = cross / g.band, width = std::min(g.band, across - band * g.band);
            return u.batch * across * along + band * g.band * along + down * width + cross % g.band;
          };
          const auto look = [&](int64_t w) {
            if (w < 0 || w >= g.units) return;
            const Unit u = order.decode(static_cast<uint32_t>(w));
            ASSERT_LT(u.batch, p.groups);
            ASSERT_LT(u.m, g.units_m);
            ASSERT_LT(u.n, g.units_n);
            ASSERT_EQ(number(u), w) << text(v, p);
            const TileAt at = tile_at(tile, order, static_cast<uint32_t>(w), 0);
            ASSERT_EQ(at.m0, int64_t{u.m} * tile.tile_m * tile.cluster_m);
            ASSERT_EQ(at.n0, int64_t{u.n} * tile.tile_n * tile.cluster_n);
            ASSERT_LT(at.m0, p.m);
            ASSERT_LT(at.n0, p.n);
            ++units;
          };
          const int64_t band = std::min(g.band, across) * along, batch = across * along;
          for (const int64_t edge : {int64_t{0}, g.band, band, 2 * band, batch - band, batch,
                                     2 * batch, batch * (batches - 1), g.units}) {
            for (int64_t off = -2; off <= 2; ++off) look(edge + off);
          }
          for (int i = 0; i < 100; ++i) {
            look(static_cast<int64_t>(mix(static_cast<uint64_t>(units + i)) %
                                      static_cast<uint64_t>(g.units)));
          }
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(shapes, 1000);
  EXPECT_GT(units, 100000);
}

// A band is a block of D: of two units in a row, one coordinate is the same or both start anew.
TEST(KernelAbiTileOrder, BandsAreWalkedAcrossFirst) {
  const TileOrder order = make_tile_order(5, 7, 2, 3, true);
  const std::vector<std::pair<uint32_t, uint32_t>> first = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}};
  for (uint32_t w = 0; w < first.size(); ++w) {
    EXPECT_EQ(order.decode(w).m, first[w].first);
    EXPECT_EQ(order.decode(w).n, first[w].second);
  }
  EXPECT_EQ(order.decode(15).n, 3u);  // the second band
  EXPECT_EQ(order.decode(30).n, 6u);  // the last, one unit wide
  EXPECT_EQ(order.decode(31).m, 1u);
  EXPECT_EQ(order.decode(35).batch, 1u);
  EXPECT_EQ(order.units, 70u);
}

}  // namespace
}  // namespace oct::abi
