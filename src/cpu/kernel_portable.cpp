// The kernels for any processor: 16-byte vectors of the compiler's own (SSE2, NEON, or whatever it
// makes of them), no intrinsics. What is computed, and how, is in e4m3_kernel.h and bf16_kernel.h.
#include <bit>

#include "cpu/bf16_kernel.h"
#include "cpu/e4m3_kernel.h"

namespace oct::cpu {
namespace {

struct Ops {
  using Float = float __attribute__((vector_size(16)));
  using Word = uint32_t __attribute__((vector_size(16)));
  using Int = int32_t __attribute__((vector_size(16)));
  using Byte = uint8_t __attribute__((vector_size(16)));
  using SignedByte = int8_t __attribute__((vector_size(16)));
  using Double = double __attribute__((vector_size(16)));
  using Long = uint64_t __attribute__((vector_size(16)));
  using Short = uint16_t __attribute__((vector_size(16)));
  using SignedShort = int16_t __attribute__((vector_size(16)));
  static constexpr bool kFused = false;
  static constexpr bool kLookup = false;

  static Float splat(float x) { return Float{x, x, x, x}; }
  static Word splat(uint32_t x) { return Word{x, x, x, x}; }
  static Double splat(double x) { return Double{x, x}; }
  static Long splat(uint64_t x) { return Long{x, x}; }
  // The products are exact, so that a multiplication and an addition round once.
  static Float fma(Float a, Float b, Float c) { return a * b + c; }
  static Double fma(Double a, Double b, Double c) { return a * b + c; }
  static Byte max_unsigned(Byte x, Byte y) { return x > y ? x : y; }
  static Short max_signed(Short x, Short y) { return (SignedShort)x > (SignedShort)y ? x : y; }
  static Byte count_below(Byte count, Byte x, Byte limit) {
    return count - (Byte)((SignedByte)x < (SignedByte)limit);
  }
  static Short count_below(Short count, Short x, Short limit) {
    return count - (Short)((SignedShort)x < (SignedShort)limit);
  }
  static void interleave(const uint8_t* const* column, Word* words) {
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < kBlock; ++k) {
        words[k][i] = static_cast<uint32_t>(column[i][k]) |
                      static_cast<uint32_t>(column[4 + i][k]) << 8 |
                      static_cast<uint32_t>(column[8 + i][k]) << 16 |
                      static_cast<uint32_t>(column[12 + i][k]) << 24;
      }
    }
  }
};

using E4m3 = E4m3Kernel<Ops, 2>;

// fma(s, chain, acc) without the instruction. The product of two floats is exact in a double. Their
// sum with acc is rounded to odd, that is, an inexact one gets an odd last bit: then rounding it
// once more, to a float, gives what rounding the exact sum would give.
float multiply_add(float s, float chain, float acc) {
#if defined(__FP_FAST_FMAF)
  return __builtin_fmaf(s, chain, acc);
#else
  const double product = static_cast<double>(s) * static_cast<double>(chain);
  const double addend = acc;
  const double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);  // exact; NaN beside infinities
  auto bits = std::bit_cast<uint64_t>(sum);
  const bool inexact = error > 0 || error < 0;
  if (inexact && (bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1u : ~uint64_t{0};
  return static_cast<float>(std::bit_cast<double>(bits));
#endif
}

void promote(const float* chain, const float* sfa, const float* sfb, int rows, float* acc) {
  constexpr int kColumns = E4m3::kColumns;
  for (int row = 0; row < rows; ++row) {
    for (int j = 0; j < kColumns; ++j) {
      const float s = sfa[row] * sfb[j];
      acc[row * kColumns + j] = multiply_add(s, chain[row * kColumns + j], acc[row * kColumns + j]);
    }
  }
}

constexpr Kernel kKernel = {OCTET_ISA_PORTABLE, E4m3::kernel(), Bf16Kernel<Ops, 2>::kernel(),
                            &promote};

}  // namespace

const Kernel* portable_kernel() { return &kKernel; }

}  // namespace oct::cpu
