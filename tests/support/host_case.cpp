// See host_case.h. Order: sizes and metadata, strides, buffers full of poison, owned values.
#include "support/host_case.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/extents.h"
#include "core/float_types.h"
#include "core/math.h"
#include "core/problem.h"
#include "plan/device_presets.h"
#include "plan/planner.h"
#include "support/ownership.h"
#include "support/random.h"

namespace oct::testing_support {
namespace {

using core::ceil_div;
using core::round_up;
using core::size_of;

constexpr uint8_t kPoisonByte = 0xff;  // a NaN in every format
constexpr uint8_t kOutputByte = 0xa5;

class Builder {
 public:
  explicit Builder(HostCase& c)
      : c_(c),
        p_(c.problem),
        o_(c.options),
        shapes_(c.problem.seed * 2654435761u + 1),
        values_(c.problem.seed * 2654435761u + 2) {}

  void build() {
    c_.sizes = o_.group_sizes.empty() ? draw_group_sizes(p_, o_.sizes) : o_.group_sizes;
    c_.shape = octet_gemm_args{};
    c_.shape.struct_size = sizeof c_.shape;
    rows_ = p_.grouping == OCTET_MASKED ? p_.max_m : p_.m;
    k_ = p_.k;
    metadata();
    operands();
    scales();
    bias();
    owned_values();
  }

 private:
  int64_t gap(int64_t most) {
    return o_.gaps && shapes_.chance(0.4) ? shapes_.between(0, most) : 0;
  }
  int64_t odd(int64_t most) {
    return o_.odd_strides && shapes_.chance(0.6) ? shapes_.between(0, most) : 0;
  }

  Buffer indices(const std::vector<int64_t>& values, octet_type type) const {
    Buffer buffer(static_cast<int64_t>(values.size()) * size_of(type));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (type == OCTET_I64) {
        buffer.as<int64_t>()[i] = values[i];
      } else {
        buffer.as<int32_t>()[i] = static_cast<int32_t>(values[i]);
      }
    }
    return buffer;
  }

  void metadata() {
    std::vector<int64_t> starts, numbers;
    switch (p_.grouping) {
      case OCTET_CONTIGUOUS:
        for (std::size_t g = 0; g < c_.sizes.size(); ++g) {
          const int64_t padded = round_up(c_.sizes[g], p_.alignment);
          for (int64_t r = 0; r < padded; ++r) {
            numbers.push_back(r < c_.sizes[g] ? static_cast<int64_t>(g) : -1);
          }
          if (gap(5) == 1)
            numbers.insert(numbers.end(), static_cast<std::size_t>(p_.alignment), -1);
        }
        numbers.insert(numbers.end(), static_cast<std::size_t>(gap(200)), -1);
        rows_ = static_cast<int64_t>(numbers.size());
        c_.group_index = indices(numbers, OCTET_I32);
        break;
      case OCTET_OFFSETS:
        numbers.push_back(gap(30));
        for (const int64_t size : c_.sizes) numbers.push_back(numbers.back() + size);
        rows_ = numbers.back() + gap(30);
        c_.group_offsets = indices(numbers, p_.index_type);
        break;
      case OCTET_ALIGNED:
        rows_ = 0;
        for (const int64_t size : c_.sizes) {
          numbers.push_back(round_up(rows_, p_.alignment) + size);
          rows_ = numbers.back();
        }
        rows_ += gap(30);
        c_.group_ends = indices(numbers, OCTET_I32);
        break;
      case OCTET_MASKED: c_.group_counts = indices(c_.sizes, OCTET_I32); break;
      case OCTET_K_GROUPED:
        k_ = 128 * gap(2);
        if (p_.packed) k_ = 0;
        for (const int64_t size : c_.sizes) {
          starts.push_back(k_);
          k_ += p_.packed ? size : round_up(size, 128) + 128 * gap(1);
        }
        if (p_.packed) k_ += 128 * gap(1);
        // The last group's tail may be cut off.
        if (!p_.packed && !starts.empty() && gap(1) == 1) k_ = starts.back() + c_.sizes.back();
        if (!p_.packed) c_.group_offsets = indices(starts, p_.index_type);
        c_.group_counts = indices(c_.sizes, p_.index_type);
        break;
      default: break;
    }
  }

  octet_matrix strided(int64_t rows, int64_t cols, int64_t unit, int64_t groups) {
    octet_matrix x{};
    x.rows = rows;
    x.cols = cols;
    x.ld = round_up(cols, unit) + unit * odd(3);
    if (groups > 1) x.group_stride = rows * x.ld + unit * odd(3);
    return x;
  }

  static Buffer filled(int64_t bytes, uint8_t byte, int64_t offset = 0) {
    Buffer buffer(bytes, offset);
    buffer.fill(byte);
    return buffer;
  }
  uint8_t padding() const { return o_.poison ? kPoisonByte : 0; }

  void operands() {
    const int64_t unit = 16 / size_of(p_.in_type);
    const int64_t b_groups = p_.grouping == OCTET_K_GROUPED ? 1 : p_.groups;
    c_.shape.a = strided(rows_, k_, unit, a_buffers(p_));
    c_.shape.b = strided(p_.n, k_, unit, b_groups);
    if (p_.packed) {
      c_.shape.a.ld = c_.shape.b.ld = k_;
    }
    c_.a = filled(core::matrix_bytes(c_.shape.a, p_.in_type, a_buffers(p_)), padding());
    c_.b = filled(core::matrix_bytes(c_.shape.b, p_.in_type, b_groups), padding());

    const int64_t element = size_of(p_.d_type);
    c_.shape.d = strided(rows_, p_.n, 1, d_buffers(p_));
    const int64_t d_bytes = core::matrix_bytes(c_.shape.d, p_.d_type, d_buffers(p_));
    c_.d_guard = 256 + element * odd(7);
    c_.d = filled(d_bytes + 2 * c_.d_guard, kOutputByte);
    if (!p_.accumulate) return;
    if (o_.c_is_d) {
      c_.shape.c = c_.shape.d;
    } else {
      c_.shape.c = strided(rows_, p_.n, 1, d_buffers(p_));
      c_.c = filled(core::matrix_bytes(c_.shape.c, p_.d_type, d_buffers(p_)), padding());
    }
  }

  Buffer scale_matrix(octet_scale_matrix& x, octet_scale_layout layout,
                      const core::ScaleExtent& e) {
    const int64_t unit = layout == OCTET_COLUMN_MAJOR ? 4 : 1;
    int64_t size = 0;
    if (layout == OCTET_ROW_MAJOR) {
      x.k_stride = 1;
      x.row_stride = e.blocks + odd(3);
      size = e.rows * x.row_stride;
    } else {
      x.row_stride = 1;
      x.k_stride = round_up(e.rows, unit) + unit * odd(3);
      size = e.blocks * x.k_stride;
    }
    if (e.groups > 1) x.group_stride = round_up(size, unit) + unit * odd(3);
    const int64_t offset = layout == OCTET_COLUMN_MAJOR ? 0 : 4 * odd(3);
    return filled(core::scale_bytes(x, e), padding(), offset);
  }

  void scales() {
    if (p_.granularity == OCTET_SCALE_NONE) return;
    c_.sfa = scale_matrix(c_.shape.sfa, p_.sfa_layout, core::scale_extent_a(p_, c_.shape));
    c_.sfb = scale_matrix(c_.shape.sfb, p_.sfb_layout, core::scale_extent_b(p_, c_.shape));
  }

  void bias() {
    if (p_.bias_type == OCTET_NONE || p_.groups == 0 || p_.n == 0) return;
    c_.shape.bias_group_stride = p_.n + odd(3);
    const int64_t elements = (p_.groups - 1) * c_.shape.bias_group_stride + p_.n;
    c_.bias = filled(elements * size_of(p_.bias_type), padding());
    for (int64_t g = 0; g < p_.groups; ++g) {
      fill_elements(values_, o_.data, p_.bias_type,
                    c_.bias.data() + g * c_.shape.bias_group_stride * size_of(p_.bias_type), p_.n);
    }
  }

  void fill(const Buffer& buffer, octet_type type, int64_t element, int64_t count) {
    if (count > 0) {
      fill_elements(values_, o_.data, type, buffer.data() + element * size_of(type), count);
    }
  }

  void owned_values() {
    const octet_gemm_args& s = c_.shape;
    const std::vector<int64_t> owners = row_owners(p_, c_.args());
    for (std::size_t i = 0; i < owners.size() && s.d.rows > 0; ++i) {
      if (owners[i] < 0 || !p_.accumulate) continue;
      const auto g = static_cast<int64_t>(i) / s.d.rows, r = static_cast<int64_t>(i) % s.d.rows;
      const int64_t at = g * s.c.group_stride + r * s.c.ld;
      if (o_.c_is_d) {
        fill(c_.d, p_.d_type, c_.d_guard / size_of(p_.d_type) + at, p_.n);
      } else {
        fill(c_.c, p_.d_type, at, p_.n);
      }
    }
    if (p_.grouping == OCTET_K_GROUPED) {
      owned_pieces();
      return;
    }
    for (int64_t g = 0; g < a_buffers(p_); ++g) {
      for (int64_t r = 0; r < rows_; ++r) {
        if (owners[static_cast<std::size_t>(g * rows_ + r)] < 0) continue;
        fill(c_.a, p_.in_type, g * s.a.group_stride + r * s.a.ld, k_);
        fill_scales(c_.sfa, s.sfa, g, r, 0, ceil_div(k_, 128));
      }
    }
    const int64_t lines = core::scale_extent_b(p_, s).rows;
    for (int64_t g = 0; g < p_.groups; ++g) {
      for (int64_t r = 0; r < p_.n; ++r) {
        fill(c_.b, p_.in_type, g * s.b.group_stride + r * s.b.ld, k_);
      }
      for (int64_t r = 0; r < lines; ++r) fill_scales(c_.sfb, s.sfb, g, r, 0, ceil_div(k_, 128));
    }
  }

  void fill_scales(const Buffer& buffer, const octet_scale_matrix& x, int64_t g, int64_t r,
                   int64_t first, int64_t last) {
    if (p_.granularity == OCTET_SCALE_NONE) return;
    for (int64_t kb = first; kb < last; ++kb) {
      buffer.as<float>()[g * x.group_stride + r * x.row_stride + kb * x.k_stride] =
          draw_scale(values_, o_.data);
    }
  }

  // K-grouped: the elements between a group's K and the next multiple of 128 are zeros.
  void owned_pieces() {
    const octet_gemm_args args = c_.args();
    for (const Piece& piece : k_pieces(p_, args)) {
      const int64_t tail = std::min(round_up(piece.length, 128), k_ - piece.start);
      const struct {
        const Buffer& codes;
        const octet_matrix& x;
        const Buffer& scales;
        const octet_scale_matrix& s;
      } sides[] = {{c_.a, args.a, c_.sfa, args.sfa}, {c_.b, args.b, c_.sfb, args.sfb}};
      for (const auto& side : sides) {
        for (int64_t r = 0; r < side.x.rows; ++r) {
          const int64_t at = p_.packed ? side.x.rows * piece.start + r * piece.length
                                       : r * side.x.ld + piece.start;
          fill(side.codes, p_.in_type, at, piece.length);
          if (tail > piece.length) {
            std::memset(side.codes.data() + (at + piece.length) * size_of(p_.in_type), 0,
                        static_cast<std::size_t>((tail - piece.length) * size_of(p_.in_type)));
          }
          fill_scales(side.scales, side.s, 0, r, piece.start / 128,
                      piece.start / 128 + ceil_div(piece.length, 128));
        }
      }
    }
  }

  HostCase& c_;
  const octet_gemm_problem& p_;
  const CaseOptions& o_;
  Random shapes_, values_;
  int64_t rows_ = 0, k_ = 0;
};

}  // namespace

HostCase::HostCase(const octet_gemm_problem& which, const CaseOptions& how)
    : problem(which), options(how), shape{} {
  Builder(*this).build();
}

octet_gemm_args HostCase::args() const {
  octet_gemm_args args = shape;
  args.a.data = a.data();
  args.b.data = b.data();
  args.d.data = d.data() + d_guard;
  args.c.data = options.c_is_d && problem.accumulate ? args.d.data : c.data();
  args.sfa.data = sfa.as<float>();
  args.sfb.data = sfb.as<float>();
  args.bias = bias.data();
  args.group_index = group_index.data();
  args.group_offsets = group_offsets.data();
  args.group_ends = group_ends.data();
  args.group_counts = group_counts.data();
  return args;
}

std::string HostCase::name() const {
  std::string text = core::to_string(problem);
  text += " sizes " + std::to_string(static_cast<int>(options.sizes));
  text += " data " + std::to_string(static_cast<int>(options.data));
  if (options.c_is_d) text += " c_is_d";
  if (!options.poison) text += " clean";
  return text;
}

octet_gemm_plan cpu_plan(const octet_gemm_problem& which, int split) {
  octet_gemm_problem problem = which;
  if (split > 0 && (problem.split > 0 || problem.batch_invariant)) problem.split = split;
  octet_device_spec device;
  octet_gemm_plan plan;
  if (Status s = plan::device_preset("cpu", device); !s.ok()) throw std::runtime_error(s.message());
  if (Status s = plan::plan_gemm(problem, device, nullptr, plan); !s.ok()) {
    throw std::runtime_error(s.message());
  }
  if (split > 0) plan.split = split;
  return plan;
}

}  // namespace oct::testing_support
