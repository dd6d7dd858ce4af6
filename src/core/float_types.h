// Conversions between FP32 and the small formats, as values. The arithmetic is kernel_abi's
// float_bits.h; tests walk every code.
#pragma once

#include <bit>
#include <cstdint>

#include "kernel_abi/float_bits.h"
#include "octet/octet.h"

namespace oct::core {

constexpr float e4m3_to_f32(uint8_t code) { return std::bit_cast<float>(bits::e4m3_to_f32(code)); }
constexpr float bf16_to_f32(uint16_t code) { return std::bit_cast<float>(bits::bf16_to_f32(code)); }
constexpr float f16_to_f32(uint16_t code) { return std::bit_cast<float>(bits::f16_to_f32(code)); }
constexpr uint8_t f32_to_e4m3(float x) { return bits::f32_to_e4m3(std::bit_cast<uint32_t>(x)); }
constexpr uint16_t f32_to_bf16(float x) { return bits::f32_to_bf16(std::bit_cast<uint32_t>(x)); }
constexpr uint16_t f32_to_f16(float x) { return bits::f32_to_f16(std::bit_cast<uint32_t>(x)); }
constexpr float canonical_f32(float x) {
  return x == x ? x : std::bit_cast<float>(bits::kCanonicalNanF32);
}

// Element i of an array of BF16, FP16 or FP32.
inline float load_element(const void* data, octet_type type, int64_t i) {
  if (type == OCTET_F32) return static_cast<const float*>(data)[i];
  const uint16_t code = static_cast<const uint16_t*>(data)[i];
  return type == OCTET_BF16 ? bf16_to_f32(code) : f16_to_f32(code);
}

// One rounding to nearest even; NaN becomes canonical.
inline void store_element(void* data, octet_type type, int64_t i, float x) {
  if (type == OCTET_F32) {
    static_cast<float*>(data)[i] = canonical_f32(x);
  } else {
    static_cast<uint16_t*>(data)[i] = type == OCTET_BF16 ? f32_to_bf16(x) : f32_to_f16(x);
  }
}

constexpr int64_t size_of(octet_type type) {
  switch (type) {
    case OCTET_E4M3:
    case OCTET_UE8M0: return 1;
    case OCTET_BF16:
    case OCTET_F16: return 2;
    case OCTET_F32:
    case OCTET_I32: return 4;
    case OCTET_I64: return 8;
    default: return 0;
  }
}

}  // namespace oct::core
