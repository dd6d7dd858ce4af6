// Sets the processor's floating-point control register to the arithmetic of docs/numerics.md (round
// to nearest even, nothing flushed to zero, no traps) and restores the caller's on the way out. A
// caller may run with flush-to-zero or another rounding mode; results must not depend on it.
#pragma once

#include <cfenv>

namespace oct::core {

class FpEnvironment {
 public:
  FpEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);  // clears FTZ, DAZ and FZ too
  }
  ~FpEnvironment() { std::fesetenv(&saved_); }
  FpEnvironment(const FpEnvironment&) = delete;
  FpEnvironment& operator=(const FpEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace oct::core
