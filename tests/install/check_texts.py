#!/usr/bin/env python3
"""Manual page and completions name every subcommand and option of `--help`, and nothing else.

    check_texts.py OCTET FOLDER     FOLDER holds octet.1, octet.bash and _octet

bash is asked what it completes; zsh's file is read, and parsed by zsh where there is one. Exit code
1 and a sentence for each breach.
"""

import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/octet"))
import describe_command  # noqa: E402  (the path comes first)

# Layouts that a version of CLI11 or a subcommand may have, though none has all of them today.
ODD_HELP = """Reads what
it is given.
Usage: octet convert [OPTIONS] file [kind]

POSITIONALS:
  file TEXT REQUIRED          what to read: kept
                              whole
  kind TEXT:{one,two}

OPTIONS:
  -h,     --help              Print this help message and exit
          --quiet             say nothing
  --ratio FLOAT:FLOAT in [0 - 1]=0.5
                              how much
  --keep{false}               not

Output:
  -o,--output TEXT            where to
Examples:
  octet convert a.npy
"""

failures = []


def check(right, what):
    if not right:
        failures.append(what)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False,
                          stdin=subprocess.DEVNULL)


def options_of(text):
    """Every -x and --xyz that begins an entry of a help text."""
    found, name = set(), r"-{1,2}[a-zA-Z][\w-]*"
    for names in re.findall(rf"^ {{2,10}}({name}(?:, *{name})*)", text, re.M):
        found |= set(re.split(", *", names))
    return found


def check_page(page, name, wanted):
    section = re.search(rf"^\.SS octet {name} .*?(?=^\.S[SH])", page, re.M | re.S)
    text = section.group() if section else ""
    named = {bold.replace("\\-", "-") for bold in re.findall(r"\\fB(\\-[\w\\-]*?)\\fR", text)}
    check(named == wanted, f"octet.1, {name}: {sorted(named ^ wanted)} differ from help")


def completed(script, *words):
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    result = output("bash", "-c", f"source '{script}'; COMP_WORDS=(octet {line}); "
                    f"COMP_CWORD={len(words)}; _octet; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    check(result.returncode == 0 and not result.stderr, f"octet.bash, {words}: {result.stderr}")
    return set(result.stdout.split())


def check_zsh(text, name, wanted):
    section = re.search(rf"^ +{name}\)$(.*?)^ +;;$", text, re.M | re.S)
    named = {option for option in re.findall(r"^ +'\([^)]*\)(-{1,2}[a-zA-Z][\w-]*)",
                                            section.group(1) if section else "", re.M)}
    check(named == wanted, f"_octet, {name}: {sorted(named ^ wanted)} differ from help")
    check(f"'{name}:" in text, f"_octet does not describe {name}")


def check_odd_help():
    command = describe_command.parse_help("convert", ODD_HELP)
    read = [(o.names, o.value, o.text) for o in command.positionals + command.options]
    check(read == [(["file"], "TEXT REQUIRED", "what to read: kept whole"),
                   (["kind"], "TEXT:{one,two}", ""),
                   (["-h", "--help"], "", "Print this help message and exit"),
                   (["--quiet"], "", "say nothing"),
                   (["--ratio"], "FLOAT:FLOAT in [0 - 1]=0.5", "how much"),
                   (["--keep"], "", "not"), (["-o", "--output"], "TEXT", "where to")],
          f"an odd layout of help is misread: {read}")
    check((command.text, command.notes) ==
          ("Reads what it is given.", ["Examples:", "  octet convert a.npy"]),
          f"an odd layout of help is misread: {command.text!r}, {command.notes}")


def main(argv):
    check_odd_help()
    octet, folder = argv[1], pathlib.Path(argv[2])
    page, zsh = (folder / "octet.1").read_text(), (folder / "_octet").read_text()
    bash = folder / "octet.bash"
    top = output(octet, "--help").stdout
    listed = re.search(r"^subcommands:\n((?: +.*\n)+)", top, re.M | re.I)
    names = re.findall(r"^  (\w[\w-]*)", listed.group(1), re.M) if listed else []
    check("plan" in names and "info" in names, f"octet --help lists the subcommands {names}")
    check(completed(bash, "--") == {o for o in options_of(top) if o.startswith("--")},
          "octet.bash: not the options of the command without a subcommand")
    check(completed(bash, "") == options_of(top) | set(names), "octet.bash: not the subcommands")
    for name in names:
        wanted = options_of(output(octet, name, "--help").stdout)
        check("--help" in wanted, f"octet {name} --help has no options")
        check_page(page, name, wanted)
        offered = completed(bash, name, "-")
        check(offered == wanted, f"octet.bash, {name}: {sorted(offered ^ wanted)} differ from help")
        check_zsh(zsh, name, wanted)
    check(completed(bash, "demo", "--backend", "c") == {"cpu", "cuda"},
          "octet.bash does not offer the backends of the demo")
    check(completed(bash, "demo", "--backend", "=", "a") == {"auto"},
          "octet.bash does not complete --backend=a")
    for tool, *command in (("zsh", "-n", folder / "_octet"),
                           ("groff", "-man", "-Tutf8", "-ww", "-z", folder / "octet.1")):
        if shutil.which(tool):
            result = output(tool, *command)
            check(result.returncode == 0 and not result.stderr, f"{tool}: {result.stderr}")
    print("\n".join(f"FAILED: {failure}" for failure in failures) or f"{len(names)} subcommands")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
