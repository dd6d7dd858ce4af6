// The law of quantisation (docs/numerics.md section 3), element by element. `args` has passed
// core::check_quantize().
#pragma once

#include "octet/octet.h"

namespace oct::ref {

void quantize(const octet_quantize_args& args);
void dequantize(const octet_quantize_args& args);

}  // namespace oct::ref
