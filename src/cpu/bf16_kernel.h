// Many tensor-core instructions on BF16 at once, with the bits of ref/tensor_core.h. The trick
// is that of e4m3_kernel.h, which is to be read first; what differs:
//
// 1. A unit is 2^(E-25), so the sums need 32 bits: accumulators are doubles, base = 1.5 *
//    2^(E+27).
// 2. E is never below -133.
// 3. Exponents need codes of 16 bits. Piece v of 64-bit lane i belongs to lane i of double
//    vector v.
// 4. The result is cut to the 23 bits of a float by clearing 29 bits of the double. That is not
//    enough below 2^-126, where floats have fewer bits, nor at 2^128, where they end: such
//    results, which are rare, are found by their exponents and finished one by one.
// 5. Infinities occur. They and NaN go through the float units like everything else; only the
//    count must not be added to their bit patterns, so it is made a double of its own.
#pragma once

#include <cfenv>
#include <cstdint>
#include <cstring>

#include "cpu/kernel.h"

namespace oct::cpu {
namespace {

// Ops: vector types Double, Long (uint64_t), Short (uint16_t), SignedShort, all of one size, and
//   splat(double), splat(uint64_t), fma(a, b, c) as in e4m3_kernel.h
//   max_signed(x, y)         16-bit pieces
//   count_below(n, x, limit) n + 1 in 16-bit pieces where x < limit as signed numbers
template <class Ops, int kRows>
struct Bf16Kernel {
  using Double = typename Ops::Double;
  using Long = typename Ops::Long;
  using Short = typename Ops::Short;
  using SignedShort = typename Ops::SignedShort;
  static constexpr int kStep = 16, kSteps = kBlock / kStep;
  static constexpr int kLanes = static_cast<int>(sizeof(Double) / sizeof(double));
  static constexpr int kColumns = 4 * kLanes;

  // The sum of two exponent codes is the exponent field that a double of the product's exponent
  // has, E + 1023; zero operands make it negative.
  static constexpr int kExponentBiasA = 385, kExponentBiasB = 384, kExponentZero = -4096;
  static constexpr int kLowestField = 1023 - 133;
  // Lowest-bit codes: la + 512, plus 0x8000 for a negative operand. A negative product that loses
  // bits has la + lb - 14 < E - 25; its codes' sum is below (exponent field of E) + kLimitBias.
  static constexpr int kLowestBias = 512, kLowestZero = 8192;
  static constexpr int kLimitBias = 2 * kLowestBias - 0x8000 - 11 - 1023;

  struct StepA {
    double value[kStep][kRows];
    uint64_t exponent[kStep][kRows];
    uint64_t lowest[kStep][kRows];
  };
  struct StepB {
    Double value[kStep][4];
    Short exponent[kStep];
    Short lowest[kStep];
  };

  // Values and codes of four vectors of elements: piece v of each 64-bit lane.
  struct Expanded {
    Double value[4];
    Short exponent, lowest;
  };
  [[gnu::always_inline]] static inline Expanded expand(Long word, int exponent_bias) {
    Expanded out;
    const Short magnitude = (Short)word & 0x7fff;
    const Short special = (Short)((SignedShort)magnitude >= 0x7f80) & 0x7ff;
    for (int v = 0; v < 4; ++v) {
      // Fields moved into place and rescaled by a multiplication, which is exact for subnormals
      // too; then infinity and NaN get a double's largest exponent field.
      const Long field = ((Long)magnitude >> (16 * v)) & 0x7fffu;
      const Long sign = (word << (48 - 16 * v)) & 0x8000000000000000u;
      const Double scaled = (Double)(field << 45) * Ops::splat(0x1p896);
      const Long ones = (((Long)special >> (16 * v)) & 0x7ffu) << 52;
      out.value[v] = (Double)((Long)scaled | ones | sign);
    }
    const Short mantissa = magnitude & 0x7f;
    const Short zero = (Short)(magnitude == 0);
    const Short field = magnitude >> 7;
    const Short biased = field - (Short)(field == 0);
    Short zeros{};  // trailing zeros of the significand
    for (uint16_t low = 1; low < 0x80; low = static_cast<uint16_t>(2 * low + 1)) {
      zeros -= (Short)((mantissa & low) == 0);
    }
    out.exponent = ((biased + static_cast<uint16_t>(exponent_bias)) & ~zero) |
                   (zero & static_cast<uint16_t>(kExponentZero & 0xffff));
    const Short lowest =
        (biased + zeros + static_cast<uint16_t>(kLowestBias - 127)) | ((Short)word & 0x8000);
    out.lowest = (lowest & ~zero) | (zero & static_cast<uint16_t>(kLowestZero));
    return out;
  }

  static void pack_a(const void* a, int64_t ld, int rows, int k, void* packed) {
    const auto* source = static_cast<const uint16_t*>(a);
    auto* out = static_cast<StepA*>(packed);
    for (int row = 0; row < rows; row += kRows) {
      for (int r = 0; r < kRows; ++r) {
        alignas(64) uint16_t line[kBlock];
        const int have = row + r < rows ? k : 0;
        if (have > 0) {
          std::memcpy(line, source + (row + r) * ld, static_cast<std::size_t>(have) * sizeof *line);
        }
        std::memset(line + have, 0, static_cast<std::size_t>(kBlock - have) * sizeof *line);
        for (int i = 0; i < kBlock; i += kColumns) {
          Long word;
          std::memcpy(&word, line + i, sizeof word);
          const Expanded x = expand(word, kExponentBiasA);
          for (int j = 0; j < kColumns; ++j) {  // piece j is piece j % 4 of lane j / 4
            StepA& step = out[(i + j) / kStep];
            const int at = (i + j) % kStep;
            step.value[at][r] = x.value[j % 4][j / 4];
            step.exponent[at][r] = x.exponent[j] * 0x0001000100010001u;
            step.lowest[at][r] = x.lowest[j] * 0x0001000100010001u;
          }
        }
      }
      out += kSteps;
    }
  }

  static void pack_b(const void* b, int64_t ld, int columns, int k, int /*rows*/, void* packed) {
    const auto* source = static_cast<const uint16_t*>(b);
    auto* out = static_cast<StepB*>(packed);
    alignas(64) uint16_t staged[kBlock][kColumns];
    if (columns < kColumns || k < kBlock) std::memset(staged, 0, sizeof staged);
    for (int j = 0; j < columns; ++j) {
      const int at = 4 * (j % kLanes) + j / kLanes;
      for (int i = 0; i < k; ++i) staged[i][at] = source[j * ld + i];
    }
    for (int i = 0; i < kBlock; ++i) {
      Long word;
      std::memcpy(&word, staged[i], sizeof word);
      const Expanded x = expand(word, kExponentBiasB);
      StepB& step = out[i / kStep];
      for (int v = 0; v < 4; ++v) step.value[i % kStep][v] = x.value[v];
      step.exponent[i % kStep] = x.exponent;
      step.lowest[i % kStep] = x.lowest;
    }
  }

  [[gnu::always_inline]] static inline Long piece_of(Short x, int v) {
    if (v == 3) return (Long)x >> 48;
    return ((Long)x >> (16 * v)) & 0xffffu;
  }
  [[gnu::always_inline]] static inline Double base_of(Short field, int v) {
    return (Double)((piece_of(field, v) << 52) + ((27ull << 52) + (1ull << 51)));
  }
  // Exponent fields of four vectors of doubles, as 16-bit pieces.
  [[gnu::always_inline]] static inline Short fields_of(const Double (&c)[4]) {
    return (Short)((((Long)c[0] >> 52) & 0x7ffu) | (((Long)c[1] >> 36) & 0x7ff0000u) |
                   (((Long)c[2] >> 20) & 0x7ff00000000u) |
                   (((Long)c[3] >> 4) & 0x7ff000000000000u));
  }
  // Fields of floats: normal numbers have 897 to 1150, and zero 0.
  static constexpr int kSmallest = 1023 - 126, kBeyond = 1023 + 128;

  // Sums that a float holds with fewer than 23 bits behind its leading one, or not at all.
  [[gnu::noinline]] static void finish(Double (&c)[4]) {
    for (int v = 0; v < 4; ++v) {
      for (int i = 0; i < kLanes; ++i) {
        const double x = c[v][i];
        if (x >= 0x1p128 || x <= -0x1p128) {
          c[v][i] = x > 0 ? __builtin_inf() : -__builtin_inf();
        } else if (x > -0x1p-126 && x < 0x1p-126) {
          const float cut = static_cast<float>(x);  // toward zero, and then +0
          c[v][i] = cut == 0.0f ? 0.0 : static_cast<double>(cut);
        }
      }
    }
  }

  [[gnu::always_inline]] static inline bool any(Short mask) {
    uint64_t all = 0;
    for (int i = 0; i < kLanes; ++i) all |= ((Long)mask)[i];
    return all != 0;
  }

  [[gnu::always_inline]] static inline void instruction(const StepA& a, const StepB& b,
                                                        Double (&c)[kRows][4],
                                                        Short (&fields)[kRows]) {
    Short top[kRows];
    for (int r = 0; r < kRows; ++r) {
      // c counts as no smaller than 2^-126, unless it is zero.
      const Short nonzero = (Short)((SignedShort)fields[r] > 0);
      const Short field = Ops::max_signed(fields[r], Short{} + static_cast<uint16_t>(kSmallest));
      top[r] = Ops::max_signed(field & nonzero, Short{} + static_cast<uint16_t>(kLowestField));
    }
#pragma GCC unroll 4
    for (int k = 0; k < kStep; ++k) {
      const Short codes = b.exponent[k];
      for (int r = 0; r < kRows; ++r) {
        top[r] = Ops::max_signed(top[r], codes + (Short)Ops::splat(a.exponent[k][r]));
      }
    }

    Double acc[kRows][4];
    Short limit[kRows], count[kRows];
    for (int r = 0; r < kRows; ++r) {
      limit[r] = top[r] + static_cast<uint16_t>(kLimitBias & 0xffff);
      count[r] = Short{};
      for (int v = 0; v < 4; ++v) {
        const Double base = base_of(top[r], v);
        const Double signed_base = (Double)((Long)base | ((Long)c[r][v] & 0x8000000000000000u));
        acc[r][v] = ((signed_base + c[r][v]) - signed_base) + base;
      }
    }
#pragma GCC unroll 2
    for (int k = 0; k < kStep; ++k) {
      Double x[kRows];
      for (int r = 0; r < kRows; ++r) x[r] = Ops::splat(a.value[k][r]);
      for (int v = 0; v < 4; ++v) {
        const Double y = b.value[k][v];
        for (int r = 0; r < kRows; ++r) acc[r][v] = Ops::fma(x[r], y, acc[r][v]);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kStep; ++k) {
      const Short codes = b.lowest[k];
      for (int r = 0; r < kRows; ++r) {
        count[r] = Ops::count_below(count[r], codes + (Short)Ops::splat(a.lowest[k][r]), limit[r]);
      }
    }

    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < 4; ++v) {
        const Double base = base_of(top[r], v);
        const Double lost = (Double)((Long)base + piece_of(count[r], v)) - base;
        const Double sum = (acc[r][v] - base) + lost;
        c[r][v] = (Double)((Long)sum & 0xffffffffe0000000u);
      }
      fields[r] = fields_of(c[r]);
      const auto field = (SignedShort)fields[r];
      if (any((Short)(((field > 0) & (field < kSmallest)) | (field >= kBeyond)))) [[unlikely]] {
        finish(c[r]);
        fields[r] = fields_of(c[r]);
      }
    }
  }

  // Not inlined: the compiler must not move arithmetic over a change of the rounding mode.
  [[gnu::noinline]] static void multiply_toward_zero(const StepA* a, const StepB* b, int rows,
                                                     int steps, bool first, float* chain) {
    for (int row = 0; row < rows; row += kRows) {
      Double c[kRows][4];
      Short fields[kRows];
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < 4; ++v) {
          for (int i = 0; i < kLanes; ++i) {
            c[r][v][i] = first ? 0.0 : static_cast<double>(chain[r * kColumns + v * kLanes + i]);
          }
        }
        fields[r] = fields_of(c[r]);
      }
      for (int step = 0; step < steps; ++step) instruction(a[step], b[step], c, fields);
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < 4; ++v) {
          for (int i = 0; i < kLanes; ++i) {
            chain[r * kColumns + v * kLanes + i] = static_cast<float>(c[r][v][i]);
          }
        }
      }
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
