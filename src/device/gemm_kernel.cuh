// The skeleton that every GEMM kernel is: set-up, roles, end. The build instantiates it once for
// every name of kernel_abi/kernel_table.h (make_kernel_sources.py).
#pragma once

#include <cstddef>

#include "device/normal_gemm.cuh"
#include "device/paired_gemm.cuh"
#include "device/scale_producer.cuh"
#include "device/scheduler.cuh"
#include "device/swapped_gemm.cuh"
#include "kernel_abi/kernel_table.h"

namespace oct::device {

extern __shared__ __align__(1024) uint8_t shared_memory[];

// Registers of a thread after the producer's warpgroup has given its own away. NOTE: their total
// must stay within what the launch gave (65536 / threads, rounded down to 8), or setmaxnreg.inc
// hangs.
template <TileConfig kTile>
struct RegisterSplit {
  static constexpr int kAtLaunch = 65536 / kTile.ctas_per_sm / kTile.threads() / 8 * 8;
  static constexpr int kProducer = kTile.grouped  ? 56  // with 40 a producer spills
                                   : kTile.paired ? 40
                                                  : 32;
  static constexpr int kShare =
      (kAtLaunch * (kTile.math_groups() + 1) - kProducer) / kTile.math_groups() / 8 * 8;
  static constexpr int kMath = kShare > 240 ? 240 : kShare;
};

// Roles of the producer warps, as many of each as there are pipelines; grouped kernels: then one
// that finds the tiles.
enum ProducerRole { kWeights = 0, kActivations = 1, kScales = 2, kTiles = 3 };

// Brings all lines of the parameters, tensor maps aside, from memory at once: each is a miss in
// every launch, and one after the other they delay the first request by hundreds of cycles, and the
// end. NOTE: an index that differs between lanes makes it one load that does not block; the
// compiler would read fields where they are used, each with a miss of its own.
template <TileConfig kTile>
class ParameterFetch {
 public:
  __device__ __forceinline__ ParameterFetch(const KernelParams& p, int lane) {
    constexpr int kLine = 64, kHead = offsetof(KernelParams, b) / kLine,
                  kTail = offsetof(KernelParams, d_type) / kLine,
                  kEnd = kTile.scheduled() ? sizeof(KernelParams) : offsetof(KernelParams, groups),
                  kLines = kEnd / kLine;
    const int line = lane < kHead ? lane : min(kTail + lane - kHead, kLines - 1);
    word_ = reinterpret_cast<const uint32_t*>(&p)[line * (kLine / 4)];
  }
  // Waits for them. (The condition only makes the load one that counts.)
  __device__ __forceinline__ void wait() const {
    asm volatile(
        "{\n.reg .pred p;\nsetp.eq.u32 p, %0, 0x7fc0ffee;\n@p nanosleep.u32 1;\n}\n" ::"r"(word_)
        : "memory");
  }

 private:
  uint32_t word_;
};

template <TileConfig kTile>
__device__ __forceinline__ void gemm(const KernelParams& p) {
  constexpr int kMathWarps = kTile.math_warps();
  static_assert(kTile.cols() % 8 == 0 && kTile.rows() % 64 == 0, "a tile is whole WGMMA pieces");
  // NOTE: through a shuffle, so that the compiler knows the warp index to be uniform and keeps
  // descriptors and addresses in uniform registers (2-3 % at large M).
  const int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31;
  const uint32_t base = ptx::shared_address(shared_memory);
  const bool clustered = kTile.multicast() > 1 || p.cluster_split > 1;
  const uint32_t rank = blockIdx.x;  // in the cluster, as the grid is laid out
  const ParameterFetch<kTile> parameters(p, lane);

  if (lane == 0 && warp == kMathWarps + kWeights) {
    if (!kTile.packed) ptx::prefetch_map(p.b);
    if (kTile.paired && !(p.flags & abi::kPlainSfb)) ptx::prefetch_map(p.sfb_box);
  }
  if (lane == 0 && warp == kMathWarps + kActivations * kTile.k_groups) {
    if (!kTile.packed) ptx::prefetch_map(p.a);
    if (!(p.flags & abi::kPlainSfa)) ptx::prefetch_map(p.sfa);
  }
  if constexpr (kTile.grouped) {
    if (warp == kMathWarps + kTiles) prefetch_metadata(p, lane);
  }
  init_barriers<kTile>(p, base, warp, lane);
  parameters.wait();
  if (!kTile.scheduled() && warp < kMathWarps) prefetch_first_weights<kTile>(p, rank);
  // One barrier for all warps, before they part.
  __syncthreads();

  if (warp >= kMathWarps) {
    if constexpr (kTile.moves_registers()) ptx::give_registers<RegisterSplit<kTile>::kProducer>();
    if (warp >= kMathWarps + kTile.producer_warps())
      return;  // idle; exited warps count as arrived at cluster barriers
    const int role = (warp - kMathWarps) / kTile.k_groups,
              pipeline = (warp - kMathWarps) % kTile.k_groups;
    const Ring<kTile> ring(p, base, pipeline);
    if (role == kScales && pipeline == 0 && lane == 0 && p.cluster_split > 1) {
      Exchange<kTile>(p, base, rank).announce();
    }
    __syncwarp();
    if (clustered) ptx::cluster_arrive_relaxed();
    if (p.flags & abi::kEarly) ptx::let_dependents_launch();
    // NOTE: a multicast writes into CTAs whose barriers must exist.
    if (kTile.multicast() > 1) ptx::cluster_wait();
    if (kTile.scheduled() && role == kTiles) {
      if constexpr (kTile.grouped) Scheduler<kTile>(p, base, rank, lane).run();
      if constexpr (kTile.k_grouped) KScheduler<kTile>(p, base, lane).run();
    } else if (role == kWeights) {
      WeightProducer<kTile>(p, ring, base, rank, pipeline, lane).run();
    } else if (role == kActivations) {
      ActivationProducer<kTile>(p, ring, base, rank, pipeline, lane).run();
    } else {
      ScaleProducer<kTile>(p, ring, base, rank, pipeline, lane).run();
    }
    if (clustered && kTile.multicast() == 1) ptx::cluster_wait();
  } else {
    if constexpr (kTile.moves_registers()) ptx::take_registers<RegisterSplit<kTile>::kMath>();
    if (clustered) {
      ptx::cluster_arrive_relaxed();
      // NOTE: stages are released, and partial sums sent, to CTAs whose barriers must exist.
      ptx::cluster_wait();
    }
    if (p.flags & abi::kDependent) ptx::wait_for_earlier_kernels();
    const Ring<kTile> ring(p, base, (warp >> 2) / kTile.groups_per_pipeline());
    if constexpr (kTile.paired) {
      paired_math<kTile>(p, ring, base, rank, warp, lane);
    } else if constexpr (kTile.normal()) {
      normal_math<kTile>(p, ring, base, rank, warp, lane);
    } else {
      swapped_math<kTile>(p, ring, base, rank, warp, lane);
    }
  }
  // NOTE: this stands outside the roles (and in kernels that have no such stores, too): code after
  // a role's loop inside its branch makes ptxas drop setmaxnreg silently and spill.
  if (kTile.normal() && warp < kMathWarps) ptx::wait_stores_read<0>();
  // NOTE: a CTA must not leave while a peer still arrives at its barriers. (With K split there is
  // nothing left to wait for: what peers send for the last tile has been received, and nobody says
  // that it was read.)
  if (kTile.multicast() > 1) {
    __syncwarp();
    ptx::cluster_arrive_relaxed();
    ptx::cluster_wait();
  }
}

}  // namespace oct::device
