// See gemm.h. Compiled without contraction: each written operation is one rounding.
#include "ref/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/float_types.h"
#include "core/fp_environment.h"
#include "core/math.h"
#include "ref/tensor_core.h"

namespace oct::ref {
namespace {

using core::DenseView;
using core::kBlockK;

float scale(const core::ScaleView& scales, int64_t row, int64_t block) {
  return scales.data[row * scales.row_stride + block * scales.k_stride];
}

// Partial sum of K-blocks [first, last): each block is one chain that starts from nothing, promoted
// to FP32 with its scale.
float accumulate_e4m3(const DenseView& v, int64_t m, int64_t n, core::BlockRange range) {
  const auto* a = static_cast<const uint8_t*>(v.a) + m * v.a_ld;
  const auto* b = static_cast<const uint8_t*>(v.b) + n * v.b_ld;
  float acc = 0.0f;
  for (int64_t block = range.first; block < range.last; ++block) {
    const int64_t k = block * kBlockK;
    const int64_t length = std::min(kBlockK, v.k - k);
    const uint32_t chain = wgmma_chain_e4m3(a + k, b + k, static_cast<int>(length), 0);
    const float s = scale(v.sfa, m, block) * scale(v.sfb, n / v.sfb_rows, block);
    acc = std::fmaf(s, std::bit_cast<float>(chain), acc);
  }
  return acc;
}

// BF16 operands carry no scales: one chain over the whole range.
float accumulate_bf16(const DenseView& v, int64_t m, int64_t n, core::BlockRange range) {
  const auto* a = static_cast<const uint16_t*>(v.a) + m * v.a_ld;
  const auto* b = static_cast<const uint16_t*>(v.b) + n * v.b_ld;
  const int64_t k = range.first * kBlockK;
  const int64_t length = std::min(range.last * kBlockK, v.k) - k;
  return std::bit_cast<float>(wgmma_chain_bf16(a + k, b + k, length, 0));
}

// Ranges of K in ascending order; empty ones do not take part.
float sum_ranges(const DenseView& v, int64_t m, int64_t n) {
  const int64_t blocks = core::ceil_div(v.k, kBlockK);
  float sum = 0.0f;
  bool first = true;
  for (int i = 0; i < v.split; ++i) {
    const core::BlockRange range = core::split_range(blocks, v.split, i);
    if (range.first == range.last) continue;
    const float acc =
        v.in_type == OCTET_E4M3 ? accumulate_e4m3(v, m, n, range) : accumulate_bf16(v, m, n, range);
    sum = first ? acc : sum + acc;
    first = false;
  }
  return sum;
}

}  // namespace

void gemm(const DenseView& v) {
  for (int64_t m = 0; m < v.m; ++m) {
    for (int64_t n = 0; n < v.n; ++n) {
      float x = sum_ranges(v, m, n);
      if (v.bias != nullptr) x = x + core::load_element(v.bias, v.bias_type, n);
      if (v.c != nullptr) x = x + core::load_element(v.c, v.d_type, m * v.c_ld + n);
      core::store_element(v.d, v.d_type, m * v.d_ld + n, x);
    }
  }
}

void fill_zeros(const core::ZeroRows& z) {
  for (int64_t m = 0; m < z.rows; ++m) {
    for (int64_t n = 0; n < z.n; ++n) core::store_element(z.d, z.d_type, m * z.d_ld + n, 0.0f);
  }
}

void run(const core::Work& work) {
  const core::FpEnvironment environment;
  for (const DenseView& view : work.gemms) gemm(view);
  for (const core::ZeroRows& rows : work.zeros) fill_zeros(rows);
}

}  // namespace oct::ref
