// See ownership.h.
#include "support/ownership.h"

#include <algorithm>

namespace oct::testing_support {
namespace {

int64_t number(const void* data, octet_type type, int64_t i) {
  if (type == OCTET_I64) return static_cast<const int64_t*>(data)[i];
  return static_cast<const int32_t*>(data)[i];
}

int64_t next_multiple(int64_t x, int64_t unit) { return x <= 0 ? 0 : (x + unit - 1) / unit * unit; }

// Rows [first, end) of each group, where groups lie one after the other.
struct Range {
  int64_t first = 0, end = 0;
};
std::vector<Range> ranges_of(const octet_gemm_problem& p, const octet_gemm_args& args) {
  std::vector<Range> ranges(static_cast<std::size_t>(p.groups));
  int64_t first = 0;
  for (int64_t g = 0; g < p.groups; ++g) {
    int64_t end = 0;
    if (p.grouping == OCTET_OFFSETS) {
      // No number up to the group's start is beyond its rows, and its end is.
      first = std::max(first, number(args.group_offsets, p.index_type, g));
      end = number(args.group_offsets, p.index_type, g + 1);
    } else {
      // Each end raised to where its group starts.
      const auto* ends = static_cast<const int32_t*>(args.group_ends);
      if (g > 0) first = next_multiple(std::max<int64_t>(first, ends[g - 1]), p.alignment);
      end = ends[g];
    }
    ranges[static_cast<std::size_t>(g)] = {first, end};
  }
  return ranges;
}

bool owns(const octet_gemm_problem& p, const octet_gemm_args& args,
          const std::vector<Range>& ranges, int64_t g, int64_t buffer, int64_t row) {
  switch (p.grouping) {
    case OCTET_CONTIGUOUS: {
      const auto* index = static_cast<const int32_t*>(args.group_index);
      return index[row] == g && index[row - row % p.alignment] == g;
    }
    case OCTET_OFFSETS:
    case OCTET_ALIGNED: {
      const Range& r = ranges[static_cast<std::size_t>(g)];
      return row >= r.first && row < r.end;
    }
    case OCTET_MASKED:
      return g == buffer && row < static_cast<const int32_t*>(args.group_counts)[g];
    default: return g == buffer;
  }
}

}  // namespace

int64_t a_buffers(const octet_gemm_problem& p) {
  return p.grouping == OCTET_BATCHED || p.grouping == OCTET_MASKED ? p.groups : 1;
}
int64_t d_buffers(const octet_gemm_problem& p) {
  return p.grouping == OCTET_K_GROUPED ? p.groups : a_buffers(p);
}

std::vector<int64_t> row_owners(const octet_gemm_problem& p, const octet_gemm_args& args) {
  std::vector<int64_t> owners;
  const bool in_turn = p.grouping == OCTET_OFFSETS || p.grouping == OCTET_ALIGNED;
  const std::vector<Range> ranges = in_turn ? ranges_of(p, args) : std::vector<Range>();
  for (int64_t buffer = 0; buffer < d_buffers(p); ++buffer) {
    for (int64_t row = 0; row < args.d.rows; ++row) {
      int64_t owner = -1;
      for (int64_t g = 0; g < p.groups; ++g) {
        if (owns(p, args, ranges, g, buffer, row)) owner = g;
      }
      owners.push_back(owner);
    }
  }
  return owners;
}

std::vector<Piece> k_pieces(const octet_gemm_problem& p, const octet_gemm_args& args) {
  std::vector<Piece> pieces;
  int64_t packed_start = 0;
  for (int64_t g = 0; g < p.groups; ++g) {
    int64_t length = std::max<int64_t>(0, number(args.group_counts, p.index_type, g));
    int64_t start = packed_start;
    if (!p.packed) {
      start = std::max<int64_t>(0, number(args.group_offsets, p.index_type, g));
      start = std::min(start, args.a.cols);
      start -= start % 128;
    }
    length = std::min(length, args.a.cols - start);
    if (p.packed) length -= length % 128;
    packed_start = start + length;
    pieces.push_back({start, length});
  }
  return pieces;
}

}  // namespace oct::testing_support
