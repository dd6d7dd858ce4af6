// The yardstick with AVX-512: a tile of 12 x 32.
#include <immintrin.h>

#include "plain_gemm_body.h"

namespace oct::bench {
namespace {

struct Ops {
  using Float = float __attribute__((vector_size(64)));
  static Float load(const float* p) { return (Float)_mm512_load_ps(p); }
  static void store(float* p, Float x) { _mm512_store_ps(p, x); }
  static Float splat(float x) { return (Float)_mm512_set1_ps(x); }
  static Float fma(Float a, Float b, Float c) { return (Float)_mm512_fmadd_ps(a, b, c); }
};
using Body = PlainBody<Ops, 12>;
constexpr PlainGemm kGemm = {"avx512", &Body::run, &Body::peak};

}  // namespace

const PlainGemm* plain_gemm_avx512() {
  return __builtin_cpu_supports("avx512f") ? &kGemm : nullptr;
}

}  // namespace oct::bench
