// The ring of stages between the three producer warps that fill it and the math warpgroups that
// empty it: the same for both kernel families.
//
// A stage holds `blocks` K-blocks: their tiles of A, then of B, brought by the copy engine, and a
// slot of scales: SFA of the tile's rows (copy engine, or plain asynchronous loads where SFA is
// row-major or oddly pitched) and up to four SFB (plain asynchronous loads: any strides). So a
// stage is complete in itself and no tile starts with a load of scales behind a barrier.
//
// BARRIERS of a stage
//   full    1 arrival of the producer of B (and of SFB in boxes), with the bytes that the copy
//           engine will bring
//           + 1 of the producer of A (and SFA), likewise
//           + 4 of lanes 0..3 of the producer of scales, when their SFB have landed
//           + 32 of its lanes with plain SFA, when each one's have landed
//           paired scales: instead of the 4, 32 with plain SFB
//   empty   1 arrival of every math warp that reads the stage, in every CTA of a multicast
#pragma once

#include "device/ptx/barrier.cuh"
#include "device/ptx/copy.cuh"
#include "device/ptx/wgmma.cuh"
#include "device/tile_walk.cuh"
#include "kernel_abi/kernel_params.h"
#include "kernel_abi/smem_layout.h"

namespace oct::device {

using abi::Scales;

// Addresses of one pipeline's ring. Stage s: tiles + s * stage bytes, and so on.
template <TileConfig kTile>
struct Ring {
  static constexpr abi::SmemLayout kLayout = abi::make_smem_layout(kTile, 1);
  static constexpr uint32_t kStageBytes = kLayout.stage_bytes, kScaleBytes = kLayout.scale_bytes;

  uint32_t tiles, scales, full, empty, stages;

  __device__ __forceinline__ Ring(const KernelParams& p, uint32_t base, int pipeline)
      : tiles(base + pipeline * p.stages * kStageBytes),
        scales(base + p.scales + pipeline * p.stages * kScaleBytes),
        full(base + p.barriers + abi::full_barriers(p.stages, pipeline)),
        empty(full + abi::empty_after_full(kTile, p.stages)),
        stages(p.stages) {
    // NOTE: keeps the count in a register; read from constant memory in the K loop it costs 2-4 %
    // at large M (measured on the prototype).
    asm volatile("" : "+r"(stages));
  }

  // K-block b of stage s, on WGMMA's 64-row side and on its N side.
  __device__ __forceinline__ uint32_t row_tile(uint32_t s, int b) const {
    return tiles + s * kStageBytes +
           (kTile.normal() ? abi::a_tile(kTile, b) : abi::b_tile(kTile, b));
  }
  __device__ __forceinline__ uint32_t col_tile(uint32_t s, int b) const {
    return tiles + s * kStageBytes +
           (kTile.normal() ? abi::b_tile(kTile, b) : abi::a_tile(kTile, b));
  }
  __device__ __forceinline__ uint32_t sfa(uint32_t s, int b) const {
    return scales + s * kScaleBytes + abi::sfa_slot(kTile, b);
  }
  __device__ __forceinline__ uint32_t sfb(uint32_t s, int b) const {
    return scales + s * kScaleBytes + abi::sfb_slot(kTile, b);
  }
};

// A place in the ring: stage and how often the ring has been walked.
struct Place {
  uint32_t stage = 0, parity;

  __device__ __forceinline__ explicit Place(uint32_t first_parity) : parity(first_parity) {}
  __device__ __forceinline__ void advance(uint32_t stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// The same for a math warp, which has no time to multiply: how far the stage's tiles (in units of a
// WGMMA descriptor) and its scales (in bytes) lie from those of stage 0.
template <TileConfig kTile>
struct MathPlace : Place {
  uint32_t tiles = 0, scales = 0;

  __device__ __forceinline__ MathPlace() : Place(0) {}
  __device__ __forceinline__ void advance(uint32_t stages) {
    Place::advance(stages);
    tiles = stage == 0 ? 0 : tiles + ptx::descriptor_step(Ring<kTile>::kStageBytes);
    scales = stage == 0 ? 0 : scales + Ring<kTile>::kScaleBytes;
  }
};

// K-blocks that pipeline `group` of CTA `rank` walks.
template <TileConfig kTile>
__device__ __forceinline__ abi::BlockRange my_range(const KernelParams& p, uint32_t rank,
                                                    int group) {
  return abi::pipeline_range(kTile, p.cut, p.k_blocks, p.split, rank, group);
}

// Initialises this warp's share of the barriers, those of the exchange included; every role calls
// it, then everybody waits for everybody. NOTE: an initialisation takes some 40 cycles whichever
// lane asks for it, so a ring's worth of them by one warp delays the first request by 600; in a
// loop that is not unrolled each one takes a fence besides.
template <TileConfig kTile>
__device__ __forceinline__ void init_barriers(const KernelParams& p, uint32_t base, int warp,
                                              int lane) {
  constexpr int kWarps = kTile.threads() / 32;
  constexpr int kMost = (2 * Ring<kTile>::kLayout.stages + kWarps - 1) / kWarps;
  const uint32_t full = base + p.barriers, empty = full + abi::empty_after_full(kTile, p.stages),
                 exchange = full + abi::exchange_barriers(kTile, p.stages);
  const uint32_t full_arrivals =
      abi::full_arrivals(kTile, p.flags & abi::kPlainSfa, p.flags & abi::kPlainSfb);
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const uint32_t bar = full + 8 * (warp + i * kWarps);
      if (bar < exchange)
        ptx::mbarrier_init(bar, bar < empty ? full_arrivals : abi::empty_arrivals(kTile));
    }
    if (kTile.staggered() && p.cluster_split == 1 && warp == kWarps - 1) {
      ptx::mbarrier_init(exchange, abi::stagger_arrivals());
    }
    if (p.cluster_split > 1 && warp == kWarps - 1) {
      ptx::mbarrier_init(exchange, abi::exchange_full_arrivals(kTile));
      ptx::mbarrier_init(exchange + 8, abi::exchange_free_arrivals(kTile, p.cluster_split));
    }
    if constexpr (kTile.scheduled()) {
      if (warp == kWarps - 1) {
        const TileList<kTile> list(p, base);
#pragma unroll
        for (int i = 0; i < abi::kTilePlaces; ++i) {
          ptx::mbarrier_init(list.full_of(i), abi::tile_full_arrivals());
          ptx::mbarrier_init(list.empty_of(i), abi::tile_empty_arrivals(kTile));
        }
      }
    }
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
}

}  // namespace oct::device
