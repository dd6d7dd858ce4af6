// See fill.h.
#include "support/fill.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/float_types.h"

namespace oct::testing_support {
namespace {

constexpr double kNotFinite = 1.0 / 1500;  // of the elements of kAnything

float any_float(Random& random, bool finite) {
  for (;;) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random.bits()));
    if (!finite || std::isfinite(x)) return x;
  }
}

// Large operands are mostly Gaussian: drawn from a table, so that tests do not wait for the sum of
// twelve.
const std::array<uint8_t, 65536>& gaussian_codes() {
  static const std::array<uint8_t, 65536> codes = [] {
    std::array<uint8_t, 65536> table{};
    Random random(65536);
    for (uint8_t& code : table) code = core::f32_to_e4m3(random.normal() * 90.0f);
    return table;
  }();
  return codes;
}

uint8_t draw_e4m3(Random& random, DataClass kind) {
  const auto byte = static_cast<uint8_t>(random.bits());
  const auto sign = static_cast<uint8_t>(byte & 0x80u);
  switch (kind) {
    case DataClass::kGaussian: return gaussian_codes()[random.bits() & 0xffffu];
    case DataClass::kOnes: return 0x38;
    case DataClass::kSparse: return random.chance(0.05) ? byte & 0xbfu : sign;
    case DataClass::kSubnormal: return sign | static_cast<uint8_t>(byte % 12);
    case DataClass::kAnything:
      if (random.chance(kNotFinite)) return sign | 0x7fu;
      [[fallthrough]];
    default: return (byte & 0x7fu) == 0x7fu ? sign : byte;
  }
}

float draw_float(Random& random, DataClass kind, float smallest) {
  switch (kind) {
    case DataClass::kGaussian: return random.normal();
    case DataClass::kOnes: return 1.0f;
    case DataClass::kSparse: return random.chance(0.05) ? random.normal() : -0.0f;
    case DataClass::kSubnormal: return random.normal() * smallest;
    case DataClass::kAnything:
      if (random.chance(kNotFinite)) {
        return random.pick({std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()});
      }
      [[fallthrough]];
    default: return any_float(random, true);
  }
}

}  // namespace

void fill_elements(Random& random, DataClass kind, octet_type type, void* data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    switch (type) {
      case OCTET_E4M3: static_cast<uint8_t*>(data)[i] = draw_e4m3(random, kind); break;
      case OCTET_BF16: {
        // Any pattern of BF16 is the upper half of one of FP32.
        const float x = draw_float(random, kind, 0x1p-126f);
        const bool drawn = kind == DataClass::kAnyFinite || kind == DataClass::kAnything;
        static_cast<uint16_t*>(data)[i] =
            drawn && std::isfinite(x) ? static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)
                                      : core::f32_to_bf16(x);
        break;
      }
      case OCTET_F16: {
        float x = draw_float(random, kind, 0x1p-14f);
        if (kind == DataClass::kAnyFinite && std::fabs(x) > 65504.0f) x = random.normal();
        static_cast<uint16_t*>(data)[i] = core::f32_to_f16(x);
        break;
      }
      default: static_cast<float*>(data)[i] = draw_float(random, kind, 0x1p-126f); break;
    }
  }
}

float draw_scale(Random& random, DataClass kind) {
  const auto power = [&](double low, double high) {
    return static_cast<float>(std::exp2(low + random.unit() * (high - low)));
  };
  switch (kind) {
    case DataClass::kGaussian: return power(-12, -4);
    case DataClass::kOnes: return 1.0f;
    case DataClass::kSparse: return random.chance(0.3) ? 0.0f : power(-12, 4);
    case DataClass::kSubnormal: return power(-148, -50);
    case DataClass::kAnyFinite: return random.chance(0.02) ? 0.0f : power(-60, 60);
    default: return random.chance(0.01) ? any_float(random, false) : power(-20, 20);
  }
}

}  // namespace oct::testing_support
