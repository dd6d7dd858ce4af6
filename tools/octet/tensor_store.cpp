// See tensor_store.h.
#include "tensor_store.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inputs.h"
#include "json_watch.h"

namespace octet::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kSuffix = ".safetensors";
constexpr int64_t kMostExtent = 2147483647;

// tensor -> file, from the index of a model.
std::map<std::string, std::string> read_index(const std::string& path) {
  const MappedFile file(path);
  const auto* text = reinterpret_cast<const char*>(file.data());
  if (const std::string fault = json_fault(text, text + file.size()); !fault.empty()) {
    file.fail(fault);
  }
  const nlohmann::json json =
      nlohmann::json::parse(text, text + file.size(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    file.fail("must be a JSON object with a weight_map");
  }
  if (json.contains("metadata") && !json["metadata"].is_object() && !json["metadata"].is_null()) {
    file.fail(
        fmt::format("has the metadata {}: must be an object", printable(json["metadata"].dump())));
  }
  std::map<std::string, std::string> where;
  for (const auto& [name, entry] : json["weight_map"].items()) {
    const std::string shard = entry.is_string() ? entry.get<std::string>() : "";
    if (shard.find('/') != std::string::npos || !is_safetensors(shard)) {
      file.fail(fmt::format("tensor {}: is in \"{}\": must be in a .safetensors file beside it",
                            printable(name), printable(shard)));
    }
    where[name] = shard;
  }
  return where;
}

}  // namespace

bool is_npy(const std::string& path) { return path.ends_with(".npy"); }
bool is_safetensors(const std::string& path) { return path.ends_with(kSuffix); }
bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

TensorReference parse_reference(const std::string& text) {
  std::error_code error;
  if (fs::exists(text, error)) return {text, ""};
  for (std::size_t colon = text.find(':'); colon != std::string::npos;
       colon = text.find(':', colon + 1)) {
    const std::string path = text.substr(0, colon);
    if (!is_safetensors(path) && !is_folder(path)) continue;
    if (colon + 1 == text.size()) {
      throw std::runtime_error(
          fmt::format("{}: must have a tensor's name behind the colon", printable(path)));
    }
    return {path, text.substr(colon + 1)};
  }
  return {text, ""};
}

std::string label(const TensorStore& store, const std::string& name) {
  return store.holds_one_array() ? printable(store.path())
                                 : printable(store.path()) + ":" + printable(name);
}

void must_be_matrix(const Tensor& tensor, const std::string& label) {
  if (tensor.shape.size() != 2 ||
      *std::max_element(tensor.shape.begin(), tensor.shape.end()) > kMostExtent) {
    throw std::runtime_error(
        fmt::format("{}: has shape {}: must be a matrix of at most {} rows and columns", label,
                    shape_text(tensor.shape), kMostExtent));
  }
}

void TensorStore::fail(const std::string& what) const {
  throw std::runtime_error(fmt::format("{}: {}", printable(path_), what));
}

TensorStore::TensorStore(const std::string& path) : path_(path) {
  if (is_folder(path)) {
    read_folder();
  } else if (is_npy(path)) {
    npy_ = std::make_unique<Npy>(path);
  } else if (is_safetensors(path)) {
    auto file = std::make_unique<Safetensors>(path);
    for (const auto& [name, tensor] : file->tensors()) where_[name] = path;
    shards_[path] = std::move(file);
  } else {
    fail("must be a .npy file, a .safetensors file or a folder of a model");
  }
}

void TensorStore::read_folder() {
  note_input(path_);
  const std::string index = path_ + "/" + std::string(kIndex);
  std::error_code error;
  if (fs::exists(index, error)) {
    where_ = read_index(index);
    for (const auto& [name, file] : where_) shards_[file];
    // Those that are opened only if a tensor of them is read, too.
    for (const std::string& file : shards()) note_input(path_ + "/" + file);
    return;
  }
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (is_safetensors(name)) shards_[name];
  }
  if (error) fail(fmt::format("cannot be read: {}", error.message()));
  if (shards_.empty()) fail(fmt::format("holds no {} and no .safetensors file", kIndex));
  for (const std::string& file : shards()) {
    for (const auto& [name, tensor] : shard(file).tensors()) {
      if (!where_.emplace(name, file).second) {
        fail(fmt::format("tensor {}: is in {} and in {}", printable(name), where_[name], file));
      }
    }
  }
}

std::vector<std::string> TensorStore::shards() const {
  std::vector<std::string> files;
  for (const auto& [file, opened] : shards_) files.push_back(file);
  return files;
}

void TensorStore::check_all() {
  for (const auto& [name, file] : where_) shard(file).at(name);
}

const Safetensors& TensorStore::shard(const std::string& file) {
  std::unique_ptr<Safetensors>& opened = shards_.at(file);
  if (!opened) opened = std::make_unique<Safetensors>(path_ + "/" + file);
  return *opened;
}

const Tensor* TensorStore::find(const std::string& name) {
  if (npy_) return &npy_->tensor();
  const auto found = where_.find(name);
  if (found == where_.end()) return nullptr;
  return &shard(found->second).at(name);
}

std::string TensorStore::metadata(const std::string& tensor, const std::string& key) {
  const auto found = where_.find(tensor);
  if (found == where_.end()) return "";
  const auto& all = shard(found->second).metadata();
  const auto entry = all.find(key);
  return entry == all.end() ? "" : entry->second;
}

const Tensor& TensorStore::choose(std::string& name) {
  if (npy_) {
    if (name.empty()) name = fs::path(path_).stem().string();
    return npy_->tensor();
  }
  if (!name.empty()) {
    if (const Tensor* tensor = find(name)) return *tensor;
  } else if (where_.size() == 1) {
    name = where_.begin()->first;
    return *find(name);
  }
  constexpr std::size_t kMostShown = 5;
  std::string names;
  for (const auto& [there, file] : where_) {
    if (kMostShown <= static_cast<std::size_t>(std::count(names.begin(), names.end(), ','))) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + printable(there);
  }
  if (name.empty())
    fail(fmt::format("holds {} tensors: add :TENSOR, one of {}", where_.size(), names));
  fail(fmt::format("has no tensor {}: it has {}", printable(name), names));
}

int64_t TensorStore::count_codes() {
  return std::count_if(where_.begin(), where_.end(),
                       [&](const auto& entry) { return find(entry.first)->dtype == "F8_E4M3"; });
}

std::string TensorStore::only_codes() {
  std::string only;
  for (const auto& [name, file] : where_) {
    if (find(name)->dtype != "F8_E4M3") continue;
    if (!only.empty()) return "";
    only = name;
  }
  return only;
}

}  // namespace octet::tool
