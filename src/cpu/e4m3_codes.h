// The three things that the e4m3 kernels want to know of every element: its value, a code of its
// exponent and a code of its lowest set bit. e4m3_kernel.h says what the codes are for.
#pragma once

#include <cstdint>

#include "core/float_types.h"

namespace oct::cpu::e4m3 {

// An exponent code of A plus one of B is the exponent field that a float of the product's exponent has:
// ea + eb + 127, from 115 to 143. A zero operand has code 0; sums with it stay below 73.
inline constexpr int kExponentBiasA = 64, kExponentBiasB = 63;
// Smallest exponent field of anything that takes part in a sum: of an accumulator, 2^-25.
inline constexpr int kLowestField = 102;

// With la = exponent + trailing zeros of the significand, which is in [-6, 11], the sum of two
// lowest-bit codes is, as a signed byte,
//   la + lb + 32         for a positive product,
//   la + lb + 32 - 128   for a negative one: the sign is bit 7, and adding bytes xors it,
//   above -79            when an operand is zero.
inline constexpr int kLowestBias = 16, kLowestZero = 48;
// The lowest set bit of a product is worth 2^(la + lb - 6). It is lost when that is below 2^(E - 13);
// the sum of a negative product is then below E + 32 - 128 - 7 = (exponent field of E) + kLimitBias,
// which stays in [-128, -79] for every E that occurs, so that no other sum is ever below it.
inline constexpr int kLimitBias = 32 - 128 - 7 - 127;

// One entry for each code. The codes fill all four bytes, so that one 32-bit broadcast serves a vector
// of bytes.
struct Elements {
  float value[256];
  uint32_t exponent[256];  // biased for A
  uint32_t lowest[256];
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
    // A quiet NaN with an empty payload: a count is added to accumulators' bit patterns, and must not
    // carry out of it.
    table.value[code] = (code & 0x7f) == 0x7f ? __builtin_nanf("")
                                              : core::e4m3_to_f32(static_cast<uint8_t>(code));
    table.exponent[code] = static_cast<uint32_t>(biased) * 0x01010101u;
    table.lowest[code] = static_cast<uint32_t>(lowest) * 0x01010101u;
  }
  return table;
}

inline constexpr Elements kElements = make_elements();

}  // namespace oct::cpu::e4m3
