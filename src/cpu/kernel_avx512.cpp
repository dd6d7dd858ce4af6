// The kernels for AVX-512 (F, BW, DQ, VL, VBMI, BITALG, VNNI). What is computed, and how, is in
// e4m3_planes.h and bf16_kernel.h. No inline function of a library may be called here: the linker
// could keep this file's copy of it for everyone, and a processor without AVX-512 would meet it.
// Compiled with contraction, like kernel_avx2.cpp.
//
// For 32 elements of K, one row and 64 columns the e4m3 kernel issues 128 fused multiply-adds, 30
// operations for the exponents of the products, 55 for the count and about 38 for the rest. On
// processors with two 512-bit ports 250 / 2 cycles is the limit, against 64 of the multiply-adds
// alone; this code takes about 145.
#include <immintrin.h>

#include "cpu/bf16_kernel.h"
#include "cpu/e4m3_kernel.h"
#include "cpu/e4m3_planes.h"

namespace oct::cpu {
namespace {

struct Ops {
  using Float = float __attribute__((vector_size(64)));
  using Word = uint32_t __attribute__((vector_size(64)));
  using Int = int32_t __attribute__((vector_size(64)));
  using Byte = uint8_t __attribute__((vector_size(64)));
  using Double = double __attribute__((vector_size(64)));
  using Long = uint64_t __attribute__((vector_size(64)));
  using Short = uint16_t __attribute__((vector_size(64)));
  using SignedShort = int16_t __attribute__((vector_size(64)));
  static constexpr bool kFused = true;
  static constexpr bool kLookup = true;

  static Float splat(float x) { return (Float)_mm512_set1_ps(x); }
  static Word splat(uint32_t x) { return (Word)_mm512_set1_epi32(static_cast<int>(x)); }
  static Double splat(double x) { return (Double)_mm512_set1_pd(x); }
  static Long splat(uint64_t x) { return (Long)_mm512_set1_epi64(static_cast<long long>(x)); }
  static Float fma(Float a, Float b, Float c) { return (Float)_mm512_fmadd_ps(a, b, c); }
  static Double fma(Double a, Double b, Double c) { return (Double)_mm512_fmadd_pd(a, b, c); }
  static Byte max_unsigned(Byte x, Byte y) { return (Byte)_mm512_max_epu8((__m512i)x, (__m512i)y); }
  static Short max_signed(Short x, Short y) {
    return (Short)_mm512_max_epi16((__m512i)x, (__m512i)y);
  }
  static Byte count_below(Byte count, Byte x, Byte limit) {
    const __mmask64 below = _mm512_cmplt_epi8_mask((__m512i)x, (__m512i)limit);
    return (Byte)_mm512_mask_add_epi8((__m512i)count, below, (__m512i)count, _mm512_set1_epi8(1));
  }
  static Short count_below(Short count, Short x, Short limit) {
    const __mmask32 below = _mm512_cmplt_epi16_mask((__m512i)x, (__m512i)limit);
    return (Short)_mm512_mask_add_epi16((__m512i)count, below, (__m512i)count,
                                        _mm512_set1_epi16(1));
  }

  static Byte lookup(const uint8_t (&table)[16], Byte index) {
    return (Byte)_mm512_shuffle_epi8((__m512i)repeated(table), (__m512i)index);
  }
  static Byte shuffle(Byte x, const uint8_t (&pattern)[16]) {
    return (Byte)_mm512_shuffle_epi8((__m512i)x, (__m512i)repeated(pattern));
  }
  static Byte unpack_bytes_low(Byte x, Byte y) {
    return (Byte)_mm512_unpacklo_epi8((__m512i)x, (__m512i)y);
  }
  static Byte unpack_bytes_high(Byte x, Byte y) {
    return (Byte)_mm512_unpackhi_epi8((__m512i)x, (__m512i)y);
  }
  static Byte unpack_pairs_low(Byte x, Byte y) {
    return (Byte)_mm512_unpacklo_epi16((__m512i)x, (__m512i)y);
  }
  static Byte unpack_pairs_high(Byte x, Byte y) {
    return (Byte)_mm512_unpackhi_epi16((__m512i)x, (__m512i)y);
  }

  static void interleave(const uint8_t* const* column, Word* words) {
    for (int k = 0; k < kBlock; k += 16) {
      Word x[16];  // x[i]: bytes of columns i, 16 + i, 32 + i, 48 + i, lanes are k
      for (int i = 0; i < 16; ++i) {
        x[i] = widen(column[i] + k) | widen(column[16 + i] + k) << 8 |
               widen(column[32 + i] + k) << 16 | widen(column[48 + i] + k) << 24;
      }
      transpose(x);
      for (int i = 0; i < 16; ++i) words[k + i] = x[i];
    }
  }

 private:
  static Byte repeated(const uint8_t (&table)[16]) {
    return (Byte)_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)table));
  }
  static Word widen(const uint8_t* bytes) {
    return (Word)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)bytes));
  }
  static void transpose(Word (&x)[16]) {
    __m512i y[16], z[16];
    for (int i = 0; i < 16; i += 2) {  // 2 x 2 within quarters
      y[i] = _mm512_unpacklo_epi32((__m512i)x[i], (__m512i)x[i + 1]);
      y[i + 1] = _mm512_unpackhi_epi32((__m512i)x[i], (__m512i)x[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {  // 4 x 4 within quarters
      z[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
      z[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
      z[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
      z[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    for (int i = 0; i < 4; ++i) {                                       // quarters
      const __m512i low = _mm512_shuffle_i32x4(z[i], z[4 + i], 0x88);   // a0 a2 b0 b2
      const __m512i high = _mm512_shuffle_i32x4(z[i], z[4 + i], 0xdd);  // a1 a3 b1 b3
      const __m512i low2 = _mm512_shuffle_i32x4(z[8 + i], z[12 + i], 0x88);
      const __m512i high2 = _mm512_shuffle_i32x4(z[8 + i], z[12 + i], 0xdd);
      x[i] = (Word)_mm512_shuffle_i32x4(low, low2, 0x88);
      x[8 + i] = (Word)_mm512_shuffle_i32x4(low, low2, 0xdd);
      x[4 + i] = (Word)_mm512_shuffle_i32x4(high, high2, 0x88);
      x[12 + i] = (Word)_mm512_shuffle_i32x4(high, high2, 0xdd);
    }
  }
};

using E4m3 = E4m3Planes<Ops>;

void promote(const float* chain, const float* sfa, const float* sfb, int rows, float* acc) {
  constexpr int kColumns = E4m3::kColumns;
  for (int row = 0; row < rows; ++row) {
    const __m512 a = _mm512_set1_ps(sfa[row]);
    for (int j = 0; j < kColumns; j += 16) {
      const __m512 s = _mm512_mul_ps(a, _mm512_loadu_ps(sfb + j));
      const int at = row * kColumns + j;
      _mm512_storeu_ps(acc + at,
                       _mm512_fmadd_ps(s, _mm512_loadu_ps(chain + at), _mm512_loadu_ps(acc + at)));
    }
  }
}

constexpr Kernel kKernel = {OCTET_ISA_AVX512, E4m3::kernel(), Bf16Kernel<Ops, 4>::kernel(),
                            &promote};

}  // namespace

const Kernel* avx512_kernel() { return &kKernel; }

}  // namespace oct::cpu
