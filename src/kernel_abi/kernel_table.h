// The closed set of GEMM kernels that the library carries. Growth is a decision: each row says
// which problems need the kernel. The build makes one cubin of every name; planner, loader and
// tests walk the same list.
#pragma once

#include "kernel_abi/tile_config.h"

namespace oct::abi {

struct KernelRow {
  const char* name;
  const char* serves;
};

inline constexpr KernelRow kKernels[] = {
    // Large M: the fewest shared-memory bytes for a product.
    {"normal_m256n128", "large M, N a multiple of 128"},
    {"normal_m256n128_cn2", "large M and short K"},
    {"normal_m128n256", "large M, wide N"},
    {"normal_m128n256_cm2", "large M, long K"},
    {"normal_m128n192", "last waves that 256 columns leave half empty"},
    {"normal_m128n192_cm2", "the same at large M"},
    // Mid M.
    {"normal_m128n128_x2", "mid M, split K over a cluster"},
    {"normal_m128n160", "mid M, widths between"},
    {"normal_m128n144", "N of 576, 2112 and others that it divides well"},
    {"normal_m128n96_x2", "mid M, widths between"},
    {"normal_m256n96", "mid M, widths between"},
    {"normal_m128n64_x2", "mid M, few tiles"},
    {"normal_m64n128_x2", "M of 64 to 192, wide N"},
    {"normal_m64n144_x2_w1", "M of 17 to 64, N that 128 SMs share evenly: 18432"},
    {"normal_m64n64_x2_o2", "M of 64 to 192, narrow N"},
    {"normal_m64n32_x2_o2", "M of 64, few tiles"},
    {"normal_m128n64_seq", "any split and any SM budget"},
    // Decode: weights stream once; split K over clusters and warpgroups.
    {"swapped_w64t8_x2_o2", "M up to 8, split over a cluster"},
    {"swapped_w64t8_k2_x2_b2", "M up to 8, N of 4096 to 8192"},
    {"swapped_w64t8_b2_o3", "M up to 8, wide N"},
    {"swapped_w64t8_k4", "M up to 8, long K"},
    {"swapped_w128t8_o2", "M up to 8, wide N and short K"},
    {"swapped_w64t16_x2_o2", "M up to 16, split over a cluster"},
    {"swapped_w64t16_k2_x2_b2", "M up to 16, N of 4096 to 8192"},
    {"swapped_w64t16_b2_o3", "M up to 16, wide N"},
    {"swapped_w64t16_k4", "M up to 16, long K"},
    {"swapped_w128t16_o2", "M up to 16, wide N and short K"},
    {"swapped_w64t32_x2_o2", "M up to 32, split over a cluster"},
    {"swapped_w64t32_k2_x2", "M up to 32, N of 4096 to 8192"},
    {"swapped_w64t32_o3", "M up to 32, wide N"},
    {"swapped_w128t32_o2", "M up to 32, wide N and short K"},
    {"swapped_w64t64_x2_o2", "M up to 64, split over a cluster"},
    {"swapped_w64t64_k2_x2", "M up to 64, N of 4096 to 8192, long K"},
    {"swapped_w192t64", "M up to 64, wide N"},
    {"swapped_w256t64", "M up to 64, wide N and short K"},
    // Grouped over M: the tile's height follows the rows of a group.
    {"normal_m256n128_g", "groups of thousands of rows, N a multiple of 128"},
    {"normal_m256n128_cn2_g", "groups of hundreds of rows and more, long K"},
    {"normal_m128n256_g", "groups of hundreds of rows and more"},
    {"normal_m128n128_x2_g", "groups of about 128 rows, few tiles"},
    {"normal_m64n256_g", "groups of about 64 rows, or a remainder of as many"},
    {"normal_m128n64_seq_g", "any split, batch-invariant plans, small SM budgets"},
    {"swapped_w128t8_o2_g", "groups of up to 8 rows"},
    {"swapped_w128t16_o2_g", "groups of up to 16 rows"},
    {"swapped_w64t32_x2_o2_g", "groups of up to 32 rows"},
    {"swapped_w256t64_g", "groups of up to 64 rows"},
    // Scales 1x128 on both sides: weight gradients.
    {"normal_m256n128_1d1d", "1D1D, large results"},
    {"normal_m192n128_1d1d", "1D1D, widths between"},
    {"normal_m128n128_1d1d", "1D1D, few tiles, split K over a cluster"},
    {"normal_m64n64_1d1d", "1D1D, small results"},
    {"normal_m128n64_seq_1d1d", "1D1D, any split and any SM budget"},
    {"normal_m256n128_kg", "K-grouped, large results"},
    {"normal_m192n128_kg", "K-grouped, widths between"},
    {"normal_m128n128_kg", "K-grouped, few tiles"},
    {"normal_m128n64_seq_kg", "K-grouped, any split"},
    {"normal_m256n128_kp", "packed K-grouped, large results"},
    {"normal_m128n64_seq_kp", "packed K-grouped, any split, small results"},
};
inline constexpr int kKernelCount = static_cast<int>(sizeof kKernels / sizeof kKernels[0]);

namespace detail {
constexpr bool all_valid() {
  for (const KernelRow& row : kKernels) {
    if (!parse_kernel(row.name).valid) return false;
  }
  return true;
}
}  // namespace detail
static_assert(detail::all_valid(), "every name of the kernel table must follow the grammar");

}  // namespace oct::abi
