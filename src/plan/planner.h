// Chooses how a problem is computed. Pure: the same arguments give the same plan, on any machine.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "octet/octet.h"

namespace oct::plan {

Status supports(const octet_gemm_problem& problem, const octet_device_spec& device);
Status plan_gemm(const octet_gemm_problem& problem, const octet_device_spec& device,
                 octet_gemm_plan& plan);

// The choice in words: candidates with predicted times, and those refused with the reason.
Status explain(const octet_gemm_problem& problem, const octet_device_spec& device,
               std::string& text);

std::string to_string(const octet_gemm_plan& plan);
Status parse_plan(std::string_view text, octet_gemm_plan& plan);
bool equal(const octet_gemm_plan& x, const octet_gemm_plan& y);

}  // namespace oct::plan
