// Finds the scales of codes: where the user says they are, or under the names that models have.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "quantize_tensor.h"
#include "tensor_store.h"

namespace octet::tool {

class ScaleSource {
 public:
  // `given` is FILE, FILE:TENSOR or a number, one scale for everything; empty: NAME_scale_inv or
  // NAME_scale in the codes' own file or model, NAME_scale_inv.npy beside NAME.npy. Throws with
  // what was looked for, naming `option`, if there is none.
  ScaleSource(TensorStore& codes, const std::string& name, const std::string& given,
              const std::string& option);

  const Tensor& tensor() const { return *tensor_; }
  const std::string& label() const { return label_; }
  // A .npy file cannot say how its array is to be read.
  bool is_npy() const { return store_ != nullptr && store_->holds_one_array(); }
  // What the file of the codes says of how they were quantised.
  const KnownOptions& known() const { return known_; }

 private:
  void open(const std::string& reference);

  std::unique_ptr<TensorStore> store_;
  const Tensor* tensor_ = nullptr;
  std::string label_;
  KnownOptions known_;
  float number_ = 0;
  Tensor one_;
};

// The name that scales of this .npy file have by default: "x_scale_inv.npy" for "x.npy".
std::string default_scales_file(const std::string& codes);

// What the elements are: the type of the tensor, or, where integers stand for something, what
// `option` says they are (e4m3 for uint8, bf16 for uint16). Throws if it is neither a float nor
// said.
octet_type element_type(const Tensor& tensor, const std::string& dtype, const std::string& label,
                        const std::string& option = "--dtype");

}  // namespace octet::tool
