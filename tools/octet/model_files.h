// A model's folder rewritten into a new one, shard by shard, for commands that change some of its
// tensors: the rest is copied, config.json is told of it, and the index is made anew.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tensor_output.h"
#include "tensor_store.h"
#include "tiles.h"

namespace octet::tool {

// Of all files of a model.
struct ModelDone {
  nlohmann::json tensors = nlohmann::json::array();  // those that were changed
  std::map<std::string, std::string> where;          // every tensor written -> its file
  std::set<std::string> left;                        // modules with a 2-D weight that was copied
  int64_t copied = 0, bytes = 0;

  // These are about to be written as `file`; throws if one was written before.
  void note(const Safetensors& in, const std::string& file, const std::vector<NewTensor>& written);
};

void copy_bytes(const std::byte* from, int64_t bytes, const Place& to, Progress& progress);

// `shard` writes one file under the name it is given; `config` changes config.json. Returns the
// names of what was not copied.
nlohmann::json rewrite_model(
    TensorStore& model, const std::string& out, ModelDone& done,
    const std::function<void(const Safetensors&, const std::string&)>& shard,
    const std::function<void(nlohmann::ordered_json&)>& config);

}  // namespace octet::tool
