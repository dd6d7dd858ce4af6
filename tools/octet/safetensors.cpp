// See safetensors.h.
#include "safetensors.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace octet::tool {
namespace {

constexpr int64_t kLargestHeader = 100'000'000;  // the format's own limit

// Of the JSON between two pointers; a name that stands twice in the outermost object is put in
// `twice`: the parser by itself would keep the last and say nothing.
nlohmann::json parse_header(const char* first, const char* last, std::string& twice) {
  std::set<std::string> names;
  const auto look = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 &&
        !names.insert(value.get<std::string>()).second && twice.empty()) {
      twice = value.get<std::string>();
    }
    return true;
  };
  return nlohmann::json::parse(first, last, look, /*allow_exceptions=*/false);
}

}  // namespace

Safetensors::Safetensors(const std::string& path) : file_(path) {
  if (file_.size() < 8) {
    fail(fmt::format("has {} bytes: a safetensors file has at least 8", file_.size()));
  }
  parse();
}

void Safetensors::parse() {
  uint64_t header_length = 0;
  for (int i = 7; i >= 0; --i) {
    header_length = header_length << 8 | std::to_integer<uint64_t>(file_.data()[i]);
  }
  if (header_length > static_cast<uint64_t>(std::min(file_.size() - 8, kLargestHeader))) {
    fail(fmt::format("says its header has {} bytes: the file has {}", header_length,
                     file_.size() - 8));
  }
  const auto* header = reinterpret_cast<const char*>(file_.data() + 8);
  std::string twice;
  const nlohmann::json json = parse_header(header, header + header_length, twice);
  if (!json.is_object()) fail("its header is not a JSON object");
  if (!twice.empty()) fail(fmt::format("tensor {}: is in its header twice", printable(twice)));
  const std::byte* payload = file_.data() + 8 + header_length;
  const int64_t payload_bytes = file_.size() - 8 - static_cast<int64_t>(header_length);
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) fail("__metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (value.is_string()) metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    const auto bad = [&, &name = name](const char* what) {
      fail(fmt::format("tensor {}: {}", printable(name), what));
    };
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
      if (!extent.is_number_unsigned())
        bad("has an extent that is not a whole number of 0 or more");
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
    tensors_.emplace(name, std::move(tensor));
  }
  refuse_overlaps();
}

void Safetensors::refuse_overlaps() const {
  std::vector<std::pair<const std::byte*, const std::string*>> starts;
  for (const auto& [name, tensor] : tensors_) {
    if (tensor.bytes > 0) starts.emplace_back(tensor.data, &name);
  }
  std::sort(starts.begin(), starts.end());
  for (std::size_t i = 1; i < starts.size(); ++i) {
    const Tensor& before = tensors_.at(*starts[i - 1].second);
    if (before.data + before.bytes > starts[i].first) {
      fail(fmt::format("tensor {}: shares bytes with tensor {}", printable(*starts[i].second),
                       printable(*starts[i - 1].second)));
    }
  }
}

const Tensor& Safetensors::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(fmt::format("has no tensor {}", printable(name)));
  return found->second;
}

}  // namespace octet::tool
