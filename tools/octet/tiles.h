// Matrices in files a tile at a time, so that memory stays bounded whatever their size. Tiles start
// at multiples of 128, where blocks of scales do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tensor_output.h"

namespace octet::tool {

struct Tile {
  int64_t row = 0, col = 0, rows = 0, cols = 0;
  Tile transposed() const { return {col, row, cols, rows}; }
};

// Tiles of a matrix, in order. Whole rows if they are of a reasonable length; `square` ones where
// the matrix is also walked the other way.
void for_each_tile(int64_t rows, int64_t cols, bool square, const std::function<void(Tile)>& body);

// The tile's elements one row after the other, aligned to 16 bytes; `from` need not be.
void read_tile(const std::byte* from, int64_t cols, int64_t element, const Tile& tile,
               std::vector<std::byte>& to);
// Of a matrix of `cols` columns that starts at `place`.
void write_tile(const Place& place, int64_t cols, int64_t element, const Tile& tile,
                const void* from);

// Tells on standard error how far long work has come, if a person is there to see it.
class Progress {
 public:
  Progress(std::string what, int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void add(int64_t done);

 private:
  std::string what_;
  int64_t total_, done_ = 0;
  double shown_ = 0;  // seconds after the start
  double start_;
  bool terminal_;
};

}  // namespace octet::tool
