// Quantise and dequantise on the processor: the bits of ref/quantize.h, blocked, threaded, and with
// the inner loops in a form that compilers vectorise. `args` has passed core::check_quantize().
#pragma once

#include "octet/octet.h"

namespace oct::cpu {

void quantize(const octet_quantize_args& args);
void dequantize(const octet_quantize_args& args);

}  // namespace oct::cpu
