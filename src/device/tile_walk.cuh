// How the roles of a CTA find their next tile. Dense kernels: every warp works it out from the
// unit's number. Grouped kernels: one scheduler warp reads the grouping metadata and finds the
// tiles (kernel_abi/group_order.h), a few ahead of everybody else, and passes them on through
// shared memory, so that no other warp holds more than a place in that list.
//
// BARRIERS of a place for a tile (grouped)
//   full    1 arrival of the scheduler, when the tile stands there
//   empty   1 arrival of every other warp, when it has read it
#pragma once

#include "device/ptx/barrier.cuh"
#include "device/ptx/copy.cuh"
#include "kernel_abi/kernel_params.h"
#include "kernel_abi/smem_layout.h"

namespace oct::device {

using abi::KernelParams;
using abi::TileAt;
using abi::TileConfig;

// Units of work of this CTA: the grid is [cluster size, clusters].
__device__ __forceinline__ uint32_t first_unit() { return blockIdx.y; }
__device__ __forceinline__ uint32_t unit_step() { return gridDim.y; }

// One tile's coordinates for this CTA.
template <TileConfig kTile>
__device__ __forceinline__ TileAt locate(const KernelParams& p, uint32_t unit, uint32_t rank) {
  return abi::tile_at(kTile, p.order, unit, rank);
}

// Of a grouped kernel; batch is the group. Of the tile's rows, the first owned() are the group's;
// from there up to listed() they have to be looked at one by one (GroupTile). NOTE: in one
// register; with two the 256-row kernel spills.
struct GroupedTileAt : TileAt {
  uint32_t rows;
  static __device__ __forceinline__ uint32_t pack(int owned, int listed) {
    return static_cast<uint32_t>(owned) | static_cast<uint32_t>(listed) << 16;
  }
  __device__ __forceinline__ int owned() const { return static_cast<int>(rows & 0xffff); }
  __device__ __forceinline__ int listed() const { return static_cast<int>(rows >> 16); }
};

// Of a kernel grouped over K; batch is the group, `k` the K-blocks that it walks.
struct KTileAt : TileAt {
  abi::BlockRange k;
};

template <bool kOverK>
struct ListedTile {
  using Type = GroupedTileAt;
};
template <>
struct ListedTile<true> {
  using Type = KTileAt;
};

// The tiles of this CTA, one after the other:
//   for (TileWalk<kTile> tiles(...); tiles.more(); tiles.step()) { tiles.here() }
// or, where the next tile's place is wanted before this one is finished:
//   for (next = tiles.here(); tiles.more(); tiles.step_to(next)) { at = next; next = tiles.ahead();
//   }
// last(next), has_before(earlier): whether the tile under way is the last one; is not the first.
template <TileConfig kTile, bool kScheduled = kTile.scheduled()>
class TileWalk {
 public:
  using Tile = TileAt;

  __device__ __forceinline__ TileWalk(const KernelParams& params, uint32_t, uint32_t cta_rank, int)
      : p(params), rank(cta_rank) {}
  __device__ __forceinline__ bool more() const { return unit < p.order.units; }
  __device__ __forceinline__ Tile here() const { return locate<kTile>(p, unit, rank); }
  __device__ __forceinline__ Tile ahead() const {
    return locate<kTile>(p, unit + unit_step(), rank);
  }
  __device__ __forceinline__ void step() { unit += unit_step(); }
  __device__ __forceinline__ void step_to(Tile) { step(); }
  __device__ __forceinline__ bool last() const { return unit + unit_step() >= p.order.units; }
  __device__ __forceinline__ bool last(const Tile&) const { return last(); }
  __device__ __forceinline__ bool has_before(const Tile&) const { return unit >= unit_step(); }

 private:
  const KernelParams& p;
  const uint32_t rank;
  uint32_t unit = first_unit();
};

// Addresses of the list of tiles.
template <TileConfig kTile>
struct TileList {
  uint32_t full, tiles;
  __device__ __forceinline__ TileList(const KernelParams& p, uint32_t base)
      : full(base + p.barriers + abi::tile_barriers(kTile, p.stages)),
        tiles(base + p.barriers + abi::tile_list(kTile, p.stages)) {}
  __device__ __forceinline__ uint32_t full_of(uint32_t place) const { return full + 8 * place; }
  __device__ __forceinline__ uint32_t empty_of(uint32_t place) const {
    return full + 8 * (abi::kTilePlaces + place);
  }
  __device__ __forceinline__ uint32_t tile_of(uint32_t place) const {
    return tiles + place * abi::tile_bytes(kTile);
  }
};

template <TileConfig kTile>
class TileWalk<kTile, true> {
 public:
  using Tile = typename ListedTile<kTile.k_grouped>::Type;

  __device__ __forceinline__ TileWalk(const KernelParams& params, uint32_t base_address, uint32_t,
                                      int lane_id)
      : p(params), base(base_address), lane(lane_id), current(ahead()) {}
  __device__ __forceinline__ bool more() const { return current.batch >= 0; }
  __device__ __forceinline__ Tile here() const { return current; }
  __device__ __forceinline__ Tile ahead() {
    const TileList<kTile> list(p, base);
    const uint32_t place = count % abi::kTilePlaces, parity = count / abi::kTilePlaces & 1;
    ++count;
    ptx::mbarrier_wait(list.full_of(place), parity);
    const uint4 tile = ptx::load_shared_u4(list.tile_of(place));
    Tile t;
    if constexpr (kTile.k_grouped) {
      const uint2 k = ptx::load_shared_u2(list.tile_of(place) + 16);
      t.k = {static_cast<int>(k.x), static_cast<int>(k.y)};
    } else {
      t.rows = tile.w;
    }
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(list.empty_of(place));
    t.m0 = static_cast<int>(tile.x);
    t.n0 = static_cast<int>(tile.y);
    t.batch = static_cast<int>(tile.z);
    return t;
  }
  __device__ __forceinline__ void step() { current = ahead(); }
  __device__ __forceinline__ void step_to(Tile next) { current = next; }
  __device__ __forceinline__ bool last() const { return false; }  // asked for clusters alone
  __device__ __forceinline__ bool last(const Tile& next) const { return next.batch < 0; }
  __device__ __forceinline__ bool has_before(const GroupedTileAt& before) const {
    return before.rows != 0;
  }

 private:
  const KernelParams& p;
  const uint32_t base;
  const int lane;
  uint32_t count = 0;
  Tile current;
};

template <TileConfig kTile>
using Tile = typename TileWalk<kTile>::Tile;

// Pieces of 64 rows that the tile has rows for; ragged tiles (TileConfig::ragged()) may have fewer
// than others.
template <TileConfig kTile>
__device__ __forceinline__ int live_row_pieces(const Tile<kTile>& at) {
  if constexpr (kTile.ragged()) return (at.listed() + 63) >> 6;
  return kTile.tile_m / 64;
}

// Whether row m of a tile is stored, and what: its value, zeros, or nothing.
enum class RowState { kSkip, kZero, kOwned };

__device__ __forceinline__ RowState row_state(const KernelParams& p, const GroupedTileAt& t,
                                              int m) {
  if (m - t.m0 < t.owned()) return RowState::kOwned;
  if (m - t.m0 >= t.listed()) return RowState::kSkip;
  // Contiguous, behind the first padding row of the block.
  if (static_cast<const int32_t*>(p.groups.metadata)[m] == t.batch) return RowState::kOwned;
  return p.groups.zeros ? RowState::kZero : RowState::kSkip;
}

}  // namespace oct::device
