#!/usr/bin/env python3
"""Runs nvcc for one kernel and fails on anything that ptxas says, or does, that costs speed in silence.

usage: check_ptxas.py [--log FILE] -- NVCC ARGUMENTS...

Refused: spills, stack frames, any warning, and the notes of the C75xx family (WGMMA serialised,
setmaxnreg ignored). ptxas must have reported on at least one entry function, so a build without
`-Xptxas -v` is refused too. And a K loop whose descriptors are not in uniform registers, which
ptxas says nothing of: each WGMMA then waits for moves (docs/facts.md).
"""
import pathlib
import re
import struct
import subprocess
import sys

RULES = (
    (re.compile(r"[1-9]\d* bytes stack frame"), "a stack frame: an array is indexed at run time"),
    (re.compile(r"[1-9]\d* bytes spill (stores|loads)"), "registers spill to memory"),
    (re.compile(r"\bwarning\b", re.I), "a warning"),
    (re.compile(r"\bC75\d\d\b"), "a note of the C75xx family: WGMMA serialised or setmaxnreg ignored"),
    (re.compile(r"serializ", re.I), "WGMMA is serialised"),
)


def faults(text):
    found = []
    for line in text.splitlines():
        for pattern, meaning in RULES:
            if pattern.search(line):
                found.append(f"{meaning}: {line.strip()}")
                break
    if "Compiling entry function" not in text:
        found.append("ptxas reported on no entry function (is -Xptxas -v there?)")
    return found


# Low 12 bits of an instruction of sm_90: WGMMA of FP8 with both operands in shared memory, and the
# move from a vector to a uniform register.
QGMMA, R2UR, IN_BLOCK = 0x9F3, 0x2CA, 4


def code(cubin):
    """The first half of every instruction, section by section of an ELF file's code."""
    at, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", cubin, at + i * size) for i in range(count)]
    for name, _, _, _, offset, length in heads:
        start = heads[names][4] + name
        if cubin[start:cubin.index(b"\0", start)].startswith(b".text."):
            yield [word for word, in struct.iter_unpack("<Q8x", cubin[offset:offset + length])]


def moved_descriptors(cubin):
    """A fault where more than one such move stands between the WGMMA of a K-block."""
    multiplies = moves = between = 0
    for words in code(cubin):
        for word in words:
            if word & 0xFFF == R2UR:
                moves += 1
            elif word & 0xFFF == QGMMA:
                between += moves if multiplies % IN_BLOCK else 0
                multiplies, moves = multiplies + 1, 0
    if multiplies == 0 or multiplies % IN_BLOCK:
        return [f"{multiplies} WGMMA, not {IN_BLOCK} for every K-block: this check no longer reads the code right"]
    if between > multiplies // IN_BLOCK:
        return [f"descriptors in vector registers: {between} moves between {multiplies} WGMMA"]
    return []


def main(argv):
    log = None
    if argv[:1] == ["--log"]:
        log, argv = pathlib.Path(argv[1]), argv[2:]
    if argv[:1] != ["--"] or len(argv) < 2:
        sys.exit(__doc__)
    run = subprocess.run(argv[1:], capture_output=True, text=True)
    text = run.stdout + run.stderr
    if log:
        log.write_text(text)
    if run.returncode:
        sys.stderr.write(text)
        return run.returncode
    bad = faults(text)
    output = pathlib.Path(argv[argv.index("-o") + 1]) if "-o" in argv else None
    if output and output.suffix == ".cubin":
        bad += moved_descriptors(output.read_bytes())
    for fault in bad:
        sys.stderr.write(f"check_ptxas: {fault}\n")
    if bad and output:
        output.unlink(missing_ok=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
