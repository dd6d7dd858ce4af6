// What a problem takes at least, and which regime it belongs to: the yardstick of `octet bench`.
// Pure, and the same as in the baselines that results are compared with: every operand moved once
// at the DRAM rate, or all products at the tensor cores' sustained rate, whichever is longer, and
// 2 us. Scales are not counted. Rates are one H200's, measured, power limit included.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "bench_groups.h"
#include "octet/octet.h"

namespace octet::tool {

struct Work {
  double bytes = 0;  // A, B, D (and C) once
  double flops = 0;
};

// `rows`: rows of A that are really computed, over all groups; `sum_k`: K of all groups together.
// For dense problems these are m and k.
inline Work work_of(const octet_gemm_problem& p, double rows, double sum_k) {
  const bool by_k = p.grouping == OCTET_K_GROUPED;
  const double in = p.in_type == OCTET_BF16 ? 2 : 1;
  const double out = (p.d_type == OCTET_F32 ? 4 : 2) * (p.accumulate != 0 ? 2 : 1);
  const double n = static_cast<double>(p.n), groups = static_cast<double>(p.groups);
  Work w;
  w.bytes =
      in * (rows * sum_k + (by_k ? 1 : groups) * n * sum_k) + out * rows * n * (by_k ? groups : 1);
  w.flops = 2 * rows * n * sum_k;
  return w;
}

// With the sizes of the problem string (averages, where groups differ in size).
inline Work work_of(const octet_gemm_problem& p) {
  const double m = static_cast<double>(p.m), k = static_cast<double>(p.k);
  const double groups = static_cast<double>(p.groups);
  return p.grouping == OCTET_K_GROUPED ? work_of(p, m, groups * k) : work_of(p, groups * m, k);
}

// With the rows, or the K, that the groups really have.
inline Work work_of(const octet_gemm_problem& p, const GroupLayout& groups) {
  return work_of(p, static_cast<double>(groups.real_rows), static_cast<double>(groups.real_k));
}

inline double floor_us(const Work& work, octet_type in_type) {
  constexpr double kBytesPerUs = 4.63e6;
  constexpr double kFp8FlopsPerUs = 1672e6;
  constexpr double kBf16FlopsPerUs = 836e6;
  constexpr double kLaunchUs = 2;
  const double rate = in_type == OCTET_BF16 ? kBf16FlopsPerUs : kFp8FlopsPerUs;
  return std::max(work.bytes / kBytesPerUs, work.flops / rate) + kLaunchUs;
}

// Problems of one regime share a target, and are summed up together.
inline std::string regime_of(const octet_gemm_problem& p) {
  const bool plain = p.d_type == OCTET_BF16 && p.bias_type == OCTET_NONE && p.accumulate == 0 &&
                     p.dependent_launch == 0 && p.batch_invariant == 0 &&
                     p.sfa_layout == OCTET_COLUMN_MAJOR;
  switch (p.grouping) {
    case OCTET_DENSE:
      if (p.granularity == OCTET_1D1D) return "weight gradient";
      if (p.in_type == OCTET_BF16) return "BF16 dense";
      if (!plain) return "dense with options";
      return p.m <= 64     ? "dense decode M<=64"
             : p.m <= 2048 ? "dense mid 128-2048"
                           : "dense large >=4096";
    case OCTET_BATCHED: return "batched";
    case OCTET_MASKED: return p.m >= 192 ? "masked 192/1024 rows" : "masked 20 rows";
    case OCTET_K_GROUPED: return "weight gradient";
    case OCTET_OFFSETS:
      return p.m <= 256 ? "offsets 32x256 (unpadded)" : "contiguous/aligned large";
    default: return p.m <= 256 ? "contiguous 32x256" : "contiguous/aligned large";
  }
}

}  // namespace octet::tool
