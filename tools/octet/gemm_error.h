// How far a product is from what its operands stand for: some or all of its outputs are computed in
// double precision, as many as a second or so allows.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "gemm_operand.h"
#include "tiles.h"

namespace octet::tool {

class ErrorSample {
 public:
  // Outputs to look at: all of them if `everything`, else evenly spread rows and columns. `threads`
  // as on the command line, 0 for all.
  ErrorSample(const Operand& a, const Operand& b, std::vector<float> bias, bool everything,
              int32_t threads);

  // The tile of D at [row, col], with `type` elements one row after the other: compared now, so
  // that D need not be held.
  void take(const Tile& tile, octet_type type, const std::byte* d);
  // relative_error, difference, worst_element as in `octet demo`, and outputs looked at; the three
  // are null where an output, or what it should be, is not finite.
  nlohmann::json compare() const;

 private:
  static std::vector<int64_t> places_in(int64_t first, int64_t length, int64_t count, int64_t all);
  void add(double v, double want);

  const Operand& a_;
  const Operand& b_;
  std::vector<float> bias_;
  int32_t threads_;
  int64_t rows_, cols_;
  double error_ = 0, square_ = 0, product_ = 0, both_ = 0, worst_ = 0;
};

}  // namespace octet::tool
