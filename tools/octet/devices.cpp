// See devices.h.
#include "devices.h"

#include <fmt/format.h>

#include "octet/octet.hpp"

namespace octet::tool {

std::string cuda_version_text(int32_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

void require_usable(int32_t ordinal) {
  // Said first: without kernels no driver and no device would help.
  if (octet_cuda_kernel_count() == 0) {
    throw NoDevice("this build has no kernels (" OCTET_WHY_NO_KERNELS
                   "): build it with OCTET_CUDA=require, where nvcc is installed");
  }
  const auto device = cuda::device_spec(ordinal);
  if (!device.ok()) throw NoDevice(device.message());
}

}  // namespace octet::tool
