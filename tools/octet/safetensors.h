// Reads .safetensors files: an 8-byte little-endian header length, a JSON header, then the tensors'
// bytes. Every number of the header is checked against the file before it becomes an address, no
// name may stand there twice, and no two tensors may share a byte.
#pragma once

#include <map>
#include <string>

#include "mapped_file.h"
#include "tensor.h"

namespace octet::tool {

class Safetensors {
 public:
  // Throws std::runtime_error with one sentence that names the file and what is wrong with it.
  explicit Safetensors(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Throws if there is no such tensor.
  const Tensor& at(const std::string& name) const;

 private:
  void parse();
  void refuse_overlaps() const;
  [[noreturn]] void fail(const std::string& what) const { file_.fail(what); }

  MappedFile file_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace octet::tool
