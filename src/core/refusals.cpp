// See refusals.h. Sentences name the argument, what it got and what is wanted.
#include "core/refusals.h"

#include <algorithm>
#include <array>

#include <fmt/args.h>
#include <fmt/format.h>

namespace oct::core {
namespace {

constexpr octet_code kInvalid = OCTET_INVALID_ARGUMENT;

constexpr std::array kTexts{
    RuleText{Rule::kNull, kInvalid, "Any call", "{arg} is null: must point to {want}",
             "The one argument that can never be left out."},
    RuleText{
        Rule::kStructSize, kInvalid, "Any call",
        "{arg}.struct_size = {got}: must be {want}; start with {init}()",
        "Structs carry their size so that a program built against another version, or one that "
        "forgot to initialise, is told so."},
    RuleText{Rule::kTextCapacity, kInvalid, "Any call",
             "capacity = {got}: {want} bytes are needed, terminating zero included",
             "Text is never cut silently."},

    RuleText{Rule::kProblemString, kInvalid, "Problem",
             "problem string \"{text}\", at character {got}: {want}",
             "The grammar is in docs/problem-string.md."},
    RuleText{Rule::kEnumValue, kInvalid, "Problem", "{arg} = {got}: must be {want}",
             "An enumeration's value that does not exist, or not here."},
    RuleText{Rule::kFlag, kInvalid, "Problem", "{arg} = {got}: must be 0 or 1", "A flag."},
    RuleText{Rule::kNegative, kInvalid, "Problem", "{arg} = {got}: must be 0 or more",
             "Sizes of 0 are fine: nothing is computed, or D is bias and C alone."},
    RuleText{Rule::kTooLarge, kInvalid, "Problem", "{arg} = {got}: must be at most {want}",
             "The copy engine counts rows, columns and groups in 32 bits; products of sizes are "
             "64-bit everywhere."},
    RuleText{Rule::kDenseGroups, kInvalid, "Problem",
             "groups = {got}: a dense problem has 1 (batched has several)", ""},
    RuleText{Rule::kContiguousAlignment, kInvalid, "Problem",
             "alignment = {got}: must be a positive multiple of 64 in contiguous problems (offsets "
             "problems need none)",
             "A block of rows with one group index is at least one tile high."},
    RuleText{Rule::kAlignedAlignment, kInvalid, "Problem", "alignment = {got}: must be 1 or more",
             "Aligned offsets take any alignment."},
    RuleText{
        Rule::kOtherAlignment, kInvalid, "Problem",
        "alignment = {got}: must be left at 128 in {kind} problems (only contiguous and aligned "
        "ones have an alignment)",
        ""},
    RuleText{
        Rule::kOnlyMasked, kInvalid, "Problem",
        "max_m = {got}: must be 0 in {kind} problems (only masked ones have a buffer per group)",
        ""},
    RuleText{
        Rule::kMaskedRows, kInvalid, "Problem",
        "max_m = 0: must be the rows of each group's buffer, as m = {got} rows are expected in "
        "it",
        "A problem string has a default for it; a struct filled by hand has not."},
    RuleText{
        Rule::kOnlyContiguous, kInvalid, "Problem",
        "zero_padding = 0: must be 1 in {kind} problems (only contiguous ones have padding rows "
        "marked -1)",
        ""},
    RuleText{Rule::kOnlyKGrouped, kInvalid, "Problem",
             "packed = 1: must be 0 in {kind} problems (only K-grouped ones can be packed)", ""},
    RuleText{
        Rule::kIndexType, kInvalid, "Problem",
        "index_type = {got}: must be i32 in {kind} problems (offsets and K-grouped ones take i64 "
        "too)",
        ""},
    RuleText{Rule::kBf16Granularity, kInvalid, "Problem",
             "granularity = {got}: must be none with BF16 operands (they carry no scales)", ""},
    RuleText{Rule::kE4m3Granularity, kInvalid, "Problem",
             "granularity = none: must be 1d2d or 1d1d with e4m3 operands",
             "For one scale per tensor, pass strides of 0."},
    RuleText{Rule::kKGroupedGranularity, kInvalid, "Problem",
             "granularity = {got}: must be 1d1d in K-grouped problems",
             "Both operands of a weight gradient are activations: one scale per 128 tokens."},
    RuleText{Rule::kKGroupedBias, kInvalid, "Problem",
             "bias_type = {got}: must be none in K-grouped problems",
             "A weight gradient has no bias."},
    RuleText{Rule::kSplitRange, kInvalid, "Problem",
             "split = {got}: must be from 0 (the planner chooses) to {want}",
             "K is cut into that many ranges, added in order."},
    RuleText{Rule::kSmBudget, kInvalid, "Problem",
             "sm_budget = {got}: must be from 0 (all) to {want}, the SMs of {device}", ""},

    RuleText{Rule::kDeviceName, kInvalid, "Device and plan",
             "device \"{got}\": must be one of {want}", "Presets; a real device is asked itself."},
    RuleText{Rule::kDeviceArchitecture, OCTET_UNSUPPORTED, "Device and plan",
             "device {device} has compute capability {got}: must be 9.0 (Hopper); the CPU backend "
             "computes the same bits anywhere",
             "The kernels are Hopper's own instructions."},
    RuleText{Rule::kNoKernel, OCTET_UNSUPPORTED, "Device and plan", "{problem} on {device}: {want}",
             "No kernel of this build computes it."},
    RuleText{Rule::kPlanString, kInvalid, "Device and plan",
             "plan string, at character {got}: {want}", ""},
    RuleText{Rule::kPlanSplit, kInvalid, "Device and plan",
             "plan.split = {got}: must be from 1 to {want}", "Plans come from octet_plan_gemm()."},
    RuleText{Rule::kPlanMismatch, kInvalid, "Device and plan",
             "plan.kernel = {got}: must be \"cpu\" or the name of a kernel of this build",
             "A plan of another version may name a kernel that is gone."},
    RuleText{
        Rule::kPlanContradiction, kInvalid, "Device and plan",
        "plan.split = {got}: must be {want}, as {why} of its problem says",
        "The split decides the bits: a plan that contradicts its problem names no computation."},
    RuleText{
        Rule::kPlanDevice, kInvalid, "Device and plan",
        "plan.device = \"{device}\", plan.kernel = \"{kernel}\": \"cpu\" must stand for both or "
        "for neither",
        "The CPU backend runs every plan, but only a plan of its own says so."},

    RuleText{Rule::kTableLine, kInvalid, "Tuned tables", "tuned table, line {got}: {want}",
             "The format is in docs/tuned-tables.md."},
    RuleText{Rule::kTableDevice, OCTET_UNSUPPORTED, "Tuned tables",
             "the tuned table is of {got}, {want} SMs: none of it is used for {device}",
             "Measurements of one device say little about another, or about a part of it."},
    RuleText{Rule::kTableEntry, OCTET_UNSUPPORTED, "Tuned tables",
             "tuned table: {problem} with {kernel}, split {split}, {ctas} CTAs is not used: {why}",
             "Such an entry is passed over, and the planner chooses by itself."},

    RuleText{
        Rule::kServesGrouping, OCTET_UNSUPPORTED, "Kernels", "serves dense and batched problems",
        "Said of one kernel, in `explain()`, in the sentence of a problem that none takes, and "
        "by a device that is given a plan it cannot run."},
    RuleText{Rule::kServesGrouped, OCTET_UNSUPPORTED, "Kernels", "serves problems grouped over M",
             "contiguous, offsets, aligned and masked."},
    RuleText{Rule::kServesKGrouped, OCTET_UNSUPPORTED, "Kernels", "serves K-grouped problems", ""},
    RuleText{Rule::kServesPacked, OCTET_UNSUPPORTED, "Kernels", "serves packed groups", ""},
    RuleText{Rule::kServesUnpacked, OCTET_UNSUPPORTED, "Kernels",
             "serves groups side by side in one matrix",
             "Packed groups have kernels of their own."},
    RuleText{Rule::kServesOperands, OCTET_UNSUPPORTED, "Kernels",
             "serves e4m3 operands with 1D2D scales", ""},
    RuleText{Rule::kServesPairs, OCTET_UNSUPPORTED, "Kernels",
             "serves e4m3 operands with 1D1D scales", ""},
    RuleText{Rule::kServesPipelines, OCTET_UNSUPPORTED, "Kernels",
             "its {want} pipelines need a multiple of as many ranges",
             "Each pipeline of a CTA takes ranges of K of its own."},
    RuleText{Rule::kServesOneRange, OCTET_UNSUPPORTED, "Kernels",
             "serves grouped problems with K in one range",
             "A kernel whose name ends in _seq_g, _seq_kg or _seq_kp takes any split."},
    RuleText{Rule::kServesShared, OCTET_UNSUPPORTED, "Kernels",
             "its cluster shares operands, not K", ""},
    RuleText{Rule::kServesNoRoom, OCTET_UNSUPPORTED, "Kernels",
             "no room for partial sums beside the ring", ""},
    RuleText{Rule::kServesCluster, OCTET_UNSUPPORTED, "Kernels",
             "clusters have at most {want} CTAs", "So many every Hopper device takes."},
    RuleText{Rule::kServesFewBlocks, OCTET_UNSUPPORTED, "Kernels", "fewer K-blocks than ranges",
             "The CPU backend takes them: empty ranges add nothing."},
    RuleText{Rule::kServesTiles, OCTET_UNSUPPORTED, "Kernels", "2^31 tiles or more", ""},
    RuleText{Rule::kServesCoordinates, OCTET_UNSUPPORTED, "Kernels",
             "coordinates beyond 2^31 in the last tile", ""},
    RuleText{Rule::kServesRows, OCTET_UNSUPPORTED, "Kernels",
             "serves grouped problems of at most {want} rows",
             "How many rows there are is known when the arguments are: then it is said by `bind`."},
    RuleText{Rule::kServesMemory, OCTET_UNSUPPORTED, "Kernels", "not enough shared memory", ""},
    RuleText{Rule::kServesBudget, OCTET_UNSUPPORTED, "Kernels",
             "a cluster of {got} does not fit the SM budget", ""},

    RuleText{Rule::kExtent, kInvalid, "Arguments", "{arg} = {got}: must be {want}",
             "Shapes in the arguments must agree with the problem."},
    RuleText{Rule::kLeadingDimension, kInvalid, "Arguments",
             "{arg}.ld = {got}: must be at least {arg}.cols = {want}", "Rows must not overlap."},
    RuleText{
        Rule::kPitch, kInvalid, "Arguments",
        "{arg}.ld = {got}: must be a multiple of {want} elements (16 bytes; rows of {matrix} are "
        "read by the copy engine)",
        "K itself may be anything: pad the pitch, not the problem."},
    RuleText{Rule::kGroupStride, kInvalid, "Arguments",
             "{arg}.group_stride = {got}: must be {want}",
             "Groups lie apart: a forgotten stride would give every group the first one's data. A "
             "batch may share an operand it reads: 0."},
    RuleText{
        Rule::kGroupStridePitch, kInvalid, "Arguments",
        "{arg}.group_stride = {got}: must be a multiple of {want} elements (16 bytes; {matrix} is "
        "read by the copy engine)",
        ""},
    RuleText{Rule::kMissingPointer, kInvalid, "Arguments", "{arg} is null: must point to {want}",
             "Only an empty operand may be null."},
    RuleText{Rule::kAlignedPointer, kInvalid, "Arguments",
             "{arg} = {got}: must be aligned to {want} bytes",
             "16 for A and B (copy engine), the size of one element for the rest."},
    RuleText{Rule::kScaleStride, kInvalid, "Arguments", "{arg} = {got}: must be 0 or more",
             "Strides of scales; 0 repeats a scale."},
    RuleText{Rule::kScaleLayout, kInvalid, "Arguments",
             "{arg} has row_stride {row}, k_stride {column} and alignment {alignment}: the problem "
             "says {want}; change problem.{arg}_layout or the scales",
             "A scale matrix is never reinterpreted: its strides say how it lies, and must be what "
             "the plan was made for."},
    RuleText{Rule::kOverlap, kInvalid, "Arguments",
             "{arg} overlaps {other}: what is written must not share memory with what is read", ""},
    RuleText{Rule::kPartialC, kInvalid, "Arguments",
             "c overlaps d: c must be d itself (same data, ld and group_stride) or apart from it",
             ""},
    RuleText{
        Rule::kInterleaved, kInvalid, "Arguments",
        "{arg} and {other} interleave with different strides: keep them apart",
        "Whether hundreds of thousands of rows share a byte is not found out in a call; slices "
        "of one buffer, whose strides are equal, are."},
    RuleText{Rule::kMissingMetadata, kInvalid, "Arguments",
             "{arg} is null: {kind} problems read {want}", ""},
    RuleText{Rule::kPackedColumns, kInvalid, "Arguments",
             "{arg}.cols = {got}: must be a multiple of 128 in packed K-grouped problems",
             "Every group's K is a multiple of 128 there."},
    RuleText{Rule::kWorkspace, kInvalid, "Arguments",
             "workspace_bytes = {got}: the plan needs {want}", ""},
    RuleText{Rule::kWorkspaceAlignment, kInvalid, "Arguments",
             "workspace = {got}: must be aligned to 256 bytes", ""},
    RuleText{Rule::kThreads, kInvalid, "Arguments",
             "threads = {got}: must be from 0 (all) to {want}", ""},
    RuleText{Rule::kIsa, OCTET_UNSUPPORTED, "Arguments",
             "isa = {got}: must be one this processor has: {want}", ""},

    RuleText{Rule::kBadIndex, kInvalid, "Found by validate",
             "group_index[{i}] = {got}: must be {want}", "A run treats such a row as padding."},
    RuleText{
        Rule::kMixedBlock, kInvalid, "Found by validate",
        "group_index[{i}] = {got}: must be {want} or -1, as its block of {alignment} rows begins",
        "A run treats such a row as padding."},
    RuleText{
        Rule::kResumedBlock, kInvalid, "Found by validate",
        "group_index[{i}] = {got}: must be -1, as the row before it in its block of {alignment} "
        "rows is",
        "A run computes such a row if its block begins with the same index, else it is padding."},
    RuleText{Rule::kBadOffset, kInvalid, "Found by validate",
             "{arg}[{i}] = {got}: must be from 0 to {want}", "A run clamps it."},
    RuleText{Rule::kDecreasing, kInvalid, "Found by validate",
             "{arg}[{i}] = {got}: must be at least {want}, where the group starts",
             "A run raises it to that: the group is empty, and no row has two owners."},
    RuleText{Rule::kBadCount, kInvalid, "Found by validate",
             "group_counts[{i}] = {got}: must be from 0 to {want}", "A run clamps it."},
    RuleText{
        Rule::kKStart, kInvalid, "Found by validate",
        "group_offsets[{i}] = {got}: must be a multiple of 128 (a group's K starts on a scale)",
        "A run rounds it down."},
    RuleText{Rule::kKMultiple, kInvalid, "Found by validate",
             "group_counts[{i}] = {got}: must be a multiple of 128 in the packed form",
             "A run rounds it down."},
    RuleText{Rule::kKOverlap, kInvalid, "Found by validate",
             "group_offsets[{i}] = {got}: must be at least {want}, where the K of the group before "
             "ends",
             "A run computes both groups."},
    RuleText{Rule::kScaleNotFinite, kInvalid, "Found by validate",
             "{arg}: group {group}, row {row}, K-block {column} is {got}: must be finite",
             "A run computes with it as it is."},

    RuleText{Rule::kAmaxMin, kInvalid, "Quantisation",
             "amax_min = {got}: must be finite and 0 or more", ""},
    RuleText{Rule::kCodesExtent, kInvalid, "Quantisation", "{arg} = {got}: must be {want}",
             "codes has x's shape (transposed if asked), its K rounded up to 128 at most."},

    RuleText{
        Rule::kNoDriver, OCTET_NO_DEVICE, "Devices at run time",
        "no NVIDIA driver: libcuda.so.1 was not found (the CPU backend computes the same bits)",
        ""},
    RuleText{Rule::kDriverWithout, OCTET_NO_DEVICE, "Devices at run time",
             "the NVIDIA driver lacks {want}: a newer one is needed",
             "Its functions are found by name, one by one."},
    RuleText{Rule::kDriverStart, OCTET_NO_DEVICE, "Devices at run time",
             "the NVIDIA driver could not be initialised: {got}",
             "A machine with a driver and no device, or a process that forked after using one."},
    RuleText{Rule::kDriverVersion, OCTET_NO_DEVICE, "Devices at run time",
             "the NVIDIA driver is for CUDA {got}: must be for {want} or newer, as the kernels of "
             "this build",
             "Within a major version of CUDA any driver runs any kernel."},
    RuleText{Rule::kDeviceOrdinal, OCTET_NO_DEVICE, "Devices at run time",
             "device {got}: this machine has {want}, numbered from 0", ""},
    RuleText{Rule::kDeviceNotHopper, OCTET_UNSUPPORTED, "Devices at run time",
             "device {device} ({name}) has compute capability {got}: must be 9.0 (Hopper); the CPU "
             "backend computes the same bits",
             "The kernels are Hopper's own instructions."},
    RuleText{Rule::kBuildWithoutKernels, OCTET_UNSUPPORTED, "Devices at run time",
             "this build has no kernels ({got}): build it with OCTET_CUDA=require, where nvcc is "
             "installed",
             ""},
    RuleText{
        Rule::kGpuKernel, kInvalid, "Devices at run time",
        "plan.kernel = \"{got}\": must be the name of a kernel of this build (a plan for \"cpu\" "
        "runs on the processor)",
        ""},
    RuleText{Rule::kNotPrepared, OCTET_NOT_PREPARED, "Devices at run time",
             "kernel {got} is not loaded: prepare the plan first",
             "Loading takes milliseconds, and a launch must not."},
    RuleText{Rule::kCapturing, OCTET_NOT_PREPARED, "Devices at run time",
             "kernel {got} is not loaded and the stream is being captured: prepare the plan before "
             "the capture",
             "The capture stays intact."},
    RuleText{Rule::kValidateCapture, kInvalid, "Devices at run time",
             "stream: is being captured; octet_cuda_validate() waits for it, so call it before the "
             "capture",
             "The capture stays intact."},
    RuleText{Rule::kCopyEngineStride, OCTET_UNSUPPORTED, "Devices at run time",
             "a or b: a stride of 2^40 bytes or more cannot be read by the copy engine",
             "The CPU backend reads it."},
    RuleText{Rule::kDriverError, OCTET_DEVICE_ERROR, "Devices at run time",
             "{doing}: the driver reports {got}", ""},
    RuleText{Rule::kDriverOutOfMemory, OCTET_OUT_OF_MEMORY, "Devices at run time",
             "{doing}: the driver reports {got}", "The device's memory, or the driver's."},

    RuleText{Rule::kOutOfMemory, OCTET_OUT_OF_MEMORY, "Faults", "out of memory",
             "The CPU backend's scratch, or a text."},
    RuleText{Rule::kInternal, OCTET_INTERNAL, "Faults", "internal fault, please report it: {got}",
             "A fault of this library."},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    if (static_cast<std::size_t>(kTexts[i].rule) != i) return false;
  }
  return kTexts.size() == static_cast<std::size_t>(Rule::kInternal) + 1;
}
static_assert(in_order(), "the table must list every rule in the order of the enumeration");

// Text of the caller's may hold anything. A sentence is one line, and no terminal obeys it.
std::string on_one_line(std::string text) {
  constexpr std::size_t kMost = 1000;
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  if (text.size() > kMost) text.replace(kMost, std::string::npos, "...");
  return text;
}

}  // namespace

std::span<const RuleText> rule_texts() { return kTexts; }
const RuleText& rule_text(Rule rule) { return kTexts[static_cast<std::size_t>(rule)]; }

Status refuse(Rule rule, std::initializer_list<Detail> details) {
  const RuleText& entry = rule_text(rule);
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  for (const Detail& detail : details) {
    values.push_back(fmt::arg(std::string(detail.name).c_str(), on_one_line(detail.value)));
  }
  return {entry.code, fmt::vformat(entry.sentence, values)};
}

}  // namespace oct::core
