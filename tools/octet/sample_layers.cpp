// See sample_layers.h.
#include "sample_layers.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "octet/octet.hpp"

namespace octet::tool {

namespace {

constexpr int64_t kMostOutputs = int64_t{1} << 27;

// Rows of a BF16 tensor [rows, cols], `ld` elements apart.
std::vector<uint16_t> rows_of(const Tensor& tensor, int64_t ld) {
  const int64_t rows = tensor.shape[0], cols = tensor.shape[1];
  if (cols == 0) return {};
  std::vector<uint16_t> out(static_cast<std::size_t>(rows * ld));
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(out.data() + r * ld, tensor.data + r * cols * 2,
                static_cast<std::size_t>(cols) * 2);
  }
  return out;
}

}  // namespace

std::vector<Layer> find_layers(const Safetensors& file) {
  std::vector<Layer> layers;
  for (const auto& [name, weight] : file.tensors()) {
    constexpr std::string_view kSuffix = ".weight";
    if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) continue;
    Layer layer;
    layer.name = name.substr(0, name.size() - kSuffix.size());
    const auto bad = [&](const std::string& what) {
      throw std::runtime_error(fmt::format("{}: {}: {}", file.path(), layer.name, what));
    };
    const Tensor& input = file.at(layer.name + ".input");
    if (weight.dtype != "BF16" || input.dtype != "BF16" || weight.shape.size() != 2 ||
        input.shape.size() != 2 || weight.shape[1] != input.shape[1]) {
      bad("needs a BF16 weight [N,K] and a BF16 input [tokens,K]");
    }
    layer.m = input.shape[0];
    layer.n = weight.shape[0];
    layer.k = weight.shape[1];
    constexpr int64_t kMostSize = 2147483647;
    if (std::max({layer.m, layer.n, layer.k}) > kMostSize || layer.m * layer.n > kMostOutputs) {
      bad(
          fmt::format("is D[{},{}] with K = {}: the demo computes at most {} outputs, each size "
                      "below 2^31",
                      layer.m, layer.n, layer.k, kMostOutputs));
    }
    layer.ld = ceil_div(layer.k, 16) * 16;  // 16 bytes of codes: what the copy engine wants
    layer.x = rows_of(input, layer.ld);
    layer.w = rows_of(weight, layer.ld);
    layers.push_back(std::move(layer));
  }
  if (layers.empty()) {
    throw std::runtime_error(
        fmt::format("{}: holds no layer, which is NAME.weight and NAME.input", file.path()));
  }
  return layers;
}

}  // namespace octet::tool
