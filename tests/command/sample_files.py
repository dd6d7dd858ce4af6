#!/usr/bin/env python3
"""octet demo on samples of every valid shape and place, and on what is no sample; octet's output lost.

    sample_files.py OCTET

A .safetensors file may pad its header to any multiple of 8, start tensors at any byte and hold rows of
any length, zero included: all of that is computed. What cannot be computed is refused with a sentence
that names the file. Exit code 1 and a line for each breach.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

LARGEST = b"\xe0\x43"  # 448 in BF16, the largest e4m3: its scale is 1
failures = []


def check(right, what, result=None):
    if not right:
        said = "" if result is None else f": exit code {result.returncode}, {result.stderr.strip()}"
        failures.append(f"{what}{said}")


def run(octet, *arguments, **options):
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([octet, *arguments], stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False, stdin=subprocess.DEVNULL, **options)


def sample(m, n, k, element=LARGEST, padding=0, before=0, shapes=None):
    """A file of one layer; `padding` spaces behind the header, `before` bytes before the tensors."""
    a, b = n * k * 2, m * k * 2
    header = {"l.weight": {"dtype": "BF16", "shape": [n, k], "data_offsets": [before, before + a]},
              "l.input": {"dtype": "BF16", "shape": [m, k],
                          "data_offsets": [before + a, before + a + b]}}
    if shapes:
        header["l.input"]["shape"], header["l.weight"]["shape"] = shapes
    text = json.dumps(header).encode() + b" " * padding
    return struct.pack("<Q", len(text)) + text + b"\0" * before + element * ((a + b) // 2)


def demo(octet, folder, data, *arguments):
    path = pathlib.Path(folder) / "minilm_ffn.safetensors"
    path.write_bytes(data)
    return run(octet, "demo", "--backend", "cpu", "--samples", folder, *arguments)


def results(result):
    return json.loads(result.stdout)[0]["results"] if result.returncode == 0 else []


def check_valid(octet, folder):
    for m, n, k in [(0, 4, 128), (4, 0, 128), (4, 4, 0), (0, 0, 0), (1, 1, 1), (3, 5, 128),
                    (4, 4, 100), (4, 130, 7), (130, 4, 300)]:
        for padding in (0, 1, 2, 5, 8):  # tensors at any byte
            what = f"m {m} n {n} k {k}, header + {padding}"
            result = demo(octet, folder, sample(m, n, k, padding=padding), "--json")
            check(result.returncode == 0, what, result)
            rows = results(result)
            check(len(rows) == 4, f"{what}: {len(rows)} methods")
            for row in rows:  # nothing is lost
                check(row["relative_error"] == 0 and row["worst_element"] == 0 and
                      row["difference"] == 0, f"{what}: {row}")


def check_values(octet, folder):
    for name, element in [("zeros", b"\0\0"), ("NaN", b"\xc0\x7f"), ("negative NaN", b"\xc0\xff"),
                          ("infinity", b"\x80\x7f")]:
        data = sample(4, 4, 128, element=element)
        table = demo(octet, folder, data)
        check(table.returncode == 0, name, table)
        check("-nan" not in table.stdout, f"{name}: the table has a -nan")
        rows = results(demo(octet, folder, data, "--json"))
        check(len(rows) == 4, f"{name}: no JSON")
        for row in rows:
            figures = [row["relative_error"], row["difference"], row["worst_element"]]
            want = [0, 0, 0] if name == "zeros" else [None] * 3
            check(figures == want, f"{name}: {row}")


def check_refused(octet, folder):
    huge = 2 ** 40
    for what, data, says in [
            ("a huge empty product", sample(4, 4, 0, shapes=([huge, 0], [4, 0])), "at most"),
            ("two huge empty sides", sample(4, 4, 0, shapes=([2 ** 30, 0], [2 ** 30, 0])), "at most"),
            ("bytes before the tensors", sample(4, 4, 128, before=3), "has 3 bytes between its header and"),
            ("bytes before the tensors", sample(4, 4, 128, padding=3, before=1), "must have none there"),
            ("bytes behind the tensors", sample(4, 4, 128) + b"end", "has 3 bytes behind tensor l."),
            ("no layer", struct.pack("<Q", 2) + b"{}", "holds no layer"),
            ("another type", sample(1, 1, 1).replace(b"BF16", b"U16 ", 1), "")]:
        result = demo(octet, folder, data)
        check(result.returncode == 2 and says in result.stderr and
              "minilm_ffn.safetensors" in result.stderr and
              len(result.stderr.strip().splitlines()) == 1, what, result)
    path = pathlib.Path(folder) / "minilm_ffn.safetensors"
    path.unlink()
    os.mkfifo(path)
    result = run(octet, "demo", "--samples", folder)
    check(result.returncode == 2 and "is not a regular file" in result.stderr, "a FIFO", result)


def check_lost_output(octet):
    for arguments in (["info"], ["info", "--json"], ["plan", "dense_m64n7168k2048"], ["--help"],
                      ["--version"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = run(octet, *arguments, stdout=full)
        check(result.returncode == 1 and "standard output" in result.stderr,
              f"{arguments} into a full device", result)
        closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", octet, *arguments], check=False,
                                stderr=subprocess.PIPE, text=True, timeout=60)
        check(closed.returncode == 1 and "standard output" in closed.stderr,
              f"{arguments} into a closed descriptor", closed)
        check(run(octet, *arguments).returncode == 0, f"{arguments}")
    result = run(octet, "bogus")
    check(result.returncode == 2 and 'subcommand "bogus"' in result.stderr and
          "demo" in result.stderr, "octet bogus", result)


def main():
    octet = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        check_valid(octet, folder)
        check_values(octet, folder)
        check_refused(octet, folder)
    check_lost_output(octet)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
