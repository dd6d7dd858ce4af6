// Small integer helpers used everywhere.
#pragma once

#include <cstdint>

namespace oct::core {

constexpr int64_t kBlockK = 128;  // elements of K that share a scale

constexpr int64_t ceil_div(int64_t x, int64_t y) { return x / y + (x % y > 0); }
constexpr int64_t round_up(int64_t x, int64_t y) { return ceil_div(x, y) * y; }
constexpr int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

}  // namespace oct::core
