#!/usr/bin/env python3
"""octet where the system refuses what it usually gives: threads, renames, memory.

    refused_files.py OCTET REFUSING_SYSTEM SAMPLES CANDIDATES

REFUSING_SYSTEM is refusing_system.c, to be preloaded. Exit code 1 and a line for each breach.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

from files_support import (Numbers, check, finish, refused, run, succeed, write_npy,
                           write_safetensors)

SHIM = SAMPLES = CANDIDATES = ""

LONG = "12345678901234567890123"
# JSON of which a document holds one name of two, or a float for an integer.
UNKEPT = {
    '{"a": 1, "a": 1}': '"a" twice in one object: must have it once',
    '{"a": [1, {"b": {"c": 1, "d": {"c": 2}, "c": 2}}]}': '"c" twice in one object: must have it once',
    '{"a": %s}' % LONG: f"the integer {LONG}: must be from -9223372036854775808 to 18446744073709551615",
    '{"a": [{}, -9223372036854775809]}': "the integer -9223372036854775809: must be from",
    '{"a": 18446744073709551616}': "the integer 18446744073709551616: must be from",
}


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


def check_at_the_start(octet, folder):
    """What cannot end well is refused before the work, in a sentence that names it."""
    weights = {"l.weight": ("F32", [4, 4], [1.0] * 16)}
    model = folder / "model"
    model.mkdir()
    write_safetensors(model / "model.safetensors", weights)
    out = folder / "out"
    for content, says in {'{"a": NaN}': "from character 7 on", '{"a": Infinity}': "from character 7 on",
                          '{"a": 1e999}': "with numbers that a double holds", "{": "from character 2 on",
                          "": "from character 1 on", '{"a": 1}x': "from character 9 on",
                          "\xff": "from character 1 on",
                          '{"a": 1}\0{"b": 2}': "from character 9 on"}.items():
        (model / "config.json").write_bytes(content.encode("latin-1"))
        refused(octet, f"config.json: is not JSON {says}", "quantize", model, "-o", out)
    # Deeper than a stack has room for: printed and destroyed by recursion.
    deep = '{"a":' * 300000 + "1" + "}" * 300000
    for content in (deep, '{"a":' + "[" * 1000000 + "]" * 1000000 + "}"):
        (model / "config.json").write_text(content)
        refused(octet, "config.json: nests deeper than 128 levels", "quantize", model, "-o", out)
    # What a document would lose.
    for content, says in UNKEPT.items():
        (model / "config.json").write_text(content)
        refused(octet, f"config.json: has {says}", "quantize", model, "-o", out)
    (model / "config.json").unlink()
    index = model / "model.safetensors.index.json"
    index.write_text('{"metadata": {"x": %s}, "weight_map": {"l.weight": "model.safetensors"}}' % deep)
    refused(octet, "index.json: nests deeper than 128 levels", "quantize", model, "-o", out)
    for content, says in UNKEPT.items():
        index.write_text('{"metadata": {"x": %s}, "weight_map": {"l.weight": "model.safetensors"}}' % content)
        refused(octet, f"index.json: has {says}", "quantize", model, "-o", out)
    index.write_text('{"weight_map": {"l.weight": "model.safetensors", "l.weight": "other.safetensors"}}')
    refused(octet, 'index.json: has "l.weight" twice in one object: must have it once', "quantize", model,
            "-o", out)
    # What a shard has lost stays named.
    index.write_text('{"weight_map": {"l.weight": "model.safetensors", "m.weight": "model.safetensors"}}')
    refused(octet, "model.safetensors: has no tensor m.weight", "quantize", model, "-o", out)
    for metadata in ("[]", "1", '"x"'):
        index.write_text('{"metadata": %s, "weight_map": {"l.weight": "model.safetensors"}}' % metadata)
        refused(octet, f"index.json: has the metadata {metadata}: must be an object", "quantize", model,
                "-o", out)
    index.unlink()
    for name in (".", folder / "x" / ".."):
        refused(octet, "must be", "quantize", model, "-o", name)
    refused(octet, "File name too long", "quantize", model, "-o", folder / ("v" * 300))
    write_npy(folder / "x.npy", "F32", (4, 4), [1.0] * 16)
    refused(octet, "--bias 5: must be a .npy file", "gemm", folder / "x.npy", folder / "x.npy", "-o",
            folder / "d.npy", "--bias", "5")
    # The codes' name fits, the scales' does not.
    refused(octet, "_scale_inv.npy: cannot be written: File name too long", "quantize",
            folder / "x.npy", "-o", folder / ("q" * 250 + ".npy"))
    refused(octet, "tensor __metadata__: the format keeps that name for itself", "gemm",
            folder / "x.npy", folder / "x.npy", "-o", f"{folder}/d.safetensors:__metadata__")
    refused(octet, "tensor __metadata__: the format keeps that name for itself", "quantize",
            folder / "x.npy", "-o", f"{folder}/d.safetensors:__metadata__")
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        mount = line.split()[1]
        if os.path.isdir(mount) and os.access(mount, os.R_OK) and not os.listdir(mount):
            refused(octet, "is a mount point", "quantize", model, "-o", mount)
            break
    check(sorted(os.listdir(folder)) == ["model", "x.npy"], f"written: {sorted(os.listdir(folder))}")


def check_sentences(octet, folder):
    """No exception of a library's shows through."""
    write_npy(folder / "x.npy", "F32", (2, 2), [1e30] * 4)
    result = run(octet, "gemm", folder / "x.npy", folder / "x.npy", "-o", folder / "d.npy", "--out",
                 "bf16")
    check(result.returncode == 0 and "error    none: D" in result.stdout, "an infinite D", result)
    report = json.loads(run(octet, "gemm", folder / "x.npy", folder / "x.npy", "-o",
                            folder / "d.npy", "--json").stdout)
    check(report["error"]["relative_error"] is None, f"an infinite D: {report['error']}")
    write_npy(folder / "bias.npy", "BF16", (2,), [1.0, 2.0])
    gemm = ("gemm", folder / "x.npy", folder / "x.npy", "-o", folder / "d.npy", "--bias",
            folder / "bias.npy")
    refused(octet, "give --dtype-bias bf16", *gemm)
    succeed(octet, *gemm, "--dtype-bias", "bf16")
    write_npy(folder / "bias.npy", "U8", (2,), [1, 2])
    refused(octet, "must be F32, BF16 or F16", *gemm)
    # Names may be any bytes; JSON is UTF-8.
    odd = os.fsencode(folder) + b"/q\xff.npy"
    result = subprocess.run([octet, "quantize", folder / "x.npy", "-o", odd, "--json"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    check(result.returncode == 0 and "q\ufffd.npy" in json.loads(result.stdout)["output"],
          f"a name that is not UTF-8: {result}")
    odd = os.fsencode(folder) + b"/t\xff.txt"
    result = subprocess.run([octet, "tune", "--from", CANDIDATES, "-o", odd, "--json"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    check(result.returncode == 0 and "t\ufffd.txt" in json.loads(result.stdout)["table"],
          f"a table's name that is not UTF-8: {result}")


def check_memory(octet, folder):
    """Too little of it is one sentence and exit code 1, wherever it runs out."""
    write_npy(folder / "x.npy", "F32", (2048, 2048), [1.0] * 2048 * 2048)
    gemm = ("gemm", folder / "x.npy", folder / "x.npy", "-o", folder / "d.npy", "--threads", "1")
    out = 0
    for megabytes in range(40, 160, 4):
        limit = megabytes << 20
        result = run(octet, *gemm, preexec_fn=lambda: resource.setrlimit(  # pylint: disable=W1509
            resource.RLIMIT_AS, (limit, limit)))
        if result.returncode in (0, 127):  # 127: too little for the loader
            continue
        out += result.returncode == 1
        check(result.returncode in (1, 2) and len(result.stderr.strip().splitlines()) == 1 and
              "std::" not in result.stderr and
              ("memory" in result.stderr or "refuses" in result.stderr), f"{megabytes} MiB", result)
        no_temporary(folder, f"{megabytes} MiB")
    check(out > 0, "memory never ran out")


def numbers_of(result):
    """What it reports, without times."""
    if result.returncode != 0:
        return None
    drop = lambda value: {key: drop(entry) for key, entry in value.items()
                          if key not in ("milliseconds", "seconds", "plan")} \
        if isinstance(value, dict) else [drop(x) for x in value] if isinstance(value, list) else value
    return drop(json.loads(result.stdout))


def main():
    global SHIM, SAMPLES, CANDIDATES
    octet, SHIM, SAMPLES, CANDIDATES = sys.argv[1:]
    for part in (check_at_the_start, check_sentences, check_memory, check_threads, check_renames):
        with tempfile.TemporaryDirectory() as folder:
            part(octet, pathlib.Path(folder))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
