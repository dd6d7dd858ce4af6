// Tensors on their way into a file: a .safetensors file of several, or a .npy file of one. Names,
// types and shapes are given first; then elements may be written in any order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "output_file.h"
#include "tensor.h"

namespace octet::tool {

struct NewTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
};

// Where the first element of a tensor goes.
struct Place {
  OutputFile* file = nullptr;
  int64_t offset = 0;
};

class SafetensorsOutput {
 public:
  SafetensorsOutput(const std::string& path, const std::vector<NewTensor>& tensors,
                    const std::map<std::string, std::string>& metadata);
  Place place(std::size_t i) { return {&file_, offsets_[i]}; }
  OutputFile& file() { return file_; }

 private:
  OutputFile file_;
  std::vector<int64_t> offsets_;
};

class NpyOutput {
 public:
  NpyOutput(const std::string& path, octet_type type, const std::vector<int64_t>& shape);
  Place place() { return {&file_, offset_}; }
  OutputFile& file() { return file_; }

 private:
  OutputFile file_;
  int64_t offset_;
};

// A whole number of elements of `shape`; fits, or the tensor could not have been read.
int64_t tensor_bytes(const NewTensor& tensor);

}  // namespace octet::tool
