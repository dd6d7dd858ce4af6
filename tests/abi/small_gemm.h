// One small multiplication with a known result, for programs that ask only whether a call works
// where it is made: in a thread among others, after fork(). The call itself is the caller's.
#pragma once

#include <cstdint>

#include "octet/octet.h"

namespace octet_abi {

// D[m,n] = A[m,128] * B[n,128]^T of ones, with one scale for all of A and B's 1: D is 128 times
// that scale.
struct SmallGemm {
  static constexpr int64_t kM = 33, kN = 40, kK = 128, kPitch = 36;

  explicit SmallGemm(float scale_of_a) : scale(scale_of_a) {
    for (auto& x : a) x = 0x38;  // 1.0
    for (auto& x : b) x = 0x38;
    for (auto& x : sfa) x = scale_of_a;
    for (auto& x : d) x = -1.0f;
  }

  // `args` as octet_gemm_args_init() leaves it.
  void fill(octet_gemm_args& args) {
    args.a = {a, kM, kK, kK, 0};
    args.b = {b, kN, kK, kK, 0};
    args.d = {d, kM, kN, kN, 0};
    args.sfa = {sfa, 1, kPitch, 0};
    args.sfb = {sfb, 1, 1, 0};
  }

  bool right() const {
    for (const float x : d) {
      if (x != 128.0f * scale) return false;
    }
    return true;
  }

  static const char* text() { return "dense_m33n40k128_f32"; }

  float scale;
  alignas(16) uint8_t a[kM * kK];
  alignas(16) uint8_t b[kN * kK];
  alignas(16) float sfa[kPitch];
  alignas(16) float sfb[1] = {1.0f};
  float d[kM * kN];
};

}  // namespace octet_abi
