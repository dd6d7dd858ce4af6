// Where the pieces of a warpgroup lie in a tile of the normal family, and how they leave for D:
// boxes of 16 rows, staged by each warp as the copy engine reads them.
#pragma once

#include "device/writer.cuh"

namespace oct::device {

// What a math warp knows of its place in the tile.
struct MathWarp {
  int row_group, col_group, quarter, lane;  // quarter: 16 rows of a 64-row piece
};

template <TileConfig kTile>
struct NormalPieces {
  static constexpr int kWidth = kTile.piece_cols(), kRowPieces = kTile.row_pieces(),
                       kColPieces = kTile.col_pieces(), kPieces = kTile.pieces();
  static constexpr int kAcc = kWidth / 2;

  const MathWarp warp;

  // Rows of the tile before this warpgroup's first piece, and from one of its pieces to the next.
  static constexpr bool kAlternate = kTile.ragged() && kRowPieces == 2;
  static constexpr int kRowStep = kAlternate ? kTile.row_groups() * 64 : 64;
  __device__ __forceinline__ int first_row() const {
    return warp.row_group * (kAlternate ? 1 : kRowPieces) * 64;
  }

  // Pieces of this warpgroup's that are live.
  __device__ __forceinline__ int live_pieces(const Tile<kTile>& at) const {
    if constexpr (!kTile.ragged()) return kPieces;
    const int live = live_row_pieces<kTile>(at);
    return kRowPieces == 1 ? live : (live + 1 - warp.row_group) >> 1;
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

}  // namespace oct::device
