"""Names that are not offered here: those of a deep_gemm package that is installed beside Octet.

It is imported on the first such name, never before: that package may compile or start a GPU when it
is imported. Where the shim (shim.py) has taken the name `deep_gemm`, the other package is loaded
under it for the time of its own import, and then the name is the shim's again.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import threading
from typing import Any

from ..errors import Unsupported

MARK = "octet_deep_gemm_shim.txt"  # lies in the package that the shim writes

_lock = threading.RLock()
_found: dict[str, Any] = {}  # "package": the module, or None


class NotOffered(Unsupported, AttributeError):
    """A name of deep_gemm that neither Octet nor an installed package has.

    An AttributeError too, so that `hasattr()` and `getattr(..., None)` say what is there.
    """


def _is_ours(name: str) -> bool:
    return name == "deep_gemm" or name.startswith("deep_gemm.")


def _elsewhere() -> list[str]:
    """The path on which another deep_gemm may be found."""
    return [p for p in sys.path if not os.path.exists(os.path.join(p, "deep_gemm", MARK))]


def _load() -> Any:
    known = sys.modules.get("deep_gemm")
    if known is not None and not getattr(known, "__name__", "").startswith("octet."):
        return known
    path = _elsewhere()
    if importlib.machinery.PathFinder.find_spec("deep_gemm", path) is None:
        return None
    hidden = {name: module for name, module in sys.modules.items() if _is_ours(name)}
    before = list(sys.path)
    for name in hidden:
        del sys.modules[name]
    try:
        sys.path[:] = path
        return importlib.import_module("deep_gemm")
    except ImportError:
        return None
    finally:
        sys.path[:] = before
        if hidden:
            for name in [name for name in sys.modules if _is_ours(name)]:
                del sys.modules[name]
            sys.modules.update(hidden)


def missing(name: str) -> Any:
    """The attribute of an installed deep_gemm. Raises NotOffered with a sentence."""
    if name.startswith("__"):
        raise AttributeError(f"module 'octet.deep_gemm' has no attribute {name!r}")
    with _lock:
        if "package" not in _found:
            _found["package"] = None  # while it is imported, it may ask for the same
            _found["package"] = _load()
        package = _found["package"]
    found = getattr(package, name, None)
    if found is not None:
        return found
    where = "no deep_gemm is installed" if package is None else "the installed deep_gemm has none"
    raise NotOffered(
        f"deep_gemm.{name} is not offered by octet.deep_gemm, which has the FP8 functions of SM90, "
        f"and {where}"
    )
