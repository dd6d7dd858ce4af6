// One matrix quantised or dequantised from a mapped file into a written one, a tile at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/octet.hpp"
#include "scales.h"
#include "tensor_output.h"
#include "tiles.h"

namespace octet::tool {

// How codes and scales lie, as the options of both commands say it.
struct QuantizeOptions {
  std::string block = "128x128";
  int32_t axis = 1;
  bool transpose = false;
  std::string scales = "f32";
  std::string layout = "row";
  float amax_min = 0;
  int32_t threads = 0;

  int32_t block_code() const { return block == "1x128" ? OCTET_BLOCK_1X128 : OCTET_BLOCK_128X128; }
  octet_type scale_type() const { return scales == "ue8m0" ? OCTET_UE8M0 : OCTET_F32; }
  // "block=128x128 axis=1 transpose=0 scales=f32 layout=row", and what of it a file says.
  std::string to_string() const;
};

// What the metadata of a file calls the way a tensor was quantised in.
std::string quantization_key(const std::string& tensor);
// The options that `text`, to_string() of somebody's, tells; what is missing or not understood
// stays empty.
struct KnownOptions {
  std::optional<std::string> block, layout;
  std::optional<int32_t> axis;
  std::optional<bool> transpose;
};
KnownOptions parse_known(const std::string& text);

// Shapes of what comes out of a matrix of `rows` x `cols`.
std::vector<int64_t> codes_shape(const QuantizeOptions& options, int64_t rows, int64_t cols);
std::vector<int64_t> scales_shape(const QuantizeOptions& options, int64_t rows, int64_t cols);

// Returns how many blocks (of 128 or of 128 x 128 elements) hold NaN or infinity, whose codes are
// NaN.
int64_t quantize_tensor(const QuantizeOptions& options, octet_type type, const Tensor& x,
                        const Place& codes, const Place& scales, Progress& progress);

// x of `rows` x `cols` elements of `type`.
void dequantize_tensor(const QuantizeOptions& options, const Tensor& codes, const ScaleMap& scales,
                       octet_type type, int64_t rows, int64_t cols, const Place& x,
                       Progress& progress);

}  // namespace octet::tool
