// See quantize_tensor.h.
#include "quantize_tensor.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

namespace octet::tool {
namespace {

// The part of the scales that a tile of x has: rows are lines, columns blocks of K.
Tile scales_of(const QuantizeOptions& options, int32_t block, const Tile& x) {
  const Tile lines = options.axis == 1 ? x : x.transposed();
  const int64_t unit = block == OCTET_BLOCK_1X128 ? 1 : 128;
  return {lines.row / unit, lines.col / 128, ceil_div(lines.rows, unit), k_blocks(lines.cols)};
}

QuantizeArgs args_of(const QuantizeOptions& options, octet_type type, int32_t block,
                     const Tile& x_tile, void* x, void* codes) {
  const Tile codes_tile = options.transpose ? x_tile.transposed() : x_tile;
  QuantizeArgs args;
  args.block = block;
  args.axis = options.axis;
  args.transpose = options.transpose ? 1 : 0;
  args.x_type = type;
  args.amax_min = options.amax_min;
  args.threads = options.threads;
  args.x = matrix(x, x_tile.rows, x_tile.cols);
  args.codes = matrix(codes, codes_tile.rows, codes_tile.cols);
  return args;
}

// Blocks with a code of NaN, which stands for NaN and infinity: what is finite saturates. Tiles
// begin where blocks do.
int64_t nan_blocks(const QuantizeOptions& options, const Tile& codes_tile,
                   const std::vector<std::byte>& codes) {
  const bool k_along_rows = (options.axis == 1) != options.transpose;
  const bool fine = options.block_code() == OCTET_BLOCK_1X128;
  const int64_t high = fine && k_along_rows ? 1 : 128, wide = fine && !k_along_rows ? 1 : 128;
  const int64_t blocks = ceil_div(codes_tile.cols, wide);
  std::vector<uint8_t> found(static_cast<std::size_t>(blocks));  // of one row of blocks
  int64_t count = 0;
  for (int64_t row = 0; row < codes_tile.rows; ++row) {
    if (row % high == 0) std::fill(found.begin(), found.end(), uint8_t{0});
    const std::byte* const line = codes.data() + row * codes_tile.cols;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t end = std::min((block + 1) * wide, codes_tile.cols);
      bool nan = false;
      for (int64_t col = block * wide; col < end; ++col) {
        nan |= (line[col] & std::byte{0x7f}) == std::byte{0x7f};
      }
      uint8_t& seen = found[static_cast<std::size_t>(block)];
      if (nan && seen == 0) ++count;
      seen |= nan ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

std::string QuantizeOptions::to_string() const {
  return fmt::format("block={} axis={} transpose={} scales={} layout={}", block, axis,
                     transpose ? 1 : 0, scales, layout);
}

std::string quantization_key(const std::string& tensor) { return "octet." + tensor; }

KnownOptions parse_known(const std::string& text) {
  KnownOptions known;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    const bool flag = value == "0" || value == "1";
    if (key == "block" && (value == "1x128" || value == "128x128")) known.block = value;
    if (key == "layout" && (value == "row" || value == "column")) known.layout = value;
    if (key == "axis" && flag) known.axis = value == "1" ? 1 : 0;
    if (key == "transpose" && flag) known.transpose = value == "1";
  }
  return known;
}

std::vector<int64_t> codes_shape(const QuantizeOptions& options, int64_t rows, int64_t cols) {
  return options.transpose ? std::vector<int64_t>{cols, rows} : std::vector<int64_t>{rows, cols};
}

std::vector<int64_t> scales_shape(const QuantizeOptions& options, int64_t rows, int64_t cols) {
  Tile scales = scales_of(options, options.block_code(), {0, 0, rows, cols});
  if (options.layout == "column") scales = scales.transposed();
  return {scales.rows, scales.cols};
}

int64_t quantize_tensor(const QuantizeOptions& options, octet_type type, const Tensor& x,
                        const Place& codes, const Place& scales, Progress& progress) {
  const int64_t rows = x.shape[0], cols = x.shape[1];
  const int64_t element = dtype_bytes(octet_to_dtype(type));
  const int64_t scale_element = options.scale_type() == OCTET_F32 ? 4 : 1;
  const int64_t codes_cols = codes_shape(options, rows, cols)[1];
  const int64_t scales_cols = scales_shape(options, rows, cols)[1];
  const bool column = options.layout == "column";
  std::vector<std::byte> in, out, factors;
  int64_t not_finite = 0;
  for_each_tile(rows, cols, options.transpose, [&](const Tile& tile) {
    read_tile(x.data, cols, element, tile, in);
    out.resize(static_cast<std::size_t>(tile.rows * tile.cols));
    QuantizeArgs args = args_of(options, type, options.block_code(), tile, in.data(), out.data());
    const Tile lines = scales_of(options, options.block_code(), tile);
    factors.resize(static_cast<std::size_t>(lines.rows * lines.cols * scale_element));
    args.scale_format = options.scales == "f32"    ? OCTET_SCALES_F32
                        : options.scales == "pow2" ? OCTET_SCALES_POW2
                                                   : OCTET_SCALES_UE8M0;
    args.scales = factors.data();
    args.row_stride = column ? 1 : lines.cols;
    args.k_stride = column ? lines.rows : 1;
    cpu::quantize(args).value();
    const Tile codes_tile = options.transpose ? tile.transposed() : tile;
    not_finite += nan_blocks(options, codes_tile, out);
    write_tile(codes, codes_cols, 1, codes_tile, out.data());
    write_tile(scales, scales_cols, scale_element, column ? lines.transposed() : lines,
               factors.data());
    progress.add(tile.rows * tile.cols);
  });
  return not_finite;
}

void dequantize_tensor(const QuantizeOptions& options, const Tensor& codes, const ScaleMap& scales,
                       octet_type type, int64_t rows, int64_t cols, const Place& x,
                       Progress& progress) {
  const int64_t element = dtype_bytes(octet_to_dtype(type));
  const int64_t codes_cols = codes_shape(options, rows, cols)[1];
  std::vector<std::byte> in, out;
  std::vector<float> factors;
  for_each_tile(rows, cols, options.transpose, [&](const Tile& tile) {
    read_tile(codes.data, codes_cols, 1, options.transpose ? tile.transposed() : tile, in);
    out.resize(static_cast<std::size_t>(tile.rows * tile.cols * element));
    QuantizeArgs args = args_of(options, type, scales.block(), tile, out.data(), in.data());
    const Tile lines = scales_of(options, scales.block(), tile);
    factors.resize(static_cast<std::size_t>(lines.rows * lines.cols));
    scales.load(lines.row, lines.rows, lines.col, lines.cols, factors.data(), lines.cols, 1);
    args.scales = factors.data();
    args.row_stride = lines.cols;
    args.k_stride = 1;
    cpu::dequantize(args).value();
    write_tile(x, cols, element, tile, out.data());
    progress.add(tile.rows * tile.cols);
  });
}

}  // namespace octet::tool
