// The tiles of grouped problems as the scheduler warp finds them, walked on the host with the
// parameters that the library launches with: for any metadata, good or bad, every row that has an
// owner is computed once for every column, by the group that owns it, and no other row is. Who owns
// a row is asked of tests/support/ownership.h, which knows nothing of tiles.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/math.h"
#include "kernel_abi/balanced_walk.h"
#include "kernel_launches.h"
#include "support/host_case.h"
#include "support/host_warp.h"
#include "support/ownership.h"
#include "support/random.h"
#include "support/sanitized.h"

namespace oct::abi {
namespace {

using core::ceil_div;
using kernel_launches::h200;
using testing_support::HostWarp;
using testing_support::kSanitized;
using testing_support::Random;

struct Metadata {
  std::vector<int32_t> narrow;
  std::vector<int64_t> wide;
};

octet_gemm_args args_of(const octet_gemm_problem& p, const Metadata& m, int64_t rows) {
  octet_gemm_args args{};
  args.a.rows = args.d.rows = rows;
  const void* data = p.index_type == OCTET_I64 ? static_cast<const void*>(m.wide.data())
                                               : static_cast<const void*>(m.narrow.data());
  args.group_index = args.group_offsets = args.group_ends = args.group_counts = data;
  return args;
}

// Rows [first, last) of buffer `buffer` and all columns from n0 on, by `group`. Contiguous: `owned`
// of them before the first that is not the group's; dead: none is.
struct Visit {
  int64_t buffer, first, last;
  int32_t n0, group;
  int64_t owned = 0, listed = 0;  // listed: up to and with the last that is the group's
  bool dead = false;
};

// All tiles that `ctas` schedulers list, each by itself as on the device; `balanced`: in the order
// of BalancedWalk.
template <TileConfig kTile>
std::vector<Visit> walk(const octet_gemm_problem& p, const GroupOrder& order, int ctas,
                        bool balanced = false) {
  std::vector<Visit> visits;
  for (int cta = 0; cta < ctas; ++cta) {
    GroupWalk<kTile, HostWarp> scheduler(order, HostWarp{});
    BalancedWalk<kTile, HostWarp> fair(order, HostWarp{}, static_cast<uint32_t>(cta),
                                       static_cast<uint32_t>(ctas));
    for (auto unit = static_cast<uint32_t>(cta);; unit += static_cast<uint32_t>(ctas)) {
      GroupTile t = balanced ? fair.next() : scheduler.find(unit);
      if (t.group < 0) break;
      Visit x{p.grouping == OCTET_MASKED ? t.group : 0, t.m0, t.tile_end, t.n0, t.group};
      if (p.grouping == OCTET_CONTIGUOUS) {
        x.dead = !look_at_rows<kTile>(order, HostWarp{}, t);
        x.owned = t.row_end - t.m0;
        x.listed = t.tile_end - t.m0;
      }
      // Of a cluster, each CTA takes the tile of its rank; the last one may have none.
      for (int rank = 0; rank < kTile.cluster_n && x.n0 < p.n; ++rank, x.n0 += kTile.tile_n) {
        visits.push_back(x);
      }
    }
  }
  return visits;
}

// Contiguous: every row is some tile's or ownerless, once, so that zeros can be stored in all that
// are nobody's; and a tile knows its rows.
std::string check_padding(const GroupOrder& order, int64_t rows, const std::vector<Visit>& visits,
                          const std::vector<int64_t>& owners) {
  std::vector<int> times(static_cast<std::size_t>(rows), 0);
  for (const Visit& x : visits) {
    bool any = false;
    int64_t owned = 0, listed = 0;
    for (int64_t r = x.first; r < x.last; ++r) {
      const bool own = owners[static_cast<std::size_t>(r)] == x.group;
      any |= own;
      if (own) listed = r + 1 - x.first;
      if (own && owned == r - x.first) ++owned;
      if (x.n0 == 0) ++times[static_cast<std::size_t>(r)];
    }
    if (x.dead == any) return "a tile that is dead and is not";
    if (x.owned != owned) return "a first padding row that is another";
    if (x.listed != listed) return "a last row of the group that is another";
  }
  for (int32_t i = 0; i < ownerless_pieces(order); ++i) {
    const int32_t row = i * kOwnerlessRows;
    if (!is_ownerless(order, row)) continue;
    for (int64_t r = row; r < std::min<int64_t>(row + kOwnerlessRows, rows); ++r) {
      ++times[static_cast<std::size_t>(r)];
    }
  }
  for (const int count : times) {
    if (count != 1) return "a row that is left out, or stored twice";
  }
  return "";
}

// Empty, or what is wrong.
template <TileConfig kTile>
std::string check(const octet_gemm_problem& p, const octet_gemm_args& args,
                  const std::vector<int64_t>& owners, int ctas, bool balanced = false) {
  const int64_t rows = args.a.rows;
  const kernel_launches::Variant v{"", kTile, 1};
  const GroupOrder order = kernel_launches::group_order(v, p, args);
  const std::vector<Visit> visits = walk<kTile>(p, order, ctas, balanced);
  const int64_t across = ceil_div(p.n, kTile.tile_n);
  if (static_cast<int64_t>(visits.size()) >
      kTile.cluster_n * plan::most_grouped_tiles(kTile, p, rows)) {
    return "more tiles than the launcher counts on";
  }
  if (p.grouping == OCTET_CONTIGUOUS) {
    if (std::string s = check_padding(order, rows, visits, owners); !s.empty()) return s;
  }
  // How often each row meets each column of tiles.
  std::vector<uint8_t> times(owners.size() * static_cast<std::size_t>(across), 0);
  for (const Visit& x : visits) {
    if (x.first < 0 || x.last > rows || x.first >= x.last || x.last - x.first > kTile.tile_m) {
      return "a tile that reaches outside";
    }
    if (x.n0 < 0 || x.n0 >= p.n || x.n0 % kTile.tile_n != 0) return "a tile outside N";
    if (x.group >= p.groups) return "a group that is none";
    bool any = false;
    for (int64_t r = x.first; r < x.last; ++r) {
      const auto row = static_cast<std::size_t>(x.buffer * rows + r);
      const bool owned = owners[row] == x.group;
      any |= owned;
      // Contiguous tiles hold padding, whose rows are looked at before they are stored.
      if (!owned && p.grouping != OCTET_CONTIGUOUS) return "a row that belongs to another";
      if (!owned && owners[row] >= 0) return "a block with rows of two groups";
      if (!owned) continue;
      uint8_t& count = times[row * static_cast<std::size_t>(across) +
                             static_cast<std::size_t>(x.n0 / kTile.tile_n)];
      if (++count > 1) return "a row that is computed twice";
    }
    if (!any && p.grouping != OCTET_CONTIGUOUS) return "a tile without a row";
  }
  for (std::size_t row = 0; row < owners.size(); ++row) {
    for (int64_t n = 0; n < across; ++n) {
      const int want = owners[row] >= 0 ? 1 : 0;
      if (times[row * static_cast<std::size_t>(across) + static_cast<std::size_t>(n)] != want) {
        return "row " + std::to_string(row) + " is left out";
      }
    }
  }
  return "";
}

// Every tile height of the table.
std::string check_all(const octet_gemm_problem& p, const Metadata& m, int64_t rows, int ctas) {
  const octet_gemm_args args = args_of(p, m, rows);
  const std::vector<int64_t> owners = testing_support::row_owners(p, args);
  std::string wrong = check<parse_kernel("normal_m256n128_g")>(p, args, owners, ctas);
  if (wrong.empty()) wrong = check<parse_kernel("normal_m128n256_g")>(p, args, owners, ctas);
  if (wrong.empty()) wrong = check<parse_kernel("normal_m256n128_g")>(p, args, owners, ctas, true);
  if (wrong.empty()) wrong = check<parse_kernel("normal_m128n256_g")>(p, args, owners, ctas, true);
  if (wrong.empty()) wrong = check<parse_kernel("normal_m256n128_cn2_g")>(p, args, owners, ctas);
  if (wrong.empty())
    wrong = check<parse_kernel("normal_m256n128_cn2_g")>(p, args, owners, ctas, true);
  if (wrong.empty()) wrong = check<parse_kernel("normal_m64n256_g")>(p, args, owners, ctas);
  if (wrong.empty()) wrong = check<parse_kernel("swapped_w256t64_g")>(p, args, owners, ctas);
  if (wrong.empty()) wrong = check<parse_kernel("swapped_w64t32_x2_o2_g")>(p, args, owners, ctas);
  if (wrong.empty()) wrong = check<parse_kernel("swapped_w128t8_o2_g")>(p, args, owners, ctas);
  return wrong;
}

struct Case {
  octet_gemm_problem p;
  Metadata metadata;
  int64_t rows = 0;
  int ctas = 1;
};

Case draw(Random& random, bool spoiled) {
  Case c;
  c.p = core::default_problem();
  c.p.grouping = static_cast<octet_grouping>(random.between(OCTET_CONTIGUOUS, OCTET_MASKED));
  c.p.groups = random.chance(0.05) ? 0 : random.log_uniform(1, 150);
  c.p.m = 50;
  c.p.n = random.log_uniform(1, 1500);
  c.p.k = 256;
  c.ctas = static_cast<int>(random.between(1, 9));
  const auto size = [&]() -> int64_t {
    const int64_t tile = random.pick<int64_t>({8, 32, 64, 128, 256});
    return random.chance(0.3) ? 0 : random.pick<int64_t>({1, tile - 1, tile, tile + 1, 3 * tile});
  };
  std::vector<int64_t> numbers;
  switch (c.p.grouping) {
    case OCTET_CONTIGUOUS:
      c.p.alignment = random.pick<int64_t>({64, 128, 192, 256});
      // Up to more blocks than a warp has lanes.
      c.rows = random.pick<int64_t>({5, 20, 40}) * c.p.alignment;
      while (static_cast<int64_t>(numbers.size()) < c.rows) {
        const int64_t group =
            random.chance(0.2) ? -1 : random.between(0, std::max<int64_t>(0, c.p.groups - 1));
        const int64_t real = group < 0 || c.p.groups == 0 ? 0 : random.between(1, 3 * 128);
        const int64_t padded = std::max(core::round_up(real, c.p.alignment), c.p.alignment);
        for (int64_t r = 0; r < padded; ++r) numbers.push_back(r < real ? group : -1);
      }
      numbers.resize(numbers.size() - static_cast<std::size_t>(random.between(0, 63)));
      c.rows = static_cast<int64_t>(numbers.size());
      break;
    case OCTET_OFFSETS:
      c.p.index_type = random.pick({OCTET_I32, OCTET_I64});
      numbers.push_back(random.between(0, 20));
      for (int64_t g = 0; g < c.p.groups; ++g) numbers.push_back(numbers.back() + size());
      c.rows = numbers.back() + random.between(0, 20);
      break;
    case OCTET_ALIGNED:
      c.p.alignment = random.pick<int64_t>({1, 3, 8, 100, 128, 1000});
      for (int64_t g = 0; g < c.p.groups; ++g) {
        numbers.push_back(core::round_up(c.rows, c.p.alignment) + size());
        c.rows = numbers.back();
      }
      c.rows += random.between(0, 20);
      break;
    default:
      c.p.max_m = random.pick<int64_t>({1, 8, 63, 64, 65, 128, 300});
      c.rows = c.p.max_m;
      for (int64_t g = 0; g < c.p.groups; ++g) numbers.push_back(std::min(size(), c.rows));
      break;
  }
  if (spoiled) {
    for (int64_t& x : numbers) {
      if (!random.chance(0.15)) continue;
      x = random.pick<int64_t>(
          {-1, -77, c.rows + 1, c.rows, 0, c.p.groups, 1 << 30, std::numeric_limits<int32_t>::max(),
           std::numeric_limits<int32_t>::min(), random.between(0, std::max<int64_t>(1, c.rows))});
    }
  }
  c.metadata.wide = numbers;
  if (spoiled && c.p.index_type == OCTET_I64 && random.chance(0.5)) {
    c.metadata.wide[0] = random.pick<int64_t>({int64_t{1} << 33, -(int64_t{1} << 40)});
  }
  for (const int64_t x : numbers) c.metadata.narrow.push_back(static_cast<int32_t>(x));
  return c;
}

void check_random(bool spoiled) {
  const int count = kSanitized ? 40 : 200;
  Random random(spoiled ? 2 : 1);
  std::map<int, int> kinds;
  for (int i = 0; i < count; ++i) {
    const Case c = draw(random, spoiled);
    ++kinds[c.p.grouping];
    ASSERT_EQ(check_all(c.p, c.metadata, c.rows, c.ctas), "")
        << core::to_string(c.p) << ", case " << i << ", " << c.ctas << " CTAs";
  }
  for (int kind = OCTET_CONTIGUOUS; kind <= OCTET_MASKED; ++kind)
    EXPECT_GT(kinds[kind], count / 16);
}

TEST(KernelAbiGroupOrder, EveryOwnedRowOnceAndNoOther) { check_random(false); }

TEST(KernelAbiGroupOrder, BadMetadataIsClampedAsTheProcessorDoes) { check_random(true); }

TEST(KernelAbiGroupOrder, ThousandsOfGroups) {
  Case c;
  c.p = core::default_problem();
  c.p.grouping = OCTET_MASKED;
  c.p.groups = 5000;
  c.p.m = 1;
  c.p.max_m = 9;
  c.p.n = 300;
  c.p.k = 128;
  c.rows = 9;
  Random random(3);
  for (int64_t g = 0; g < c.p.groups; ++g) {
    c.metadata.narrow.push_back(random.chance(0.9) ? 0
                                                   : static_cast<int32_t>(random.between(1, 9)));
  }
  EXPECT_EQ(check_all(c.p, c.metadata, c.rows, 132), "");
}

// CTAs beside each other read the same weights: of one group, M-tiles come before columns.
TEST(KernelAbiGroupOrder, MTilesFollowEachOtherWithinABand) {
  constexpr TileConfig kTile = parse_kernel("normal_m128n256_g");
  octet_gemm_problem p = core::default_problem();
  p.grouping = OCTET_OFFSETS;
  p.groups = 2;
  p.m = 3000;
  p.n = 512;
  p.k = 128;
  const Metadata m{{0, 384, 384 + 128 * 18}, {}};
  const octet_gemm_args args = args_of(p, m, 384 + 128 * 18);
  const GroupOrder order = kernel_launches::group_order({"", kTile, 1}, p, args);
  ASSERT_EQ(order.band, 16);
  GroupWalk<kTile, HostWarp> scheduler(order, HostWarp{});
  std::vector<std::pair<int, int>> at;
  for (uint32_t unit = 0; unit < 44; ++unit) {
    const GroupTile t = scheduler.find(unit);
    at.emplace_back(t.m0, t.n0);
  }
  EXPECT_EQ(scheduler.find(44).group, -1);
  EXPECT_EQ(at[0], std::pair(0, 0));
  EXPECT_EQ(at[2], std::pair(256, 0));
  EXPECT_EQ(at[3], std::pair(0, 256));
  EXPECT_EQ(at[6], std::pair(384, 0));
  EXPECT_EQ(at[6 + 16], std::pair(384, 256));             // the band's second column
  EXPECT_EQ(at[6 + 32], std::pair(384 + 128 * 16, 0));    // the second band
  EXPECT_EQ(at[6 + 34], std::pair(384 + 128 * 16, 256));  // two tiles wide
}

// Groups of 320 rows are a whole tile and one of a single piece: dealt out in turn, 132 CTAs would
// get the one kind or the other; as it is, none is busy for longer than another by more than a
// tile.
TEST(KernelAbiGroupOrder, TilesOfFewRowsAreDealtOutEvenly) {
  constexpr TileConfig kTile = parse_kernel("normal_m256n128_g");
  constexpr int kGroups = 32, kCtas = 132, kRows = 320, kPadded = 384;
  for (const octet_grouping grouping : {OCTET_OFFSETS, OCTET_MASKED, OCTET_CONTIGUOUS}) {
    octet_gemm_problem p = core::default_problem();
    p.grouping = grouping;
    p.groups = kGroups;
    p.m = p.max_m = kRows;
    p.n = 48 * 128;
    p.k = 2048;
    Metadata m;
    for (int g = 0; g <= kGroups; ++g) {
      if (grouping == OCTET_OFFSETS) m.narrow.push_back(kRows * g);
      if (grouping == OCTET_MASKED) m.narrow.push_back(kRows);
      for (int r = 0; g < kGroups && grouping == OCTET_CONTIGUOUS && r < kPadded; ++r) {
        m.narrow.push_back(r < kRows ? g : -1);
      }
    }
    const int64_t rows = grouping == OCTET_MASKED    ? kRows
                         : grouping == OCTET_OFFSETS ? kGroups * kRows
                                                     : kGroups * kPadded;
    const octet_gemm_args args = args_of(p, m, rows);
    const GroupOrder order = kernel_launches::group_order({"", kTile, 1}, p, args);
    const auto spread = [&](bool balanced) {
      std::vector<int32_t> busy;
      for (uint32_t cta = 0; cta < kCtas; ++cta) {
        GroupWalk<kTile, HostWarp> in_turn(order, HostWarp{});
        BalancedWalk<kTile, HostWarp> fair(order, HostWarp{}, cta, kCtas);
        busy.push_back(0);
        for (uint32_t unit = cta;; unit += kCtas) {
          GroupTile t = balanced ? fair.next() : in_turn.find(unit);
          if (t.group < 0) break;
          if (grouping == OCTET_CONTIGUOUS) look_at_rows<kTile>(order, HostWarp{}, t);
          busy.back() +=
              cost_of_pieces(kTile, static_cast<uint32_t>((t.tile_end - t.m0 + 63) / 64));
        }
      }
      const auto [least, most] = std::minmax_element(busy.begin(), busy.end());
      return *most - *least;
    };
    EXPECT_LE(spread(true), cost_of_pieces(kTile, 4)) << core::to_string(p);
    EXPECT_GT(spread(false), 2 * cost_of_pieces(kTile, 4)) << core::to_string(p);
  }
}

}  // namespace
}  // namespace oct::abi
