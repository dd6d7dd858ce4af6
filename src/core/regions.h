// Whether two operands share a byte. An operand is rows of bytes at regular distances, in groups at
// regular distances; two column slices of one buffer interleave without sharing anything.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "core/extents.h"
#include "octet/octet.h"

namespace oct::core {

enum class Sharing {
  kNone,
  kSome,
  kUnknown,  // they interleave too often to be compared
};

// Runs of `width` bytes, repeated along up to three strides.
class Region {
 public:
  struct Level {
    int64_t stride, count;  // bytes; 2 or more
  };

  Region() = default;  // nothing
  // What would span more than kLargestBytes is taken as one run of so many.
  Region(const void* data, int64_t width, std::initializer_list<Level> levels = {});

  bool empty() const { return width_ <= 0; }
  // The first byte, and one past the last.
  uintptr_t begin() const { return begin_; }
  uintptr_t end() const { return begin_ + static_cast<uintptr_t>(extent_); }

 private:
  friend Sharing sharing(const Region& x, const Region& y);
  friend struct RegionWalk;

  uintptr_t begin_ = 0;
  int64_t width_ = 0, extent_ = 0;
  std::array<Level, 3> levels_{};  // ascending strides, each at least the extent of those before it
  int depth_ = 0;
};

Sharing sharing(const Region& x, const Region& y);

// `count` repetitions, `stride` elements of `size` bytes apart. A stride that is never followed may
// be anything, also what overflows as bytes.
inline Region::Level level(int64_t stride, int64_t count, int64_t size) {
  return {count > 1 ? stride * size : 0, count};
}
Region matrix_region(const octet_matrix& x, octet_type type, int64_t groups);
Region scale_region(const octet_scale_matrix& x, const ScaleExtent& e);

}  // namespace oct::core
