// See safetensors.h.
#include "safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace octet::tool {
namespace {

constexpr int64_t kLargestHeader = 100'000'000;  // the format's own limit

int64_t element_bytes(const std::string& dtype) {
  static const std::map<std::string, int64_t> kBytes = {{"BOOL", 1},    {"U8", 1},      {"I8", 1},
                                                        {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2},
                                                        {"U16", 2},     {"F16", 2},     {"BF16", 2},
                                                        {"I32", 4},     {"U32", 4},     {"F32", 4},
                                                        {"F64", 8},     {"I64", 8},     {"U64", 8}};
  const auto found = kBytes.find(dtype);
  return found == kBytes.end() ? 0 : found->second;
}

}  // namespace

void Safetensors::fail(const std::string& what) const {
  throw std::runtime_error(fmt::format("{}: {}", path_, what));
}

Safetensors::Safetensors(const std::string& path) : path_(path) {
  // A FIFO would let open() wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(file);
    fail("is not a regular file");
  }
  size_ = info.st_size;
  if (size_ < 8) {
    ::close(file);
    fail(fmt::format("has {} bytes: a safetensors file has at least 8", size_));
  }
  void* mapped = ::mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  ::close(file);
  if (mapped == MAP_FAILED) fail(fmt::format("cannot be mapped: {}", std::strerror(error)));
  data_ = static_cast<const std::byte*>(mapped);
  try {
    parse();
  } catch (...) {
    ::munmap(mapped, static_cast<std::size_t>(size_));
    throw;
  }
}

Safetensors::~Safetensors() {
  ::munmap(const_cast<std::byte*>(data_), static_cast<std::size_t>(size_));
}

void Safetensors::parse() {
  uint64_t header_length = 0;
  for (int i = 7; i >= 0; --i) {
    header_length = header_length << 8 | std::to_integer<uint64_t>(data_[i]);
  }
  if (header_length > static_cast<uint64_t>(std::min(size_ - 8, kLargestHeader))) {
    fail(fmt::format("says its header has {} bytes: the file has {}", header_length, size_ - 8));
  }
  const auto* header = reinterpret_cast<const char*>(data_ + 8);
  const nlohmann::json json =
      nlohmann::json::parse(header, header + header_length, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) fail("its header is not a JSON object");
  const std::byte* payload = data_ + 8 + header_length;
  const int64_t payload_bytes = size_ - 8 - static_cast<int64_t>(header_length);
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) fail("__metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (value.is_string()) metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    const auto bad = [&, &name = name](const char* what) {
      fail(fmt::format("tensor {}: {}", name, what));
    };
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
      bad("needs dtype, shape and two data_offsets");
    }
    Tensor tensor;
    tensor.dtype = entry["dtype"].get<std::string>();
    int64_t bytes = element_bytes(tensor.dtype);
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
}

const Tensor& Safetensors::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(fmt::format("has no tensor {}", name));
  return found->second;
}

}  // namespace octet::tool
