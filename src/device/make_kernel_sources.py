#!/usr/bin/env python3
"""Writes one .cu for every kernel of kernel_abi/kernel_table.h, and the table that embeds their cubins.

usage: make_kernel_sources.py KERNEL_TABLE --list                 the names, one a line
       make_kernel_sources.py KERNEL_TABLE --sources DIRECTORY    DIRECTORY/NAME.cu
       make_kernel_sources.py KERNEL_TABLE --embed FILE --cubins DIRECTORY
Files are written only when their text changes, so that a build after a comment is short.
"""
import argparse
import pathlib
import re

SOURCE = """// Written by make_kernel_sources.py: do not edit.
#include "device/gemm_kernel.cuh"

namespace {{
constexpr oct::abi::TileConfig kTile = oct::abi::parse_kernel("{name}");
}}

extern "C" __global__ void __launch_bounds__(kTile.threads(), kTile.ctas_per_sm)
    octet_gemm_{name}(const __grid_constant__ oct::abi::KernelParams params) {{
  oct::device::gemm<kTile>(params);
}}
"""

EMBED_HEAD = """// Written by make_kernel_sources.py: do not edit.
#include "loader/cubins.h"

#define OCTET_EMBED(name, file)                                                     \\
  asm(".section .rodata\\n.balign 64\\n.global octet_cubin_" name "\\n"                \\
      ".hidden octet_cubin_" name "\\noctet_cubin_" name ":\\n.incbin \\"" file "\\"\\n"   \\
      ".global octet_cubin_end_" name "\\n.hidden octet_cubin_end_" name "\\n"         \\
      "octet_cubin_end_" name ":\\n.byte 0\\n.previous\\n");

"""


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--sources", type=pathlib.Path)
    parser.add_argument("--embed", type=pathlib.Path)
    parser.add_argument("--cubins", type=pathlib.Path)
    args = parser.parse_args()
    names = re.findall(r'\{"(\w+)",', args.table.read_text())
    if args.list:
        print("\n".join(names))
    if args.sources:
        args.sources.mkdir(parents=True, exist_ok=True)
        for name in names:
            write(args.sources / f"{name}.cu", SOURCE.format(name=name))
    if args.embed:
        text = EMBED_HEAD
        for name in names:
            text += f'OCTET_EMBED("{name}", "{(args.cubins / name).as_posix()}.cubin")\n'
        text += '\nextern "C" {\n'
        for name in names:
            text += f"extern const unsigned char octet_cubin_{name}[], octet_cubin_end_{name}[];\n"
        text += "}\n\nnamespace oct::loader {\n\nstd::span<const Cubin> cubins() {\n"
        text += "  static const Cubin table[] = {\n"
        for name in names:
            text += f'      {{"{name}", octet_cubin_{name}, octet_cubin_end_{name}}},\n'
        text += "  };\n  return table;\n}\n\n}  // namespace oct::loader\n"
        write(args.embed, text)


if __name__ == "__main__":
    main()
