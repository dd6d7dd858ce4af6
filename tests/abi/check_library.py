#!/usr/bin/env python3
"""Checks the border of the built library: what it exports, what it needs, where it looks.

    check_library.py exports LIBRARY   the symbols are those of exported_symbols.txt
    check_library.py headers LIBRARY   the symbols are the functions that the C headers declare
    check_library.py needed  LIBRARY   it needs only what needed.txt lists
    check_library.py paths   LIBRARY   it has a soname and no path to search
    check_library.py imports LIBRARY   it takes no function of the C library whose result depends on
                                       the processor (pow, exp, ...)

A user's program is linked against these symbols for years, and a library that brings libstdc++ or
CUDA along cannot be loaded beside another that brings a different one. Exit code 1 and a line for
each breach.
"""

import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def output_of(*command):
    result = subprocess.run(command, check=True, capture_output=True, text=True,
                            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/local/bin"})
    return result.stdout


def listed(name):
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def exported(nm, library):
    """Every defined dynamic symbol, whatever its kind, with its version if it has one."""
    symbols = {line.split()[0] for line in
               output_of(nm, "-D", "--defined-only", "--format=posix", library).splitlines()}
    if not symbols:
        sys.exit(f"{library}: {nm} shows no dynamic symbol")
    return symbols


def declared(include):
    """Functions marked OCTET_API or OCTET_API_VOID in the C headers."""
    names = set()
    for header in sorted(pathlib.Path(include).glob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", header.read_text(encoding="utf-8"), flags=re.S)
        text = re.sub(r"//[^\n]*|^[ \t]*#[^\n]*", " ", text, flags=re.M)
        names |= set(re.findall(r"\bOCTET_API(?:_VOID)?\b[^;(]*?\b(\w+)\s*\(", text))
        unmarked = re.sub(r"\bOCTET_API(?:_VOID)?\b[^;]*;", " ", text)
        for name in re.findall(r"\b(octet_\w+)\s*\([^;{}]*\)\s*;", unmarked):
            sys.exit(f"{header.name}: {name} is declared without OCTET_API")
    return names


def dynamic(readelf, library):
    """Pairs of tag and value of the dynamic section: ('NEEDED', 'libc.so.6')."""
    text = output_of(readelf, "-dW", library)
    return re.findall(r"\((\w+)\)\s+.*?\[(.*?)\]", text)


def differences(have, want, too_much, too_little):
    return ([too_much.format(x) for x in sorted(have - want)] +
            [too_little.format(x) for x in sorted(want - have)])


def check_exports(args):
    return differences(exported(args.nm, args.binary), listed("exported_symbols.txt"),
                       "{} is exported and not in exported_symbols.txt",
                       "{} is in exported_symbols.txt and not exported")


def check_headers(args):
    return differences(exported(args.nm, args.binary), declared(args.include),
                       "{} is exported and no header declares it",
                       "{} is declared in a header and not exported")


def check_needed(args):
    needed = {value for tag, value in dynamic(args.readelf, args.binary) if tag == "NEEDED"}
    if "libc.so.6" not in needed:
        return [f"readelf shows no need of libc.so.6, only of {sorted(needed)}: not believed"]
    return [f"{x} is needed and not in needed.txt" for x in sorted(needed - listed("needed.txt"))]


def check_paths(args):
    entries = dynamic(args.readelf, args.binary)
    problems = [f"{tag} {value}: the library must not say where others lie"
                for tag, value in entries if tag in ("RPATH", "RUNPATH")]
    sonames = [value for tag, value in entries if tag == "SONAME"]
    if sonames != ["liboctet.so.0"]:
        problems.append(f"soname {sonames}, expected liboctet.so.0")
    return problems


def check_imports(args):
    """Plans and results are the same everywhere; the C library's pow() is not."""
    inexact = {"acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh",
               "erf", "erfc", "exp", "exp10", "exp2", "expm1", "hypot", "lgamma", "log", "log10",
               "log1p", "log2", "pow", "sin", "sincos", "sinh", "tan", "tanh", "tgamma"}
    needed = {line.split()[0].split("@")[0] for line in
              output_of(args.nm, "-D", "--undefined-only", "--format=posix",
                        args.binary).splitlines()}
    if "fegetenv" not in needed:
        return ["nm shows no need of fegetenv: not believed"]
    return [f"{x} is needed: its last bit depends on the processor"
            for x in sorted(needed) if re.sub(r"[fl]$", "", x) in inexact or x in inexact]


CHECKS = {"exports": check_exports, "headers": check_headers, "needed": check_needed,
          "paths": check_paths, "imports": check_imports}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("aspect", choices=sorted(CHECKS))
    parser.add_argument("binary", metavar="LIBRARY")
    parser.add_argument("--include", default=HERE.parent.parent / "include" / "octet")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--readelf", default="readelf")
    args = parser.parse_args()
    problems = CHECKS[args.aspect](args)
    for problem in problems:
        print(f"{pathlib.Path(args.binary).name}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
