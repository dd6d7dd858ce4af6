// A matrix large enough to be quantised in several threads, for programs that ask only whether the
// call keeps its promises where it is made. The call itself is the caller's.
#pragma once

#include <cstdint>

#include "octet/octet.h"

namespace octet_abi {

// X[n,n] of 1.5 in 1x128 blocks along a row, the scales of a channel block beside each other.
template <int64_t kN>
struct SquareQuantize {
  static_assert(kN % 128 == 0);

  SquareQuantize() {
    for (float& value : x) value = 1.5f;
  }

  octet_quantize_args args(int32_t threads) {
    octet_quantize_args a;
    octet_quantize_args_init(&a);
    a.x = {x, kN, kN, kN, 0};
    a.codes = {codes, kN, kN, kN, 0};
    a.scales = scales;
    a.row_stride = 1;
    a.k_stride = kN;
    a.threads = threads;
    return a;
  }

  float x[kN * kN];
  uint8_t codes[kN * kN];
  float scales[kN / 128 * kN];
};

}  // namespace octet_abi
