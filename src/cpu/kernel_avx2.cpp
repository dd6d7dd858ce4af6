// The kernels for AVX2 and FMA. What is computed, and how, is in e4m3_kernel.h and bf16_kernel.h.
// No inline function of a library may be called here: the linker could keep this file's copy of it
// for everyone, and a processor without AVX2 would meet it. Compiled with contraction, which turns
// the products of e4m3_kernel.h and bf16_kernel.h, all exact, into fused multiply-adds.
#include <immintrin.h>

#include "cpu/bf16_kernel.h"
#include "cpu/e4m3_kernel.h"

namespace oct::cpu {
namespace {

struct Ops {
  using Float = float __attribute__((vector_size(32)));
  using Word = uint32_t __attribute__((vector_size(32)));
  using Int = int32_t __attribute__((vector_size(32)));
  using Byte = uint8_t __attribute__((vector_size(32)));
  using SignedByte = int8_t __attribute__((vector_size(32)));
  using Double = double __attribute__((vector_size(32)));
  using Long = uint64_t __attribute__((vector_size(32)));
  using Short = uint16_t __attribute__((vector_size(32)));
  using SignedShort = int16_t __attribute__((vector_size(32)));
  static constexpr bool kFused = true;
  static constexpr bool kLookup = true;

  static Float splat(float x) { return (Float)_mm256_set1_ps(x); }
  static Word splat(uint32_t x) { return (Word)_mm256_set1_epi32(static_cast<int>(x)); }
  static Double splat(double x) { return (Double)_mm256_set1_pd(x); }
  static Long splat(uint64_t x) { return (Long)_mm256_set1_epi64x(static_cast<long long>(x)); }
  static Float fma(Float a, Float b, Float c) { return (Float)_mm256_fmadd_ps(a, b, c); }
  static Double fma(Double a, Double b, Double c) { return (Double)_mm256_fmadd_pd(a, b, c); }
  static Byte max_unsigned(Byte x, Byte y) { return (Byte)_mm256_max_epu8((__m256i)x, (__m256i)y); }
  static Short max_signed(Short x, Short y) {
    return (Short)_mm256_max_epi16((__m256i)x, (__m256i)y);
  }
  static Byte count_below(Byte count, Byte x, Byte limit) {
    return count - (Byte)((SignedByte)x < (SignedByte)limit);
  }
  static Short count_below(Short count, Short x, Short limit) {
    return count - (Short)((SignedShort)x < (SignedShort)limit);
  }

  static Byte lookup(const uint8_t (&table)[16], Byte index) {
    return (Byte)_mm256_shuffle_epi8((__m256i)repeated(table), (__m256i)index);
  }
  static Byte shuffle(Byte x, const uint8_t (&pattern)[16]) {
    return (Byte)_mm256_shuffle_epi8((__m256i)x, (__m256i)repeated(pattern));
  }
  static Byte unpack_bytes_low(Byte x, Byte y) {
    return (Byte)_mm256_unpacklo_epi8((__m256i)x, (__m256i)y);
  }
  static Byte unpack_bytes_high(Byte x, Byte y) {
    return (Byte)_mm256_unpackhi_epi8((__m256i)x, (__m256i)y);
  }
  static Byte unpack_pairs_low(Byte x, Byte y) {
    return (Byte)_mm256_unpacklo_epi16((__m256i)x, (__m256i)y);
  }
  static Byte unpack_pairs_high(Byte x, Byte y) {
    return (Byte)_mm256_unpackhi_epi16((__m256i)x, (__m256i)y);
  }

  static void interleave(const uint8_t* const* column, Word* words) {
    for (int k = 0; k < kBlock; k += 8) {
      Word x[8];  // x[i]: bytes of columns i, 8 + i, 16 + i, 24 + i, lanes are k
      for (int i = 0; i < 8; ++i) {
        x[i] = widen(column[i] + k) | widen(column[8 + i] + k) << 8 |
               widen(column[16 + i] + k) << 16 | widen(column[24 + i] + k) << 24;
      }
      transpose(x);
      for (int i = 0; i < 8; ++i) words[k + i] = x[i];
    }
  }

 private:
  static Byte repeated(const uint8_t (&table)[16]) {
    return (Byte)_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)table));
  }
  static Word widen(const uint8_t* bytes) {
    return (Word)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)bytes));
  }
  static void transpose(Word (&x)[8]) {
    __m256i y[8], z[8];
    for (int i = 0; i < 8; i += 2) {
      y[i] = _mm256_unpacklo_epi32((__m256i)x[i], (__m256i)x[i + 1]);
      y[i + 1] = _mm256_unpackhi_epi32((__m256i)x[i], (__m256i)x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
      z[i] = _mm256_unpacklo_epi64(y[i], y[i + 2]);
      z[i + 1] = _mm256_unpackhi_epi64(y[i], y[i + 2]);
      z[i + 2] = _mm256_unpacklo_epi64(y[i + 1], y[i + 3]);
      z[i + 3] = _mm256_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    for (int i = 0; i < 4; ++i) {
      x[i] = (Word)_mm256_permute2x128_si256(z[i], z[i + 4], 0x20);
      x[i + 4] = (Word)_mm256_permute2x128_si256(z[i], z[i + 4], 0x31);
    }
  }
};

using E4m3 = E4m3Kernel<Ops, 2>;

void promote(const float* chain, const float* sfa, const float* sfb, int rows, float* acc) {
  constexpr int kColumns = E4m3::kColumns;
  for (int row = 0; row < rows; ++row) {
    const __m256 a = _mm256_set1_ps(sfa[row]);
    for (int j = 0; j < kColumns; j += 8) {
      const __m256 s = _mm256_mul_ps(a, _mm256_loadu_ps(sfb + j));
      const int at = row * kColumns + j;
      _mm256_storeu_ps(acc + at,
                       _mm256_fmadd_ps(s, _mm256_loadu_ps(chain + at), _mm256_loadu_ps(acc + at)));
    }
  }
}

constexpr Kernel kKernel = {OCTET_ISA_AVX2, E4m3::kernel(), Bf16Kernel<Ops, 2>::kernel(), &promote};

}  // namespace

const Kernel* avx2_kernel() { return &kKernel; }

}  // namespace oct::cpu
