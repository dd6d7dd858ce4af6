// See device_memory.h: the CUDA runtime's side, the only file of the command that names it.
#include "device_memory.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <string>
#include <thread>

namespace octet::tool {
namespace {

void must(cudaError_t error, const std::string& doing) {
  if (error == cudaSuccess) return;
  // Errors of one call are not to surface in the next one.
  static_cast<void>(cudaGetLastError());
  throw DeviceError(doing + ": the device reports " + cudaGetErrorName(error) + " (" +
                    cudaGetErrorString(error) + ")");
}

void must_hold(std::size_t bytes, std::size_t capacity) {
  if (bytes <= capacity) return;
  throw DeviceError("copy of " + std::to_string(bytes) + " bytes: the device buffer has " +
                    std::to_string(capacity));
}

cudaStream_t to_stream(const DeviceStream& stream) {
  return static_cast<cudaStream_t>(stream.get());
}

}  // namespace

DeviceStream::DeviceStream(int device) {
  must(cudaSetDevice(device), "device " + std::to_string(device));
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "new stream");
  stream_ = stream;
  if (const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
      error != cudaSuccess) {
    static_cast<void>(cudaStreamDestroy(stream));
    must(error, "new event");
  }
  event_ = event;
}

DeviceStream::~DeviceStream() {
  static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(event_)));
  static_cast<void>(cudaStreamDestroy(static_cast<cudaStream_t>(stream_)));
}

bool DeviceStream::wait(double seconds) const {
  using Clock = std::chrono::steady_clock;
  const auto event = static_cast<cudaEvent_t>(event_);
  must(cudaEventRecord(event, static_cast<cudaStream_t>(stream_)), "recording an event");
  const auto start = Clock::now();
  const auto deadline = start + std::chrono::duration<double>(seconds);
  for (;;) {
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaSuccess) return true;
    if (state != cudaErrorNotReady) must(state, "work on the device");
    const auto now = Clock::now();
    if (now > deadline) return false;
    // Most waits are for microseconds; the long ones leave the processor to others.
    if (now - start > std::chrono::milliseconds(1)) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  must(cudaMalloc(&data_, bytes), std::to_string(bytes) + " bytes of device memory");
  bytes_ = bytes;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) static_cast<void>(cudaFree(data_));
}

void DeviceBuffer::upload(const void* from, std::size_t bytes, const DeviceStream& stream) {
  must_hold(bytes, bytes_);
  if (bytes == 0) return;
  // Memory that is not pinned has been read when this returns.
  must(cudaMemcpyAsync(data_, from, bytes, cudaMemcpyHostToDevice, to_stream(stream)),
       "copy to the device");
}

void DeviceBuffer::download(void* to, std::size_t bytes, const DeviceStream& stream) const {
  must_hold(bytes, bytes_);
  if (bytes == 0) return;
  must(cudaMemcpyAsync(to, data_, bytes, cudaMemcpyDeviceToHost, to_stream(stream)),
       "copy from the device");
  must(cudaStreamSynchronize(to_stream(stream)), "copy from the device");
}

}  // namespace octet::tool
