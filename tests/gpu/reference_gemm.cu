// See reference_gemm.h. Compiled without contraction, like every kernel of the library.
#include "kernel_abi/float_bits.h"
#include "ref/tensor_core.h"
#include "reference_gemm.h"

namespace oct::test {
namespace {

enum : int { kNone = 0, kBf16 = 2, kF16 = 3, kF32 = 4 };  // octet_type

__device__ float load_value(const void* data, int type, int64_t i) {
  if (type == kF32) return static_cast<const float*>(data)[i];
  const uint16_t code = static_cast<const uint16_t*>(data)[i];
  return __uint_as_float(type == kBf16 ? bits::bf16_to_f32(code) : bits::f16_to_f32(code));
}
__device__ void store_value(void* data, int type, int64_t i, float x) {
  const uint32_t f = __float_as_uint(x);
  if (type == kF32) {
    static_cast<uint32_t*>(data)[i] = bits::is_nan_f32(f) ? bits::kCanonicalNanF32 : f;
  } else {
    static_cast<uint16_t*>(data)[i] = type == kBf16 ? bits::f32_to_bf16(f) : bits::f32_to_f16(f);
  }
}

__global__ void gemm_kernel(ReferenceGemm g) {
  const int64_t total = g.m * g.n * g.batches;
  const int64_t blocks = (g.k + 127) / 128;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t batch = i / (g.m * g.n), rest = i - batch * (g.m * g.n);
    // 16 x 16 outputs of a block of threads share rows of A and B through L1.
    const int64_t m = rest / g.n, n = rest - m * g.n;
    const uint8_t* a = g.a + batch * g.a_batch + m * g.a_ld;
    const uint8_t* b = g.b + batch * g.b_batch + n * g.b_ld;
    const float* sfa = g.sfa + batch * g.sfa_batch + m * g.sfa_row;
    const float* sfb = g.sfb + batch * g.sfb_batch + n / g.sfb_rows * g.sfb_row;
    float sum = 0.0f;
    bool first = true;
    for (int64_t r = 0; r < g.split; ++r) {
      const int64_t begin = blocks * r / g.split, end = blocks * (r + 1) / g.split;
      if (begin == end) continue;
      float acc = 0.0f;
      for (int64_t kb = begin; kb < end; ++kb) {
        uint32_t p = 0;
        for (int64_t k = kb * 128; k < kb * 128 + 128 && k < g.k; k += 32) {
          const int64_t left = g.k - k;
          p = ref::wgmma<ref::E4m3>(a + k, b + k, left < 32 ? static_cast<int>(left) : 32, p);
        }
        const float s = __fmul_rn(sfa[kb * g.sfa_k], sfb[kb * g.sfb_k]);
        acc = __fmaf_rn(s, __uint_as_float(p), acc);
      }
      sum = first ? acc : __fadd_rn(sum, acc);
      first = false;
    }
    if (g.bias_type != kNone) {
      sum = __fadd_rn(sum, load_value(g.bias, g.bias_type, batch * g.bias_batch + n));
    }
    if (g.c != nullptr) {
      sum = __fadd_rn(sum, load_value(g.c, g.d_type, batch * g.c_batch + m * g.c_ld + n));
    }
    store_value(g.d, g.d_type, batch * g.d_batch + m * g.d_ld + n, sum);
  }
}

__device__ uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
__device__ float uniform(uint64_t x) { return (static_cast<float>(x >> 40) + 0.5f) * 0x1p-24f; }

__device__ uint8_t random_code(Codes kind, uint64_t r) {
  const uint8_t sign = r & 1 ? 0x80 : 0;
  const uint32_t v = static_cast<uint32_t>(r >> 8);
  switch (kind) {
    case Codes::kGaussian: {
      const float x = sqrtf(-2.0f * logf(uniform(mix(r)))) * cospif(2.0f * uniform(mix(r + 1)));
      return bits::f32_to_e4m3(__float_as_uint(x * 110.0f));
    }
    case Codes::kAny: return sign | static_cast<uint8_t>(v % 127);
    case Codes::kAnyNan: return sign | (v % 1000 == 0 ? 0x7f : static_cast<uint8_t>(v % 127));
    case Codes::kTiny: return sign | static_cast<uint8_t>(v % 9);
    default: return sign | static_cast<uint8_t>(0x70 + v % 15);
  }
}

__global__ void codes_kernel(uint8_t* data, int64_t rows, int64_t columns, int64_t row,
                             int64_t batches, int64_t batch, Codes kind, uint64_t seed) {
  const int64_t total = rows * columns * batches;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t g = i / (rows * columns), rest = i - g * rows * columns;
    const int64_t r = rest / columns, c = rest - r * columns;
    data[g * batch + r * row + c] = random_code(kind, mix(i * 0x9e3779b97f4a7c15ull + seed));
  }
}

__device__ float random_scale(ScaleKind kind, uint64_t r) {
  const float u = uniform(mix(r));
  switch (kind) {
    case ScaleKind::kOrdinary: return (0.5f + u) * 0.01f;
    case ScaleKind::kWide:
      return __uint_as_float(0x00800000u + static_cast<uint32_t>(u * 0x7e000000u));
    case ScaleKind::kTiny: return (0.5f + u) * 1e-23f;
    default: {
      const uint32_t v = static_cast<uint32_t>(r >> 10) % 200;
      return v == 0   ? 0.0f
             : v == 1 ? __uint_as_float(0x7f800000u)
             : v == 2 ? __uint_as_float(0xffc12345u)
             : v < 40 ? -u
                      : u;
    }
  }
}

__global__ void scales_kernel(float* data, int64_t rows, int64_t columns, int64_t row,
                              int64_t column, int64_t batches, int64_t batch, ScaleKind kind,
                              uint64_t seed) {
  const int64_t total = rows * columns * batches;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < total;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t g = i / (rows * columns), rest = i - g * rows * columns;
    const int64_t r = rest / columns, c = rest - r * columns;
    data[g * batch + r * row + c * column] =
        random_scale(kind, mix(i * 0x9e3779b97f4a7c15ull + seed));
  }
}

__global__ void values_kernel(void* data, int type, int64_t count, bool special, uint64_t seed) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const uint64_t r = mix(i * 0x9e3779b97f4a7c15ull + seed);
    float x = (uniform(r) - 0.5f) * 40.0f;
    const uint32_t v = static_cast<uint32_t>(r) % 400;
    if (special && v < 5) {
      const uint32_t codes[5] = {0x7fc00001u, 0xff800000u, 0x80000000u, 0x00000123u, 0x7f7fffffu};
      x = __uint_as_float(codes[v]);
    }
    if (type == kF32) {
      static_cast<float*>(data)[i] = x;
    } else {
      store_value(data, type, i, x);
    }
  }
}

__global__ void bytes_kernel(uint32_t* data, int64_t words, uint64_t seed) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < words;
       i += int64_t{gridDim.x} * blockDim.x) {
    data[i] = static_cast<uint32_t>(mix(i + seed * 0x9e3779b97f4a7c15ull));
  }
}

__global__ void compare_kernel(const uint16_t* x, const uint16_t* y, int64_t words,
                               unsigned long long* result) {
  unsigned long long different = 0, first = ~0ull;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < words;
       i += int64_t{gridDim.x} * blockDim.x) {
    if (x[i] != y[i]) {
      ++different;
      if (static_cast<unsigned long long>(i) < first) first = i;
    }
  }
  if (different) {
    atomicAdd(result, different);
    atomicMin(result + 1, first);
  }
}

int blocks_for(int64_t items) {
  const int64_t blocks = (items + 255) / 256;
  return static_cast<int>(blocks < 1 ? 1 : blocks > 132 * 32 ? 132 * 32 : blocks);
}

}  // namespace

void reference_gemm(const ReferenceGemm& g, cudaStream_t stream) {
  if (g.m * g.n * g.batches > 0) {
    gemm_kernel<<<blocks_for(g.m * g.n * g.batches), 256, 0, stream>>>(g);
  }
}
void fill_codes(uint8_t* data, int64_t rows, int64_t columns, int64_t row, int64_t batches,
                int64_t batch, Codes kind, uint64_t seed, cudaStream_t stream) {
  if (rows * columns * batches == 0) return;
  codes_kernel<<<blocks_for(rows * columns * batches), 256, 0, stream>>>(data, rows, columns, row,
                                                                         batches, batch, kind,
                                                                         seed);
}
void fill_scales(float* data, int64_t rows, int64_t columns, int64_t row, int64_t column,
                 int64_t batches, int64_t batch, ScaleKind kind, uint64_t seed,
                 cudaStream_t stream) {
  if (rows * columns * batches == 0) return;
  scales_kernel<<<blocks_for(rows * columns * batches), 256, 0, stream>>>(data, rows, columns, row,
                                                                          column, batches, batch,
                                                                          kind, seed);
}
void fill_values(void* data, int type, int64_t count, bool special, uint64_t seed,
                 cudaStream_t stream) {
  if (count > 0)
    values_kernel<<<blocks_for(count), 256, 0, stream>>>(data, type, count, special, seed);
}
void fill_bytes(void* data, int64_t bytes, uint64_t seed, cudaStream_t stream) {
  if (bytes >= 4) {
    bytes_kernel<<<blocks_for(bytes / 4), 256, 0, stream>>>(static_cast<uint32_t*>(data), bytes / 4,
                                                            seed);
  }
}
void compare_words(const void* x, const void* y, int64_t bytes, unsigned long long* result,
                   cudaStream_t stream) {
  compare_kernel<<<blocks_for(bytes / 2), 256, 0, stream>>>(static_cast<const uint16_t*>(x),
                                                            static_cast<const uint16_t*>(y),
                                                            bytes / 2, result);
}

}  // namespace oct::test
