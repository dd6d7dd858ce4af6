// Tiles that differ in cost, dealt out evenly: who computes which, where a tile with few rows takes
// less (TileConfig::ragged()). Dealt out in turn (GroupWalk::find), a CTA that happens to get many
// whole ones would be what everybody waits for.
//
// Every scheduler plays the whole launch through: the next tile goes to the CTA that is idle first.
// No counter in memory, so nothing has to be zeroed or shared between launches, and the same
// metadata gives the same tiles to the same CTA. Costs are few small numbers, so many CTAs are idle
// at the same time; a step of the play serves all of them.
#pragma once

#include "kernel_abi/group_order.h"

namespace oct::abi {

// What a tile takes that has rows for so many pieces of 64, in eighths of a whole one (measured:
// docs/performance-log.md).
OCTET_HD constexpr int32_t cost_of_pieces(const TileConfig& tile, uint32_t pieces) {
  if (tile.tile_m == 128) return pieces == 1 ? 6 : 8;
  return pieces == 1 ? 4 : static_cast<int32_t>(4 + pieces);
}

inline constexpr int kMostBalancedCtas = 160;  // that can be played

// Whether the play pays: a scheduler has to play as many tiles as there are CTAs while its own CTA
// computes one, in steps that end with an entity's columns.
OCTET_HD constexpr bool is_balanced(const GroupOrder& order, int k_blocks, uint32_t ctas) {
  constexpr int kLeastBlocks = 24;
  constexpr int64_t kLeastBlocksAcross = 192;
  return k_blocks >= kLeastBlocks && ctas <= kMostBalancedCtas &&
         int64_t{k_blocks} * order.across.divisor >= kLeastBlocksAcross;
}

template <TileConfig kTile, typename Warp>
class BalancedWalk : GroupWalk<kTile, Warp> {
  using Base = GroupWalk<kTile, Warp>;
  using Int = typename Base::Int;
  using Base::o_, Base::warp_, Base::base_, Base::upto_, Base::first_row_, Base::last_row_,
      Base::carried_;

 public:
  // The tiles of CTA `cta` of `ctas`.
  OCTET_HD BalancedWalk(const GroupOrder& order, const Warp& warp, uint32_t cta, uint32_t ctas)
      : Base(order, warp), cta_(cta) {
    for (int i = 0; i < kWords; ++i) {
      idle_at_[i] = warp_.map(
          [&](int lane) { return static_cast<uint32_t>(32 * i + lane) < ctas ? 0 : kNever; });
    }
  }

  // The next one, as GroupWalk::find() gives it.
  OCTET_HD GroupTile next() {
    for (;;) {
      if (left_ == 0 && !next_band()) return {};
      // The CTAs that are idle first take the next tiles, in the order of their numbers.
      const int32_t now = warp_.least(warp_.map([&](int lane) {
        int32_t least = warp_.mine(idle_at_[0], lane);
        for (int i = 1; i < kWords; ++i)
          least = Base::smaller(least, warp_.mine(idle_at_[i], lane));
        return least;
      }));
      int32_t taken = 0, mine = -1;
      for (int i = 0; i < kWords; ++i) {
        const uint32_t idle =
            warp_.ballot([&](int lane) { return warp_.mine(idle_at_[i], lane) == now; });
        idle_at_[i] = warp_.map([&](int lane) {
          const int32_t at = warp_.mine(idle_at_[i], lane);
          const int32_t rank = taken + population(idle & ((uint32_t{1} << lane) - 1));
          return at == now && rank < left_ ? at + cost_of(m_ + rank) : at;
        });
        if (static_cast<uint32_t>(i) == cta_ >> 5 && (idle >> (cta_ & 31) & 1) != 0) {
          mine = taken + population(idle & ((uint32_t{1} << (cta_ & 31)) - 1));
        }
        taken += population(idle);
      }
      const int32_t m = m_ + mine, n = n_ + divided(m);
      const bool got = mine >= 0 && mine < left_;
      advance(Base::smaller(taken, left_));
      if (got) return this->tile_of(band_first_ + m - divided(m) * width_, n);
    }
  }

 private:
  static constexpr int kWords = kMostBalancedCtas / 32;
  static constexpr int32_t kNever = 0x7fffffff;

  // x / width_ for x of at most a band and the CTAs, and the cost of M-tile x % width_ of the band.
  OCTET_HD int32_t divided(int32_t x) const {
    return static_cast<int32_t>(static_cast<uint32_t>(x) * inverse_ >> 16);
  }
  OCTET_HD int32_t cost_of(int32_t x) const {
    const int32_t m = x - divided(x) * width_;
    return static_cast<int32_t>((m < 8 ? costs_ >> 4 * m & 15 : kWhole));
  }
  OCTET_HD void advance(int32_t tiles) {
    left_ -= tiles;
    const int32_t columns = divided(m_ + tiles);
    m_ += tiles - columns * width_;
    n_ += columns;
  }

  // Goes on to the next band of M-tiles: of this run, of the next one, of the next chunk.
  OCTET_HD bool next_band() {
    band_first_ += width_;
    width_ = 0;
    while (band_first_ == run_last_) {
      if (band_first_ == chunk_last_) {
        if (!this->next_chunk()) return false;
        chunk_last_ = warp_.at(upto_, 31);
        band_first_ = run_last_ = 0;
        if (chunk_last_ == 0) continue;
      }
      run_last_ = warp_.at(upto_, this->lane_of(band_first_));
    }
    width_ = Base::smaller(Base::smaller(o_.band, kMostWidth), run_last_ - band_first_);
    inverse_ = (65536 + static_cast<uint32_t>(width_) - 1) / static_cast<uint32_t>(width_);
    left_ = width_ * static_cast<int32_t>(o_.across.divisor);
    m_ = n_ = 0;
    // All are whole but the last one of an entity, and that one may be, too.
    costs_ = 0x88888888u;
    costs_ ^= warp_.any_bits(warp_.map([&](int lane) {
      const int last = warp_.mine(upto_, lane) - 1 - band_first_;
      if (last < 0 || last >= width_ || last >= 8) return 0;
      const uint32_t change =
          kWhole ^ static_cast<uint32_t>(cost_of_pieces(kTile, last_pieces(lane)));
      return static_cast<int32_t>(change << 4 * last);
    }));
    return true;
  }

  // Pieces of 64 rows that the last tile of the lane's entity has rows for; 1 to 4.
  OCTET_HD uint32_t last_pieces(int lane) const {
    static_assert(kTile.tile_m <= 256);
    const int32_t first = warp_.mine(first_row_, lane), last = warp_.mine(last_row_, lane);
    if (last <= first) return kTile.tile_m / 64;
    const int32_t start = last - 1 - (last - first - 1) % kTile.tile_m;
    uint32_t pieces = 1;
    for (int32_t row = start + 64; row < last; row += 64) {
      // Contiguous: a block may end in padding.
      const bool live = o_.kind != GroupKind::kIndex ||
                        static_cast<const int32_t*>(o_.metadata)[row] == warp_.mine(carried_, lane);
      pieces += live ? 1 : 0;
    }
    return pieces;
  }

  static constexpr int32_t kWhole = 8;
  static constexpr int kMostWidth = 64;  // so that divided() is exact

  const uint32_t cta_;
  Int idle_at_[kWords];
  int band_first_ = 0, width_ = 0;     // M-tiles of the band, in the chunk
  int run_last_ = 0, chunk_last_ = 0;  // M-tiles of the chunk where the run, the chunk end
  int m_ = 0, n_ = 0, left_ = 0;       // in the band: the next tile, and how many are left
  uint32_t inverse_ = 0;               // of width_
  uint32_t costs_ = 0;                 // of the band's first eight M-tiles
};

}  // namespace oct::abi
