// What a kernel's printed name says of its tiles, for people who look for a wrong output:
// "normal_m128n256..." computes tiles of 128 rows and 256 columns of D with the rows on WGMMA's
// 64-row side, "swapped_w64t16..." tiles of 16 rows and 64 columns with the columns there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace octet::tool {

struct KernelTile {
  bool normal = true;
  int32_t m = 0, n = 0;     // rows and columns of D
  int32_t ctas_per_sm = 1;  // "_o2"
};

// Nothing if the name is not of this kind.
std::optional<KernelTile> parse_kernel_tile(const std::string& kernel);

// "tile (2, 0) of 128 x 256, row 5 and column 7 of it; warp 0 of a math warpgroup" for an output of
// D; empty if the kernel's name is not of this kind.
std::string describe_place(const std::string& kernel, int64_t row, int64_t col);

}  // namespace octet::tool
