// The skeleton that every GEMM kernel is: set-up, roles, end. The build instantiates it once for
// every name of kernel_abi/kernel_table.h (make_kernel_sources.py).
#pragma once

#include "device/normal_gemm.cuh"
#include "device/swapped_gemm.cuh"
#include "kernel_abi/kernel_table.h"

namespace oct::device {

extern __shared__ __align__(1024) uint8_t shared_memory[];

inline constexpr int kReadyBarrier = 1;

// Registers of a thread after the producer's warpgroup has given its own away. NOTE: their total
// must stay within what the launch gave (65536 / threads, rounded down to 8), or setmaxnreg.inc
// hangs.
template <TileConfig kTile>
struct RegisterSplit {
  static constexpr int kAtLaunch = 65536 / kTile.ctas_per_sm / kTile.threads() / 8 * 8;
  static constexpr int kProducer = kTile.math_groups() >= 3 ? 32 : 24;
  static constexpr int kShare =
      (kAtLaunch * (kTile.math_groups() + 1) - kProducer) / kTile.math_groups() / 8 * 8;
  static constexpr int kMath = kShare > 240 ? 240 : kShare;
};

template <TileConfig kTile>
__device__ __forceinline__ void gemm(const KernelParams& p) {
  constexpr int kMathWarps = kTile.math_warps();
  constexpr int kReadyThreads = abi::ready_threads(kTile);
  static_assert(kTile.cols() % 8 == 0 && kTile.rows() % 64 == 0, "a tile is whole WGMMA pieces");
  static_assert(!kTile.normal() || kTile.piece_cols() % 32 == 0, "boxes of D are 32 or 64 columns");
  // NOTE: through a shuffle, so that the compiler knows the warp index to be uniform and keeps
  // descriptors and addresses in uniform registers (2-3 % at large M).
  const int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31;
  const uint32_t base = ptx::shared_address(shared_memory);
  const bool clustered = kTile.multicast() > 1 || p.cluster_split > 1;
  const uint32_t rank = clustered ? ptx::cluster_rank() : 0;

  if (warp >= kMathWarps) {
    if constexpr (kTile.moves_registers()) ptx::give_registers<RegisterSplit<kTile>::kProducer>();
    const int role = warp - kMathWarps;
    if (role >= kTile.producer_warps())
      return;  // exited warps count as arrived at cluster barriers
    const bool brings_weights = role < kTile.k_groups;
    const int pipeline = brings_weights ? role : role - kTile.k_groups;
    const Ring<kTile> ring(p, base, pipeline);
    if (brings_weights) {
      // The first request leaves as soon as its own barrier exists.
      init_ring<kTile>(p, ring, lane);
      ptx::fence_mbarrier_init();
      __syncwarp();
      ptx::named_arrive(kReadyBarrier, kReadyThreads);
    } else {
      if (pipeline == 0 && lane == 0 && p.cluster_split > 1) {
        Exchange<kTile>::init(p, base);
        ptx::fence_mbarrier_init();
        Exchange<kTile>(p, base, rank).announce();
      }
      __syncwarp();
      ptx::named_sync(kReadyBarrier, kReadyThreads);
    }
    if (clustered) ptx::cluster_arrive_relaxed();
    if (p.flags & abi::kDependent) ptx::let_dependents_launch();
    // NOTE: a multicast writes into CTAs whose barriers must exist.
    if (kTile.multicast() > 1) ptx::cluster_wait();
    if (brings_weights) {
      WeightProducer<kTile>(p, ring, rank, pipeline, lane).run();
    } else {
      ActivationProducer<kTile>(p, ring, rank, pipeline, lane).run();
    }
    if (clustered && kTile.multicast() == 1) ptx::cluster_wait();
  } else {
    if constexpr (kTile.moves_registers()) ptx::take_registers<RegisterSplit<kTile>::kMath>();
    ptx::named_sync(kReadyBarrier, kReadyThreads);
    if (clustered) {
      ptx::cluster_arrive_relaxed();
      // NOTE: stages are released, and partial sums sent, to CTAs whose barriers must exist.
      ptx::cluster_wait();
    }
    if (p.flags & abi::kDependent) ptx::wait_for_earlier_kernels();
    const Ring<kTile> ring(p, base, (warp >> 2) / kTile.groups_per_pipeline());
    if constexpr (kTile.normal()) {
      normal_math<kTile>(p, ring, base, rank, warp, lane);
    } else {
      swapped_math<kTile>(p, ring, base, rank, warp, lane);
    }
  }
  // NOTE: this stands outside the roles: code after a role's loop inside its branch makes ptxas
  // drop setmaxnreg silently and spill.
  if (kTile.normal() && warp < kMathWarps) ptx::wait_stores_read<0>();
  // NOTE: a CTA must not leave while a peer still arrives at its barriers.
  if (clustered) {
    __syncwarp();
    ptx::cluster_arrive_relaxed();
    ptx::cluster_wait();
  }
}

}  // namespace oct::device
