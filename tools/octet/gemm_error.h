// How far a product is from what its operands stand for: some or all of its outputs are computed in
// double precision, as many as a second or so allows.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "gemm_operand.h"

namespace octet::tool {

class ErrorSample {
 public:
  // Outputs to look at: all of them if `everything`, else evenly spread rows and columns. `threads`
  // as on the command line, 0 for all.
  ErrorSample(const Operand& a, const Operand& b, std::vector<float> bias, bool everything,
              int32_t threads);

  // Rows [row, row + rows) of D, with `type` elements one row after the other.
  void take(int64_t row, int64_t rows, octet_type type, const std::byte* d);
  // relative_error, difference, worst_element as in `octet demo`, and outputs looked at; the three
  // are null where an output, or what it should be, is not finite.
  nlohmann::json compare() const;

 private:
  int64_t row_at(int64_t i) const { return i * a_.rows() / rows_; }
  int64_t col_at(int64_t j) const { return j * b_.rows() / cols_; }

  const Operand& a_;
  const Operand& b_;
  std::vector<float> bias_;
  int32_t threads_;
  int64_t rows_, cols_;
  std::vector<float> d_;  // [rows_, cols_]
};

}  // namespace octet::tool
