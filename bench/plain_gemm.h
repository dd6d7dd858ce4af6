// A plain FP32 matrix product, D = A * B^T, as good as a few pages make it: blocked for the caches,
// packed, a register tile of fused multiply-adds. It is the yardstick of the CPU backend's speed:
// what the same core does with the same number of multiply-adds when nobody asks for the tensor
// cores' bits.
#pragma once

#include <cstdint>
#include <vector>

namespace oct::bench {

struct PlainGemm {
  const char* name;
  // One thread. a [m,k], b [n,k], d [m,n], rows packed without gaps.
  void (*run)(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* d,
              std::vector<float>& scratch);
  // Multiply-adds a second of a loop of independent fused multiply-adds in registers: the core's
  // limit.
  double (*peak)();
};

// Null where the processor cannot run it.
const PlainGemm* plain_gemm_avx2();
const PlainGemm* plain_gemm_avx512();

}  // namespace oct::bench
