#!/usr/bin/env python3
"""Runs nvcc for one kernel and fails on anything ptxas says that costs speed in silence.

usage: check_ptxas.py [--log FILE] -- NVCC ARGUMENTS...

Refused: spills, stack frames, any warning, and the notes of the C75xx family (WGMMA serialised,
setmaxnreg ignored). ptxas must have reported on at least one entry function, so a build without
`-Xptxas -v` is refused too.
"""
import pathlib
import re
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
    for fault in bad:
        sys.stderr.write(f"check_ptxas: {fault}\n")
    if bad:
        output = argv[argv.index("-o") + 1] if "-o" in argv else None
        if output:
            pathlib.Path(output).unlink(missing_ok=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
