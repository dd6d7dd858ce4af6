// What the tests of problems and of plans as text have in common.
#pragma once

#include <cstddef>
#include <string>

#include "octet/octet.hpp"

namespace octet_text_tests {

inline octet::GemmProblem wrap(const octet_gemm_problem& fields) {
  octet::GemmProblem p;
  static_cast<octet_gemm_problem&>(p) = fields;
  return p;
}
inline octet::DeviceSpec cpu_device() { return octet::DeviceSpec::preset("cpu").value(); }

struct Wrong {
  const char* text;
  int position;
  const char* want;
};

}  // namespace octet_text_tests
