// See tensor_output.h.
#include "tensor_output.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "npy.h"

namespace octet::tool {

int64_t tensor_bytes(const NewTensor& tensor) {
  int64_t bytes = dtype_bytes(tensor.dtype);
  for (const int64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      throw std::runtime_error(fmt::format("tensor {}: {} elements of shape {} are too many",
                                           printable(tensor.name), tensor.dtype,
                                           shape_text(tensor.shape)));
    }
  }
  return bytes;
}

SafetensorsOutput::SafetensorsOutput(const std::string& path, const std::vector<NewTensor>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path), offsets_(tensors.size()) {
  // The format allows no gaps: large elements first, so that every tensor is aligned to its type.
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    return dtype_bytes(tensors[x].dtype) > dtype_bytes(tensors[y].dtype);
  });
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t end = 0;
  for (const std::size_t i : order) {
    const int64_t bytes = tensor_bytes(tensors[i]);
    if (tensors[i].name == "__metadata__") {
      throw std::runtime_error(fmt::format(
          "{}: tensor __metadata__: the format keeps that name for itself: must be another",
          printable(path)));
    }
    if (header.contains(tensors[i].name)) {
      throw std::runtime_error(fmt::format("{}: tensor {}: would be written twice", printable(path),
                                           printable(tensors[i].name)));
    }
    offsets_[i] = end;
    if (__builtin_add_overflow(end, bytes, &end)) {
      throw std::runtime_error(fmt::format("{}: would be too large", printable(path)));
    }
    header[tensors[i].name] = {{"dtype", tensors[i].dtype},
                               {"shape", tensors[i].shape},
                               {"data_offsets", {offsets_[i], end}}};
  }
  std::string text;
  try {
    text = tensors.empty() && metadata.empty() ? "{}" : header.dump();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(
        fmt::format("{}: names of tensors must be valid UTF-8", printable(path)));
  }
  constexpr std::size_t kUnit = 16;
  text.append((kUnit - (8 + text.size()) % kUnit) % kUnit, ' ');
  std::string preamble;
  for (int i = 0; i < 8; ++i) preamble += static_cast<char>(text.size() >> 8 * i & 0xff);
  preamble += text;
  const auto before = static_cast<int64_t>(preamble.size());
  for (int64_t& offset : offsets_) offset += before;
  file_.write_at(0, preamble.data(), before);
}

NpyOutput::NpyOutput(const std::string& path, octet_type type, const std::vector<int64_t>& shape)
    : file_(path) {
  const std::string preamble = npy_preamble(type, shape);
  offset_ = static_cast<int64_t>(preamble.size());
  file_.write_at(0, preamble.data(), offset_);
}

}  // namespace octet::tool
