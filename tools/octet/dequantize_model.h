// `octet dequantize` on files of many tensors: codes are replaced by what they stand for, their
// scales are left out, and all the rest is copied. One .safetensors file, or the folder of a model.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "quantize_tensor.h"
#include "scale_source.h"
#include "tensor_store.h"

namespace octet::tool {

struct DequantizeOptions {
  QuantizeOptions quantize;  // what the user said
  octet_type type = OCTET_BF16;
  // What the user and the file say of a tensor; changes the options to those of this tensor.
  std::function<ScaleHints(const ScaleSource&, QuantizeOptions&)> hints;
};

// Both return what was done, for the report. Throw if there are no codes.
nlohmann::json dequantize_file(TensorStore& file, const std::string& out,
                               const DequantizeOptions& options);
nlohmann::json dequantize_folder(TensorStore& model, const std::string& out,
                                 const DequantizeOptions& options);

}  // namespace octet::tool
