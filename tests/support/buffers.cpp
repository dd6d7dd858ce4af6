// See buffers.h.
#include "support/buffers.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace oct::testing_support {

Buffer::Buffer(int64_t bytes, int64_t offset) : bytes_(bytes), offset_(offset) {
  if (bytes == 0) return;
  void* block = nullptr;
  if (posix_memalign(&block, 256, static_cast<std::size_t>(bytes + offset)) != 0) {
    throw std::bad_alloc();
  }
  block_ = static_cast<uint8_t*>(block);
  std::memset(block_, 0, static_cast<std::size_t>(bytes + offset));
}

Buffer::Buffer(const Buffer& other) : Buffer(other.bytes_, other.offset_) {
  if (bytes_ > 0) std::memcpy(data(), other.data(), static_cast<std::size_t>(bytes_));
}

Buffer::Buffer(Buffer&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      offset_(std::exchange(other.offset_, 0)) {}

Buffer& Buffer::operator=(Buffer other) noexcept {
  std::swap(block_, other.block_);
  std::swap(bytes_, other.bytes_);
  std::swap(offset_, other.offset_);
  return *this;
}

Buffer::~Buffer() { std::free(block_); }

void Buffer::fill(uint8_t byte) {
  if (bytes_ > 0) std::memset(data(), byte, static_cast<std::size_t>(bytes_));
}

}  // namespace oct::testing_support
