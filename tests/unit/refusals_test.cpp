// Every sentence the library refuses with, provoked through the public interface and compared to
// the letter. The table below has a row for every rule of src/core/refusals.h; the last tests hold
// that no rule is missing, that every message is its rule's sentence, and that no placeholder stays
// unfilled.
#include "core/refusals.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <new>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "capi/guard.h"
#include "kernel_abi/tile_config.h"
#include "octet/octet.hpp"
#include "plan/candidates.h"

namespace {

using namespace octet;
using oct::core::Rule;

// Memory for the operands of the calls below: slots far from each other. Only slots of metadata and
// scales are ever read.
constexpr std::size_t kSlotBytes = 1 << 18;
alignas(4096) unsigned char arena[16][kSlotBytes];
enum Slot { kA, kB, kC, kD, kSfa, kSfb, kBias, kIndex, kOffsets, kEnds, kCounts, kWork, kX };

struct Call {
  GemmPlan plan;
  GemmArgs args;
};

template <typename T>
T* slot(Slot s) {
  return reinterpret_cast<T*>(arena[s]);
}

// A call that passes check(): 256 rows where groups share them, 512 of K where groups share it.
Call call(const std::string& text) {
  for (auto& bytes : arena) std::memset(bytes, 0, kSlotBytes);
  Call c;
  const GemmProblem p = GemmProblem::parse(text).value();
  c.plan = plan_gemm(p, DeviceSpec::preset("cpu").value()).value();
  std::int64_t rows = p.m, k = p.k;
  if (p.grouping == OCTET_CONTIGUOUS || p.grouping == OCTET_OFFSETS ||
      p.grouping == OCTET_ALIGNED) {
    rows = 256;
  } else if (p.grouping == OCTET_MASKED) {
    rows = p.max_m;
  } else if (p.grouping == OCTET_K_GROUPED) {
    k = 512;
  }
  const std::int64_t b_rows = p.n;
  c.args.a = matrix(arena[kA], rows, k, k, rows * k);
  c.args.b = matrix(arena[kB], b_rows, k, k, b_rows * k);
  c.args.d = matrix(arena[kD], rows, p.n, p.n, rows * p.n);
  c.args.c = matrix(arena[kC], rows, p.n, p.n, rows * p.n);
  const std::int64_t pitch = (rows + 3) / 4 * 4;
  c.args.sfa = column_major_scales(slot<float>(kSfa), pitch, pitch * k_blocks(k));
  if (p.granularity == OCTET_1D1D) {
    c.args.sfb = column_major_scales(slot<float>(kSfb), (p.n + 3) / 4 * 4);
  } else {
    c.args.sfb = row_major_scales(slot<float>(kSfb), k_blocks(k), 64);
  }
  c.args.bias = arena[kBias];
  c.args.group_index = arena[kIndex];
  c.args.group_offsets = arena[kOffsets];
  c.args.group_ends = arena[kEnds];
  c.args.group_counts = arena[kCounts];
  return c;
}

QuantizeArgs quantize_args() {  // x [64, 250] float, 1x128
  QuantizeArgs q;
  q.x = matrix(arena[kX], 64, 250);
  q.codes = matrix(arena[kA], 64, 250);
  q.scales = arena[kSfa];
  q.row_stride = 1;
  q.k_stride = 64;
  return q;
}

using Change = std::function<void(Call&)>;
// What a call said, through the public interface or of a kernel.
struct Said {
  octet_code given;
  std::string text;
  Said(const Status& s) : given(s.code()), text(s.message()) {}       // NOLINT: converts
  Said(const oct::Status& s) : given(s.code()), text(s.message()) {}  // NOLINT
  octet_code code() const { return given; }
  const std::string& message() const { return text; }
};
using Attempt = std::function<Said()>;

Attempt supported(const std::string& text, std::function<void(GemmProblem&)> change,
                  const char* device = "cpu") {
  return [=] {
    GemmProblem p = GemmProblem::parse(text).value();
    change(p);
    return supports(p, DeviceSpec::preset(device).value());
  };
}
Attempt checked(const std::string& text, Change change) {
  return [=] {
    Call c = call(text);
    change(c);
    return check(c.plan, c.args);
  };
}
Attempt validated(const std::string& text, Change change) {
  return [=] {
    Call c = call(text);
    change(c);
    return validate(c.plan, c.args);
  };
}
Attempt quantized(std::function<void(QuantizeArgs&)> change) {
  return [=] {
    QuantizeArgs q = quantize_args();
    change(q);
    return cpu::quantize(q);
  };
}
Attempt dequantized(std::function<void(QuantizeArgs&)> change) {
  return [=] {
    QuantizeArgs q = quantize_args();
    change(q);
    return cpu::dequantize(q);
  };
}
// Of one kernel, on an H200 after `change`.
Attempt served(
    const char* kernel, const std::string& text, int split,
    std::function<void(DeviceSpec&)> change = [](DeviceSpec&) {}) {
  return [=]() -> Said {
    DeviceSpec device = DeviceSpec::preset("h200").value();
    change(device);
    return oct::plan::serves(oct::abi::parse_kernel(kernel), GemmProblem::parse(text).value(),
                             device, split);
  };
}
Attempt parsed(const std::string& text) {
  return [=] { return GemmProblem::parse(text).status(); };
}

// A table of one choice, checked for a device.
Attempt table_checked(const std::string& kernel, int split, int ctas, const char* device) {
  return [=] {
    const std::string text = "octet tuned table 1\ndevice: h200\nsms: 132\n" +
                             std::string("dense_m64n256k512: kernel=") + kernel +
                             " split=" + std::to_string(split) + " ctas=" + std::to_string(ctas) +
                             " us=1\n";
    return TunedTable::parse(text).value().check(DeviceSpec::preset(device).value());
  };
}

std::string address(const void* pointer) {
  std::ostringstream out;
  out << pointer;
  return out.str();
}
std::string size(std::size_t n) { return std::to_string(n); }

constexpr const char* kDense = "dense_m64n256k512";
constexpr std::int64_t kHuge = std::int64_t{1} << 45;

struct Row {
  Rule rule;
  Attempt attempt;
  std::string sentence;
};

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
           "dense_m64n256k512_1d1d", [](auto&) {}, "h200"),
       "dense_m64n256k512_1d1d on h200: no kernel takes it (the first, normal_m256n128: serves "
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

std::vector<Row> argument_rows() {
  return {
      {Rule::kExtent, checked(kDense, [](Call& c) { c.args.b.rows = 255; }),
       "b.rows = 255: must be 256 (problem.n)"},
      {Rule::kExtent, checked("offsets_g2m64n256k512", [](Call& c) { c.args.d.rows = 255; }),
       "d.rows = 255: must be 256 (a.rows)"},
      {Rule::kExtent, checked("offsets_g2m64n256k512", [](Call& c) { c.args.a.rows = -1; }),
       "a.rows = -1: must be from 0 to 2147483647"},
      {Rule::kExtent,
       checked("batched_g2m8n256k512_bias", [](Call& c) { c.args.bias_group_stride = -1; }),
       "bias_group_stride = -1: must be from 0 to 2147483647"},
      {Rule::kLeadingDimension, checked(kDense, [](Call& c) { c.args.d.ld = 255; }),
       "d.ld = 255: must be at least d.cols = 256"},
      {Rule::kPitch, checked(kDense, [](Call& c) { c.args.a.ld = 1000; }),
       "a.ld = 1000: must be a multiple of 16 elements (16 bytes; rows of A are read by the copy "
       "engine)"},
      {Rule::kPitch, checked("dense_m64n256k512_bf16in", [](Call& c) { c.args.b.ld = 516; }),
       "b.ld = 516: must be a multiple of 8 elements (16 bytes; rows of B are read by the copy "
       "engine)"},
      {Rule::kGroupStride,
       checked("batched_g2m8n256k512", [](Call& c) { c.args.d.group_stride = 2047; }),
       "d.group_stride = 2047: must be from 2048 to 1099511627776"},
      {Rule::kGroupStride,
       checked("batched_g2m8n256k512", [](Call& c) { c.args.a.group_stride = 16; }),
       "a.group_stride = 16: must be 0 (one matrix for the whole batch) or from 4096 to "
       "1099511627776"},
      {Rule::kGroupStride,
       checked("batched_g2m8n256k512", [](Call& c) { c.args.d.group_stride = 0; }),
       "d.group_stride = 0: must be from 2048 to 1099511627776"},
      {Rule::kGroupStride,
       checked("offsets_g2m8n256k512", [](Call& c) { c.args.b.group_stride = 0; }),
       "b.group_stride = 0: must be from 131072 to 1099511627776"},
      {Rule::kGroupStride,
       checked("offsets_g2m8n256k512", [](Call& c) { c.args.sfb.group_stride = 0; }),
       "sfb.group_stride = 0: must be the distance between groups (0 only where all strides are 0: "
       "one scale for everything)"},
      {Rule::kGroupStride,
       checked("masked_g2m8n256k512", [](Call& c) { c.args.sfa.group_stride = 0; }),
       "sfa.group_stride = 0: must be the distance between groups (0 only where all strides are 0: "
       "one scale for everything)"},
      {Rule::kGroupStridePitch,
       checked("batched_g2m8n256k512", [](Call& c) { c.args.b.group_stride = 131080; }),
       "b.group_stride = 131080: must be a multiple of 16 elements (16 bytes; B is read by the "
       "copy "
       "engine)"},
      {Rule::kTooLarge, checked(kDense, [](Call& c) { c.args.a.ld = kHuge; }),
       "a.ld = 35184372088832: must be at most 2147483648"},
      {Rule::kTooLarge,
       checked("batched_g2147483647m2147483647n256k512",
               [](Call& c) {
                 c.args.a = matrix(arena[kA], 2147483647, 512, 2147483648, kHuge >> 5);
               }),
       "bytes that a spans = more than 2^62: must be at most 4611686018427387904"},
      {Rule::kMissingPointer, checked(kDense, [](Call& c) { c.args.d.data = nullptr; }),
       "d.data is null: must point to D [64, 256]"},
      {Rule::kMissingPointer, checked(kDense, [](Call& c) { c.args.sfb.data = nullptr; }),
       "sfb.data is null: must point to float32 scales [2, 4]"},
      {Rule::kMissingPointer,
       checked("dense_m64n256k512_biasf16", [](Call& c) { c.args.bias = nullptr; }),
       "bias is null: must point to f16 bias [256]"},
      {Rule::kAlignedPointer, checked(kDense, [](Call& c) { c.args.a.data = arena[kA] + 8; }),
       "a.data = " + address(arena[kA] + 8) + ": must be aligned to 16 bytes"},
      {Rule::kAlignedPointer,
       checked("dense_m64n256k512_f32", [](Call& c) { c.args.d.data = arena[kD] + 2; }),
       "d.data = " + address(arena[kD] + 2) + ": must be aligned to 4 bytes"},
      {Rule::kAlignedPointer,
       checked("offsets_g2m64n256k512_i64",
               [](Call& c) { c.args.group_offsets = arena[kOffsets] + 4; }),
       "group_offsets = " + address(arena[kOffsets] + 4) + ": must be aligned to 8 bytes"},
      {Rule::kScaleStride, checked(kDense, [](Call& c) { c.args.sfa.k_stride = -64; }),
       "sfa.k_stride = -64: must be 0 or more"},
      {Rule::kScaleLayout,
       checked(kDense, [](Call& c) { c.args.sfa = row_major_scales(slot<float>(kSfa) + 16, 4); }),
       "sfa has row_stride 4, k_stride 1 and alignment 64: the problem says column-major "
       "(row_stride 1, k_stride and group_stride multiples of 4, data 16-byte aligned); change "
       "problem.sfa_layout or the scales"},
      {Rule::kScaleLayout,
       checked("dense_m64n256k512_sfarow",
               [](Call& c) { c.args.sfa = column_major_scales(slot<float>(kSfa) + 16, 64); }),
       "sfa has row_stride 1, k_stride 64 and alignment 64: the problem says row-major (k_stride "
       "1); change problem.sfa_layout or the scales"},
      {Rule::kScaleLayout,
       checked("dense_m64n256k512_sfbodd",
               [](Call& c) { c.args.sfb = row_major_scales(slot<float>(kSfb) + 1, 4); }),
       "sfb has row_stride 4, k_stride 1 and alignment 4: the problem says column-major with any "
       "pitch (row_stride 1); change problem.sfb_layout or the scales"},
      {Rule::kOverlap, checked(kDense, [](Call& c) { c.args.d.data = arena[kA] + 32; }),
       "d overlaps a: what is written must not share memory with what is read"},
      {Rule::kPartialC,
       checked("dense_m64n256k512_acc", [](Call& c) { c.args.c.data = arena[kD] + 16; }),
       "c overlaps d: c must be d itself (same data, ld and group_stride) or apart from it"},
      {Rule::kInterleaved,
       checked("dense_m9000000n1k16_f32",
               [](Call& c) {
                 c.args.a = matrix(arena[kA], 9000000, 16, 1600);
                 c.args.d = matrix(arena[kA] + 400, 9000000, 1, 200);
               }),
       "d and a interleave with different strides: keep them apart"},
      {Rule::kMissingMetadata,
       checked("contiguous_g2m64n256k512", [](Call& c) { c.args.group_index = nullptr; }),
       "group_index is null: contiguous problems read int32[a.rows]"},
      {Rule::kMissingMetadata,
       checked("offsets_g2m64n256k512", [](Call& c) { c.args.group_offsets = nullptr; }),
       "group_offsets is null: offsets problems read groups + 1 row offsets of index_type"},
      {Rule::kMissingMetadata,
       checked("aligned_g2m64n256k512", [](Call& c) { c.args.group_ends = nullptr; }),
       "group_ends is null: aligned problems read int32[groups]"},
      {Rule::kMissingMetadata,
       checked("masked_g2m64n256k512", [](Call& c) { c.args.group_counts = nullptr; }),
       "group_counts is null: masked problems read int32[groups]"},
      {Rule::kMissingMetadata,
       checked("kgrouped_g2m64n256k256", [](Call& c) { c.args.group_counts = nullptr; }),
       "group_counts is null: kgrouped problems read one number for each group"},
      {Rule::kPackedColumns,
       checked("kgrouped_g2m64n256k256_packed", [](Call& c) { c.args.a.cols = 500; }),
       "a.cols = 500: must be a multiple of 128 in packed K-grouped problems"},
      {Rule::kWorkspace, checked(kDense, [](Call& c) { c.plan.workspace_bytes = 1024; }),
       "workspace_bytes = 0: the plan needs 1024"},
      {Rule::kWorkspaceAlignment,
       checked(kDense,
               [](Call& c) {
                 c.plan.workspace_bytes = 1024;
                 c.args.workspace_bytes = 2048;
                 c.args.workspace = arena[kWork] + 64;
               }),
       "workspace = " + address(arena[kWork] + 64) + ": must be aligned to 256 bytes"},
      {Rule::kThreads,
       [] {
         const Call c = call(kDense);
         return cpu::run(c.plan, c.args, 1025);
       },
       "threads = 1025: must be from 0 (all) to 1024"},
      {Rule::kThreads, quantized([](auto& q) { q.threads = -1; }),
       "threads = -1: must be from 0 (all) to 1024"},
  };
}

std::vector<Row> found_rows() {
  return {
      {Rule::kBadIndex,
       validated("contiguous_g2m64n256k512", [](Call&) { slot<std::int32_t>(kIndex)[7] = 2; }),
       "group_index[7] = 2: must be -1 or from 0 to 1"},
      {Rule::kBadIndex,
       validated("contiguous_g0m64n256k512",
                 [](Call&) {
                   for (int i = 0; i < 256; ++i) slot<std::int32_t>(kIndex)[i] = i == 9 ? 5 : -1;
                 }),
       "group_index[9] = 5: must be -1 (there are no groups)"},
      {Rule::kMixedBlock,
       validated("contiguous_g2m64n256k512", [](Call&) { slot<std::int32_t>(kIndex)[130] = 1; }),
       "group_index[130] = 1: must be 0 or -1, as its block of 128 rows begins"},
      {Rule::kResumedBlock,
       validated("contiguous_g2m64n256k512", [](Call&) { slot<std::int32_t>(kIndex)[129] = -1; }),
       "group_index[130] = 0: must be -1, as the row before it in its block of 128 rows is"},
      {Rule::kBadOffset,
       validated("offsets_g2m64n256k512", [](Call&) { slot<std::int32_t>(kOffsets)[1] = 257; }),
       "group_offsets[1] = 257: must be from 0 to 256"},
      {Rule::kBadOffset,
       validated("aligned_g2m64n256k512", [](Call&) { slot<std::int32_t>(kEnds)[1] = -5; }),
       "group_ends[1] = -5: must be from 0 to 256"},
      {Rule::kDecreasing,
       validated("offsets_g2m64n256k512",
                 [](Call&) {
                   slot<std::int32_t>(kOffsets)[1] = 50;
                   slot<std::int32_t>(kOffsets)[2] = 49;
                 }),
       "group_offsets[2] = 49: must be at least 50, where the group starts"},
      {Rule::kBadCount,
       validated("masked_g2m64n256k512", [](Call&) { slot<std::int32_t>(kCounts)[1] = 129; }),
       "group_counts[1] = 129: must be from 0 to 128"},
      {Rule::kKStart,
       validated("kgrouped_g2m64n256k256", [](Call&) { slot<std::int32_t>(kOffsets)[1] = 64; }),
       "group_offsets[1] = 64: must be a multiple of 128 (a group's K starts on a scale)"},
      {Rule::kKMultiple,
       validated("kgrouped_g2m64n256k256_packed",
                 [](Call&) { slot<std::int32_t>(kCounts)[0] = 100; }),
       "group_counts[0] = 100: must be a multiple of 128 in the packed form"},
      {Rule::kBadCount,
       validated("kgrouped_g2m64n256k256_packed",
                 [](Call&) { slot<std::int32_t>(kCounts)[0] = -1; }),
       "group_counts[0] = -1: must be from 0 to 512"},
      {Rule::kKOverlap,
       validated("kgrouped_g2m64n256k256",
                 [](Call&) {
                   slot<std::int32_t>(kCounts)[0] = 129;
                   slot<std::int32_t>(kOffsets)[1] = 128;
                 }),
       "group_offsets[1] = 128: must be at least 129, where the K of the group before ends"},
      {Rule::kScaleNotFinite,
       validated(kDense,
                 [](Call&) {
                   slot<float>(kSfa)[64 * 3 + 5] = std::numeric_limits<float>::infinity();
                 }),
       "sfa: group 0, row 5, K-block 3 is inf: must be finite"},
      {Rule::kAmaxMin, quantized([](auto& q) { q.amax_min = -1.5f; }),
       "amax_min = -1.5: must be finite and 0 or more"},
      {Rule::kCodesExtent, quantized([](auto& q) { q.codes.cols = q.codes.ld = 257; }),
       "codes.cols = 257: must be from 250 to 256"},
      {Rule::kCodesExtent, quantized([](auto& q) { q.codes.rows = 63; }),
       "codes.rows = 63: must be 64"},
      {Rule::kEnumValue, quantized([](auto& q) { q.block = 0; }),
       "block = 0: must be 1 (1x128) or 2 (128x128)"},
      {Rule::kEnumValue, quantized([](auto& q) { q.x_type = OCTET_E4M3; }),
       "x_type = e4m3: must be f32, bf16 or f16"},
      {Rule::kEnumValue, quantized([](auto& q) { q.scale_format = 3; }),
       "scale_format = 3: must be 0 (f32), 1 (powers of two) or 2 (ue8m0)"},
      {Rule::kFlag, quantized([](auto& q) { q.axis = 2; }), "axis = 2: must be 0 or 1"},
      {Rule::kStructSize, quantized([](auto& q) { q.struct_size = 0; }),
       "args.struct_size = 0: must be " + size(sizeof(octet_quantize_args)) +
           "; start with octet_quantize_args_init()"},
      {Rule::kMissingPointer, quantized([](auto& q) { q.scales = nullptr; }),
       "scales is null: must point to f32 scales [64, 2]"},
      {Rule::kOverlap, quantized([](auto& q) { q.codes.data = q.x.data; }),
       "codes overlaps x: what is written must not share memory with what is read"},
      {Rule::kOverlap, dequantized([](auto& q) { q.scales = static_cast<float*>(q.x.data) + 250; }),
       "scales overlaps x: what is written must not share memory with what is read"},
      {Rule::kScaleStride, dequantized([](auto& q) { q.k_stride = -1; }),
       "k_stride = -1: must be 0 or more"},
      {Rule::kScaleStride, quantized([](auto& q) { q.row_stride = -1; }),
       "row_stride = -1: must be 0 or more"},
      {Rule::kExtent, quantized([](auto& q) { q.k_stride = 0; }),
       "k_stride = 0: must be 1 or more: scales are written"},
  };
}

// What `explain()` and the sentence of a problem without a kernel say of each kernel.
std::vector<Row> kernel_rows() {
  return {
      {Rule::kServesGrouping, served("normal_m128n128_x2", "offsets_g2m64n256k512", 1),
       "serves dense and batched problems"},
      {Rule::kServesGrouped, served("normal_m128n256_g", "dense_m64n256k512", 1),
       "serves problems grouped over M"},
      {Rule::kServesGrouped, served("normal_m128n256_g", "kgrouped_g2m64n256k512", 1),
       "serves problems grouped over M"},
      {Rule::kServesOneRange, served("normal_m128n256_g", "offsets_g2m64n256k512", 2),
       "serves grouped problems with K in one range"},
      {Rule::kServesRows, served("normal_m128n256_g", "masked_g2m64n256k512_maxm2147483000", 1),
       "serves grouped problems of at most 2147482624 rows"},
      {Rule::kServesOperands, served("normal_m128n128_x2", "dense_m64n256k512_bf16in", 1),
       "serves e4m3 operands with 1D2D scales"},
      {Rule::kServesPipelines, served("swapped_w64t8_k4", "dense_m8n256k7168", 2),
       "its 4 pipelines need a multiple of as many ranges"},
      {Rule::kServesShared, served("normal_m128n256_cm2", "dense_m512n512k7168", 2),
       "its cluster shares operands, not K"},
      {Rule::kServesNoRoom, served("normal_m256n128", "dense_m512n512k7168", 2),
       "no room for partial sums beside the ring"},
      {Rule::kServesCluster, served("normal_m128n128_x2", "dense_m64n256k7168", 9),
       "clusters have at most 8 CTAs"},
      {Rule::kServesFewBlocks, served("normal_m128n128_x2", "dense_m64n256k128", 2),
       "fewer K-blocks than ranges"},
      {Rule::kServesTiles, served("normal_m128n128_x2", "batched_g2147483647m256n256k128", 1),
       "2^31 tiles or more"},
      {Rule::kServesCoordinates, served("normal_m128n256_cm2", "dense_m2147483647n1k128", 1),
       "coordinates beyond 2^31 in the second tile of a cluster"},
      {Rule::kServesMemory,
       served("normal_m128n128_x2", "dense_m64n256k512", 1,
              [](DeviceSpec& d) { d.shared_memory_bytes = 1 << 16; }),
       "not enough shared memory"},
      {Rule::kServesBudget, served("normal_m128n128_x2", "dense_m64n256k512_sms1", 2),
       "a cluster of 2 does not fit the SM budget"},
  };
}

// What the processor has decides the end of this sentence.
Row isa_row() {
  std::string names;
  for (octet_isa isa = OCTET_ISA_PORTABLE; isa <= OCTET_ISA_AVX512; ++isa) {
    if (!octet_isa_available(isa)) continue;
    names += (names.empty() ? "" : ", ") + std::string(octet_isa_name(isa));
  }
  return {Rule::kIsa,
          [] {
            const Call c = call(kDense);
            cpu::Options options;
            options.isa = 99;
            return cpu::run(c.plan, c.args, options).status();
          },
          "isa = 99: must be one this processor has: " + names};
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto part : {problem_rows(), kernel_rows(), argument_rows(), found_rows()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  rows.push_back(isa_row());
  return rows;
}

// Rules that only a device or a fault can break.
bool is_exempt(const oct::core::RuleText& entry) {
  return std::string(entry.topic) == "Devices at run time" || std::string(entry.topic) == "Faults";
}

TEST(Refusals, SentencesToTheLetter) {
  for (const Row& row : all_rows()) {
    const Said status = row.attempt();
    EXPECT_EQ(status.message(), row.sentence);
    EXPECT_EQ(status.code(), oct::core::rule_text(row.rule).code) << row.sentence;
  }
}

TEST(Refusals, EveryRuleIsProvoked) {
  std::set<Rule> provoked;
  for (const Row& row : all_rows()) provoked.insert(row.rule);
  for (const auto& entry : oct::core::rule_texts()) {
    EXPECT_EQ(provoked.contains(entry.rule), !is_exempt(entry)) << entry.sentence;
  }
}

// The literal pieces of the rule's sentence, in order, and nothing left of its placeholders.
TEST(Refusals, EveryMessageIsItsRulesSentence) {
  for (const Row& row : all_rows()) {
    const std::string message = row.attempt().message();
    EXPECT_EQ(message.find_first_of("{}"), std::string::npos) << message;
    const std::string sentence = oct::core::rule_text(row.rule).sentence;
    std::size_t at = 0, found = 0;
    while (at < sentence.size()) {
      const std::size_t open = std::min(sentence.find('{', at), sentence.size());
      const std::string piece = sentence.substr(at, open - at);
      found = message.find(piece, found);
      ASSERT_NE(found, std::string::npos) << "'" << piece << "' is not in: " << message;
      if (at == 0 && open > 0) {
        EXPECT_EQ(found, 0u) << message;
      }
      found += piece.size();
      at = open == sentence.size() ? open : sentence.find('}', open) + 1;
    }
    if (sentence.back() != '}') {
      EXPECT_EQ(found, message.size()) << message;
    }
  }
}

TEST(Refusals, TheCallsBeforeTheFaultPass) {
  for (const char* text :
       {kDense, "dense_m64n256k512_bf16in", "dense_m64n256k512_acc", "dense_m64n256k512_biasf16",
        "batched_g2m8n256k512_bias", "offsets_g2m64n256k512_i64", "aligned_g2m64n256k512",
        "masked_g2m64n256k512", "contiguous_g2m64n256k512", "kgrouped_g2m64n256k256",
        "kgrouped_g2m64n256k256_packed"}) {
    const Call c = call(text);
    EXPECT_EQ(validate(c.plan, c.args).message(), "") << text;
  }
  EXPECT_EQ(cpu::quantize(quantize_args()).message(), "");
}

// A failed call leaves its outputs alone, and the message belongs to the calling thread.
TEST(Refusals, NothingIsWrittenOnFailure) {
  GemmProblem p = GemmProblem::parse(kDense).value();
  const GemmProblem before = p;
  EXPECT_EQ(octet_gemm_problem_parse("nonsense", &p), OCTET_INVALID_ARGUMENT);
  EXPECT_TRUE(p == before);
  GemmPlan plan;
  plan.split = 77;
  EXPECT_EQ(octet_gemm_plan_parse("nonsense", &plan), OCTET_INVALID_ARGUMENT);
  EXPECT_EQ(plan.split, 77);
}

// Faults, as the C interface tells them.
TEST(Refusals, FaultsAreTold) {
  EXPECT_EQ(oct::capi::guarded([]() -> oct::Status { throw std::bad_alloc(); }),
            OCTET_OUT_OF_MEMORY);
  EXPECT_EQ(oct::capi::last_message(), "out of memory");
  EXPECT_EQ(oct::capi::guarded([]() -> oct::Status { throw std::runtime_error("this and that"); }),
            OCTET_INTERNAL);
  EXPECT_EQ(oct::capi::last_message(), "internal fault, please report it: this and that");
  EXPECT_EQ(oct::capi::guarded([]() -> oct::Status { throw 1; }), OCTET_INTERNAL);
  EXPECT_EQ(oct::capi::last_message(), "internal fault, please report it: unknown exception");
}

// No sentence is made anywhere but in the table: limits.md would not have it.
TEST(Refusals, EverySentenceIsInTheTable) {
  const std::regex made(
      R"((return|Status\()\s*\{?\s*(kInvalid|OCTET_(INVALID|UNSUPPORTED|NO_DEVICE|)"
      R"(NOT_PREPARED|DEVICE_ERROR|OUT_OF_MEMORY|INTERNAL)\w*)\s*,)");
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(OCTET_SOURCE_DIR "/src")) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    ++files;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const std::string source = text.str();
    std::smatch match;
    EXPECT_FALSE(std::regex_search(source, match, made)) << path << ": " << match.str();
  }
  EXPECT_GT(files, 50);
}

}  // namespace
