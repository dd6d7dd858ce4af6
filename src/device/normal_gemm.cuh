// D = A B^T, e4m3 with 1D2D scales, rows of A on WGMMA's 64-row side: tiles of 64..256 x 32..256,
// for M of 64 and more. Dense and batched, any M, N, K; docs/kernel-anatomy.md walks through it.
//
// ROLES (warps, in order)
//   4 g .. 4 g + 3   math warpgroup g: WGMMA, promotion, D. Warpgroups lie side by side over the
//                    rows of the tile (64-row tiles: over its columns)
//   then three       producers: of B; of A, with SFA by the copy engine; of SFB and other SFA
//   then one idle    in kernels with large accumulators: the producers' warpgroup gives its
//                    registers away, and registers move by warpgroups
//
// BARRIERS
//   stages           pipeline.cuh
//   exchange         exchange.cuh, only with K split over the cluster
//   named 0          all warps, before they part: barriers are initialised
//
// TIMELINE of a K-block in a math warpgroup, kSets = 1 (two warpgroups take turns by themselves:
// while one promotes, the other's WGMMA runs)
//   wait full | 4 WGMMA, commit | load scales | wait WGMMA | release the stage | promote
// kSets = 2
//   wait full i+1 | 4 WGMMA of i+1 | load scales of i | test full i+2 | wait WGMMA i | release |
//   promote i
#pragma once

#include "device/exchange.cuh"
#include "device/normal_pieces.cuh"
#include "device/promote.cuh"
#include "device/ptx/wgmma.cuh"

namespace oct::device {

template <TileConfig kTile>
struct NormalMath : NormalPieces<kTile> {
  using Base = NormalPieces<kTile>;
  using Base::kWidth, Base::kRowPieces, Base::kColPieces, Base::kPieces, Base::kAcc, Base::kRowStep,
      Base::warp, Base::first_row;

  const Ring<kTile>& ring;
  const uint64_t rows, cols;  // descriptors of the warpgroup's first pieces in stage 0
  const uint32_t sfa, sfb;    // addresses of the lane's first SFA and of the first SFB there
  MathPlace<kTile> place;

  __device__ __forceinline__ NormalMath(const Ring<kTile>& its_ring, MathWarp its_place)
      : Base{its_place},
        ring(its_ring),
        rows(ptx::descriptor(ring.row_tile(0, 0) + first_row() * abi::kBlockK)),
        cols(ptx::descriptor(ring.col_tile(0, 0) +
                             warp.col_group * kColPieces * kWidth * abi::kBlockK)),
        sfa(ring.sfa(0, 0) + (first_row() + warp.quarter * 16 + (warp.lane >> 2)) * 4),
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
    const uint32_t bar = ring.empty + 8 * stage;
    if constexpr (kTile.multicast() == 1) {
      if (warp.lane == 0) ptx::mbarrier_arrive(bar);
    } else {
      if (warp.lane < kTile.multicast())
        ptx::mbarrier_arrive_remote(ptx::map_to_rank(bar, warp.lane));
    }
  }

  // Pieces of the stage at `tiles`.
  __device__ __forceinline__ uint64_t row_piece(uint32_t tiles, int r) const {
    return rows + (tiles + r * ptx::descriptor_step(kRowStep * abi::kBlockK));
  }
  __device__ __forceinline__ uint64_t col_piece(uint32_t tiles, int c) const {
    return cols + (tiles + c * ptx::descriptor_step(kWidth * abi::kBlockK));
  }

  struct PieceScales {
    float upper, lower, sfb[3];
  };
  template <int kBlocks>
  __device__ __forceinline__ PieceScales load_scales(uint32_t scales, int row,
                                                     uint32_t sfb_slot) const {
    PieceScales s;
    s.upper = ptx::load_shared(sfa + scales + row * 4);
    s.lower = ptx::load_shared(sfa + scales + row * 4 + 32);
#pragma unroll
    for (int i = 0; i < kBlocks; ++i)
      s.sfb[i] = ptx::load_shared(sfb + scales + (sfb_slot + i) * 4);
    // NOTE: one lane releases the stage for all of them; here the meeting hides under the WGMMA.
    __syncwarp();
    return s;
  }

  static __device__ __forceinline__ void clear(float (&x)[kAcc]) {
#pragma unroll
    for (int i = 0; i < kAcc; ++i) x[i] = 0.0f;
  }

  // `count` K-blocks into acc. kOffset: where the pieces start modulo 128 columns. sfb_slot: of
  // piece c. With two pieces, early() runs under the tile's first WGMMA, when acc[1] may still hold
  // the last tile, and late() under its last one, when acc[0] is complete.
  template <int kOffset, typename Early, typename Late>
  __device__ __forceinline__ void k_loop(float (&acc)[kPieces][kAcc], int count,
                                         const uint32_t (&sfb_slot)[kColPieces], Early early,
                                         Late late) {
    constexpr int kBlocks = kSfbBlocks<kOffset, kWidth>;
    if (count == 0) return;
    if constexpr (kTile.sets == 1) {
      float product[kAcc];
      const auto block = [&]<bool kFirst>(bool is_last) {
        const uint32_t stage = place.stage, tiles = place.tiles, scales = place.scales;
        place.advance(ring.stages);
#pragma unroll
        for (int i = 0; i < kPieces; ++i) {
          const int r = i / kColPieces, c = i % kColPieces;
          ptx::multiply_block<kWidth>(product, row_piece(tiles, r), col_piece(tiles, c));
          const PieceScales s = load_scales<kBlocks>(scales, r * kRowStep, sfb_slot[c]);
          if (kPieces == 2 && kFirst && i == 0) early();
          if (kPieces == 2 && is_last && i == 1) late();
          if (i == kPieces - 1 && !is_last) wait_full();
          ptx::wgmma_wait<0>();
          ptx::hold(product);
          if (i == kPieces - 1) release(stage);
          if (kFirst) clear(acc[i]);
          promote_normal<kOffset, kWidth>(acc[i], product, s.upper, s.lower, s.sfb);
        }
      };
      wait_full();
      int i = 0;
      if constexpr (kPieces == 2) block.template operator()<true>(count == ++i);
#pragma unroll 1
      for (; i < count; ++i) block.template operator()<false>(i + 1 == count);
    } else {
      float even[kAcc], odd[kAcc];
      MathPlace<kTile> retiring = place;
      bool ready = false;  // the stage at `place` is known to be full
      const auto issue = [&](float(&product)[kAcc]) {
        if (!ready) wait_full();
        ptx::multiply_block<kWidth>(product, row_piece(place.tiles, 0), col_piece(place.tiles, 0));
        place.advance(ring.stages);
      };
      const auto retire = [&]<int kPending>(float(&product)[kAcc]) {
        const PieceScales s = load_scales<kBlocks>(retiring.scales, 0, sfb_slot[0]);
        if (kPending > 0) ready = test_full();
        ptx::wgmma_wait<kPending>();
        ptx::hold(product);
        release(retiring.stage);
        retiring.advance(ring.stages);
        promote_normal<kOffset, kWidth>(acc[0], product, s.upper, s.lower, s.sfb);
      };
      issue(even);
      int left = count - 1;
#pragma unroll 1
      for (; left >= 2; left -= 2) {
        issue(odd);
        retire.template operator()<1>(even);
        issue(even);
        retire.template operator()<1>(odd);
      }
      if (left == 1) {
        issue(odd);
        retire.template operator()<1>(even);
        retire.template operator()<0>(odd);
      } else {
        retire.template operator()<0>(even);
      }
    }
  }

  // ---- Ragged tiles (TileConfig::ragged()) that have rows for fewer pieces than they hold.

  // The one live piece of this warpgroup into acc; early() as in k_loop().
  template <typename Early>
  __device__ __forceinline__ void one_piece(float (&acc)[kAcc], int count, Early early) {
    // Side by side: of the first 64 rows, and of as many columns as a piece has.
    const int row = kRowPieces == 1 ? -first_row() : 0,
              col = kRowPieces == 1 ? warp.row_group * kWidth : 0;
    const uint64_t its_rows = rows + static_cast<int64_t>(row) * (abi::kBlockK / 16),
                   its_cols = cols + ptx::descriptor_step(col * abi::kBlockK);
    float product[kAcc];
    const auto block = [&]<bool kFirst>(bool is_last) {
      const uint32_t stage = place.stage, tiles = place.tiles, scales = place.scales;
      place.advance(ring.stages);
      ptx::multiply_block<kWidth>(product, its_rows + tiles, its_cols + tiles);
      const PieceScales s = load_scales<1>(scales, row, col / 128);
      if (kFirst) early();
      if (!is_last) wait_full();
      ptx::wgmma_wait<0>();
      ptx::hold(product);
      release(stage);
      if (kFirst) clear(acc);
      promote_normal<0, kWidth>(acc, product, s.upper, s.lower, s.sfb);
    };
    wait_full();
    int i = 0;
    block.template operator()<true>(count == ++i);
#pragma unroll 1
    for (; i < count; ++i) block.template operator()<false>(i + 1 == count);
  }

  // Fewer than all pieces of this warpgroup: one, into acc[1], or none.
  template <typename Early>
  __device__ __forceinline__ void multiply_ragged(float (&acc)[kPieces][kAcc], int count, int live,
                                                  Early early) {
    static_assert(kTile.sets == 1 && 128 % kWidth == 0 && kTile.tile_n % 128 == 0);
    if (count == 0) return;
    if (live == 1) return one_piece(acc[1], count, early);
    early();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      wait_full();
      release(place.stage);
      place.advance(ring.stages);
    }
  }

  // One K loop for every offset that pieces of this width can start at.
  template <int kCase = 0, typename Early, typename Late>
  __device__ __forceinline__ void multiply(float (&acc)[kPieces][kAcc], int count, int n0,
                                           Early early, Late late) {
    const int col0 = n0 + warp.col_group * kColPieces * kWidth;
    // Widths that divide 128 never straddle two blocks, whatever their offset.
    constexpr bool kNeverStraddles = 128 % kWidth == 0;
    if constexpr (!kNeverStraddles && kCase + 1 < kOffsetCases<kWidth>) {
      static_assert(kColPieces == 1, "pieces of one warpgroup must start at the same offset");
      if ((col0 & 127) != kCase * kOffsetStep<kWidth>) {
        multiply<kCase + 1>(acc, count, n0, early, late);
        return;
      }
    }
    uint32_t slot[kColPieces];
#pragma unroll
    for (int c = 0; c < kColPieces; ++c) {
      slot[c] = kTile.tile_n % 128 == 0 ? (warp.col_group * kColPieces + c) * kWidth / 128
                                        : ((col0 + c * kWidth) >> 7) - (n0 >> 7);
    }
    k_loop<kNeverStraddles ? 0 : kCase * kOffsetStep<kWidth>>(acc, count, slot, early, late);
  }
};

template <TileConfig kTile>
__device__ __forceinline__ void normal_math(const KernelParams& p, const Ring<kTile>& ring,
                                            uint32_t base, uint32_t rank, int warp, int lane) {
  using Math = NormalMath<kTile>;
  const int group = warp >> 2;
  Math math(ring, {group % kTile.row_groups(), group / kTile.row_groups(), warp & 3, lane});
  constexpr int kStaging = abi::staging_boxes(kTile) * abi::staging_bytes(kTile);  // of a warp
  const uint32_t staging = base + p.exchange + warp * kStaging;
  const abi::BlockRange range = my_range<kTile>(p, rank, 0);
  Exchange<kTile> exchange(p, base, rank);
  const bool exchanges = kTile.splits_over_cluster() && p.cluster_split > 1;
  constexpr int kUnits = Math::kPieces * Math::kAcc / 4;

  // NOTE: in a register; the compiler would read constant memory in the K loop.
  uint32_t boxes = p.store == StorePath::kCopyEngine;
  asm volatile("" : "+r"(boxes));
  const auto no_hook = [] {};
  float acc[Math::kPieces][Math::kAcc];
  TileWalk<kTile> tiles(p, base, rank, lane);
  Tile<kTile> at{}, next = tiles.here();
#pragma unroll 1
  for (; tiles.more(); tiles.step_to(next)) {
    [[maybe_unused]] const Tile<kTile> earlier = at;
    at = next;
    if (Math::kPieces == 1 || range.last == 0) next = tiles.ahead();
    const bool last = tiles.last();
    if constexpr (Math::kPieces == 2) {
      if (range.last == 0) {
#pragma unroll
        for (int i = 0; i < Math::kPieces; ++i) math.clear(acc[i]);
      }
      const auto early = [&] {
        // The second piece of the last tile leaves under the first WGMMA of this one. Where the
        // next one lies is found out here too: at a tile's start nothing would hide it.
        if (boxes && tiles.has_before(earlier)) {
          math.template store_piece<1>(acc, p, earlier, staging);
        }
        next = tiles.ahead();
        asm volatile("" : "+r"(next.m0), "+r"(next.n0), "+r"(next.batch));
      };
      const auto late = [&] {
        if (boxes) math.template store_piece<0>(acc, p, at, staging);
      };
      const int count = range.last - range.first;
      if constexpr (kTile.ragged()) {
        const int live = math.live_pieces(at);
        if (live == Math::kPieces) {
          math.multiply(acc, count, at.n0, early, late);
        } else {
          math.multiply_ragged(acc, count, live, early);
        }
      } else {
        math.multiply(acc, count, at.n0, early, late);
      }
      if (boxes) {
        // NOTE: known to be the loop's last pass, the compiler moves this behind the loop, and
        // ptxas then drops setmaxnreg silently and spills.
        uint32_t flush = kTile.grouped ? tiles.last(next) : last;
        asm volatile("" : "+r"(flush));
        if (flush) math.template store_piece<1>(acc, p, at, staging);
        continue;
      }
    } else if constexpr (kTile.sequential) {
      // Ranges one after the other; empty ones do not take part in the sum.
      float sum[Math::kAcc];
      bool first = true;
#pragma unroll 1
      for (int i = 0; i < p.split; ++i) {
        const abi::BlockRange part = p.cut.range(i);
        if (part.first == part.last) continue;
        math.clear(acc[0]);
        math.multiply(acc, part.last - part.first, at.n0, no_hook, no_hook);
#pragma unroll
        for (int j = 0; j < Math::kAcc; ++j)
          sum[j] = first ? acc[0][j] : __fadd_rn(sum[j], acc[0][j]);
        first = false;
      }
#pragma unroll
      for (int j = 0; j < Math::kAcc; ++j) acc[0][j] = first ? 0.0f : sum[j];
    } else {
      math.clear(acc[0]);
      math.multiply(acc, range.last - range.first, at.n0, no_hook, no_hook);
    }

    if (exchanges) {
      if constexpr (kTile.splits_over_cluster()) {
        exchange.template reduce<kUnits>(&acc[0][0], 0, warp, lane, at, last, [&](int i) {
          return math.unit_row(at, i) / 16 * Exchange<kTile>::kColUnits + math.unit_col(at, i) / 8;
        });
      }
    } else if (Math::kPieces == 1 && boxes) {
      math.template store_piece<0>(acc, p, at, staging);
    } else {
      // NOTE: the warp's staging is shared with store_piece(), but a launch takes one path only.
      write_units<kTile, kUnits>(Writer<kTile>(p, at, lane), &acc[0][0], staging, lane,
                                 [&](int i, int& row, int& col) {
                                   row = at.m0 + math.unit_row(at, i);
                                   col = at.n0 + math.unit_col(at, i);
                                 });
    }
  }
}

}  // namespace oct::device
