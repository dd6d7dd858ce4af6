#!/usr/bin/env python3
"""Runs the command lines of README.md, CONTRIBUTING.md and docs/*.md, as they stand there.

    run_commands.py OCTET OCTET_ON_FAKE SOURCES

Each page has a folder of its own, with `octet` on the PATH and the sources' samples/, cases/ and bench/ in
place. Blocks marked sh go through `sh -e`; blocks marked "sh gpu", and lines of indented blocks that begin
with octet, are run on a device that is made up, and "sh gpu" on the real one too where there is one. Blocks
marked "sh numpy" need NumPy. Every other line that is a command must be in ELSEWHERE, which says what runs
it, or why nothing does. Exit code 1 and a line for each breach.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "command"))
from files_support import check, finish, write_npy, write_safetensors  # noqa: E402

# A line of an indented block is a command if it begins with one of these.
COMMAND = re.compile(r"    ((?:octet|\./dev|build/\S+|bench/\S+|tools/house/\S+|cmake|sudo|pip|python3?|export|man|g\+\+|"
                     r"compute-sanitizer|ctest|nsys|ncu|git|PYTHONPATH=\S+|OCTET_\w+=\S+|\.|fpath=\S+) .*)")
SETS_UP = "installs packages and builds for minutes: CI's first step is ./dev test on a bare machine"
SANITIZER = "NVIDIA's tool, on a machine with a device; results in bench/results"
ELSEWHERE = {
    r"\./dev (demo|test|check)\b": SETS_UP,
    r"\./dev fuzz": "finds for as long as it is told; the tests fuzz.* run the same targets",
    r"sudo apt-get install": SETS_UP,
    r"export PATH=\$PWD/build/release": "what this program does",
    r"compute-sanitizer": SANITIZER,
    r"bench/plot\.py": "plot",  # below
    r"\. ~/octet/share/bash-completion": "install.texts sources that file",
    r"fpath=": "install.texts has zsh read that file",
    r"octet tuned table": "the first line of such a table",
}
# Pages whose blocks marked sh are another test's.
OTHER_TEST = {"README.md": "install.readme", "deep_gemm.md": "tests/python"}
# One rule, told alike by every command that writes files.
EXIT_CODES = "a path that cannot be written to as given"


def commands_of(text):
    """(kind, mark, lines) of a page in its order; kind: "block" or "line"."""
    fence = None
    for line in text.split("\n"):
        opened = re.match(r"```(.*)$", line)
        if opened and fence is None:
            fence, lines = opened.group(1), []
        elif opened:
            if fence.split()[:1] == ["sh"]:
                yield "block", fence[2:].strip(), "\n".join(lines) + "\n"
            fence = None
        elif fence is not None:
            lines.append(line)
        elif COMMAND.fullmatch(line):
            yield "line", "", COMMAND.fullmatch(line).group(1)
        elif line.startswith("| `octet "):  # a table of commands
            yield "line", "", re.match(r"\| `(.*?)`", line).group(1)


class Runner:
    def __init__(self, octet, fake, sources, work):
        self.octet, self.fake, self.sources, self.work = octet, fake, sources, work
        self.ran = 0
        self.device = any(device.get("usable") for device in json.loads(subprocess.run(
            [octet, "info", "--json"], capture_output=True, text=True, timeout=60,
            check=True).stdout).get("devices", []))
        self.numpy = None
        # The tests of the Python package put it into build/venv.
        for python in (sources / "build/venv/bin/python3", shutil.which("python3")):
            if self.numpy is None and python and pathlib.Path(python).exists() and subprocess.run(
                    [python, "-c", "import numpy"], capture_output=True, timeout=60,
                    check=False).returncode == 0:
                self.numpy = python
        self.paths = {}
        for name, command in (("real", octet), ("fake", fake)):
            (work / name).mkdir()
            (work / name / "octet").symlink_to(command)
            folders = [work / name] + ([pathlib.Path(self.numpy).parent] if self.numpy else [])
            self.paths[name] = os.pathsep.join([*map(str, folders), os.environ["PATH"]])

    def folder(self, page):
        folder = self.work / "pages" / page.stem
        folder.mkdir(parents=True)
        for name in ("samples", "cases", "bench"):
            (folder / name).symlink_to(self.sources / name)
        (folder / "build").mkdir()
        (folder / "build/release").symlink_to(self.work / "fake")
        (folder / "tables").mkdir()
        # Files that readers have of their own.
        write_npy(folder / "x.npy", "F32", (4, 8), [1.0] * 32)
        write_safetensors(folder / "model.safetensors", {"layer.weight": ("F32", [3, 8], [0.5] * 24)})
        shutil.copy(self.sources / "bench/results/2026-11-30-h200-candidates.csv",
                    folder / "candidates.csv")  # which a line of benchmark.md writes
        subprocess.run([self.fake, "tune", "--from", "candidates.csv", "-o", "mine.txt"], cwd=folder,
                       stdout=subprocess.DEVNULL, timeout=60, check=True)
        return folder

    def shell(self, page, folder, script, which):
        environment = dict(os.environ, PATH=self.paths[which])
        result = subprocess.run(["sh", "-e"], input=script, cwd=folder, env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                                check=False)
        self.ran += 1
        check(result.returncode == 0,
              f"{page.name}:\n{script}exit code {result.returncode}:\n{result.stdout}")

    def run(self, page, folder, kind, mark, script):
        if kind == "block" and page.name in OTHER_TEST:
            return
        if kind == "block":
            if mark == "numpy" and not self.numpy:
                print(f"SKIPPED: {page.name}: no NumPy for\n{script}")
                return
            check(mark in ("", "gpu", "numpy"), f"{page.name}: a block marked sh {mark}")
            self.shell(page, folder, script, "fake" if mark == "gpu" else "real")
            if mark == "gpu" and self.device:
                self.shell(page, folder, script, "real")
            return
        known = [why for pattern, why in ELSEWHERE.items() if re.match(pattern, script)]
        if known == ["plot"] and importlib.util.find_spec("matplotlib") is not None:
            self.shell(page, folder, f"{sys.executable} {script}\n", "fake")
        elif not known and re.match(r"(\./dev build && )?(build/release/)?octet ", script):
            self.shell(page, folder, script.removeprefix("./dev build && ") + "\n", "fake")
        else:
            check(known, f"{page.name}: nobody runs \"{script}\"")


def contents(sources):
    """What pages may read of the sources, and must leave alone."""
    return {path: path.read_bytes() for name in ("bench", "cases", "samples", "tables")
            for path in sorted((sources / name).rglob("*")) if path.is_file()}


def check_exit_codes(sources):
    for page in ("docs/files.md", "README.md", "docs/tuned-tables.md"):
        said = " ".join((sources / page).read_text(encoding="utf-8").split())
        check(EXIT_CODES in said and "130 interrupted" in said and "failed midway" in said,
              f"{page}: does not say the exit codes")


def main():
    octet, fake, sources = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    check_exit_codes(sources)
    before = contents(sources)
    with tempfile.TemporaryDirectory() as work:
        runner = Runner(octet, fake, sources, pathlib.Path(work))
        for page in [sources / "README.md", sources / "CONTRIBUTING.md",
                     *sorted((sources / "docs").glob("*.md"))]:
            commands = list(commands_of(page.read_text(encoding="utf-8")))
            folder = runner.folder(page) if commands else None
            for command in commands:
                runner.run(page, folder, *command)
        made = sorted(os.listdir(runner.work / "pages/files"))
        for name in ("d.npy", "w.npy", "my-model-fp8"):
            check(name in made, f"docs/files.md: no {name} was made, only {made}")
        check(runner.ran > 30, f"only {runner.ran} commands were found")
        print(f"{runner.ran} blocks and lines")
    check(contents(sources) == before, "a page's command wrote into the sources")
    return finish()


if __name__ == "__main__":
    sys.exit(main())
