#!/usr/bin/env python3
"""octet quantize and octet dequantize on files of every kind; quantize_models.py has whole models,
quantize_damaged.py what is refused, damaged or ended midway.

    quantize_files.py OCTET

What is written is compared with the definition of docs/numerics.md: codes and scales give back each
element to within half a step of e4m3, scales are the blocks' largest magnitude over 448. Exit code 1
and a line for each breach.
"""

import itertools
import math
import struct
import sys

from files_support import (Numbers, check, e4m3_value, floats, read_npy, read_safetensors, refused, run,
                           run_parts, succeed, write_npy, write_safetensors)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def scale_at(scales, shape, options, line, kb):
    """The scale of a line and a block of K, wherever --block and --layout put it."""
    block, layout = options
    i = line if block == "1x128" else line // 128
    return scales[kb * shape[1] + i] if layout == "column" else scales[i * shape[1] + kb]


def check_codes(what, values, rows, cols, codes, scales, scales_shape, axis, transpose, options):
    largest = {}
    for r, c in itertools.product(range(rows), range(cols)):
        line, k = (r, c) if axis == 1 else (c, r)
        key = (line if options[0] == "1x128" else line // 128, k // 128)
        largest[key] = max(largest.get(key, 0), abs(values[r * cols + c]))
    wrong = 0
    for r, c in itertools.product(range(rows), range(cols)):
        line, k = (r, c) if axis == 1 else (c, r)
        scale = scale_at(scales, scales_shape, options, line, k // 128)
        most = largest[(line if options[0] == "1x128" else line // 128, k // 128)]
        got = e4m3_value(codes[c * rows + r if transpose else r * cols + c]) * scale
        want = values[r * cols + c]
        wrong += scale != f32(most / 448) or abs(got - want) > max(abs(want) / 15.9, scale / 512)
    check(wrong == 0, f"{what}: {wrong} of {rows * cols} elements are not what they should be")


def check_every_option(octet, folder):
    rows, cols = 131, 260
    values = Numbers(1).list(rows * cols)
    for dtype in ("F32", "F16", "BF16"):
        write_npy(folder / f"{dtype}.npy", dtype, (rows, cols), values)
        write_safetensors(folder / f"{dtype}.safetensors", {"odd": ("U8", [1], [7]),
                                                            "w": (dtype, (rows, cols), values)})
    for dtype, block, axis, transpose, layout in itertools.chain(
            itertools.product(["F32"], ["1x128", "128x128"], [0, 1], [False, True],
                              ["row", "column"]),
            itertools.product(["F16", "BF16"], ["128x128"], [1], [False], ["row"])):
        what = f"{dtype} {block} axis {axis} transpose {transpose} {layout}"
        arguments = ["--block", block, "--axis", axis, "--layout", layout]
        arguments += ["--transpose"] if transpose else []
        more = ["--dtype", "bf16"] if dtype == "BF16" else []
        succeed(octet, "quantize", folder / f"{dtype}.npy", "-o", folder / "q.npy", *arguments, *more)
        descr, shape, codes = read_npy(folder / "q.npy")
        scales_descr, scales_shape, scales = read_npy(folder / "q_scale_inv.npy")
        check(descr == "|u1" and shape == ([cols, rows] if transpose else [rows, cols]) and
              scales_descr == "<f4", f"{what}: {descr} {shape} {scales_descr}")
        check_codes(what, values, rows, cols, codes, floats(scales), scales_shape, axis, transpose,
                    (block, layout))
        # The same bytes in the other format, in which the file says how it was made.
        succeed(octet, "quantize", f"{folder / dtype}.safetensors:w", "-o",
                f"{folder}/q.safetensors:out.weight", *arguments)
        tensors = read_safetensors(folder / "q.safetensors")
        check(tensors == {"out.weight": ("F8_E4M3", shape, codes),
                          "out.weight_scale_inv": ("F32", scales_shape, scales)},
              f"{what}: .safetensors differs from .npy")
        # Back again, from both: the same, and codes times scales.
        succeed(octet, "dequantize", folder / "q.safetensors", "-o", folder / "back.npy")
        succeed(octet, "dequantize", folder / "q.npy", "-o", folder / "back2.npy", *arguments)
        back = (folder / "back.npy").read_bytes()
        check(back == (folder / "back2.npy").read_bytes(), f"{what}: the two ways back differ")
        descr, shape, data = read_npy(folder / "back.npy")
        check(descr == "<f4" and shape == [rows, cols], f"{what}: back as {descr} {shape}")
        got = floats(data)
        line = (130, 259) if axis == 1 else (259, 130)
        scale = scale_at(floats(scales), scales_shape, (block, layout), line[0], line[1] // 128)
        check(got[-1] == f32(e4m3_value(codes[-1]) * scale), f"{what}: the last element back")


def check_scales_of_models(octet, folder):
    """The scales that other programs write: one for all, one a row, BF16, powers of two as bytes."""
    codes = [0x38, 0x40] * 130 + [0xb8] * 260
    for what, scale, want in [
            ("a scalar", ("F32", [], [0.5]), [0.5, 1.0, -0.5]),
            ("one", ("BF16", [1], [0.5]), [0.5, 1.0, -0.5]),
            ("a row", ("F32", [2, 1], [0.5, 3.0]), [0.5, 1.0, -3.0]),
            ("a row, flat", ("F16", [2], [0.5, 3.0]), [0.5, 1.0, -3.0]),
            ("128x128", ("F32", [1, 3], [0.5, 1, 2]), [0.5, 1.0, -2.0]),
            ("1x128", ("F8_E8M0", [2, 3], [126, 1, 1, 1, 1, 128]), [0.5, 1.0, -2.0])]:
        write_safetensors(folder / "s.safetensors", {"l.weight": ("F8_E4M3", [2, 260], codes),
                                                     "l.weight_scale": scale})
        succeed(octet, "dequantize", f"{folder}/s.safetensors:l.weight", "-o", folder / "x.npy")
        got = floats(read_npy(folder / "x.npy")[2])
        check([got[0], got[1], got[-1]] == want, f"{what}: {got[0]} {got[1]} {got[-1]}")
    # One a row, where there are as many blocks of K: no square's scales, in models and in .npy.
    write_safetensors(folder / "r.safetensors", {"l.weight": ("F8_E4M3", [3, 260], [0x38] * 780),
                                                 "l.weight_scale": ("F32", [3], [1.0, 2.0, 4.0])})
    write_npy(folder / "r.npy", "F8_E4M3", (3, 260), [0x38] * 780)
    write_npy(folder / "r_scale_inv.npy", "F32", (3,), [1.0, 2.0, 4.0])
    for name in ("r.safetensors:l.weight", "r.npy"):
        report = succeed(octet, "dequantize", f"{folder}/{name}", "-o", folder / "x.npy")
        got = floats(read_npy(folder / "x.npy")[2])
        check(got == [1.0] * 260 + [2.0] * 260 + [4.0] * 260, f"{name}: {report['scales_of']}")
    succeed(octet, "dequantize", f"{folder}/s.safetensors:l.weight", "-o",
            f"{folder}/x.safetensors:y", "--scales", "2", "--to", "bf16")
    dtype, shape, data = read_safetensors(folder / "x.safetensors")["y"]
    check((dtype, shape, data[:4]) == ("BF16", [2, 260], b"\0\x40\x80\x40"), f"--scales 2: {data[:4]}")


def check_ambiguous_shapes(octet, folder):
    """Where a .npy file's shape fits two readings, the user must say which; then it is that one."""
    for rows, cols, block, shape in [(2, 200, "1x128", [2, 2]), (129, 300, "128x128", None),
                                     (260, 300, "128x128", [3, 3]), (2, 200, "128x128", [2, 1]),
                                     (2, 256, "128x128", [2, 1])]:
        values = Numbers(rows).list(rows * cols)
        write_npy(folder / "x.npy", "F32", (rows, cols), values)
        for layout in ("row", "column"):
            what = f"{rows} x {cols}, {block}, {layout}"
            q, back = folder / "q.npy", folder / "back.npy"
            succeed(octet, "quantize", folder / "x.npy", "-o", q, "--block", block, "--layout", layout)
            got_shape = read_npy(folder / "q_scale_inv.npy")[1]
            if shape == got_shape:
                back.unlink(missing_ok=True)
                refused(octet, "give --layout row for the former or --layout column for the latter",
                        "dequantize", q, "-o", back)
                refused(octet, "give --layout-a row", "gemm", q, folder / "x.npy", "-o", back,
                        "--dtype-a", "e4m3")
                refused(octet, "give --layout-b row", "gemm", folder / "x.npy", q, "-o", back,
                        "--dtype-b", "e4m3")
                check(not back.exists(), f"{what}: something was written")
            else:
                succeed(octet, "dequantize", q, "-o", back)
                near(what, values, floats(read_npy(back)[2]))
            succeed(octet, "dequantize", q, "-o", back, "--layout", layout)
            near(what + ", said", values, floats(read_npy(back)[2]))
            succeed(octet, "gemm", q, q, "-o", back, "--dtype-a", "e4m3", "--dtype-b", "e4m3", "--out",
                    "f32", "--layout-a", layout, "--layout-b", layout)
            wanted = [sum(values[i * cols + k] * values[j * cols + k] for k in range(cols))
                      for i, j in itertools.product((0, rows - 1), repeat=2)]
            d = floats(read_npy(back)[2])
            near(what + ", gemm", wanted, [d[i * rows + j] for i, j in
                                           itertools.product((0, rows - 1), repeat=2)])
            # The same scales in the file itself: it says how they lie.
            succeed(octet, "quantize", folder / "x.npy", "-o", folder / "q.safetensors", "--block",
                    block, "--layout", layout)
            succeed(octet, "dequantize", folder / "q.safetensors", "-o", back)
            near(what + ", .safetensors", values, floats(read_npy(back)[2]))
    # Models of others: rows first, and one value a row rather than blocks of K in a column.
    codes = [0x38] * 512
    for shape, scales, want in [([2, 2], [1, 2, 4, 8], [1, 2, 4, 8]), ([2, 1], [1, 2], [1, 1, 2, 2])]:
        write_safetensors(folder / "m.safetensors", {"w": ("F8_E4M3", [2, 256], codes),
                                                     "w_scale": ("F32", shape, scales)})
        succeed(octet, "dequantize", f"{folder}/m.safetensors:w", "-o", folder / "back.npy")
        got = floats(read_npy(folder / "back.npy")[2])
        check(got[::128] == want, f"a model's scales of {shape}: {got[::128]}")


def near(what, wanted, got):
    error = (sum((x - y) ** 2 for x, y in zip(got, wanted)) / sum(y * y for y in wanted)) ** 0.5
    check(len(got) == len(wanted) and error < 0.05, f"{what}: an error of {error}")


def check_not_finite(octet, folder):
    """Blocks with NaN or infinity are counted and told; what is only large is neither."""
    rows, cols = 260, 300
    for block, axis, transpose in itertools.product(["1x128", "128x128"], [0, 1], [False, True]):
        values = [1.0] * (rows * cols)
        values[7] = 3e38
        blocks = set()
        for r, c, value in [(0, 0, math.nan), (0, 127, math.inf), (0, 128, -math.inf), (1, 5, math.nan),
                            (128, 5, math.inf), (259, 299, math.nan), (259, 256, math.nan)]:
            values[r * cols + c] = value
            line, k = (r, c) if axis == 1 else (c, r)
            blocks.add((line if block == "1x128" else line // 128, k // 128))
        write_npy(folder / "x.npy", "F32", (rows, cols), values)
        arguments = ["quantize", folder / "x.npy", "-o", folder / "q.npy", "--block", block, "--axis",
                     axis] + (["--transpose"] if transpose else [])
        result = run(octet, *arguments)
        what = f"not finite, {block}, axis {axis}, transpose {transpose}"
        check(result.returncode == 0 and result.stderr ==
              f"octet: x: {len(blocks)} blocks of {block} hold NaN or infinity, which became NaN\n",
              f"{what}: {len(blocks)} blocks, {result.stderr}")
        tensor = succeed(octet, *arguments)["quantised"][0]
        check(tensor["blocks_not_finite"] == len(blocks), f"{what}: {tensor}")
    write_npy(folder / "x.npy", "F32", (1, 2), [3e38, -3e38])
    result = run(octet, "quantize", folder / "x.npy", "-o", folder / "q.npy")
    check(result.returncode == 0 and not result.stderr, "large and finite", result)
    model = folder / "m.safetensors"
    write_safetensors(model, {"a.weight": ("F32", [1, 2], [1.0, math.nan]),
                              "b.weight": ("BF16", [1, 2], [1.0, 2.0]),
                              "c.weight": ("F16", [1, 2], [math.inf, 2.0])})
    result = run(octet, "quantize", model, "-o", folder / "m8.safetensors")
    check(result.stderr.splitlines() == [f"octet: {name}.weight: 1 block of 128x128 holds NaN or "
                                         "infinity, which became NaN" for name in "ac"],
          "not finite, a model", result)


def check_pow2(octet, folder):
    write_npy(folder / "x.npy", "F32", (1, 128), [448 * 3.0] + [1.0] * 127)
    for scales, descr, want in [("pow2", "<f4", struct.pack("<f", 4)), ("ue8m0", "|u1", b"\x81")]:
        succeed(octet, "quantize", folder / "x.npy", "-o", folder / "q.npy", "--scales", scales)
        check(read_npy(folder / "q_scale_inv.npy") == (descr, [1, 1], want), scales)
    succeed(octet, "quantize", folder / "x.npy", "-o", folder / "q.npy", "--amax-min", 896 * 3,
            "--scales-out", folder / "s.npy")
    check(floats(read_npy(folder / "s.npy")[2]) == [6.0], "--amax-min, --scales-out")


if __name__ == "__main__":
    sys.exit(run_parts(check_every_option, check_scales_of_models, check_ambiguous_shapes, check_not_finite,
                       check_pow2))
