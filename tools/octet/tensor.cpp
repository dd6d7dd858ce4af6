// See tensor.h.
#include "tensor.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace octet::tool {
namespace {

struct Type {
  std::string_view name;
  int64_t bytes;
  octet_type type;
};

constexpr Type kTypes[] = {
    {"F32", 4, OCTET_F32},      {"BF16", 2, OCTET_BF16},     {"F16", 2, OCTET_F16},
    {"F8_E4M3", 1, OCTET_E4M3}, {"F8_E8M0", 1, OCTET_UE8M0}, {"U8", 1, OCTET_NONE},
    {"U16", 2, OCTET_NONE},     {"BOOL", 1, OCTET_NONE},     {"I8", 1, OCTET_NONE},
    {"F8_E5M2", 1, OCTET_NONE}, {"I16", 2, OCTET_NONE},      {"I32", 4, OCTET_I32},
    {"U32", 4, OCTET_NONE},     {"F64", 8, OCTET_NONE},      {"I64", 8, OCTET_I64},
    {"U64", 8, OCTET_NONE},     {"C64", 8, OCTET_NONE},
};

float small_float(int sign, int exponent, int fraction, int fraction_bits, int bias) {
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), 1 - bias - fraction_bits)
                              : std::ldexp(static_cast<float>(fraction + (1 << fraction_bits)),
                                           exponent - bias - fraction_bits);
  return sign != 0 ? -magnitude : magnitude;
}

float f16_value(uint16_t code) {
  const int exponent = code >> 10 & 31, fraction = code & 1023;
  if (exponent == 31) return fraction != 0 ? NAN : code >> 15 != 0 ? -INFINITY : INFINITY;
  return small_float(code >> 15, exponent, fraction, 10, 15);
}

const std::array<float, 256>& e4m3_values() {
  static const auto kValues = [] {
    std::array<float, 256> values{};
    for (int code = 0; code < 256; ++code) {
      values[static_cast<std::size_t>(code)] =
          (code & 0x7f) == 0x7f ? NAN : small_float(code >> 7, code >> 3 & 15, code & 7, 3, 7);
    }
    return values;
  }();
  return kValues;
}

template <typename Code, typename Convert>
void convert(const std::byte* from, int64_t count, float* to, Convert value) {
  for (int64_t i = 0; i < count; ++i) {
    Code code;
    std::memcpy(&code, from + i * static_cast<int64_t>(sizeof code), sizeof code);
    to[i] = value(code);
  }
}

}  // namespace

int64_t dtype_bytes(std::string_view dtype) {
  for (const Type& type : kTypes) {
    if (type.name == dtype) return type.bytes;
  }
  return 0;
}

std::string dtype_names() {
  std::string names;
  for (const Type& type : kTypes) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

octet_type dtype_to_octet(std::string_view dtype) {
  for (const Type& type : kTypes) {
    if (type.name == dtype) return type.type;
  }
  return OCTET_NONE;
}

const char* octet_to_dtype(octet_type octet) {
  for (const Type& type : kTypes) {
    if (type.type == octet) return type.name.data();
  }
  return "";
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 300;
  std::string out(text.substr(0, kMost));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text.size() > kMost ? out + "..." : out;
}

void to_floats(octet_type type, const std::byte* from, int64_t count, float* to) {
  switch (type) {
    case OCTET_F32:
      if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
      break;
    case OCTET_BF16:
      convert<uint16_t>(from, count, to,
                        [](uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); });
      break;
    case OCTET_F16: convert<uint16_t>(from, count, to, f16_value); break;
    case OCTET_UE8M0:
      convert<uint8_t>(from, count, to, [](uint8_t x) {
        return x == 0xff ? NAN : std::bit_cast<float>(uint32_t{x} << 23);
      });
      break;
    default: convert<uint8_t>(from, count, to, [&](uint8_t x) { return e4m3_values()[x]; });
  }
}

}  // namespace octet::tool
