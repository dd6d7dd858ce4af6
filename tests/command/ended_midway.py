#!/usr/bin/env python3
"""Every command that writes files, ended at every write: by kill -9, Ctrl-C, a full disk, a disk that is
read-only. The final name holds what it held before, or all that is new.

    ended_midway.py OCTET REFUSING_SYSTEM CANDIDATES.csv

REFUSING_SYSTEM is refusing_system.c, to be preloaded: it counts writes, so no clock decides where the end
comes. Exit code 1 and a line for each breach.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from files_support import Numbers, check, finish, run, succeed, write_npy, write_safetensors

SHIM = ""
ROWS, COLS = 300, 260  # several tiles of output each


def make_inputs(octet, folder, candidates):
    write_npy(folder / "x.npy", "F32", (ROWS, COLS), Numbers(1).list(ROWS * COLS))
    write_safetensors(folder / "f.safetensors", {
        f"{name}.weight": ("F32", [150, 130], Numbers(2).list(150 * 130)) for name in "ab"})
    (folder / "model").mkdir()
    shutil.copy(folder / "f.safetensors", folder / "model/model.safetensors")
    (folder / "model/config.json").write_text("{}")
    succeed(octet, "quantize", folder / "x.npy", "-o", folder / "x8.safetensors:x")
    succeed(octet, "quantize", folder / "model", "-o", folder / "model8")
    shutil.copy(candidates, folder / "c.csv")


# What is asked, and the names that appear.
COMMANDS = [
    ("quantize x.npy -o new/q.npy", ["q.npy", "q_scale_inv.npy"]),
    ("quantize x.npy -o new/q.safetensors", ["q.safetensors"]),
    ("quantize f.safetensors:a.weight -o new/q.npy --block 1x128", ["q.npy", "q_scale_inv.npy"]),
    ("quantize model -o new/m8", ["m8"]),
    ("dequantize x8.safetensors:x -o new/w.npy", ["w.npy"]),
    ("dequantize x8.safetensors:x -o new/w.safetensors --to bf16", ["w.safetensors"]),
    ("dequantize model8 -o new/m16", ["m16"]),
    ("gemm x.npy x8.safetensors:x -o new/d.npy", ["d.npy"]),
    ("gemm x.npy x.npy -o new/d.safetensors:y --out f32", ["d.safetensors"]),
    ("tune --from c.csv -o new/t.txt", ["t.txt"]),
]


def ask(octet, folder, command, settings, **options):
    environment = dict(os.environ)
    if settings is not None:
        environment.update(LD_PRELOAD=SHIM, **{f"OCTET_TEST_{k}": str(v) for k, v in settings.items()})
    return run(octet, *command.split(), cwd=folder, env=environment, **options)


def state(folder, names):
    """What stands under the final names."""
    def content(path):
        if path.is_dir():
            return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}
        return path.read_bytes() if path.exists() else None
    return [content(folder / "new" / name) for name in names]


def reset(folder, names, old):
    shutil.rmtree(folder / "new", ignore_errors=True)
    (folder / "new").mkdir()
    for name in names if old else []:
        if "." in name:  # files are replaced, folders must be new
            (folder / "new" / name).write_text("before")


def left_over(folder):
    return [name for name in os.listdir(folder / "new") if name.startswith(".octet")]


def check_every_write(octet, folder, command, names):
    reset(folder, names, False)
    result = ask(octet, folder, command, None)
    check(result.returncode == 0, command, result)
    whole = state(folder, names)
    endings = [("kill -9", {"SIGNAL": int(signal.SIGKILL)}), ("Ctrl-C", {"SIGNAL": int(signal.SIGINT)}),
               ("full", {})]
    for ending, settings in endings:
        for at in range(1, 1000):
            reset(folder, names, at % 2 == 0)
            before = state(folder, names)
            key = "FULL" if ending == "full" else "SIGNAL_AT_WRITE"
            result = ask(octet, folder, command, {**settings, key: at})
            after, what = state(folder, names), f"{command}: {ending} at write {at}"
            if result.returncode == 0:
                check(after == whole, f"{what}: not all of it", result)
                break
            check(after in (before, whole), f"{what}: neither the old nor the new", result)
            if ending == "full":
                check(result.returncode == 1 and "No space left on device" in result.stderr and
                      len(result.stderr.strip().splitlines()) == 1, what, result)
            else:
                check(result.returncode == -settings["SIGNAL"], what, result)
            check(ending == "kill -9" or not left_over(folder), f"{what}: left {left_over(folder)}")
        check(at > 1, f"{command}: {ending}: no write was seen")
        # What kill -9 left does not stand in the way.
        reset(folder, names, False)


def check_after_a_kill(octet, folder):
    command, names = COMMANDS[0]
    reset(folder, names, True)
    ask(octet, folder, command, {"SIGNAL": int(signal.SIGKILL), "SIGNAL_AT_WRITE": 2})
    check(len(left_over(folder)) == 2, f"kill -9 leaves the temporary names: {left_over(folder)}")
    result = ask(octet, folder, command, None)
    check(result.returncode == 0 and state(folder, names)[0][:6] == b"\x93NUMPY", "after kill -9", result)


def check_mounted(octet, folder):
    """A real disk that is full, and one that is read-only; root mounts them where nobody else sees it."""
    for command, names in COMMANDS:
        outputs = " ".join(names)
        script = f"""set -e
mount -t tmpfs -o size=8k tmpfs new
cp -r keep/. new
set +e; "$0" {command}; code=$?; set -e
[ $code -eq 1 ] || {{ echo "full: exit code $code"; exit 9; }}
ls -A new | sort | diff - keep.txt
mount -o remount,ro new
set +e; "$0" {command}; code=$?; set -e
[ $code -eq 2 ] || {{ echo "read-only: exit code $code"; exit 9; }}
ls -A new | sort | diff - keep.txt
"""
        reset(folder, names, True)
        shutil.rmtree(folder / "keep", ignore_errors=True)
        shutil.copytree(folder / "new", folder / "keep")
        (folder / "keep.txt").write_text("".join(f"{n}\n" for n in sorted(os.listdir(folder / "keep"))))
        result = subprocess.run(["unshare", "--mount", "sh", "-c", script, octet], cwd=folder, text=True,
                                capture_output=True, timeout=120, check=False)
        check(result.returncode == 0, f"{command} on {outputs}: {result.stdout}", result)
        said = result.stderr.strip().splitlines()
        check(len(said) == 2 and "No space left on device" in said[0] and
              "Read-only file system" in said[1], f"{command}: says {said}")


def can_mount(folder):
    return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", str(folder)],
                          capture_output=True, timeout=60, check=False).returncode == 0


def main():
    global SHIM
    octet, SHIM, candidates = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_inputs(octet, folder, candidates)
        for command, names in COMMANDS:
            check_every_write(octet, folder, command, names)
        check_after_a_kill(octet, folder)
        if shutil.which("unshare") and can_mount(folder / "model"):
            check_mounted(octet, folder)
        else:
            print("SKIPPED: real disks: nobody but root mounts them")
    return finish()


if __name__ == "__main__":
    sys.exit(main())
