// One element of D in float64 on the dequantised inputs, and how far the arithmetic of
// docs/numerics.md may be from it: every cut of the tensor-core model and every rounding after it
// adds its share. Knows nothing of the library but the arguments.
#pragma once

#include <cstdint>

#include "octet/octet.h"

namespace oct::testing_support {

struct Bounded {
  double exact;
  double bound;  // infinite where the result may overflow or is not a number
};

// Element (row, col) of buffer `buffer` of D, whose owner is group `owner`.
Bounded exact_element(const octet_gemm_plan& plan, const octet_gemm_args& args, int64_t buffer,
                      int64_t owner, int64_t row, int64_t col);

}  // namespace oct::testing_support
