// The NVIDIA devices of this machine, in the words of the command.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace octet::tool {

// One sentence: there is no usable device, or this build has no kernels. main() makes it exit
// code 3.
class NoDevice : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "13.0" for 13000.
std::string cuda_version_text(int32_t version);

// Throws NoDevice unless kernels can run on the device.
void require_usable(int32_t ordinal);

}  // namespace octet::tool
