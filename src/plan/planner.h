// Chooses how a problem is computed. Pure: the same arguments give the same plan, on any machine.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "octet/octet.h"
#include "plan/tuned_table.h"

namespace oct::plan {

Status supports(const octet_gemm_problem& problem, const octet_device_spec& device);
// What was measured, where the table (may be null) has it; else the cheapest by the cost model.
Status plan_gemm(const octet_gemm_problem& problem, const octet_device_spec& device,
                 const TunedTable* table, octet_gemm_plan& plan);

// The index-th cheapest way to compute the problem by the cost model; 0 is plan_gemm()'s choice
// where no table decides. `count` receives how many there are, also when `index` is beyond them.
Status plan_candidate(const octet_gemm_problem& problem, const octet_device_spec& device,
                      int32_t index, octet_gemm_plan& plan, int32_t& count);

// The choice in words: where it comes from, candidates with predicted times, and those refused with
// the reason.
Status explain(const octet_gemm_problem& problem, const octet_device_spec& device,
               const TunedTable* table, std::string& text);

std::string to_string(const octet_gemm_plan& plan);
// A plan that no planner made: its fields may hold anything.
Status check_plan(const octet_gemm_plan& plan);
Status parse_plan(std::string_view text, octet_gemm_plan& plan);
bool equal(const octet_gemm_plan& x, const octet_gemm_plan& y);

}  // namespace oct::plan
