// The yardstick of host cost: the very launch that the library makes, made by the driver alone. A
// captured call tells its function, grid, block, shared memory, cluster and parameters.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <functional>

#include "bench_cuda.h"

namespace octet::tool {

class BareLaunch {
 public:
  // `enqueue` makes one launch on the stream.
  BareLaunch(cudaStream_t stream, const std::function<void()>& enqueue);
  void launch() const;

 private:
  using Launch = CUresult (*)(const CUlaunchConfig*, CUfunction, void**, void**);

  Graph graph_;  // owns the parameters
  CUDA_KERNEL_NODE_PARAMS node_{};
  CUlaunchAttribute cluster_{};
  CUlaunchConfig config_{};
  Launch launch_ = nullptr;
};

}  // namespace octet::tool
