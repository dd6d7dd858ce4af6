// Memory of exactly the size asked for, so that the address sanitizer sees the first byte too many.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oct::testing_support {

class Buffer {
 public:
  Buffer() = default;
  // `bytes` from an address that is `offset` past a multiple of 256; null when there are none.
  explicit Buffer(int64_t bytes, int64_t offset = 0);
  Buffer(const Buffer& other);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer other) noexcept;
  ~Buffer();

  uint8_t* data() const { return block_ == nullptr ? nullptr : block_ + offset_; }
  int64_t size() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
  void fill(uint8_t byte);

 private:
  uint8_t* block_ = nullptr;
  int64_t bytes_ = 0, offset_ = 0;
};

}  // namespace oct::testing_support
