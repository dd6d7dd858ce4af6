// Memory and streams of an NVIDIA device, for the commands that run kernels. The library itself
// takes pointers and streams and never allocates; a program brings its own, and this is the
// command's. device_memory.cpp, built where nvcc is, stands on the CUDA runtime (linked statically:
// the driver is all that is needed at run time); device_memory_none.cpp takes its place in builds
// without kernels, where every constructor throws.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

namespace octet::tool {

// The device or its driver reported an error: one sentence.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A stream of a device. Makes the device current in the calling thread, for the buffers that
// follow.
class DeviceStream {
 public:
  explicit DeviceStream(int device);
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  void* get() const noexcept { return stream_; }  // what the library takes: a cudaStream_t

  // Waits for all that was queued. False if it is not done after `seconds`: then the device hangs,
  // and so would the destructors of streams and buffers; leave by std::_Exit(). Throws DeviceError
  // if what was queued has failed.
  [[nodiscard]] bool wait(double seconds) const;

 private:
  void* stream_ = nullptr;
  [[maybe_unused]] void* event_ = nullptr;  // not used where there are no kernels
};

// Device memory of the current device; 256-byte aligned. Bytes not uploaded are whatever was there.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);
  template <typename T>
  DeviceBuffer(const std::vector<T>& from, const DeviceStream& stream)
      : DeviceBuffer(from.size() * sizeof(T)) {
    upload(from.data(), bytes_, stream);
  }
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

  // In the order of the stream, from the start of the buffer. `from` may be changed afterwards.
  void upload(const void* from, std::size_t bytes, const DeviceStream& stream);
  // Blocks until all that was queued is done: ask wait() first, which can give up.
  void download(void* to, std::size_t bytes, const DeviceStream& stream) const;

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace octet::tool
