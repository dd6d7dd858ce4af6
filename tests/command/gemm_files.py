#!/usr/bin/env python3
"""octet gemm on files: every kind of operand, both backends, and what cannot be multiplied.

    gemm_files.py OCTET OCTET_ON_FAKE

Operands are small integers and scales are powers of two where the product must be exact: then it is
compared with == . OCTET_ON_FAKE has a device that is made up. Exit code 1 and a line for each breach.
"""

import itertools
import os
import pathlib
import resource
import struct
import sys
import tempfile

from files_support import (Numbers, bf16, check, e4m3_value, finish, floats, read_npy,
                           read_safetensors, refused, run, succeed, write_npy, write_safetensors)

# 0, 1, 2, -1, 0.5 in e4m3, each of which a sum of products keeps exactly.
CODES = [0x00, 0x38, 0x40, 0xb8, 0x30]


def codes(seed, count):
    return [CODES[int(abs(x) * 37) % len(CODES)] for x in Numbers(seed).list(count)]


def product(a, sa, b, sb, m, n, k, bias=None):
    """a, b codes; sa(row, kb), sb(row, kb) scales; in exact arithmetic."""
    x = [[e4m3_value(a[i * k + j]) * sa(i, j // 128) for j in range(k)] for i in range(m)]
    y = [[e4m3_value(b[i * k + j]) * sb(i, j // 128) for j in range(k)] for i in range(n)]
    return [sum(p * q for p, q in zip(row, col)) + (bias[j] if bias else 0)
            for row in x for j, col in enumerate(y)]


def check_quantised(octet, folder, device):
    m, n, k = 5, 131, 259  # nothing a multiple of what kernels want
    a, b = codes(1, m * k), codes(2, n * k)
    sa = [2.0 ** (i % 3 - 1) for i in range(m * 3)]
    square = [2.0 ** (i % 4 - 2) for i in range(2 * 3)]
    rows = [2.0 ** (i % 3) for i in range(n)]
    fine = [2.0 ** (i % 5 - 2) for i in range(n * 3)]
    bias = [float(i % 7 - 3) for i in range(n)]
    write_npy(folder / "bias.npy", "F32", (n,), bias)
    write_npy(folder / "bias16.npy", "F16", (n,), bias)
    write_safetensors(folder / "a.safetensors", {"x": ("F8_E4M3", [m, k], a),
                                                 "x_scale_inv": ("F32", [m, 3], sa)})
    by_row = lambda scales: lambda i, kb: scales[i * 3 + kb]
    for what, name, scale, sb in [
            ("squares", "_scale_inv", ("F32", [2, 3], square), lambda i, kb: square[i // 128 * 3 + kb]),
            ("a scalar", "_scale", ("BF16", [], [0.5]), lambda i, kb: 0.5),
            ("rows", "_scale", ("F32", [n, 1], rows), lambda i, kb: rows[i]),
            ("runs", "_scale_inv", ("F16", [n, 3], fine), by_row(fine))]:
        write_safetensors(folder / "m.safetensors", {"l.weight": ("F8_E4M3", [n, k], b),
                                                     "l.weight" + name: scale})
        want = product(a, by_row(sa), b, sb, m, n, k, bias)
        for backend in ("cpu", "auto"):
            report = succeed(octet, "gemm", f"{folder}/a.safetensors:x",
                             f"{folder}/m.safetensors:l.weight", "-o", folder / "d.npy", "--out", "f32",
                             "--bias", folder / "bias.npy", "--backend", backend)
            descr, shape, data = read_npy(folder / "d.npy")
            check(descr == "<f4" and shape == [m, n] and floats(data) == want,
                  f"{what}, {backend}: D is wrong")
            on_device = device and backend == "auto"
            check(report["backend"] == ("Fake H200" if on_device else "CPU") and
                  bool(report["why_cpu"]) == (backend == "auto" and not on_device) and
                  report["error"] is None and (report["m"], report["n"], report["k"]) == (m, n, k),
                  f"{what}, {backend}: {report}")
    # The same operands from .npy, scales beside them, given, and as a number.
    write_npy(folder / "a.npy", "F8_E4M3", (m, k), a)
    write_npy(folder / "a_scale_inv.npy", "F32", (m, 3), sa)
    write_npy(folder / "b.npy", "F8_E4M3", (n, k), b)
    write_npy(folder / "s.npy", "F32", (n, 3), fine)
    for arguments, sb in [(["--sfb", folder / "s.npy"], by_row(fine)),
                          (["--sfb", "0.25"], lambda i, kb: 0.25)]:
        succeed(octet, "gemm", folder / "a.npy", folder / "b.npy", "-o",
                f"{folder}/d.safetensors:y", "--out", "f16", "--dtype-a", "e4m3", *arguments, "--bias",
                folder / "bias16.npy")
        want = product(a, by_row(sa), b, sb, m, n, k, bias)
        check(read_safetensors(folder / "d.safetensors") ==
              {"y": ("F16", [m, n], struct.pack(f"<{m * n}e", *want))}, f"{arguments}: D is wrong")
    # A's rows may share scales of squares.
    report = succeed(octet, "gemm", f"{folder}/m.safetensors:l.weight", folder / "a.npy", "-o",
                     folder / "d.npy", "--out", "f32", "--sfa", "0.5", "--dtype-b", "e4m3")
    want = product(b, lambda i, kb: 0.5, a, by_row(sa), n, m, k)
    check(floats(read_npy(folder / "d.npy")[2]) == want and
          report["a_is"] == "e4m3 with --sfa 0.5 (one for all)",
          f"A with one scale: {report.get('a_is')}")


def check_unquantised(octet, folder):
    m, n, k = 33, 140, 300
    x, w = Numbers(7).list(m * k), Numbers(8).list(n * k)
    exact = [sum(x[i * k + q] * w[j * k + q] for q in range(k)) for i in range(m) for j in range(n)]
    write_npy(folder / "x.npy", "F32", (m, k), x)
    write_safetensors(folder / "w.safetensors", {"w": ("BF16", (n, k), w)})
    report = succeed(octet, "gemm", folder / "x.npy", folder / "w.safetensors", "-o",
                     folder / "d.npy", "--out", "f32")
    got = floats(read_npy(folder / "d.npy")[2])
    error = (sum((p - q) ** 2 for p, q in zip(got, exact)) / sum(q * q for q in exact)) ** 0.5
    said = report["error"]
    check(0.005 < error < 0.05 and abs(said["relative_error"] / error - 1) < 1e-6 and
          (said["rows"], said["columns"], said["against"]) == (m, n, "the unquantised product") and
          abs(said["worst_element"] - max(abs(p - q) for p, q in zip(got, exact))) < 1e-6,
          f"error {error}: {said}")
    # Quantised before or on the way: the same bits; and the other types are D rounded.
    succeed(octet, "quantize", folder / "x.npy", "-o", folder / "q.safetensors", "--block", "1x128")
    succeed(octet, "quantize", folder / "w.safetensors", "-o", folder / "p.safetensors")
    for a, b in itertools.product([folder / "x.npy", folder / "q.safetensors"],
                                  [folder / "w.safetensors", folder / "p.safetensors"]):
        report = succeed(octet, "gemm", a, b, "-o", folder / "e.npy", "--error", "full")
        descr, shape, data = read_npy(folder / "e.npy")
        check(descr == "<u2" and shape == [m, n] and
              data == struct.pack(f"<{m * n}H", *map(bf16, got)), f"{a.name} {b.name}: D differs")
        both = a.name == "q.safetensors" and b.name == "p.safetensors"
        check((report["error"] is None) == both, f"{a.name} {b.name}: error {report['error']}")
    text = run(octet, "gemm", folder / "x.npy", folder / "w.safetensors", "-o", folder / "e.npy")
    check(f"D[{m}, {n}] = A[{m}, {k}] * B[{n}, {k}]^T" in text.stdout and "plan" in text.stdout and
          "(all outputs)" in text.stdout, f"text: {text.stdout}")
    for rows, cols in [(0, k), (m, 0)]:
        write_npy(folder / "none.npy", "F32", (rows, cols), [])
        write_npy(folder / "other.npy", "F32", (n, cols), w[:n * cols])
        succeed(octet, "gemm", folder / "none.npy", folder / "other.npy", "-o", folder / "e.npy",
                "--out", "f32")
        check(read_npy(folder / "e.npy")[1:] == ([rows, n], bytes(4 * rows * n)), f"{rows} x {cols}")


def check_refused(octet, fake, folder):
    write_npy(folder / "x.npy", "F32", (4, 8), [1.0] * 32)
    write_npy(folder / "short.npy", "F32", (4, 7), [1.0] * 28)
    write_npy(folder / "bytes.npy", "U8", (4, 8), [0] * 32)
    write_npy(folder / "bias.npy", "F32", (3,), [0.0] * 3)
    x, d = folder / "x.npy", folder / "d.npy"
    for says, *arguments in [
            ("both must have K columns", x, folder / "short.npy", "-o", d),
            ("bytes.npy: holds 8-bit integers: give --dtype-b e4m3", x, folder / "bytes.npy", "-o", d),
            ("there is no", x, folder / "bytes.npy", "-o", d, "--dtype-b", "e4m3"),
            ("which has no scales", x, x, "-o", d, "--sfa", "1"),
            ("--sfb 1e999: must be at most 3.4028235e+38 in magnitude, the largest number of FP32",
             x, folder / "bytes.npy", "-o", d, "--dtype-b", "e4m3", "--sfb", "1e999"),
            ("must have one of the shapes [4, 1], [1, 1], [1, 4], one value a row, or one value",
             x, folder / "bytes.npy", "-o", d, "--dtype-b", "e4m3", "--sfb", folder / "short.npy"),
            ("one value for each of B's 4 rows", x, x, "-o", d, "--bias", folder / "bias.npy"),
            ("must end in .npy or .safetensors", x, x, "-o", folder / "d.txt"),
            ("cannot be opened", x, folder / "none.npy", "-o", d)]:
        refused(octet, says, "gemm", *arguments)
    refused(octet, "cannot be written in", "gemm", x, x, "-o", folder / "none/d.npy")
    result = run(octet, "gemm", x, x, "-o", d, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (64, 64)))
    check(result.returncode == 1 and "d.npy: cannot be written" in result.stderr, "full", result)
    environment = dict(os.environ, OCTET_FAKE_DEVICE="none")
    result = run(fake, "gemm", x, x, "-o", d, "--backend", "cuda", env=environment)
    check(result.returncode == 3 and not d.exists(), "no device", result)
    environment["OCTET_FAKE_DEVICE"] = "fault"
    result = run(fake, "gemm", x, x, "-o", d, "--backend", "cuda", env=environment)
    check(result.returncode == 1 and not d.exists(), "a device that fails", result)
    environment["OCTET_FAKE_DEVICE"] = "hang"
    result = run(fake, "gemm", x, x, "-o", d, "--backend", "cuda", env=environment)
    check(result.returncode == 1 and "so it hangs" in result.stderr and not d.exists(), "a hang",
          result)
    left = [name for name in os.listdir(folder) if name.startswith((".octet", "d."))]
    check(not left, f"left behind: {left}")


def main():
    octet, fake = sys.argv[1:]
    for part in (lambda folder: check_quantised(octet, folder, False),
                 lambda folder: check_quantised(fake, folder, True),
                 lambda folder: check_unquantised(octet, folder),
                 lambda folder: check_unquantised(fake, folder),
                 lambda folder: check_refused(octet, fake, folder)):
        with tempfile.TemporaryDirectory() as folder:
            part(pathlib.Path(folder))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
