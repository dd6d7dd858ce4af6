// Inputs of the whole products in gemms.bin, drawn anew wherever the file is read: from integers
// alone, so that every machine, compiler and standard library gets the same bytes. Unkind as all of
// our inputs: odd pitches, NaN codes and NaN scales in the padding, D between guards.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/octet.h"
#include "support/buffers.h"

namespace oct::golden {

enum class ScaleClass : uint32_t {
  kOrdinary,       // about 2^-8
  kPowersOfTwo,    // 2^-12 to 2^4
  kTiny,           // products of two are subnormal, or 0
  kHuge,           // sums overflow
  kWide,           // any normal number
  kZerosAndSigns,  // zeros of both signs, negative numbers, subnormals
  kNotFinite       // now and then an infinity or a NaN
};
inline constexpr uint32_t kScaleClasses = 7;

// Memory that the pointers of a call go to, on the host or on a device.
struct GemmMemory {
  void *a, *b, *sfa, *sfb, *c, *bias, *d;
};

class GemmInputs {
 public:
  // Dense or batched e4m3 problems with 1D2D scales. problem.seed decides all that is drawn.
  // input_class: one of kClassNames (golden_file.h); those about a chain's C are read as gaussian.
  GemmInputs(const octet_gemm_problem& problem, uint32_t input_class, ScaleClass scales);

  octet_gemm_args args(const GemmMemory& memory) const;
  GemmMemory host_memory(uint8_t* d_memory) const;

  // Bytes of a, b, scales, C, bias and of D before the call.
  uint64_t checksum() const;
  // The elements of D, row after row, of all that D's memory holds.
  std::vector<uint8_t> elements(const uint8_t* d_memory) const;
  // Whether D's memory is as it was outside the elements.
  bool outside_is_untouched(const uint8_t* d_memory) const;

  testing_support::Buffer a, b, sfa, sfb, c, bias, d;

 private:
  template <typename Visit>
  void for_each_row(Visit visit) const;

  octet_gemm_problem problem_;
  octet_gemm_args shape_{};
  int64_t sfa_begin_ = 0, sfb_begin_ = 0, d_begin_ = 0;  // bytes
};

}  // namespace oct::golden
