// The tuned tables that ship with the library (tables/), as constants: plan_gemm() asks them after
// a table it is given and before the cost model. The build reads tables/*.txt (src/CMakeLists.txt).
#pragma once

#include "octet/octet.h"
#include "plan/tuned_table.h"

namespace oct::plan {

// Empty where none ships for a device of this name; find_tuned() looks at its SMs.
TableView shipped_table(const octet_device_spec& device);

}  // namespace oct::plan
