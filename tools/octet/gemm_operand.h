// An operand of `octet gemm`: codes with scales, as they stand in a file, or a matrix that is
// quantised on its way. Rows are taken a range at a time, laid out as the library wants them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/octet.hpp"
#include "scale_source.h"
#include "scales.h"
#include "tensor_store.h"

namespace octet::tool {

// Rows ready to multiply: pitches padded, scales with rows next to each other.
struct OperandRows {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  int64_t rows = 0, k = 0, ld = 0, pitch = 0;
  GemmArgs& into(GemmArgs& args, bool is_a) const;
};

// What was given for --sfa and --layout-a, or for B; empty if nothing.
struct ScaleOptions {
  std::string scales, layout;
};

class Operand {
 public:
  Operand(const std::string& reference, const std::string& dtype, const ScaleOptions& scale_options,
          bool is_a, int32_t threads);

  int64_t rows() const { return tensor_->shape[0]; }
  int64_t k() const { return tensor_->shape[1]; }
  bool quantised() const { return type_ == OCTET_E4M3; }
  // One scale for 128 rows, not for each.
  bool coarse() const { return !is_a_ && (!map_ || map_->block() == OCTET_BLOCK_128X128); }
  const std::string& label() const { return label_; }
  std::string describe() const;

  // `row` a multiple of 128.
  void load(int64_t row, int64_t rows, OperandRows& out) const;
  // What a row stands for, unrounded: the file's own elements, or codes times scales.
  void values(int64_t row, float* to) const;

 private:
  void quantize(int64_t row, OperandRows& out) const;

  TensorStore store_;
  const Tensor* tensor_;
  octet_type type_ = OCTET_NONE;
  std::optional<ScaleSource> source_;
  std::optional<ScaleMap> map_;
  std::string label_;
  bool is_a_;
  int32_t threads_;
};

}  // namespace octet::tool
