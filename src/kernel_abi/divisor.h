// Division by a number that is known at launch, as one multiplication: exact for every n < 2^31.
#pragma once

#include <cstdint>

#include "kernel_abi/host_device.h"

namespace oct::abi {

struct Divisor {
  uint32_t divisor = 1;
  uint32_t multiplier = 0x80000001u;
  uint32_t shift = 31;

  OCTET_HD constexpr uint32_t divide(uint32_t n) const {
    return static_cast<uint32_t>((static_cast<uint64_t>(n) * multiplier) >> shift);
  }
};

// 1 <= d < 2^31. With 2^l >= d the multiplier exceeds 2^(31+l) / d by at most one unit in 2^l of
// it, so n * error < 2^(31+l) for n < 2^31, and the quotient is exact.
constexpr Divisor make_divisor(uint32_t d) {
  uint32_t l = 0;
  while ((uint64_t{1} << l) < d) ++l;
  const uint64_t power = uint64_t{1} << (31 + l);
  return {d, static_cast<uint32_t>(power / d + 1), 31 + l};
}

}  // namespace oct::abi
