// D = A B^T, e4m3 with 1D1D scales: every row of A and every row of B has its own scale for each
// K-block, as in weight gradients. Dense, batched and K-grouped. Roles, ring and barriers are those
// of normal_gemm.cuh; what differs is here: the promotion, and how D and C pass.
//
// TIMELINE of a piece of a K-block in a math warpgroup (warpgroups take turns by themselves)
//   4 WGMMA, commit | load SFA | wait WGMMA | for every 8 columns: load SFB, 4 products of scales,
//   4 FMA | after the last piece: release the stage
#pragma once

#include "device/normal_gemm.cuh"

namespace oct::device {

// acc = fma(sfa * sfb, P, acc) with a product of its own for every element. `sfb`: address of the
// lane's first two; `held`: those of the first units, where they are in registers.
template <int kWidth, int kHeld>
__device__ __forceinline__ void promote_paired(float* acc, const float* product, float upper,
                                               float lower, uint32_t sfb, const float2* held) {
#pragma unroll
  for (int j = 0; j < kWidth / 8; ++j) {
    const float2 s = j < kHeld ? held[j] : ptx::load_shared2(sfb + 32 * j);
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

  // Units whose SFB both pieces of a K-block use, in registers: two pieces one below the other have
  // the same columns. More of them, and the compiler has no registers for the products.
  static constexpr int kHeld = kRowPieces == 2 && kColPieces == 1 ? 4 : 0;

  __device__ __forceinline__ PairedMath(const Ring<kTile>& its_ring, MathWarp its_place)
      : Base(its_ring, its_place),
        pairs(its_ring.sfb(0, 0) +
              (warp.col_group * kColPieces * kWidth + 2 * (warp.lane & 3)) * 4) {}

  // `count` K-blocks into acc; after(i) when i of them are done.
  template <typename After>
  __device__ __forceinline__ void k_loop(float (&acc)[kPieces][kAcc], int count, After after) {
    if (count == 0) return;
    float product[kAcc];
    this->wait_full();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const uint32_t stage = place.stage, tiles = place.tiles, scales = place.scales;
      place.advance(ring.stages);
      float2 held[kHeld > 0 ? kHeld : 1];
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        const int r = piece / kColPieces, c = piece % kColPieces;
        ptx::multiply_block<kWidth>(product, this->row_piece(tiles, r), this->col_piece(tiles, c));
        // NOTE: without this the compiler puts loads of scales, and waits for them, between the
        // WGMMA of the chain.
        __syncwarp();
        if (piece == 0) {
#pragma unroll
          for (int j = 0; j < kHeld; ++j) held[j] = ptx::load_shared2(pairs + scales + 32 * j);
        }
        const float upper = ptx::load_shared(sfa + scales + r * 256);
        const float lower = ptx::load_shared(sfa + scales + r * 256 + 32);
        if (piece == kPieces - 1 && i + 1 < count) this->wait_full();
        ptx::wgmma_wait<0>();
        ptx::hold(product);
        promote_paired<kWidth, kHeld>(acc[piece], product, upper, lower,
                                      pairs + scales + c * kWidth * 4, held);
      }
      // NOTE: one lane releases the stage for all of them.
      __syncwarp();
      this->release(stage);
      after(i + 1);
    }
  }

  // A piece by way of the warp's staging, 16 rows x 32 columns at a time, so that C is read and D
  // is written in whole lines: from the registers as they are, a load or a store of the warp
  // touches eight lines and takes as many turns. C is asked for kAhead such chunks before it is
  // added.
  enum class Add { kNone, kMemory, kRing };  // where C comes from
  template <typename Quad, int kPiece, Add kAdd>
  __device__ __forceinline__ void store_quads(const float (&acc)[kAcc], const KernelParams& p,
                                              const Tile<kTile>& at, uint32_t staging) {
    constexpr int kUnits = kWidth / 8, kChunks = kWidth / 32,
                  kMost = kTile.math_groups() == 3 ? 2 : 4,  // registers
        kAhead = kChunks < kMost ? kChunks : kMost;
    constexpr int kCCols = abi::c_columns(kTile) > 0 ? abi::c_columns(kTile) : 32;
    static_assert(kWidth % 32 == 0, "a piece is whole chunks");
    const int lane = warp.lane, quad = lane & 7;
    // Of the lane's first four elements, as they are read and written.
    const int row = at.m0 + this->unit_row(at, kPiece * kUnits) + (lane >> 3),
              col = at.n0 + this->unit_col(at, kPiece * kUnits) + 4 * quad;
    const int rows = p.m - row, cols = p.n - col;
    const auto there = [&](int chunk, int i) { return 4 * i < rows && 32 * chunk < cols; };
    typename Quad::Word add[kAhead][4];
    const auto* c = static_cast<const typename Quad::Element*>(p.add.data);
    const auto ask = [&](int chunk) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        add[chunk % kAhead][i] =
            there(chunk, i) ? Quad::load(c + 4 * i * p.add.ld + 32 * chunk) : typename Quad::Word{};
      }
    };
    if constexpr (kAdd == Add::kMemory) {
      c += at.batch * p.add.batch_stride + row * p.add.ld + col;
#pragma unroll
      for (int chunk = 0; chunk < kAhead; ++chunk) ask(chunk);
    }
    auto* const d = static_cast<typename Quad::Element*>(p.out.data) +
                    at.batch * p.out.batch_stride + row * p.out.ld + col;
    // 32 bytes of a row, of eight columns, lie at their place ^ row % 4: neither side meets a bank
    // twice.
    const uint32_t to = staging + (lane >> 2) * 128 + (lane & 3) * 8, twist = (lane >> 2) & 3;
    const uint32_t from =
        staging + (lane >> 3) * 128 + (quad & 1) * 16 + (((quad >> 1) ^ (lane >> 3)) << 5);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      [[maybe_unused]] uint32_t in_ring = 0;
      if constexpr (kAdd == Add::kRing) {
        if (chunk % (kCCols / 32) == 0) this->wait_full();
        in_ring = ring.row_tile(place.stage, 0) +
                  (warp.row_group * 64 + warp.quarter * 16 + (lane >> 3)) * kCCols * 4 +
                  chunk % (kCCols / 32) * 128 + quad * 16;
      }
      __syncwarp();
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        // The other way round, as in crossed().
        const float* const unit = acc + 4 * (4 * chunk + j);
        ptx::store_shared2(to + ((j ^ twist) << 5), make_float2(unit[1], unit[0]));
        ptx::store_shared2(to + ((j ^ twist) << 5) + 1024, make_float2(unit[3], unit[2]));
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float4 x = crossed(ptx::load_shared4(from + i * 512));
        if constexpr (kAdd != Add::kNone) {
          const float4 y = kAdd == Add::kRing ? ptx::load_shared4(in_ring + i * (kCCols * 16))
                                              : Quad::floats(add[chunk % kAhead][i]);
          x = make_float4(__fadd_rn(x.x, y.x), __fadd_rn(x.y, y.y), __fadd_rn(x.z, y.z),
                          __fadd_rn(x.w, y.w));
        }
        if (there(chunk, i)) Quad::store(d + 4 * i * p.out.ld + 32 * chunk, x);
      }
      if (kAdd == Add::kMemory && chunk + kAhead < kChunks) ask(chunk + kAhead);
      if (kAdd == Add::kRing && (chunk + 1) % (kCCols / 32) == 0) {
        __syncwarp();
        this->release(place.stage);
        place.advance(ring.stages);
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

  // K-blocks that the second warpgroup keeps behind.
  constexpr int kStagger = 2;
  const uint32_t stagger = base + p.barriers + abi::exchange_barriers(kTile, p.stages);
  int ahead = 0;  // K-blocks that the first warpgroup has to go until it says so
  if (kTile.staggered() && !exchanges && group == 0) ahead = kStagger;

  float acc[Math::kPieces][Math::kAcc];
  TileWalk<kTile> tiles(p, base, rank, lane);
  if (kTile.staggered() && !exchanges && group == 1 && tiles.more()) {
    ptx::mbarrier_wait(stagger, 0);
  }
#pragma unroll 1
  for (; tiles.more(); tiles.step()) {
    const Tile<kTile> at = tiles.here();
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
        math.k_loop(acc, static_cast<int>(end - done), [](int) {});
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
      if constexpr (kTile.staggered()) {
        math.k_loop(acc, k.last - k.first, [&](int) {
          if (--ahead == 0 && lane == 0) ptx::mbarrier_arrive(stagger);
        });
        // A first tile of fewer K-blocks.
        if (ahead > 0) {
          ahead = 0;
          if (lane == 0) ptx::mbarrier_arrive(stagger);
        }
      } else {
        math.k_loop(acc, k.last - k.first, [](int) {});
      }
    }

    if (exchanges) {
      if constexpr (kTile.splits_over_cluster()) {
        exchange.template reduce<kUnits>(&acc[0][0], 0, warp, lane, at, last, [&](int i) {
          return math.unit_row(at, i) / 16 * Exchange<kTile>::kColUnits + math.unit_col(at, i) / 8;
        });
      }
    } else if (p.store == StorePath::kQuads) {
      using Add = typename Math::Add;
      const auto pieces = [&]<typename Quad, Add kAdd>() {
        math.template store_quads<Quad, 0, kAdd>(acc[0], p, at, staging);
        if constexpr (Math::kPieces == 2)
          math.template store_quads<Quad, 1, kAdd>(acc[1], p, at, staging);
      };
      const auto store = [&]<typename Quad>() {
        if (p.add.data == nullptr) {
          pieces.template operator()<Quad, Add::kNone>();
        } else {
          pieces.template operator()<Quad, Add::kMemory>();
        }
      };
      if (p.d_type == ElementType::kF32) {
        if (abi::c_stages(kTile) > 0 && (p.flags & abi::kRingC)) {
          if constexpr (abi::c_stages(kTile) > 0) {
            pieces.template operator()<FloatQuad, Add::kRing>();
          }
        } else {
          store.template operator()<FloatQuad>();
        }
      } else if (p.d_type == ElementType::kBf16) {
        store.template operator()<HalfQuad<false>>();
      } else {
        store.template operator()<HalfQuad<true>>();
      }
    } else {
      write_units<kTile, kUnits>(Writer<kTile>(p, at, lane), &acc[0][0], staging, lane,
                                 [&](int i, int& row, int& col) {
                                   row = at.m0 + math.unit_row(at, i);
                                   col = at.n0 + math.unit_col(at, i);
                                 });
    }
  }
}

}  // namespace oct::device
