"""Conditions of test programs: the device's architecture, filters, the environment."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable


def get_arch_major() -> int:
    """Major compute capability of PyTorch's device; 9 without one: the CPU backend's bits are."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 9
    return int(torch.cuda.get_device_capability()[0])


def test_filter(condition: Callable[[], bool]) -> Callable[..., Any]:
    """Decorates a test that runs only where condition() is true, and says so elsewhere."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def filtered(*args: Any, **more: Any) -> Any:
            if condition():
                return function(*args, **more)
            print(f"{function.__name__}: left out, {condition} says no\n")
            return None

        return filtered

    return decorate


test_filter.__test__ = False  # type: ignore[attr-defined]  # it is no test that pytest should run


def ignore_env(name: str, condition: Callable[[], bool]) -> Callable[..., Any]:
    """Decorates a function that runs without environment variable `name` where condition()."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def without(*args: Any, **more: Any) -> Any:
            kept = os.environ.pop(name, None) if condition() else None
            try:
                return function(*args, **more)
            finally:
                if kept is not None:
                    os.environ[name] = kept

        return without

    return decorate
