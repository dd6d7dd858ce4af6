// A device of this machine as the demo uses it: one dense FP8 product, operands and result in host
// memory, and the time that the kernel took.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device_memory.h"
#include "octet/octet.hpp"

namespace octet::tool {

class DemoDevice {
 public:
  // Throws NoDevice or DeviceError if the device cannot be used.
  explicit DemoDevice(int32_t ordinal);

  const std::string& name() const { return name_; }
  const DeviceSpec& spec() const { return spec_; }

  // D of a dense problem with FP32 result and column-major scales. milliseconds: of a second
  // launch, seen from the host.
  std::vector<float> multiply(const GemmPlan& plan, const GemmArgs& host, double& milliseconds);

 private:
  cuda::Context context_;
  DeviceStream stream_;
  DeviceSpec spec_;
  std::string name_;
};

}  // namespace octet::tool
