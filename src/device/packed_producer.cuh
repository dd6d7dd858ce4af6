// The producers of packed groups: each group's A and B are matrices of their own, as wide as the
// group's K, one behind the other. Their pitch is known on the device alone, and a tensor map holds
// a pitch. So there are no tensor maps here, and nothing that could be rewritten while a load is
// under way: rows are brought by plain asynchronous loads of 16 bytes, to where the copy engine's
// 128-byte swizzle would have put them. Three warps share a stage.
//
// BARRIERS: every lane arrives at `full` of a stage when its own loads have landed and are visible
// to WGMMA, kAhead stages later.
#pragma once

#include "device/scale_producer.cuh"

namespace oct::device {

template <TileConfig kTile>
class PackedProducer : Producer<kTile> {
  using Base = Producer<kTile>;
  static constexpr int kWarps = 3;
  static constexpr int kAhead = 2;  // stages whose loads are under way

 public:
  __device__ __forceinline__ PackedProducer(const KernelParams& params, const Ring<kTile>& its_ring,
                                            uint32_t base_address, uint32_t cta_rank, int which,
                                            int lane_id)
      : Base(params, its_ring, base_address, cta_rank, 0, lane_id), warp(which) {}

  __device__ __forceinline__ void run() {
    const KernelParams& p = this->p;
    if (p.flags & abi::kDependent) ptx::wait_for_earlier_kernels();
    KTileAt at{};
    uint32_t issued = 0, landed = 0;
    CPrefetch<kTile> c(p);
    Place landing(0);
    this->walk(
        [&](const KTileAt& tile) {
          at = tile;
          if (warp == 0) c.aim(tile, this->lane);
        },
        [&](uint32_t stage, int kb) {
          const int64_t pitch = int64_t{at.k.last - at.k.first} * abi::kBlockK;
          // The group's matrix begins behind those of the columns before it.
          const int64_t before = int64_t{at.k.first} * abi::kBlockK;
          const int64_t column = int64_t{kb - at.k.first} * abi::kBlockK;
          load_rows<kTile.tile_m>(this->ring.row_tile(stage, 0),
                                  p.k_groups.a + p.m * before + column, pitch, at.m0, p.m);
          load_rows<kTile.tile_n>(this->ring.col_tile(stage, 0),
                                  p.k_groups.b + p.n * before + column, pitch, at.n0, p.n);
          load_scales<kTile.tile_m>(this->ring.sfa(stage, 0), p.sfa_plain, kb, at.m0, p.m);
          load_scales<kTile.tile_n>(this->ring.sfb(stage, 0), p.sfb, kb, at.n0, p.n);
          if (warp == 0) c.step();
          ptx::commit_loads();
          if (++issued > landed + kAhead) land<kAhead>(landing, landed);
        },
        [](uint32_t, int) {},
        [&](const TileWalk<kTile>& tiles) {
          // NOTE: the scheduler lists no tile before math warps have read those before, and
          // they wait for what is still under way here.
          if (__shfl_sync(~0u, tiles.listed(), 0)) return;
          ptx::wait_loads<0>();
#pragma unroll 1
          while (landed != issued) land<0>(landing, landed);
        });
    // What is still under way.
    ptx::wait_loads<0>();
#pragma unroll 1
    while (landed != issued) land<0>(landing, landed);
  }

 private:
  template <int kPending>
  __device__ __forceinline__ void land(Place& landing, uint32_t& landed) const {
    ptx::wait_loads<kPending>();
    // NOTE: WGMMA reads through the asynchronous proxy, these loads wrote through the generic one.
    ptx::fence_async_proxy();
    ptx::mbarrier_arrive(this->ring.full + 8 * landing.stage);
    landing.advance(this->ring.stages);
    ++landed;
  }

  // kRows rows of 128 bytes, every kWarps * 4-th group of 4 rows by this warp: eight lanes a row.
  template <int kRows>
  __device__ __forceinline__ void load_rows(uint32_t to, const uint8_t* from, int64_t pitch,
                                            int first, int rows) const {
    const int chunk = this->lane & 7;
    int row = warp * 4 + (this->lane >> 3);
    const uint8_t* at = from + (first + row) * pitch + chunk * 16;
#pragma unroll 4
    for (; row < kRows; row += 4 * kWarps, at += 4 * kWarps * pitch) {
      const bool there = first + row < rows;
      // Rows that do not exist become zeros; their address must still be one.
      ptx::load_async_16(to + row * abi::kBlockK + ((chunk ^ (row & 7)) << 4), there ? at : from,
                         there);
    }
  }
  template <int kRows>
  __device__ __forceinline__ void load_scales(uint32_t to, const Scales& scales, int kb, int first,
                                              int rows) const {
    const float* at = scales.data + kb * scales.k_stride;
#pragma unroll 1
    for (int row = warp * 32 + this->lane; row < kRows && first + row < rows; row += 32 * kWarps)
      ptx::load_async_4(to + 4 * row, at + int64_t{first + row} * scales.row_stride);
  }

  const int warp;
};

}  // namespace oct::device
