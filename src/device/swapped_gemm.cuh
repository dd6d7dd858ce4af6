// D = A B^T, e4m3 with 1D2D scales, operands swapped: rows of B (weights) on WGMMA's 64-row side,
// rows of A (tokens) on its N side, 8 to 128 wide. For decode, where reading the weights is all
// that counts: no padding of tokens to 64, K split over the CTAs of a cluster and over the
// warpgroups of a CTA.
//
// ROLES (warps, in order)
//   math warpgroups   pipeline by pipeline; those of one pipeline lie side by side over the tile's
//                     rows
//   k_groups each     producers: of B; of A, with SFA by the copy engine; of SFB and other SFA
//
// BARRIERS
//   stages            pipeline.cuh, each pipeline its own
//   exchange          exchange.cuh, with K split over the cluster
//   named 0           all warps, before they part: barriers are initialised
//   named 2           exchange between the warpgroups of one CTA
//
// TIMELINE of a K-block: as in normal_gemm.cuh. A launch is short: what counts is how early the
// first request leaves and how little remains after the last byte has arrived.
#pragma once

#include "device/exchange.cuh"
#include "device/promote.cuh"
#include "device/ptx/wgmma.cuh"

namespace oct::device {

template <TileConfig kTile>
struct SwappedMath {
  static constexpr int kWidth = kTile.piece_cols(), kAcc = kWidth / 2;

  const Ring<kTile>& ring;
  const int lane;
  const uint64_t rows, cols;  // descriptors of the warpgroup's first K-block in stage 0
  const uint32_t sfa, sfb;    // addresses of the lane's first SFA and of the first SFB there
  MathPlace<kTile> place;

  __device__ __forceinline__ SwappedMath(const Ring<kTile>& its_ring, int row_group, int lane_id)
      : ring(its_ring),
        lane(lane_id),
        rows(ptx::descriptor(ring.row_tile(0, 0) + row_group * 64 * abi::kBlockK)),
        cols(ptx::descriptor(ring.col_tile(0, 0))),
        sfa(ring.sfa(0, 0) + (lane & 3) * 8),
        sfb(ring.sfb(0, 0)) {}

  __device__ __forceinline__ void wait_full() const {
    ptx::mbarrier_wait(ring.full + 8 * place.stage, place.parity);
  }
  __device__ __forceinline__ bool test_full() const {
    return ptx::mbarrier_test(ring.full + 8 * place.stage, place.parity);
  }
  // NOTE: only after the wait for the WGMMA that read the stage, and after its scales are in
  // registers.
  __device__ __forceinline__ void release(uint32_t stage) const {
    if (lane == 0) ptx::mbarrier_arrive(ring.empty + 8 * stage);
  }
  __device__ __forceinline__ void start(float (&product)[kAcc], uint32_t tiles, int block) const {
    ptx::multiply_block<kWidth>(
        product, rows + (tiles + block * ptx::descriptor_step(abi::operand_bytes(kTile.tile_n))),
        cols + (tiles + block * ptx::descriptor_step(abi::operand_bytes(kTile.tile_m))));
  }
  struct Scales {
    float2 sfa[kWidth / 8];
    float sfb;
  };
  __device__ __forceinline__ Scales load_scales(uint32_t scales, int block,
                                                uint32_t sfb_slot) const {
    Scales s;
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j)
      s.sfa[j] = ptx::load_shared2(sfa + scales + block * kTile.tile_m * 4 + 32 * j);
    s.sfb = ptx::load_shared(sfb + scales + (block * abi::kSfbSlots + sfb_slot) * 4);
    // NOTE: one lane releases the stage for all of them; here the meeting hides under the WGMMA.
    __syncwarp();
    return s;
  }

  // `count` K-blocks into acc.
  __device__ __forceinline__ void k_loop(float (&acc)[kAcc], int count, uint32_t sfb_slot) {
    if (count == 0) return;
    // The stage at `place` is known to be full. Asked under the WGMMA before: the answer takes some
    // 50 cycles, which a chain of short K-blocks has no time for.
    bool ready = false;
    if constexpr (kTile.sets == 1) {
      float product[kAcc];
#pragma unroll 1
      for (int left = count; left > 0; left -= kTile.blocks) {
        if (!ready) wait_full();
        const uint32_t stage = place.stage, tiles = place.tiles, scales = place.scales;
        place.advance(ring.stages);
#pragma unroll
        for (int b = 0; b < kTile.blocks; ++b) {
          if (b < left) {
            start(product, tiles, b);
            const Scales s = load_scales(scales, b, sfb_slot);
            if (b == 0) ready = test_full();
            ptx::wgmma_wait<0>();
            ptx::hold(product);
            if (b == kTile.blocks - 1) release(stage);
            promote_swapped<kWidth>(acc, product, s.sfa, s.sfb);
          } else if (b == kTile.blocks - 1) {
            release(stage);
          }
        }
      }
    } else {
      float even[kAcc], odd[kAcc];
      MathPlace<kTile> retiring = place;
      int issued = 0, retired = 0;
      // kSlot: which K-block of a stage the set always works on (kSlot < blocks).
      const auto issue = [&]<int kSlot>(float(&product)[kAcc]) {
        if (kSlot == 0 && !ready) wait_full();
        start(product, place.tiles, kSlot);
        ++issued;
        if (kSlot == kTile.blocks - 1 || issued == count) place.advance(ring.stages);
      };
      const auto retire = [&]<int kSlot, int kPending>(float(&product)[kAcc]) {
        const Scales s = load_scales(retiring.scales, kSlot, sfb_slot);
        // Before the set that comes next starts a stage.
        if (kPending > 0 && (kTile.blocks == 1 || kSlot == 0)) ready = test_full();
        ptx::wgmma_wait<kPending>();
        ptx::hold(product);
        ++retired;
        if (kSlot == kTile.blocks - 1 || retired == count) {
          release(retiring.stage);
          retiring.advance(ring.stages);
        }
        promote_swapped<kWidth>(acc, product, s.sfa, s.sfb);
      };
      constexpr int kOddSlot = kTile.blocks - 1;  // 0 with one block a stage, 1 with two
      issue.template operator()<0>(even);
      int left = count - 1;
#pragma unroll 1
      for (; left >= 2; left -= 2) {
        issue.template operator()<kOddSlot>(odd);
        retire.template operator()<0, 1>(even);
        issue.template operator()<0>(even);
        retire.template operator()<kOddSlot, 1>(odd);
      }
      if (left == 1) {
        issue.template operator()<kOddSlot>(odd);
        retire.template operator()<0, 1>(even);
        retire.template operator()<kOddSlot, 0>(odd);
      } else {
        retire.template operator()<0, 0>(even);
      }
    }
  }
};

template <TileConfig kTile>
__device__ __forceinline__ void swapped_math(const KernelParams& p, const Ring<kTile>& ring,
                                             uint32_t base, uint32_t rank, int warp, int lane) {
  using Math = SwappedMath<kTile>;
  // NOTE: through a shuffle of its own: derived from the warp index the compiler loses sight of it
  // being uniform, and with it of the K loop (gemm_kernel.cuh).
  const int group = __shfl_sync(~0u, threadIdx.x >> 7, 0), k_group = group / kTile.row_groups(),
            row_group = group % kTile.row_groups();
  Math math(ring, row_group, lane);
  const uint32_t staging = base + p.exchange + warp * abi::kStagingBytes;
  const abi::BlockRange range = my_range<kTile>(p, rank, k_group);
  Exchange<kTile> exchange(p, base, rank);
  const bool exchanges = kTile.k_groups > 1 || p.cluster_split > 1;
  const int row = row_group * 64 + (warp & 3) * 16;  // of the warp, in the tile
  constexpr int kUnits = Math::kAcc / 4;

#pragma unroll 1
  for (TileWalk<kTile> tiles(p, base, rank, lane); tiles.more(); tiles.step()) {
    const Tile<kTile> at = tiles.here();
    const bool last = tiles.last();
    float acc[Math::kAcc];
#pragma unroll
    for (int i = 0; i < Math::kAcc; ++i) acc[i] = 0.0f;
    const uint32_t sfb_slot = ((at.n0 + row_group * 64) >> 7) - (at.n0 >> 7);
    math.k_loop(acc, range.last - range.first, sfb_slot);
    if (exchanges) {
      exchange.template reduce<kUnits>(acc, k_group, warp, lane, at, last,
                                       [&](int i) { return row / 16 * kUnits + i; });
    } else {
      write_units<kTile, kUnits>(Writer<kTile>(p, at, lane), acc, staging, lane,
                                 [&](int i, int& unit_row, int& unit_col) {
                                   unit_row = at.n0 + row;
                                   unit_col = at.m0 + 8 * i;
                                 });
    }
  }
}

}  // namespace oct::device
