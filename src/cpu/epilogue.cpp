// See epilogue.h.
#include "cpu/epilogue.h"

#include <bit>
#include <cstring>

#include "core/float_types.h"
#include "cpu/kernel.h"

namespace oct::cpu {
namespace {

const char* at(const void* data, octet_type type, int64_t i) {
  return static_cast<const char*>(data) + i * core::size_of(type);
}

// x[j] = x[j] + data[j].
void add_row(const void* data, octet_type type, int n, float* x) {
  if (type == OCTET_F32) {
    const auto* y = static_cast<const float*>(data);
    for (int j = 0; j < n; ++j) x[j] = x[j] + y[j];
  } else if (type == OCTET_BF16) {
    const auto* y = static_cast<const uint16_t*>(data);
    for (int j = 0; j < n; ++j) x[j] = x[j] + std::bit_cast<float>(uint32_t{y[j]} << 16);
  } else {
    for (int j = 0; j < n; ++j) x[j] = x[j] + core::load_element(data, type, j);
  }
}

// core::f32_to_bf16 without a branch.
uint16_t to_bf16(float x) {
  const uint32_t f = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (f + 0x7fffu + ((f >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((f & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}

}  // namespace

void store_row(const core::DenseView& v, int64_t row, int64_t column, int columns,
               const float* acc) {
  float x[kMaxColumns];
  std::memcpy(x, acc, static_cast<std::size_t>(columns) * sizeof(float));
  if (v.bias != nullptr) add_row(at(v.bias, v.bias_type, column), v.bias_type, columns, x);
  if (v.c != nullptr) add_row(at(v.c, v.d_type, row * v.c_ld + column), v.d_type, columns, x);
  const int64_t first = row * v.d_ld + column;
  if (v.d_type == OCTET_F32) {
    float* d = static_cast<float*>(v.d) + first;
    for (int j = 0; j < columns; ++j) d[j] = core::canonical_f32(x[j]);
  } else if (v.d_type == OCTET_BF16) {
    uint16_t* d = static_cast<uint16_t*>(v.d) + first;
    for (int j = 0; j < columns; ++j) d[j] = to_bf16(x[j]);
  } else {
    uint16_t* d = static_cast<uint16_t*>(v.d) + first;
    for (int j = 0; j < columns; ++j) d[j] = core::f32_to_f16(x[j]);
  }
}

}  // namespace oct::cpu
