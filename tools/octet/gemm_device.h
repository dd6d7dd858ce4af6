// A device of this machine as `octet gemm` uses it: B and the bias stay on it, rows of A come and
// rows of D go.
#pragma once

#include <cstdint>
#include <string>

#include "device_memory.h"
#include "octet/octet.hpp"

namespace octet::tool {

class GemmDevice {
 public:
  // Throws NoDevice or DeviceError if the device cannot be used.
  explicit GemmDevice(int32_t ordinal);

  const std::string& name() const { return name_; }
  const DeviceSpec& spec() const { return spec_; }

  // Computes the host's D; `host` has column-major scales. B and the bias of the first call are
  // those of all, until they are forgotten. Returns the milliseconds of a second launch, seen from
  // the host.
  double multiply(const GemmPlan& plan, const GemmArgs& host);
  void forget_b() { has_b_ = false; }

 private:
  cuda::Context context_;
  DeviceStream stream_;
  DeviceSpec spec_;
  std::string name_;
  bool has_b_ = false;
  DeviceBuffer b_, sfb_, bias_;
};

}  // namespace octet::tool
