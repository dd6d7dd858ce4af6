// Scales as files hold them: of blocks of 1x128 or 128x128 in either order, one for each row, or
// one for all; FP32, BF16, FP16 or UE8M0. Which of these a tensor is follows from its shape and
// that of the codes, unless the file or the user says it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/octet.hpp"
#include "tensor.h"

namespace octet::tool {

// What is known besides shapes.
struct ScaleHints {
  std::optional<int32_t> block;  // OCTET_BLOCK_*
  std::optional<bool> column;    // stored [blocks of K, rows]
  // The option that says so; where it is named, a shape that may be read two ways is refused. In
  // models, which know one order only, it is not, and [rows, blocks of K] is meant.
  std::string layout_option;
};

class ScaleMap {
 public:
  // `lines` and `k` are the extents of the codes across and along K. Throws with one sentence that
  // begins with `label` if no reading fits.
  ScaleMap(const Tensor& scales, int64_t lines, int64_t k, const ScaleHints& hints,
           const std::string& label);

  // OCTET_BLOCK_128X128 if a row of scales is for 128 lines, or one is for everything.
  int32_t block() const { return block_; }
  bool one_for_all() const { return line_stride_ == 0; }
  std::string describe() const;
  // Scales of `lines` lines (blocks of 128 of them, if block() says so) and `blocks` blocks of K
  // from the given ones on: element (i, j) at to[i * line_step + j * k_step].
  void load(int64_t line, int64_t lines, int64_t block, int64_t blocks, float* to,
            int64_t line_step, int64_t k_step) const;

 private:
  const Tensor* scales_;
  octet_type type_;
  int32_t block_ = OCTET_BLOCK_1X128;
  int64_t line_stride_ = 0, k_stride_ = 0;
};

}  // namespace octet::tool
