// From accumulators to D: bias, C, one rounding. Plain loops over one row of a panel; a few
// instructions for an output that took K multiply-adds.
#pragma once

#include <cstdint>

#include "core/views.h"

namespace oct::cpu {

// D[row, column + j] = convert(acc[j] (+ bias[column + j]) (+ C[row, column + j])) for j < columns
// <= kMaxColumns.
void store_row(const core::DenseView& view, int64_t row, int64_t column, int columns,
               const float* acc);

}  // namespace oct::cpu
