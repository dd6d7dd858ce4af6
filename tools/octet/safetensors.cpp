// See safetensors.h.
#include "safetensors.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json_watch.h"

namespace octet::tool {
namespace {

constexpr int64_t kLargestHeader = 100'000'000;  // the format's own limit

[[noreturn]] void bad(const std::string& what) { throw std::runtime_error(what); }

nlohmann::json parse_header(const char* first, const char* last) {
  // Names in the outermost object and in each object of it.
  std::set<std::string> names, inner;
  std::string outer, twice;  // the sentence about the first that stands there twice
  JsonSeen seen;
  seen.object = [&](int level) {
    if (level == 2) inner.clear();
  };
  seen.key = [&](int level, const std::string& name) {
    if (level > 2) return;
    if (level == 1) outer = name;
    if ((level == 1 ? names : inner).insert(name).second || !twice.empty()) return;
    twice = fmt::format("tensor {}: ", printable(outer)) +
            (level == 1 ? "is in its header twice"
                        : fmt::format("has {} twice in the header", printable(name)));
  };
  if (!json_is_shallow(first, last, seen)) {
    bad(fmt::format("its header nests deeper than {} levels", kDeepestJson));
  }
  nlohmann::json json = nlohmann::json::parse(first, last, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) bad("its header is not a JSON object");
  if (!twice.empty()) bad(twice);
  return json;
}

// Throws what is wrong, to be said after the tensor's name.
Tensor parse_tensor(const nlohmann::json& entry, const std::byte* payload, int64_t payload_bytes) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
    bad("needs dtype, shape and two data_offsets");
  }
  Tensor tensor;
  tensor.dtype = entry["dtype"].get<std::string>();
  int64_t bytes = dtype_bytes(tensor.dtype);
  if (bytes == 0) bad("has a dtype that is not known");
  for (const auto& extent : entry["shape"]) {
    if (!extent.is_number_unsigned()) bad("has an extent that is not a whole number of 0 or more");
    const uint64_t n = extent.get<uint64_t>();
    if (n > static_cast<uint64_t>(INT64_MAX)) bad("has an absurd extent");
    if (__builtin_mul_overflow(bytes, static_cast<int64_t>(n), &bytes)) bad("is absurdly large");
    tensor.shape.push_back(static_cast<int64_t>(n));
  }
  const auto& offsets = entry["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    bad("has offsets that are not whole numbers of 0 or more");
  }
  const uint64_t first = offsets[0].get<uint64_t>();
  const uint64_t last = offsets[1].get<uint64_t>();
  if (first > last || last > static_cast<uint64_t>(payload_bytes)) {
    bad("has offsets outside the file");
  }
  if (last - first != static_cast<uint64_t>(bytes)) {
    bad("has offsets that do not agree with its shape");
  }
  tensor.data = payload + first;
  tensor.bytes = bytes;
  return tensor;
}

void refuse_overlaps(const std::map<std::string, Tensor>& tensors) {
  std::vector<std::pair<const std::byte*, const std::string*>> starts;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.bytes > 0) starts.emplace_back(tensor.data, &name);
  }
  std::sort(starts.begin(), starts.end());
  for (std::size_t i = 1; i < starts.size(); ++i) {
    const Tensor& before = tensors.at(*starts[i - 1].second);
    if (before.data + before.bytes > starts[i].first) {
      bad(fmt::format("tensor {}: shares bytes with tensor {}", printable(*starts[i].second),
                      printable(*starts[i - 1].second)));
    }
  }
}

}  // namespace

SafetensorsContent parse_safetensors(const std::byte* data, int64_t size) {
  if (size < 8) bad(fmt::format("has {} bytes: a safetensors file has at least 8", size));
  uint64_t header_length = 0;
  for (int i = 7; i >= 0; --i) {
    header_length = header_length << 8 | std::to_integer<uint64_t>(data[i]);
  }
  if (header_length > static_cast<uint64_t>(std::min(size - 8, kLargestHeader))) {
    bad(fmt::format("says its header has {} bytes: the file has {}", header_length, size - 8));
  }
  const auto* header = reinterpret_cast<const char*>(data + 8);
  const nlohmann::json json = parse_header(header, header + header_length);
  const int64_t start = 8 + static_cast<int64_t>(header_length);
  SafetensorsContent content;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) bad("__metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (value.is_string()) content.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    try {
      content.tensors.emplace(name, parse_tensor(entry, data + start, size - start));
    } catch (const std::runtime_error& error) {
      bad(fmt::format("tensor {}: {}", printable(name), error.what()));
    }
  }
  refuse_overlaps(content.tensors);
  return content;
}

Safetensors::Safetensors(const std::string& path) : file_(path) {
  try {
    content_ = parse_safetensors(file_.data(), file_.size());
  } catch (const std::runtime_error& error) {
    file_.fail(error.what());
  }
}

const Tensor& Safetensors::at(const std::string& name) const {
  const auto found = content_.tensors.find(name);
  if (found == content_.tensors.end()) {
    file_.fail(fmt::format("has no tensor {}", printable(name)));
  }
  return found->second;
}

}  // namespace octet::tool
