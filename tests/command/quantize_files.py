#!/usr/bin/env python3
"""octet quantize and octet dequantize on files of every kind, small and damaged.

    quantize_files.py OCTET

What is written is compared with the definition of docs/numerics.md: codes and scales give back each
element to within half a step of e4m3, scales are the blocks' largest magnitude over 448. Exit code 1
and a line for each breach.
"""

import itertools
import json
import math
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

from files_support import (Numbers, check, e4m3_value, finish, floats, read_npy, read_safetensors,
                           refused, run, succeed, write_npy, write_safetensors)


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


def make_model(folder):
    folder.mkdir()
    numbers = Numbers(5)
    names = ["a.q_proj.weight", "embed_tokens.weight", "b.down_proj.weight", "norm.weight"]
    shapes = [[130, 200], [4, 8], [64, 128], [8]]
    files = ["model-1.safetensors", "model-1.safetensors", "model-2.safetensors",
             "model-2.safetensors"]
    tensors = {name: ("BF16", shape, numbers.list(shape[0] * (shape[1:] or [1])[0]))
               for name, shape in zip(names, shapes)}
    for file in set(files):
        write_safetensors(folder / file, {n: tensors[n] for n, f in zip(names, files) if f == file},
                          {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 1}, "weight_map": dict(zip(names, files))}))
    (folder / "config.json").write_text('{"hidden_size": 8, "eps": 1e-06}')
    (folder / "tokenizer.json").write_text("tokens")
    (folder / "extra").mkdir()


def check_model(octet, folder):
    model, out = folder / "model", folder / "model-fp8"
    make_model(model)
    report = succeed(octet, "quantize", model, "-o", out)
    check([t["name"] for t in report.get("quantised", [])] == ["a.q_proj.weight",
                                                               "b.down_proj.weight"] and
          report["copied"] == 2 and report["left_out"] == ["extra"], f"model: {report}")
    check(sorted(os.listdir(out)) == ["config.json", "model-1.safetensors", "model-2.safetensors",
                                      "model.safetensors.index.json", "tokenizer.json"],
          f"model: {sorted(os.listdir(out))}")
    index = json.loads((out / "model.safetensors.index.json").read_text())
    all_tensors = {}
    for file in ("model-1.safetensors", "model-2.safetensors"):
        for name, tensor in read_safetensors(out / file).items():
            check(index["weight_map"].get(name) == file, f"index: {name}")
            all_tensors[name] = tensor
    check(set(index["weight_map"]) == set(all_tensors) and
          index["metadata"]["total_size"] == sum(len(t[2]) for t in all_tensors.values()),
          f"index: {index}")
    before = read_safetensors(model / "model-1.safetensors")
    check(all_tensors["embed_tokens.weight"] == before["embed_tokens.weight"], "a copied tensor")
    check(all_tensors["a.q_proj.weight_scale_inv"][:2] == ("F32", [2, 2]), "the model's scales")
    config = json.loads((out / "config.json").read_text())
    check(config.get("eps") == 1e-06 and
          config["quantization_config"]["weight_block_size"] == [128, 128] and
          config["quantization_config"]["modules_to_not_convert"] == ["embed_tokens"],
          f"config: {config}")
    succeed(octet, "dequantize", f"{out}:b.down_proj.weight", "-o", folder / "w.npy")
    check_model_back(octet, folder, model, out)
    check(report["config_note"] == "", f"config note: {report}")
    other = succeed(octet, "quantize", model, "-o", folder / "fine", "--block", "1x128")
    check("says nothing of FP8" in other["config_note"] and "block=1x128" in other["config_note"] and
          "quantization_config" not in (folder / "fine/config.json").read_text(),
          f"config note of 1x128: {other}")
    text = run(octet, "quantize", model, "-o", folder / "fine2", "--block", "1x128")
    check("config.json: says nothing of FP8" in text.stdout, "config note, printed", text)
    refused(octet, "is there already", "quantize", model, "-o", out)
    refused(octet, "no F32, BF16 or F16 matrix", "quantize", model, "-o", folder / "none",
            "--include", "*.bias")
    succeed(octet, "quantize", model / "model-1.safetensors", "-o", folder / "one.safetensors",
            "--include", "embed*", "--exclude", "none")
    check(read_safetensors(folder / "one.safetensors")["embed_tokens.weight"][0] == "F8_E4M3",
          "--include of one file")
    index["weight_map"]["a.q_proj.weight"] = "../model/model-1.safetensors"
    (out / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(octet, "must be in a .safetensors file beside it", "dequantize",
            f"{out}:a.q_proj.weight", "-o", folder / "w.npy")
    check(not (folder / "none").exists() and
          not [name for name in os.listdir(folder) if name.startswith(".octet")], "something stayed")


def check_model_back(octet, folder, model, fp8):
    """Every tensor as one by one, everything else as it was before it was quantised."""
    back = folder / "model-bf16"
    report = succeed(octet, "dequantize", fp8, "-o", back)
    check([t["name"] for t in report.get("dequantised", [])] == ["a.q_proj.weight",
                                                                 "b.down_proj.weight"] and
          report["copied"] == 2, f"model back: {report}")
    check(sorted(os.listdir(back)) == sorted(os.listdir(fp8)), f"model back: {os.listdir(back)}")
    check((back / "model.safetensors.index.json").exists() and
          json.loads((back / "config.json").read_text()) == {"hidden_size": 8, "eps": 1e-06} and
          (back / "tokenizer.json").read_text() == "tokens", "model back: the other files")
    index = json.loads((back / "model.safetensors.index.json").read_text())["weight_map"]
    for file in ("model-1.safetensors", "model-2.safetensors"):
        before, after = read_safetensors(model / file), read_safetensors(back / file)
        check(set(before) == set(after) and all(index[name] == file for name in after),
              f"model back: {file} holds {sorted(after)}")
        for name, (dtype, shape, data) in before.items():
            check(after[name][:2] == (dtype, shape), f"model back: {name} is {after[name][:2]}")
            if "proj" in name:
                succeed(octet, "dequantize", f"{fp8}:{name}", "-o", folder / "one.npy", "--to", "bf16")
                data = read_npy(folder / "one.npy")[2]
            check(after[name][2] == data, f"model back: {name} has other bytes")
        check(b"octet." not in (back / file).read_bytes(), f"model back: {file} says it is quantised")
    succeed(octet, "dequantize", fp8, "-o", folder / "model-f32", "--to", "f32")
    shape = read_safetensors(folder / "model-f32/model-2.safetensors")["b.down_proj.weight"][:2]
    check(shape == ("F32", [64, 128]), f"model back, --to f32: {shape}")
    # A file of several, whose scales say nothing of themselves; one has none.
    codes = [0x38] * 8
    several = {"a": ("F8_E4M3", [2, 4], codes), "a_scale": ("F32", [], [0.5]),
               "b": ("F8_E4M3", [4, 2], codes), "b_scale_inv": ("F32", [1, 1], [2.0]),
               "c": ("U8", [3], [1, 2, 3]), "c_scale": ("F32", [1], [7.0])}
    write_safetensors(folder / "s.safetensors", several, {"octet.a": "axis=1"})
    succeed(octet, "dequantize", folder / "s.safetensors", "-o", folder / "t.safetensors")
    check(read_safetensors(folder / "t.safetensors") ==
          {"a": ("BF16", [2, 4], b"\0\x3f" * 8), "b": ("BF16", [4, 2], b"\0\x40" * 8),
           "c": ("U8", [3], b"\1\2\3"), "c_scale": ("F32", [1], struct.pack("<f", 7))},
          "a file of several, dequantised")
    refused(octet, "--scales 2: is for one tensor", "dequantize", fp8, "-o", folder / "no",
            "--scales", "2")
    refused(octet, "is there already", "dequantize", fp8, "-o", back)
    refused(octet, "is an input of the same command", "dequantize", fp8, "-o", fp8)
    refused(octet, "holds no tensor of e4m3 codes", "dequantize", model, "-o", folder / "no")
    del several["a_scale"]
    write_safetensors(folder / "s.safetensors", several)
    refused(octet, "s.safetensors:a: holds codes, and there is no tensor a_scale_inv", "dequantize",
            folder / "s.safetensors", "-o", folder / "no.safetensors")
    check(not (folder / "no").exists() and not (folder / "no.safetensors").exists(),
          "model back: a refused command wrote something")


def check_refused(octet, folder):
    write_npy(folder / "x.npy", "F32", (4, 4), [1.0] * 16)
    write_npy(folder / "bits.npy", "BF16", (4, 4), [1.0] * 16)
    write_npy(folder / "cube.npy", "F32", (2, 2, 4), [1.0] * 16)
    write_safetensors(folder / "x.safetensors", {
        "w": ("F8_E4M3", [2, 4], [0] * 8), "v": ("F32", [2, 4], [0.0] * 8),
        "i": ("U8", [2, 4], [0] * 8), "w_scale": ("F32", [7, 7], [1.0] * 49)})
    q = folder / "q.npy"
    for says, *arguments in [
            ("no.npy: cannot be opened", "quantize", folder / "no.npy", "-o", q),
            ("must be a .npy file", "quantize", folder / "x.txt", "-o", q),
            ("must end in .npy or .safetensors", "quantize", folder / "x.npy", "-o", folder / "q"),
            ("cannot be written in", "quantize", folder / "x.npy", "-o", folder / "none/q.npy"),
            ("cannot be written in", "quantize", folder / "x.npy", "-o", "/proc/q.npy"),
            ("bits.npy: holds 16-bit integers: give --dtype bf16", "quantize", folder / "bits.npy",
             "-o", q),
            ("cube.npy: has shape [2, 2, 4]: must be a matrix", "quantize", folder / "cube.npy", "-o",
             q),
            ("holds 4 tensors: add :TENSOR, one of i, v, w, w_scale", "quantize",
             folder / "x.safetensors", "-o", q),
            ("x.safetensors: has no tensor z", "quantize", f"{folder}/x.safetensors:z", "-o", q),
            ("holds e4m3 codes already", "quantize", f"{folder}/x.safetensors:w", "-o", q),
            ("must be another file than -o", "quantize", folder / "x.npy", "-o", q, "--scales-out",
             f"{folder}/./q.npy"),
            ("w_scale: has shape [7, 7]: for codes of 2 rows with K = 4", "dequantize",
             f"{folder}/x.safetensors:w", "-o", q),
            ("there is no tensor i_scale_inv", "dequantize", f"{folder}/x.safetensors:i", "-o", q),
            ("v: holds F32: must be e4m3 codes", "dequantize", f"{folder}/x.safetensors:v", "-o", q),
            ("there is no", "dequantize", folder / "bits.npy", "-o", q)]:
        if arguments[1] == folder / "bits.npy" and arguments[0] == "dequantize":
            says = "holds 16-bit integers"
        refused(octet, says, *arguments)
    check(not q.exists(), "a refused command wrote its output")


def check_every_cut(octet, folder):
    """No beginning of a good file, and no byte of its header changed, makes it crash."""
    write_safetensors(folder / "good.safetensors", {"w": ("F32", [2, 4], [1.0] * 8)})
    write_npy(folder / "good.npy", "F32", (2, 4), [1.0] * 8)
    for name, step in (("good.safetensors", 7), ("good.npy", 11)):
        data = (folder / name).read_bytes()
        bad = folder / ("bad-" + name)
        damaged = [data[:size] for size in range(0, len(data), step)]
        damaged += [data[:at] + bytes([data[at] ^ 0x15]) + data[at + 1:]
                    for at in range(0, len(data) - 32, step)]
        for number, content in enumerate(damaged):
            bad.write_bytes(content)
            result = run(octet, "quantize", bad, "-o", folder / "q.npy")
            check(result.returncode in (0, 2), f"{name}, damage {number}", result)
            check(result.returncode == 0 or "bad-good" in result.stderr,
                  f"{name}, damage {number} is not named", result)


def check_full_disk(octet, folder):
    write_npy(folder / "x.npy", "F32", (256, 256), [1.0] * 65536)
    (folder / "q.npy").write_text("before")
    result = run(octet, "quantize", folder / "x.npy", "-o", folder / "q.npy",
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    check(result.returncode == 1 and "q.npy: cannot be written" in result.stderr, "full", result)
    check((folder / "q.npy").read_text() == "before", "a full disk changed the output")
    (folder / "full.npy").symlink_to("/dev/full")
    refused(octet, "is not a regular file", "quantize", folder / "x.npy", "-o", folder / "full.npy")
    if os.geteuid() != 0:
        (folder / "locked").mkdir(mode=0o555)
        refused(octet, "Permission denied", "quantize", folder / "x.npy", "-o",
                folder / "locked/q.npy")
    check(not [name for name in os.listdir(folder) if name.startswith(".octet")], "something stayed")


def check_ended(octet, folder):
    """Ended while it writes: the output is the old one, or the new one and whole."""
    big = folder / "big.npy"
    write_npy(big, "F32", (8192, 0), [])
    header = big.read_bytes().replace(b"(8192, 0, )", b"(8192,4096)")
    with open(big, "wb") as file:
        file.write(header)
        file.truncate(len(header) + 8192 * 4096 * 4)
    ended = 0
    for number, delay in enumerate([0.01, 0.05, 0.1, 0.2]):
        for signal_number in (signal.SIGINT, signal.SIGKILL):
            (folder / "q.npy").write_text("before")
            process = subprocess.Popen([octet, "quantize", big, "-o", folder / "q.npy", "--threads",
                                        "1"], stdout=subprocess.DEVNULL)
            time.sleep(delay)
            process.send_signal(signal_number)
            code = process.wait(timeout=60)
            ended += code == -signal_number
            content = (folder / "q.npy").read_bytes()
            check(content == b"before" or len(content) == 8192 * 4096 + 128,
                  f"signal {signal_number}, {number}: {len(content)} bytes")
            left = [name for name in os.listdir(folder) if name.startswith(".octet")]
            check(signal_number == signal.SIGKILL or code == 0 or not left, f"Ctrl-C left {left}")
            for name in left:
                (folder / name).unlink()
    check(ended > 0, "no signal came in time")
    # A file that somebody cuts while it is read.
    process = subprocess.Popen([octet, "quantize", big, "-o", folder / "q.npy", "--threads", "1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(0.02)
    os.truncate(big, 256)
    said = process.communicate(timeout=60)[1]
    check((process.returncode == 2 and "big.npy: " in said) or process.returncode == 0,
          f"a cut file: exit code {process.returncode}, {said}")


def main():
    octet = sys.argv[1]
    for part in (check_every_option, check_scales_of_models,
                 check_ambiguous_shapes, check_not_finite,
                 check_pow2, check_model, check_refused,
                 check_every_cut, check_full_disk, check_ended):
        with tempfile.TemporaryDirectory() as folder:
            part(octet, pathlib.Path(folder))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
