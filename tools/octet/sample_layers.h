// The layers of the demo's sample file: pairs of a BF16 weight and the BF16 activations that went
// into it, in tensors NAME.weight and NAME.input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "safetensors.h"

namespace octet::tool {

// Copies: a file may hold tensors at any byte, and rows of any length.
struct Layer {
  std::string name;
  int64_t m = 0, n = 0, k = 0;  // tokens, outputs, inputs
  int64_t ld = 0;               // elements between rows, of the codes made from them too
  std::vector<uint16_t> x;      // BF16 [m,k]
  std::vector<uint16_t> w;      // BF16 [n,k]
};

// Throws std::runtime_error with one sentence if the file is not of this kind.
std::vector<Layer> find_layers(const Safetensors& file);

}  // namespace octet::tool
