// Reads .safetensors files: an 8-byte little-endian header length, a JSON header, then the tensors'
// bytes. The file is mapped, so memory stays bounded whatever its size; every number of the header
// is checked against the file before it becomes an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace octet::tool {

struct Tensor {
  std::string dtype;  // "F32", "BF16", "F16", "F8_E4M3", ...
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  int64_t bytes = 0;
};

class Safetensors {
 public:
  // Throws std::runtime_error with one sentence that names the file and what is wrong with it.
  explicit Safetensors(const std::string& path);
  ~Safetensors();
  Safetensors(const Safetensors&) = delete;
  Safetensors& operator=(const Safetensors&) = delete;

  const std::string& path() const { return path_; }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Throws if there is no such tensor.
  const Tensor& at(const std::string& name) const;

 private:
  void parse();
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace octet::tool
