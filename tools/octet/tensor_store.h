// Where tensors come from: a .npy file, a .safetensors file, or a folder of a model as Hugging Face
// lays it out (several .safetensors and model.safetensors.index.json). On the command line a tensor
// is written FILE, FILE:TENSOR or FOLDER:TENSOR.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "npy.h"
#include "safetensors.h"
#include "tensor.h"

namespace octet::tool {

struct TensorReference {
  std::string path;
  std::string tensor;  // may be empty
};

// A colon behind ".safetensors", or behind the name of a folder, starts the tensor's name. Throws
// std::runtime_error if there is none behind it.
TensorReference parse_reference(const std::string& text);

bool is_npy(const std::string& path);          // by its name
bool is_safetensors(const std::string& path);  // by its name
bool is_folder(const std::string& path);

class TensorStore {
 public:
  // Throws std::runtime_error with one sentence if there is no such store.
  explicit TensorStore(const std::string& path);

  const std::string& path() const { return path_; }
  bool holds_one_array() const { return npy_ != nullptr; }
  // Null if there is no such tensor. A .npy file's tensor has any name.
  const Tensor* find(const std::string& name);
  // What the file that holds the tensor says in its metadata under `key`; empty if nothing.
  std::string metadata(const std::string& tensor, const std::string& key);
  // Files of a model, in order, and which of them each tensor is in.
  // Throws where a shard lacks a tensor that the index names.
  void check_all();
  std::vector<std::string> shards() const;
  const Safetensors& shard(const std::string& file);

  // The tensor of that name; without a name, the only one there is to choose. Sets `name`. Throws
  // if there is none, or more than one.
  const Tensor& choose(std::string& name);
  // The name of the only tensor of e4m3 codes; empty if there is none or more than one.
  std::string only_codes();
  int64_t count_codes();

 private:
  void read_folder();
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  std::unique_ptr<Npy> npy_;
  std::map<std::string, std::unique_ptr<Safetensors>> shards_;  // null: not opened yet
  std::map<std::string, std::string> where_;                    // tensor -> shard
};

// "FILE:TENSOR" for messages.
std::string label(const TensorStore& store, const std::string& name);

// Throws unless the tensor is a matrix of at most 2^31 - 1 rows and columns.
void must_be_matrix(const Tensor& tensor, const std::string& label);

}  // namespace octet::tool
