// The scheduler warp of a grouped kernel: reads grouping metadata, finds this CTA's tiles and lists
// them for the other roles. It also writes the zeros that a contiguous problem wants in padding
// behind a group's last row: tiles that belong to nobody are never listed, so that they cost
// neither loads nor arithmetic, and rows behind the last one are not the math warps' business.
#pragma once

#include "device/tile_walk.cuh"
#include "kernel_abi/balanced_walk.h"

namespace oct::device {

// kernel_abi/group_order.h says what these do.
struct DeviceWarp {
  using Int = int32_t;
  int lane_id;

  template <typename F>
  __device__ __forceinline__ int32_t map(F f) const {
    return f(lane_id);
  }
  __device__ __forceinline__ int32_t mine(int32_t x, int) const { return x; }
  __device__ __forceinline__ int32_t at(int32_t x, int lane) const {
    return __shfl_sync(~0u, x, lane);
  }
  __device__ __forceinline__ int32_t least(int32_t x) const { return __reduce_min_sync(~0u, x); }
  __device__ __forceinline__ uint32_t any_bits(int32_t x) const {
    return __reduce_or_sync(~0u, static_cast<uint32_t>(x));
  }
  template <typename F>
  __device__ __forceinline__ uint32_t ballot(F f) const {
    return __ballot_sync(~0u, f(lane_id));
  }
  __device__ __forceinline__ int32_t before(int32_t x, int32_t first) const {
    const int32_t y = __shfl_up_sync(~0u, x, 1);
    return lane_id == 0 ? first : y;
  }
  __device__ __forceinline__ int32_t scan_add(int32_t x) const {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int32_t y = __shfl_up_sync(~0u, x, step);
      if (lane_id >= step) x += y;
    }
    return x;
  }
  __device__ __forceinline__ int32_t scan_max(int32_t x) const {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int32_t y = __shfl_up_sync(~0u, x, step);
      if (lane_id >= step) x = max(x, y);
    }
    return x;
  }
};

// Asks L2 for the first lines of the metadata while barriers are initialised: no other warp has
// anything to do before they have come. (That is all it does, so an earlier kernel may yet write
// them.)
__device__ __forceinline__ void prefetch_metadata(const KernelParams& p, int lane) {
  const int bytes = p.groups.kind == abi::GroupKind::kOffsets64 ? 8 : 4;
  // Of a contiguous problem one index a block; else 32 groups, and where the last of them ends.
  const bool by_index = p.groups.kind == abi::GroupKind::kIndex;
  const int64_t step = by_index ? p.groups.alignment.divisor : 1;
  const int64_t count = by_index ? p.groups.rows : p.groups.groups;
  if (lane * step < count) {
    ptx::prefetch_line(static_cast<const char*>(p.groups.metadata) + lane * step * bytes);
  }
}

template <TileConfig kTile>
class Scheduler {
 public:
  __device__ __forceinline__ Scheduler(const KernelParams& params, uint32_t base, uint32_t cta_rank,
                                       int lane_id)
      : p(params), list(params, base), rank(cta_rank), lane(lane_id) {}

  __device__ __forceinline__ void run() {
    const bool by_index = p.groups.kind == abi::GroupKind::kIndex;
    // NOTE: metadata may be written by the kernel before this one.
    if (p.flags & abi::kDependent) ptx::wait_for_earlier_kernels();
    if (kTile.ragged() && abi::is_balanced(p.groups, p.k_blocks, unit_step())) {
      abi::BalancedWalk<kTile, DeviceWarp> walk(p.groups, {lane}, first_unit(), unit_step());
      // NOTE: everybody's first tile is known without a play, and nothing would hide that one.
      bool first = true;
      int known = 0;
      list_all(
          [&] {
            abi::GroupTile t;
            if (first) {
              first = false;
              known = 1;
              return abi::GroupWalk<kTile, DeviceWarp>(p.groups, {lane}).find(first_unit());
            }
#pragma unroll 1
            for (; known >= 0; --known) t = walk.next();
            known = 0;
            return t;
          },
          by_index);
    } else {
      abi::GroupWalk<kTile, DeviceWarp> walk(p.groups, {lane});
      uint32_t unit = first_unit() - unit_step();
      list_all([&] { return walk.find(unit += unit_step()); }, by_index);
    }
    if (by_index && p.groups.zeros) fill_ownerless();
  }

 private:
  template <typename Next>
  __device__ __forceinline__ void list_all(Next next, bool by_index) {
    bool more = true;
#pragma unroll 1
    while (more) {
      abi::GroupTile t = next();
      if constexpr (kTile.cluster_n > 1) t.n0 += static_cast<int>(rank) * kTile.tile_n;
      more = t.group >= 0;
      const int end = t.tile_end;
      t.row_end = min(t.row_end, t.tile_end);
      if (!more || !by_index || abi::look_at_rows<kTile>(p.groups, DeviceWarp{lane}, t)) pass_on(t);
      // Padding behind the group's last row of the tile: the math warps need not know of it.
      if (more && by_index && p.groups.zeros) {
        fill_zeros(t.tile_end, end, t.n0, min(t.n0 + kTile.tile_n, p.n));
      }
    }
  }

  __device__ __forceinline__ void pass_on(const abi::GroupTile& t) {
    const uint32_t place = count % abi::kTilePlaces, round = count / abi::kTilePlaces;
    ++count;
    if (round > 0) ptx::mbarrier_wait(list.empty_of(place), (round - 1) & 1);
    if (lane == 0) {
      ptx::store_shared_u4(list.tile_of(place),
                           make_uint4(static_cast<uint32_t>(t.m0), static_cast<uint32_t>(t.n0),
                                      static_cast<uint32_t>(t.group),
                                      GroupedTileAt::pack(t.row_end - t.m0, t.tile_end - t.m0)));
      ptx::mbarrier_arrive(list.full_of(place));
    }
    __syncwarp();
  }

  // Blocks that belong to no group, dealt out over the CTAs.
  __device__ __forceinline__ void fill_ownerless() const {
    const uint32_t pieces = static_cast<uint32_t>(abi::ownerless_pieces(p.groups));
#pragma unroll 1
    for (uint32_t i = first_unit() * kTile.cluster_n + rank; i < pieces;
         i += unit_step() * kTile.cluster_n) {
      const int row = static_cast<int>(i) * abi::kOwnerlessRows;
      if (!abi::is_ownerless(p.groups, row)) continue;
      fill_zeros(row, min(row + abi::kOwnerlessRows, p.groups.rows), 0, p.n);
    }
  }

  __device__ __forceinline__ void fill_zeros(int m, int m_end, int n, int n_end) const {
    if (n >= n_end) return;  // the tile of a cluster that lies beyond D
    const int element = p.d_type == abi::ElementType::kF32 ? 4 : 2;
    char* const row = static_cast<char*>(p.out.data) + (m * p.out.ld + n) * element;
    const int64_t pitch = p.out.ld * element;
    const int bytes = (n_end - n) * element;
    // NOTE: nothing says that rows of D are aligned to more than an element.
    if (((reinterpret_cast<uintptr_t>(row) | static_cast<uintptr_t>(pitch) |
          static_cast<uintptr_t>(bytes)) &
         15) == 0) {
      fill_rows(reinterpret_cast<uint4*>(row), pitch, m_end - m, bytes / 16);
    } else {
      fill_rows(reinterpret_cast<uint16_t*>(row), pitch, m_end - m, bytes / 2);
    }
  }
  // `words` of each of `rows` rows, as many rows at a time as the lanes reach across.
  template <typename Word>
  __device__ __forceinline__ void fill_rows(Word* first, int64_t pitch, int rows, int words) const {
    const int across = words > 16 ? 32 : words > 8 ? 16 : 8, step = 32 / across;
    int row = lane / across;
    char* at = reinterpret_cast<char*>(first) + row * pitch;
#pragma unroll 1
    for (; row < rows; row += step, at += step * pitch) {
#pragma unroll 1
      for (int i = lane % across; i < words; i += across) reinterpret_cast<Word*>(at)[i] = Word{};
    }
  }

  const KernelParams& p;
  const TileList<kTile> list;
  const uint32_t rank;
  const int lane;
  uint32_t count = 0;
};

// Of a kernel grouped over K: which tiles there are is known beforehand (all groups have the same M
// and N), and so is whose a tile is; what a group's K is, is read here.
template <TileConfig kTile>
class KScheduler {
 public:
  __device__ __forceinline__ KScheduler(const KernelParams& params, uint32_t base, int lane_id)
      : p(params), list(params, base), lane(lane_id) {}

  __device__ __forceinline__ void run() {
    // NOTE: metadata may be written by the kernel before this one.
    if (p.flags & abi::kDependent) ptx::wait_for_earlier_kernels();
    abi::KGroupWalk<kTile.packed, DeviceWarp> walk(p.k_groups, {lane});
#pragma unroll 1
    for (uint32_t unit = first_unit(); unit < p.order.units; unit += unit_step()) {
      const TileAt at = locate<kTile>(p, unit, 0);
      const abi::KRange k = walk.find(at.batch);
      pass_on(at, k.first, k.first + k.blocks);
    }
    pass_on({0, 0, -1}, 0, 0);
  }

 private:
  __device__ __forceinline__ void pass_on(const TileAt& at, int first, int last) {
    const uint32_t place = count % abi::kTilePlaces, round = count / abi::kTilePlaces;
    ++count;
    if (round > 0) ptx::mbarrier_wait(list.empty_of(place), (round - 1) & 1);
    if (lane == 0) {
      ptx::store_shared_u4(list.tile_of(place),
                           make_uint4(static_cast<uint32_t>(at.m0), static_cast<uint32_t>(at.n0),
                                      static_cast<uint32_t>(at.batch), 0));
      ptx::store_shared_u2(list.tile_of(place) + 16,
                           make_uint2(static_cast<uint32_t>(first), static_cast<uint32_t>(last)));
      ptx::mbarrier_arrive(list.full_of(place));
    }
    __syncwarp();
  }

  const KernelParams& p;
  const TileList<kTile> list;
  const int lane;
  uint32_t count = 0;
};

}  // namespace oct::device
