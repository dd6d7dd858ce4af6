// What makes the command's exit code 1.
#pragma once

#include <stdexcept>

namespace octet::tool {

// A result is not what it must be, or writing failed midway: one sentence. main() makes it
// kCheckFailed.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace octet::tool
