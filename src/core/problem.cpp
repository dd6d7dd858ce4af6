// See problem.h.
#include "core/problem.h"

#include <algorithm>

#include "core/math.h"
#include "core/refusals.h"
#include "core/types.h"

namespace oct::core {

int64_t default_max_m(int64_t m) {
  if (m < 0 || m > kMaxSize) return 0;
  return std::min(round_up(ceil_div(13 * m, 10), 128), kMaxSize);
}

bool equal(const octet_gemm_problem& x, const octet_gemm_problem& y) {
  bool same = true;
  for_each_field(x, y, [&](const auto& a, const auto& b) { same &= a == b; });
  return same;
}

uint64_t hash(const octet_gemm_problem& problem) {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for_each_field(problem, problem, [&](const auto& field, const auto&) {
    h ^= static_cast<uint64_t>(field);
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  });
  return h;
}

namespace {

Status check_enum(const char* arg, int32_t got, int32_t low, int32_t high, const char* want) {
  if (got >= low && got <= high) return {};
  return refuse(Rule::kEnumValue, {{"arg", arg}, {"got", text(got)}, {"want", want}});
}

Status check_size(const char* arg, int64_t got) {
  if (got < 0) return refuse(Rule::kNegative, {{"arg", arg}, {"got", text(got)}});
  if (got > kMaxSize) {
    return refuse(Rule::kTooLarge, {{"arg", arg}, {"got", text(got)}, {"want", text(kMaxSize)}});
  }
  return {};
}

Status check_flag(const char* arg, int32_t got) {
  if (got == 0 || got == 1) return {};
  return refuse(Rule::kFlag, {{"arg", arg}, {"got", text(got)}});
}

Status check_grouping(const octet_gemm_problem& p) {
  const std::string kind = grouping_name(p.grouping);
  if (p.grouping == OCTET_DENSE && p.groups != 1) {
    return refuse(Rule::kDenseGroups, {{"got", text(p.groups)}});
  }
  if (p.grouping == OCTET_CONTIGUOUS) {
    if (p.alignment <= 0 || p.alignment % 64 != 0 || p.alignment > kMaxSize) {
      return refuse(Rule::kContiguousAlignment, {{"got", text(p.alignment)}});
    }
  } else if (p.grouping == OCTET_ALIGNED) {
    if (p.alignment < 1) return refuse(Rule::kAlignedAlignment, {{"got", text(p.alignment)}});
    if (Status s = check_size("alignment", p.alignment); !s.ok()) return s;
  } else if (p.alignment != 128) {
    return refuse(Rule::kOtherAlignment, {{"got", text(p.alignment)}, {"kind", kind}});
  }
  if (p.grouping == OCTET_MASKED) {
    if (Status s = check_size("max_m", p.max_m); !s.ok()) return s;
    if (p.max_m == 0 && p.m > 0) return refuse(Rule::kMaskedRows, {{"got", text(p.m)}});
  } else if (p.max_m != 0) {
    return refuse(Rule::kOnlyMasked, {{"got", text(p.max_m)}, {"kind", kind}});
  }
  if (p.grouping != OCTET_CONTIGUOUS && !p.zero_padding) {
    return refuse(Rule::kOnlyContiguous, {{"kind", kind}});
  }
  if (p.grouping != OCTET_K_GROUPED && p.packed) {
    return refuse(Rule::kOnlyKGrouped, {{"kind", kind}});
  }
  if (p.index_type == OCTET_I64 && p.grouping != OCTET_OFFSETS && p.grouping != OCTET_K_GROUPED) {
    return refuse(Rule::kIndexType, {{"got", "i64"}, {"kind", kind}});
  }
  return {};
}

Status check_types(const octet_gemm_problem& p) {
  if (p.in_type == OCTET_BF16 && p.granularity != OCTET_SCALE_NONE) {
    return refuse(Rule::kBf16Granularity, {{"got", granularity_name(p.granularity)}});
  }
  if (p.in_type == OCTET_E4M3 && p.granularity == OCTET_SCALE_NONE) {
    return refuse(Rule::kE4m3Granularity, {});
  }
  if (p.grouping == OCTET_K_GROUPED) {
    if (p.granularity == OCTET_1D2D) {
      return refuse(Rule::kKGroupedGranularity, {{"got", granularity_name(p.granularity)}});
    }
    if (p.bias_type != OCTET_NONE) {
      return refuse(Rule::kKGroupedBias, {{"got", type_name(p.bias_type)}});
    }
  }
  return {};
}

}  // namespace

Status check_problem(const octet_gemm_problem& p) {
  if (p.struct_size != sizeof p) {
    return refuse(Rule::kStructSize, {{"arg", "problem"},
                                      {"got", text(p.struct_size)},
                                      {"want", text(sizeof p)},
                                      {"init", "octet_gemm_problem_init"}});
  }
  if (Status s = check_enum("grouping", p.grouping, OCTET_DENSE, OCTET_K_GROUPED,
                            "a value of octet_grouping (0 to 6)");
      !s.ok()) {
    return s;
  }
  const struct {
    const char* arg;
    int64_t got;
  } sizes[] = {{"m", p.m}, {"n", p.n}, {"k", p.k}, {"groups", p.groups}};
  for (const auto& size : sizes) {
    if (Status s = check_size(size.arg, size.got); !s.ok()) return s;
  }
  if (p.in_type != OCTET_E4M3 && p.in_type != OCTET_BF16) {
    return refuse(Rule::kEnumValue,
                  {{"arg", "in_type"}, {"got", type_text(p.in_type)}, {"want", "e4m3 or bf16"}});
  }
  if (!is_output_type(p.d_type)) {
    return refuse(Rule::kEnumValue,
                  {{"arg", "d_type"}, {"got", type_text(p.d_type)}, {"want", "bf16, f16 or f32"}});
  }
  if (p.bias_type != OCTET_NONE && !is_output_type(p.bias_type)) {
    return refuse(Rule::kEnumValue, {{"arg", "bias_type"},
                                     {"got", type_text(p.bias_type)},
                                     {"want", "none, bf16, f16 or f32"}});
  }
  if (Status s = check_enum("granularity", p.granularity, OCTET_SCALE_NONE, OCTET_1D1D,
                            "a value of octet_scale_granularity (0 to 2)");
      !s.ok()) {
    return s;
  }
  const struct {
    const char* arg;
    int32_t got;
  } layouts[] = {{"sfa_layout", p.sfa_layout}, {"sfb_layout", p.sfb_layout}};
  for (const auto& layout : layouts) {
    if (Status s = check_enum(layout.arg, layout.got, OCTET_COLUMN_MAJOR, OCTET_COLUMN_MAJOR_ODD,
                              "a value of octet_scale_layout (0 to 2)");
        !s.ok()) {
      return s;
    }
  }
  if (p.index_type != OCTET_I32 && p.index_type != OCTET_I64) {
    return refuse(Rule::kEnumValue, {{"arg", "index_type"},
                                     {"got", type_text(p.index_type)},
                                     {"want", "i32 or i64"}});
  }
  const struct {
    const char* arg;
    int32_t got;
  } flags[] = {{"accumulate", p.accumulate},
               {"packed", p.packed},
               {"zero_padding", p.zero_padding},
               {"batch_invariant", p.batch_invariant},
               {"dependent_launch", p.dependent_launch},
               {"weights_ready", p.weights_ready},
               {"even", p.even}};
  for (const auto& flag : flags) {
    if (Status s = check_flag(flag.arg, flag.got); !s.ok()) return s;
  }
  if (Status s = check_grouping(p); !s.ok()) return s;
  if (Status s = check_types(p); !s.ok()) return s;
  if (p.split < 0 || p.split > kMaxSplit) {
    return refuse(Rule::kSplitRange, {{"got", text(p.split)}, {"want", text(kMaxSplit)}});
  }
  if (p.sm_budget < 0) {
    return refuse(Rule::kNegative, {{"arg", "sm_budget"}, {"got", text(p.sm_budget)}});
  }
  return {};
}

}  // namespace oct::core
