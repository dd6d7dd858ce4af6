// The three things that the e4m3 kernels want to know of every element: its value, a code of its
// exponent and a code of its lowest set bit. e4m3_kernel.h says what the codes are for.
#pragma once

#include <cstdint>

#include "core/float_types.h"

namespace oct::cpu::e4m3 {

// An exponent code of A plus one of B is the exponent field that a float of the product's exponent
// has: ea + eb + 127, from 115 to 143. A zero operand has code 0; sums with it stay below 73.
inline constexpr int kExponentBiasA = 64, kExponentBiasB = 63;
// Smallest exponent field of anything that takes part in a sum: of an accumulator, 2^-25.
inline constexpr int kLowestField = 102;

// With la = exponent + trailing zeros of the significand, which is in [-6, 11], the sum of two
// lowest-bit codes is, as a signed byte,
//   la + lb + 32         for a positive product,
//   la + lb + 32 - 128   for a negative one: the sign is bit 7, and adding bytes xors it,
//   above -79            when an operand is zero.
inline constexpr int kLowestBias = 16, kLowestZero = 48;
// The lowest set bit of a product is worth 2^(la+lb-6). It is lost when that is below 2^(E-13); the
// sum of a negative product is then below E + 32 - 128 - 7 = (exponent field of E) + kLimitBias,
// which stays in [-128, -79] for every E that occurs: no other sum is ever below it.
inline constexpr int kLimitBias = 32 - 128 - 7 - 127;

// Tables for processors that look sixteen bytes up in one instruction: unbiased exponent, trailing
// zeros of the significand, and the two bytes that a subnormal (a number of 2^-9) has as BF16.
inline constexpr uint8_t kExponentOfField[16] = {250, 250, 251, 252, 253, 254, 255, 0,
                                                 1,   2,   3,   4,   5,   6,   7,   8};
inline constexpr uint8_t kZerosOfMantissa[16] = {3, 0, 1, 0, 2, 0, 1, 0};
inline constexpr uint8_t kSmallHigh[16] = {0, 0x3b, 0x3b, 0x3b, 0x3c, 0x3c, 0x3c, 0x3c};
inline constexpr uint8_t kSmallLow[16] = {0, 0, 0x80, 0xc0, 0, 0x20, 0x40, 0x60};
inline constexpr uint8_t kTransposed[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

// What A's elements are packed as. Codes fill all four bytes, so that one 32-bit broadcast serves a
// vector of bytes. Sixteen bytes are one load and one store of the packing loop; three arrays took
// three times as long.
struct alignas(16) Element {
  float value;
  uint32_t exponent;  // biased for A
  uint32_t lowest;
  uint32_t unused;
};

struct Elements {
  Element of[256];
};

constexpr Elements make_elements() {
  Elements table{};
  for (int code = 0; code < 256; ++code) {
    const int field = (code >> 3) & 15;
    const int significand = field ? 8 + (code & 7) : code & 7;
    const int exponent = field ? field - 7 : -6;
    int biased = 0, lowest = kLowestZero;
    if (significand != 0) {
      int zeros = 0;
      while (!((significand >> zeros) & 1)) ++zeros;
      biased = exponent + kExponentBiasA;
      lowest = exponent + zeros + kLowestBias + (code & 0x80);
    }
    // A quiet NaN whose payload leaves room: a count is added to accumulators' bit patterns, and
    // must not carry out of it.
    table.of[code] = {(code & 0x7f) == 0x7f ? __builtin_nanf("")
                                            : core::e4m3_to_f32(static_cast<uint8_t>(code)),
                      static_cast<uint32_t>(biased) * 0x01010101u,
                      static_cast<uint32_t>(lowest) * 0x01010101u, 0};
  }
  return table;
}

inline constexpr Elements kElements = make_elements();

}  // namespace oct::cpu::e4m3
