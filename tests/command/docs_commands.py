#!/usr/bin/env python3
"""Runs the command lines of a page of docs, as they stand there, in a folder of their own.

    docs_commands.py OCTET SOURCES PAGE.md

Blocks marked sh are run one after the other by `sh -e`, each with `octet` on the PATH and the sources'
samples/ in place. Then every command that the page names must have a help text with examples and exit
codes. Exit code 1 and what was said, if any fails.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile


# One rule, told alike by every command that writes files, this page and the others.
EXIT_CODES = "a path that cannot be written to as given"


def main():
    octet, sources, page = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    text = page.read_text(encoding="utf-8")
    for other in (page, sources / "README.md", sources / "docs/tuned-tables.md"):
        said = " ".join(other.read_text(encoding="utf-8").split())
        if EXIT_CODES not in said or "130 interrupted" not in said or "failed midway" not in said:
            print(f"{other}: does not say the exit codes")
            return 1
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if not blocks:
        print(f"{page}: has no command lines")
        return 1
    environment = dict(os.environ, PATH=f"{octet.parent}{os.pathsep}{os.environ['PATH']}")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(sources / "samples", os.path.join(folder, "samples"))
        for block in blocks:
            result = subprocess.run(["sh", "-e"], input=block, cwd=folder, env=environment, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                                    check=False)
            if result.returncode != 0:
                print(f"{page}:\n{block}exit code {result.returncode}:\n{result.stdout}")
                return 1
        made = sorted(os.listdir(folder))
    for name in ("d.npy", "w.npy", "my-model-fp8"):
        if name not in made:
            print(f"{page}: no {name} was made, only {made}")
            return 1
    for command in sorted(set(re.findall(r"octet (quantize|dequantize|gemm)", text))):
        result = subprocess.run([octet, command, "--help"], text=True, stdout=subprocess.PIPE,
                                timeout=60, check=False)
        if (result.returncode != 0 or "Examples:\n  octet " + command not in result.stdout or
                EXIT_CODES not in " ".join(result.stdout.split())):
            print(f"octet {command} --help: teaches nothing:\n{result.stdout}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
