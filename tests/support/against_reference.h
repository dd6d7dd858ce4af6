// A run of the CPU backend held against the reference: all of D where that is quick, otherwise a
// sample of its elements (corners, edges and random ones), each computed by the normative loops
// alone.
#pragma once

#include <string>

#include "support/host_case.h"

namespace oct::testing_support {

// Runs the case on the CPU backend with the instruction set and threads given. Empty if the run
// succeeds, every element compared is right and nothing else was written. The result stays in `c`.
std::string run_and_compare(HostCase& c, octet_isa isa = OCTET_ISA_AUTO, int threads = 0);

}  // namespace oct::testing_support
