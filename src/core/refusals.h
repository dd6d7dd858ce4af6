// Every sentence that the library refuses with, in one table. Checks name a rule and its values;
// the tests assert each sentence; docs/limits.md is printed from the same table.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"

namespace oct::core {

enum class Rule {
  // any call
  kNull,
  kStructSize,
  kTextCapacity,
  // problem
  kProblemString,
  kEnumValue,
  kFlag,
  kNegative,
  kTooLarge,
  kDenseGroups,
  kContiguousAlignment,
  kAlignedAlignment,
  kOtherAlignment,
  kOnlyMasked,
  kMaskedRows,
  kOnlyContiguous,
  kOnlyKGrouped,
  kIndexType,
  kBf16Granularity,
  kE4m3Granularity,
  kKGroupedGranularity,
  kKGroupedBias,
  kSplitRange,
  kSmBudget,
  // device and plan
  kDeviceName,
  kDeviceArchitecture,
  kNoKernel,
  kPlanString,
  kPlanSplit,
  kPlanMismatch,
  kPlanContradiction,
  kPlanDevice,
  // tuned tables
  kTableLine,
  kTableDevice,
  kTableEntry,
  // why a kernel does not take a problem
  kServesGrouping,
  kServesGrouped,
  kServesKGrouped,
  kServesPacked,
  kServesUnpacked,
  kServesOperands,
  kServesPairs,
  kServesPipelines,
  kServesOneRange,
  kServesShared,
  kServesNoRoom,
  kServesCluster,
  kServesFewBlocks,
  kServesTiles,
  kServesCoordinates,
  kServesRows,
  kServesMemory,
  kServesBudget,
  // arguments
  kExtent,
  kLeadingDimension,
  kPitch,
  kGroupStride,
  kGroupStridePitch,
  kMissingPointer,
  kAlignedPointer,
  kScaleStride,
  kScaleLayout,
  kOverlap,
  kPartialC,
  kInterleaved,
  kMissingMetadata,
  kPackedColumns,
  kWorkspace,
  kWorkspaceAlignment,
  kThreads,
  kIsa,
  // values that validate() finds in grouping metadata and scales
  kBadIndex,
  kMixedBlock,
  kResumedBlock,
  kBadOffset,
  kDecreasing,
  kBadCount,
  kKStart,
  kKMultiple,
  kKOverlap,
  kScaleNotFinite,
  // quantisation
  kAmaxMin,
  kCodesExtent,
  // devices and kernels at run time
  kNoDriver,
  kDriverWithout,
  kDriverStart,
  kDriverVersion,
  kDeviceOrdinal,
  kDeviceNotHopper,
  kBuildWithoutKernels,
  kGpuKernel,
  kNotPrepared,
  kCapturing,
  kValidateCapture,
  kCopyEngineStride,
  kDriverError,
  kDriverOutOfMemory,
  // faults of the machine or of this library
  kOutOfMemory,
  kInternal,
};

struct RuleText {
  Rule rule;
  octet_code code;
  const char* topic;     // heading in docs/limits.md
  const char* sentence;  // {name} stands for a value
  const char* why;       // for docs/limits.md
};

std::span<const RuleText> rule_texts();
const RuleText& rule_text(Rule rule);

struct Detail {
  std::string_view name;
  std::string value;
};

// The rule's sentence with its values filled in.
Status refuse(Rule rule, std::initializer_list<Detail> details);

inline std::string text(int64_t value) { return std::to_string(value); }

}  // namespace oct::core
