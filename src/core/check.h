// Every rule about the pointers, shapes, strides and overlaps of a call. Pure: reads no operand,
// and the same on every backend, so that a program moves from CPU to GPU unchanged.
#pragma once

#include "core/status.h"
#include "octet/octet.h"

namespace oct::core {

Status check_args(const octet_gemm_plan& plan, const octet_gemm_args& args);
Status check_quantize(const octet_quantize_args& args);    // writes codes and scales
Status check_dequantize(const octet_quantize_args& args);  // reads them, writes x

// Host memory: names the first grouping value that a run would clamp, or scale that is not finite.
Status validate(const octet_gemm_plan& plan, const octet_gemm_args& args);
// Of it the grouping metadata alone, whose arrays lie in host memory; `args` is checked.
Status validate_metadata(const octet_gemm_problem& problem, const octet_gemm_args& args);

}  // namespace oct::core
