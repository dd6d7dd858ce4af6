// See regions.h. Operands whose spans lie apart, nearly all, cost two comparisons. Those on a
// common grid of strides (slices of one buffer) are compared in closed form; others run by run.
#include "core/regions.h"

#include <algorithm>

namespace oct::core {
namespace {

__extension__ using Wide = __int128;

Wide floor_div(Wide x, Wide y) { return x / y - (x % y < 0 ? 1 : 0); }

}  // namespace

Region::Region(const void* data, int64_t width, std::initializer_list<Level> levels) {
  if (data == nullptr || width <= 0) return;
  begin_ = reinterpret_cast<uintptr_t>(data);
  width_ = width;
  std::array<Level, 3> sorted{};
  int given = 0;
  for (const Level& level : levels) {
    if (level.count < 1) {
      width_ = 0;
      return;
    }
    if (level.count < 2 || level.stride <= 0) continue;
    int at = given++;  // ascending
    for (; at > 0 && sorted[static_cast<std::size_t>(at - 1)].stride > level.stride; --at) {
      sorted[static_cast<std::size_t>(at)] = sorted[static_cast<std::size_t>(at - 1)];
    }
    sorted[static_cast<std::size_t>(at)] = level;
  }
  extent_ = width;
  for (int i = 0; i < given; ++i) {
    const Level& level = sorted[static_cast<std::size_t>(i)];
    const Wide extent = extent_ + static_cast<Wide>(level.count - 1) * level.stride;
    // Copies that touch or interleave with each other are taken as one run.
    const bool one_run =
        level.stride < extent_ || (depth_ == 0 && level.stride == width_) || extent > kLargestBytes;
    extent_ = static_cast<int64_t>(std::min<Wide>(extent, kLargestBytes));
    if (one_run) {
      depth_ = 0;
      width_ = extent_;
      levels_ = {};
    } else {
      levels_[static_cast<std::size_t>(depth_++)] = level;
    }
  }
}

// The runs of a region in ascending order.
struct RegionWalk {
  const Region& region;

  // Start of the first run that ends after `address`; false if there is none.
  bool first_after(uintptr_t address, uintptr_t& start) const {
    const Wide at = static_cast<Wide>(address) - static_cast<Wide>(region.begin_);
    if (at >= region.extent_) return false;
    Wide rest = std::max<Wide>(at, 0), found = 0;
    // The levels from the outside in: the copy that `rest` lies in or before.
    Wide extent[4] = {region.width_};
    for (int i = 0; i < region.depth_; ++i) {
      const auto& level = region.levels_[static_cast<std::size_t>(i)];
      extent[i + 1] = extent[i] + static_cast<Wide>(level.count - 1) * level.stride;
    }
    for (int i = region.depth_ - 1; i >= 0; --i) {
      const auto& level = region.levels_[static_cast<std::size_t>(i)];
      Wide copy = rest / level.stride;
      rest -= copy * level.stride;
      if (rest >= extent[i]) {  // in the gap behind it
        ++copy;
        rest = 0;
      }
      found += copy * level.stride;
    }
    start = region.begin_ + static_cast<uintptr_t>(found);
    return true;
  }
};

namespace {

struct Grid {
  int64_t inner = 0, outer = 0;  // strides; 0: none
};

// Strides that both are laid out on, if there are at most two.
bool common_grid(std::initializer_list<Region::Level> levels, Grid& grid) {
  for (const Region::Level& level : levels) {
    if (level.count < 2 || level.stride == grid.inner || level.stride == grid.outer) continue;
    if (grid.inner == 0) {
      grid.inner = level.stride;
    } else if (grid.outer == 0) {
      grid.outer = level.stride;
    } else {
      return false;
    }
  }
  if (grid.outer != 0 && grid.outer < grid.inner) std::swap(grid.inner, grid.outer);
  return true;
}

}  // namespace

Sharing sharing(const Region& x, const Region& y) {
  if (x.empty() || y.empty()) return Sharing::kNone;
  if (x.end() <= y.begin() || y.end() <= x.begin()) return Sharing::kNone;

  Grid grid;
  if (common_grid({x.levels_[0], x.levels_[1], x.levels_[2], y.levels_[0], y.levels_[1],
                   y.levels_[2]},
                  grid)) {
    const auto count = [](const Region& r, int64_t stride) {
      for (const Region::Level& level : r.levels_) {
        if (level.count > 1 && level.stride == stride) return level.count;
      }
      return int64_t{1};
    };
    // Runs i of x and j of y share a byte if apart + (i - j) * stride lies in (-x.width, y.width).
    const Wide apart = static_cast<Wide>(x.begin_) - static_cast<Wide>(y.begin_);
    const auto meets = [&](Wide from) {
      if (grid.inner == 0) return from > -x.width_ && from < y.width_;
      const Wide low =
          std::max<Wide>(floor_div(-x.width_ - from, grid.inner) + 1, -(count(y, grid.inner) - 1));
      const Wide high =
          std::min<Wide>(floor_div(y.width_ - from - 1, grid.inner), count(x, grid.inner) - 1);
      return low <= high;
    };
    if (grid.outer == 0) return meets(apart) ? Sharing::kSome : Sharing::kNone;
    // Of slices of one buffer only a few copies can meet.
    const Wide reach_x = static_cast<Wide>(count(x, grid.inner) - 1) * grid.inner + x.width_;
    const Wide reach_y = static_cast<Wide>(count(y, grid.inner) - 1) * grid.inner + y.width_;
    const Wide low =
        std::max<Wide>(floor_div(-reach_x - apart, grid.outer) + 1, -(count(y, grid.outer) - 1));
    const Wide high =
        std::min<Wide>(floor_div(reach_y - apart - 1, grid.outer), count(x, grid.outer) - 1);
    constexpr Wide kFew = 64;
    if (high - low <= kFew) {
      for (Wide copy = low; copy <= high; ++copy) {
        if (meets(apart + copy * grid.outer)) return Sharing::kSome;
      }
      return Sharing::kNone;
    }
  }

  constexpr int kMostSteps = 1 << 18;
  const RegionWalk xs{x}, ys{y};
  uintptr_t at_x = 0, at_y = y.begin();
  for (int step = 0; step < kMostSteps; ++step) {
    if (!xs.first_after(at_y, at_x)) return Sharing::kNone;
    if (at_x < at_y + static_cast<uintptr_t>(y.width_)) return Sharing::kSome;
    if (!ys.first_after(at_x, at_y)) return Sharing::kNone;
    if (at_y < at_x + static_cast<uintptr_t>(x.width_)) return Sharing::kSome;
  }
  return Sharing::kUnknown;
}

Region matrix_region(const octet_matrix& x, octet_type type, int64_t groups) {
  if (x.rows <= 0 || x.cols <= 0 || groups <= 0) return {};
  const int64_t size = size_of(type);
  return {x.data, x.cols * size, {level(x.ld, x.rows, size), level(x.group_stride, groups, size)}};
}

Region scale_region(const octet_scale_matrix& x, const ScaleExtent& e) {
  if (e.rows <= 0 || e.blocks <= 0 || e.groups <= 0) return {};
  const int64_t size = size_of(OCTET_F32);
  return {x.data,
          size,
          {level(x.row_stride, e.rows, size), level(x.k_stride, e.blocks, size),
           level(x.group_stride, e.groups, size)}};
}

}  // namespace oct::core
