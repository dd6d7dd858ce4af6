// The problem as a value: defaults, equality, hash, the problem string (whose grammar stands in
// problem_string.cpp and docs/problem-string.md), and the rules that need no device and no pointer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"
#include "octet/octet.h"

namespace oct::core {

inline constexpr int kMaxSplit = 64;
inline constexpr int64_t kMaxSize = 2147483647;  // the copy engine's coordinates are 32-bit

constexpr octet_scale_layout default_sfb_layout(octet_scale_granularity granularity) {
  return granularity == OCTET_1D1D ? OCTET_COLUMN_MAJOR : OCTET_ROW_MAJOR;
}

constexpr octet_gemm_problem default_problem() {
  octet_gemm_problem p{};
  p.struct_size = sizeof p;
  p.grouping = OCTET_DENSE;
  p.groups = 1;
  p.alignment = 128;
  p.in_type = OCTET_E4M3;
  p.d_type = OCTET_BF16;
  p.bias_type = OCTET_NONE;
  p.granularity = OCTET_1D2D;
  p.sfa_layout = OCTET_COLUMN_MAJOR;
  p.sfb_layout = default_sfb_layout(p.granularity);
  p.index_type = OCTET_I32;
  p.zero_padding = 1;
  return p;
}

int64_t default_max_m(int64_t m);  // masked: room for the largest group that a seed can draw

// Calls visit(x_field, y_field) for every field but struct_size; the one list of fields.
template <typename Visit>
constexpr void for_each_field(const octet_gemm_problem& x, const octet_gemm_problem& y,
                              Visit visit) {
  visit(x.grouping, y.grouping);
  visit(x.m, y.m);
  visit(x.n, y.n);
  visit(x.k, y.k);
  visit(x.groups, y.groups);
  visit(x.max_m, y.max_m);
  visit(x.alignment, y.alignment);
  visit(x.in_type, y.in_type);
  visit(x.d_type, y.d_type);
  visit(x.bias_type, y.bias_type);
  visit(x.accumulate, y.accumulate);
  visit(x.granularity, y.granularity);
  visit(x.sfa_layout, y.sfa_layout);
  visit(x.sfb_layout, y.sfb_layout);
  visit(x.index_type, y.index_type);
  visit(x.packed, y.packed);
  visit(x.zero_padding, y.zero_padding);
  visit(x.split, y.split);
  visit(x.batch_invariant, y.batch_invariant);
  visit(x.sm_budget, y.sm_budget);
  visit(x.dependent_launch, y.dependent_launch);
  visit(x.weights_ready, y.weights_ready);
  visit(x.even, y.even);
  visit(x.seed, y.seed);
}

bool equal(const octet_gemm_problem& x, const octet_gemm_problem& y);
uint64_t hash(const octet_gemm_problem& problem);

std::string to_string(const octet_gemm_problem& problem);
Status parse_problem(std::string_view text, octet_gemm_problem& problem);

// The rules that hold on every backend.
Status check_problem(const octet_gemm_problem& problem);

}  // namespace oct::core
