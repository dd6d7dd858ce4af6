#!/usr/bin/env python3
"""Writes wgmma_e4m3.cuh: one wrapper for every width that a kernel of the table uses.

usage: make_wgmma.py > wgmma_e4m3.cuh
"""

WIDTHS = (8, 16, 32, 64, 96, 128, 144, 160, 192)

print("""// Written by make_wgmma.py: do not edit. wgmma.mma_async m64nNk32, e4m3 x e4m3 -> f32, both
// operands in shared memory. `accumulate` 0 starts from zero whatever d holds.
// clang-format off
#pragma once

#include <cstdint>

namespace oct::device::ptx {

template <int kWidth>
struct WgmmaE4m3;""")
for n in WIDTHS:
    r = n // 2
    rows = [list(range(i, min(i + 16, r))) for i in range(0, r, 16)]
    names = ["      \"" + ", ".join(f"%{i}" for i in row) + (", \"" if row[-1] + 1 < r else "\"") for row in rows]
    outs = ["      " + ", ".join(f'"+f"(d[{i}])' for i in row[j:j + 6]) for row in rows for j in range(0, len(row), 6)]
    print(f"""
template <>
struct WgmmaE4m3<{n}> {{
  static __device__ __forceinline__ void issue(float (&d)[{r}], uint64_t a, uint64_t b,
                                               int accumulate) {{
    asm volatile(
        "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{r + 2}, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n{n}k32.f32.e4m3.e4m3 {{"
{chr(10).join(names)}
        "}}, %{r}, %{r + 1}, p, 1, 1;\\n}}\\n"
        :""")
    print(",\n".join(outs))
    print("""        : "l"(a), "l"(b), "r"(accumulate));
  }
};""")
print("\n}  // namespace oct::device::ptx")
