// Where the K of each group lies, found on the device from the grouping metadata of a K-grouped
// problem: the same code in the scheduler warp and in host tests. All groups have the same M and N,
// so how many tiles there are the host knows; which K-blocks a tile walks nobody knows before the
// kernel runs.
//
// Metadata is read 32 groups at a time, one a lane; a prefix sum says where packed groups start.
// Values are clamped as src/core/groups.h says, before they become coordinates.
#pragma once

#include <cstdint>

#include "kernel_abi/group_order.h"
#include "kernel_abi/host_device.h"

namespace oct::abi {

struct KGroups {
  const void* starts = nullptr;  // [groups]; null where groups are packed
  const void* counts = nullptr;  // [groups], true K
  int32_t groups = 0;
  int32_t total = 0;  // columns of A and B
  int32_t wide = 0;   // 1: metadata is int64
  // Packed: the matrices, from one end to the other, and their rows.
  const uint8_t *a = nullptr, *b = nullptr;
};

// K-blocks [first, first + blocks) of all columns; `length`: the group's true K.
struct KRange {
  int32_t first = 0, blocks = 0, length = 0;
};

// `Warp`: group_order.h.
template <bool kPacked, typename Warp>
class KGroupWalk {
 public:
  using Int = typename Warp::Int;

  OCTET_HD KGroupWalk(const KGroups& groups, const Warp& warp) : g_(groups), warp_(warp) {}

  // Groups must not descend from call to call.
  OCTET_HD KRange find(int32_t group) {
    while (group - base_ >= 32) {
      base_ += 32;
      load();
    }
    const int lane = group - base_;
    KRange r;
    r.first = warp_.at(first_, lane);
    r.length = warp_.at(length_, lane);
    r.blocks = r.length / kBlock + (r.length % kBlock > 0 ? 1 : 0);
    return r;
  }

 private:
  static constexpr int32_t kBlock = 128;

  OCTET_HD int32_t number(const void* data, int64_t i, int32_t most) const {
    if (i >= g_.groups) return 0;
    const int64_t x = g_.wide ? static_cast<const int64_t*>(data)[i]
                              : int64_t{static_cast<const int32_t*>(data)[i]};
    return static_cast<int32_t>(x < 0 ? 0 : x > most ? most : x);
  }

  OCTET_HD void load() {
    const auto mine = [&](const Int& x, int lane) { return warp_.mine(x, lane); };
    if constexpr (kPacked) {
      // In K-blocks, of which there are less than 2^24: 32 of them cannot overflow.
      const int32_t all = g_.total / kBlock;
      const Int blocks = warp_.map(
          [&](int lane) { return number(g_.counts, int64_t{base_} + lane, g_.total) / kBlock; });
      const Int upto = warp_.scan_add(blocks);
      const int32_t before = next_;
      first_ = warp_.map([&](int lane) {
        const int32_t x = before + mine(upto, lane) - mine(blocks, lane);
        return x < all ? x : all;
      });
      length_ = warp_.map([&](int lane) {
        const int32_t x = before + mine(upto, lane);
        return ((x < all ? x : all) - mine(first_, lane)) * kBlock;
      });
      next_ = before + warp_.at(upto, 31);
      if (next_ > all) next_ = all;
    } else {
      first_ = warp_.map(
          [&](int lane) { return number(g_.starts, int64_t{base_} + lane, g_.total) / kBlock; });
      length_ = warp_.map([&](int lane) {
        return number(g_.counts, int64_t{base_} + lane, g_.total - mine(first_, lane) * kBlock);
      });
    }
  }

  const KGroups& g_;
  const Warp warp_;
  int32_t base_ = -32;  // first group of the chunk
  int32_t next_ = 0;    // packed: where the next chunk starts
  Int first_{}, length_{};
};

}  // namespace oct::abi
