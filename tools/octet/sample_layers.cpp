// See sample_layers.h.
#include "sample_layers.h"

#include <stdexcept>
#include <string_view>

namespace octet::tool {

std::vector<Layer> find_layers(const Safetensors& file) {
  std::vector<Layer> layers;
  for (const auto& [name, weight] : file.tensors()) {
    constexpr std::string_view kSuffix = ".weight";
    if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) continue;
    const std::string base = name.substr(0, name.size() - kSuffix.size());
    const Tensor& input = file.at(base + ".input");
    if (weight.dtype != "BF16" || input.dtype != "BF16" || weight.shape.size() != 2 ||
        input.shape.size() != 2 || weight.shape[1] != input.shape[1]) {
      throw std::runtime_error(base + ": needs a BF16 weight [N,K] and a BF16 input [tokens,K]");
    }
    layers.push_back({base, input.shape[0], weight.shape[0], weight.shape[1],
                      reinterpret_cast<const uint16_t*>(input.data),
                      reinterpret_cast<const uint16_t*>(weight.data)});
  }
  if (layers.empty()) throw std::runtime_error("the sample holds no layer");
  return layers;
}

}  // namespace octet::tool
