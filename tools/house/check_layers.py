#!/usr/bin/env python3
"""Checks that includes point in one direction, and a few other house rules that grep can see.

    tools/house/check_layers.py [FOLDER]      checks the repository (default: the one it lies in)
    tools/house/check_layers.py --self-test   checks the checker, on a small tree made for it

Prints `file:line: what is wrong [rule]` for each breach; exit code 1 if there is any. The rooms and
the reasons for the direction are in CONTRIBUTING.md. The tables below are the rules: change a rule
there, in a commit that says why.
"""

import argparse
import pathlib
import re
import sys
import tempfile

# Room under src/ -> rooms whose headers it may include, besides its own.
ROOMS = {
    "kernel_abi": set(),
    "threads": set(),
    "core": {"kernel_abi"},
    "plan": {"core", "kernel_abi"},
    "ref": {"plan", "core", "kernel_abi"},
    "cpu": {"plan", "core", "kernel_abi", "threads"},
    "device": {"kernel_abi"},
    "loader": {"core", "kernel_abi"},
    "cuda": {"plan", "loader", "core", "kernel_abi"},
    "python": set(),  # knows the contract alone
    "capi": {"ref", "cpu", "cuda", "loader", "plan", "core", "kernel_abi", "threads"},
}
# Rooms that may not include the C contract, octet/octet.h: nvcc compiles them for the device.
WITHOUT_CONTRACT = {"kernel_abi", "device"}
# Folders that know the library by its public headers alone, as every other program does.
PUBLIC_ONLY = {"tools", "samples", "docs", "include"}
# Rooms that know nothing of the library and serve programs as well.
FOR_PROGRAMS = {"tools": {"threads"}}
# What they may use besides, each for a reason.
EXCEPTIONS = {
    # The demo shows what a tensor-core chain without promotion loses; the library offers none.
    ("tools/octet/demo.cpp", "ref/tensor_core.h"),
    ("tools/house/limits_doc.cpp", "core/refusals.h"),
}

# Standard headers that both compilers take as they are; nothing else enters kernel_abi or device.
LEAF_HEADERS = {"cstdint", "cstddef", "limits", "type_traits"}
CUDA_HEADER = re.compile(r"cuda|cooperative_groups|nv/|cccl/|cub/|crt/|mma\.h|vector_types\.h")

# The one file pair that opens the driver's library and names what is in it.
DRIVER_FILES = ("src/cuda/driver",)
# The one file that reads environment variables, into options.
ENVIRONMENT_FILES = ("src/core/options.cpp",)

# (rule, files of src/ where it is allowed, pattern, what to say)
FORBIDDEN_IN_SRC = (
    ("driver-names", DRIVER_FILES, re.compile(r"\bcu[A-Z]\w*|\bdl(?:open|sym)\b"),
     "'{}' is named outside src/cuda/driver*, the only files that speak to the driver's library"),
    ("environment", ENVIRONMENT_FILES, re.compile(r"\b(?:secure_)?getenv\b"),
     "'{}': environment variables are read in src/core/options.cpp alone"),
    ("prints-or-aborts", (),
     re.compile(r"(?<![.>\w:])(?:std::|::)?(?:f?printf|f?puts|abort|exit|quick_exit|terminate)"
                r"(?=\s*\()|\bstd::c(?:out|err|log)\b|\bfmt::print\b"),
     "'{}': the library never prints and never ends the process; return a Status"),
)

SUFFIXES = (".h", ".hpp", ".cpp", ".cu", ".cuh", ".inc")
FOLDERS = ("include", "src", "tools", "tests", "bench", "samples", "docs", "python")
MOST_LINES = 500  # in src/; more is a warning: a file has one reason to exist

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Comments and literals; a quote between digits or letters is a digit separator or a prefix.
TOKEN = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])*'",
    re.DOTALL)


def without(text, literals):
    """The text with comments (and, if asked, literals) blanked; lines stay where they are."""
    def blank(match):
        if match.group().startswith(("//", "/*")) or literals:
            return re.sub(r"[^\n]", " ", match.group())
        return match.group()
    return TOKEN.sub(blank, text)


def public(path):
    """Whether an included path is one of the two public headers."""
    return path in ("octet/octet.h", "octet/octet.hpp")


class Checker:
    def __init__(self, root):
        self.root = root
        self.breaches = []  # (file, line, rule, sentence)
        self.warnings = []

    def run(self):
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in SUFFIXES and path.is_file():
                    self.check_file(path.relative_to(self.root).as_posix(),
                                    path.read_text(encoding="utf-8", errors="replace"))
        return self.breaches

    def breach(self, file, line, rule, sentence):
        self.breaches.append((file, line, rule, sentence))

    def check_file(self, file, text):
        if not text.lstrip("\ufeff \t\r\n").startswith(("//", "/*")):
            self.breach(file, 1, "opening-comment",
                        "opens without a comment: a newcomer needs a line on why the file exists")
        self.check_guard(file, text)
        for number, line in enumerate(without(text, literals=False).splitlines(), 1):
            if include := INCLUDE.match(line):
                self.check_include(file, number, include.group(1) == '"', include.group(2))
        if file.startswith("src/"):
            self.check_src(file, text)

    def check_guard(self, file, text):
        if not file.endswith((".h", ".hpp", ".cuh")):
            return
        guarded = re.search(r"^\s*#\s*pragma\s+once\b", text, re.MULTILINE)
        if file.startswith("include/"):  # installed beside other people's headers: a guard will do
            guarded = guarded or re.search(r"^\s*#\s*ifndef\s+OCTET_\w+_\s*$", text, re.MULTILINE)
        if not guarded:
            self.breach(file, 1, "pragma-once", "has no #pragma once")

    def check_src(self, file, text):
        room = file.split("/")[1]
        if "/" in file[len("src/"):] and room not in ROOMS:
            self.breach(file, 1, "unknown-room", f"src/{room} is no room: the list is ROOMS")
        lines = text.count("\n")
        if lines > MOST_LINES:
            self.warnings.append(f"{file}:{lines}: has {lines} lines, more than {MOST_LINES}")
        for number, line in enumerate(without(text, literals=True).splitlines(), 1):
            for rule, allowed, pattern, sentence in FORBIDDEN_IN_SRC:
                found = None if file.startswith(allowed or "\0") else pattern.search(line)
                if found:
                    self.breach(file, number, rule, sentence.format(found.group()))

    def check_include(self, file, line, quoted, path):
        top, _, rest = file.partition("/")
        room = rest.split("/")[0] if top == "src" else None

        def breach(rule, sentence):
            self.breach(file, line, rule, f'includes "{path}": {sentence}')

        if ".." in path.split("/"):
            breach("relative", "write the path from src/, not with ../")
        elif path == "octet/octet.hpp" and top in ("src", "include"):
            breach("octet-hpp", "octet.hpp is for programs over the library, not for the library")
        elif public(path):
            if room in WITHOUT_CONTRACT:
                breach("contract", f"{room} is compiled for the device, which has no C ABI")
        elif (file, path) in EXCEPTIONS:
            pass
        elif quoted:
            self.check_quoted(path, top, room, breach)
        else:
            self.check_angled(file, path, top, room, breach)

    @staticmethod
    def check_quoted(path, top, room, breach):
        to = path.split("/")[0]
        if room is not None:
            if to not in ROOMS:
                breach("path", "our headers are written from src/, other people's as <...>")
            elif to != room and to not in ROOMS.get(room, ()):
                may = ", ".join(sorted(ROOMS.get(room, ()))) or "nothing but itself"
                breach("direction", f"{room} may include {may}")
        elif to == "device":
            breach("direction", "only nvcc sees device; what host code needs is in kernel_abi")
        elif to in ROOMS and top in PUBLIC_ONLY and to not in FOR_PROGRAMS.get(top, ()):
            breach("public-only", f"{top}/ uses the public headers, octet/octet.h and octet.hpp")

    @staticmethod
    def check_angled(file, path, top, room, breach):
        cuda = CUDA_HEADER.match(path)
        if room == "kernel_abi" and path not in LEAF_HEADERS:
            breach("leaf", f"kernel_abi may include {', '.join(sorted(LEAF_HEADERS))} and itself")
        elif room == "device" and path not in LEAF_HEADERS and not cuda:
            breach("leaf", "device may include CUDA's headers, kernel_abi and itself")
        elif cuda and room not in (None, "device") and not file.startswith(DRIVER_FILES):
            breach("cuda-header", "only device and src/cuda/driver* see CUDA's headers")
        elif top == "include" and ("/" in path or cuda):
            breach("public-header", "a public header needs the standard library alone")


# --- The check of the checker --------------------------------------------------------------------

# (file, text, the breaches it must give as (line, rule)). Every file opens with a comment unless
# that is the breach; `//` alone is enough here.
SELF_TEST = (
    ("include/octet/octet.h", "/* */\n#ifndef OCTET_OCTET_H_\n#include <stdint.h>\n", []),
    ("include/octet/octet.hpp", "//\n#ifndef OCTET_OCTET_HPP_\n#include \"octet/octet.h\"\n"
     "#include <cuda.h>\n#include \"core/status.h\"\n", [(4, "public-header"), (5, "public-only")]),
    ("src/kernel_abi/good.h", "//\n#pragma once\n#include <cstdint>\n"
     "#include \"kernel_abi/host_device.h\"\n", []),
    ("src/kernel_abi/bad.h", "//\n#pragma once\n#include <vector>\n#include \"octet/octet.h\"\n"
     "#include \"core/status.h\"\n", [(3, "leaf"), (4, "contract"), (5, "direction")]),
    ("src/core/good.cpp", "//\n#include \"core/good.h\"\n#include <fmt/format.h>\n"
     "#include \"octet/octet.h\"\n// cuInit #include \"cpu/run.h\"\n"
     "const char* s = \"printf(cuInit)\"; int n = 1'000'000; char c = '\"';\n"
     "/* #include \"cpu/run.h\"\n cuInit */ auto r = R\"x(getenv() )\" abort())x\";\n"
     "o.exit();\n", []),
    ("src/core/bad.cpp", "//\n#include \"plan/planner.h\"\n#include \"octet/octet.hpp\"\n"
     "#include \"../ref/gemm.h\"\n#include \"status.h\"\n#include <cuda.h>\n"
     "#include \"cuda/x.h\"\n",
     [(2, "direction"), (3, "octet-hpp"), (4, "relative"), (5, "path"), (6, "cuda-header"),
      (7, "direction")]),
    ("src/core/options.cpp", "//\nauto v = std::getenv(\"OCTET\");\n", []),
    ("src/plan/bad.cpp", "//\nauto v = std::getenv(\"OCTET\");\nvoid f() { std::abort(); }\n"
     "void g() { std::cerr << 1; }\nvoid h() { fprintf(stderr, \"\"); }\n",
     [(2, "environment"), (3, "prints-or-aborts"), (4, "prints-or-aborts"),
      (5, "prints-or-aborts")]),
    ("src/cpu/bad.cpp", "//\n#include \"ref/gemm.h\"\n", [(2, "direction")]),
    ("src/cpu/good.cpp", "//\n#include \"threads/parallel.h\"\n", []),
    ("src/threads/bad.h", "//\n#pragma once\n#include <thread>\n#include \"core/status.h\"\n",
     [(4, "direction")]),
    ("src/plan/no_threads.cpp", "//\n#include \"threads/parallel.h\"\n", [(2, "direction")]),
    ("samples/bad.cpp", "//\n#include \"threads/parallel.h\"\n", [(2, "public-only")]),
    ("src/device/good.cu", "//\n#include <cuda/ptx>\n#include \"device/ptx/wgmma.cuh\"\n"
     "#include \"kernel_abi/good.h\"\n", []),
    ("src/device/bad.cu", "//\n#include \"ref/tensor_core.h\"\n#include <string>\n"
     "#include \"octet/octet.h\"\n", [(2, "direction"), (3, "leaf"), (4, "contract")]),
    ("src/loader/bad.cpp", "//\n#include \"plan/planner.h\"\n", [(2, "direction")]),
    ("src/cuda/driver.cpp", "//\n#include <cuda.h>\nauto f = dlsym(library, \"cuInit\");\n", []),
    ("src/cuda/launch.cpp", "//\n#include \"loader/table.h\"\n#include \"ref/gemm.h\"\ncuInit(0);\n"
     "dlopen(\"libcuda.so.1\", 2);\n",
     [(3, "direction"), (4, "driver-names"), (5, "driver-names")]),
    ("src/capi/octet.cpp", "//\n#include \"ref/gemm.h\"\n#include \"device/kernel.cuh\"\n",
     [(3, "direction")]),
    ("src/extra/x.cpp", "//\n#include \"core/status.h\"\n",
     [(1, "unknown-room"), (2, "direction")]),
    ("src/ref/no_comment.cpp", "#include \"core/status.h\"\n", [(1, "opening-comment")]),
    ("src/ref/no_guard.h", "// #pragma twice\n", [(1, "pragma-once")]),
    ("tests/unit/good_test.cpp", "//\n#include \"core/status.h\"\n#include \"octet/octet.hpp\"\n"
     "#include <gtest/gtest.h>\n#include \"support/x.h\"\n", []),
    ("tests/gpu/bad_test.cpp", "//\n#include \"device/kernel.cuh\"\n", [(2, "direction")]),
    ("tools/octet/bad.cpp", "//\n#include \"octet/octet.hpp\"\n#include \"tools/octet/table.h\"\n"
     "#include \"core/status.h\"\n#include \"threads/parallel.h\"\n", [(4, "public-only")]),
    ("tools/octet/demo.cpp", "//\n#include \"ref/tensor_core.h\"\n#include \"ref/gemm.h\"\n",
     [(3, "public-only")]),
)


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for file, text, _ in SELF_TEST:
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        long_file = root / "src/ref/long.cpp"
        long_file.write_text("//\n" * (MOST_LINES + 1), encoding="utf-8")
        checker = Checker(root)
        found = {(file, line, rule) for file, line, rule, _ in checker.run()}
    wanted = {(file, line, rule) for file, _, breaches in SELF_TEST for line, rule in breaches}
    for label, rows in (("not found", wanted - found), ("found for no reason", found - wanted)):
        for file, line, rule in sorted(rows):
            print(f"self-test: {label}: {file}:{line} [{rule}]")
    warned = len(checker.warnings) == 1
    if not warned:
        print(f"self-test: warnings on long files: {checker.warnings}")
    print(f"check_layers self-test: {len(wanted)} breaches of "
          f"{len({rule for _, _, rule in wanted})} rules in {len(SELF_TEST)} files")
    return 0 if found == wanted and warned else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not (options.folder / "src").is_dir():
        parser.error(f"{options.folder} has no src/")
    checker = Checker(options.folder)
    for file, line, rule, sentence in checker.run():
        print(f"{file}:{line}: {sentence} [{rule}]")
    for warning in checker.warnings:
        print(f"warning: {warning}")
    print(f"layers: {len(checker.breaches)} breaches, {len(checker.warnings)} warnings")
    return 1 if checker.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
