"""The short way of a call that was made before, in C: liboctet_python.so.

Python calls that library directly, without ctypes between. It reads tensors through the table of
C functions that PyTorch has since 2.10 (DLPack's `__dlpack_c_exchange_api__`), and launches. It
lies beside liboctet.so, is compiled against no Python, and fits every CPython. Without it, with an
older PyTorch or another Python, _cache.py does the same in Python, which takes three times as long.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_int32,
    c_int64,
    c_uint32,
    c_void_p,
    py_object,
    sizeof,
)
from typing import Any

from . import _library
from . import _structs as s
from ._args import Arguments
from ._cache import maker_of

_FILE = "liboctet_python.so"
_FUNCTIONS = ("bind", "bound_destroy", "run_bound", "gemm")


class _Exchange(Structure):
    """Version 1 of DLPack's table, as far as it is looked at here."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("older", c_void_p),
        ("managed", c_void_p * 3),
        ("read", c_void_p),
        ("current_stream", c_void_p),
    ]


class _Api(Structure):
    """octet_python_api of src/python/shortcut.h."""

    _fields_ = [
        ("exchange", c_void_p),
        ("tensor_types", c_void_p * 2),
        ("is_neg", c_void_p),
        ("none", c_void_p),
        ("functions", c_void_p * 4),
        ("most", c_int64),
        ("sizes", c_int64 * 3),
    ]


def _exchange_of(tensor: Any) -> int | None:
    """The address of the table that a tensor type names; None without one of version 1."""
    capsule = getattr(tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    pointer_of = ctypes.PYFUNCTYPE(c_void_p, py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    address: int | None = pointer_of(capsule, b"dlpack_exchange_api")
    while address:
        table = _Exchange.from_address(address)
        if table.major == 1:
            return address if table.read and table.current_stream else None
        address = table.older
    return None


def _address(name: str) -> int | None:
    return ctypes.cast(getattr(_library.lib(), name), c_void_p).value


class Shortcut:
    """Calls that are remembered in C."""

    def __init__(self, functions: Any, api: _Api, keep: list[Any]) -> None:
        self._functions = functions
        self._keep = keep
        self._kind = 0
        self.table = functions.octet_python_table(byref(api))

    def launcher(self) -> Any:
        """A function for one kind of call: launch(a, b, sfa, sfb, out, ...); see shortcut.h."""
        self._kind += 1
        return self._functions.octet_python_launcher(self.table, self._kind)

    def remember(self, launch: Any, context: Any, problem: Any, arrays: dict[str, Any],
                 args: Arguments, plan: Any) -> None:  # fmt: skip
        """A call that went well; arrays in the order that launch() takes them in."""
        _remember(self._functions, launch, context, problem, arrays, args, plan)


def _remember(functions: Any, launch: Any, context: Any, problem: Any, arrays: dict[str, Any],
              args: Arguments, plan: Any) -> None:  # fmt: skip
    fields = ["d" if name == "out" else name for name in arrays]
    places = (c_int32 * len(fields))(
        *(-1 if x is None else getattr(s.octet_gemm_args, field).offset
          for field, x in zip(fields, arrays.values()))
    )  # fmt: skip
    make = None
    if arrays["out"] is None:
        make = Maker(functions, context, problem, plan, tuple(arrays), maker_of(problem, args))
    functions.octet_python_remember(
        launch, tuple(arrays.values()), places, byref(problem._raw), byref(plan._raw),
        byref(args.raw), context._handle, context, make,
    )  # fmt: skip


class Maker:
    """A call that makes its `out`, and then is one that was given it.

    The table in C keeps it, so it keeps nothing that keeps the table: no collector sees that.
    """

    __slots__ = ("context", "functions", "make", "names", "plan", "problem")

    def __init__(self, functions: Any, context: Any, problem: Any, plan: Any,
                 names: tuple[str, ...], make: Any) -> None:  # fmt: skip
        self.functions = functions
        self.context = context
        self.problem = problem
        self.plan = plan
        self.names = names
        self.make = make

    def __call__(self, launch: Any, a: Any, b: Any, sfa: Any, sfb: Any, more: Any) -> Any:
        out = self.make()
        if launch(a, b, sfa, sfb, out, *more) is None:
            values = (a, b, sfa, sfb, out, *more, *[None] * len(self.names))
            arrays = dict(zip(self.names, values))
            args = self.context._gemm(self.problem, self.plan, arrays, None)
            _remember(
                self.functions, launch, self.context, self.problem, arrays, args, self.plan
            )
        return out


def _open() -> Any:
    """The library, or None: it lies beside the other one, or nowhere."""
    path = os.path.join(os.path.dirname(_library.load_library()), _FILE)
    try:
        functions = ctypes.PyDLL(path)
        functions.octet_python_table.restype = py_object
        functions.octet_python_table.argtypes = [POINTER(_Api)]
        functions.octet_python_launcher.restype = py_object
        functions.octet_python_launcher.argtypes = [py_object, c_int64]
        functions.octet_python_remember.restype = c_int32
        functions.octet_python_remember.argtypes = [
            py_object, py_object, POINTER(c_int32), c_void_p, c_void_p, c_void_p, c_void_p,
            py_object, py_object,
        ]  # fmt: skip
    except (OSError, AttributeError):
        return None
    return functions


def find(most: int) -> Shortcut | None:
    """A table that remembers so many calls; None where the short way is not to be had."""
    torch = sys.modules["torch"]
    exchange = _exchange_of(torch.Tensor)
    if exchange is None or sys.implementation.name != "cpython":
        return None
    functions = _open()
    if functions is None:
        return None
    parameter = getattr(getattr(torch, "nn", None), "Parameter", None)
    is_neg = torch.Tensor.is_neg
    sizes = [sizeof(t) for t in (s.octet_gemm_problem, s.octet_gemm_plan, s.octet_gemm_args)]
    api = _Api(
        exchange, (id(torch.Tensor), 0 if parameter is None else id(parameter)), id(is_neg),
        id(None), tuple(_address(f"octet_cuda_{name}") for name in _FUNCTIONS), most,
        tuple(sizes),
    )  # fmt: skip
    found = Shortcut(functions, api, [torch.Tensor, parameter, is_neg])
    return None if found.table is None else found
