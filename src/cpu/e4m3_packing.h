// What the e4m3 kernel for AVX-512 (e4m3_planes.h) multiplies, and how it is packed. Beside values
// there are bit planes: bit i of a byte is element 8 g + i of the step, g the number of the plane's
// vector or word. For B a byte is a column, in the order of e4m3_kernel.h's panels (byte v of lane
// i is column 16 v + i); for A all four bytes of a word are alike, so that one broadcast fills a
// vector.
//
// Exponents are looked at from the highest of the row's, or of the column's, 32 elements:
//
//   reach[i]  the exponent is at most i below the highest one (no zero has a bit here)
//   code      how far the exponent plus the trailing zeros of the significand lie below the highest
//             exponent, plus 3: from 0, a power of two as high as any, to 17; 15 stands for more
//
// Zeros have code 0 and no bit in `nonzero`.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/e4m3_codes.h"
#include "cpu/e4m3_kernel.h"
#include "cpu/kernel.h"

namespace oct::cpu {
namespace {

template <class Ops>
struct E4m3Packing {
  static constexpr int kRows = 4;
  using Base = E4m3Kernel<Ops, kRows>;
  using Word = typename Base::Word;
  using Byte = typename Base::Byte;
  static constexpr int kColumns = Base::kColumns, kStep = Base::kStep, kSteps = Base::kSteps;
  static constexpr int kGroups = kStep / 8;  // vectors of one plane
  static constexpr int kReach = 3, kCodeBits = 4, kMostCode = 15;
  static constexpr int kFewRows = 12;  // fewer go by bytes: planes are not worth making for them
  // Stands for the highest exponent code of nothing but zeros: with any other, and kReach less, it
  // is between 0 and the field of every exponent that occurs.
  static constexpr int kZeroHighest = 8;

  struct alignas(64) RowA {
    float value[kStep];
    uint8_t element[kStep];
    uint32_t reach[kReach][kGroups];
    uint32_t code[kCodeBits][kGroups];
    uint32_t negative[kGroups];
    uint32_t nonzero[kGroups];
    uint32_t highest;         // exponent code, biased for A, in all four bytes
    uint32_t smallest_codes;  // bit k: code 0 of an element that is not zero
    uint32_t clamped_codes;   // bit k: more than kMostCode
    uint32_t all_nonzero;
  };
  struct StepA {
    RowA row[kRows];
    alignas(64) uint32_t smallest_codes, clamped_codes;  // of any row
    uint32_t all_nonzero;                                // of all
  };
  struct StepB {
    typename Base::StepB bytes;
    Byte reach[kGroups][kReach];
    Byte code[kGroups][kCodeBits];
    Byte negative[kGroups];
    Byte nonzero[kGroups];
    Byte least;  // the highest exponent code less kReach - 1
    uint8_t element[kColumns][kStep];
    uint64_t zero_columns;                   // bit: byte of a column of zeros
    uint32_t smallest_codes, clamped_codes;  // bit k: of any column
    uint32_t all_nonzero;
  };

  // 32 elements, taken apart.
  struct Codes {
    __m256i exponent;  // code with the bias given, 0 for zeros
    __m256i lowest;    // exponent + trailing zeros of the significand
    __mmask32 negative, nonzero;
  };
  [[gnu::always_inline]] static inline Codes codes_of(__m256i x, int bias) {
    const __mmask32 nonzero = _mm256_test_epi8_mask(x, _mm256_set1_epi8(0x7f));
    const __m256i field = _mm256_and_si256(_mm256_srli_epi16(x, 3), _mm256_set1_epi8(15));
    const __m256i exponent = _mm256_shuffle_epi8(table(e4m3::kExponentOfField), field);
    const __m256i zeros = _mm256_shuffle_epi8(table(e4m3::kZerosOfMantissa),
                                              _mm256_and_si256(x, _mm256_set1_epi8(7)));
    return {_mm256_maskz_add_epi8(nonzero, exponent, _mm256_set1_epi8(static_cast<char>(bias))),
            _mm256_add_epi8(exponent, zeros), _mm256_movepi8_mask(x), nonzero};
  }
  static __m256i table(const uint8_t (&entries)[16]) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)entries));
  }
  // The largest of 32 unsigned bytes.
  [[gnu::always_inline]] static inline int largest_of(__m256i x) {
    const __m128i ones = _mm_set1_epi16(0xff);
    __m128i most = _mm_max_epu8(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    most = _mm_max_epu8(most, _mm_srli_epi16(most, 8));
    most = _mm_minpos_epu16(_mm_xor_si128(_mm_and_si128(most, ones), ones));
    return 0xff - (_mm_cvtsi128_si32(most) & 0xff);  // above is where it was found
  }

  static void pack_a(const void* a, int64_t ld, int rows, int k, void* packed) {
    const auto* source = static_cast<const uint8_t*>(a);
    auto* out = static_cast<StepA*>(packed);
    alignas(64) uint8_t line[kBlock];
    for (int row = 0; row < rows; row += kRows) {
      for (int r = 0; r < kRows; ++r) {
        const int have = row + r < rows ? k : 0;
        const uint8_t* codes = source + (row + r) * ld;
        if (have < kBlock) {
          if (have > 0) std::memcpy(line, codes, static_cast<std::size_t>(have));
          std::memset(line + have, 0, static_cast<std::size_t>(kBlock - have));
          codes = line;
        }
        for (int s = 0; s < kSteps; ++s) pack_row(codes + s * kStep, out[s].row[r]);
      }
      for (int s = 0; s < kSteps; ++s) {
        const RowA(&of)[kRows] = out[s].row;
        out[s].smallest_codes = of[0].smallest_codes | of[1].smallest_codes | of[2].smallest_codes |
                                of[3].smallest_codes;
        out[s].clamped_codes =
            of[0].clamped_codes | of[1].clamped_codes | of[2].clamped_codes | of[3].clamped_codes;
        out[s].all_nonzero =
            of[0].all_nonzero & of[1].all_nonzero & of[2].all_nonzero & of[3].all_nonzero;
      }
      out += kSteps;
    }
  }

  // Byte g of the mask to all bytes of word g.
  static void spread(uint32_t mask, uint32_t (&to)[kGroups]) {
    const __m128i pattern = _mm_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    _mm_store_si128((__m128i*)to,
                    _mm_shuffle_epi8(_mm_cvtsi32_si128(static_cast<int>(mask)), pattern));
  }
  static void pack_row(const uint8_t* line, RowA& out) {
    const __m256i x = _mm256_loadu_si256((const __m256i*)line);
    _mm256_store_si256((__m256i*)out.element, x);
    for (int i = 0; i < kStep; i += 16)
      widen(_mm_loadu_si128((const __m128i*)(line + i)), out.value + i);
    const Codes codes = codes_of(x, e4m3::kExponentBiasA);
    const int highest = largest_of(codes.exponent);
    const __m256i below = _mm256_sub_epi8(byte(highest), codes.exponent);
    for (int i = 0; i < kReach; ++i) {
      spread(_mm256_cmple_epu8_mask(below, byte(i)) & codes.nonzero, out.reach[i]);
    }
    __m256i code = _mm256_maskz_sub_epi8(codes.nonzero, byte(highest - e4m3::kExponentBiasA + 3),
                                         codes.lowest);
    out.clamped_codes = _mm256_cmpgt_epu8_mask(code, byte(kMostCode));
    out.smallest_codes = _mm256_mask_testn_epi8_mask(codes.nonzero, code, code);
    code = _mm256_min_epu8(code, byte(kMostCode));
    for (int i = 0; i < kCodeBits; ++i) {
      spread(_mm256_test_epi8_mask(code, byte(1 << i)), out.code[i]);
    }
    spread(codes.negative, out.negative);
    spread(codes.nonzero, out.nonzero);
    out.highest = static_cast<uint32_t>(codes.nonzero == 0 ? kZeroHighest : highest) * 0x01010101u;
    out.all_nonzero = codes.nonzero == ~__mmask32{0};
  }
  static __m256i byte(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }

  // Values of 16 codes: with their bits moved up they are FP16 numbers, 2^-8 times too small.
  static void widen(__m128i codes, float* out) {
    const __m256i x = _mm256_cvtepu8_epi16(codes);
    const __m256i magnitude = _mm256_and_si256(x, _mm256_set1_epi16(0x7f));
    const __m256i sign = _mm256_slli_epi16(_mm256_sub_epi16(x, magnitude), 8);
    const __m256i half = _mm256_or_si256(_mm256_slli_epi16(magnitude, 7), sign);
    const __mmask16 nan = _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7f));
    const __m512 value = _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0f));
    _mm512_store_ps(out, _mm512_mask_mov_ps(value, nan, _mm512_set1_ps(__builtin_nanf(""))));
  }

  static void pack_b(const void* b, int64_t ld, int columns, int k, int rows, void* packed) {
    auto* out = static_cast<StepB*>(packed);
    alignas(64) Word words[kBlock];
    alignas(64) uint8_t staged[kColumns][kBlock];
    const uint8_t* column[kColumns];
    Base::stage(b, ld, columns, k, staged, column);
    Ops::interleave(column, words);
    for (int s = 0; s < kSteps; ++s) {
      for (int i = 0; i < kStep; ++i) Base::expand(words[s * kStep + i], out[s].bytes, i);
      if (rows < kFewRows) continue;
      for (int j = 0; j < kColumns; ++j) {
        std::memcpy(out[s].element[j], column[j] + s * kStep, kStep);
      }
      slice(out[s]);
    }
  }

  // mask ? x : y
  static __m512i select(int mask, __m512i x, __m512i y) {
    return _mm512_ternarylogic_epi32(_mm512_set1_epi8(static_cast<char>(mask)), x, y, 0xca);
  }
  // One of the three rounds that transpose 8 x 8 bits.
  template <int kShift, int kMask>
  static void exchange(__m512i& x, __m512i& y) {
    const __m512i low = select(kMask, x, _mm512_slli_epi32(y, kShift));
    y = select(kMask, _mm512_srli_epi32(x, kShift), y);
    x = low;
  }

  // The planes, from the bytes.
  static void slice(StepB& out) {
    const __m512i most = _mm512_set1_epi8(kMostCode);
    __m512i highest = _mm512_setzero_si512();
    for (int k = 0; k < kStep; ++k) {
      highest = _mm512_max_epu8(highest, (__m512i)out.bytes.exponent[k]);
    }
    const __m512i from =
        _mm512_sub_epi8(highest, _mm512_set1_epi8(e4m3::kExponentBiasB - 3 - e4m3::kLowestBias));
    alignas(16) static constexpr uint8_t kReaches[16] = {0x70, 0x60, 0x40};
    const __m512i reaches = _mm512_broadcast_i32x4(_mm_load_si128((const __m128i*)kReaches));
    out.smallest_codes = out.clamped_codes = 0;
    __mmask64 all = ~__mmask64{0};
    for (int g = 0; g < kGroups; ++g) {
      __m512i x[8];
      __m512i present = _mm512_setzero_si512();
      for (int i = 0; i < 8; ++i) {
        const int k = 8 * g + i;
        const auto exponent = (__m512i)out.bytes.exponent[k];
        const auto lowest = (__m512i)out.bytes.lowest[k];
        const __mmask64 nonzero = _mm512_test_epi8_mask(exponent, exponent);
        all &= nonzero;
        present = _mm512_mask_or_epi32(present, 0xffff, present,
                                       _mm512_maskz_set1_epi8(nonzero, static_cast<char>(1 << i)));
        const __m512i code =
            _mm512_maskz_sub_epi8(nonzero, from, _mm512_and_si512(lowest, _mm512_set1_epi8(0x7f)));
        const bool clamped = _mm512_cmpgt_epu8_mask(code, most) != 0;
        const bool smallest = _mm512_mask_testn_epi8_mask(nonzero, code, code) != 0;
        out.clamped_codes |= static_cast<uint32_t>(clamped) << k;
        out.smallest_codes |= static_cast<uint32_t>(smallest) << k;
        const __m512i below = _mm512_min_epu8(_mm512_sub_epi8(highest, exponent), most);
        const __m512i reach = _mm512_maskz_shuffle_epi8(nonzero, reaches, below);
        x[i] = _mm512_or_si512(_mm512_min_epu8(code, most), reach);
        x[i] = select(0x80, lowest, x[i]);
      }
      for (int i = 0; i < 8; i += 2) exchange<1, 0x55>(x[i], x[i + 1]);
      for (int i = 0; i < 8; i += 4) {
        exchange<2, 0x33>(x[i], x[i + 2]);
        exchange<2, 0x33>(x[i + 1], x[i + 3]);
      }
      for (int i = 0; i < 4; ++i) exchange<4, 0x0f>(x[i], x[i + 4]);
      for (int i = 0; i < kCodeBits; ++i) out.code[g][i] = (Byte)x[i];
      for (int i = 0; i < kReach; ++i) out.reach[g][i] = (Byte)x[4 + i];
      out.negative[g] = (Byte)x[7];
      out.nonzero[g] = (Byte)present;
    }
    out.zero_columns = _mm512_testn_epi8_mask(highest, highest);
    out.least = (Byte)_mm512_sub_epi8(_mm512_mask_mov_epi8(highest, out.zero_columns,
                                                           _mm512_set1_epi8(kZeroHighest)),
                                      _mm512_set1_epi8(kReach - 1));
    out.all_nonzero = all == ~__mmask64{0};
  }
};

}  // namespace
}  // namespace oct::cpu
