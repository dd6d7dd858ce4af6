// See check.h. Order: sizes, pointers, pitches, scales, metadata, workspace, overlap; the first
// rule broken is the one told.
#include "core/check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/extents.h"
#include "core/float_types.h"
#include "core/math.h"
#include "core/problem.h"
#include "core/refusals.h"
#include "core/regions.h"
#include "core/types.h"

namespace oct::core {
namespace {

constexpr int64_t kCopyEngineBytes = 16;

bool aligned(const void* pointer, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(bytes) == 0;
}

class Checker {
 public:
  Checker(const octet_gemm_plan& plan, const octet_gemm_args& args)
      : plan_(plan), p_(plan.problem), args_(args) {}

  Status run() {
    if (Status s = check_structs(); !s.ok()) return s;
    if (Status s = check_shapes(); !s.ok()) return s;
    if (Status s = check_operand("a", "A", args_.a, p_.in_type, a_groups(), true); !s.ok())
      return s;
    if (Status s = check_operand("b", "B", args_.b, p_.in_type, b_groups(), true); !s.ok())
      return s;
    if (Status s = check_operand("d", "D", args_.d, p_.d_type, d_groups(), false); !s.ok())
      return s;
    if (p_.accumulate) {
      if (Status s = check_operand("c", "C", args_.c, p_.d_type, d_groups(), false); !s.ok()) {
        return s;
      }
    }
    if (p_.granularity != OCTET_SCALE_NONE) {
      if (Status s = check_scales("sfa", args_.sfa, p_.sfa_layout, scale_extent_a(p_, args_));
          !s.ok()) {
        return s;
      }
      if (Status s = check_scales("sfb", args_.sfb, p_.sfb_layout, scale_extent_b(p_, args_));
          !s.ok()) {
        return s;
      }
    }
    if (Status s = check_bias(); !s.ok()) return s;
    if (Status s = check_metadata(); !s.ok()) return s;
    if (Status s = check_workspace(); !s.ok()) return s;
    return check_overlap();
  }

 private:
  Status check_structs() const {
    if (plan_.struct_size != sizeof plan_) {
      return refuse(Rule::kStructSize, {{"arg", "plan"},
                                        {"got", text(plan_.struct_size)},
                                        {"want", text(sizeof plan_)},
                                        {"init", "octet_plan_gemm"}});
    }
    if (args_.struct_size != sizeof args_) {
      return refuse(Rule::kStructSize, {{"arg", "args"},
                                        {"got", text(args_.struct_size)},
                                        {"want", text(sizeof args_)},
                                        {"init", "octet_gemm_args_init"}});
    }
    if (Status s = check_problem(p_); !s.ok()) return s;
    if (plan_.split < 1 || plan_.split > kMaxSplit) {
      return refuse(Rule::kPlanSplit, {{"got", text(plan_.split)}, {"want", text(kMaxSplit)}});
    }
    return {};
  }

  int64_t a_groups() const {
    return p_.grouping == OCTET_BATCHED || p_.grouping == OCTET_MASKED ? p_.groups : 1;
  }
  int64_t b_groups() const { return p_.grouping == OCTET_K_GROUPED ? 1 : p_.groups; }
  int64_t d_groups() const { return p_.grouping == OCTET_K_GROUPED ? p_.groups : a_groups(); }

  static Status extent(const char* arg, int64_t got, int64_t want, const char* meaning) {
    if (got == want) return {};
    return refuse(Rule::kExtent, {{"arg", arg},
                                  {"got", text(got)},
                                  {"want", fmt::format("{} ({})", want, meaning)}});
  }

  Status check_total(const char* arg, int64_t got) const {
    if (got >= 0 && got <= kMaxSize) return {};
    return refuse(Rule::kExtent, {{"arg", arg},
                                  {"got", text(got)},
                                  {"want", fmt::format("from 0 to {}", kMaxSize)}});
  }

  Status check_shapes() const {
    int64_t rows = p_.m;
    const char* rows_are = "problem.m";
    if (shares_rows(p_.grouping)) {
      // The problem's m is only a hint there; A says how many rows there are.
      if (Status s = check_total("a.rows", args_.a.rows); !s.ok()) return s;
      rows = args_.a.rows;
      rows_are = "a.rows";
    } else if (p_.grouping == OCTET_MASKED) {
      rows = p_.max_m;
      rows_are = "problem.max_m";
    }
    int64_t k = p_.k;
    const char* k_is = "problem.k";
    if (p_.grouping == OCTET_K_GROUPED) {
      if (Status s = check_total("a.cols", args_.a.cols); !s.ok()) return s;
      k = args_.a.cols;
      k_is = "a.cols";
      if (p_.packed && k % kBlockK != 0) {
        return refuse(Rule::kPackedColumns, {{"arg", "a"}, {"got", text(k)}});
      }
    }
    const struct {
      const char* arg;
      int64_t got, want;
      const char* meaning;
      bool used;
    } rules[] = {{"a.rows", args_.a.rows, rows, rows_are, true},
                 {"a.cols", args_.a.cols, k, k_is, true},
                 {"b.rows", args_.b.rows, p_.n, "problem.n", true},
                 {"b.cols", args_.b.cols, k, k_is, true},
                 {"d.rows", args_.d.rows, rows, rows_are, true},
                 {"d.cols", args_.d.cols, p_.n, "problem.n", true},
                 {"c.rows", args_.c.rows, rows, rows_are, p_.accumulate == 1},
                 {"c.cols", args_.c.cols, p_.n, "problem.n", p_.accumulate == 1}};
    for (const auto& rule : rules) {
      if (!rule.used) continue;
      // Arguments as they were made: C was forgotten, and its extents are not what to speak of.
      if (rule.arg == std::string_view("c.rows") && args_.c.data == nullptr && rule.got == 0 &&
          rule.want > 0) {
        return refuse(Rule::kMissingPointer,
                      {{"arg", "c.data"},
                       {"want",
                        fmt::format("C [{}, {}], as problem.accumulate is 1", rows, p_.n)}});
      }
      if (Status s = extent(rule.arg, rule.got, rule.want, rule.meaning); !s.ok()) return s;
    }
    return {};
  }

  // `copied`: read by the copy engine, so base and pitch are multiples of 16 bytes.
  Status check_operand(const std::string& arg, const char* matrix, const octet_matrix& x,
                       octet_type type, int64_t groups, bool copied) const {
    const bool packed = p_.packed && copied;
    if (x.rows == 0 || x.cols == 0 || groups == 0) return {};
    if (x.data == nullptr) {
      return refuse(Rule::kMissingPointer,
                    {{"arg", arg + ".data"},
                     {"want", fmt::format("{} [{}, {}]", matrix, x.rows, x.cols)}});
    }
    const int64_t alignment = copied ? kCopyEngineBytes : size_of(type);
    if (!aligned(x.data, alignment)) {
      return refuse(Rule::kAlignedPointer, {{"arg", arg + ".data"},
                                            {"got", pointer_text(x.data)},
                                            {"want", text(alignment)}});
    }
    if (packed) return {};  // blocks one after the other: ld and group_stride are not read
    if (x.ld < x.cols) {
      return refuse(Rule::kLeadingDimension,
                    {{"arg", arg}, {"got", text(x.ld)}, {"want", text(x.cols)}});
    }
    if (x.ld > kLargestStride) {
      return refuse(Rule::kTooLarge,
                    {{"arg", arg + ".ld"}, {"got", text(x.ld)}, {"want", text(kLargestStride)}});
    }
    const int64_t unit = copied ? kCopyEngineBytes / size_of(type) : 1;
    if (x.ld % unit != 0) {
      return refuse(Rule::kPitch,
                    {{"arg", arg}, {"got", text(x.ld)}, {"want", text(unit)}, {"matrix", matrix}});
    }
    if (Status s = check_span(arg, matrix_bytes(x, type, groups)); !s.ok()) return s;
    if (groups < 2) return {};
    const int64_t least = (x.rows - 1) * x.ld + x.cols;
    const int64_t most = std::max(least, kLargestGroupStride);
    const bool shareable = p_.grouping == OCTET_BATCHED && matrix[0] != 'D';
    if (shareable && x.group_stride == 0) return {};
    if (x.group_stride < least || x.group_stride > most) {
      return refuse(Rule::kGroupStride,
                    {{"arg", arg},
                     {"got", text(x.group_stride)},
                     {"want", fmt::format("{}from {} to {}",
                                          shareable ? "0 (one matrix for the whole batch) or " : "",
                                          least, most)}});
    }
    if (x.group_stride % unit != 0) {
      return refuse(Rule::kGroupStridePitch, {{"arg", arg},
                                              {"got", text(x.group_stride)},
                                              {"want", text(unit)},
                                              {"matrix", matrix}});
    }
    return {};
  }

  // From the first byte of an operand to its last.
  static Status check_span(const std::string& arg, int64_t bytes) {
    if (bytes <= kLargestBytes) return {};
    return refuse(Rule::kTooLarge, {{"arg", "bytes that " + arg + " spans"},
                                    {"got", "more than 2^62"},
                                    {"want", text(kLargestBytes)}});
  }

  Status check_scales(const std::string& arg, const octet_scale_matrix& x,
                      octet_scale_layout layout, const ScaleExtent& extent) const {
    if (extent.rows == 0 || extent.blocks == 0 || extent.groups == 0) return {};
    if (x.data == nullptr) {
      return refuse(Rule::kMissingPointer,
                    {{"arg", arg + ".data"},
                     {"want", fmt::format("float32 scales [{}, {}]", extent.rows, extent.blocks)}});
    }
    if (!aligned(x.data, 4)) {
      return refuse(Rule::kAlignedPointer,
                    {{"arg", arg + ".data"}, {"got", pointer_text(x.data)}, {"want", "4"}});
    }
    const struct {
      const char* name;
      int64_t got;
    } strides[] = {{".row_stride", x.row_stride},
                   {".k_stride", x.k_stride},
                   {".group_stride", extent.groups > 1 ? x.group_stride : 0}};
    for (const auto& stride : strides) {
      if (stride.got < 0) {
        return refuse(Rule::kScaleStride, {{"arg", arg + stride.name}, {"got", text(stride.got)}});
      }
      if (stride.got > kLargestGroupStride) {
        return refuse(Rule::kTooLarge, {{"arg", arg + stride.name},
                                        {"got", text(stride.got)},
                                        {"want", text(kLargestGroupStride)}});
      }
    }
    // A forgotten group_stride would give every group the first one's scales. A batch may share
    // them.
    if (p_.grouping != OCTET_BATCHED && extent.groups > 1 && x.group_stride == 0 &&
        (x.row_stride != 0 || x.k_stride != 0)) {
      return refuse(Rule::kGroupStride,
                    {{"arg", arg},
                     {"got", "0"},
                     {"want",
                      "the distance between groups (0 only where all strides are 0: one "
                      "scale for everything)"}});
    }
    if (Status s = check_span(arg, scale_bytes(x, extent)); !s.ok()) return s;
    if (lies_as(x, layout, extent)) return {};
    return refuse(Rule::kScaleLayout, {{"arg", arg},
                                       {"row", text(x.row_stride)},
                                       {"column", text(x.k_stride)},
                                       {"alignment", text(pointer_alignment(x.data))},
                                       {"want", layout_text(layout)}});
  }

  static int64_t pointer_alignment(const void* pointer) {
    const auto bits = reinterpret_cast<uintptr_t>(pointer);
    return static_cast<int64_t>(bits & (~bits + 1));
  }

  static const char* layout_text(octet_scale_layout layout) {
    switch (layout) {
      case OCTET_ROW_MAJOR: return "row-major (k_stride 1)";
      case OCTET_COLUMN_MAJOR_ODD: return "column-major with any pitch (row_stride 1)";
      default:
        return "column-major (row_stride 1, k_stride and group_stride multiples of 4, data 16-byte "
               "aligned)";
    }
  }

  Status check_bias() const {
    if (p_.bias_type == OCTET_NONE || p_.n == 0 || p_.groups == 0) return {};
    if (args_.bias == nullptr) {
      return refuse(Rule::kMissingPointer,
                    {{"arg", "bias"},
                     {"want", fmt::format("{} bias [{}]", type_name(p_.bias_type), p_.n)}});
    }
    if (!aligned(args_.bias, size_of(p_.bias_type))) {
      return refuse(Rule::kAlignedPointer, {{"arg", "bias"},
                                            {"got", pointer_text(args_.bias)},
                                            {"want", text(size_of(p_.bias_type))}});
    }
    if (p_.groups > 1 && (args_.bias_group_stride < 0 || args_.bias_group_stride > kMaxSize)) {
      return refuse(Rule::kExtent, {{"arg", "bias_group_stride"},
                                    {"got", text(args_.bias_group_stride)},
                                    {"want", fmt::format("from 0 to {}", kMaxSize)}});
    }
    return {};
  }

  Status metadata(const char* arg, const void* data, octet_type type, const char* want) const {
    if (data == nullptr) {
      return refuse(Rule::kMissingMetadata,
                    {{"arg", arg}, {"kind", grouping_name(p_.grouping)}, {"want", want}});
    }
    if (!aligned(data, size_of(type))) {
      return refuse(Rule::kAlignedPointer,
                    {{"arg", arg}, {"got", pointer_text(data)}, {"want", text(size_of(type))}});
    }
    return {};
  }

  Status check_metadata() const {
    const char* counts = "one number for each group";
    switch (p_.grouping) {
      case OCTET_CONTIGUOUS:
        if (args_.a.rows == 0) return {};
        return metadata("group_index", args_.group_index, OCTET_I32, "int32[a.rows]");
      case OCTET_OFFSETS:
        if (p_.groups == 0) return {};
        return metadata("group_offsets", args_.group_offsets, p_.index_type,
                        "groups + 1 row offsets of index_type");
      case OCTET_ALIGNED:
        if (p_.groups == 0) return {};
        return metadata("group_ends", args_.group_ends, OCTET_I32, "int32[groups]");
      case OCTET_MASKED:
        if (p_.groups == 0) return {};
        return metadata("group_counts", args_.group_counts, OCTET_I32, "int32[groups]");
      case OCTET_K_GROUPED:
        if (p_.groups == 0) return {};
        if (!p_.packed) {
          if (Status s = metadata("group_offsets", args_.group_offsets, p_.index_type, counts);
              !s.ok()) {
            return s;
          }
        }
        return metadata("group_counts", args_.group_counts, p_.index_type, counts);
      default: return {};
    }
  }

  Status check_workspace() const {
    if (plan_.workspace_bytes <= 0) return {};
    if (args_.workspace_bytes < plan_.workspace_bytes) {
      return refuse(Rule::kWorkspace,
                    {{"got", text(args_.workspace_bytes)}, {"want", text(plan_.workspace_bytes)}});
    }
    if (args_.workspace == nullptr) {
      return refuse(Rule::kMissingPointer,
                    {{"arg", "workspace"},
                     {"want", fmt::format("{} bytes", plan_.workspace_bytes)}});
    }
    if (!aligned(args_.workspace, 256)) {
      return refuse(Rule::kWorkspaceAlignment, {{"got", pointer_text(args_.workspace)}});
    }
    return {};
  }

  Status apart(const char* arg, const Region& x, const char* other, const Region& y,
               Rule rule = Rule::kOverlap) const {
    const Sharing shared = sharing(x, y);
    if (shared == Sharing::kNone) return {};
    return refuse(shared == Sharing::kUnknown ? Rule::kInterleaved : rule,
                  {{"arg", arg}, {"other", other}});
  }

  Status check_overlap() const {
    const int64_t index_bytes = size_of(p_.index_type);
    const bool scaled = p_.granularity != OCTET_SCALE_NONE;
    const bool biased = p_.bias_type != OCTET_NONE && p_.groups > 0 && p_.n > 0;
    const int64_t bias_bytes = size_of(p_.bias_type);
    const Region d = matrix_region(args_.d, p_.d_type, d_groups());
    const Region workspace(args_.workspace, plan_.workspace_bytes);
    const struct {
      const char* name;
      Region region;
    } read[] = {{"a", operand_region(args_.a, a_groups())},
                {"b", operand_region(args_.b, b_groups())},
                {"sfa", scaled ? scale_region(args_.sfa, scale_extent_a(p_, args_)) : Region()},
                {"sfb", scaled ? scale_region(args_.sfb, scale_extent_b(p_, args_)) : Region()},
                {"bias", biased ? Region(args_.bias, p_.n * bias_bytes,
                                         {level(args_.bias_group_stride, p_.groups, bias_bytes)})
                                : Region()},
                {"group_index",
                 Region(args_.group_index, p_.grouping == OCTET_CONTIGUOUS ? args_.a.rows * 4 : 0)},
                {"group_offsets",
                 Region(args_.group_offsets,
                        p_.grouping == OCTET_OFFSETS ? (p_.groups + 1) * index_bytes
                        : p_.grouping == OCTET_K_GROUPED && !p_.packed ? p_.groups * index_bytes
                                                                       : 0)},
                {"group_ends",
                 Region(args_.group_ends, p_.grouping == OCTET_ALIGNED ? p_.groups * 4 : 0)},
                {"group_counts", Region(args_.group_counts,
                                        p_.grouping == OCTET_MASKED      ? p_.groups * 4
                                        : p_.grouping == OCTET_K_GROUPED ? p_.groups * index_bytes
                                                                         : 0)}};
    for (const auto& x : read) {
      if (Status s = apart("d", d, x.name, x.region); !s.ok()) return s;
      if (Status s = apart("workspace", workspace, x.name, x.region); !s.ok()) return s;
    }
    if (Status s = apart("workspace", workspace, "d", d); !s.ok()) return s;
    if (!p_.accumulate) return {};
    const Region c = matrix_region(args_.c, p_.d_type, d_groups());
    // A pitch that is never followed may differ.
    const bool same = args_.c.data == args_.d.data &&
                      (args_.d.rows < 2 || args_.c.ld == args_.d.ld) &&
                      (d_groups() < 2 || args_.c.group_stride == args_.d.group_stride);
    if (!same) {
      if (Status s = apart("c", c, "d", d, Rule::kPartialC); !s.ok()) return s;
    }
    return apart("workspace", workspace, "c", c);
  }

  Region operand_region(const octet_matrix& x, int64_t groups) const {
    if (p_.packed) return Region(x.data, x.rows * x.cols * size_of(p_.in_type));
    return matrix_region(x, p_.in_type, groups);
  }

  const octet_gemm_plan& plan_;
  const octet_gemm_problem& p_;
  const octet_gemm_args& args_;
};

}  // namespace

Status check_args(const octet_gemm_plan& plan, const octet_gemm_args& args) {
  return Checker(plan, args).run();
}

}  // namespace oct::core
