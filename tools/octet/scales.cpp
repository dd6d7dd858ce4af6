// See scales.h.
#include "scales.h"

#include <stdexcept>

#include <fmt/format.h>

namespace octet::tool {

ScaleMap::ScaleMap(const Tensor& scales, int64_t lines, int64_t k, const ScaleHints& hints,
                   const std::string& label)
    : scales_(&scales), type_(scales.dtype == "U8" ? OCTET_UE8M0 : dtype_to_octet(scales.dtype)) {
  if (type_ != OCTET_F32 && type_ != OCTET_BF16 && type_ != OCTET_F16 && type_ != OCTET_UE8M0) {
    throw std::runtime_error(
        fmt::format("{}: holds {}: scales must be F32, BF16, F16 or F8_E8M0 (U8)", label,
                    scales.dtype));
  }
  // A vector is one for each row, also where there are as many blocks of K.
  if (scales.shape.size() == 1 && scales.shape[0] == lines && lines > 1 && !hints.block &&
      !hints.column) {
    line_stride_ = 1;
    return;
  }
  const int64_t blocks = k_blocks(k);
  // A vector is a column: one for each line.
  std::vector<int64_t> shape = scales.shape;
  if (shape.size() == 1) shape.push_back(1);
  const bool one = shape.empty() || (shape.size() == 2 && shape[0] == 1 && shape[1] == 1);
  std::string wanted;
  const bool per_row = shape.size() == 2 && shape[0] == lines && shape[1] == 1;
  bool found = false, fits[2] = {false, false};  // fits: as rows, as columns
  for (const bool column : {false, true}) {
    if (hints.column && *hints.column != column) continue;
    for (const int32_t block : {OCTET_BLOCK_1X128, OCTET_BLOCK_128X128}) {
      if (hints.block && *hints.block != block) continue;
      const int64_t rows = block == OCTET_BLOCK_1X128 ? lines : ceil_div(lines, 128);
      const std::vector<int64_t> want =
          column ? std::vector<int64_t>{blocks, rows} : std::vector<int64_t>{rows, blocks};
      if (shape == want && !found) {
        found = true;
        block_ = block;
        line_stride_ = column ? 1 : blocks;
        k_stride_ = column ? rows : 1;
      }
      fits[column] = fits[column] || shape == want;
      const std::string text = shape_text(want);
      if (wanted.find(text) == std::string::npos) wanted += (wanted.empty() ? "" : ", ") + text;
    }
  }
  const bool several = !one && scales.bytes > 0;
  if (several && fits[1] && (fits[0] || per_row) && !hints.column) {
    if (!hints.layout_option.empty()) {
      throw std::runtime_error(fmt::format(
          "{}: has shape {}, which fits {} and [blocks of K, rows]: give {} row for the former or "
          "{} column for the latter",
          label, shape_text(scales.shape), fits[0] ? "[rows, blocks of K]" : "one value a row",
          hints.layout_option, hints.layout_option));
    }
    found = fits[0];
  }
  if (found) return;
  block_ = one ? OCTET_BLOCK_128X128 : OCTET_BLOCK_1X128;
  line_stride_ = one ? 0 : 1;
  k_stride_ = 0;
  if (one || per_row) return;
  throw std::runtime_error(
      fmt::format("{}: has shape {}: for codes of {} rows with K = {} scales must have one of the "
                  "shapes {}, one value a row, or one value",
                  label, shape_text(scales.shape), lines, k, wanted));
}

std::string ScaleMap::describe() const {
  if (one_for_all()) return "one for all";
  if (k_stride_ == 0) return "one a row";
  return block_ == OCTET_BLOCK_1X128 ? "1x128" : "128x128";
}

void ScaleMap::load(int64_t line, int64_t lines, int64_t block, int64_t blocks, float* to,
                    int64_t line_step, int64_t k_step) const {
  const int64_t element = dtype_bytes(scales_->dtype);
  for (int64_t i = 0; i < lines; ++i) {
    for (int64_t j = 0; j < blocks; ++j) {
      const int64_t at = (line + i) * line_stride_ + (block + j) * k_stride_;
      to_floats(type_, scales_->data + at * element, 1, to + i * line_step + j * k_step);
    }
  }
}

}  // namespace octet::tool
