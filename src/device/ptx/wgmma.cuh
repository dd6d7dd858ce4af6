// What surrounds wgmma instructions: descriptors, fences, groups. The instructions themselves are
// in wgmma_e4m3.cuh, written by make_wgmma.py.
#pragma once

#include <cstdint>

#include "device/ptx/wgmma_e4m3.cuh"

namespace oct::device::ptx {

// Descriptor of a K-major operand tile with rows of 128 bytes, swizzled by 128 bytes (as the copy
// engine writes them): start address / 16, 1024 bytes from one group of 8 rows to the next. The
// tile is 1024-byte aligned; adding 2 moves on by 32 bytes of K.
inline constexpr uint64_t kDescriptorHigh =
    uint64_t{1} << 16 | uint64_t{64} << 32 | uint64_t{1} << 62;
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return kDescriptorHigh | (address >> 4);
}

// Before the first wgmma of a group: earlier register writes are ordered before it.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// NOTE: the compiler does not know that wgmma works on these registers until the wait; without this
// it may move their uses across it.
template <int kCount>
__device__ __forceinline__ void hold(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// What a descriptor grows by when its tile moves by so many bytes.
__device__ constexpr uint32_t descriptor_step(int bytes) {
  return static_cast<uint32_t>(bytes) >> 4;
}

// One K-block (four instructions of 32) into d, from zero, as one group. `a` (64 rows) and `b` are
// descriptors.
template <int kWidth>
__device__ __forceinline__ void multiply_block(float (&d)[kWidth / 2], uint64_t a, uint64_t b) {
  hold(d);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) WgmmaE4m3<kWidth>::issue(d, a + 2 * k, b + 2 * k, k > 0);
  wgmma_commit();
}

}  // namespace oct::device::ptx
