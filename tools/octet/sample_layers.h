// The layers of the demo's sample file: pairs of a BF16 weight and the BF16 activations that went
// into it, in tensors NAME.weight and NAME.input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "safetensors.h"

namespace octet::tool {

// Points into the file's memory.
struct Layer {
  std::string name;
  int64_t m = 0, n = 0, k = 0;  // tokens, outputs, inputs
  const uint16_t* x = nullptr;  // BF16 [m,k]
  const uint16_t* w = nullptr;  // BF16 [n,k]
};

// Throws std::runtime_error with one sentence if the file is not of this kind.
std::vector<Layer> find_layers(const Safetensors& file);

}  // namespace octet::tool
