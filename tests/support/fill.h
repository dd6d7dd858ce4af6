// Values for operands and scales, by class: from what real layers hold to every bit pattern there
// is.
#pragma once

#include <cstdint>

#include "octet/octet.h"
#include "support/random.h"

namespace oct::testing_support {

enum class DataClass {
  kGaussian,   // quantised activations and weights; finite results
  kOnes,       // every element 1
  kSparse,     // mostly zeros of both signs
  kSubnormal,  // near and below the smallest normal numbers
  kAnyFinite,  // every finite pattern, wide scales; results may overflow
  kAnything,   // NaN and infinities among them
};
inline constexpr int kDataClasses = 6;

// `count` elements of e4m3, BF16, FP16 or FP32.
void fill_elements(Random& random, DataClass kind, octet_type type, void* data, int64_t count);
float draw_scale(Random& random, DataClass kind);

}  // namespace oct::testing_support
