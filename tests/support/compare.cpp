// See compare.h.
#include "support/compare.h"

#include <cstdio>
#include <cstring>
#include <vector>

#include "core/extents.h"
#include "core/float_types.h"
#include "support/ownership.h"

namespace oct::testing_support {
namespace {

// Where an offset into the buffer `d` lies.
struct Place {
  bool inside = false;  // an element of D
  int64_t group = 0, row = 0, col = 0, element = 0;
};

Place place(const HostCase& c, int64_t byte) {
  Place at;
  const octet_matrix& d = c.shape.d;
  const int64_t size = core::size_of(c.problem.d_type);
  const int64_t extent = core::matrix_bytes(d, c.problem.d_type, d_buffers(c.problem));
  if (byte < c.d_guard || byte >= c.d_guard + extent) return at;
  at.element = (byte - c.d_guard) / size;
  at.group = d.group_stride > 0 ? at.element / d.group_stride : 0;
  const int64_t rest = at.element - at.group * d.group_stride;
  at.row = rest / d.ld;
  at.col = rest % d.ld;
  at.inside = at.row < d.rows && at.col < d.cols;
  return at;
}

std::string value(const HostCase& c, int64_t element) {
  const uint8_t* d = c.d.data() + c.d_guard;
  const octet_type type = c.problem.d_type;
  const int size = type == OCTET_F32 ? 4 : 2;
  uint32_t bits = 0;
  std::memcpy(&bits, d + element * size, static_cast<std::size_t>(size));
  char text[64];
  std::snprintf(text, sizeof text, "%.9g (0x%0*x)",
                static_cast<double>(core::load_element(d, type, element)), 2 * size, bits);
  return text;
}

std::string coordinate(const HostCase& c, const Place& at) {
  const std::string group =
      d_buffers(c.problem) > 1 ? "group " + std::to_string(at.group) + ", " : std::string();
  return "D[" + group + std::to_string(at.row) + ", " + std::to_string(at.col) + "]";
}

// A byte of the buffer that was written and should not have been.
std::string misplaced(const HostCase& c, int64_t byte) {
  const Place at = place(c, byte);
  if (!at.inside) {
    return "byte " + std::to_string(byte - c.d_guard) + " from D, outside of it, was written";
  }
  return coordinate(c, at) + ", which no group owns, is " + value(c, at.element);
}

}  // namespace

std::string compare_results(const HostCase& got, const HostCase& want) {
  if (got.d.size() != want.d.size()) return "buffers of different size";
  if (got.d.size() == 0 ||
      std::memcmp(got.d.data(), want.d.data(), static_cast<std::size_t>(got.d.size())) == 0) {
    return {};
  }
  int64_t wrong = 0;
  std::string first;
  int64_t last_element = -1;
  for (int64_t byte = 0; byte < got.d.size(); ++byte) {
    if (got.d.data()[byte] == want.d.data()[byte]) continue;
    const Place at = place(got, byte);
    if (!at.inside) {
      if (first.empty()) {
        first =
            "byte " + std::to_string(byte - got.d_guard) + " from D, outside of it, was written";
      }
      ++wrong;
    } else if (at.element != last_element) {
      last_element = at.element;
      ++wrong;
      if (first.empty()) {
        first = coordinate(got, at) + " = " + value(got, at.element) + ", wanted " +
                value(want, at.element);
      }
    }
  }
  return got.name() + ": " + first + "; " + std::to_string(wrong) + " wrong";
}

std::string check_untouched(const HostCase& before, const HostCase& after) {
  const struct {
    const char* name;
    const Buffer& x;
    const Buffer& y;
  } inputs[] = {{"A", before.a, after.a},
                {"B", before.b, after.b},
                {"C", before.c, after.c},
                {"SFA", before.sfa, after.sfa},
                {"SFB", before.sfb, after.sfb},
                {"bias", before.bias, after.bias},
                {"group_index", before.group_index, after.group_index},
                {"group_offsets", before.group_offsets, after.group_offsets},
                {"group_ends", before.group_ends, after.group_ends},
                {"group_counts", before.group_counts, after.group_counts}};
  for (const auto& input : inputs) {
    if (input.x.size() > 0 && std::memcmp(input.x.data(), input.y.data(),
                                          static_cast<std::size_t>(input.x.size())) != 0) {
      return before.name() + ": input " + input.name + " was written";
    }
  }
  // The buffer in one walk: what lies before a row of D, and the row itself if nobody owns it.
  const octet_gemm_problem& p = before.problem;
  const octet_matrix& d = after.shape.d;
  const std::vector<int64_t> owners = row_owners(p, before.args());
  const bool zeros = p.grouping == OCTET_CONTIGUOUS && p.zero_padding;
  const int64_t size = core::size_of(p.d_type);
  int64_t at = 0;
  std::string wrong;
  const auto check = [&](int64_t end, bool all_zeros) {
    for (; at < end && wrong.empty(); ++at) {
      const uint8_t want = all_zeros ? 0 : before.d.data()[at];
      if (after.d.data()[at] != want) wrong = before.name() + ": " + misplaced(after, at);
    }
  };
  for (std::size_t i = 0; i < owners.size() && d.cols > 0; ++i) {
    const auto g = static_cast<int64_t>(i) / d.rows, r = static_cast<int64_t>(i) % d.rows;
    const int64_t row = after.d_guard + (g * d.group_stride + r * d.ld) * size;
    check(row, false);
    if (owners[i] < 0) check(row + d.cols * size, zeros);
    at = row + d.cols * size;
  }
  check(after.d.size(), false);
  return wrong;
}

}  // namespace oct::testing_support
