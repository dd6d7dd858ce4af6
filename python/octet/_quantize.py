"""FP32, BF16 or FP16 arrays to codes and scales, and back, as docs/numerics.md section 3 says.

Arrays in host memory go to the library; PyTorch tensors on a device are computed by PyTorch's own
operations (_quantize_torch.py), which give the same bits.
"""

from __future__ import annotations

import sys
from ctypes import byref
from typing import Any

from . import _structs as s
from ._args import ceil_div, round_up
from ._arrays import HOST, NATURAL, RAW, View, allocate, is_torch, numpy_dtype, type_word, view
from ._library import check, integer, lib, refusal
from ._problem import word_number
from ._run import int32
from .errors import InvalidArgument

_SOURCES = ("f32", "bf16", "f16")


def _expect_place(x: View) -> None:
    if x.on_device and not is_torch(x.owner):
        raise InvalidArgument(
            f"{x.name} is on a device: must be in host memory, or a PyTorch tensor"
        )


def _matrix(x: View) -> s.octet_matrix:
    if len(x.shape) != 2:
        raise x.wrong("2 dimensions")
    _expect_place(x)
    rows, cols = x.shape
    ld, step = x.strides
    if step != 1 or ld < 0:
        raise InvalidArgument(
            f"{x.name} has strides {list(x.strides)}: must be 1 in the last dimension (rows are "
            "contiguous), and 0 or more"
        )
    return s.octet_matrix(x.pointer, rows, cols, max(cols, 1) if rows <= 1 else ld, 0)


def flag(name: str, x: Any) -> bool:
    """A yes or no, or a sentence."""
    try:
        return bool(x)
    except (RuntimeError, TypeError, ValueError):  # an array of several
        raise refusal(name, x, "must be True or False") from None


class _Shape:
    """Of one quantisation: K along x's axis, the lines across it."""

    def __init__(self, shape: tuple[int, ...], block: str, axis: int, transpose: bool) -> None:
        axis = integer("axis", axis, 0, 1, "must be 1 (K runs along columns) or 0 (along rows)")
        self.block = word_number("block", s.BLOCKS, block)
        self.k, self.lines = shape[axis], shape[1 - axis]
        self.scales = self.scales_of(block)
        self.k_last = (axis == 1) != flag("transpose", transpose)

    def scales_of(self, block: str) -> tuple[int, int]:
        lines = self.lines if block == "1x128" else ceil_div(self.lines, 128)
        return (lines, ceil_div(self.k, 128))

    def codes(self, k: int) -> tuple[int, int]:
        return (self.lines, k) if self.k_last else (k, self.lines)


def _padded(like: View, shape: tuple[int, ...], kind: str, unit: int) -> Any:
    """Zeros where `like` is, of its framework; rows start `unit` elements apart, or a multiple."""
    whole = (*shape[:-1], round_up(max(shape[-1], 1), unit))
    if is_torch(like.owner):
        torch = sys.modules["torch"]
        dtype = getattr(torch, NATURAL[kind], None) or getattr(torch, RAW[kind])
        raw = torch.float32 if kind == "f32" else torch.uint8
        zeros = torch.zeros(whole, dtype=raw, device=like.owner.device)
        return zeros.view(dtype)[..., : shape[-1]]
    import numpy

    return numpy.zeros(whole, numpy_dtype(kind))[..., : shape[-1]]


def _fill(args: s.octet_quantize_args, codes: View, scales: View, shape: _Shape) -> None:
    codes.expect_type("e4m3")
    args.codes = _matrix(codes)
    kind = "ue8m0" if args.scale_format == 2 else "f32"
    scales.expect_type(kind)
    if scales.shape != shape.scales and scales.shape != ():
        other = "1x128" if shape.block == 2 else "128x128"
        fits_other = scales.shape == shape.scales_of(other)
        hint = f"; this shape is of block={other!r}, say so if it was quantised so"
        raise scales.wrong(str(list(shape.scales)) + (hint if fits_other else ""))
    _expect_place(scales)
    args.scales = scales.pointer
    args.row_stride, args.k_stride = scales.strides or (0, 0)


def _args(x: View, x_type: str, block: int, axis: int, transpose: bool, scale_format: str,
          threads: int) -> s.octet_quantize_args:  # fmt: skip
    args = s.octet_quantize_args()
    lib().octet_quantize_args_init(byref(args))
    args.block, args.axis, args.transpose = block, axis, int(flag("transpose", transpose))
    args.x_type = s.TYPES.index(x_type)
    args.scale_format = word_number("scale_format", s.SCALE_FORMATS, scale_format)
    args.threads = int32("threads", threads)
    args.x = _matrix(x)
    return args


def quantize(
    x: Any,
    block: str = "1x128",
    *,
    axis: int = 1,
    transpose: bool = False,
    scale_format: str = "f32",
    amax_min: float = 0.0,
    scale_order: str | None = None,
    pad_k: bool = False,
    codes: Any = None,
    scales: Any = None,
    dtype: Any = None,
    threads: int = 0,
) -> tuple[Any, Any]:
    """Codes and scales of x [rows,cols], by docs/numerics.md section 3 to the bit.

    x: float32, bfloat16 or float16: NumPy, or a PyTorch tensor on any device; what is made is of
        the same framework, in the same place. dtype="bf16" or "f16" reads uint16 so.
    block: "1x128", one scale for 128 elements along K, or "128x128". axis: 1 if K runs along
        columns, 0 if along rows. transpose: codes are written as the transpose of x; axis=0 with it
        gives the K-contiguous operands of weight gradients.
    scale_format: "f32" (amax / 448), "pow2" (rounded up to a power of two), "ue8m0" (that as one
        byte, exponent + 127; a GEMM takes float32 scales). amax_min: amax is at least this.
    scale_order: "column" lays scales of one K-block next to each other, padded to multiples of 4
        ("1x128" does so by default), "row" those of one line ("128x128" does).
    pad_k: codes are as long along K as the next multiple of 128, with zeros after K.
    codes, scales: where to write; made when None, float8_e4m3fn (uint8 without ml_dtypes) with rows
        16 bytes apart or a multiple, as a GEMM wants them.

    Returns (codes, scales): codes [rows,cols] or its transpose, scales [lines, ceil(K/128)], where
    lines counts the axis that is not K, in elements (1x128) or blocks of 128.
    Raises InvalidArgument for wrong dtypes, shapes, strides, read-only or overlapping arrays.
    """
    return quantize_by(
        "octet_cpu_quantize", x, block, axis=axis, transpose=transpose, scale_format=scale_format,
        amax_min=amax_min, scale_order=scale_order, pad_k=pad_k, codes=codes, scales=scales,
        dtype=dtype, threads=threads,
    )  # fmt: skip


def quantize_by(
    function: str, x: Any, block: str = "1x128", *, axis: int = 1, transpose: bool = False,
    scale_format: str = "f32", amax_min: float = 0.0, scale_order: str | None = None,
    pad_k: bool = False, codes: Any = None, scales: Any = None, dtype: Any = None, threads: int = 0,
) -> tuple[Any, Any]:  # fmt: skip
    """`quantize()` by a function of the library."""
    source = view("x", x)
    x_type = source.infer_type(_SOURCES, dtype, "dtype")
    if len(source.shape) != 2:
        raise source.wrong("2 dimensions")
    shape = _Shape(source.shape, block, axis, transpose)
    args = _args(source, x_type, shape.block, axis, transpose, scale_format, threads)
    try:
        if getattr(getattr(amax_min, "dtype", None), "kind", "") == "c":
            raise TypeError
        args.amax_min = amax_min
    except (TypeError, ValueError, RuntimeError):
        raise refusal("amax_min", amax_min, "must be a number") from None
    except OverflowError:
        raise InvalidArgument("amax_min is a number of no FP32 value: must be one") from None
    order = ("column" if block == "1x128" else "row") if scale_order is None else scale_order
    if not isinstance(order, str) or order not in ("column", "row"):
        raise refusal("scale_order", scale_order, "must be 'column' or 'row'")
    if codes is None:
        k = round_up(shape.k, 128) if flag("pad_k", pad_k) else shape.k
        codes = _padded(source, shape.codes(k), "e4m3", 16)
    if scales is None:
        kind = "ue8m0" if scale_format == "ue8m0" else "f32"
        lines, blocks = shape.scales
        scales = _padded(source, (blocks, lines), kind, 4).T if order == "column" else _padded(
            source, (lines, blocks), kind, 1)  # fmt: skip
    code_view = view("codes", codes).expect_writable()
    scale_view = view("scales", scales).expect_writable()
    if scale_view.shape == ():
        raise scale_view.wrong(str(list(shape.scales)))
    _fill(args, code_view, scale_view, shape)
    if _together(source, code_view, scale_view):
        _check_amax_min(args)
        from ._quantize_torch import quantize_into

        rows = 1 if block == "1x128" else 128
        quantize_into(
            sys.modules["torch"], x, codes, scales, rows, axis, shape.k_last, scale_format,
            args.amax_min)  # fmt: skip
    else:
        check(getattr(lib(), function)(byref(args)))
    return codes, scales


def _together(*views: View) -> bool:
    """Whether arrays are on a device, all on the same one; or a sentence."""
    first = views[0]
    for x in views[1:]:
        if x.device != first.device:
            where = "in host memory" if first.device == HOST else f"on device {first.device}"
            raise InvalidArgument(f"{x.name} is elsewhere: must be {where}, as {first.name} is")
    return first.on_device


def _check_amax_min(of: s.octet_quantize_args) -> None:
    """The library's word on a setting, of an empty matrix: it has no device of its own here."""
    args = s.octet_quantize_args()
    lib().octet_quantize_args_init(byref(args))
    args.amax_min = of.amax_min
    args.x.ld = args.codes.ld = 1
    check(lib().octet_cpu_quantize(byref(args)))


def dequantize(
    codes: Any,
    scales: Any,
    block: str = "1x128",
    *,
    axis: int = 1,
    transpose: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    threads: int = 0,
) -> Any:
    """x = code * scale in FP32, rounded once to the type of the result. Returns x.

    codes: float8_e4m3fn or uint8 [rows,cols] (the transpose of the result with transpose=True).
    scales: float32, or float8_e8m0fnu or uint8 for UE8M0, as `quantize()` makes them; of shape []
        for one scale. out: where to write; made when None. out_dtype: "f32" (default), "bf16",
        "f16", or a dtype that is one; says what an `out` of uint16 holds. block, axis, and where
        arrays may lie: as in `quantize()`.
    """
    return dequantize_by(
        "octet_cpu_dequantize", codes, scales, block, axis=axis, transpose=transpose, out=out,
        out_dtype=out_dtype, threads=threads,
    )  # fmt: skip


def dequantize_by(
    function: str, codes: Any, scales: Any, block: str = "1x128", *, axis: int = 1,
    transpose: bool = False, out: Any = None, out_dtype: Any = None, threads: int = 0,
) -> Any:  # fmt: skip
    """`dequantize()` by a function of the library."""
    code_view = view("codes", codes)
    scale_view = view("scales", scales)
    if len(code_view.shape) != 2:
        raise code_view.wrong("2 dimensions")
    x_shape = code_view.shape[::-1] if flag("transpose", transpose) else code_view.shape
    if out is None:
        kind = "f32" if out_dtype is None else type_word(out_dtype)
        if not isinstance(kind, str) or kind not in _SOURCES:
            raise refusal("out_dtype", out_dtype, "must be 'f32', 'bf16' or 'f16'")
        out = allocate(code_view, kind, tuple(x_shape), False)
    x = view("out", out).expect_writable()
    kind = x.infer_type(_SOURCES, out_dtype, "out_dtype")
    if len(x.shape) != 2:
        raise x.wrong("2 dimensions")
    scale_format = "f32" if scale_view.dtype == "float32" else "ue8m0"
    shape = _Shape(x.shape, block, axis, transpose)
    args = _args(x, kind, shape.block, axis, transpose, scale_format, threads)
    _fill(args, code_view, scale_view, shape)
    if _together(x, code_view, scale_view):
        from ._quantize_torch import dequantize_into

        rows = 1 if block == "1x128" else 128
        dequantize_into(sys.modules["torch"], codes, scales, out, rows, axis, shape.k_last)
    else:
        check(getattr(lib(), function)(byref(args)))
    return out


def quantize_activations(
    x: Any, *, scale_format: str = "f32", amax_min: float = 0.0, dtype: Any = None,
    threads: int = 0,
) -> tuple[Any, Any]:  # fmt: skip
    """One scale for each token and 128 channels: x [M,K] -> (codes [M,K], scales [M,ceil(K/128)]).

    The scales lie column-major, as a GEMM reads them fastest. x [G,M,K] gives [G, ...] of both.
    Arguments and exceptions as in `quantize()`.
    """
    return _each(x, "1x128", scale_format, amax_min, dtype, threads)


def quantize_weights(
    w: Any, *, scale_format: str = "f32", amax_min: float = 0.0, dtype: Any = None,
    threads: int = 0,
) -> tuple[Any, Any]:  # fmt: skip
    """One scale for each 128x128 block: w [N,K] -> (codes [N,K], scales [ceil(N/128),ceil(K/128)]).

    w [G,N,K] (experts) gives [G, ...] of both. Arguments and exceptions as in `quantize()`.
    """
    return _each(w, "128x128", scale_format, amax_min, dtype, threads)


def _each(
    x: Any, block: str, scale_format: str, amax_min: float, dtype: Any, threads: int
) -> tuple[Any, Any]:
    v = view("x", x)
    if len(v.shape) != 3:
        return quantize(
            x, block, scale_format=scale_format, amax_min=amax_min, dtype=dtype, threads=threads
        )
    groups, rows, k = v.shape
    lines, blocks = (rows if block == "1x128" else ceil_div(rows, 128)), ceil_div(k, 128)
    codes = _padded(v, (groups, rows, k), "e4m3", 16)
    kind = "ue8m0" if scale_format == "ue8m0" else "f32"
    if block == "1x128":
        scales = _padded(v, (groups, blocks, lines), kind, 4).swapaxes(1, 2)
    else:
        scales = _padded(v, (groups, lines, blocks), kind, 1)
    for g in range(groups):
        quantize(
            x[g], block, scale_format=scale_format, amax_min=amax_min, dtype=dtype,
            codes=codes[g], scales=scales[g], threads=threads,
        )  # fmt: skip
    return codes, scales
