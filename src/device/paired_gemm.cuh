// D = A B^T, e4m3 with 1D1D scales: every row of A and every row of B has its own scale for each
// K-block, as in weight gradients. Dense, batched and K-grouped. Roles, ring and barriers are those
// of normal_gemm.cuh; what differs is here: the promotion, and how D and C pass.
//
// TIMELINE of a piece of a K-block in a math warpgroup (warpgroups take turns by themselves)
//   4 WGMMA, commit | load SFA | wait WGMMA | for every 8 columns: load SFB, 4 products of scales, 4
//   FMA | after the last piece: release the stage
#pragma once

#include "device/normal_gemm.cuh"

namespace oct::device {

// acc = fma(sfa * sfb, P, acc) with a product of its own for every element. `sfb`: address of the
// lane's first two.
template <int kWidth>
__device__ __forceinline__ void promote_paired(float* acc, const float* product, float upper,
                                               float lower, uint32_t sfb) {
#pragma unroll
  for (int j = 0; j < kWidth / 8; ++j) {
    const float2 s = ptx::load_shared2(sfb + 32 * j);
    acc[4 * j] = __fmaf_rn(__fmul_rn(upper, s.x), product[4 * j], acc[4 * j]);
    acc[4 * j + 1] = __fmaf_rn(__fmul_rn(upper, s.y), product[4 * j + 1], acc[4 * j + 1]);
    acc[4 * j + 2] = __fmaf_rn(__fmul_rn(lower, s.x), product[4 * j + 2], acc[4 * j + 2]);
    acc[4 * j + 3] = __fmaf_rn(__fmul_rn(lower, s.y), product[4 * j + 3], acc[4 * j + 3]);
  }
}

template <TileConfig kTile>
struct PairedMath : NormalMath<kTile> {
  using Base = NormalMath<kTile>;
  using Base::kAcc, Base::kPieces, Base::kWidth, Base::kRowPieces, Base::kColPieces;
  using Base::place, Base::ring, Base::sfa, Base::warp;

  __device__ __forceinline__ PairedMath(const Ring<kTile>& its_ring, MathWarp its_place)
      : Base(its_ring, its_place),
        pairs(its_ring.sfb(0, 0) +
              (warp.col_group * kColPieces * kWidth + 2 * (warp.lane & 3)) * 4) {}

  // `count` K-blocks into acc.
  __device__ __forceinline__ void k_loop(float (&acc)[kPieces][kAcc], int count) {
    if (count == 0) return;
    float product[kAcc];
    this->wait_full();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const uint32_t stage = place.stage, tiles = place.tiles, scales = place.scales;
      place.advance(ring.stages);
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        const int r = piece / kColPieces, c = piece % kColPieces;
        ptx::multiply_block<kWidth>(product, this->row_piece(tiles, r), this->col_piece(tiles, c));
        // NOTE: without this the compiler puts loads of scales, and waits for them, between the
        // WGMMA of the chain.
        __syncwarp();
        const float upper = ptx::load_shared(sfa + scales + r * 256);
        const float lower = ptx::load_shared(sfa + scales + r * 256 + 32);
        if (piece == kPieces - 1 && i + 1 < count) this->wait_full();
        ptx::wgmma_wait<0>();
        ptx::hold(product);
        promote_paired<kWidth>(acc[piece], product, upper, lower,
                               pairs + scales + c * kWidth * 4);
      }
      // NOTE: one lane releases the stage for all of them.
      __syncwarp();
      this->release(stage);
    }
  }

  // A piece of a tile that lies wholly in D straight from its registers, two neighbours at a time,
  // with C where there is one. As much of C is asked for at a time as registers are free for.
  template <typename Pair, int kPiece>
  __device__ __forceinline__ void store_pairs(const float (&acc)[kAcc], const KernelParams& p,
                                              const TileAt& at) const {
    constexpr int kUnits = kWidth / 8, kAtOnce = kUnits < 8 ? kUnits : 8;
    const int row = at.m0 + this->unit_row(kPiece * kUnits) + (warp.lane >> 2),
              col = at.n0 + this->unit_col(kPiece * kUnits) + 2 * (warp.lane & 3);
    auto* const upper = static_cast<typename Pair::Element*>(p.out.data) +
                        at.batch * p.out.batch_stride + row * p.out.ld + col;
    auto* const lower = upper + 8 * p.out.ld;
    if (p.add.data == nullptr) {
#pragma unroll
      for (int j = 0; j < kUnits; ++j) {
        Pair::store(upper + 8 * j, acc[4 * j], acc[4 * j + 1]);
        Pair::store(lower + 8 * j, acc[4 * j + 2], acc[4 * j + 3]);
      }
      return;
    }
    const auto* const c_upper = static_cast<const typename Pair::Element*>(p.add.data) +
                                at.batch * p.add.batch_stride + row * p.add.ld + col;
    const auto* const c_lower = c_upper + 8 * p.add.ld;
#pragma unroll
    for (int first = 0; first < kUnits; first += kAtOnce) {
      typename Pair::Word add[2 * kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        add[2 * j] = Pair::load(c_upper + 8 * (first + j));
        add[2 * j + 1] = Pair::load(c_lower + 8 * (first + j));
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const float2 x = Pair::floats(add[2 * j]), y = Pair::floats(add[2 * j + 1]);
        const float* const unit = acc + 4 * (first + j);
        Pair::store(upper + 8 * (first + j), __fadd_rn(unit[0], x.x), __fadd_rn(unit[1], x.y));
        Pair::store(lower + 8 * (first + j), __fadd_rn(unit[2], y.x), __fadd_rn(unit[3], y.y));
      }
    }
  }

  const uint32_t pairs;  // address of the lane's first SFB in stage 0
};

template <TileConfig kTile>
__device__ __forceinline__ void paired_math(const KernelParams& p, const Ring<kTile>& ring,
                                            uint32_t base, uint32_t rank, int warp, int lane) {
  using Math = PairedMath<kTile>;
  const int group = warp >> 2;
  Math math(ring, {group % kTile.row_groups(), group / kTile.row_groups(), warp & 3, lane});
  constexpr int kStaging = abi::staging_boxes(kTile) * abi::staging_bytes(kTile);  // of a warp
  const uint32_t staging = base + p.exchange + warp * kStaging;
  const abi::BlockRange range = my_range<kTile>(p, rank, 0);
  Exchange<kTile> exchange(p, base, rank);
  const bool exchanges = kTile.splits_over_cluster() && p.cluster_split > 1;
  constexpr int kUnits = Math::kPieces * Math::kAcc / 4;

  float acc[Math::kPieces][Math::kAcc];
  TileWalk<kTile> tiles(p, base, rank, lane);
  Tile<kTile> next = tiles.here();
#pragma unroll 1
  for (; tiles.more(); tiles.step_to(next)) {
    const Tile<kTile> at = next;
    next = tiles.ahead();
    const bool last = tiles.last();
    abi::BlockRange k = range;
    if constexpr (kTile.k_grouped) k = at.k;
    if constexpr (kTile.sequential) {
      // Ranges one after the other; empty ones do not take part in the sum.
      float sum[Math::kAcc];
      bool first = true;
      const uint32_t blocks = static_cast<uint32_t>(k.last - k.first);
      uint32_t done = 0;
#pragma unroll 1
      for (int i = 1; i <= p.split; ++i) {
        // Less than 2^24 K-blocks times 64.
        const uint32_t end = p.cut.split.divide(blocks * static_cast<uint32_t>(i));
        if (end == done) continue;
        math.clear(acc[0]);
        math.k_loop(acc, static_cast<int>(end - done));
        done = end;
#pragma unroll
        for (int j = 0; j < Math::kAcc; ++j)
          sum[j] = first ? acc[0][j] : __fadd_rn(sum[j], acc[0][j]);
        first = false;
      }
#pragma unroll
      for (int j = 0; j < Math::kAcc; ++j) acc[0][j] = first ? 0.0f : sum[j];
    } else {
#pragma unroll
      for (int i = 0; i < Math::kPieces; ++i) math.clear(acc[i]);
      math.k_loop(acc, k.last - k.first);
    }

    if (exchanges) {
      if constexpr (kTile.splits_over_cluster()) {
        exchange.template reduce<kUnits>(&acc[0][0], 0, warp, lane, at, last, [&](int i) {
          return math.unit_row(i) / 16 * Exchange<kTile>::kColUnits + math.unit_col(i) / 8;
        });
      }
    } else if (p.store == StorePath::kPairs && p.m - at.m0 >= kTile.tile_m &&
               p.n - at.n0 >= kTile.tile_n) {
      const auto store = [&]<typename Pair>() {
        math.template store_pairs<Pair, 0>(acc[0], p, at);
        if constexpr (Math::kPieces == 2) math.template store_pairs<Pair, 1>(acc[1], p, at);
      };
      if (p.d_type == ElementType::kF32) {
        store.template operator()<FloatPair>();
      } else if (p.d_type == ElementType::kBf16) {
        store.template operator()<HalfPair<false>>();
      } else {
        store.template operator()<HalfPair<true>>();
      }
    } else {
      write_units<kTile, kUnits>(Writer<kTile>(p, at, lane), &acc[0][0], staging, lane,
                                 [&](int i, int& row, int& col) {
                                   row = at.m0 + math.unit_row(i);
                                   col = at.n0 + math.unit_col(i);
                                 });
    }
  }
}

}  // namespace oct::device
