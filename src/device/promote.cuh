// The promotion of one K-block's tensor-core result P into FP32: acc = fma(sfa * sfb, P, acc), one
// float32 product for the scale and one fma for every element (docs/numerics.md section 2).
#pragma once

#include <cstdint>

#include "device/ptx/copy.cuh"

namespace oct::device {

constexpr int common_divisor(int a, int b) { return b == 0 ? a : common_divisor(b, a % b); }

// Columns of a piece at offset kOffset (modulo 128) lie in up to three blocks of SFB. The points
// where they change are compile-time, so the loop holds no selection; kernels whose pieces can
// start at several offsets have one K loop for each.
template <int kWidth>
inline constexpr int kOffsetStep = common_divisor(kWidth, 128);
template <int kWidth>
inline constexpr int kOffsetCases = 128 / kOffsetStep<kWidth>;

template <int kOffset, int kWidth>
inline constexpr int kSfbBlocks = (kOffset + kWidth - 1) / 128 + 1;

// Rows carry SFA (upper, lower row of the lane), columns SFB.
template <int kOffset, int kWidth>
__device__ __forceinline__ void promote_normal(float* acc, const float* product, float upper,
                                               float lower, const float* sfb) {
  constexpr int kBlocks = kSfbBlocks<kOffset, kWidth>;
  float x[kBlocks], y[kBlocks];
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) {
    x[i] = __fmul_rn(upper, sfb[i]);
    y[i] = __fmul_rn(lower, sfb[i]);
  }
#pragma unroll
  for (int j = 0; j < kWidth / 8; ++j) {
    const int block = (kOffset + 8 * j) / 128;
    acc[4 * j] = __fmaf_rn(x[block], product[4 * j], acc[4 * j]);
    acc[4 * j + 1] = __fmaf_rn(x[block], product[4 * j + 1], acc[4 * j + 1]);
    acc[4 * j + 2] = __fmaf_rn(y[block], product[4 * j + 2], acc[4 * j + 2]);
    acc[4 * j + 3] = __fmaf_rn(y[block], product[4 * j + 3], acc[4 * j + 3]);
  }
}

// Rows carry one SFB, columns SFA.
template <int kWidth>
__device__ __forceinline__ void promote_swapped(float* acc, const float* product, const float2* sfa,
                                                float sfb) {
#pragma unroll
  for (int j = 0; j < kWidth / 8; ++j) {
    const float x = __fmul_rn(sfa[j].x, sfb), y = __fmul_rn(sfa[j].y, sfb);
    acc[4 * j] = __fmaf_rn(x, product[4 * j], acc[4 * j]);
    acc[4 * j + 1] = __fmaf_rn(y, product[4 * j + 1], acc[4 * j + 1]);
    acc[4 * j + 2] = __fmaf_rn(x, product[4 * j + 2], acc[4 * j + 2]);
    acc[4 * j + 3] = __fmaf_rn(y, product[4 * j + 3], acc[4 * j + 3]);
  }
}

}  // namespace oct::device
