// What the benchmark needs of the CUDA runtime besides memory and streams (device_memory.h), owned
// and checked: a call that fails throws DeviceError with one sentence.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "device_memory.h"

namespace octet::tool {

inline void cuda_ok(cudaError_t result, const std::string& doing) {
  if (result == cudaSuccess) return;
  throw DeviceError(doing + ": the CUDA runtime reports " + cudaGetErrorName(result) + " (" +
                    cudaGetErrorString(result) + ")");
}

// A handle of the runtime with its destructor; movable.
template <typename Handle, cudaError_t (*kDestroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) static_cast<void>(kDestroy(handle_));
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

inline Event make_event() {
  cudaEvent_t event = nullptr;
  cuda_ok(cudaEventCreate(&event), "making an event");
  return Event(event);
}

// Waits for an event. A device that hangs would hold the destructors too: after a minute the
// process says so and leaves.
inline void wait_for(const Event& event, const char* doing) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  for (;;) {
    const cudaError_t state = cudaEventQuery(event.get());
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) cuda_ok(state, doing);
    if (Clock::now() > deadline) {
      std::fprintf(stderr, "octet: %s: the device has not finished after a minute\n", doing);
      std::fflush(nullptr);
      std::_Exit(3);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

// What `enqueue` puts on the stream, as a graph. A capture that fails half-way is ended.
inline Graph capture(cudaStream_t stream, const std::function<void()>& enqueue) {
  cuda_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(stream, &graph));
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
    throw;
  }
  cuda_ok(cudaStreamEndCapture(stream, &graph), "ending a capture");
  return Graph(graph);
}

}  // namespace octet::tool
