"""Arrays that show their memory through DLPack alone: JAX's, and others'.

Nothing is copied here. The capsule that a producer hands out is kept for as long as its memory is
used, and not taken over: it gives the memory back when nobody holds it any more.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Callable

from .errors import InvalidArgument

_HOST, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_DTYPES = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8",
    (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64", (2, 16): "float16",
    (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16", (6, 8): "bool",
    (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2", (14, 8): "float8_e8m0fnu",
}  # fmt: skip
_READ_ONLY = 1  # a flag of versioned capsules


class _Tensor(Structure):
    _fields_ = [
        ("data", c_void_p), ("device_type", c_int32), ("device", c_int32), ("dimensions", c_int32),
        ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]  # fmt: skip


class _Versioned(Structure):
    _fields_ = [
        ("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p), ("deleter", c_void_p),
        ("flags", c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


def _pointer_in(capsule: Any, name: bytes) -> int | None:
    """What a capsule of that name holds."""
    named = ctypes.PYFUNCTYPE(c_int32, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_IsValid", ctypes.pythonapi)
    )
    if not named(capsule, name):
        return None
    pointer_of = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    found: int | None = pointer_of(capsule, name)
    return found


def _exported(name: str, array: Any, stream_of: Callable[[int], int]) -> Any:
    """The capsule; the producer's work is done, or ordered before what the stream does next."""
    try:
        kind, ordinal = array.__dlpack_device__()
        options: dict[str, Any] = {}
        if int(kind) in (_CUDA, _CUDA_MANAGED):
            options["stream"] = stream_of(int(ordinal)) or 1  # DLPack's number of the default one
        elif hasattr(array, "block_until_ready"):  # JAX computes behind one's back on the CPU, too
            array.block_until_ready()
        try:
            return array.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # a producer from before versions
            return array.__dlpack__(**options)
    except (AttributeError, BufferError, NotImplementedError, RuntimeError, TypeError,
            ValueError) as error:  # fmt: skip
        raise InvalidArgument(f"{name} does not show its memory: {error}") from None


class Lent:
    """What an array says of itself, and the capsule that must live as long as it is used."""

    __slots__ = ("capsule", "dtype", "ordinal", "pointer", "readonly", "shape", "strides")

    def __init__(self, name: str, array: Any, stream_of: Callable[[int], int]) -> None:
        self.capsule = _exported(name, array, stream_of)
        maker = type(array).__module__.partition(".")[0]
        self.readonly = maker in ("jax", "jaxlib")  # which say no flag
        address = _pointer_in(self.capsule, b"dltensor_versioned")
        if address:
            whole = _Versioned.from_address(address)
            if whole.major != 1:
                raise InvalidArgument(f"{name} shows DLPack {whole.major}: must be version 1")
            x, self.readonly = whole.tensor, self.readonly or bool(whole.flags & _READ_ONLY)
        else:
            address = _pointer_in(self.capsule, b"dltensor")
            if not address:
                raise InvalidArgument(f"{name} does not show its memory: no capsule of DLPack's")
            x = _Tensor.from_address(address)
        if x.device_type not in (_HOST, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
            raise InvalidArgument(
                f"{name} is on DLPack's device type {x.device_type}: must be on the CPU or a CUDA "
                "device"
            )
        unknown = f"DLPack's {x.code} of {x.bits} bits"
        self.dtype = _DTYPES.get((x.code, x.bits), unknown) if x.lanes == 1 else unknown
        self.ordinal = None if x.device_type in (_HOST, _CUDA_HOST) else int(x.device)
        self.pointer = (x.data or 0) + x.byte_offset
        self.shape = tuple(x.shape[: x.dimensions])
        if x.strides:
            self.strides = tuple(x.strides[: x.dimensions])
        else:
            counted = [1]
            for n in self.shape[:0:-1]:
                counted.append(counted[-1] * n)
            self.strides = tuple(counted[::-1][: x.dimensions])
