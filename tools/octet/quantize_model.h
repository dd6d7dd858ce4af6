// `octet quantize` on files of many tensors: the 2-D weights that are asked for are replaced by
// codes and scales, and all the rest is copied. One .safetensors file, or the folder of a model.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "quantize_tensor.h"
#include "tensor_store.h"

namespace octet::tool {

struct ModelOptions {
  std::vector<std::string> include, exclude;  // shell patterns of tensors' names
  QuantizeOptions quantize;
};

// Both return what was done, for the report. Throw if no tensor matches.
nlohmann::json quantize_file(const std::string& in, const std::string& out,
                             const ModelOptions& options);
nlohmann::json quantize_folder(const std::string& in, const std::string& out,
                               const ModelOptions& options);

}  // namespace octet::tool
