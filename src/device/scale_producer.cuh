// The third producer warp of a pipeline: scales that the copy engine does not bring. It has the
// time to bring C into L2, too, where C does not pass through the ring.
#pragma once

#include "device/operand_producer.cuh"

namespace oct::device {

// Brings C of the tile under way into L2, 32 rows with every K-block: asked for when it is added,
// by all SMs at once, it would come at the rate of DRAM while tensor cores wait.
template <TileConfig kTile>
class CPrefetch {
 public:
  __device__ __forceinline__ explicit CPrefetch(const KernelParams& params) : p(params) {}

  __device__ __forceinline__ void aim(const TileAt& at, int lane) {
    if (p.add.data == nullptr || (p.flags & abi::kRingC)) return;
    const int row = at.m0 + lane;
    left = min(p.m - at.m0, kTile.tile_m) - lane;
    bytes = min(p.n - at.n0, kTile.tile_n) * element();
    from = static_cast<const char*>(p.add.data) +
           (at.batch * p.add.batch_stride + row * p.add.ld + at.n0) * element();
  }
  __device__ __forceinline__ void step() {
    if (left <= 0) return;
#pragma unroll 1
    for (int i = 0; i < bytes; i += 128) ptx::prefetch_line(from + i);
    left -= 32;
    from += 32 * p.add.ld * element();
  }

 private:
  __device__ __forceinline__ int element() const {
    return p.d_type == abi::ElementType::kF32 ? 4 : 2;
  }
  const KernelParams& p;
  const char* from = nullptr;
  int left = 0, bytes = 0;
};

// Brings by plain asynchronous loads SFB of 128 columns each, and scales of single rows and columns
// where they are row-major or oddly pitched. A warp of its own: such loads and their arrivals take
// longer to issue than all that the copy engine does.
template <TileConfig kTile>
class ScaleProducer : Producer<kTile> {
  using Base = Producer<kTile>;

 public:
  using Base::Base;

  __device__ __forceinline__ void run() {
    const KernelParams& p = this->p;
    const int lane = this->lane;
    const bool plain = p.flags & abi::kPlainSfa;
    if (p.flags & abi::kDependent) ptx::wait_for_earlier_kernels();
    if constexpr (kTile.paired) {
      run_paired(plain);
      return;
    }
    int m0 = 0;
    const float* sfb = nullptr;  // of this lane's row of SFB, or null
    const float* sfa = nullptr;  // of this lane's first row, plain SFA only
    this->walk(
        [&](const TileAt& at) {
          m0 = at.m0;
          const int64_t row = (at.n0 >> 7) + (lane & 3);
          const bool wanted =
              lane < abi::kSfbSlots && row * 128 < p.n && row * 128 < at.n0 + kTile.tile_n;
          sfb = wanted ? p.sfb.data + at.batch * p.sfb.batch_stride + row * p.sfb.row_stride
                       : nullptr;
          if (plain) {
            sfa = p.sfa_plain.data + at.batch * p.sfa_plain.batch_stride +
                  int64_t{at.m0 + lane} * p.sfa_plain.row_stride;
          }
        },
        [&](uint32_t stage, int kb) {
          const Ring<kTile>& ring = this->ring;
          const uint32_t full = ring.full + 8 * stage;
          const int blocks = this->blocks_from(kb);
          if (sfb != nullptr) {
#pragma unroll
            for (int b = 0; b < kTile.blocks; ++b) {
              if (b >= blocks) break;
              ptx::load_async_4(ring.sfb(stage, b) + 4 * lane, sfb + (kb + b) * p.sfb.k_stride);
            }
          }
          if (lane < abi::kSfbSlots) ptx::arrive_after_loads(full);
          if (plain) {
#pragma unroll
            for (int b = 0; b < kTile.blocks; ++b) {
              if (b >= blocks) break;
              load_column<kTile.tile_m>(ring.sfa(stage, b), sfa, p.sfa_plain, kb + b, p.m - m0);
            }
            ptx::arrive_after_loads(full);
          }
        });
  }

 private:
  // Both kinds of scales by rows.
  __device__ __forceinline__ void run_paired(bool plain_sfa) {
    const KernelParams& p = this->p;
    const bool plain_sfb = p.flags & abi::kPlainSfb;
    int m0 = 0, n0 = 0;
    const float *sfa = nullptr, *sfb = nullptr;
    CPrefetch<kTile> c(p);
    this->walk(
        [&](const TileAt& at) {
          m0 = at.m0;
          n0 = at.n0;
          c.aim(at, this->lane);
          sfa = p.sfa_plain.data + at.batch * p.sfa_plain.batch_stride +
                int64_t{m0 + this->lane} * p.sfa_plain.row_stride;
          sfb = p.sfb.data + at.batch * p.sfb.batch_stride +
                int64_t{n0 + this->lane} * p.sfb.row_stride;
        },
        [&](uint32_t stage, int kb) {
          const uint32_t full = this->ring.full + 8 * stage;
          c.step();
          if (plain_sfb) {
            load_column<kTile.tile_n>(this->ring.sfb(stage, 0), sfb, p.sfb, kb, p.n - n0);
            ptx::arrive_after_loads(full);
          }
          if (plain_sfa) {
            load_column<kTile.tile_m>(this->ring.sfa(stage, 0), sfa, p.sfa_plain, kb, p.m - m0);
            ptx::arrive_after_loads(full);
          }
        },
        [&](uint32_t stage, int) {
          const uint32_t full = this->ring.full + 8 * stage;
          if (plain_sfb) ptx::mbarrier_arrive(full);
          if (plain_sfa) ptx::mbarrier_arrive(full);
        });
  }

  // Scales of kRows rows, of which `rows` exist; `from`: of this lane's first row. The others stay
  // as they are: such rows are never stored.
  template <int kRows>
  __device__ __forceinline__ void load_column(uint32_t to, const float* from, const Scales& scales,
                                              int kb, int rows) const {
    constexpr int kSteps = (kRows + 31) / 32, kUnrolled = kTile.paired ? 2 : kSteps;  // registers
    from += kb * scales.k_stride;
#pragma unroll kUnrolled
    for (int i = 0; i < kSteps; ++i) {
      const int row = 32 * i + this->lane;
      if (row < kRows && row < rows) ptx::load_async_4(to + 4 * row, from);
      from += 32 * scales.row_stride;
    }
  }
};

}  // namespace oct::device
