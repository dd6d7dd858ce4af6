// Making and checking gemms.bin, whatever computes: a device (record_gemms.cpp), or the processor,
// where the way through the file is tested without a device.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "golden/gemm_cases.h"
#include "golden/gemm_file.h"

namespace oct::golden {

// Computes D with the plan: d_memory, in host memory, holds D's memory before and after.
using Compute =
    std::function<Status(const octet_gemm_plan& plan, const GemmInputs& inputs, uint8_t* d_memory)>;
// On the processor, with an instruction set, and by the normative loops.
Compute compute_on_cpu(octet_isa isa);
Compute compute_by_reference();

octet_gemm_problem case_problem(const GemmCase& which, std::size_t index);
// One plan for every kernel that serves the problem.
std::vector<octet_gemm_plan> case_plans(const octet_gemm_problem& problem,
                                        const octet_device_spec& device);

struct Recording {
  GemmFile file;
  std::vector<std::string> wrong;  // one line for each thing that is
};
// Runs all cases with all their plans.
Recording record(std::span<const GemmCase> cases, const octet_device_spec& device,
                 const Compute& compute);

// Empty, or how the record differs from what `compute` gives.
std::string disagreement(const GemmRecord& record, const Compute& compute);

}  // namespace oct::golden
