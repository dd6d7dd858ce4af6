// What the GPU tests begin with: the device opened, the kernels that the command line leaves, a
// plan that forces one of them.
#pragma once

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda/context.h"
#include "device_case.h"
#include "kernel_abi/kernel_table.h"
#include "plan/candidates.h"

namespace oct::test {

using Kernels = std::vector<const char*>;

inline std::unique_ptr<cuda::Context> context;
inline std::string only_kernel;  // --kernel
inline int64_t failures = 0;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Opens the device and returns a stream of it. Without a usable device the test ends here, skipped
// aloud; a hang ends it after `most_seconds`.
inline cudaStream_t open_device(unsigned most_seconds) {
  if (const Status s = cuda::Context::create(0, context); !s.ok()) {
    std::printf("SKIPPED: %s\n", s.message().c_str());
    std::exit(77);
  }
  alarm(most_seconds);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  OCT_CUDA(cudaSetDevice(0));
  cudaStream_t stream = nullptr;
  OCT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

// The kernels that --kernel leaves and whose tiles are `wanted`, in the table's order.
template <typename Wanted>
Kernels kernels_where(Wanted wanted) {
  Kernels names;
  for (const abi::KernelRow& row : abi::kKernels) {
    if (std::strstr(row.name, only_kernel.c_str()) == nullptr) continue;
    if (wanted(abi::parse_kernel(row.name))) names.push_back(row.name);
  }
  return names;
}

inline void load(const Kernels& kernels) {
  for (const char* kernel : kernels) {
    if (const Status s = context->load(kernel); !s.ok()) {
      std::printf("FAILED: %s\n", s.message().c_str());
      std::exit(1);
    }
  }
}

inline octet_gemm_plan plan_for(const octet_gemm_problem& p, const char* kernel, int split) {
  octet_gemm_plan plan{};
  plan.struct_size = sizeof plan;
  plan.problem = p;
  plan.split = split;
  std::snprintf(plan.kernel, sizeof plan.kernel, "%s", kernel);
  std::snprintf(plan.device, sizeof plan.device, "h200");
  plan.sms = static_cast<int32_t>(
      plan::most_ctas(abi::parse_kernel(kernel), p, context->device_spec(), split));
  return plan;
}

}  // namespace oct::test
