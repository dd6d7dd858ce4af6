// The quantisation formula, shared by CPU and GPU (docs/numerics.md, section 3): the scale of a
// block from its largest magnitude, and the code of one element. One place, so that no backend can
// differ.
#pragma once

#include <cstdint>

#include "kernel_abi/float_bits.h"
#include "kernel_abi/host_device.h"

namespace oct::quantize {

inline constexpr float kLargestE4m3 = 448.0f;
inline constexpr float kSmallestScale = 0x1p-126f;  // its reciprocal is finite and normal

OCTET_HD inline uint32_t to_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
OCTET_HD inline float from_bits(uint32_t x) { return __builtin_bit_cast(float, x); }

// amax is the largest finite magnitude of the block, at least amax_min. 0 gives 0: such a block
// dequantises to exactly 0 and nothing divides by zero.
OCTET_HD inline float block_scale(float amax, bool power_of_two) {
  if (amax == 0.0f) return 0.0f;
  float scale = amax / kLargestE4m3;
  if (scale < kSmallestScale) scale = kSmallestScale;
  if (power_of_two) scale = from_bits((to_bits(scale) + 0x7fffffu) & 0x7f800000u);  // round up
  return scale;
}

// What elements are multiplied by; one division a block.
OCTET_HD inline float inverse_scale(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

// NaN and infinities get the NaN code whatever the block; a zero scale gives 0 (never -0).
OCTET_HD inline uint8_t code(float x, float inverse) {
  if (!bits::is_finite_f32(to_bits(x))) return bits::kNanE4m3;
  if (inverse == 0.0f) return 0;
  return bits::f32_to_e4m3(to_bits(x * inverse));
}

// A power-of-two scale as one byte, and back. 0xff is the type's NaN.
OCTET_HD inline uint8_t to_ue8m0(float scale) { return static_cast<uint8_t>(to_bits(scale) >> 23); }
OCTET_HD inline float from_ue8m0(uint8_t byte) {
  return from_bits(byte == 0xff ? 0x7fc00000u : static_cast<uint32_t>(byte) << 23);
}

}  // namespace oct::quantize
