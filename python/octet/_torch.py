"""PyTorch, imported when something is asked for that needs it."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import Unsupported


def torch(what: str) -> Any:
    """The module. what: the function that needs it, for the sentence that says it is not there."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise Unsupported(f"{what} works on PyTorch tensors: PyTorch is not installed") from None
