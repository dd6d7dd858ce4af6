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
//   exchange         epilogue.cuh, only with K split over the cluster
//   named 0          all warps, before they part: barriers are initialised
//
// TIMELINE of a K-block in a math warpgroup, kSets = 1 (two warpgroups take turns by themselves:
// while one promotes, the other's WGMMA runs)
//   wait full | 4 WGMMA, commit | load scales | wait WGMMA | release the stage | promote
// kSets = 2
//   wait full i+1 | 4 WGMMA of i+1 | load scales of i | test full i+2 | wait WGMMA i | release |
//   promote i
#pragma once

#include "device/epilogue.cuh"
#include "device/promote.cuh"
#include "device/ptx/wgmma.cuh"

namespace oct::device {

// What a math warp knows of its place in the tile.
struct MathWarp {
  int row_group, col_group, quarter, lane;  // quarter: 16 rows of a 64-row piece
};

template <TileConfig kTile>
struct NormalMath {
  static constexpr int kWidth = kTile.piece_cols(), kRowPieces = kTile.row_pieces(),
                       kColPieces = kTile.col_pieces(), kPieces = kTile.pieces();
  static constexpr int kAcc = kWidth / 2;

  const Ring<kTile>& ring;
  const MathWarp warp;
  const uint64_t rows, cols;  // descriptors of the warpgroup's first pieces in stage 0
  const uint32_t sfa, sfb;    // addresses of the lane's first SFA and of the first SFB there
  MathPlace<kTile> place;

  __device__ __forceinline__ NormalMath(const Ring<kTile>& its_ring, MathWarp its_place)
      : ring(its_ring),
        warp(its_place),
        rows(ptx::descriptor(ring.row_tile(0, 0) + first_row() * abi::kBlockK)),
        cols(ptx::descriptor(ring.col_tile(0, 0) +
                             warp.col_group * kColPieces * kWidth * abi::kBlockK)),
        sfa(ring.sfa(0, 0) + (first_row() + warp.quarter * 16 + (warp.lane >> 2)) * 4),
        sfb(ring.sfb(0, 0)) {}

  // Rows of the tile before this warpgroup's first piece, and from one of its pieces to the next.
  static constexpr bool kAlternate = kTile.ragged() && kRowPieces == 2;
  static constexpr int kRowStep = kAlternate ? kTile.row_groups() * 64 : 64;
  __device__ __forceinline__ int first_row() const {
    return warp.row_group * (kAlternate ? 1 : kRowPieces) * 64;
  }

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

  // Pieces of this warpgroup's that are live.
  __device__ __forceinline__ int live_pieces(const Tile<kTile>& at) const {
    if constexpr (!kTile.ragged()) return kPieces;
    const int live = live_row_pieces<kTile>(at);
    return kRowPieces == 1 ? live : (live + 1 - warp.row_group) >> 1;
  }

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

  // Where piece i of this warpgroup lies in the tile. One that is not live lies behind all rows,
  // where nothing is stored.
  __device__ __forceinline__ int piece_row(const Tile<kTile>& at, int i) const {
    if constexpr (kTile.ragged()) {
      if (live_pieces(at) < kPieces) {
        return i + 1 < kPieces ? kTile.tile_m : kRowPieces == 1 ? 0 : warp.row_group * 64;
      }
      return first_row() + i / kColPieces * kRowStep;
    }
    return (warp.row_group * kRowPieces + i / kColPieces) * 64;
  }
  __device__ __forceinline__ int piece_col(const Tile<kTile>& at, int i) const {
    if (kTile.ragged() && kRowPieces == 1 && live_pieces(at) < kPieces) {
      return warp.row_group * kWidth;
    }
    return (warp.col_group * kColPieces + i % kColPieces) * kWidth;
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

  // ---- D
  // ------------------------------------------------------------------------------------------

  // Boxes of 16 rows, staged as the copy engine reads them, each warp by itself. Box i of a piece
  // holds its columns from i * kBoxCols on.
  static constexpr int kBoxCols = abi::d_box_columns(kTile), kBoxBytes = abi::d_box_bytes(kTile),
                       kBoxes = kWidth / kBoxCols,  // of a piece
      kRoom = abi::staging_boxes(kTile) * abi::staging_bytes(kTile) / kBoxBytes;
  static_assert(kBoxBytes % 128 == 0 && kRoom >= 1,
                "the copy engine reads boxes from 128 bytes on");

  template <bool kF16>
  __device__ __forceinline__ void write_box(const float* acc, uint32_t to) const {
    const auto pack = [](float x, float y) {
      return kF16 ? ptx::pack_f16(x, y) : ptx::pack_bf16(x, y);
    };
    const int row = warp.lane & 15, half = warp.lane >> 4;
    // 16-byte chunk index ^ row, over as many bits as a row has chunks.
    const uint32_t twist = kBoxCols == 64 ? row & 7 : kBoxCols == 32 ? (row >> 1) & 3 : 0;
#pragma unroll
    for (int j = 0; j + 1 < kBoxCols / 8; j += 2) {
      const float* x = acc + 4 * j;
      const uint32_t address = to + row * kBoxCols * 2 + (((j + half) ^ twist) << 4);
      ptx::store_matrices(address, pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]),
                          pack(x[6], x[7]));
    }
    if constexpr (kBoxCols / 8 % 2 == 1) {
      const float* x = acc + kBoxCols / 2 - 4;
      ptx::store_matrices(to + row * kBoxCols * 2 + kBoxCols * 2 - 16, pack(x[0], x[1]),
                          pack(x[2], x[3]));
    }
  }

  // Grouped, where the box's 16 rows are not all one group's: row by row, 16 bytes a lane, from the
  // box as it is staged. The copy engine would write the rows of other groups too.
  __device__ __forceinline__ void store_rows(const KernelParams& p, const GroupedTileAt& at,
                                             int row, int col, uint32_t from) const {
    constexpr int kChunks = kBoxCols / 8;  // of 16 bytes in a row
                                           // NOTE: not unrolled: unrolled, 128x256 spills.
#pragma unroll 1
    for (int i = 0; i < kChunks / 2; ++i) {
      const int r = (32 * i + warp.lane) / kChunks, chunk = warp.lane % kChunks;
      const RowState state = row_state(p, at, row + r);
      if (state == RowState::kSkip || col + 8 * chunk >= p.n) continue;
      const uint32_t twist = kBoxCols == 64 ? r & 7 : (r >> 1) & 3;
      uint4 v = ptx::load_shared_u4(from + r * kBoxCols * 2 + ((chunk ^ twist) << 4));
      if (state == RowState::kZero) v = make_uint4(0, 0, 0, 0);
      uint16_t* d = static_cast<uint16_t*>(p.out.data) + at.batch * p.out.batch_stride +
                    (row + r) * p.out.ld + col + 8 * chunk;
      *reinterpret_cast<uint4*>(d) = v;
    }
  }

  // A piece, as many boxes at a time as the staging holds: every group of them costs a fence.
  template <bool kF16, int kPiece>
  __device__ __forceinline__ void store_piece(const float (&acc)[kAcc], const KernelParams& p,
                                              const Tile<kTile>& at, uint32_t staging) const {
    const int row = piece_row(at, kPiece) + warp.quarter * 16, col = piece_col(at, kPiece);
    bool whole = true;  // all 16 rows of the warp's boxes are stored
    if constexpr (kTile.grouped) {
      if (row >= at.listed()) return;
      whole = row + 16 <= at.owned();
    }
#pragma unroll
    for (int group = 0; group < kBoxes; group += kRoom) {
      // NOTE: without this wait boxes that the copy engine still reads are overwritten.
      if (warp.lane == 0) ptx::wait_stores_read<0>();
      __syncwarp();
#pragma unroll
      for (int b = group; b < group + kRoom && b < kBoxes; ++b)
        write_box<kF16>(acc + b * (kBoxCols / 2), staging + (b - group) * kBoxBytes);
      ptx::fence_async_proxy();
      __syncwarp();
      if constexpr (kTile.grouped) {
        if (!whole) {
#pragma unroll 1
          for (int b = group; b < group + kRoom && b < kBoxes; ++b) {
            store_rows(p, at, at.m0 + row, at.n0 + col + b * kBoxCols,
                       staging + (b - group) * kBoxBytes);
          }
          continue;
        }
      }
      if (warp.lane == 0) {
#pragma unroll
        for (int b = group; b < group + kRoom && b < kBoxes; ++b) {
          ptx::store_box(p.d, at.n0 + col + b * kBoxCols, at.m0 + row,
                         kTile.grouped ? at.batch & -p.a_batch : at.batch,
                         staging + (b - group) * kBoxBytes);
        }
        ptx::commit_stores();
      }
    }
  }
  template <int kPiece>
  __device__ __forceinline__ void store_piece(const float (&acc)[kPieces][kAcc],
                                              const KernelParams& p, const Tile<kTile>& at,
                                              uint32_t staging) const {
    if (p.d_type == ElementType::kF16) {
      store_piece<true, kPiece>(acc[kPiece], p, at, staging);
    } else {
      store_piece<false, kPiece>(acc[kPiece], p, at, staging);
    }
  }

  // Corner of unit i of this warp's accumulators, on the tile.
  __device__ __forceinline__ int unit_row(const Tile<kTile>& at, int i) const {
    return piece_row(at, i / (kWidth / 8)) + warp.quarter * 16;
  }
  __device__ __forceinline__ int unit_col(const Tile<kTile>& at, int i) const {
    return piece_col(at, i / (kWidth / 8)) + i % (kWidth / 8) * 8;
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
