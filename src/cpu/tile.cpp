// See tile.h. For each K-block the tile's rows of A are packed once, then panel by panel of columns
// B is packed, into the first-level cache, and multiplied with all rows. B is read as it lies in
// memory, one byte per element, once per tile.
#include "cpu/tile.h"

#include <algorithm>
#include <cstring>

#include "core/math.h"
#include "cpu/epilogue.h"

namespace oct::cpu {
namespace {

using core::DenseView;

constexpr int64_t kAlign = 64;

int64_t bytes_a(const Kernel& kernel) {
  const int64_t row = std::max(kernel.e4m3.a_row_bytes, kernel.bf16.a_row_bytes);
  return core::round_up(row * kMaxRows, kAlign);
}
int64_t bytes_b(const Kernel& kernel) {
  return core::round_up(std::max(kernel.e4m3.b_bytes, kernel.bf16.b_bytes), kAlign);
}
constexpr int64_t kChainBytes = int64_t{kMaxRows} * kMaxColumns * 4;
int64_t bytes_acc(int columns) { return int64_t{kMaxRows} * columns * 4; }

// Work on one tile of one view.
class TileRun {
 public:
  TileRun(const Kernel& kernel, const DenseView& view, const Tile& tile, const Scratch& scratch)
      : kernel_(kernel),
        operand_(view.in_type == OCTET_E4M3 ? kernel.e4m3 : kernel.bf16),
        scaled_(view.in_type == OCTET_E4M3),
        view_(view),
        tile_(tile),
        scratch_(scratch),
        element_bytes_(scaled_ ? 1 : 2),
        panels_(static_cast<int>(core::ceil_div(tile.columns, operand_.columns))),
        padded_rows_(static_cast<int>(core::round_up(tile.rows, operand_.row_tile))) {}

  void run() const {
    const int64_t blocks = core::ceil_div(view_.k, core::kBlockK);
    float* result = scratch_.acc;
    int done = 0;
    for (int i = 0; i < view_.split; ++i) {
      const core::BlockRange range = core::split_range(blocks, view_.split, i);
      if (range.first == range.last) continue;
      if (done == 1) {
        result = scratch_.sum;
        std::memcpy(result, scratch_.acc, values() * sizeof(float));
      }
      accumulate(range);
      if (done >= 1) add(result, scratch_.acc);
      ++done;
    }
    if (done == 0) std::memset(result, 0, values() * sizeof(float));
    store(result);
  }

 private:
  std::size_t values() const {
    return static_cast<std::size_t>(panels_) * kMaxRows * operand_.columns;
  }
  float* panel(float* base, int index) const {
    return base + int64_t{index} * kMaxRows * operand_.columns;
  }
  int panel_columns(int index) const {
    return std::min(operand_.columns, tile_.columns - index * operand_.columns);
  }

  void add(float* sum, const float* acc) const {
    for (std::size_t i = 0, n = values(); i < n; ++i) sum[i] = sum[i] + acc[i];
  }

  // The range's accumulators, from zero.
  void accumulate(core::BlockRange range) const {
    std::memset(scratch_.acc, 0, values() * sizeof(float));
    for (int64_t block = range.first; block < range.last; ++block) {
      const int64_t k = block * core::kBlockK;
      const int length = static_cast<int>(std::min(core::kBlockK, view_.k - k));
      const int steps = static_cast<int>(core::ceil_div(length, operand_.step));
      const auto* a =
          static_cast<const char*>(view_.a) + (tile_.row * view_.a_ld + k) * element_bytes_;
      operand_.pack_a(a, view_.a_ld, tile_.rows, length, scratch_.a);
      alignas(64) float sfa[kMaxRows];
      if (scaled_) gather_sfa(block, sfa);
      for (int p = 0; p < panels_; ++p) {
        const int64_t column = tile_.column + int64_t{p} * operand_.columns;
        const auto* b =
            static_cast<const char*>(view_.b) + (column * view_.b_ld + k) * element_bytes_;
        operand_.pack_b(b, view_.b_ld, panel_columns(p), length, padded_rows_, scratch_.b);
        fetch_ahead(range, block, p);
        float* acc = panel(scratch_.acc, p);
        if (!scaled_) {  // the chain runs on from block to block
          operand_.multiply(scratch_.a, scratch_.b, padded_rows_, steps, block == range.first, acc);
          continue;
        }
        alignas(64) float sfb[kMaxColumns];
        gather_sfb(block, p, sfb);
        operand_.multiply(scratch_.a, scratch_.b, padded_rows_, steps, true, scratch_.chain);
        kernel_.promote(scratch_.chain, sfa, sfb, tile_.rows, acc);
      }
    }
  }

  // What is packed next comes in short pieces from far apart, which no processor foresees: asked
  // for while the panel at hand is multiplied. The next panel's columns, and this panel's share of
  // the rows of the next block.
  void fetch_ahead(core::BlockRange range, int64_t block, int panel) const {
    const bool turn = panel + 1 == panels_;
    const int64_t next = turn ? block + 1 : block;
    if (next < range.last) {
      const int p = turn ? 0 : panel + 1;
      fetch(view_.b, view_.b_ld, tile_.column + int64_t{p} * operand_.columns, panel_columns(p),
            next);
    }
    if (block + 1 < range.last) {
      const int first = tile_.rows * panel / panels_;
      fetch(view_.a, view_.a_ld, tile_.row + first, tile_.rows * (panel + 1) / panels_ - first,
            block + 1);
    }
  }
  // Element 0 and the last of every line of `rows` rows of a block.
  void fetch(const void* data, int64_t ld, int64_t row, int rows, int64_t block) const {
    const int64_t k = block * core::kBlockK;
    const int64_t bytes = std::min(core::kBlockK, view_.k - k) * element_bytes_;
    for (int i = 0; i < rows; ++i) {
      const char* line = static_cast<const char*>(data) + ((row + i) * ld + k) * element_bytes_;
      for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(line + at, 0, 2);
      __builtin_prefetch(line + bytes - 1, 0, 2);
      asm volatile("");  // GCC takes a function that only fetches for one without effects
    }
  }

  void gather_sfa(int64_t block, float* out) const {
    const core::ScaleView& s = view_.sfa;
    const float* data = s.data + tile_.row * s.row_stride + block * s.k_stride;
    for (int i = 0; i < tile_.rows; ++i) out[i] = data[i * s.row_stride];
  }
  // Columns beyond the last get zeros: their accumulators are never stored.
  void gather_sfb(int64_t block, int index, float* out) const {
    const core::ScaleView& s = view_.sfb;
    const int have = panel_columns(index);
    const int64_t first = tile_.column + int64_t{index} * operand_.columns;
    const float* data = s.data + block * s.k_stride;
    int64_t row = first / view_.sfb_rows;
    for (int j = 0; j < operand_.columns; ++row) {  // columns that share a row of scales
      const int64_t end = std::min<int64_t>((row + 1) * view_.sfb_rows - first, have);
      const float scale = j < have ? data[row * s.row_stride] : 0.0f;
      const int stop = j < have ? static_cast<int>(end) : operand_.columns;
      for (; j < stop; ++j) out[j] = scale;
    }
  }

  void store(const float* result) const {
    for (int p = 0; p < panels_; ++p) {
      const float* values = result + int64_t{p} * kMaxRows * operand_.columns;
      for (int i = 0; i < tile_.rows; ++i) {
        store_row(view_, tile_.row + i, tile_.column + int64_t{p} * operand_.columns,
                  panel_columns(p), values + int64_t{i} * operand_.columns);
      }
    }
  }

  const Kernel& kernel_;
  const OperandKernel& operand_;
  const bool scaled_;
  const DenseView& view_;
  const Tile& tile_;
  const Scratch& scratch_;
  const int64_t element_bytes_;
  const int panels_, padded_rows_;
};

}  // namespace

int64_t Scratch::bytes(const Kernel& kernel, int columns, bool split) {
  return bytes_a(kernel) + bytes_b(kernel) + kChainBytes + bytes_acc(columns) * (split ? 2 : 1);
}

Scratch::Scratch(const Kernel& kernel, int columns, bool split, void* memory) {
  auto* next = static_cast<char*>(memory);
  const auto take = [&](int64_t bytes) {
    char* piece = next;
    next += bytes;
    return piece;
  };
  a = take(bytes_a(kernel));
  b = take(bytes_b(kernel));
  chain = reinterpret_cast<float*>(take(kChainBytes));
  acc = reinterpret_cast<float*>(take(bytes_acc(columns)));
  sum = split ? reinterpret_cast<float*>(take(bytes_acc(columns))) : nullptr;
}

void run_tile(const Kernel& kernel, const core::DenseView& view, const Tile& tile,
              const Scratch& scratch) {
  TileRun(kernel, view, tile, scratch).run();
}

}  // namespace oct::cpu
