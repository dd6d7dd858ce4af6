// See kernel_tile.h.
#include "kernel_tile.h"

#include <cstdio>

#include <fmt/format.h>

namespace octet::tool {

std::optional<KernelTile> parse_kernel_tile(const std::string& kernel) {
  KernelTile tile;
  if (std::sscanf(kernel.c_str(), "normal_m%5dn%5d", &tile.m, &tile.n) != 2) {
    tile.normal = false;
    if (std::sscanf(kernel.c_str(), "swapped_w%5dt%5d", &tile.n, &tile.m) != 2) return {};
  }
  if (tile.m < 1 || tile.n < 1) return {};
  if (const auto at = kernel.find("_o"); at != std::string::npos) {
    if (std::sscanf(kernel.c_str() + at, "_o%5d", &tile.ctas_per_sm) != 1) return {};
  }
  return tile;
}

std::string describe_place(const std::string& kernel, int64_t row, int64_t col) {
  const auto tile = parse_kernel_tile(kernel);
  if (!tile) return {};
  const int64_t r = row % tile->m, c = col % tile->n;
  // A warp of a warpgroup holds 16 of WGMMA's 64 rows. Which warpgroup it is depends on more than
  // the name says: with K cut into ranges, several have a part of the sum.
  const int64_t warp = (tile->normal ? r : c) % 64 / 16;
  return fmt::format(
      "tile ({}, {}) of {} x {}, row {} and column {} of it; warp {} of a math warpgroup",
      row / tile->m, col / tile->n, tile->m, tile->n, r, c, warp);
}

}  // namespace octet::tool
