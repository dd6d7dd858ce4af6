// See tiles.h.
#include "tiles.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace octet::tool {
namespace {

constexpr int64_t kBlock = 128;
constexpr int64_t kTileElements = int64_t{1} << 24;
constexpr int64_t kSquare = 4096;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void for_each_tile(int64_t rows, int64_t cols, bool square, const std::function<void(Tile)>& body) {
  int64_t high = kSquare, wide = kSquare;
  if (!square && cols <= kTileElements / kBlock) {
    wide = std::max<int64_t>(cols, 1);
    high = kTileElements / wide / kBlock * kBlock;
  }
  for (int64_t row = 0; row < rows; row += high) {
    for (int64_t col = 0; col < cols; col += wide) {
      body({row, col, std::min(high, rows - row), std::min(wide, cols - col)});
    }
  }
}

void read_tile(const std::byte* from, int64_t cols, int64_t element, const Tile& tile,
               std::vector<std::byte>& to) {
  to.resize(static_cast<std::size_t>(tile.rows * tile.cols * element));
  if (to.empty()) return;
  const bool whole = tile.cols == cols;
  const int64_t bytes = (whole ? tile.rows : 1) * tile.cols * element;
  for (int64_t row = 0; row < (whole ? 1 : tile.rows); ++row) {
    std::memcpy(to.data() + row * bytes, from + ((tile.row + row) * cols + tile.col) * element,
                static_cast<std::size_t>(bytes));
  }
}

void write_tile(const Place& place, int64_t cols, int64_t element, const Tile& tile,
                const void* from) {
  const bool whole = tile.cols == cols;
  const int64_t bytes = (whole ? tile.rows : 1) * tile.cols * element;
  for (int64_t row = 0; row < (whole ? 1 : tile.rows); ++row) {
    place.file->write_at(place.offset + ((tile.row + row) * cols + tile.col) * element,
                         static_cast<const std::byte*>(from) + row * bytes, bytes);
  }
}

Progress::Progress(std::string what, int64_t total)
    : what_(std::move(what)),
      total_(total),
      start_(now()),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_ > 0) fmt::print(stderr, "\r\033[K");
}

void Progress::add(int64_t done) {
  done_ += done;
  const double seconds = now() - start_;
  if (!terminal_ || seconds < 1 || seconds - shown_ < 0.2 || total_ <= 0) return;
  shown_ = seconds;
  const double part = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  fmt::print(stderr, "\r\033[K{}: {:.0f} %, {:.0f} s left", what_, 100 * part,
             part > 0 ? seconds / part - seconds : 0.0);
  std::fflush(stderr);
}

}  // namespace octet::tool
