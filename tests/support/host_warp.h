// The 32 lanes of kernel_abi/group_order.h on one thread: every collective is a loop over an array.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace oct::testing_support {

struct HostWarp {
  using Int = std::array<int32_t, 32>;

  template <typename F>
  Int map(F f) const {
    Int x{};
    for (int lane = 0; lane < 32; ++lane) x[static_cast<std::size_t>(lane)] = f(lane);
    return x;
  }
  int32_t mine(const Int& x, int lane) const { return x[static_cast<std::size_t>(lane)]; }
  int32_t at(const Int& x, int lane) const { return x.at(static_cast<std::size_t>(lane)); }
  template <typename F>
  uint32_t ballot(F f) const {
    uint32_t mask = 0;
    for (int lane = 0; lane < 32; ++lane) mask |= f(lane) ? uint32_t{1} << lane : 0;
    return mask;
  }
  int32_t least(const Int& x) const { return *std::min_element(x.begin(), x.end()); }
  uint32_t any_bits(const Int& x) const {
    uint32_t bits = 0;
    for (const int32_t lane : x) bits |= static_cast<uint32_t>(lane);
    return bits;
  }
  Int before(const Int& x, int32_t first) const {
    return map([&](int lane) { return lane == 0 ? first : mine(x, lane - 1); });
  }
  Int scan_add(Int x) const {
    for (std::size_t lane = 1; lane < x.size(); ++lane) x[lane] += x[lane - 1];
    return x;
  }
  Int scan_max(Int x) const {
    for (std::size_t lane = 1; lane < x.size(); ++lane) x[lane] = std::max(x[lane], x[lane - 1]);
    return x;
  }
};

}  // namespace oct::testing_support
