"""CUDA streams of other people's frameworks, as the pointers that the C interface takes.

Work is queued where the framework that owns the arrays is queueing its own: PyTorch's current
stream, or the one that `__cuda_array_interface__` names (CuPy's current stream). So a result can be
used as if the framework had computed it.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

from ._arrays import View, is_torch
from ._library import refusal
from .errors import InvalidArgument


def raw_stream() -> Callable[[int], int]:
    """The function that says PyTorch's current stream of a device."""
    torch = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:  # what its own compiled code asks: ten times quicker
        return raw  # type: ignore[no-any-return]
    return lambda ordinal: int(torch.cuda.current_stream(ordinal).cuda_stream)


def torch_stream(ordinal: int) -> int:
    """PyTorch's current stream of a device."""
    return raw_stream()(ordinal)


def handle_of(stream: Any) -> int:
    """The cudaStream_t of what a caller passed."""
    for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, Numba and others
        value = getattr(stream, name, None)
        if value is not None:
            value = getattr(value, "value", value)
            return int(value or 0)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    if isinstance(stream, int) and not isinstance(stream, bool) and 0 <= stream < 2**64:
        return stream
    raise refusal(
        "stream", stream, "must be a cudaStream_t as a number, or a stream of PyTorch or CuPy"
    )


def current_stream(views: list[View], ordinal: int) -> int:
    """Where the frameworks that own the arrays queue their work; 0 where none says."""
    found: dict[int, str] = {}
    for x in views:
        if is_torch(x.owner):
            found.setdefault(torch_stream(ordinal), x.name)
        elif x.stream is not None:
            found.setdefault(handle_of(x.stream), x.name)
    if len(found) > 1:
        (one, first), (two, second) = list(found.items())[:2]
        raise InvalidArgument(
            f"{first} is on stream {one:#x} and {second} on stream {two:#x}: say stream=, and "
            "order the others yourself"
        )
    return next(iter(found), 0)


def record(owners: list[Any], stream: Any) -> None:
    """Tells PyTorch that memory is in use on a stream other than its current one."""
    if hasattr(stream, "cuda_stream"):
        for x in owners:
            if is_torch(x):
                x.record_stream(stream)
