#!/usr/bin/env python3
"""Numbers on the command line: what is none, or none that its type holds, is refused in a sentence that
says what is wanted; and nothing is printed before a refusal.

    option_values.py OCTET

The options are those that --help lists. Exit code 1 and a line for each breach.
"""

import re
import sys

from files_support import check, refused, run, run_parts, succeed, write_npy

COMMANDS = ("bench", "demo", "info", "plan", "quantize", "dequantize", "gemm", "tune", "verify")
OPTION = re.compile(r"^  (?:-\w,)?(--[\w-]+) (INT|FLOAT):(\S+(?: in \[[^\]]*\])?)", re.MULTILINE)


def check_options(octet, _):
    """Every option of every command that takes a number."""
    seen = set()
    for command in COMMANDS:
        for option, kind, wanted in OPTION.findall(run(octet, command, "--help").stdout):
            seen.add(option)
            wanted = wanted.partition("=")[0]
            numbers = re.findall(r"[\d.e+]*\d", wanted)
            if kind == "FLOAT":
                says = {"nan": "must be a finite number", "-inf": "must be a finite number",
                        "x": "must be a number", "5x": "must be a number",
                        "1e999": "must be at most", "1e5000": "must be at most",
                        "1e-400": "must be 0 or at least", "-1e-5000": "must be 0 or at least",
                        "-1": "must be 0 or more" if wanted == "NONNEGATIVE" else
                        "must be a number from {} to {}".format(*numbers)}
            else:
                whole = ("must be one of " + ", ".join(numbers) if wanted[0] == "{" else
                         "must be a whole number from {} to {}".format(*numbers))
                says = dict.fromkeys(("1e2", "1.0", "0x", "x", "-1", "99999999999999999999"), whole)
                # CLI11 would read eight, two and one.
                says.update(dict.fromkeys(("010", "08", "0x2", "01", "+1"),
                                          whole + ", in decimal digits without leading zeros"))
            for value, sentence in says.items():
                refused(octet, f"octet: {option}: Value {value} {sentence}", command,
                        f"{option}={value}")
    check(seen >= {"--threads", "--split", "--device", "--axis", "--amax-min", "--seconds", "--chain",
                   "--candidates"}, f"--help lists {sorted(seen)}")


def check_scales(octet, folder):
    """A number in the place of a file of scales."""
    write_npy(folder / "x.npy", "F32", (4, 8), [1.0] * 32)
    write_npy(folder / "codes.npy", "U8", (4, 8), [0x38] * 32)
    x, codes, out = folder / "x.npy", folder / "codes.npy", folder / "d.npy"
    commands = {"--sfa": ("gemm", codes, x, "-o", out, "--dtype-a", "e4m3"),
                "--sfb": ("gemm", x, codes, "-o", out, "--dtype-b", "e4m3"),
                "--scales": ("dequantize", codes, "-o", out)}
    for option, command in commands.items():
        for values, sentence in [
                (("nan", "inf", "-inf", "infinity", "-nan"), "must be finite, as a scale is"),
                (("1e39", "-1e39", "1e999"), "must be at most 3.4028235e+38 in magnitude"),
                (("1e-50", "-1e-50", "1e-400"), "must be 0 or at least 1.4e-45 in magnitude"),
                (("0x10", "+-1", "1e", "1,5", "nan.npx"), "(nor is it a decimal number)")]:
            for value in values:
                for says in (sentence, f"octet: {option} {value}: must be"):
                    refused(octet, says, *command, f"{option}={value}")
        check(not out.exists(), f"{option}: a refused command wrote its output")
        for value in ("0.5", "+0.5", "-1e-3", "0", "1e-40", "3.4028235e38"):
            succeed(octet, *command, f"{option}={value}")
        out.unlink()


def check_nothing_before_a_refusal(octet, _):
    """Of a dry run too: no head of a table, no bracket."""
    many = "contiguous_g65535m1048576n0k1000"
    for command in ("bench", "tune"):
        for more in ([], ["--json"]):
            result = run(octet, command, many, many, "--dry-run", *more)
            check(result.returncode == 2 and result.stdout == "" and
                  result.stderr.count("must have fewer than 2^31") == 2, f"{command} {more}", result)
            result = run(octet, command, many, "dense_m1n1k1", "--dry-run", *more)
            check(result.returncode == 2 and result.stdout.count("dense_m1n1k1") >= 1 and
                  many not in result.stdout, f"{command} {more}, one of two", result)


if __name__ == "__main__":
    sys.exit(run_parts(check_options, check_scales, check_nothing_before_a_refusal))
