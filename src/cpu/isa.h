// Which instruction sets there are: the one table of names and kernels, fastest last.
#pragma once

#include <string>

#include "cpu/kernel.h"

namespace oct::cpu {

// Null unless this build has the kernel and this processor its instructions. OCTET_ISA_AUTO: the
// fastest there is.
const Kernel* find_kernel(octet_isa isa);

const char* isa_name(octet_isa isa);
std::string available_isas();  // "portable, avx2"

}  // namespace oct::cpu
