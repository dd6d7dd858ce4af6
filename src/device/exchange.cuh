// The exchange of partial sums between the ranges of a split K.
//
// Every unit has one owner among the CTAs of the cluster: CTA o owns units [o share, (o + 1)
// share). Every range brings its partial sum of a unit to the owner's buffer, slot [unit -
// first][range]; the owner adds them, ascending, and writes D. No workspace, no atomics, one order.
// (The network between SMs moves 13 bytes a cycle: what a CTA owns itself does not take it.)
//
// BARRIERS
//   exchange full   1 arrival (math warp 0, which announces all bytes of a tile, one tile ahead)
//                   + 1 of every math warp of the CTA, when it has written what the CTA owns
//   exchange free   1 arrival of every math warp of every CTA, when it has read its units
#pragma once

#include "device/writer.cuh"

namespace oct::device {

template <TileConfig kTile>
class Exchange {
 public:
  static constexpr int kUnits = abi::tile_units(kTile), kColUnits = kTile.cols() / 8;
  static constexpr int kWarps = kTile.math_warps(), kBarrier = 2;

  __device__ __forceinline__ Exchange(const KernelParams& params, uint32_t base, uint32_t cta_rank)
      : p(params),
        buffer(base + params.exchange),
        full(base + params.barriers + abi::exchange_barriers(kTile, params.stages)),
        free(full + 8),
        rank(cta_rank),
        ctas(params.cluster_split),
        ranges(ctas * kTile.k_groups) {
    first = static_cast<int>(rank) * p.share;
    count = abi::owned_units(kTile, p.share, first);
  }

  // One thread: the next tile's bytes. A CTA that owns no unit neither announces nor waits.
  __device__ __forceinline__ void announce() const {
    if (count > 0) ptx::mbarrier_arrive_expect(full, abi::exchanged_bytes(kTile, count, ctas));
  }

  // All math warps, at the end of their K range; last_tile: of this CTA. unit_of(i): number of the
  // warp's unit i, ascending.
  template <int kMyUnits, typename UnitOf>
  __device__ __forceinline__ void reduce(const float* acc, int k_group, int warp, int lane,
                                         const Tile<kTile>& at, bool last_tile, UnitOf unit_of) {
    const uint32_t slot = (rank * kTile.k_groups + k_group) * abi::kUnitBytes + lane * 16;
    if (ctas > 1) {
      // NOTE: a peer may still be reading the last tile's sums; without this wait they are
      // overwritten.
      if (tile > 0) ptx::mbarrier_wait_cluster(free, (tile - 1) & 1);
      int owner = -1, last = -1;  // units up to `last` belong to `owner`
      uint32_t to = 0, bar = 0;
#pragma unroll
      for (int i = 0; i < kMyUnits; ++i) {
        const int u = unit_of(i);
        if (u > last) {
          while (u > last) {
            ++owner;
            last += p.share;
          }
          to = ptx::map_to_rank(buffer + slot, owner);
          bar = ptx::map_to_rank(full, owner);
        }
        const int offset = (u - owner * p.share) * ranges * abi::kUnitBytes;
        ptx::store_here_or_async(owner == static_cast<int>(rank), buffer + slot + offset,
                                 to + offset, crossed(acc + 4 * i), bar);
      }
      __syncwarp();
      if (lane == 0 && count > 0) ptx::mbarrier_arrive(full);
      if (warp < count) {
        ptx::mbarrier_wait_cluster(full, tile & 1);
        if (warp == 0 && lane == 0 && !last_tile) announce();
      }
    } else {
      // NOTE: the other pipelines may still be reading the last tile's sums.
      if (tile > 0) ptx::named_sync(kBarrier, abi::math_threads(kTile));
#pragma unroll
      for (int i = 0; i < kMyUnits; ++i) {
        ptx::store_shared4(buffer + slot + unit_of(i) * ranges * abi::kUnitBytes,
                           crossed(acc + 4 * i));
      }
      ptx::named_sync(kBarrier, abi::math_threads(kTile));
    }
    write(warp, lane, at);
    // NOTE: not after the last tile: an arrival that is still under way when its CTA has left is a
    // fault, and the cluster's last barrier does not order it.
    if (ctas > 1 && !last_tile) {
      __syncwarp();
      if (lane < ctas) ptx::mbarrier_arrive_remote(ptx::map_to_rank(free, lane));
    }
    ++tile;
  }

 private:
  __device__ __forceinline__ void write(int warp, int lane, const Tile<kTile>& at) const {
    const Writer<kTile> writer(p, at, lane);
    const int row0 = kTile.normal() ? at.m0 : at.n0, col0 = kTile.normal() ? at.n0 : at.m0;
    if constexpr (kTile.normal()) {
      if (writer.by_rows()) {
        // NOTE: in registers: constant memory, read in the loop, takes some 60 cycles each time.
        int rows = p.m - at.m0, cols = p.n - at.n0;
        int64_t ld = p.out.ld;
        uint16_t* corner = writer.element_at(at.m0 + (lane & 15), at.n0);
        asm volatile("" : "+r"(rows), "+r"(cols), "+l"(ld), "+l"(corner));
        // Half a warp a unit; where there is none for the second half, it takes the first one's.
#pragma unroll 1
        for (int pair = 2 * warp; pair < count; pair += 2 * kWarps) {
          const int i = min(pair + (lane >> 4), count - 1);
          const int u = first + i, row = u / kColUnits * 16, col = u % kColUnits * 8;
          const uint4 words = writer.sum_row(buffer + i * ranges * abi::kUnitBytes, ranges);
          if (row + (lane & 15) < rows && col < cols) {
            *reinterpret_cast<uint4*>(corner + row * ld + col) = words;
          }
        }
        return;
      }
    }
#pragma unroll 1
    for (int i = warp; i < count; i += kWarps) {
      const uint32_t from = buffer + i * ranges * abi::kUnitBytes + lane * 16;
      float4 sum = ptx::load_shared4(from);
#pragma unroll 2
      for (int r = 1; r < ranges; ++r) {
        const float4 v = ptx::load_shared4(from + r * abi::kUnitBytes);
        sum.x = __fadd_rn(sum.x, v.x);
        sum.y = __fadd_rn(sum.y, v.y);
        sum.z = __fadd_rn(sum.z, v.z);
        sum.w = __fadd_rn(sum.w, v.w);
      }
      const int u = first + i;
      writer.unit(crossed(sum), row0 + u / kColUnits * 16, col0 + u % kColUnits * 8);
    }
  }

  const KernelParams& p;
  const uint32_t buffer, full, free, rank;
  const int ctas, ranges;
  int first, count;
  int tile = 0;
};

}  // namespace oct::device
