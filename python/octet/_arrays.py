"""Other people's arrays as pointers, shapes and strides; nothing is ever copied.

`view()` takes NumPy arrays (dtypes of ml_dtypes included), PyTorch tensors, and whatever else has
`__array_interface__`, `__cuda_array_interface__` (CuPy, Numba) or `__dlpack__` (JAX). It imports
none of these packages. FP8 and BF16 may also lie in uint8 and uint16, where the call says what they
are.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

from ._library import refusal
from .errors import InvalidArgument

# A type of octet.h -> the dtype that is it, and the one that may hold its bits.
NATURAL = {
    "e4m3": "float8_e4m3fn",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "i32": "int32",
    "i64": "int64",
    "ue8m0": "float8_e8m0fnu",
}
RAW = {"e4m3": "uint8", "bf16": "uint16", "f16": "uint16", "ue8m0": "uint8"}
_TYPE_OF = {dtype: kind for kind, dtype in NATURAL.items()}
# typestr without its byte order, for objects without a dtype.
_TYPESTRS = {
    "f4": "float32", "f2": "float16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16"
}  # fmt: skip
HOST = -1  # View.device of host memory
ANY_DEVICE = -2  # on a device, which does not say what number it has


def type_word(said: Any) -> Any:
    """"bf16" for ml_dtypes.bfloat16, numpy.dtype("bfloat16"), torch.bfloat16 and "bfloat16" too.

    What is no type of the library's is returned as it is, for the sentence that refuses it.
    """
    if said is None or (isinstance(said, str) and said in NATURAL):
        return said
    try:
        name = getattr(said, "name", None) or getattr(said, "__name__", None) or str(said)
    except Exception:  # somebody's object that has no words
        return said
    return _TYPE_OF.get(str(name).rpartition(".")[2], said)


class View:
    """Memory of somebody's array. Strides count elements."""

    __slots__ = ("device", "dtype", "lent", "name", "owner", "pointer", "readonly", "shape",
                 "stream", "strides")  # fmt: skip

    def __init__(
        self,
        name: str,
        owner: Any,
        pointer: int,
        dtype: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        readonly: bool = False,
        device: int = HOST,
        stream: int | None = None,
    ) -> None:
        self.name = name
        self.owner = owner
        self.pointer = pointer
        self.dtype = dtype
        self.shape = shape
        # A stride that is never followed may be anything; 1 disturbs nobody.
        self.strides = tuple(1 if n <= 1 else s for n, s in zip(shape, strides))
        self.readonly = readonly
        self.device = device
        self.stream = stream
        self.lent: Any = None  # what must live besides the owner

    @property
    def on_device(self) -> bool:
        return self.device != HOST

    def wrong(self, want: str) -> InvalidArgument:
        """A sentence about the shape."""
        return InvalidArgument(f"{self.name} has shape {list(self.shape)}: must be {want}")

    def expect_type(self, kind: str) -> View:
        """Itself, if the elements are of that type, or bits that can be read as it."""
        if self.dtype not in (NATURAL[kind], RAW.get(kind)):
            want = NATURAL[kind] + (f" or {RAW[kind]}" if kind in RAW else "")
            raise InvalidArgument(f"{self.name} has dtype {self.dtype}: must be {want}")
        return self

    def infer_type(self, kinds: tuple[str, ...], said: Any, parameter: str) -> str:
        """The type of the elements; `said` is what the caller says they are, or None."""
        if said is not None:
            word = type_word(said)
            if not isinstance(word, str) or word not in kinds:
                raise refusal(parameter, said, "must be " + " or ".join(map(repr, kinds)))
            self.expect_type(word)
            return word
        kind = _TYPE_OF.get(self.dtype)
        if kind in kinds:
            return kind
        raw = [k for k in kinds if RAW.get(k) == self.dtype]
        if raw and parameter:
            raise InvalidArgument(
                f"{self.name} has dtype {self.dtype}: say {parameter}={raw[0]!r} to have its bits "
                "read as that"
            )
        want = " or ".join(NATURAL[k] for k in kinds)
        raise InvalidArgument(f"{self.name} has dtype {self.dtype}: must be {want}")

    def expect_writable(self) -> View:
        if self.readonly:
            raise InvalidArgument(f"{self.name} is read-only: must be writable, results go there")
        return self


def _from_torch(name: str, tensor: Any) -> View:
    device = tensor.device
    for odd in ("nested", "quantized"):
        if getattr(tensor, f"is_{odd}", False):
            raise InvalidArgument(f"{name} is a {odd} tensor of PyTorch's: must be a plain one")
    if device.type not in ("cpu", "cuda"):
        raise InvalidArgument(f"{name} is on device {device}: must be on the CPU or a CUDA device")
    if str(tensor.layout) != "torch.strided":
        raise InvalidArgument(f"{name} has layout {tensor.layout}: must be torch.strided")
    if getattr(tensor, "is_neg", bool)():
        raise InvalidArgument(f"{name} is a view that negates what lies in memory: resolve_neg() first")
    ordinal = HOST if device.type == "cpu" else ANY_DEVICE if device.index is None else device.index
    try:
        pointer = tensor.data_ptr()
    except RuntimeError:  # of functorch and the like
        raise InvalidArgument(f"{name} has no memory of its own: must be a plain tensor") from None
    return View(
        name, tensor, pointer, str(tensor.dtype).rpartition(".")[2],
        tuple(tensor.shape), tuple(tensor.stride()), False, ordinal,
    )  # fmt: skip


def _dtype_name(name: str, array: Any, typestr: str) -> str:
    if typestr[:1] == (">" if sys.byteorder == "little" else "<"):
        raise InvalidArgument(f"{name} has dtype {typestr}: must be in the machine's byte order")
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        return _TYPESTRS.get(typestr[1:], typestr)
    return str(getattr(dtype, "name", dtype))


def _from_interface(name: str, array: Any, interface: Any, on_device: bool) -> View:
    dtype = _dtype_name(name, array, interface["typestr"])
    shape = tuple(interface["shape"])
    digits = interface["typestr"][2:].partition("[")[0]  # "<M8[s]" has a unit, "|O" no size
    size = int(digits) if digits.isdigit() and int(digits) else 1
    strides = interface.get("strides")
    if strides is None:
        counted = []
        step = 1
        for n in reversed(shape):
            counted.append(step)
            step *= n
        strides = tuple(reversed(counted))
    else:
        if any(n > 1 and b % size for n, b in zip(shape, strides)):
            raise InvalidArgument(
                f"{name} has strides of {list(strides)} bytes: must be multiples of its elements' "
                f"{size} bytes"
            )
        strides = tuple(b // size for b in strides)
    if interface.get("mask") is not None or _is_masked(array):
        raise InvalidArgument(f"{name} has a mask: must be without one")
    pointer, readonly = interface["data"]
    ordinal, stream = HOST, None
    if on_device:
        device = getattr(array, "device", None)
        number = getattr(device, "local_hardware_id", getattr(device, "id", None))  # JAX, CuPy
        ordinal = number if isinstance(number, int) else ANY_DEVICE
        stream = interface.get("stream")
    return View(name, array, pointer or 0, dtype, shape, strides, bool(readonly), ordinal, stream)


def _from_dlpack(name: str, array: Any, stream_of: Callable[[int], int]) -> View:
    from ._dlpack import Lent  # rarely needed

    x = Lent(name, array, stream_of)
    found = View(
        name, array, x.pointer, x.dtype, x.shape, x.strides, x.readonly,
        HOST if x.ordinal is None else x.ordinal,
    )  # fmt: skip
    found.lent = x.capsule
    return found


def _is_masked(array: Any) -> bool:
    """NumPy's masked arrays, whose interface keeps silent about the mask."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(array, getattr(masked, "MaskedArray", ()))


def is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, getattr(torch, "Tensor", ()))


def is_number(x: Any) -> bool:
    """Whether it is a number, NumPy's own too: those lend no memory that lasts."""
    numpy = sys.modules.get("numpy")
    return isinstance(x, (int, float)) or (
        numpy is not None
        and isinstance(x, getattr(numpy, "number", ()))
        and not isinstance(x, getattr(numpy, "complexfloating", ()))
    )


def _default_stream(ordinal: int) -> int:
    return 0


def _made_of(name: str, array: Any) -> str:
    """How to have an array of a list, for the end of a sentence. It is not made here: every call
    would make it anew, and on a device wait for it."""
    if not isinstance(array, (list, tuple)):
        return ""
    dtype = ", 'int32'" if name.startswith("group_") else ""
    return f"; numpy.array({name}{dtype}) makes one of a {type(array).__name__}"


def view(name: str, array: Any, stream_of: Callable[[int], int] = _default_stream) -> View:
    """The memory of an array, under the name that sentences call it by.

    stream_of: of a device's number, the stream that is going to read it; asked for DLPack alone.
    """
    if isinstance(array, View):
        return array
    if is_torch(array):
        return _from_torch(name, array)
    for interface in ("__cuda_array_interface__", "__array_interface__"):
        shown = None if is_number(array) else getattr(array, interface, None)
        if shown is not None:
            try:
                return _from_interface(name, array, shown, interface.startswith("__cuda"))
            except (AttributeError, IndexError, KeyError, TypeError) as error:
                raise InvalidArgument(
                    f"{name} does not show its memory: {interface} is broken "
                    f"({type(error).__name__}: {error})"
                ) from None
    if hasattr(array, "__dlpack__") and not is_number(array):
        return _from_dlpack(name, array, stream_of)
    raise refusal(
        name, array,
        "must be an array (NumPy, PyTorch, or one with __array_interface__, "
        "__cuda_array_interface__ or __dlpack__)" + _made_of(name, array),
    )  # fmt: skip


def allocate(like: View, kind: str, shape: tuple[int, ...], zeros: bool) -> Any:
    """A new array where `like` is, of the same framework: PyTorch's, else NumPy's on the host.

    BF16 and e4m3 in NumPy are those of ml_dtypes; without that package, uint16 and uint8.
    """
    dtype = NATURAL[kind]
    if is_torch(like.owner):
        torch = sys.modules["torch"]
        make = torch.zeros if zeros else torch.empty
        return make(shape, dtype=getattr(torch, dtype), device=like.owner.device)
    if like.on_device:
        raise InvalidArgument(
            f"out is None: must be given, as {like.name} is no PyTorch tensor on the device"
        )
    import numpy

    return (numpy.zeros if zeros else numpy.empty)(shape, dtype=numpy_dtype(kind))


def numpy_dtype(kind: str) -> Any:
    import numpy

    if kind in ("e4m3", "bf16", "ue8m0"):
        try:
            import ml_dtypes
        except ImportError:
            return numpy.dtype(RAW[kind])
        return numpy.dtype(getattr(ml_dtypes, NATURAL[kind], RAW[kind]))  # e8m0 is newer
    return numpy.dtype(NATURAL[kind])
