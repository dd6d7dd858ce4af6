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
std::string shown(const nlohmann::json& json) { return printable(json.dump()); }

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
  // NOTE: to the library a NUL is the end, whatever follows.
  if (std::find(first, last, '\0') != last) bad("its header is not a JSON object");
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
    bad(fmt::format("is {} in the header: must have dtype, shape and two data_offsets",
                    shown(entry)));
  }
  Tensor tensor;
  tensor.dtype = entry["dtype"].get<std::string>();
  int64_t bytes = dtype_bytes(tensor.dtype);
  if (bytes == 0) {
    bad(fmt::format("has dtype {}: must be one of {}", printable(tensor.dtype), dtype_names()));
  }
  for (const auto& extent : entry["shape"]) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > uint64_t{INT64_MAX}) {
      bad(fmt::format("has the extent {} in its shape: must be a whole number from 0 to {}",
                      shown(extent), INT64_MAX));
    }
    const auto n = static_cast<int64_t>(extent.get<uint64_t>());
    if (__builtin_mul_overflow(bytes, n, &bytes)) {
      bad(fmt::format("has shape {} of {}: must have fewer than 2^63 bytes", shown(entry["shape"]),
                      tensor.dtype));
    }
    tensor.shape.push_back(n);
  }
  const auto& offsets = entry["data_offsets"];
  uint64_t first = 1, last = 0;
  if (offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned()) {
    first = offsets[0].get<uint64_t>();
    last = offsets[1].get<uint64_t>();
  }
  if (first > last || last > static_cast<uint64_t>(payload_bytes)) {
    bad(
        fmt::format("has data_offsets {}: must be whole numbers from 0 to {}, in order: so many "
                    "bytes are behind the header",
                    shown(offsets), payload_bytes));
  }
  if (last - first != static_cast<uint64_t>(bytes)) {
    bad(fmt::format("has data_offsets {}, {} bytes: its shape {} of {} needs {}", shown(offsets),
                    last - first, shown(entry["shape"]), tensor.dtype, bytes));
  }
  tensor.data = payload + first;
  tensor.bytes = bytes;
  return tensor;
}

// The format wants every byte behind the header to be one tensor's: whoever sees others sees
// another file in this one, or the end of a file that was written over.
void check_places(const std::map<std::string, Tensor>& tensors, const std::byte* payload,
                  int64_t payload_bytes) {
  std::vector<std::pair<const std::byte*, const std::string*>> starts;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.bytes > 0) starts.emplace_back(tensor.data, &name);
  }
  std::sort(starts.begin(), starts.end());
  const std::byte* end = payload;
  std::string before = "its header";
  for (const auto& [start, name] : starts) {
    const std::string tensor = "tensor " + printable(*name);
    if (start < end) bad(fmt::format("{}: shares bytes with {}", tensor, before));
    if (start > end) {
      bad(fmt::format("has {} bytes between {} and {}: must have none there", start - end, before,
                      tensor));
    }
    end = start + tensors.at(*name).bytes;
    before = tensor;
  }
  if (const auto left = payload + payload_bytes - end; left > 0) {
    bad(fmt::format("has {} bytes behind {}{}: must end there", left, before,
                    starts.empty() ? "" : ", the last"));
  }
}

}  // namespace

SafetensorsContent parse_safetensors(const std::byte* data, int64_t size) {
  if (size < 8) bad(fmt::format("has {} bytes: a safetensors file has at least 8", size));
  uint64_t header_length = 0;
  for (int i = 7; i >= 0; --i) {
    header_length = header_length << 8 | std::to_integer<uint64_t>(data[i]);
  }
  if (header_length > static_cast<uint64_t>(kLargestHeader)) {
    bad(fmt::format("says its header has {} bytes: must have at most {}, the format's own limit",
                    header_length, kLargestHeader));
  }
  if (header_length > static_cast<uint64_t>(size - 8)) {
    bad(fmt::format("says its header has {} bytes: the file has {}", header_length, size - 8));
  }
  const auto* header = reinterpret_cast<const char*>(data + 8);
  const nlohmann::json json = parse_header(header, header + header_length);
  const int64_t start = 8 + static_cast<int64_t>(header_length);
  SafetensorsContent content;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) {
        bad(fmt::format("has the __metadata__ {}: must be an object", shown(entry)));
      }
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
  check_places(content.tensors, data + start, size - start);
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
