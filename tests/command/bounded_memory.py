#!/usr/bin/env python3
"""Files larger than the memory that the command may take: quantised, dequantised and multiplied.

    bounded_memory.py OCTET

Inputs are sparse, so they take no disk. Memory is what the process allocates; files that it maps are the
system's to keep or drop. Exit code 1 and a line for each breach.
"""

import json
import os
import pathlib
import resource
import sys
import tempfile

from files_support import check, finish, run, write_npy

ROWS, COLS = 60000, 4096  # 983 MB of FP32, 246 MB of codes
RANGE = (1 << 26) // COLS  # rows of B that `octet gemm` takes at a time
OWNED = (0, 1, RANGE - 1, RANGE, RANGE + 5, ROWS - 1)  # rows that are not zero
MB = 1 << 20


def write_sparse(path, rows, filled):
    """FP32 [rows, COLS]: of row r the first four elements are filled[r], all else is a hole."""
    write_npy(path, "F32", (10 ** 7, 0), [])  # a header of the same length
    header = path.read_bytes().replace(b"(10000000, 0, )", f"({rows:6},{COLS:6})".encode())
    assert len(header) == path.stat().st_size, header
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(len(header) + rows * COLS * 4)
        for row, value in filled.items():
            file.seek(len(header) + row * COLS * 4)
            write_npy(path.with_name("piece.npy"), "F32", (4,), [value] * 4)
            file.write(path.with_name("piece.npy").read_bytes()[-16:])


def limited(octet, megabytes, *arguments):
    limit = megabytes * MB
    result = run(octet, *arguments, "--json", preexec_fn=lambda: resource.setrlimit(  # pylint: disable=W1509
        resource.RLIMIT_DATA, (limit, limit)))
    check(result.returncode == 0, f"octet {' '.join(map(str, arguments))} with {megabytes} MB", result)
    return json.loads(result.stdout) if result.returncode == 0 else None


def check_conversions(octet, folder):
    big, codes = folder / "big.npy", folder / "codes.npy"
    write_sparse(big, ROWS, {row: 1.0 for row in OWNED})
    for options in ((), ("--block", "1x128"), ("--block", "1x128", "--axis", "0", "--transpose")):
        limited(octet, 112, "quantize", big, "-o", codes, "--threads", "2", *options)
        check(codes.stat().st_size == 128 + ROWS * COLS, f"{options}: {codes.stat().st_size} bytes")
    write_sparse(big, ROWS // 4, {0: 1.0})  # 246 MB again
    if limited(octet, 112, "quantize", big, "-o", codes, "--threads", "2"):
        limited(octet, 112, "dequantize", codes, "-o", folder / "back.npy", "--threads", "2")
        check((folder / "back.npy").stat().st_size == 128 + ROWS // 4 * COLS * 4, "dequantise")


def bf16_of(path, cols, row, col):
    with open(path, "rb") as file:
        file.seek(128 + (row * cols + col) * 2)
        return int.from_bytes(file.read(2), "little")


def check_products(octet, folder):
    """A large B, and a large A: D is right at every edge of what is taken at a time."""
    small, big, d = folder / "small.npy", folder / "big.npy", folder / "d.npy"
    rows = 16
    write_sparse(small, rows, {row: 2.0 ** (row % 8) for row in range(rows)})
    write_sparse(big, ROWS, {row: 1.0 for row in OWNED})
    bits = [((127 + 2 + row % 8) << 7) for row in range(rows)]  # of 4 * 2^(row % 8) in BF16
    report = limited(octet, 224, "gemm", small, big, "-o", d, "--threads", "2")
    if report:
        # Every number is a power of two, so nothing is lost: an error is one of places.
        check(report["error"]["relative_error"] == 0, f"large B: {report['error']}")
        for row in range(rows):
            for col in (*OWNED, 2, RANGE - 2, RANGE + 1, ROWS - 2):
                want = bits[row] if col in OWNED else 0
                got = bf16_of(d, ROWS, row, col)
                check(got == want, f"large B: D[{row},{col}] = {got:#x}: wanted {want:#x}")
    report = limited(octet, 224, "gemm", big, small, "-o", d, "--threads", "2", "--error", "full")
    if report:
        check(report["error"]["relative_error"] == 0 and report["error"]["rows"] == ROWS,
              f"large A: {report['error']}")
        for row in (*OWNED, 2, RANGE - 2, RANGE + 1, ROWS - 2):
            for col in range(rows):
                want = bits[col] if row in OWNED else 0
                got = bf16_of(d, rows, row, col)
                check(got == want, f"large A: D[{row},{col}] = {got:#x}: wanted {want:#x}")


def main():
    octet = os.path.abspath(sys.argv[1])
    for part in (check_conversions, check_products):
        with tempfile.TemporaryDirectory() as folder:
            part(octet, pathlib.Path(folder))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
