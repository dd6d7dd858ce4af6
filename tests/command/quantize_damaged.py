#!/usr/bin/env python3
"""octet quantize and octet dequantize where something is wrong: input that is none or is damaged, a
full disk, an end in the middle.

    quantize_damaged.py OCTET

What is refused is named in one sentence, and the output is the old one or the new one and whole. Exit
code 1 and a line for each breach.
"""

import os
import resource
import signal
import subprocess
import sys
import time

from files_support import check, refused, run, run_parts, write_npy, write_safetensors


def check_refused(octet, folder):
    write_npy(folder / "x.npy", "F32", (4, 4), [1.0] * 16)
    write_npy(folder / "bits.npy", "BF16", (4, 4), [1.0] * 16)
    write_npy(folder / "codes.npy", "U8", (2, 8), [0] * 16)
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
            ("codes.npy: holds 8-bit integers: must be F32, BF16 or F16", "quantize",
             folder / "codes.npy", "-o", q),
            ("cube.npy: has shape [2, 2, 4]: must be a matrix", "quantize", folder / "cube.npy", "-o",
             q),
            ("holds 4 tensors: add :TENSOR, one of i, v, w, w_scale", "quantize",
             folder / "x.safetensors", "-o", q),
            ("x.safetensors: has no tensor z", "quantize", f"{folder}/x.safetensors:z", "-o", q),
            ("x.safetensors: must have a tensor's name behind the colon", "quantize",
             f"{folder}/x.safetensors:", "-o", q),
            ("q.safetensors: must have a tensor's name behind the colon", "quantize",
             folder / "x.npy", "-o", f"{folder}/q.safetensors:"),
            (f"{folder}: must have a tensor's name behind the colon", "dequantize", f"{folder}:",
             "-o", q),
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


if __name__ == "__main__":
    sys.exit(run_parts(check_refused, check_every_cut, check_full_disk, check_ended))
