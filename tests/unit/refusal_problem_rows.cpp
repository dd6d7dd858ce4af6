// Rows of problems, devices, plans and their strings; see refusal_rows.h.
#include "refusal_rows.h"

namespace octet_refusals {

std::vector<Row> problem_rows() {
  return {
      {Rule::kNull, [] { return Status(octet_gemm_problem_parse(nullptr, nullptr)); },
       "text is null: must point to a problem string"},
      {Rule::kStructSize, supported(kDense, [](auto& p) { p.struct_size = 3; }),
       "problem.struct_size = 3: must be " + size(sizeof(octet_gemm_problem)) +
           "; start with octet_gemm_problem_init()"},
      {Rule::kTextCapacity,
       [] {
         char text[5];
         const GemmProblem p = GemmProblem::parse(kDense).value();
         return Status(octet_gemm_problem_print(&p, text, sizeof text));
       },
       "capacity = 5: 18 bytes are needed, terminating zero included"},
      {Rule::kProblemString, parsed("dense_m64n7168"),
       "problem string \"dense_m64n7168\", at character 14: expected k and a number"},
      {Rule::kProblemString, parsed("dense_m1\x1b[31m\n"),
       "problem string \"dense_m1?[31m?\", at character 8: expected n and a number"},
      {Rule::kProblemString, parsed("masked_g2m64n256k512_maxm"),
       "problem string \"masked_g2m64n256k512_maxm\", at character 25: expected a number after "
       "maxm"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.grouping = 7; }),
       "grouping = 7: must be a value of octet_grouping (0 to 6)"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.in_type = OCTET_F16; }),
       "in_type = f16: must be e4m3 or bf16"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.d_type = OCTET_E4M3; }),
       "d_type = e4m3: must be bf16, f16 or f32"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.bias_type = OCTET_I32; }),
       "bias_type = i32: must be none, bf16, f16 or f32"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.granularity = -1; }),
       "granularity = -1: must be a value of octet_scale_granularity (0 to 2)"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.sfb_layout = 3; }),
       "sfb_layout = 3: must be a value of octet_scale_layout (0 to 2)"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.index_type = OCTET_NONE; }),
       "index_type = none: must be i32 or i64"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.in_type = 99; }),
       "in_type = 99: must be e4m3 or bf16"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.d_type = -1; }),
       "d_type = -1: must be bf16, f16 or f32"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.bias_type = 8; }),
       "bias_type = 8: must be none, bf16, f16 or f32"},
      {Rule::kEnumValue, supported(kDense, [](auto& p) { p.index_type = 1000; }),
       "index_type = 1000: must be i32 or i64"},
      {Rule::kEnumValue, quantized([](auto& q) { q.x_type = 99; }),
       "x_type = 99: must be f32, bf16 or f16"},
      {Rule::kFlag, supported(kDense, [](auto& p) { p.accumulate = 2; }),
       "accumulate = 2: must be 0 or 1"},
      {Rule::kFlag, supported(kDense, [](auto& p) { p.weights_ready = -1; }),
       "weights_ready = -1: must be 0 or 1"},
      {Rule::kNegative, supported(kDense, [](auto& p) { p.k = -128; }),
       "k = -128: must be 0 or more"},
      {Rule::kNegative, supported(kDense, [](auto& p) { p.sm_budget = -1; }),
       "sm_budget = -1: must be 0 or more"},
      {Rule::kTooLarge, supported(kDense, [](auto& p) { p.m = 2147483648; }),
       "m = 2147483648: must be at most 2147483647"},
      {Rule::kDenseGroups, supported(kDense, [](auto& p) { p.groups = 2; }),
       "groups = 2: a dense problem has 1 (batched has several)"},
      {Rule::kContiguousAlignment, parsed("contiguous_g4m64n256k512_align96"),
       "alignment = 96: must be a positive multiple of 64 in contiguous problems (offsets problems "
       "need none)"},
      {Rule::kAlignedAlignment, parsed("aligned_g4m64n256k512_align0"),
       "alignment = 0: must be 1 or more"},
      {Rule::kOtherAlignment, parsed("masked_g4m64n256k512_align64"),
       "alignment = 64: must be left at 128 in masked problems (only contiguous and aligned ones "
       "have an alignment)"},
      {Rule::kOnlyMasked, parsed("offsets_g4m64n256k512_maxm64"),
       "max_m = 64: must be 0 in offsets problems (only masked ones have a buffer per group)"},
      {Rule::kMaskedRows, supported("masked_g4m64n256k512", [](auto& p) { p.max_m = 0; }),
       "max_m = 0: must be the rows of each group's buffer, as m = 64 rows are expected in it"},
      {Rule::kOnlyContiguous, parsed("aligned_g4m64n256k512_keeppad"),
       "zero_padding = 0: must be 1 in aligned problems (only contiguous ones have padding rows "
       "marked -1)"},
      {Rule::kOnlyKGrouped, parsed("batched_g4m64n256k512_packed"),
       "packed = 1: must be 0 in batched problems (only K-grouped ones can be packed)"},
      {Rule::kIndexType, parsed("masked_g4m64n256k512_i64"),
       "index_type = i64: must be i32 in masked problems (offsets and K-grouped ones take i64 "
       "too)"},
      {Rule::kBf16Granularity, parsed("dense_m64n256k512_1d1d_bf16in"),
       "granularity = 1d1d: must be none with BF16 operands (they carry no scales)"},
      {Rule::kE4m3Granularity, supported(kDense, [](auto& p) { p.granularity = OCTET_SCALE_NONE; }),
       "granularity = none: must be 1d2d or 1d1d with e4m3 operands"},
      {Rule::kKGroupedGranularity,
       supported("kgrouped_g4m64n256k512", [](auto& p) { p.granularity = OCTET_1D2D; }),
       "granularity = 1d2d: must be 1d1d in K-grouped problems"},
      {Rule::kKGroupedBias, parsed("kgrouped_g4m64n256k512_biasbf16"),
       "bias_type = bf16: must be none in K-grouped problems"},
      {Rule::kSplitRange, parsed("dense_m64n256k512_split65"),
       "split = 65: must be from 0 (the planner chooses) to 64"},
      {Rule::kSmBudget,
       supported(
           "dense_m64n256k512_sms133", [](auto&) {}, "h200"),
       "sm_budget = 133: must be from 0 (all) to 132, the SMs of h200"},
      {Rule::kDeviceName, [] { return DeviceSpec::preset("b200").status(); },
       "device \"b200\": must be one of h100_sxm, h100_pcie, h200, h800, h20, gh200, cpu"},
      {Rule::kDeviceArchitecture,
       [] {
         DeviceSpec device = DeviceSpec::preset("h200").value();
         device.compute_major = 8;
         device.compute_minor = 6;
         return supports(GemmProblem::parse(kDense).value(), device);
       },
       "device h200 has compute capability 8.6: must be 9.0 (Hopper); the CPU backend computes the "
       "same bits anywhere"},
      {Rule::kNoKernel,
       supported(
           "dense_m64n256k512_bf16in", [](auto&) {}, "h200"),
       "dense_m64n256k512_bf16in on h200: no kernel takes it (the first, normal_m256n128: serves "
       "e4m3 "
       "operands with 1D2D scales)"},
      {Rule::kPlanString, [] { return GemmPlan::parse("dense_m64n256k512 @ cpu").status(); },
       "plan string, at character 23: expected : kernel="},
      {Rule::kPlanSplit, checked(kDense, [](Call& c) { c.plan.split = 65; }),
       "plan.split = 65: must be from 1 to 64"},
      {Rule::kPlanMismatch,
       checked(kDense, [](Call& c) { std::strcpy(c.plan.kernel, "nonsense"); }),
       "plan.kernel = \"nonsense\": must be \"cpu\" or the name of a kernel of this build"},
      {Rule::kPlanContradiction,
       [] { return GemmPlan::parse("dense_m1n1k1_split4 @ cpu: kernel=cpu split=2").status(); },
       "plan.split = 2: must be 4, as split of its problem says"},
      {Rule::kPlanDevice,
       [] { return GemmPlan::parse("dense_m1n1k1 @ h200: kernel=cpu split=2").status(); },
       "plan.device = \"h200\", plan.kernel = \"cpu\": \"cpu\" must stand for both or for neither"},
      {Rule::kTableLine, [] { return TunedTable::parse("octet tuned table\n").status(); },
       "tuned table, line 1: expected \"octet tuned table 1\""},
      {Rule::kTableDevice, table_checked("normal_m128n256", 1, 132, "gh200"),
       "the tuned table is of h200, 132 SMs: none of it is used for gh200, 132 SMs"},
      {Rule::kTableEntry, table_checked("normal_m128n256", 2, 132, "h200"),
       "tuned table: dense_m64n256k512 with normal_m128n256, split 2, 132 CTAs is not used: no "
       "room for partial sums beside the ring"},
      {Rule::kTableEntry, table_checked("normal_m128n256_cm2", 1, 133, "h200"),
       "tuned table: dense_m64n256k512 with normal_m128n256_cm2, split 1, 133 CTAs is not used: "
       "ctas = 133: must be a multiple of 2, from 2 to 132"},
      {Rule::kEnumValue, checked(kDense, [](Call& c) { c.plan.device[1] = '\n'; }),
       "plan.device = \"c?u\": must be 1 to 31 letters, digits, _ - or ., and a terminating zero"},
      {Rule::kEnumValue, checked(kDense, [](Call& c) { c.plan.predicted_us = -1; }),
       "plan.predicted_us = -1: must be finite and 0 or more"},
      {Rule::kNegative, checked(kDense, [](Call& c) { c.plan.sms = -1; }),
       "plan.sms = -1: must be 0 or more"},
  };
}

}  // namespace octet_refusals
