// See bench_bare_launch.h.
#include "bench_bare_launch.h"

namespace octet::tool {
namespace {

// The driver's functions through the runtime, so that nothing is linked against the driver.
template <typename Function>
Function driver_function(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned kInterface = 12000;
  cuda_ok(cudaGetDriverEntryPointByVersion(name, &address, kInterface, cudaEnableDefault, &found),
          std::string("finding ") + name);
  if (found != cudaDriverEntryPointSuccess || address == nullptr) {
    throw DeviceError(std::string("the driver lacks ") + name);
  }
  return reinterpret_cast<Function>(address);
}

void driver_ok(CUresult result, const char* doing) {
  if (result == CUDA_SUCCESS) return;
  throw DeviceError(std::string(doing) + ": the driver reports error " + std::to_string(result));
}

}  // namespace

BareLaunch::BareLaunch(cudaStream_t stream, const std::function<void()>& enqueue)
    : graph_(capture(stream, enqueue)) {
  std::size_t count = 0;
  cuda_ok(cudaGraphGetNodes(graph_.get(), nullptr, &count), "counting a graph's nodes");
  if (count != 1) throw DeviceError("host cost is measured on calls of exactly one launch");
  cudaGraphNode_t node = nullptr;
  cuda_ok(cudaGraphGetNodes(graph_.get(), &node, &count), "reading a graph");
  const auto read = driver_function<CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*)>(
      "cuGraphKernelNodeGetParams");
  driver_ok(read(node, &node_), "reading a launch");
  CUlaunchAttributeValue value{};
  const auto attribute =
      driver_function<CUresult (*)(CUgraphNode, CUlaunchAttributeID, CUlaunchAttributeValue*)>(
          "cuGraphKernelNodeGetAttribute");
  driver_ok(attribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value), "reading a cluster");
  config_.gridDimX = node_.gridDimX;
  config_.gridDimY = node_.gridDimY;
  config_.gridDimZ = node_.gridDimZ;
  config_.blockDimX = node_.blockDimX;
  config_.blockDimY = node_.blockDimY;
  config_.blockDimZ = node_.blockDimZ;
  config_.sharedMemBytes = node_.sharedMemBytes;
  config_.hStream = stream;
  if (value.clusterDim.x > 1) {
    cluster_.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster_.value = value;
    config_.attrs = &cluster_;
    config_.numAttrs = 1;
  }
  launch_ = driver_function<Launch>("cuLaunchKernelEx");
}

void BareLaunch::launch() const {
  driver_ok(launch_(&config_, node_.func, node_.kernelParams, nullptr), "launching");
}

}  // namespace octet::tool
