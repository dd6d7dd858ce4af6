// One tile of D: a rectangle of at most kMaxRows x Tile::columns outputs, computed from start to
// end by one thread. Tiles share nothing, so that how a call is cut into them never shows in the
// bits.
#pragma once

#include <cstdint>

#include "core/views.h"
#include "cpu/kernel.h"

namespace oct::cpu {

struct Tile {
  int64_t row = 0, column = 0;
  int rows = 0, columns = 0;
};

// Memory of one thread, cut up for the widest tile that it will meet. `columns` is a multiple of
// kMaxColumns, and a panel never has more.
struct Scratch {
  void* a;       // a packed block of kMaxRows rows
  void* b;       // a packed panel
  float* chain;  // [kMaxRows, panel]: what the tensor-core chain leaves
  float* acc;    // [columns / panel][kMaxRows, panel]: accumulators of one range of K
  float* sum;    // the same: sums of ranges, null unless some view has more than one

  static int64_t bytes(const Kernel& kernel, int columns, bool split);
  // `memory` has bytes() bytes and is aligned to 64.
  Scratch(const Kernel& kernel, int columns, bool split, void* memory);
};

void run_tile(const Kernel& kernel, const core::DenseView& view, const Tile& tile,
              const Scratch& scratch);

}  // namespace oct::cpu
