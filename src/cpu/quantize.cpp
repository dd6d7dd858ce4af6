// See quantize.h. Work is cut into tiles of 128 x 128 elements: rows of x are widened to FP32 in a
// buffer, scales are found, and codes are written row by row or transposed. Inner loops are
// branch-free so that the compiler turns them into vector code; each step gives the bits of
// quantize_formula.h.
#include "cpu/quantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/float_types.h"
#include "core/fp_environment.h"
#include "core/quantize_shape.h"
#include "kernel_abi/quantize_formula.h"
#include "threads/parallel.h"

namespace oct::cpu {
namespace {

constexpr int64_t kTile = 128;

// One tile of x: `rows` x `cols`, at most 128 x 128, rows kTile apart.
struct Tile {
  int64_t rows = 0, cols = 0;
  std::array<float, kTile * kTile> values;
  std::array<uint8_t, kTile * kTile> codes;
};

void widen_row(const void* data, octet_type type, int64_t first, int64_t n, float* out) {
  if (type == OCTET_F32) {
    std::memcpy(out, static_cast<const float*>(data) + first, static_cast<std::size_t>(n) * 4);
    return;
  }
  const uint16_t* codes = static_cast<const uint16_t*>(data) + first;
  if (type == OCTET_BF16) {
    for (int64_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(uint32_t{codes[i]} << 16);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    // Exponent and mantissa moved into place and rescaled by a multiplication: exact, subnormals
    // too.
    const uint32_t sign = (codes[i] & 0x8000u) << 16;
    const uint32_t magnitude = codes[i] & 0x7fffu;
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    const uint32_t finite = std::bit_cast<uint32_t>(scaled);
    const uint32_t special = 0x7f800000u | (magnitude << 13);
    out[i] = std::bit_cast<float>(sign | (magnitude >= 0x7c00u ? special : finite));
  }
}

// Magnitude as an integer, which orders like the value; not finite counts as nothing.
uint32_t finite_magnitude(float x) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  return magnitude < 0x7f800000u ? magnitude : 0u;
}

// The code of x * inverse; quantize::code() without branches.
uint32_t encode(float x, float inverse) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const float product = std::bit_cast<float>(bits & 0x7fffffffu) * inverse;
  const float y = product < quantize::kLargestE4m3 ? product : quantize::kLargestE4m3;
  const uint32_t u = std::bit_cast<uint32_t>(y);
  // Normal codes: round the FP32 pattern to 3 mantissa bits; the exponent field drops by 120.
  const uint32_t normal = ((u + 0x7ffffu + ((u >> 20) & 1u)) >> 20) - (120u << 3);
  // Subnormal codes count units of 2^-9: adding 1.5 * 2^14 rounds to them.
  constexpr float kMagic = 0x1.8p14f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(y + kMagic) - std::bit_cast<uint32_t>(kMagic);
  const uint32_t magnitude = y < 0x1p-6f ? subnormal : normal;
  const uint32_t code = inverse == 0.0f ? 0u : sign | magnitude;
  return (bits & 0x7f800000u) == 0x7f800000u ? uint32_t{bits::kNanE4m3} : code;
}

void encode_row(const float* x, const float* inverse, int64_t n, uint8_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(encode(x[i], inverse[i]));
}

class Quantizer {
 public:
  explicit Quantizer(const octet_quantize_args& args)
      : args_(args),
        shape_(core::quantize_shape(args)),
        line_tiles_(core::ceil_div(shape_.lines, kTile)) {}

  int64_t tiles() const { return line_tiles_ * shape_.blocks; }

  void quantize(int64_t index, Tile& tile) const {
    const int64_t block = index % shape_.blocks;
    const int64_t line_tile = index / shape_.blocks;
    place(line_tile, block, tile);
    for (int64_t r = 0; r < tile.rows; ++r) {
      widen_row(args_.x.data, args_.x_type, x_at(line_tile, block, r), tile.cols,
                tile.values.data() + r * kTile);
    }
    std::array<float, kTile> inverse;  // of each line
    find_scales(tile, line_tile, block, inverse);
    std::array<float, kTile> row_inverse = inverse;
    for (int64_t r = 0; r < tile.rows; ++r) {
      if (args_.axis == 1) row_inverse.fill(inverse[static_cast<std::size_t>(r)]);
      encode_row(tile.values.data() + r * kTile, row_inverse.data(), tile.cols,
                 tile.codes.data() + r * kTile);
    }
    store_codes(tile, line_tile, block);
  }

  void dequantize(int64_t index, Tile& tile) const {
    const int64_t block = index % shape_.blocks;
    const int64_t line_tile = index / shape_.blocks;
    place(line_tile, block, tile);
    const auto* codes = static_cast<const uint8_t*>(args_.codes.data);
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int64_t c = 0; c < tile.cols; ++c) {
        const int64_t line = line_tile * kTile + (args_.axis == 1 ? r : c);
        const int64_t scale_line = args_.block == OCTET_BLOCK_1X128 ? line : line_tile;
        const int64_t row = row_of(line_tile, block) + r;
        const int64_t col = col_of(line_tile, block) + c;
        const float code = core::e4m3_to_f32(
            codes[args_.transpose ? col * args_.codes.ld + row : row * args_.codes.ld + col]);
        core::store_element(args_.x.data, args_.x_type, row * args_.x.ld + col,
                            code * scale(scale_line, block));
      }
    }
  }

 private:
  // Where the tile begins in x, and how much of it there is.
  int64_t row_of(int64_t line_tile, int64_t block) const {
    return (args_.axis == 1 ? line_tile : block) * kTile;
  }
  int64_t col_of(int64_t line_tile, int64_t block) const {
    return (args_.axis == 1 ? block : line_tile) * kTile;
  }
  int64_t x_at(int64_t line_tile, int64_t block, int64_t r) const {
    return (row_of(line_tile, block) + r) * args_.x.ld + col_of(line_tile, block);
  }
  void place(int64_t line_tile, int64_t block, Tile& tile) const {
    tile.rows = std::min(kTile, args_.x.rows - row_of(line_tile, block));
    tile.cols = std::min(kTile, args_.x.cols - col_of(line_tile, block));
  }

  float scale(int64_t scale_line, int64_t block) const {
    const int64_t i = scale_line * args_.row_stride + block * args_.k_stride;
    return args_.scale_format == OCTET_SCALES_UE8M0
               ? quantize::from_ue8m0(static_cast<const uint8_t*>(args_.scales)[i])
               : static_cast<const float*>(args_.scales)[i];
  }
  void set_scale(int64_t scale_line, int64_t block, float value) const {
    const int64_t i = scale_line * args_.row_stride + block * args_.k_stride;
    if (args_.scale_format == OCTET_SCALES_UE8M0) {
      static_cast<uint8_t*>(args_.scales)[i] = quantize::to_ue8m0(value);
    } else {
      static_cast<float*>(args_.scales)[i] = value;
    }
  }

  // Writes the tile's scales and returns the factor of each of its lines.
  void find_scales(const Tile& tile, int64_t line_tile, int64_t block,
                   std::array<float, kTile>& inverse) const {
    std::array<uint32_t, kTile> largest{};  // of each line
    for (int64_t r = 0; r < tile.rows; ++r) {
      const float* x = tile.values.data() + r * kTile;
      if (args_.axis == 1) {
        uint32_t most = 0;
        for (int64_t c = 0; c < tile.cols; ++c) most = std::max(most, finite_magnitude(x[c]));
        largest[static_cast<std::size_t>(r)] = most;
      } else {
        for (int64_t c = 0; c < tile.cols; ++c) {
          auto& most = largest[static_cast<std::size_t>(c)];
          most = std::max(most, finite_magnitude(x[c]));
        }
      }
    }
    const bool power_of_two = args_.scale_format != OCTET_SCALES_F32;
    const auto block_scale = [&](uint32_t most) {
      return quantize::block_scale(std::max(args_.amax_min, std::bit_cast<float>(most)),
                                   power_of_two);
    };
    const int64_t lines = args_.axis == 1 ? tile.rows : tile.cols;
    if (args_.block == OCTET_BLOCK_128X128) {
      const float s = block_scale(*std::max_element(largest.begin(), largest.end()));
      set_scale(line_tile, block, s);
      inverse.fill(quantize::inverse_scale(s));
      return;
    }
    for (int64_t l = 0; l < lines; ++l) {
      const float s = block_scale(largest[static_cast<std::size_t>(l)]);
      set_scale(line_tile * kTile + l, block, s);
      inverse[static_cast<std::size_t>(l)] = quantize::inverse_scale(s);
    }
    std::fill(inverse.begin() + lines, inverse.end(), 0.0f);
  }

  void store_codes(const Tile& tile, int64_t line_tile, int64_t block) const {
    auto* out = static_cast<uint8_t*>(args_.codes.data);
    const int64_t ld = args_.codes.ld;
    const int64_t row0 = row_of(line_tile, block);
    const int64_t col0 = col_of(line_tile, block);
    if (!args_.transpose) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        std::memcpy(out + (row0 + r) * ld + col0, tile.codes.data() + r * kTile,
                    static_cast<std::size_t>(tile.cols));
      }
    } else {
      for (int64_t c = 0; c < tile.cols; ++c) {
        uint8_t* line = out + (col0 + c) * ld + row0;
        for (int64_t r = 0; r < tile.rows; ++r)
          line[r] = tile.codes[static_cast<std::size_t>(r * kTile + c)];
      }
    }
    if (block + 1 == shape_.blocks) clear_tail(tile, line_tile);
  }

  // Codes beyond x's K, up to the end of the last block.
  void clear_tail(const Tile& tile, int64_t line_tile) const {
    auto* out = static_cast<uint8_t*>(args_.codes.data);
    const int64_t lines = args_.axis == 1 ? tile.rows : tile.cols;
    const bool k_is_cols = (args_.axis == 1) != (args_.transpose == 1);
    for (int64_t l = line_tile * kTile; l < line_tile * kTile + lines; ++l) {
      for (int64_t k = shape_.k; k < shape_.codes_k; ++k) {
        out[k_is_cols ? l * args_.codes.ld + k : k * args_.codes.ld + l] = 0;
      }
    }
  }

  const octet_quantize_args& args_;
  const core::QuantizeShape shape_;
  const int64_t line_tiles_;
};

// Calls body(tile index, scratch) for every tile, in threads. The scratch, 80 KB each, would not
// fit the stacks that some programs give their threads.
template <typename Body>
void for_each_tile(const octet_quantize_args& args, int64_t tiles, Body body) {
  if (tiles <= 0) return;
  const int workers =
      static_cast<int>(std::min<int64_t>(threads::thread_count(args.threads), tiles));
  const std::unique_ptr<Tile[]> scratch(new Tile[static_cast<std::size_t>(workers)]);
  threads::parallel_workers(workers, [&](int worker) {
    const core::FpEnvironment environment;
    const int64_t last = tiles * (worker + 1) / workers;
    for (int64_t i = tiles * worker / workers; i < last; ++i) body(i, scratch[worker]);
  });
}

}  // namespace

void quantize(const octet_quantize_args& args) {
  const Quantizer quantizer(args);
  for_each_tile(args, quantizer.tiles(),
                [&](int64_t i, Tile& tile) { quantizer.quantize(i, tile); });
}

void dequantize(const octet_quantize_args& args) {
  const Quantizer quantizer(args);
  for_each_tile(args, quantizer.tiles(),
                [&](int64_t i, Tile& tile) { quantizer.dequantize(i, tile); });
}

}  // namespace oct::cpu
