// The normative model of one WGMMA instruction, one output element at a time (docs/numerics.md
// section 1). Integers only, for host and device: this is the law that every backend is compared
// with.
#pragma once

#include <cstdint>

#include "kernel_abi/host_device.h"

namespace oct::ref {

inline constexpr uint32_t kCanonicalNan = 0x7fffffffu;

// |value| = significand * 2^(exponent - fraction bits of the format); subnormals keep the smallest
// exponent and are not normalised.
struct Operand {
  bool negative, nan, infinite;
  int exponent;
  uint32_t significand;
};

OCTET_HD inline Operand decode_e4m3(uint32_t code) {
  const uint32_t field = (code >> 3) & 15u, mantissa = code & 7u;
  return {(code & 0x80u) != 0, (code & 0x7fu) == 0x7fu, false,
          field ? static_cast<int>(field) - 7 : -6, field ? 8u + mantissa : mantissa};
}

OCTET_HD inline Operand decode_bf16(uint32_t code) {
  const uint32_t field = (code >> 7) & 255u, mantissa = code & 127u;
  return {(code & 0x8000u) != 0, field == 255 && mantissa != 0, field == 255 && mantissa == 0,
          field ? static_cast<int>(field) - 127 : -126, field ? 128u + mantissa : mantissa};
}

OCTET_HD inline Operand decode_f32(uint32_t bits) {
  const uint32_t field = (bits >> 23) & 255u, mantissa = bits & 0x7fffffu;
  return {(bits & 0x80000000u) != 0, field == 255 && mantissa != 0, field == 255 && mantissa == 0,
          field ? static_cast<int>(field) - 127 : -126, field ? 0x800000u + mantissa : mantissa};
}

// significand * 2^-shift, cut toward zero; a negative shift multiplies. NOTE: a zero product's
// exponent may lie far above the largest one of the sum; its shift would be undefined.
OCTET_HD inline int64_t cut(uint32_t significand, int shift) {
  if (significand == 0) return 0;
  if (shift <= 0) return static_cast<int64_t>(significand) << -shift;
  return shift > 31 ? 0 : static_cast<int64_t>(significand >> shift);
}

// sum * 2^unit as binary32 with `mantissa` stored bits, cut toward zero. Zero, and what is cut to
// zero, is +0; 2^128 and beyond is infinity; subnormals are kept.
OCTET_HD inline uint32_t normalise(int64_t sum, int unit, int mantissa) {
  if (sum == 0) return 0;
  const bool negative = sum < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  int top = 0;
  while (magnitude >> (top + 1)) ++top;
  int exponent = top + unit;
  if (exponent < -126) exponent = -126;
  const int drop = exponent - mantissa - unit;
  magnitude = drop > 0 ? (drop > 63 ? 0 : magnitude >> drop) : magnitude << -drop;
  if (magnitude == 0) return 0;
  const uint32_t sign = negative ? 0x80000000u : 0u;
  const uint32_t fraction = (static_cast<uint32_t>(magnitude) & ((1u << mantissa) - 1u))
                            << (23 - mantissa);
  if (!(magnitude >> mantissa)) return sign | fraction;
  if (exponent > 127) return sign | 0x7f800000u;
  return sign | static_cast<uint32_t>(exponent + 127) << 23 | fraction;
}

// The rules that differ between the formats.
struct E4m3 {
  using Code = uint8_t;
  static constexpr int kProducts = 32, kFraction = 13, kMantissa = 13, kProductFraction = 6;
  static constexpr int kLowestExponent = -1000;
  OCTET_HD static Operand decode(uint32_t code) { return decode_e4m3(code); }
};
struct Bf16 {
  using Code = uint16_t;
  static constexpr int kProducts = 16, kFraction = 25, kMantissa = 23, kProductFraction = 14;
  static constexpr int kLowestExponent = -133;
  OCTET_HD static Operand decode(uint32_t code) { return decode_bf16(code); }
};

// One instruction. `count` <= Format::kProducts products; the rest are zero.
template <typename Format>
OCTET_HD inline uint32_t wgmma(const typename Format::Code* a, const typename Format::Code* b,
                               int count, uint32_t c_bits) {
  constexpr int kNone = -100000;
  const Operand c = decode_f32(c_bits);
  bool nan = c.nan, plus = c.infinite && !c.negative, minus = c.infinite && c.negative;
  int largest = c.significand ? c.exponent : kNone;
  for (int i = 0; i < count; ++i) {
    const Operand x = Format::decode(a[i]), y = Format::decode(b[i]);
    const bool zero = x.significand == 0 || y.significand == 0;
    if (x.nan || y.nan || ((x.infinite || y.infinite) && zero)) {
      nan = true;
    } else if (x.infinite || y.infinite) {
      (x.negative != y.negative ? minus : plus) = true;
    } else if (!zero && x.exponent + y.exponent > largest) {
      largest = x.exponent + y.exponent;
    }
  }
  if (nan || (plus && minus)) return kCanonicalNan;
  if (plus || minus) return minus ? 0xff800000u : 0x7f800000u;
  if (largest == kNone) return 0;
  if (largest < Format::kLowestExponent) largest = Format::kLowestExponent;

  // Units of 2^(largest - kFraction).
  const int64_t term = cut(c.significand, largest - c.exponent + 23 - Format::kFraction);
  int64_t sum = c.negative ? -term : term;
  for (int i = 0; i < count; ++i) {
    const Operand x = Format::decode(a[i]), y = Format::decode(b[i]);
    const int64_t product =
        cut(x.significand * y.significand,
            largest - x.exponent - y.exponent + Format::kProductFraction - Format::kFraction);
    sum += x.negative != y.negative ? -product : product;
  }
  return normalise(sum, largest - Format::kFraction, Format::kMantissa);
}

OCTET_HD inline uint32_t wgmma_e4m3_k32(const uint8_t* a, const uint8_t* b, uint32_t c_bits) {
  return wgmma<E4m3>(a, b, E4m3::kProducts, c_bits);
}
OCTET_HD inline uint32_t wgmma_bf16_k16(const uint16_t* a, const uint16_t* b, uint32_t c_bits) {
  return wgmma<Bf16>(a, b, Bf16::kProducts, c_bits);
}

// A chain of instructions over `k` elements, each one's result the next one's accumulator.
template <typename Format>
OCTET_HD inline uint32_t wgmma_chain(const typename Format::Code* a, const typename Format::Code* b,
                                     int64_t k, uint32_t c_bits) {
  for (int64_t i = 0; i < k; i += Format::kProducts) {
    const int64_t left = k - i;
    c_bits = wgmma<Format>(a + i, b + i,
                           left < Format::kProducts ? static_cast<int>(left) : Format::kProducts,
                           c_bits);
  }
  return c_bits;
}
OCTET_HD inline uint32_t wgmma_chain_e4m3(const uint8_t* a, const uint8_t* b, int64_t k,
                                          uint32_t c_bits) {
  return wgmma_chain<E4m3>(a, b, k, c_bits);
}
OCTET_HD inline uint32_t wgmma_chain_bf16(const uint16_t* a, const uint16_t* b, int64_t k,
                                          uint32_t c_bits) {
  return wgmma_chain<Bf16>(a, b, k, c_bits);
}

}  // namespace oct::ref
