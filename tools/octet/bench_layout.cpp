// See bench_layout.h.
#include "bench_layout.h"

#include <algorithm>
#include <cmath>

namespace octet::tool {
namespace {

std::int64_t round_up(std::int64_t x, std::int64_t to) { return ceil_div(x, to) * to; }

std::int64_t size_of(octet_type type) {
  switch (type) {
    case OCTET_E4M3:
    case OCTET_UE8M0: return 1;
    case OCTET_BF16:
    case OCTET_F16: return 2;
    default: return 4;
  }
}

// `groups` matrices of rows x cols, `align` elements between starts of rows.
OperandExtent matrix_extent(std::int64_t rows, std::int64_t cols, std::int64_t align,
                            std::int64_t groups, octet_type type) {
  OperandExtent x;
  x.ld = round_up(cols, align);
  const std::int64_t one = round_up(rows * x.ld, 256);
  x.group_stride = groups > 1 ? one : 0;
  x.bytes = round_up(one * groups * size_of(type), 256);
  return x;
}

OperandExtent scale_extent(std::int64_t rows, std::int64_t blocks, octet_scale_layout layout,
                           std::int64_t groups) {
  OperandExtent x;
  x.ld = layout == OCTET_ROW_MAJOR          ? round_up(blocks, 4)
         : layout == OCTET_COLUMN_MAJOR_ODD ? rows
                                            : round_up(rows, 4);
  const std::int64_t one =
      round_up((layout == OCTET_ROW_MAJOR ? rows : blocks) * x.ld, std::int64_t{64});
  x.group_stride = groups > 1 ? one : 0;
  x.bytes = round_up(one * groups * 4, 256);
  return x;
}

octet_scale_matrix scales_at(char* base, const OperandExtent& x, octet_scale_layout layout,
                             int set) {
  const auto* data = reinterpret_cast<const float*>(base + set * x.bytes);
  return layout == OCTET_ROW_MAJOR ? row_major_scales(data, x.ld, x.group_stride)
                                   : column_major_scales(data, x.ld, x.group_stride);
}

}  // namespace

OperandLayout layout_of(const GemmProblem& p, bool with_metadata) {
  OperandLayout layout;
  layout.groups = group_layout(p, with_metadata);
  const std::int64_t rows = layout.groups.rows;
  // Groups share one A and D, but for masked ones; K-grouped ones A and B.
  const bool shared = p.grouping != OCTET_BATCHED && p.grouping != OCTET_MASKED;
  const bool by_k = p.grouping == OCTET_K_GROUPED;
  const std::int64_t buffers = shared ? 1 : p.groups, b_buffers = by_k ? 1 : p.groups,
                     d_buffers = by_k ? p.groups : buffers;
  const std::int64_t cols = layout.groups.cols;
  const std::int64_t in_align = 16 / size_of(p.in_type);  // rows start on 16 bytes
  layout.a = matrix_extent(rows, cols, in_align, buffers, p.in_type);
  layout.b = matrix_extent(p.n, cols, in_align, b_buffers, p.in_type);
  layout.d = matrix_extent(rows, p.n, 1, d_buffers, p.d_type);
  if (p.accumulate != 0) layout.c = layout.d;
  if (p.bias_type != OCTET_NONE) {
    layout.bias = matrix_extent(1, p.n, 1, p.groups, p.bias_type);
  }
  if (p.granularity != OCTET_SCALE_NONE) {
    const std::int64_t b_rows = p.granularity == OCTET_1D2D ? ceil_div(p.n, 128) : p.n;
    layout.sfa = scale_extent(rows, k_blocks(cols), p.sfa_layout, buffers);
    layout.sfb = scale_extent(b_rows, k_blocks(cols), p.sfb_layout, b_buffers);
  }
  const std::int64_t together = layout.a.bytes + layout.b.bytes + layout.d.bytes + layout.c.bytes +
                                layout.sfa.bytes + layout.sfb.bytes;
  // An empty product still gets its sets; there is nothing to keep cold.
  const std::int64_t wanted = kColdBytes / std::max<std::int64_t>(together, 1 << 16) + 1;
  layout.sets = static_cast<int>(std::max<std::int64_t>(wanted, kFewestSets));
  return layout;
}

GemmArgs args_of(const GemmProblem& p, const OperandLayout& x, const OperandBases& bases, int set,
                 std::int64_t workspace_bytes) {
  const auto at = [&](char* base, const OperandExtent& extent, std::int64_t rows,
                      std::int64_t cols) {
    return matrix(base + set * extent.bytes, rows, cols, extent.ld, extent.group_stride);
  };
  GemmArgs args;
  args.a = at(bases.a, x.a, x.groups.rows, x.groups.cols);
  args.b = at(bases.b, x.b, p.n, x.groups.cols);
  args.d = at(bases.d, x.d, x.groups.rows, p.n);
  if (p.accumulate != 0) args.c = at(bases.c, x.c, x.groups.rows, p.n);
  switch (p.grouping) {
    case OCTET_CONTIGUOUS: args.group_index = bases.metadata; break;
    case OCTET_OFFSETS: args.group_offsets = bases.metadata; break;
    case OCTET_ALIGNED: args.group_ends = bases.metadata; break;
    case OCTET_MASKED: args.group_counts = bases.metadata; break;
    case OCTET_K_GROUPED:
      if (p.packed == 0) args.group_offsets = bases.metadata;
      args.group_counts = bases.metadata + x.groups.counts_at;
      break;
    default: break;
  }
  if (p.granularity != OCTET_SCALE_NONE) {
    args.sfa = scales_at(bases.sfa, x.sfa, p.sfa_layout, set);
    args.sfb = scales_at(bases.sfb, x.sfb, p.sfb_layout, set);
  }
  if (p.bias_type != OCTET_NONE) {
    args.bias = bases.bias + set * x.bias.bytes;
    args.bias_group_stride = x.bias.group_stride;
  }
  if (workspace_bytes > 0) {
    args.workspace = bases.workspace;
    args.workspace_bytes = workspace_bytes;
  }
  return args;
}

int launches_for(double least_us, int sets) {
  const double rounds = std::ceil(kLeastReplayUs / std::max(least_us, 0.5) / sets);
  return static_cast<int>(std::max(rounds, 1.0)) * sets;
}

}  // namespace octet::tool
