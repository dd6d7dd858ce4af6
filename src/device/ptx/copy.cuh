// Data movement, one instruction a function: the copy engine (bulk tensor copies), plain
// asynchronous loads, stores into other CTAs of the cluster, matrix stores to shared memory.
#pragma once

#include <cstdint>

#include "kernel_abi/kernel_params.h"

namespace oct::device::ptx {

// Brings a descriptor towards the copy engine before its first use.
__device__ __forceinline__ void prefetch_map(const abi::TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
// Of a descriptor in shared memory (128-byte aligned): where its tensor begins; how many bytes its
// rows hold, one behind the other.
__device__ __forceinline__ void replace_address(uint32_t map, const void* address) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map),
               "l"(address)
               : "memory");
}
__device__ __forceinline__ void replace_width_and_pitch(uint32_t map, uint32_t bytes) {
  asm volatile(
      "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;\n"
      "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %2;" ::"r"(map),
      "r"(bytes), "l"(static_cast<uint64_t>(bytes))
      : "memory");
}
// Copies it to memory, where the copy engine may then read it on this CTA's behalf. All lanes.
__device__ __forceinline__ void publish_map(const abi::TensorMap* to, uint32_t map) {
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%0], [%1], 128;\n"
      "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(to),
      "r"(map)
      : "memory");
}
__device__ __forceinline__ uint32_t sm_id() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

// A box of a tensor map at (x, y, z) into shared memory; its bytes complete on `bar`. Elements
// outside the tensor arrive as zeros and count as bytes.
__device__ __forceinline__ void copy_box(uint32_t to, const abi::TensorMap& map, int x, int y,
                                         int z, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(bar)
      : "memory");
}
// The same into the same place of every CTA in `ranks`, completing on each one's own barrier.
__device__ __forceinline__ void copy_box_multicast(uint32_t to, const abi::TensorMap& map, int x,
                                                   int y, int z, uint32_t bar, uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(bar), "h"(ranks)
      : "memory");
}
// A box out of shared memory; parts outside the tensor are not written. Part of the bulk group that
// the next commit_stores() closes.
__device__ __forceinline__ void store_box(const abi::TensorMap& map, int x, int y, int z,
                                          uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], "
      "[%4];" ::"l"(&map),
      "r"(x), "r"(y), "r"(z), "r"(from)
      : "memory");
}
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Until at most kPending of this thread's groups of stores still read shared memory.
template <int kPending>
__device__ __forceinline__ void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
// Orders this thread's ordinary writes to shared memory before later copy-engine reads of them.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Four bytes by a plain asynchronous load; needs no alignment beyond its own.
__device__ __forceinline__ void load_async_4(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
// Arrives on `bar` when this thread's plain asynchronous loads so far have landed. The arrival is
// one of those that `bar` was initialised for.
__device__ __forceinline__ void arrive_after_loads(uint32_t bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

// Four floats into this CTA's shared memory, at `here`, or else into another CTA's, at `there`,
// completing 16 bytes on its barrier; `there` and `bar` come from map_to_rank(). NOTE: an illegal
// instruction in a kernel launched without clusters. NOTE: by predicates: a branch makes the
// compiler doubt that the warp stays together, and keep the K loop's descriptors out of uniform
// registers (normal_m64n32_x2_o2: 5 % slower, 2026-11-30).
__device__ __forceinline__ void store_here_or_async(bool is_here, uint32_t here, uint32_t there,
                                                    float4 v, uint32_t bar) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n"
      "@p st.shared.v4.b32 [%1], {%3, %4, %5, %6};\n"
      "@!p st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%2], "
      "{%3, %4, %5, %6}, [%7];\n}\n" ::"r"(static_cast<uint32_t>(is_here)),
      "r"(here), "r"(there), "r"(__float_as_uint(v.x)), "r"(__float_as_uint(v.y)),
      "r"(__float_as_uint(v.z)), "r"(__float_as_uint(v.w)), "r"(bar)
      : "memory");
}

__device__ __forceinline__ float load_shared(uint32_t at) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
  return v;
}
__device__ __forceinline__ float2 load_shared2(uint32_t at) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at) : "memory");
  return v;
}
__device__ __forceinline__ float4 load_shared4(uint32_t at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(at)
               : "memory");
  return v;
}
__device__ __forceinline__ void store_shared_u32(uint32_t at, uint32_t v) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
__device__ __forceinline__ void store_shared2(uint32_t at, float2 v) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(v.x), "f"(v.y) : "memory");
}
__device__ __forceinline__ void store_shared4(uint32_t at, float4 v) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
}

__device__ __forceinline__ uint4 load_shared_u4(uint32_t at) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(at)
               : "memory");
  return v;
}
__device__ __forceinline__ uint2 load_shared_u2(uint32_t at) {
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at) : "memory");
  return v;
}
__device__ __forceinline__ void store_shared_u2(uint32_t at, uint2 v) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(v.x), "r"(v.y) : "memory");
}
__device__ __forceinline__ void store_shared_u4(uint32_t at, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

// Asks for a line of memory to be brought into L2.
__device__ __forceinline__ void prefetch_line(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
}
// Elements that nobody reads again soon: they leave no trace in the SM's cache.
__device__ __forceinline__ float4 load_once4(const float* from) {
  float4 v;
  asm volatile("ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");
  return v;
}
__device__ __forceinline__ uint2 load_once2(const void* from) {
  uint2 v;
  asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(from)
               : "memory");
  return v;
}

// Four 8x8 matrices of 16-bit elements; lane i gives the address of row i%8 of matrix i/8.
__device__ __forceinline__ void store_matrices(uint32_t at, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}
// Two of them; lanes 0 to 15 give the addresses.
__device__ __forceinline__ void store_matrices(uint32_t at, uint32_t a, uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(a), "r"(b)
               : "memory");
}
// The same, each transposed on its way.
__device__ __forceinline__ void store_transposed(uint32_t at, uint32_t a, uint32_t b, uint32_t c,
                                                 uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
__device__ __forceinline__ void store_transposed(uint32_t at, uint32_t a, uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(a),
               "r"(b)
               : "memory");
}
// Transposes an 8x8 matrix of 16-bit elements held by the warp.
__device__ __forceinline__ uint32_t transpose_matrix(uint32_t a) {
  uint32_t d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
  return d;
}

// Two floats to one register of two 16-bit elements, `low` in the low half: to nearest even, every
// NaN becomes 0x7fff, subnormals are kept.
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t d;
  asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
__device__ __forceinline__ uint32_t pack_f16(float low, float high) {
  uint32_t d;
  asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
__device__ __forceinline__ float2 unpack_f16(uint32_t x) {
  float2 v;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\n"
      "cvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}\n"
      : "=f"(v.x), "=f"(v.y)
      : "r"(x));
  return v;
}

}  // namespace oct::device::ptx
