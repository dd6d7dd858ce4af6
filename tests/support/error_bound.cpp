// See error_bound.h.
#include "support/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/float_types.h"
#include "support/ownership.h"

namespace oct::testing_support {
namespace {

struct Format {
  int products;          // of one instruction
  int fraction;          // terms are cut to multiples of 2^(E - fraction)
  int mantissa;          // bits that are kept of the sum
  int product_fraction;  // a product is a multiple of 2^(exponent - product_fraction)
  double lowest;         // 2^E is at least this
};
constexpr Format kE4m3{32, 13, 13, 6, 0.0};
constexpr Format kBf16{16, 25, 23, 14, 0x1p-126};  // subnormal accumulators count as 2^-126

// A value and 2^(its exponent), where subnormals keep the smallest exponent.
struct Operand {
  double value, power;
};

Operand operand(const void* data, octet_type type, int64_t i) {
  if (type == OCTET_E4M3) {
    const uint8_t code = static_cast<const uint8_t*>(data)[i];
    const int field = code >> 3 & 15;
    return {static_cast<double>(core::e4m3_to_f32(code)), std::ldexp(1.0, field ? field - 7 : -6)};
  }
  const uint16_t code = static_cast<const uint16_t*>(data)[i];
  const int field = code >> 7 & 255;
  return {static_cast<double>(core::bf16_to_f32(code)),
          std::ldexp(1.0, field ? field - 127 : -126)};
}

Bounded sum(Bounded x, Bounded y) { return {x.exact + y.exact, x.bound + y.bound}; }

// One rounding to nearest with `bits` significant bits and subnormals in units of `unit`.
Bounded rounded(Bounded x, int bits, double unit) {
  const double most = std::fabs(x.exact) + x.bound;
  x.bound += std::max(std::ldexp(most, -bits), unit / 2);
  return x;
}
Bounded rounded_f32(Bounded x) { return rounded(x, 24, 0x1p-149); }

class Element {
 public:
  Element(const octet_gemm_plan& plan, const octet_gemm_args& args, int64_t buffer, int64_t owner,
          int64_t row, int64_t col)
      : p_(plan.problem),
        args_(args),
        split_(plan.split),
        buffer_(buffer),
        owner_(owner),
        row_(row),
        col_(col) {
    length_ = p_.k;
    const bool own_a = a_buffers(p_) > 1;
    a_ = (own_a ? buffer * args.a.group_stride : 0) + row * args.a.ld;
    b_ = (p_.groups > 1 ? owner * args.b.group_stride : 0) + col * args.b.ld;
    if (p_.grouping != OCTET_K_GROUPED) return;
    const Piece piece = k_pieces(p_, args)[static_cast<std::size_t>(owner)];
    length_ = piece.length;
    first_block_ = piece.start / 128;
    a_ = row * args.a.ld + piece.start;
    b_ = col * args.b.ld + piece.start;
    if (p_.packed) {
      a_ = args.a.rows * piece.start + row * piece.length;
      b_ = args.b.rows * piece.start + col * piece.length;
    }
  }

  Bounded compute() const {
    const int64_t blocks = (length_ + 127) / 128;
    Bounded total{0, 0};
    for (int i = 0; i < split_; ++i) {
      const int64_t first = blocks * i / split_, last = blocks * (i + 1) / split_;
      if (first < last) total = rounded_f32(sum(total, range(first, last)));
    }
    if (p_.bias_type != OCTET_NONE) {
      const int64_t at = (p_.groups > 1 ? owner_ * args_.bias_group_stride : 0) + col_;
      total = rounded_f32(sum(total, value(args_.bias, p_.bias_type, at)));
    }
    if (p_.accumulate) {
      const int64_t group = d_buffers(p_) > 1 ? buffer_ * args_.c.group_stride : 0;
      total =
          rounded_f32(sum(total, value(args_.c.data, p_.d_type, group + row_ * args_.c.ld + col_)));
    }
    if (p_.d_type == OCTET_BF16) total = rounded(total, 8, 0x1p-133);
    if (p_.d_type == OCTET_F16) total = rounded(total, 11, 0x1p-24);
    const double largest = p_.d_type == OCTET_F16 ? 65504.0 : 3e38;
    if (!(std::fabs(total.exact) + total.bound < largest)) {
      total.bound = std::numeric_limits<double>::infinity();
    }
    return total;
  }

 private:
  static Bounded value(const void* data, octet_type type, int64_t i) {
    return {static_cast<double>(core::load_element(data, type, i)), 0};
  }

  static double scale(const octet_scale_matrix& x, bool grouped, int64_t group, int64_t row,
                      int64_t block) {
    return static_cast<double>(
        x.data[(grouped ? group * x.group_stride : 0) + row * x.row_stride + block * x.k_stride]);
  }

  Bounded range(int64_t first, int64_t last) const {
    if (p_.in_type == OCTET_BF16) return chain(kBf16, first * 128, std::min(last * 128, length_));
    Bounded acc{0, 0};
    for (int64_t block = first; block < last; ++block) {
      const Bounded product = chain(kE4m3, block * 128, std::min(block * 128 + 128, length_));
      const int64_t line = p_.granularity == OCTET_1D2D ? col_ / 128 : col_;
      const bool b_grouped = p_.grouping != OCTET_K_GROUPED && p_.groups > 1;
      const double exact_scale =
          scale(args_.sfa, a_buffers(p_) > 1, buffer_, row_, first_block_ + block) *
          scale(args_.sfb, b_grouped, owner_, line, first_block_ + block);
      const Bounded s = rounded_f32({exact_scale, 0});
      const double error =
          std::fabs(s.exact) * product.bound + s.bound * (std::fabs(product.exact) + product.bound);
      acc = rounded_f32(sum(acc, {s.exact * product.exact, error}));
    }
    return acc;
  }

  Bounded chain(const Format& f, int64_t first, int64_t last) const {
    Bounded c{0, 0};
    for (int64_t k = first; k < last; k += f.products) {
      const int64_t end = std::min(k + f.products, last);
      double largest = std::max(f.lowest, std::fabs(c.exact) + c.bound);  // at least 2^E
      double total = c.exact;
      for (int64_t i = k; i < end; ++i) {
        const Operand x = operand(args_.a.data, p_.in_type, a_ + i);
        const Operand y = operand(args_.b.data, p_.in_type, b_ + i);
        if (x.value == 0 || y.value == 0) continue;
        largest = std::max(largest, x.power * y.power);
        total += x.value * y.value;
      }
      const double unit = std::ldexp(largest, -f.fraction);
      double error = c.bound + unit;  // the accumulator's cut
      for (int64_t i = k; i < end; ++i) {
        const Operand x = operand(args_.a.data, p_.in_type, a_ + i);
        const Operand y = operand(args_.b.data, p_.in_type, b_ + i);
        const double lowest_bit = std::ldexp(x.power * y.power, -f.product_fraction);
        if (x.value != 0 && y.value != 0 && lowest_bit < unit) {
          error += std::min(unit, std::fabs(x.value * y.value));
        }
      }
      error += std::max(std::ldexp(std::fabs(total) + error, -f.mantissa), 0x1p-149);
      c = {total, error};
    }
    return c;
  }

  const octet_gemm_problem& p_;
  const octet_gemm_args& args_;
  int split_;
  int64_t buffer_, owner_, row_, col_;
  int64_t length_ = 0, first_block_ = 0, a_ = 0, b_ = 0;
};

}  // namespace

Bounded exact_element(const octet_gemm_plan& plan, const octet_gemm_args& args, int64_t buffer,
                      int64_t owner, int64_t row, int64_t col) {
  return Element(plan, args, buffer, owner, row, col).compute();
}

}  // namespace oct::testing_support
