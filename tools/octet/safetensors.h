// Reads .safetensors files: an 8-byte little-endian header length, a JSON header, then the tensors'
// bytes. Every number of the header is checked against the file before it becomes an address, no
// name may stand there twice, nor an entry of a tensor, and no two tensors may share a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "mapped_file.h"
#include "tensor.h"

namespace octet::tool {

struct SafetensorsContent {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// A whole file's bytes, in which the tensors' lie. Throws std::runtime_error with what is wrong, to
// be said after the file's name.
SafetensorsContent parse_safetensors(const std::byte* data, int64_t size);

class Safetensors {
 public:
  // Throws std::runtime_error with one sentence that names the file and what is wrong with it.
  explicit Safetensors(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, Tensor>& tensors() const { return content_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return content_.metadata; }
  // Throws if there is no such tensor.
  const Tensor& at(const std::string& name) const;

 private:
  MappedFile file_;
  SafetensorsContent content_;
};

}  // namespace octet::tool
