// The small floating-point formats as bit patterns: e4m3, BF16 and FP16 to and from FP32, integers
// only, so that host, device and constant expressions agree. Rounding is to nearest even
// everywhere; nothing is flushed to zero; every NaN becomes the format's canonical one.
#pragma once

#include <cstdint>

#include "kernel_abi/host_device.h"

namespace oct::bits {

inline constexpr uint32_t kCanonicalNanF32 = 0x7fffffffu;
inline constexpr uint16_t kCanonicalNanBf16 = 0x7fffu;
inline constexpr uint16_t kCanonicalNanF16 = 0x7fffu;
inline constexpr uint8_t kNanE4m3 = 0x7fu;
inline constexpr uint8_t kMaxE4m3 = 0x7eu;  // 448

OCTET_HD constexpr bool is_nan_f32(uint32_t f) { return (f & 0x7fffffffu) > 0x7f800000u; }
OCTET_HD constexpr bool is_finite_f32(uint32_t f) { return (f & 0x7f800000u) != 0x7f800000u; }

// sig / 2^shift to nearest even; sig < 2^24, shift >= 0.
OCTET_HD constexpr uint32_t shift_right_nearest_even(uint32_t sig, int shift) {
  if (shift == 0) return sig;
  if (shift > 24) return 0;  // below half a unit
  const uint32_t quotient = sig >> shift;
  const uint32_t rest = sig & ((1u << shift) - 1u);
  const uint32_t half = 1u << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1u)) ? 1u : 0u);
}

// Magnitude of a finite FP32 value as a code with `mantissa` mantissa bits and exponent bias
// `bias`, unbounded above: the caller decides what overflow means.
OCTET_HD constexpr uint32_t narrow_magnitude(uint32_t magnitude, int mantissa, int bias) {
  const int field = static_cast<int>(magnitude >> 23);
  const int exponent = field == 0 ? -126 : field - 127;
  const uint32_t sig = (magnitude & 0x7fffffu) | (field == 0 ? 0u : 0x800000u);
  const int smallest = 1 - bias;  // exponent of subnormals
  if (exponent < smallest) {
    return shift_right_nearest_even(sig, 23 - mantissa + smallest - exponent);
  }
  // The leading one of the rounded significand adds the first unit of the exponent field, and a
  // carry out of it the second.
  return (static_cast<uint32_t>(exponent - smallest) << mantissa) +
         shift_right_nearest_even(sig, 23 - mantissa);
}

// FP32 bits of a finite code with `mantissa` mantissa bits and exponent bias `bias`.
OCTET_HD constexpr uint32_t widen_magnitude(uint32_t code, int mantissa, int bias) {
  uint32_t field = code >> mantissa;
  uint32_t sig = code & ((1u << mantissa) - 1u);
  int exponent = static_cast<int>(field) - bias;
  if (field == 0) {
    if (sig == 0) return 0;
    exponent = 1 - bias;
    while (!(sig >> mantissa)) {
      sig <<= 1;
      --exponent;
    }
    sig &= (1u << mantissa) - 1u;
  }
  return (static_cast<uint32_t>(exponent + 127) << 23) | (sig << (23 - mantissa));
}

OCTET_HD constexpr uint32_t e4m3_to_f32(uint8_t code) {
  const uint32_t sign = (code & 0x80u) << 24;
  if ((code & 0x7fu) == kNanE4m3) return kCanonicalNanF32;
  return sign | widen_magnitude(code & 0x7fu, 3, 7);
}

// Saturates: everything beyond 448, infinities too, becomes +-448. NaN becomes 0x7f.
OCTET_HD constexpr uint8_t f32_to_e4m3(uint32_t f) {
  if (is_nan_f32(f)) return kNanE4m3;
  const uint32_t sign = (f >> 24) & 0x80u;
  const uint32_t magnitude = f & 0x7fffffffu;
  const uint32_t code =
      magnitude >= 0x43e00000u ? kMaxE4m3 : narrow_magnitude(magnitude, 3, 7);  // 448
  return static_cast<uint8_t>(sign | (code > kMaxE4m3 ? kMaxE4m3 : code));
}

OCTET_HD constexpr uint32_t bf16_to_f32(uint16_t code) {
  const uint32_t f = static_cast<uint32_t>(code) << 16;
  return is_nan_f32(f) ? kCanonicalNanF32 : f;
}

OCTET_HD constexpr uint16_t f32_to_bf16(uint32_t f) {
  if (is_nan_f32(f)) return kCanonicalNanBf16;
  return static_cast<uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >>
                               16);  // overflow reaches infinity
}

OCTET_HD constexpr uint32_t f16_to_f32(uint16_t code) {
  const uint32_t sign = (code & 0x8000u) << 16;
  const uint32_t magnitude = code & 0x7fffu;
  if (magnitude > 0x7c00u) return kCanonicalNanF32;
  if (magnitude == 0x7c00u) return sign | 0x7f800000u;
  return sign | widen_magnitude(magnitude, 10, 15);
}

OCTET_HD constexpr uint16_t f32_to_f16(uint32_t f) {
  if (is_nan_f32(f)) return kCanonicalNanF16;
  const uint32_t sign = (f >> 16) & 0x8000u;
  const uint32_t magnitude = f & 0x7fffffffu;
  const uint32_t code = magnitude >= 0x7f800000u ? 0x7c00u : narrow_magnitude(magnitude, 10, 15);
  return static_cast<uint16_t>(sign | (code > 0x7c00u ? 0x7c00u : code));
}

}  // namespace oct::bits
