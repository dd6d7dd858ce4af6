// The shape of a quantisation: `lines` run across K, whichever axis K is.
#pragma once

#include <cstdint>

#include "core/math.h"
#include "octet/octet.h"

namespace oct::core {

inline constexpr int32_t kMaxThreads = 1024;

struct QuantizeShape {
  int64_t lines, k;     // of x
  int64_t codes_k;      // of codes: k, or longer up to a whole block
  int64_t blocks;       // of 128 along K
  int64_t scale_lines;  // lines, or blocks of 128 lines
};

inline QuantizeShape quantize_shape(const octet_quantize_args& args) {
  QuantizeShape s{};
  s.lines = args.axis == 1 ? args.x.rows : args.x.cols;
  s.k = args.axis == 1 ? args.x.cols : args.x.rows;
  s.codes_k = (args.axis == 1) != (args.transpose == 1) ? args.codes.cols : args.codes.rows;
  s.blocks = ceil_div(s.k, kBlockK);
  s.scale_lines = args.block == OCTET_BLOCK_1X128 ? s.lines : ceil_div(s.lines, 128);
  return s;
}

}  // namespace oct::core
