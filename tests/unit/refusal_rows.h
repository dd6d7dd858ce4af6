// The sentence of every rule that a problem, a plan, an operand or a kernel can break, to the
// letter.
#pragma once

#include <string>
#include <vector>

#include "refusal_calls.h"

namespace octet_refusals {

std::vector<Row> problem_rows();   // problems, devices, plans and their strings
std::vector<Row> argument_rows();  // pointers, strides, options
std::vector<Row> found_rows();     // what validate() and quantisers find
std::vector<Row> kernel_rows();    // why a kernel does not serve a problem
Row isa_row();

}  // namespace octet_refusals
