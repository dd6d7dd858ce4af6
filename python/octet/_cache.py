"""Calls that were made before: PyTorch tensors that lie alike need new pointers and nothing else.

Reading the problem off the arrays costs more than a small kernel takes. So what came of it is kept,
under everything it depends on: types, shapes, strides, alignment and options. Pointers are no part
of it, no tensor is kept alive, and the library checks the arguments of every call as always.
"""

from __future__ import annotations

import os
import sys
from ctypes import byref, c_int64, sizeof
from typing import Any

from . import _structs as s
from ._args import Arguments
from ._library import fail, lib
from ._stream import torch_stream

_ARGS = s.octet_gemm_args
_WORDS = c_int64 * (sizeof(_ARGS) // 8)
# Which word of octet_gemm_args is an array's pointer; `data` comes first in matrices.
_WORD = {
    name: getattr(_ARGS, "d" if name == "out" else name).offset // 8
    for name in ("a", "b", "sfa", "sfb", "out", "c", "bias", "group_index", "group_offsets",
                 "group_ends", "group_counts")
}  # fmt: skip
_MOST = 1024  # calls that are remembered; then all are forgotten

_calls: dict[Any, Call] = {}
os.register_at_fork(after_in_child=_calls.clear)  # contexts do not outlive a fork


class Call:
    """Arguments without pointers, and how to make `out`."""

    __slots__ = ("context", "make", "problem", "raw", "words")

    def __init__(self, context: Any, problem: Any, arrays: dict[str, Any], args: Arguments) -> None:
        self.context = context
        self.problem = problem
        self.raw = bytes(args.raw)
        self.words = [_WORD[name] for name, x in arrays.items() if x is not None]
        self.make: Any = None
        if arrays["out"] is None:
            torch = sys.modules["torch"]
            out = args.out
            zeros = problem.grouping in ("offsets", "aligned", "masked") or not problem.zero_padding
            make, shape = (torch.zeros if zeros else torch.empty), tuple(out.shape)
            dtype = getattr(torch, str(out.dtype).rpartition(".")[2])
            device = out.device
            self.make = lambda: make(shape, dtype=dtype, device=device)

    def run(self, out: Any, pointers: list[int]) -> Any:
        raw = bytearray(self.raw)
        words = _WORDS.from_buffer(raw)
        for word, pointer in zip(self.words, pointers):
            words[word] = pointer
        if out is None:
            out = self.make()
            words[_WORD["out"]] = out.data_ptr()
        context = self.context
        code = lib().octet_cuda_gemm(
            context._handle, byref(self.problem._raw), byref(_ARGS.from_buffer(raw)),
            torch_stream(context.ordinal),
        )  # fmt: skip
        if code:
            fail(code)
        return out


def key_of(
    grouping: str, arrays: dict[str, Any], said: dict[str, Any]
) -> tuple[Any, list[int]]:
    """What a call of PyTorch tensors on a device depends on, and their pointers, in order of
    `arrays` without those that are None. Key None: another kind of call."""
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    pointers: list[int] = []
    if tensor is None or not isinstance(arrays["a"], tensor):
        return None, pointers
    key: list[Any] = [grouping, *said.values()]
    for name, x in arrays.items():
        if x is None:
            continue
        device = x.get_device() if isinstance(x, tensor) else -1
        if device < 0:  # host memory
            return None, pointers
        pointer = x.data_ptr()
        pointers.append(pointer)
        key += (name, x.dtype, x.shape, x.stride(), pointer & 15, device)
    return tuple(key), pointers


def recall(key: Any) -> Call | None:
    try:
        return _calls.get(key)
    except TypeError:  # an option that cannot be hashed, and will be refused
        return None


def remember(key: Any, call: Call) -> None:
    if len(_calls) >= _MOST:
        _calls.clear()
    _calls[key] = call
