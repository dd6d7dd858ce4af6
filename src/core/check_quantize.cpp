// The rules of quantise and dequantise; see check.h.
#include <cmath>

#include <fmt/format.h>

#include "core/check.h"
#include "core/extents.h"
#include "core/problem.h"
#include "core/quantize_shape.h"
#include "core/refusals.h"
#include "core/regions.h"
#include "core/types.h"

namespace oct::core {
namespace {

Status enum_value(const char* arg, std::string got, const char* want) {
  return refuse(Rule::kEnumValue, {{"arg", arg}, {"got", std::move(got)}, {"want", want}});
}

Status extent(const char* arg, int64_t got, std::string want) {
  return refuse(Rule::kCodesExtent, {{"arg", arg}, {"got", text(got)}, {"want", std::move(want)}});
}

Status check_matrix(const char* arg, const octet_matrix& x, octet_type type) {
  const struct {
    const char* name;
    int64_t got;
  } sizes[] = {{".rows", x.rows}, {".cols", x.cols}};
  for (const auto& size : sizes) {
    if (size.got < 0 || size.got > kMaxSize) {
      return refuse(Rule::kExtent, {{"arg", std::string(arg) + size.name},
                                    {"got", text(size.got)},
                                    {"want", fmt::format("from 0 to {}", kMaxSize)}});
    }
  }
  if (x.rows == 0 || x.cols == 0) return {};
  if (x.data == nullptr) {
    return refuse(Rule::kMissingPointer,
                  {{"arg", std::string(arg) + ".data"},
                   {"want", fmt::format("{} [{}, {}]", type_name(type), x.rows, x.cols)}});
  }
  if (reinterpret_cast<uintptr_t>(x.data) % static_cast<uintptr_t>(size_of(type)) != 0) {
    return refuse(Rule::kAlignedPointer, {{"arg", std::string(arg) + ".data"},
                                          {"got", pointer_text(x.data)},
                                          {"want", text(size_of(type))}});
  }
  if (x.ld < x.cols) {
    return refuse(Rule::kLeadingDimension,
                  {{"arg", arg}, {"got", text(x.ld)}, {"want", text(x.cols)}});
  }
  if (x.ld > kLargestStride) {
    return refuse(Rule::kTooLarge, {{"arg", std::string(arg) + ".ld"},
                                    {"got", text(x.ld)},
                                    {"want", text(kLargestStride)}});
  }
  return {};
}

Status apart(const char* arg, const Region& x, const char* other, const Region& y) {
  const Sharing shared = sharing(x, y);
  if (shared == Sharing::kNone) return {};
  return refuse(shared == Sharing::kUnknown ? Rule::kInterleaved : Rule::kOverlap,
                {{"arg", arg}, {"other", other}});
}

Status check_fields(const octet_quantize_args& args) {
  if (args.struct_size != sizeof args) {
    return refuse(Rule::kStructSize, {{"arg", "args"},
                                      {"got", text(args.struct_size)},
                                      {"want", text(sizeof args)},
                                      {"init", "octet_quantize_args_init"}});
  }
  if (args.block != OCTET_BLOCK_1X128 && args.block != OCTET_BLOCK_128X128) {
    return enum_value("block", text(args.block), "1 (1x128) or 2 (128x128)");
  }
  if (args.axis != 0 && args.axis != 1) {
    return refuse(Rule::kFlag, {{"arg", "axis"}, {"got", text(args.axis)}});
  }
  if (args.transpose != 0 && args.transpose != 1) {
    return refuse(Rule::kFlag, {{"arg", "transpose"}, {"got", text(args.transpose)}});
  }
  if (!is_output_type(args.x_type)) {
    return enum_value("x_type", type_text(args.x_type), "f32, bf16 or f16");
  }
  if (args.scale_format < OCTET_SCALES_F32 || args.scale_format > OCTET_SCALES_UE8M0) {
    return enum_value("scale_format", text(args.scale_format),
                      "0 (f32), 1 (powers of two) or 2 (ue8m0)");
  }
  if (!std::isfinite(args.amax_min) || args.amax_min < 0) {
    return refuse(Rule::kAmaxMin, {{"got", fmt::format("{}", args.amax_min)}});
  }
  if (args.threads < 0 || args.threads > kMaxThreads) {
    return refuse(Rule::kThreads, {{"got", text(args.threads)}, {"want", text(kMaxThreads)}});
  }
  return {};
}

Status check_codes_shape(const octet_quantize_args& args) {
  // The codes' K may be longer than x's, up to a whole block.
  const bool k_is_cols = (args.axis == 1) != (args.transpose == 1);
  const QuantizeShape shape = quantize_shape(args);
  const int64_t got_k = k_is_cols ? args.codes.cols : args.codes.rows;
  const int64_t got_lines = k_is_cols ? args.codes.rows : args.codes.cols;
  const char* k_arg = k_is_cols ? "codes.cols" : "codes.rows";
  const char* lines_arg = k_is_cols ? "codes.rows" : "codes.cols";
  if (got_lines != shape.lines) return extent(lines_arg, got_lines, text(shape.lines));
  const int64_t longest = round_up(shape.k, kBlockK);
  if (got_k < shape.k || got_k > longest) {
    return extent(k_arg, got_k,
                  shape.k == longest ? text(shape.k)
                                     : fmt::format("from {} to {}", shape.k, longest));
  }
  return {};
}

// `quantising`: codes and scales are written; otherwise x.
Status check(const octet_quantize_args& args, bool quantising) {
  if (Status s = check_fields(args); !s.ok()) return s;
  if (Status s = check_matrix("x", args.x, args.x_type); !s.ok()) return s;
  if (Status s = check_matrix("codes", args.codes, OCTET_E4M3); !s.ok()) return s;
  if (Status s = check_codes_shape(args); !s.ok()) return s;
  const QuantizeShape shape = quantize_shape(args);
  if (shape.lines == 0 || shape.k == 0) return {};
  const octet_type scale_type = args.scale_format == OCTET_SCALES_UE8M0 ? OCTET_UE8M0 : OCTET_F32;
  if (args.scales == nullptr) {
    return refuse(Rule::kMissingPointer,
                  {{"arg", "scales"},
                   {"want", fmt::format("{} scales [{}, {}]", type_name(scale_type),
                                        shape.scale_lines, shape.blocks)}});
  }
  if (reinterpret_cast<uintptr_t>(args.scales) % static_cast<uintptr_t>(size_of(scale_type)) != 0) {
    return refuse(Rule::kAlignedPointer, {{"arg", "scales"},
                                          {"got", pointer_text(args.scales)},
                                          {"want", text(size_of(scale_type))}});
  }
  const struct {
    const char* name;
    int64_t got;
    int64_t count;
  } strides[] = {{"row_stride", args.row_stride, shape.scale_lines},
                 {"k_stride", args.k_stride, shape.blocks}};
  for (const auto& stride : strides) {
    if (stride.got < 0) {
      return refuse(Rule::kScaleStride, {{"arg", stride.name}, {"got", text(stride.got)}});
    }
    if (stride.got > kLargestStride) {
      return refuse(Rule::kTooLarge, {{"arg", stride.name},
                                      {"got", text(stride.got)},
                                      {"want", text(kLargestStride)}});
    }
    // Two scales in one place would make the written value depend on the order of threads.
    if (quantising && stride.got == 0 && stride.count > 1) {
      return refuse(Rule::kExtent, {{"arg", stride.name},
                                    {"got", "0"},
                                    {"want", "1 or more: scales are written"}});
    }
  }
  // The same danger where a walk along one axis meets the other: the larger stride must step over
  // it.
  if (quantising && shape.scale_lines > 1 && shape.blocks > 1) {
    const bool rows_inside = args.row_stride <= args.k_stride;
    const int64_t small = rows_inside ? args.row_stride : args.k_stride;
    const int64_t large = rows_inside ? args.k_stride : args.row_stride;
    const int64_t least = ((rows_inside ? shape.scale_lines : shape.blocks) - 1) * small + 1;
    if (large < least) {
      return extent(rows_inside ? "k_stride" : "row_stride", large,
                    fmt::format("at least {}: scales are written, and must not share places",
                                least));
    }
  }
  const Region x = matrix_region(args.x, args.x_type, 1);
  const Region codes = matrix_region(args.codes, OCTET_E4M3, 1);
  const int64_t size = size_of(scale_type);
  const Region scales(args.scales, size,
                      {{args.row_stride * size, shape.scale_lines},
                       {args.k_stride * size, shape.blocks}});
  if (Status s = apart("codes", codes, "x", x); !s.ok()) return s;
  if (Status s = apart("scales", scales, "x", x); !s.ok()) return s;
  return quantising ? apart("scales", scales, "codes", codes) : Status{};
}

}  // namespace

Status check_quantize(const octet_quantize_args& args) { return check(args, true); }
Status check_dequantize(const octet_quantize_args& args) { return check(args, false); }

}  // namespace oct::core
