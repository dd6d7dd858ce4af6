// What the GPU tests need on the device besides the library: a reference GEMM (one thread an
// output, the normative integer model of src/ref/tensor_core.h), random data, comparison of whole
// buffers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace oct::test {

// Everything in device memory; strides as in octet_gemm_args. type: octet_type of D, C, bias.
struct ReferenceGemm {
  int64_t m, n, k, batches;
  const uint8_t *a, *b;
  int64_t a_ld, b_ld, a_batch, b_batch;
  const float *sfa, *sfb;
  int64_t sfa_row, sfa_k, sfa_batch, sfb_row, sfb_k, sfb_batch;
  void* d;
  const void* c;  // null: none
  int64_t d_ld, d_batch, c_ld, c_batch;
  int d_type, bias_type;
  const void* bias;
  int64_t bias_batch;
  int split;
  int64_t sfb_rows = 128;  // columns of D with one SFB: 1 with 1D1D scales
};
void reference_gemm(const ReferenceGemm& g, cudaStream_t stream);

enum class Codes {
  kGaussian,  // what quantised activations look like
  kAny,       // every code but NaN
  kAnyNan,    // a NaN in about one code of a thousand
  kTiny,      // subnormals and zeros
  kLarge      // near 448, both signs
};
enum class ScaleKind {
  kOrdinary,
  kWide,    // any exponent that is not special
  kTiny,    // subnormal results
  kSpecial  // a few zeros, NaN, infinities, negative numbers
};
// Element (r, c) of a [rows, columns] matrix at data[r * row + c * column], batch after batch.
void fill_codes(uint8_t* data, int64_t rows, int64_t columns, int64_t row, int64_t batches,
                int64_t batch, Codes kind, uint64_t seed, cudaStream_t stream);
void fill_scales(float* data, int64_t rows, int64_t columns, int64_t row, int64_t column,
                 int64_t batches, int64_t batch, ScaleKind kind, uint64_t seed,
                 cudaStream_t stream);
// Values of an output type, for C and bias; special: some NaN, infinities, zeros, subnormals.
void fill_values(void* data, int type, int64_t count, bool special, uint64_t seed,
                 cudaStream_t stream);
void fill_bytes(void* data, int64_t bytes, uint64_t seed, cudaStream_t stream);

// result[0] += number of 16-bit words that differ, result[1] = min(result[1], index of the first).
void compare_words(const void* x, const void* y, int64_t bytes, unsigned long long* result,
                   cudaStream_t stream);

}  // namespace oct::test
