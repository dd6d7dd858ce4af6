// Names what is wrong with grouping metadata and scales in host memory; see check.h. A run never
// needs this: it clamps. This is for the person who wonders why a group came out empty.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "core/check.h"
#include "core/extents.h"
#include "core/groups.h"
#include "core/refusals.h"

namespace oct::core {
namespace {

Status bad_offset(const char* arg, int64_t i, int64_t got, int64_t want) {
  return refuse(Rule::kBadOffset,
                {{"arg", arg}, {"i", text(i)}, {"got", text(got)}, {"want", text(want)}});
}

Status decreasing(const char* arg, int64_t i, int64_t got, int64_t want) {
  return refuse(Rule::kDecreasing,
                {{"arg", arg}, {"i", text(i)}, {"got", text(got)}, {"want", text(want)}});
}

Status bad_count(int64_t i, int64_t got, int64_t want) {
  return refuse(Rule::kBadCount, {{"i", text(i)}, {"got", text(got)}, {"want", text(want)}});
}

Status validate_contiguous(const octet_gemm_problem& p, const octet_gemm_args& args) {
  const auto* index = static_cast<const int32_t*>(args.group_index);
  for (int64_t row = 0; row < args.a.rows; ++row) {
    if (index[row] < -1 || index[row] >= p.groups) {
      return refuse(Rule::kBadIndex,
                    {{"i", text(row)},
                     {"got", text(index[row])},
                     {"want", p.groups == 0 ? std::string("-1 (there are no groups)")
                                            : fmt::format("-1 or from 0 to {}", p.groups - 1)}});
    }
    const int32_t block = index[row / p.alignment * p.alignment];
    // Once a block has turned to padding it stays padding.
    const bool resumed = index[row] >= 0 && row % p.alignment > 0 && index[row - 1] == -1;
    if (resumed) {
      return refuse(Rule::kResumedBlock, {{"i", text(row)},
                                          {"got", text(index[row])},
                                          {"alignment", text(p.alignment)}});
    }
    if (index[row] != -1 && index[row] != block) {
      return refuse(Rule::kMixedBlock, {{"i", text(row)},
                                        {"got", text(index[row])},
                                        {"want", text(block)},
                                        {"alignment", text(p.alignment)}});
    }
  }
  return {};
}

Status validate_offsets(const octet_gemm_problem& p, const octet_gemm_args& args) {
  int64_t before = 0;
  for (int64_t g = 0; g <= p.groups; ++g) {
    const int64_t offset = index_at(args.group_offsets, p.index_type, g);
    if (offset < 0 || offset > args.a.rows) {
      return bad_offset("group_offsets", g, offset, args.a.rows);
    }
    if (offset < before) return decreasing("group_offsets", g, offset, before);
    before = offset;
  }
  return {};
}

Status validate_aligned(const octet_gemm_problem& p, const octet_gemm_args& args) {
  int64_t start = 0;
  for (int64_t g = 0; g < p.groups; ++g) {
    const int64_t end = index_at(args.group_ends, OCTET_I32, g);
    if (end < 0 || end > args.a.rows) return bad_offset("group_ends", g, end, args.a.rows);
    if (end < start) return decreasing("group_ends", g, end, start);
    // As a run has it: a group never starts beyond the rows there are.
    start = std::min(round_up(end, p.alignment), args.a.rows);
  }
  return {};
}

Status validate_k(const octet_gemm_problem& p, const octet_gemm_args& args) {
  int64_t end = 0;  // of the group before
  for (int64_t g = 0; g < p.groups; ++g) {
    const int64_t count = index_at(args.group_counts, p.index_type, g);
    int64_t start = end;
    if (!p.packed) {
      start = index_at(args.group_offsets, p.index_type, g);
      if (start < 0 || start > args.a.cols) {
        return bad_offset("group_offsets", g, start, args.a.cols);
      }
      if (start % kBlockK != 0) {
        return refuse(Rule::kKStart, {{"i", text(g)}, {"got", text(start)}});
      }
      if (start < end) {
        return refuse(Rule::kKOverlap, {{"i", text(g)}, {"got", text(start)}, {"want", text(end)}});
      }
    }
    if (count < 0 || count > args.a.cols - start) {
      return bad_count(g, count, args.a.cols - start);
    }
    if (p.packed && count % kBlockK != 0) {
      return refuse(Rule::kKMultiple, {{"i", text(g)}, {"got", text(count)}});
    }
    end = start + count;
  }
  return {};
}

Status scale_error(const char* arg, int64_t g, int64_t r, int64_t kb, float got) {
  return refuse(Rule::kScaleNotFinite, {{"arg", arg},
                                        {"group", text(g)},
                                        {"row", text(r)},
                                        {"column", text(kb)},
                                        {"got", fmt::format("{}", got)}});
}

// `used(g, r, kb)` tells whether the scale takes part: padding may hold anything.
template <typename Used>
Status validate_scales(const char* arg, const octet_scale_matrix& x, const ScaleExtent& e,
                       Used used) {
  for (int64_t g = 0; g < e.groups; ++g) {
    for (int64_t r = 0; r < e.rows; ++r) {
      for (int64_t kb = 0; kb < e.blocks; ++kb) {
        if (!used(g, r, kb)) continue;
        const float scale =
            x.data[r * x.row_stride + kb * x.k_stride + (e.groups > 1 ? g * x.group_stride : 0)];
        if (!std::isfinite(scale)) return scale_error(arg, g, r, kb, scale);
      }
    }
  }
  return {};
}

}  // namespace

Status validate_metadata(const octet_gemm_problem& p, const octet_gemm_args& args) {
  if (p.grouping == OCTET_CONTIGUOUS)
    return validate_contiguous(p, args);  // rows without groups too
  if (p.groups == 0) return {};
  switch (p.grouping) {
    case OCTET_OFFSETS: return validate_offsets(p, args);
    case OCTET_ALIGNED: return validate_aligned(p, args);
    case OCTET_K_GROUPED: return validate_k(p, args);
    case OCTET_MASKED:
      for (int64_t g = 0; g < p.groups; ++g) {
        const int64_t count = index_at(args.group_counts, OCTET_I32, g);
        if (count < 0 || count > p.max_m) return bad_count(g, count, p.max_m);
      }
      return {};
    default: return {};
  }
}

Status validate(const octet_gemm_plan& plan, const octet_gemm_args& args) {
  if (Status s = check_args(plan, args); !s.ok()) return s;
  const octet_gemm_problem& p = plan.problem;
  if (Status s = validate_metadata(p, args); !s.ok()) return s;
  std::vector<char> owned;  // rows of A that a group owns, where groups share the rows
  const bool shared = p.grouping == OCTET_OFFSETS || p.grouping == OCTET_ALIGNED;
  if (shared) {
    owned.assign(static_cast<std::size_t>(args.a.rows), 0);
    for (int64_t g = 0, before = 0; g < p.groups; ++g) {
      const Range rows = group_rows(p, args, g, before);
      before = rows.last;
      for (int64_t r = rows.first; r < rows.last; ++r) owned[static_cast<std::size_t>(r)] = 1;
    }
  }
  std::vector<char> blocks_owned;  // K-blocks that some group of a K-grouped problem covers
  if (p.grouping == OCTET_K_GROUPED) {
    blocks_owned.assign(static_cast<std::size_t>(ceil_div(args.a.cols, kBlockK)), 0);
    int64_t packed_start = 0;
    for (int64_t g = 0; g < p.groups; ++g) {
      const Range k = group_k(p, args, g, packed_start);
      packed_start = k.last;
      for (int64_t kb = k.first / kBlockK; kb < ceil_div(k.last, kBlockK); ++kb) {
        blocks_owned[static_cast<std::size_t>(kb)] = 1;
      }
    }
  }
  const auto block_used = [&](int64_t, int64_t, int64_t kb) {
    return blocks_owned.empty() || blocks_owned[static_cast<std::size_t>(kb)] != 0;
  };
  const auto a_used = [&](int64_t g, int64_t r, int64_t kb) {
    if (p.grouping == OCTET_MASKED) return r < masked_rows(p, args, g);
    if (p.grouping == OCTET_CONTIGUOUS) return contiguous_owner(p, args, r) >= 0;
    return shared ? owned[static_cast<std::size_t>(r)] != 0 : block_used(g, r, kb);
  };
  if (Status s = validate_scales("sfa", args.sfa, scale_extent_a(p, args), a_used); !s.ok()) {
    return s;
  }
  return validate_scales("sfb", args.sfb, scale_extent_b(p, args), block_used);
}

}  // namespace oct::core
