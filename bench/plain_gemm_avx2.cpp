// The yardstick with AVX2 and FMA: a tile of 6 x 16.
#include <immintrin.h>

#include "plain_gemm_body.h"

namespace oct::bench {
namespace {

struct Ops {
  using Float = float __attribute__((vector_size(32)));
  static Float load(const float* p) { return (Float)_mm256_load_ps(p); }
  static void store(float* p, Float x) { _mm256_store_ps(p, x); }
  static Float splat(float x) { return (Float)_mm256_set1_ps(x); }
  static Float fma(Float a, Float b, Float c) { return (Float)_mm256_fmadd_ps(a, b, c); }
};
using Body = PlainBody<Ops, 6>;
constexpr PlainGemm kGemm = {"avx2", &Body::run, &Body::peak};

}  // namespace

const PlainGemm* plain_gemm_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kGemm : nullptr;
}

}  // namespace oct::bench
