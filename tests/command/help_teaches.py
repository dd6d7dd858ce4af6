#!/usr/bin/env python3
"""`--help` of every subcommand teaches, and no option takes an empty word for "not given".

    help_teaches.py OCTET

Exit code 1 and a line for each breach.
"""

import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/octet"))
import describe_command  # noqa: E402  (the path comes first)
from files_support import check, finish, run  # noqa: E402

# What an option must be is shown; dequantising, these follow from the file.
INFERRED = ("--block", "--axis", "--layout", "--to")


def check_help(octet, name):
    text = run(octet, name, "--help").stdout
    examples = re.findall(r"^  (octet \S+)", text.partition("Examples:\n")[2], re.M)
    check(examples and all(example == f"octet {name}" for example in examples),
          f"{name} --help: examples of {examples}")
    check("Exit codes: 0" in text, f"{name} --help: does not say the exit codes")
    too_long = [line for line in text.splitlines() if len(line) > 160]
    check(not too_long, f"{name} --help: {too_long}")
    return describe_command.parse_help(name, text)


def check_empty(octet, command):
    for option in command.options + command.positionals:
        if "TEXT" not in option.value:
            continue
        word = option.names[-1]
        arguments = [word, ""] if word.startswith("-") else [""]
        # So that nothing else is wrong first.
        fillers = ["x.npy"] * sum("REQUIRED" in other.value for other in command.positionals
                                  if other is not option)
        result = run(octet, command.name, *arguments, *fillers)
        check(result.returncode == 2 and len(result.stderr.strip().splitlines()) == 1 and
              result.stderr.startswith("octet: ") and
              word.lstrip("-") in result.stderr and
              ("must not be empty" in result.stderr or " not in {" in result.stderr),
              f"octet {command.name} {word} ''", result)


def check_one_line(octet):
    """Words of the user's with line ends and escapes in them: one sentence still."""
    odd = "x\n\x1b[31my"
    for arguments in ([odd], [f"--{odd}"], ["plan", odd], ["plan", "dense_m1n1k1", "--device", odd],
                      ["plan", "dense_m1n1k1", "--table", odd], ["plan", f"--{odd}"],
                      ["bench", "--file", odd, "--dry-run"], ["bench", "dense_m1n1k1", "--csv", f"{odd}/z"],
                      ["bench", "dense_m1n1k1", "--force", f"{odd}:z"], ["verify", "--seconds", odd],
                      ["tune", "--from", odd, "-o", "z"], ["demo", "--samples", odd],
                      ["quantize", odd, "-o", "z.npy"], ["quantize", f"{odd}.npy", "-o", "z.npy"],
                      ["dequantize", f"{odd}.safetensors:{odd}", "-o", "z.npy"],
                      ["gemm", f"{odd}.npy", "b.npy", "-o", "d.npy"]):
        result = run(octet, *arguments)
        check(result.returncode in (2, 3) and result.stderr.startswith("octet: ") and
              result.stderr.count("\n") == 1 and "\x1b" not in result.stderr and
              not result.stdout, f"octet {arguments}", result)
    result = run(octet, "plan", "dense_m1n1k1", "--device", "x" * 5000)
    check(result.returncode == 2 and len(result.stderr) < 1500, "a name of 5000 letters", result)


def check_plan(octet):
    plan = json.loads(run(octet, "plan", "dense_m64n7168k2048", "--device", "h200", "--json").stdout)
    text = run(octet, "plan", "dense_m64n7168k2048", "--device", "h200").stdout
    times = [candidate["predicted_us"] for candidate in plan["candidates"]]
    check(f"number 1 of {len(times)}" in text, f"plan --json has {len(times)} candidates")
    check(times == sorted(times) and times[0] > 0, "plan --json: not the cheapest first")
    first = plan["candidates"][0]
    check((first["kernel"], first["split"]) == (plan["kernel"], plan["split"]),
          f"plan --json: {first} is not the choice")
    reasons = {entry["reason"]: entry["kernels"] for entry in plan["refused"]}
    check("serves problems grouped over M" in reasons and all(reasons.values()),
          f"plan --json: refused {list(reasons)}")
    check(sum(len(line) > 4 for line in text.partition("\nrefused\n")[2].splitlines()) ==
          2 * len(reasons), "plan --json: not all that are refused")
    plan = json.loads(run(octet, "plan", "dense_m4n4k4", "--json").stdout)
    check([c["kernel"] for c in plan["candidates"]] == ["cpu"] and plan["refused"] == [],
          f"plan --json of the CPU: {plan}")


def main():
    octet = sys.argv[1]
    listed = run(octet, "--help").stdout.partition("Subcommands:\n")[2]
    names = re.findall(r"^  (\w+)", listed, re.M)
    check(len(names) == 9, f"octet --help lists {names}")
    for name in names:
        command = check_help(octet, name)
        check_empty(octet, command)
        if name == "dequantize":
            shown = [o.names[-1] for o in command.options
                     if o.names[-1] in INFERRED and "=" in o.value]
            check(not shown, f"dequantize --help shows defaults of {shown}, which follow from the file")
    check_plan(octet)
    check_one_line(octet)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
