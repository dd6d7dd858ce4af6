// In which order the tiles of a problem grouped over M are computed, found on the device from the
// grouping metadata: the same code in the scheduler warp of a grouped kernel and in host tests.
//
// Metadata is read 32 entities at a time, one a lane: groups, or the blocks of `alignment` rows of
// a contiguous problem; there all blocks of one group that lie together become one. A prefix sum
// over their M-tiles says whose a unit of work is; nobody walks groups one after the other, and
// nobody knows the number of units beforehand: they end where the entities end. Units of an entity
// follow each other, in bands of M-tiles: M-tiles first, so that CTAs beside each other read the
// same weights.
//
// Every value is clamped as src/core/groups.h says, before it becomes a coordinate: whatever the
// metadata holds, no row has two owners and nothing outside the declared extents is named.
#pragma once

#include <cstdint>

#include "kernel_abi/divisor.h"
#include "kernel_abi/tile_config.h"

namespace oct::abi {

// What the metadata is.
enum class GroupKind : uint32_t {
  kNone = 0,
  kOffsets32 = 1,  // offsets[G + 1]
  kOffsets64 = 2,
  kEnds = 3,    // ends[G], starts aligned
  kCounts = 4,  // counts[G], each group in a buffer of its own
  kIndex = 5,   // index[rows], blocks of `alignment` rows
};

struct GroupOrder {
  const void* metadata = nullptr;
  GroupKind kind = GroupKind::kNone;
  int32_t groups = 0;
  int32_t entities = 0;  // groups, or blocks
  int32_t rows = 0;      // of A: all of them, or those of one group's buffer
  int32_t band = 1;      // M-tiles of a band
  int32_t zeros = 0;     // 1: rows without an owner are stored as zeros (contiguous)
  Divisor alignment;     // ends, contiguous
  Divisor across;        // tiles along N, of clusters as many as they hold
  Divisor band_units;    // band * across
};

OCTET_HD inline int population(uint32_t x) {
#ifdef __CUDA_ARCH__
  return __popc(x);
#else
  return __builtin_popcount(x);
#endif
}
OCTET_HD inline int trailing_zeros(uint32_t x) { return population((x & (~x + 1)) - 1); }
OCTET_HD inline int trailing_ones(uint32_t x) { return trailing_zeros(~x); }
OCTET_HD inline int leading_zeros(uint32_t x) {
  for (int shift = 1; shift < 32; shift *= 2) x |= x >> shift;
  return 32 - population(x);
}

// One tile, of a cluster the first. Rows from m0 up to row_end belong to `group`; rows from there
// up to tile_end have to be looked at one by one (contiguous; else there are none).
struct GroupTile {
  int32_t m0 = 0, n0 = 0;
  int32_t group = -1;  // none: there are no more tiles
  int32_t row_end = 0, tile_end = 0;
};

// `Warp`, below, is 32 lanes: on the device each lane runs this code with Int = int32_t; on the
// host one thread does, and Int holds all lanes' values (tests/support/host_warp.h).
//   map(f)            f(lane) for every lane      mine(x, lane)   a lane's own value, inside map()
//   at(x, lane)       one lane's value            ballot(f)       bit i: f(i)
//   scan_add(x)       sums up to the lane's own   scan_max(x)     likewise
//   before(x, first)  the value of the lane before, `first` for lane 0

// Contiguous: notes in row_end where the tile's first padding row is, and in tile_end where its
// last row of the group ends. False: no row is the group's. `t` as GroupWalk finds it. Its indices
// are asked for together: each takes as long as a K-block.
template <TileConfig kTile, typename Warp>
OCTET_HD bool look_at_rows(const GroupOrder& o, const Warp& warp, GroupTile& t) {
  constexpr int kParts = (kTile.tile_m + 31) / 32;
  const auto* index = static_cast<const int32_t*>(o.metadata);
  typename Warp::Int mine[kParts];
  for (int i = 0; i < kParts; ++i) {
    mine[i] = warp.map([&](int lane) {
      const int32_t row = t.m0 + 32 * i + lane;
      return row < t.tile_end ? index[row] : -1;
    });
  }
  int32_t owned = 0, end = 0;
  for (int i = 0; i < kParts; ++i) {
    const uint32_t mask =
        warp.ballot([&](int lane) { return warp.mine(mine[i], lane) == t.group; });
    if (mask != 0) end = 32 * i + 32 - leading_zeros(mask);
    // Rows up to the first that is not the group's, if all before were.
    if (owned == 32 * i) owned += mask == ~0u ? 32 : trailing_ones(mask);
  }
  t.row_end = t.m0 + owned;
  t.tile_end = t.m0 + end;
  return end > 0;
}

// Contiguous: rows that no tile holds, as pieces of at most this many, for whoever stores zeros
// there.
inline constexpr int kOwnerlessRows = 64;  // every alignment is a multiple of it
OCTET_HD constexpr int32_t ownerless_pieces(const GroupOrder& o) {
  return o.rows / kOwnerlessRows + (o.rows % kOwnerlessRows > 0 ? 1 : 0);
}
// Whether the piece that begins at `row` lies in a block without a group.
OCTET_HD inline bool is_ownerless(const GroupOrder& o, int32_t row) {
  const uint32_t block = o.alignment.divide(static_cast<uint32_t>(row)) * o.alignment.divisor;
  const int32_t group = static_cast<const int32_t*>(o.metadata)[block];
  return group < 0 || group >= o.groups;
}

template <TileConfig kTile, typename Warp>
class GroupWalk {
 public:
  using Int = typename Warp::Int;

  OCTET_HD GroupWalk(const GroupOrder& order, const Warp& warp)
      : o_(order), warp_(warp), base_(-32) {}

  // The tile of `unit`; calls must ascend. Its row_end is that of its group or block.
  OCTET_HD GroupTile find(uint32_t unit) {
    while (unit - units_before_ >= chunk_units_) {
      if (!next_chunk()) return {};
    }
    const uint32_t here = unit - units_before_;
    const int lane = lane_of(static_cast<int>(o_.across.divide(here)));
    const int first = tiles_before(lane), last = warp_.at(upto_, lane);
    // Within the entity: bands, then columns, then M-tiles.
    const uint32_t in_run = here - static_cast<uint32_t>(first) * o_.across.divisor;
    const uint32_t band = o_.band_units.divide(in_run);
    const uint32_t rest = in_run - band * o_.band_units.divisor;
    const int band_first = first + static_cast<int>(band) * o_.band;
    const uint32_t width = static_cast<uint32_t>(smaller(o_.band, last - band_first));
    const uint32_t n = rest / width;
    return tile_of(band_first + static_cast<int>(rest - n * width), static_cast<int>(n));
  }

 protected:
  // The next 32 entities; false: there are none.
  OCTET_HD bool next_chunk() {
    if (o_.entities - base_ <= 32) return false;
    units_before_ += chunk_units_;
    base_ += 32;
    load();
    return true;
  }
  // M-tile `m` of the chunk, at column of tiles `n`.
  OCTET_HD GroupTile tile_of(int m, int n) const {
    const int lane = lane_of(m);
    GroupTile t;
    t.m0 = warp_.at(first_row_, lane) + (m - tiles_before(lane)) * kTile.tile_m;
    t.n0 = n * kTile.tile_n * kTile.cluster_n;
    t.row_end = warp_.at(last_row_, lane);
    t.tile_end = smaller(t.row_end, t.m0 + kTile.tile_m);
    t.group = o_.kind == GroupKind::kIndex ? warp_.at(carried_, lane) : base_ + lane;
    return t;
  }
  static OCTET_HD int smaller(int x, int y) { return x < y ? x : y; }
  static OCTET_HD int larger(int x, int y) { return x > y ? x : y; }
  // The lane whose entity holds M-tile `tile` of the chunk.
  OCTET_HD int lane_of(int tile) const {
    return trailing_zeros(warp_.ballot([&](int lane) { return warp_.mine(upto_, lane) > tile; }));
  }
  OCTET_HD int tiles_before(int lane) const { return lane == 0 ? 0 : warp_.at(upto_, lane - 1); }

  // Element i of the metadata, clamped to [0, most]; 0 where there is none.
  OCTET_HD int32_t number(int64_t i, int64_t count, int32_t most) const {
    if (i >= count) return 0;
    const int64_t x = o_.kind == GroupKind::kOffsets64
                          ? static_cast<const int64_t*>(o_.metadata)[i]
                          : int64_t{static_cast<const int32_t*>(o_.metadata)[i]};
    return static_cast<int32_t>(x < 0 ? 0 : x > most ? most : x);
  }
  OCTET_HD int32_t next_start(int32_t end) const {
    const auto x = static_cast<uint32_t>(end);
    uint32_t up = o_.alignment.divide(x) * o_.alignment.divisor;
    if (up < x) up += o_.alignment.divisor;  // less than 2^32
    return up > static_cast<uint32_t>(o_.rows) ? o_.rows : static_cast<int32_t>(up);
  }

  // Rows and M-tiles of entities base_ .. base_ + 31.
  OCTET_HD void load() {
    const auto mine = [&](const Int& x, int lane) { return warp_.mine(x, lane); };
    switch (o_.kind) {
      case GroupKind::kCounts:
        first_row_ = warp_.map([&](int) { return 0; });
        last_row_ =
            warp_.map([&](int lane) { return number(int64_t{base_} + lane, o_.groups, o_.rows); });
        break;
      case GroupKind::kIndex:
        first_row_ = warp_.map([&](int lane) {
          const int64_t row = (int64_t{base_} + lane) * o_.alignment.divisor;
          return static_cast<int32_t>(row < o_.rows ? row : o_.rows);
        });
        // Its group, or -1.
        carried_ = warp_.map([&](int lane) {
          const int32_t row = mine(first_row_, lane);
          const int32_t group = row < o_.rows ? static_cast<const int32_t*>(o_.metadata)[row] : -1;
          return group >= 0 && group < o_.groups ? group : -1;
        });
        {
          // Blocks of one group that lie together are one entity: that of the first.
          const Int other = warp_.before(carried_, -1);
          const uint32_t heads = warp_.ballot(
              [&](int lane) { return lane == 0 || mine(carried_, lane) != mine(other, lane); });
          last_row_ = warp_.map([&](int lane) {
            if ((heads >> lane & 1) == 0 || mine(carried_, lane) < 0) return mine(first_row_, lane);
            const uint32_t later = lane == 31 ? 0 : heads & (~uint32_t{0} << (lane + 1));
            const int blocks = (later == 0 ? 32 : trailing_zeros(later)) - lane;
            const int64_t row = mine(first_row_, lane) + int64_t{blocks} * o_.alignment.divisor;
            return static_cast<int32_t>(row < o_.rows ? row : o_.rows);
          });
        }
        break;
      case GroupKind::kEnds: {
        // A group starts where the one before has ended, rounded up: the largest such place of all
        // groups before.
        const Int end =
            warp_.map([&](int lane) { return number(int64_t{base_} + lane, o_.groups, o_.rows); });
        const Int next = warp_.scan_max(
            warp_.map([&](int lane) { return larger(start_, next_start(mine(end, lane))); }));
        first_row_ = warp_.before(next, start_);
        last_row_ =
            warp_.map([&](int lane) { return larger(mine(first_row_, lane), mine(end, lane)); });
        start_ = warp_.at(next, 31);
        break;
      }
      default: {
        // Offsets that decrease are raised to the largest so far.
        const int64_t count = int64_t{o_.groups} + 1;
        first_row_ = warp_.scan_max(warp_.map([&](int lane) {
          return larger(start_, number(int64_t{base_} + lane, count, o_.rows));
        }));
        last_row_ = warp_.map([&](int lane) {
          return larger(mine(first_row_, lane), number(int64_t{base_} + lane + 1, count, o_.rows));
        });
        start_ = warp_.at(last_row_, 31);
        break;
      }
    }
    upto_ = warp_.scan_add(warp_.map([&](int lane) {
      const int rows = mine(last_row_, lane) - mine(first_row_, lane);
      return rows / kTile.tile_m + (rows % kTile.tile_m > 0 ? 1 : 0);
    }));
    chunk_units_ = static_cast<uint32_t>(warp_.at(upto_, 31)) * o_.across.divisor;
  }

  const GroupOrder& o_;
  const Warp warp_;
  int32_t base_;               // first entity of the chunk
  uint32_t units_before_ = 0;  // in all chunks before
  uint32_t chunk_units_ = 0;   // in this one
  int32_t start_ = 0;          // where the next chunk's groups start at the earliest
  Int first_row_{}, last_row_{};
  Int carried_{};  // contiguous: the block's group
  Int upto_{};     // M-tiles of the chunk up to and with the lane's entity
};

}  // namespace oct::abi
