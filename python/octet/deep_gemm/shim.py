"""Writes a folder in which `import deep_gemm` means octet.deep_gemm.

    python -m octet.deep_gemm.shim DIR
    PYTHONPATH=DIR python program.py

Every process that has DIR on its path gets it, those that a program starts too. Nothing is
installed and nothing replaced: without DIR the name means what it meant.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from ._installed import MARK

# Modules of deep_gemm that programs import from, and which of ours they are.
_MODULES = (
    "jit_kernels", "jit_kernels.utils", "testing", "testing.bench", "testing.numeric",
    "testing.utils", "utils", "utils.layout", "utils.math",
)  # fmt: skip

_PACKAGE = '''"""By `python -m octet.deep_gemm.shim`: the name deep_gemm for octet.deep_gemm."""

import sys

try:
    import octet.deep_gemm.shim as _shim
except ImportError:
    sys.path.append({path!r})
    import octet.deep_gemm.shim as _shim

_shim.take_name(__name__)
'''


def take_name(name: str = "deep_gemm") -> Any:
    """Makes `import NAME` mean octet.deep_gemm in this process. Returns the module."""
    ours = importlib.import_module("octet.deep_gemm")
    sys.modules[name] = ours
    for module in _MODULES:
        sys.modules[f"{name}.{module}"] = importlib.import_module(f"octet.deep_gemm.{module}")
    return ours


def write(folder: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """Writes the package `deep_gemm` into a folder, which is made. Returns the folder's path.

    Raises FileExistsError if something else of that name is there.
    """
    folder = os.fsdecode(folder)
    if not folder:
        raise FileNotFoundError("the folder's name is empty: must be a folder to write into")
    if os.pathsep in os.path.abspath(folder):
        raise FileNotFoundError(f"{folder} holds {os.pathsep}: PYTHONPATH would take it apart")
    package = os.path.join(os.path.abspath(folder), "deep_gemm")
    if os.path.lexists(package + ".py"):  # a link to nothing, too, which may come back
        raise FileExistsError(f"{package}.py is there: the package would hide it")
    if os.path.lexists(package) and not os.path.isdir(package):
        raise FileExistsError(f"{package} is there and no folder: it is left as it is")
    mark = os.path.join(package, MARK)
    if os.path.isdir(package) and os.listdir(package) and not os.path.exists(mark):
        raise FileExistsError(f"{package} is there and no shim: it is left as it is")
    os.makedirs(package, exist_ok=True)
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(mark, "w", encoding="utf-8") as file:
        file.write("This folder was written by `python -m octet.deep_gemm.shim`.\n")
    with open(os.path.join(package, "__init__.py"), "w", encoding="utf-8") as file:
        file.write(_PACKAGE.format(path=home))
    return os.path.dirname(package)


def main(arguments: list[str]) -> int:
    """The command: 0, or 2 with a sentence on standard error."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    try:
        folder = write(arguments[0])
    except OSError as error:
        print(f"octet.deep_gemm.shim: {error}", file=sys.stderr)
        return 2
    print(f"{folder}: put it on PYTHONPATH, and `import deep_gemm` is octet.deep_gemm")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
