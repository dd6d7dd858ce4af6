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


def check_renames(octet, folder):
    """Codes and scales are two files: both are new, or both are as they were."""
    write_npy(folder / "w.npy", "F32", (200, 200), Numbers(5).list(40000))
    pair = [folder / "q.npy", folder / "q_scale_inv.npy"]
    quantize = ("quantize", folder / "w.npy", "-o", pair[0])
    for exchange in ({}, {"NO_EXCHANGE": 1}):
        for before in ([b"codes", b"scales"], [b"codes", None], [None, b"scales"], [None, None]):
            for settings in ({"RENAME": 1}, {"RENAME": 2}, {"SIGNAL": 2, "SIGNAL_AT": 2},
                             {"SIGNAL": 15, "SIGNAL_AT": 2},
                             {"SIGNAL": 15, "SIGNAL_AT": 2, "THREADS": 0},
                             {"SIGNAL": 2, "SIGNAL_AT": 2, "RENAME": 2}):
                what = f"{settings} {exchange} before {before}"
                for path, content in zip(pair, before):
                    path.unlink(missing_ok=True)
                    if content is not None:
                        path.write_bytes(content)
                result = refusing(octet, {**settings, **exchange}, *quantize)
                after = [path.read_bytes() if path.exists() else None for path in pair]
                if "RENAME" in settings:
                    check(after == before, f"{what}: not as before", result)
                    if "SIGNAL" not in settings:
                        check(result.returncode == 1 and
                              "cannot be renamed into place: Operation not permitted; no output was "
                              "changed" in result.stderr, what, result)
                else:
                    check(all(content is not None and content.startswith(b"\x93NUMPY")
                              for content in after), f"{what}: not both new", result)
                    check(result.returncode in (0, -settings["SIGNAL"]), what, result)
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
    for part in (check_threads, check_renames):
        with tempfile.TemporaryDirectory() as folder:
            part(octet, pathlib.Path(folder))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
