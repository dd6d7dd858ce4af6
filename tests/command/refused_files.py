#!/usr/bin/env python3
"""octet where the system refuses what it usually gives: threads, renames, memory.

    refused_files.py OCTET REFUSING_SYSTEM SAMPLES

REFUSING_SYSTEM is refusing_system.c, to be preloaded. Exit code 1 and a line for each breach.
"""

import json
import os
import pathlib
import sys
import tempfile

from files_support import Numbers, check, finish, run, write_npy

SHIM = SAMPLES = ""


def refusing(octet, settings, *arguments):
    environment = dict(os.environ, LD_PRELOAD=SHIM,
                       **{"OCTET_TEST_" + name: str(value) for name, value in settings.items()})
    return run(octet, *arguments, env=environment)


def no_temporary(folder, what):
    left = [name for name in os.listdir(folder) if name.startswith(".octet")]
    check(not left, f"{what}: left {left}")


def check_threads(octet, folder):
    """The same result from any number of threads, none included."""
    m, n, k = 40, 300, 260
    write_npy(folder / "x.npy", "F32", (m, k), Numbers(3).list(m * k))
    write_npy(folder / "w.npy", "F32", (n, k), Numbers(4).list(n * k))
    gemm = ("gemm", folder / "x.npy", folder / "w.npy", "-o", folder / "d.npy", "--error", "full",
            "--json")
    demo = ("demo", "--samples", SAMPLES, "--json")
    quantize = ("quantize", folder / "w.npy", "-o", folder / "q.npy", "--json")
    for arguments, outputs in ((gemm, ["d.npy"]), (demo, []), (quantize, ["q.npy", "q_scale_inv.npy"])):
        usual = run(octet, *arguments)
        check(usual.returncode == 0, f"{arguments[0]}", usual)
        want = [(folder / name).read_bytes() for name in outputs]
        report = numbers_of(usual)
        for threads in (1,) if arguments == demo else (0, 1, 2):  # the demo takes its time
            what = f"{arguments[0]} with {threads} threads"
            result = refusing(octet, {"THREADS": threads}, *arguments)
            check(result.returncode == 0 and numbers_of(result) == report and
                  [(folder / name).read_bytes() for name in outputs] == want, what, result)
            no_temporary(folder, what)


def numbers_of(result):
    """What it reports, without times."""
    if result.returncode != 0:
        return None
    drop = lambda value: {key: drop(entry) for key, entry in value.items()
                          if key not in ("milliseconds", "seconds", "plan")} \
        if isinstance(value, dict) else [drop(x) for x in value] if isinstance(value, list) else value
    return drop(json.loads(result.stdout))


def main():
    global SHIM, SAMPLES
    octet, SHIM, SAMPLES = sys.argv[1:]
    for part in (check_threads,):
        with tempfile.TemporaryDirectory() as folder:
            part(octet, pathlib.Path(folder))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
