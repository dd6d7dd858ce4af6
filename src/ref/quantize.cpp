// See quantize.h. Positions are (line, k): k runs along the axis that blocks run along.
#include "ref/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/float_types.h"
#include "core/fp_environment.h"
#include "core/quantize_shape.h"
#include "kernel_abi/quantize_formula.h"

namespace oct::ref {
namespace {

class Access {
 public:
  explicit Access(const octet_quantize_args& args)
      : args_(args), shape(core::quantize_shape(args)) {}

  float x(int64_t line, int64_t k) const {
    return core::load_element(args_.x.data, args_.x_type, x_at(line, k));
  }
  void set_x(int64_t line, int64_t k, float value) const {
    core::store_element(args_.x.data, args_.x_type, x_at(line, k), value);
  }
  uint8_t& code(int64_t line, int64_t k) const {
    const bool k_is_cols = (args_.axis == 1) != (args_.transpose == 1);
    auto* codes = static_cast<uint8_t*>(args_.codes.data);
    return codes[k_is_cols ? line * args_.codes.ld + k : k * args_.codes.ld + line];
  }
  float scale(int64_t scale_line, int64_t block) const {
    const int64_t i = scale_line * args_.row_stride + block * args_.k_stride;
    return args_.scale_format == OCTET_SCALES_UE8M0
               ? quantize::from_ue8m0(static_cast<const uint8_t*>(args_.scales)[i])
               : static_cast<const float*>(args_.scales)[i];
  }
  void set_scale(int64_t scale_line, int64_t block, float value) const {
    const int64_t i = scale_line * args_.row_stride + block * args_.k_stride;
    if (args_.scale_format == OCTET_SCALES_UE8M0) {
      static_cast<uint8_t*>(args_.scales)[i] = quantize::to_ue8m0(value);
    } else {
      static_cast<float*>(args_.scales)[i] = value;
    }
  }

 private:
  int64_t x_at(int64_t line, int64_t k) const {
    return args_.axis == 1 ? line * args_.x.ld + k : k * args_.x.ld + line;
  }
  const octet_quantize_args& args_;

 public:
  const core::QuantizeShape shape;
};

// Calls visit(scale line, K-block, first line, last line, first k, last k) for every block.
template <typename Visit>
void for_each_block(const octet_quantize_args& args, const core::QuantizeShape& s, Visit visit) {
  const int64_t height = args.block == OCTET_BLOCK_1X128 ? 1 : 128;
  for (int64_t line = 0; line < s.scale_lines; ++line) {
    for (int64_t block = 0; block < s.blocks; ++block) {
      visit(line, block, line * height, std::min((line + 1) * height, s.lines),
            block * core::kBlockK, std::min((block + 1) * core::kBlockK, s.k));
    }
  }
}

}  // namespace

void quantize(const octet_quantize_args& args) {
  const core::FpEnvironment environment;
  const Access at(args);
  const bool power_of_two = args.scale_format != OCTET_SCALES_F32;
  for_each_block(args, at.shape,
                 [&](int64_t scale_line, int64_t block, int64_t l0, int64_t l1, int64_t k0,
                     int64_t k1) {
                   float amax = args.amax_min;
                   for (int64_t l = l0; l < l1; ++l) {
                     for (int64_t k = k0; k < k1; ++k) {
                       const float x = std::fabs(at.x(l, k));
                       if (std::isfinite(x)) amax = std::max(amax, x);
                     }
                   }
                   const float scale = quantize::block_scale(amax, power_of_two);
                   const float inverse = quantize::inverse_scale(scale);
                   at.set_scale(scale_line, block, scale);
                   for (int64_t l = l0; l < l1; ++l) {
                     for (int64_t k = k0; k < k1; ++k)
                       at.code(l, k) = quantize::code(at.x(l, k), inverse);
                   }
                 });
  for (int64_t l = 0; l < at.shape.lines; ++l) {
    for (int64_t k = at.shape.k; k < at.shape.codes_k; ++k) at.code(l, k) = 0;
  }
}

void dequantize(const octet_quantize_args& args) {
  const core::FpEnvironment environment;
  const Access at(args);
  for_each_block(args, at.shape,
                 [&](int64_t scale_line, int64_t block, int64_t l0, int64_t l1, int64_t k0,
                     int64_t k1) {
                   const float scale = at.scale(scale_line, block);
                   for (int64_t l = l0; l < l1; ++l) {
                     for (int64_t k = k0; k < k1; ++k) {
                       at.set_x(l, k, core::e4m3_to_f32(at.code(l, k)) * scale);
                     }
                   }
                 });
}

}  // namespace oct::ref
