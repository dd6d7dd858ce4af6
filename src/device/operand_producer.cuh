// The producers that the copy engine serves: of B, and of A with SFA (and C, where it passes
// through the ring), and what all producers of a pipeline share. scale_producer.cuh has the third
// one.
#pragma once

#include "device/packed_map.cuh"
#include "device/pipeline.cuh"

namespace oct::device {

// What the producers of a pipeline share: where they are, and one K-block of an operand.
template <TileConfig kTile>
class Producer {
 public:
  __device__ __forceinline__ Producer(const KernelParams& params, const Ring<kTile>& its_ring,
                                      uint32_t base_address, uint32_t cta_rank, int group,
                                      int lane_id)
      : p(params),
        ring(its_ring),
        base(base_address),
        rank(cta_rank),
        range(my_range<kTile>(params, cta_rank, group)),
        lane(lane_id) {}

 protected:
  // Calls fill(stage, first K-block) for every stage that this CTA needs, aim(tile) before each
  // tile; fill_c(stage, i) for the stages of C behind them.
  template <typename Aim, typename Fill>
  __device__ __forceinline__ void walk(Aim aim, Fill fill) {
    walk(aim, fill, [](uint32_t, int) {});
  }
  template <typename Aim, typename Fill, typename FillC>
  __device__ __forceinline__ void walk(Aim aim, Fill fill, FillC fill_c) {
    Place place(1);  // the first walk of the ring finds it empty
    uint32_t untouched = ring.stages;
#pragma unroll 1
    for (TileWalk<kTile> tiles(p, base, rank, lane); tiles.more(); tiles.step()) {
      aim(tiles.here());
      const abi::BlockRange k = blocks_of(tiles.here());
#pragma unroll 1
      for (int kb = k.first; kb < k.last; kb += kTile.blocks) {
        // NOTE: all lanes poll: one that polls for the others and joins them again costs about 100
        // cycles a stage, on the critical path of decode (12 % at 16x7168x2048, 2026-11-30).
        if (untouched > 0) {
          --untouched;
        } else {
          ptx::mbarrier_wait(ring.empty + 8 * place.stage, place.parity);
        }
        fill(place.stage, kb);
        place.advance(ring.stages);
      }
      if constexpr (abi::c_stages(kTile) > 0) {
        if (p.flags & abi::kRingC) {
#pragma unroll 1
          for (int i = 0; i < abi::c_stages(kTile); ++i) {
            if (untouched > 0) {
              --untouched;
            } else {
              ptx::mbarrier_wait(ring.empty + 8 * place.stage, place.parity);
            }
            fill_c(place.stage, i);
            place.advance(ring.stages);
          }
        }
      }
    }
    // NOTE: a peer's last arrivals must have come before this CTA may leave: an arrival at a CTA
    // that is gone is a fault, and the cluster's last barrier does not order them.
    if constexpr (kTile.multicast() > 1) {
      for (uint32_t i = 0; i < ring.stages; ++i) {
        ptx::mbarrier_wait(ring.empty + 8 * place.stage, place.parity);
        place.advance(ring.stages);
      }
    }
    __syncwarp();
  }

  // The descriptor that an operand is read through, and where K-block kb of all columns lies in it.
  // Packed groups have one each.
  struct OneMap {
    __device__ __forceinline__ void aim(const Tile<kTile>&) {}
    __device__ __forceinline__ const abi::TensorMap& map(const abi::TensorMap& its) const {
      return its;
    }
    __device__ __forceinline__ int block(int kb) const { return kb; }
  };
  struct MapOfGroup {
    PackedMap<kTile> maps;
    int first = 0;
    __device__ __forceinline__ void aim(const Tile<kTile>& at) {
      first = at.k.first;
      maps.aim(at.batch, at.k);
    }
    __device__ __forceinline__ const abi::TensorMap& map(const abi::TensorMap&) const {
      return maps.map();
    }
    __device__ __forceinline__ int block(int kb) const { return kb - first; }
  };
  __device__ __forceinline__ auto packed_map(int which, const abi::TensorMap& like,
                                             const uint8_t* data, int rows) const {
    if constexpr (kTile.packed) {
      const uint32_t room = base + p.barriers + abi::packed_map(kTile, p.stages, which);
      return MapOfGroup{PackedMap<kTile>(room, like, which, data, rows, lane)};
    } else {
      return OneMap{};
    }
  }

  __device__ __forceinline__ abi::BlockRange blocks_of(const Tile<kTile>& at) const {
    if constexpr (kTile.k_grouped) {
      return at.k;
    } else {
      return range;
    }
  }
  __device__ __forceinline__ int blocks_from(int kb) const {
    return kTile.blocks == 1 ? 1 : min(kTile.blocks, range.last - kb);
  }

  // One K-block of an operand: kTileRows rows from `row` on. With a multicast, each CTA brings its
  // part to both.
  template <int kTileRows, int kShared>
  __device__ __forceinline__ void load_tile(uint32_t to, const abi::TensorMap& map, int kb, int row,
                                            int batch, uint32_t full) {
    if constexpr (kShared == 1) {
      ptx::copy_box(to, map, kb * abi::kBlockK, row, batch, full);
    } else {
      constexpr int kPart = kTileRows / kShared;
      static_assert(kPart % 8 == 0, "a part of a tile must be whole groups of 8 swizzled rows");
      ptx::copy_box_multicast(to + rank * kPart * abi::kBlockK, map, kb * abi::kBlockK,
                              row + rank * kPart, batch, full, (1u << kShared) - 1);
    }
  }

  const KernelParams& p;
  const Ring<kTile>& ring;
  const uint32_t base, rank;
  const abi::BlockRange range;
  const int lane;
};

// Asks L2 for the weights of the first K-blocks, a line a thread: before a math warp has anything
// to do, and while the copy engine still waits for its descriptor. (That is all it does, so what an
// earlier kernel may yet write can be asked for, too.) NOTE: only where no other CTA wants the same
// lines: asked for by many at once they come later (activations: up to 17 % slower).
template <TileConfig kTile>
__device__ __forceinline__ void prefetch_first_weights(const KernelParams& p, uint32_t rank) {
  if (p.m > kTile.tile_m || p.b_batch) return;
  // K-blocks; of fewer the copy engine asks for all at once, and what is asked for twice is slower.
  constexpr int kLeast = 6;
  constexpr int kThreads = 128 * kTile.groups_per_pipeline();
  const int pipeline = static_cast<int>(threadIdx.x) / kThreads,
            thread = static_cast<int>(threadIdx.x) % kThreads;
  const abi::BlockRange range = my_range<kTile>(p, rank, pipeline);
  if (range.last - range.first < kLeast) return;
  const TileAt at = locate<kTile>(p, first_unit(), rank);
  const int row = at.n0 + thread % kTile.tile_n, block = range.first + thread / kTile.tile_n;
  if (row >= p.n || block >= range.last) return;
  ptx::prefetch_line(p.b_rows.data + row * p.b_rows.pitch + block * abi::kBlockK);
}

// Brings B. A warp of its own, that does nothing else: the weights are what decode waits for, and
// with a dependent launch they may be requested before the kernel before this one has finished.
template <TileConfig kTile>
class WeightProducer : Producer<kTile> {
  using Base = Producer<kTile>;

 public:
  using Base::Base;

  __device__ __forceinline__ void run() {
    const KernelParams& p = this->p;
    if ((p.flags & abi::kDependent) && !(p.flags & abi::kWeightsReady)) {
      ptx::wait_for_earlier_kernels();
    }
    const bool plain_sfb = p.flags & abi::kPlainSfb;
    int row = 0, batch = 0, sfb_batch = 0;
    auto groups = this->packed_map(1, p.b, p.k_groups.b, p.n);
    this->walk(
        [&](const Tile<kTile>& at) {
          row = at.n0;
          batch = at.batch & -p.b_batch;
          sfb_batch = at.batch & -p.sfb_batch;
          groups.aim(at);
        },
        [&](uint32_t stage, int kb) {
          if (this->lane != 0) return;
          const uint32_t full = this->ring.full + 8 * stage;
          const int blocks = this->blocks_from(kb);
          ptx::mbarrier_arrive_expect(full, abi::weight_bytes(kTile, blocks, plain_sfb));
#pragma unroll
          for (int b = 0; b < kTile.blocks; ++b) {
            if (b >= blocks) break;
            const uint32_t to =
                kTile.normal() ? this->ring.col_tile(stage, b) : this->ring.row_tile(stage, b);
            this->template load_tile<kTile.tile_n, kTile.cluster_m>(to, groups.map(p.b),
                                                                    groups.block(kb + b), row,
                                                                    batch, full);
          }
          if (kTile.paired && !plain_sfb) {
            ptx::copy_box(this->ring.sfb(stage, 0), p.sfb_box, row, kb, sfb_batch, full);
          }
        },
        [&](uint32_t stage, int) {
          if (this->lane == 0) ptx::mbarrier_arrive(this->ring.full + 8 * stage);
        });
  }
};

// Brings A, and SFA where the copy engine can.
template <TileConfig kTile>
class ActivationProducer : Producer<kTile> {
  using Base = Producer<kTile>;

 public:
  using Base::Base;

  __device__ __forceinline__ void run() {
    const KernelParams& p = this->p;
    const bool plain = p.flags & abi::kPlainSfa;
    if (p.flags & abi::kDependent) ptx::wait_for_earlier_kernels();
    int m0 = 0, a_batch = 0, sfa_batch = 0;
    TileAt tile{};
    bool half = false;  // ragged: the tile's second half has no row
    auto groups = this->packed_map(0, p.a, p.k_groups.a, p.m);
    this->walk(
        [&](const Tile<kTile>& at) {
          groups.aim(at);
          if constexpr (abi::c_stages(kTile) > 0) tile = at;
          m0 = at.m0;
          half = kTile.ragged() && live_row_pieces<kTile>(at) * 128 <= kTile.tile_m;
          a_batch = at.batch & -p.a_batch;
          sfa_batch = at.batch & -p.sfa_batch;
        },
        [&](uint32_t stage, int kb) {
          if (this->lane != 0) return;
          const Ring<kTile>& ring = this->ring;
          const uint32_t full = ring.full + 8 * stage;
          const int blocks = this->blocks_from(kb);
          const int missing = half ? blocks * abi::operand_bytes(kTile.tile_m / 2) : 0;
          ptx::mbarrier_arrive_expect(full, abi::activation_bytes(kTile, blocks, plain) - missing);
#pragma unroll
          for (int b = 0; b < kTile.blocks; ++b) {
            if (b >= blocks) break;
            const uint32_t to = kTile.normal() ? ring.row_tile(stage, b) : ring.col_tile(stage, b);
            // Of a cluster, the second CTA brings the second half.
            if (kTile.ragged() && kTile.cluster_n > 1 && half && this->rank > 0) break;
            this->template load_tile<kTile.tile_m, kTile.cluster_n>(to, groups.map(p.a),
                                                                    groups.block(kb + b), m0,
                                                                    a_batch, full);
            if (kTile.ragged() && kTile.cluster_n == 1 && !half) {
              constexpr int kHalf = kTile.tile_m / 2;
              ptx::copy_box(to + kHalf * abi::kBlockK, p.a, (kb + b) * abi::kBlockK, m0 + kHalf,
                            a_batch, full);
            }
          }
          if (!plain) ptx::copy_box(ring.sfa(stage, 0), p.sfa, m0, kb, sfa_batch, full);
        },
        [&](uint32_t stage, int i) { load_c(stage, i, tile); });
  }

 private:
  // Stage i of C's: a box for the piece of each warpgroup. (Row by row, 256 bytes a copy, the copy
  // engine takes some 50 cycles a row: 15 us a tile.)
  __device__ __forceinline__ void load_c(uint32_t stage, int i, const TileAt& at) const {
    if constexpr (abi::c_stages(kTile) > 0) {
      if (this->lane != 0) return;
      constexpr int kCols = abi::c_columns(kTile), kPerPiece = kTile.piece_cols() / kCols,
                    kBytes = 64 * kCols * 4;
      const uint32_t full = this->ring.full + 8 * stage;
      const int piece = i / kPerPiece;
      const int row = at.m0 + piece / kTile.col_pieces() * 64,
                col =
                    at.n0 + piece % kTile.col_pieces() * kTile.piece_cols() + i % kPerPiece * kCols;
      ptx::mbarrier_arrive_expect(full, kTile.row_groups() * kBytes);
#pragma unroll
      for (int g = 0; g < kTile.row_groups(); ++g) {
        ptx::copy_box(this->ring.row_tile(stage, 0) + g * kBytes, this->p.d, col,
                      row + g * kTile.row_pieces() * 64, at.batch & -this->p.c_batch, full);
      }
    }
  }
};

}  // namespace oct::device
