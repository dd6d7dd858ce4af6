// The e4m3 kernel for AVX-512: e4m3_kernel.h's arithmetic, with most of what it does in bytes done
// in bits, eight elements of K at a time.
//
// 1. The largest exponent E. Seen from `bound`, the row's highest exponent plus the column's, it is
//    nearly always 0, 1 or 2 lower. It is at most i lower if for some element of K and some j the
//    exponent of A is at most j below its highest and that of B at most i - j: an AND and an OR of
//    planes, which one instruction does for 64 columns. The accumulator comes after that.
// 2. The count. With t = 2 - (bound - E), a product loses bits exactly when its two codes and t add
//    up to 16 or more. Planes are added as a circuit does, with majorities for the carries and
//    parities for the sums; t, from 0 to 7, is the same for all elements and has three planes. The
//    bits that come out, where the signs differ, are counted.
// 3. Where this does not hold the output is repaired, by itself: t is not within 0 to 7, or it is 0
//    and one of the two codes may be a 16 or 17 that was clamped and the other a 0 (otherwise more
//    than 15 is certain). In Gaussian data that meets one row of 64 columns in 25. Data with longer
//    tails soon makes the rest of a step go by bytes.
// 4. The cut to 13 bits waits for the chain's last instruction: what comes in between cuts to a
// unit
//    at least as large.
//
// A step takes all rows before the next one, for a panel does not fit the first-level cache. Rows
// are looked at one group ahead of the multiply-adds, so that whether to repair is known by then.
#pragma once

#include <immintrin.h>

#include <cfenv>
#include <cstdint>
#include <cstring>

#include "cpu/e4m3_codes.h"
#include "cpu/e4m3_packing.h"
#include "cpu/kernel.h"

namespace oct::cpu {
namespace {

template <class Ops>
struct E4m3Planes : E4m3Packing<Ops> {
  using Packing = E4m3Packing<Ops>;
  using Packing::kCodeBits, Packing::kColumns, Packing::kFewRows, Packing::kGroups, Packing::kReach,
      Packing::kRows, Packing::kStep, Packing::kSteps, Packing::kZeroHighest;
  using typename Packing::Byte;
  using typename Packing::Codes;
  using typename Packing::RowA;
  using typename Packing::StepA;
  using typename Packing::StepB;
  // Repairs, in rows, that are worth as much as going by bytes: so many, and so many for every
  // group of kRows done.
  static constexpr int kPatience = 4, kPatienceAGroup = 2;

  static __m512i splat(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }

  // The exponent fields of four vectors, in the order of a panel's bytes. Each byte of the control
  // is where in its 64 bits eight are taken: bit 23 of either float.
  [[gnu::always_inline]] static inline __m512i fields_of(const float* chain) {
    __m512i c[4];
    for (int v = 0; v < 4; ++v) c[v] = _mm512_load_si512(chain + 16 * v);
    const __m512i control = _mm512_set1_epi64(0x3737373717171717);
    __m512i f = _mm512_multishift_epi64_epi8(control, c[0]);
    f = _mm512_mask_multishift_epi64_epi8(f, 0x2222222222222222, control, c[1]);
    f = _mm512_mask_multishift_epi64_epi8(f, 0x4444444444444444, control, c[2]);
    f = _mm512_mask_multishift_epi64_epi8(f, 0x8888888888888888, control, c[3]);
    return f;
  }

  // What is known of kRows rows before anything is multiplied.
  struct Notes {
    alignas(64) uint8_t top[kRows][kColumns];    // exponent field of E
    alignas(64) uint8_t count[kRows][kColumns];  // negative products that lose bits
    uint64_t bad[kRows];                         // bit: byte of a column with t outside 0 to 7
  };

  // Sets the bad columns of one row right. `c` is the row's accumulator, or null. Returns how much
  // trouble that was, for kPatience.
  [[gnu::noinline]] static int repair(const RowA& a, const StepB& b, const float* c, uint64_t bad,
                                      uint8_t (&top)[kColumns], uint8_t (&count)[kColumns]) {
    if (a.highest == kZeroHighest * 0x01010101u) return 0;
    if (((a.smallest_codes & b.clamped_codes) | (a.clamped_codes & b.smallest_codes)) != 0) {
      bad |= _mm512_cmpeq_epi8_mask(_mm512_load_si512(top),
                                    _mm512_add_epi8((__m512i)b.least, splat(a.highest)));
    }
    bad &= ~b.zero_columns;
    if (bad == 0) return 0;
    if (__builtin_popcountll(bad) > 6) {  // then that is faster
      by_bytes<1>(&a, b, c, &top, &count);
      return 3;
    }
    const Codes x =
        Packing::codes_of(_mm256_load_si256((const __m256i*)a.element), e4m3::kExponentBiasA);
    for (; bad != 0; bad &= bad - 1) {
      const int byte = __builtin_ctzll(bad), j = byte / 4 + byte % 4 * (kColumns / 4);
      const Codes y =
          Packing::codes_of(_mm256_load_si256((const __m256i*)b.element[j]), e4m3::kExponentBiasB);
      int e = Packing::largest_of(_mm256_add_epi8(x.exponent, y.exponent));
      if (e < e4m3::kLowestField) e = e4m3::kLowestField;
      if (c != nullptr) {
        uint32_t bits;
        __builtin_memcpy(&bits, c + j, sizeof bits);
        const int field = static_cast<int>(bits >> 23 & 0xff);
        if (field > e) e = field;
      }
      const __m256i lowest = _mm256_add_epi8(x.lowest, y.lowest);
      const __mmask32 lost =
          _mm256_cmplt_epi8_mask(lowest, _mm256_set1_epi8(static_cast<char>(e - 127 - 7))) &
          (x.negative ^ y.negative) & x.nonzero & y.nonzero;
      top[byte] = static_cast<uint8_t>(e);
      count[byte] = static_cast<uint8_t>(__builtin_popcount(lost));
    }
    return 1;
  }

  // Top and count of kCount rows over bytes, as e4m3_kernel.h does it. `c` as above.
  template <int kCount>
  [[gnu::noinline]] static void by_bytes(const RowA* a, const StepB& b, const float* c,
                                         uint8_t (*tops)[kColumns], uint8_t (*counts)[kColumns]) {
    Byte top[kCount], limit[kCount], count[kCount];
    for (int r = 0; r < kCount; ++r) {
      top[r] = (Byte)splat(0x01010101u * e4m3::kLowestField);
      if (c != nullptr) top[r] = Ops::max_unsigned(top[r], (Byte)fields_of(c + r * kColumns));
    }
#pragma GCC unroll 4
    for (int k = 0; k < kStep; ++k) {
      for (int r = 0; r < kCount; ++r) {
        const e4m3::Element& x = e4m3::kElements.of[a[r].element[k]];
        top[r] = Ops::max_unsigned(top[r], b.bytes.exponent[k] + (Byte)splat(x.exponent));
      }
    }
    for (int r = 0; r < kCount; ++r) {
      limit[r] = top[r] + static_cast<uint8_t>(e4m3::kLimitBias & 0xff);
      count[r] = Byte{};
    }
#pragma GCC unroll 4
    for (int k = 0; k < kStep; ++k) {
      for (int r = 0; r < kCount; ++r) {
        const e4m3::Element& x = e4m3::kElements.of[a[r].element[k]];
        count[r] = Ops::count_below(count[r], b.bytes.lowest[k] + (Byte)splat(x.lowest), limit[r]);
      }
    }
    for (int r = 0; r < kCount; ++r) {
      _mm512_store_si512(tops[r], (__m512i)top[r]);
      _mm512_store_si512(counts[r], (__m512i)count[r]);
    }
  }

  // Fills in the notes; kFirst: there is no c, kZeros: some elements are zero.
  template <bool kFirst, bool kZeros>
  [[gnu::noinline]] static void look(const StepA& a, const StepB& b, const float* chain,
                                     Notes& notes) {
    __m512i within[kRows][kReach];
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < kReach; ++i) within[r][i] = _mm512_setzero_si512();
    }
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      for (int r = 0; r < kRows; ++r) {
        for (int i = 0; i < kReach; ++i) {
          for (int j = 0; j <= i; ++j) {
            within[r][i] = _mm512_ternarylogic_epi32(within[r][i], (__m512i)b.reach[g][i - j],
                                                     splat(a.row[r].reach[j][g]), 0xf8);
          }
        }
      }
    }
    __m512i t[kRows][3];  // planes: every byte is 0 or 0xff
    for (int r = 0; r < kRows; ++r) {
      // The field of the least exponent within reach; t is counted from there.
      const __m512i least = _mm512_add_epi8((__m512i)b.least, splat(a.row[r].highest));
      const __m512i one = _mm512_set1_epi8(1);
      __m512i level =
          _mm512_mask_sub_epi8(least,
                               _mm512_testn_epi8_mask(within[r][kReach - 1], within[r][kReach - 1]),
                               least, one);
      for (int i = 0; i < kReach - 1; ++i) {
        const __mmask64 k = _mm512_test_epi8_mask(within[r][i], within[r][i]);
        level = _mm512_mask_add_epi8(level, k, level, one);
      }
      if constexpr (!kFirst) level = _mm512_max_epu8(level, fields_of(chain + r * kColumns));
      _mm512_store_si512(notes.top[r], level);
      const __m512i shift = _mm512_sub_epi8(level, least);
      notes.bad[r] = _mm512_cmpgt_epu8_mask(shift, _mm512_set1_epi8(7));
      const __m512i bit[3] = {_mm512_set1_epi64(static_cast<long long>(0xff00ff00ff00ff00)),
                              _mm512_set1_epi64(static_cast<long long>(0xffff0000ffff0000)),
                              _mm512_set1_epi64(static_cast<long long>(0xffffffff00000000))};
      for (int i = 0; i < (kFirst ? 2 : 3); ++i) t[r][i] = _mm512_shuffle_epi8(bit[i], shift);
      if (kFirst) t[r][2] = _mm512_setzero_si512();
    }

    __m512i count[kRows];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const __m512i b0 = (__m512i)b.code[g][0], b1 = (__m512i)b.code[g][1],
                    b2 = (__m512i)b.code[g][2], b3 = (__m512i)b.code[g][3];
      for (int r = 0; r < kRows; ++r) {
        const RowA& row = a.row[r];
        const __m512i a0 = splat(row.code[0][g]), a1 = splat(row.code[1][g]),
                      a2 = splat(row.code[2][g]), a3 = splat(row.code[3][g]);
        // k carries and s sums of the three, r carries of adding those two.
        const __m512i k1 = majority(t[r][0], b0, a0);
        const __m512i s1 = parity(t[r][1], b1, a1), k2 = majority(t[r][1], b1, a1);
        __m512i s2, k3;
        if constexpr (kFirst) {
          s2 = parity(k2, b2, a2), k3 = majority(k2, b2, a2);
        } else {
          s2 = parity(t[r][2], b2, a2), k3 = majority(t[r][2], b2, a2);
        }
        const __m512i s3 = parity(k3, b3, a3), k4 = majority(k3, b3, a3);
        const __m512i r2 = _mm512_and_si512(s1, k1);
        const __m512i r3 = kFirst ? _mm512_and_si512(s2, r2) : majority(s2, k2, r2);
        __m512i lost = _mm512_ternarylogic_epi32(k4, s3, r3, 0xf8);  // k4 | (s3 & r3)
        lost =                                                       // and signs differ
            _mm512_ternarylogic_epi32(lost, (__m512i)b.negative[g], splat(row.negative[g]), 0x60);
        if constexpr (kZeros) {
          lost =
              _mm512_ternarylogic_epi32(lost, (__m512i)b.nonzero[g], splat(row.nonzero[g]), 0x80);
        }
        const __m512i n = _mm512_popcnt_epi8(lost);
        count[r] = g == 0 ? n : _mm512_add_epi8(count[r], n);
      }
    }
    for (int r = 0; r < kRows; ++r) _mm512_store_si512(notes.count[r], count[r]);
  }

  // The sums: c becomes the next accumulator.
  template <bool kFirst, bool kLast>
  [[gnu::always_inline]] static inline void add_up(const StepA& a, const StepB& b,
                                                   const Notes& notes, float* chain) {
    __m512 base[kRows][4], acc[kRows][4];
    for (int r = 0; r < kRows; ++r) {
      const __m512i raised = _mm512_add_epi8(_mm512_load_si512(notes.top[r]), _mm512_set1_epi8(10));
      for (int v = 0; v < 4; ++v) {
        const __m512i moved =
            v == 3 ? _mm512_srli_epi32(raised, 1) : _mm512_slli_epi32(raised, 23 - 8 * v);
        base[r][v] =
            (__m512)_mm512_ternarylogic_epi32(moved, splat(0x7f800000u), splat(1u << 22), 0xea);
        if constexpr (kFirst) {
          acc[r][v] = base[r][v];
        } else {
          const __m512 c = _mm512_load_ps(chain + r * kColumns + 16 * v);
          // c is cut as it is added: downward, or upward if it is negative. GCC 12 takes two
          // additions of the same numbers for one, whatever their rounding: these look different.
          const __mmask16 negative = _mm512_movepi32_mask((__m512i)c);
          acc[r][v] = _mm512_add_ps(base[r][v], c);
          __m512 again = c;
          asm("" : "+v"(again));
          acc[r][v] = _mm512_mask_add_round_ps(acc[r][v], negative, base[r][v], again,
                                               _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
        }
      }
    }
#pragma GCC unroll 2
    for (int k = 0; k < kStep; ++k) {
      for (int v = 0; v < 4; ++v) {
        const auto y = (__m512)b.bytes.value[k][v];
        for (int r = 0; r < kRows; ++r) {
          acc[r][v] = _mm512_fmadd_ps(_mm512_set1_ps(a.row[r].value[k]), y, acc[r][v]);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      const __m512i count = _mm512_load_si512(notes.count[r]);
      for (int v = 0; v < 4; ++v) {
        // A dot product of four bytes with a single one: byte v of the count is added to the lane.
        const __m512i fixed = _mm512_dpbusd_epi32((__m512i)acc[r][v], count, splat(1u << (8 * v)));
        const __m512 sum = _mm512_sub_ps((__m512)fixed, base[r][v]);
        _mm512_store_si512(chain + r * kColumns + 16 * v,
                           kLast ? _mm512_and_si512((__m512i)sum, splat(0xfffffc00u))
                                 : (__m512i)sum);
      }
    }
  }

  static __m512i majority(__m512i x, __m512i y, __m512i z) {
    return _mm512_ternarylogic_epi32(x, y, z, 0xe8);
  }
  static __m512i parity(__m512i x, __m512i y, __m512i z) {
    return _mm512_ternarylogic_epi32(x, y, z, 0x96);
  }

  // Not inlined: the compiler must not move arithmetic over a change of the rounding mode.
  template <bool kFirst, bool kLast>
  [[gnu::noinline]] static void one_step(const StepA* a, const StepB& b, int rows, float* chain) {
    Notes notes[2];
    const int groups = rows / kRows;
    int trouble = 0;
    bool bytes = rows < kFewRows;
    prepare<kFirst>(a[0], b, bytes, chain, notes[0]);
    for (int i = 0; i < groups; ++i) {
      const StepA& step = a[i * kSteps];
      float* at = chain + i * kRows * kColumns;
      Notes& now = notes[i % 2];
      if (!bytes && __builtin_expect(needs_repair(step, b, now), 0)) {
        for (int r = 0; r < kRows; ++r) {
          trouble += repair(step.row[r], b, kFirst ? nullptr : at + r * kColumns, now.bad[r],
                            now.top[r], now.count[r]);
        }
        bytes = trouble > kPatience + kPatienceAGroup * i;
      }
      if (i + 1 < groups) {
        prepare<kFirst>(a[(i + 1) * kSteps], b, bytes, at + kRows * kColumns, notes[(i + 1) % 2]);
      }
      add_up<kFirst, kLast>(step, b, now, at);
    }
  }
  [[gnu::always_inline]] static inline bool needs_repair(const StepA& a, const StepB& b,
                                                         const Notes& notes) {
    return ((notes.bad[0] | notes.bad[1] | notes.bad[2] | notes.bad[3]) != 0) |
           (((a.smallest_codes & b.clamped_codes) | (a.clamped_codes & b.smallest_codes)) != 0);
  }
  template <bool kFirst>
  [[gnu::always_inline]] static inline void prepare(const StepA& a, const StepB& b, bool bytes,
                                                    const float* chain, Notes& notes) {
    if (bytes) {
      by_bytes<kRows>(a.row, b, kFirst ? nullptr : chain, notes.top, notes.count);
    } else if (a.all_nonzero & b.all_nonzero) {
      look<kFirst, false>(a, b, chain, notes);
    } else {
      look<kFirst, true>(a, b, chain, notes);
    }
  }

  static void multiply(const void* a, const void* b, int rows, int steps, bool first,
                       float* chain) {
    std::fesetround(FE_TOWARDZERO);
    const auto* panel = static_cast<const StepB*>(b);
    const auto* block = static_cast<const StepA*>(a);
    for (int step = 0; step < steps; ++step) {
      const bool starts = first && step == 0, ends = step + 1 == steps;
      const auto run = starts ? (ends ? one_step<true, true> : one_step<true, false>)
                              : (ends ? one_step<false, true> : one_step<false, false>);
      run(block + step, panel[step], rows, chain);
    }
    std::fesetround(FE_TONEAREST);
  }

  static constexpr OperandKernel kernel() {
    return {kRows,
            kColumns,
            kStep,
            static_cast<int64_t>(sizeof(StepA)) * kSteps / kRows,
            static_cast<int64_t>(sizeof(StepB)) * kSteps,
            &Packing::pack_a,
            &Packing::pack_b,
            &multiply};
  }
};

}  // namespace
}  // namespace oct::cpu
