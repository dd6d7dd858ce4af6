// Many tensor-core instructions on e4m3 at once, with the bits of ref/tensor_core.h at a large
// part of the speed of a plain float matrix product. Written once, for any width of vector; the
// files kernel_*.cpp supply the vectors.
//
// The law: all 32 products and the incoming accumulator c are cut toward zero to multiples of
// one unit, u = 2^(E-13), where E is the largest exponent among them; the sum of the cut terms
// is exact, and is cut toward zero to 13 bits behind its leading one. The trick is to let the
// float adder do the cutting.
//
// 1. A float in [2^(E+10), 2^(E+11)) has its last bit worth u. Start an accumulator at the
//    middle of that interval, base = 1.5 * 2^(E+10), with the processor rounding toward zero.
//    Adding a product a * b to it by a fused multiply-add rounds the exact sum to a multiple of
//    u, downward, because the accumulator is positive; it was a multiple already, so the
//    product has been rounded down. 32 products and c move it by less than 136 * 2^E: it never
//    leaves the interval.
// 2. Down is toward zero for positive products. A negative product that is not a multiple of u
//    comes out one u too low. Whether it is a multiple follows from its lowest set bit, hence
//    from two small numbers that are known of every element. So for every output the negative
//    products that lose bits are counted, in bytes, and the count is added to the accumulator's
//    bit pattern as an integer: the last bit is worth u.
// 3. accumulator - base is the sum, exact and normalised by the float adder. Clearing its ten
//    low bits is the cut to 13. NaN stays NaN. x - x is +0 when rounding toward zero.
// 4. c is cut by itself first: with bs = base carrying the sign of c, (bs + c) - bs.
// 5. E comes from bytes too: the largest sum of two exponent codes over the 32 elements, then
//    against c's own exponent field.
//
// Lanes are columns of D. A panel is four float vectors wide, and its columns' bytes share one
// vector: byte v of 32-bit lane i belongs to lane i of float vector v. So bytes are taken to
// their floats' lanes by shifts, and nothing ever crosses lanes.
#pragma once

#include <cfenv>
#include <cstdint>
#include <cstring>

#include "cpu/e4m3_codes.h"
#include "cpu/kernel.h"

namespace oct::cpu {
namespace {

// Ops: vector types Float, Word (uint32_t), Int (int32_t), Byte (uint8_t), all of one size, and
//
//   splat(float), splat(uint32_t)
//   fma(a, b, c)               a * b + c for exact products: one rounding
//   max_unsigned(x, y)         of bytes
//   count_below(n, x, limit)   n + 1 in bytes where x < limit as signed numbers
//   interleave(columns, w)     w[k][i] = byte k of columns i, L + i, 2L + i, 3L + i, for k < kBlock
//   kFused                     count beside the multiply-adds, where registers suffice for both
//   kLookup                    there are lookup(table, index), shuffle(x, pattern) and unpackings,
//                              each within 16 bytes
template <class Ops, int kRows>
struct E4m3Kernel {
  using Float = typename Ops::Float;
  using Word = typename Ops::Word;
  using Int = typename Ops::Int;
  using Byte = typename Ops::Byte;
  static constexpr int kStep = 32, kSteps = kBlock / kStep;
  static constexpr int kLanes = static_cast<int>(sizeof(Float) / sizeof(float));
  static constexpr int kColumns = 4 * kLanes;

  struct StepA {
    e4m3::Element at[kStep][kRows];
  };
  struct StepB {
    Float value[kStep][4];
    Byte exponent[kStep];
    Byte lowest[kStep];
  };

  static void pack_a(const void* a, int64_t ld, int rows, int k, void* packed) {
    const auto* source = static_cast<const uint8_t*>(a);
    auto* out = static_cast<StepA*>(packed);
    uint8_t line[kRows][kBlock];
    const e4m3::Elements& table = e4m3::kElements;
    for (int row = 0; row < rows; row += kRows) {
      for (int r = 0; r < kRows; ++r) {
        const int have = row + r < rows ? k : 0;
        if (have > 0) std::memcpy(line[r], source + (row + r) * ld, static_cast<std::size_t>(have));
        std::memset(line[r] + have, 0, static_cast<std::size_t>(kBlock - have));
      }
      for (int i = 0; i < kBlock; ++i) {
        StepA& step = out[i / kStep];
        for (int r = 0; r < kRows; ++r) step.at[i % kStep][r] = table.of[line[r][i]];
      }
      out += kSteps;
    }
  }

  static void pack_b(const void* b, int64_t ld, int columns, int k, int /*rows*/, void* packed) {
    auto* out = static_cast<StepB*>(packed);
    alignas(64) uint8_t staged[kColumns][kBlock];
    alignas(64) Word words[kBlock];
    const uint8_t* column[kColumns];
    stage(b, ld, columns, k, staged, column);
    Ops::interleave(column, words);
    for (int i = 0; i < kBlock; ++i) expand(words[i], out[i / kStep], i % kStep);
  }

  // Where every column's kBlock codes lie; what is missing is filled up with zeros in `staged`.
  static void stage(const void* b, int64_t ld, int columns, int k,
                    uint8_t (&staged)[kColumns][kBlock], const uint8_t* (&column)[kColumns]) {
    const auto* source = static_cast<const uint8_t*>(b);
    for (int j = 0; j < kColumns; ++j) {
      if (j < columns && k == kBlock) {
        column[j] = source + j * ld;
        continue;
      }
      const int have = j < columns ? k : 0;
      if (have > 0) std::memcpy(staged[j], source + j * ld, static_cast<std::size_t>(have));
      std::memset(staged[j] + have, 0, static_cast<std::size_t>(kBlock - have));
      column[j] = staged[j];
    }
  }

  // The elements of one k for all columns.
  [[gnu::always_inline]] static inline void expand(Word word, StepB& out, int k) {
    const auto x = (Byte)word;
    const Byte zero = (Byte)((x & 0x7f) == 0);
    const Byte field = (Byte)(word >> 3) & 15;
    if constexpr (Ops::kLookup) {
      look_up_values(word, out.value[k]);
      const Byte exponent = Ops::lookup(e4m3::kExponentOfField, field);
      out.exponent[k] = (exponent + static_cast<uint8_t>(e4m3::kExponentBiasB)) & ~zero;
      const Byte lowest =
          (exponent + Ops::lookup(e4m3::kZerosOfMantissa, x & 7) + uint8_t{e4m3::kLowestBias}) |
          (x & 0x80);
      out.lowest[k] = (lowest & ~zero) | (zero & uint8_t{e4m3::kLowestZero});
      return;
    }
    work_out_values(word, out.value[k]);
    // A comparison is all ones where true, which is -1. Subnormals have the exponent of field 1.
    const Byte biased = field - (Byte)(field == 0);
    const Byte zeros = Byte{} - (Byte)((x & 1) == 0) - (Byte)((x & 3) == 0) - (Byte)((x & 7) == 0);
    out.exponent[k] = (biased + static_cast<uint8_t>(e4m3::kExponentBiasB - 7)) & ~zero;
    const Byte lowest = (biased + zeros + static_cast<uint8_t>(e4m3::kLowestBias - 7)) | (x & 0x80);
    out.lowest[k] = (lowest & ~zero) | (zero & uint8_t{e4m3::kLowestZero});
  }

  // Values by arithmetic in 32-bit lanes.
  [[gnu::always_inline]] static inline void work_out_values(Word word, Float (&value)[4]) {
    for (int v = 0; v < 4; ++v) {
      const Word magnitude = (word >> (8 * v)) & 0x7fu;
      const Word sign = (word << (24 - 8 * v)) & 0x80000000u;
      // Normal numbers by moving the fields; subnormal ones are a whole number of 2^-9.
      const Word normal = (magnitude << 20) + (120u << 23);
      const Word small =
          (Word)(__builtin_convertvector((Int)magnitude, Float) * Ops::splat(0x1p-9f));
      const Word is_small = (Word)((Int)magnitude < 8);
      const Word is_nan = (Word)((Int)magnitude == 0x7f);
      value[v] = (Float)((small & is_small) | (normal & ~is_small) | (is_nan & 0x7fc00000u) | sign);
    }
  }

  // Values by bytes: every e4m3 value is a BF16 value, whose two bytes are made for all columns at
  // once and then put together. Takes 40 % of the operations of work_out_values().
  [[gnu::always_inline]] static inline void look_up_values(Word word, Float (&value)[4]) {
    const auto x = (Byte)word;
    const Byte small = (Byte)((x & 0x78) == 0);
    const Byte nan = (Byte)((x & 0x7f) == 0x7f);
    Byte high = ((Byte)(word >> 4) & 7) + 0x3c;
    Byte low = (Byte)(word << 4) & 0xf0;
    high = (high & ~small) | (Ops::lookup(e4m3::kSmallHigh, x & 15) & small);
    low = (low & ~small) | (Ops::lookup(e4m3::kSmallLow, x & 15) & small);
    high |= (nan & 0x7f) | (x & 0x80);
    // Byte v of 32-bit lane j goes to where the two unpackings take it to lane j of vector v.
    high = Ops::shuffle(high, e4m3::kTransposed);
    low = Ops::shuffle(low, e4m3::kTransposed);
    const Byte first = Ops::unpack_bytes_low(low, high), second = Ops::unpack_bytes_high(low, high);
    value[0] = (Float)Ops::unpack_pairs_low(Byte{}, first);
    value[1] = (Float)Ops::unpack_pairs_high(Byte{}, first);
    value[2] = (Float)Ops::unpack_pairs_low(Byte{}, second);
    value[3] = (Float)Ops::unpack_pairs_high(Byte{}, second);
  }

  // Byte v of every 32-bit lane.
  [[gnu::always_inline]] static inline Word byte_of(Byte x, int v) {
    if (v == 3) return (Word)x >> 24;
    return ((Word)x >> (8 * v)) & 0xffu;
  }
  // 1.5 * 2^(E+10), from the bytes E + 127 + 10.
  [[gnu::always_inline]] static inline Float base_of(Byte field, int v) {
    const Word moved = v == 3 ? (Word)field >> 1 : (Word)field << (23 - 8 * v);
    return (Float)((moved & 0x7f800000u) | (1u << 22));
  }

  // One instruction for kRows rows: c becomes the next accumulator.
  template <bool kFirst>
  [[gnu::always_inline]] static inline void instruction(const StepA& a, const StepB& b,
                                                        Float (&c)[kRows][4]) {
    // The largest exponent field: of the products, then of c.
    Byte top[kRows];
    for (int r = 0; r < kRows; ++r) top[r] = (Byte)Ops::splat(0x01010101u * e4m3::kLowestField);
#pragma GCC unroll 4
    for (int k = 0; k < kStep; ++k) {
      const Byte codes = b.exponent[k];
      for (int r = 0; r < kRows; ++r) {
        top[r] = Ops::max_unsigned(top[r], codes + (Byte)Ops::splat(a.at[k][r].exponent));
      }
    }
    if constexpr (!kFirst) {
      for (int r = 0; r < kRows; ++r) {
        const Word fields = (((Word)c[r][0] >> 23) & 0xffu) | (((Word)c[r][1] >> 15) & 0xff00u) |
                            (((Word)c[r][2] >> 7) & 0xff0000u) |
                            (((Word)c[r][3] << 1) & 0xff000000u);
        top[r] = Ops::max_unsigned(top[r], (Byte)fields);
      }
    }

    // The accumulators start at base + cut(c).
    Float acc[kRows][4], base[kRows][4];
    for (int r = 0; r < kRows; ++r) {
      const Byte raised = top[r] + 10;
      for (int v = 0; v < 4; ++v) {
        base[r][v] = base_of(raised, v);
        if constexpr (kFirst) {
          acc[r][v] = base[r][v];
        } else {
          const Float signed_base = (Float)((Word)base[r][v] | ((Word)c[r][v] & 0x80000000u));
          acc[r][v] = ((signed_base + c[r][v]) - signed_base) + base[r][v];
        }
      }
    }

    // The products, and beside them the count of negative ones that lose bits.
    Byte limit[kRows], count[kRows];
    for (int r = 0; r < kRows; ++r) {
      limit[r] = top[r] + static_cast<uint8_t>(e4m3::kLimitBias & 0xff);
      count[r] = Byte{};
    }
    if constexpr (Ops::kFused) {
#pragma GCC unroll 2
      for (int k = 0; k < kStep; ++k) {
        multiply_add(a, b, k, acc);
        count_lost(a, b, k, limit, count);
      }
    } else {
#pragma GCC unroll 2
      for (int k = 0; k < kStep; ++k) multiply_add(a, b, k, acc);
#pragma GCC unroll 4
      for (int k = 0; k < kStep; ++k) count_lost(a, b, k, limit, count);
    }

    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < 4; ++v) {
        const Float sum = (Float)((Word)acc[r][v] + byte_of(count[r], v)) - base[r][v];
        c[r][v] = (Float)((Word)sum & 0xfffffc00u);
      }
    }
  }

  [[gnu::always_inline]] static inline void multiply_add(const StepA& a, const StepB& b, int k,
                                                         Float (&acc)[kRows][4]) {
    Float x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = Ops::splat(a.at[k][r].value);
    for (int v = 0; v < 4; ++v) {
      const Float y = b.value[k][v];
      for (int r = 0; r < kRows; ++r) acc[r][v] = Ops::fma(x[r], y, acc[r][v]);
    }
  }

  [[gnu::always_inline]] static inline void count_lost(const StepA& a, const StepB& b, int k,
                                                       const Byte (&limit)[kRows],
                                                       Byte (&count)[kRows]) {
    const Byte codes = b.lowest[k];
    for (int r = 0; r < kRows; ++r) {
      count[r] = Ops::count_below(count[r], codes + (Byte)Ops::splat(a.at[k][r].lowest), limit[r]);
    }
  }

  // Instruction `step` of the chains of kRows rows.
  [[gnu::always_inline]] static inline void advance(const StepA* a, const StepB* b, int step,
                                                    bool first, Float (&c)[kRows][4]) {
    if (first && step == 0) {
      instruction<true>(a[step], b[step], c);
    } else {
      instruction<false>(a[step], b[step], c);
    }
  }

  // Not inlined: the compiler must not move arithmetic over a change of the rounding mode.
  [[gnu::noinline]] static void multiply_toward_zero(const StepA* a, const StepB* b, int rows,
                                                     int steps, bool first, float* chain) {
    for (int row = 0; row < rows; row += kRows) {
      Float c[kRows][4];
      if (!first) std::memcpy(&c, chain, sizeof c);
      for (int step = 0; step < steps; ++step) advance(a, b, step, first, c);
      std::memcpy(chain, &c, sizeof c);
      a += kSteps;
      chain += kRows * kColumns;
    }
  }

  static void multiply(const void* a, const void* b, int rows, int steps, bool first,
                       float* chain) {
    std::fesetround(FE_TOWARDZERO);
    multiply_toward_zero(static_cast<const StepA*>(a), static_cast<const StepB*>(b), rows, steps,
                         first, chain);
    std::fesetround(FE_TONEAREST);
  }

  static constexpr OperandKernel kernel() {
    return {kRows,
            kColumns,
            kStep,
            static_cast<int64_t>(sizeof(StepA)) * kSteps / kRows,
            static_cast<int64_t>(sizeof(StepB)) * kSteps,
            &pack_a,
            &pack_b,
            &multiply};
  }
};

}  // namespace
}  // namespace oct::cpu
