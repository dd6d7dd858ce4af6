// In which order the tiles of D are computed, and which K-blocks a CTA takes: the same code on the
// device and in host tests.
//
// Work units are numbered batch by batch. Within a batch the grid of units is walked in bands that
// are `band` units wide along one axis, so that the units in flight at a time form a compact block
// of D and share operands through L2. A unit is one tile, or the two tiles of a multicast cluster.
#pragma once

#include <cstdint>

#include "kernel_abi/divisor.h"
#include "kernel_abi/tile_config.h"

namespace oct::abi {

struct Unit {
  uint32_t batch, m, n;  // coordinates in units
};

struct TileOrder {
  uint32_t units = 0;          // all of them, over all batches; < 2^31
  uint32_t across = 1;         // units along the banded axis
  uint32_t full_bands = 0;     // bands of full width
  uint32_t bands_along_n = 0;  // 1: the banded axis is N
  uint32_t linear = 0;         // 1: one batch, one unit across the other axis: nothing to divide
  Divisor batch, band, full, last;  // units of a batch, units of a band, widths of bands

  OCTET_HD constexpr Unit decode(uint32_t w) const {
    if (linear) return bands_along_n ? Unit{0, 0, w} : Unit{0, w, 0};
    const uint32_t b = batch.divide(w);
    uint32_t rest = w - b * batch.divisor;
    const uint32_t which = band.divide(rest);
    rest -= which * band.divisor;
    const Divisor& width = which < full_bands ? full : last;
    const uint32_t along = width.divide(rest);
    const uint32_t cross = which * full.divisor + rest - along * width.divisor;
    return bands_along_n ? Unit{b, along, cross} : Unit{b, cross, along};
  }
};

// um, un >= 1 units along M and N; 1 <= width; um * un * batches < 2^31.
constexpr TileOrder make_tile_order(uint32_t um, uint32_t un, uint32_t batches, uint32_t width,
                                    bool bands_along_n) {
  TileOrder order;
  const uint32_t across = bands_along_n ? un : um, along = bands_along_n ? um : un;
  if (width > across) width = across;
  order.units = um * un * batches;
  order.across = across;
  order.full_bands = across / width;
  order.bands_along_n = bands_along_n;
  order.linear = along == 1 && batches == 1;
  order.batch = make_divisor(um * un);
  order.band = make_divisor(width * along);
  order.full = make_divisor(width);
  order.last = make_divisor(across % width == 0 ? 1 : across % width);
  return order;
}

// Where the tile of CTA `rank` of a cluster begins on D: the CTAs of a multicast take neighbours,
// those that share K the same one.
struct TileAt {
  int m0, n0, batch;
};
OCTET_HD constexpr TileAt tile_at(const TileConfig& t, const TileOrder& order, uint32_t unit,
                                  uint32_t rank) {
  const Unit u = order.decode(unit);
  const uint32_t m = t.cluster_m > 1 ? u.m * t.cluster_m + rank : u.m;
  const uint32_t n = t.cluster_n > 1 ? u.n * t.cluster_n + rank : u.n;
  return {static_cast<int>(m * t.tile_m), static_cast<int>(n * t.tile_n),
          static_cast<int>(u.batch)};
}

// K-blocks of range i when n of them are cut into S ranges: [floor(n i / S), floor(n (i+1) / S)),
// as docs/numerics.md section 2 says. With n = q S + r that is q i + floor(r i / S), so the device
// needs no division.
struct BlockRange {
  int32_t first, last;
};
struct RangeCut {
  uint32_t quotient = 0, remainder = 0;
  Divisor split;

  OCTET_HD constexpr int32_t first(uint32_t i) const {
    return static_cast<int32_t>(quotient * i + split.divide(remainder * i));
  }
  OCTET_HD constexpr BlockRange range(uint32_t i) const { return {first(i), first(i + 1)}; }
};
constexpr RangeCut make_range_cut(uint32_t blocks, uint32_t split) {
  return {blocks / split, blocks % split, make_divisor(split)};
}

// K-blocks that pipeline `group` of CTA `rank` walks. A sequential kernel walks all of them, range
// by range.
OCTET_HD constexpr BlockRange pipeline_range(const TileConfig& t, const RangeCut& cut,
                                             int32_t k_blocks, int32_t split, uint32_t rank,
                                             int group) {
  if (t.sequential || split == 1) return {0, k_blocks};
  return cut.range((t.multicast() > 1 ? 0 : rank) * t.k_groups + group);
}

}  // namespace oct::abi
