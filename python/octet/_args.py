"""Arrays of one call -> octet_gemm_args.

The library checks pointers, alignment, pitches and overlap. What it cannot see is checked here:
that every array has as many elements as the problem reads or writes, that they are of its types
and in one place, and that rows are contiguous.
"""

from __future__ import annotations

import ctypes
from ctypes import byref
from typing import Any

from . import _structs as s
from ._arrays import ANY_DEVICE, HOST, View, allocate, is_number, is_torch, view
from ._library import lib, refusal
from ._problem import GemmProblem
from ._stream import torch_stream
from .errors import InvalidArgument

METADATA = ("group_index", "group_offsets", "group_ends", "group_counts")
READS = {
    "contiguous": ("group_index",),
    "offsets": ("group_offsets",),
    "aligned": ("group_ends",),
    "masked": ("group_counts",),
    "kgrouped": ("group_offsets", "group_counts"),
}


def ceil_div(x: int, y: int) -> int:
    return -(-x // y)


def round_up(x: int, y: int) -> int:
    return -(-x // y) * y


class Arguments:
    """A filled octet_gemm_args, and everything that must live as long as it is used."""

    __slots__ = ("device", "keep", "out", "raw", "stream")

    def __init__(self) -> None:
        self.raw = s.octet_gemm_args()
        lib().octet_gemm_args_init(byref(self.raw))
        self.keep: list[Any] = []
        self.out: Any = None
        self.device = HOST
        self.stream: int | None = None


def views_of(arrays: dict[str, Any], stream: int | None = None) -> dict[str, View]:
    """The arrays that were given, all of them in one place.

    stream: the one that is going to read them, where it is not the current one.
    """

    def stream_of(ordinal: int) -> int:
        if stream is not None:
            return stream
        return torch_stream(ordinal) if any(is_torch(x) for x in arrays.values()) else 0

    views = {
        name: view(name, x, stream_of)
        for name, x in arrays.items()
        if x is not None and not (name in ("sfa", "sfb") and is_number(x))
    }
    first: View | None = None
    for x in views.values():
        first = first or x
        known = ANY_DEVICE not in (x.device, first.device)
        if x.on_device != first.on_device or (known and x.device != first.device):
            raise InvalidArgument(
                f"{x.name} is {_place(x)}: must be {_place(first)}, as {first.name} is"
            )
        if first.device == ANY_DEVICE:
            first = x
    return views


def _place(x: View) -> str:
    if x.device == HOST:
        return "in host memory"
    return "on a device" if x.device == ANY_DEVICE else f"on device {x.device}"


def _matrix(x: View, kind: str, groups: int, shareable: bool, what: str) -> s.octet_matrix:
    """groups: -1 for one matrix [rows, cols], else there are so many [groups, rows, cols]."""
    x.expect_type(kind)
    dimensions: tuple[int, ...] = (2, 3) if shareable else (3,) if groups >= 0 else (2,)
    if len(x.shape) not in dimensions:
        raise x.wrong(f"{what}, {' or '.join(map(str, dimensions))} dimensions")
    if len(x.shape) == 3 and x.shape[0] != groups:
        raise x.wrong(f"{what}, {groups} groups in the first")
    rows, cols = x.shape[-2:]
    row_stride, col_stride = x.strides[-2:]
    if col_stride != 1:
        raise InvalidArgument(
            f"{x.name} has strides {list(x.strides)}: must be 1 in the last dimension (rows are "
            "contiguous)"
        )
    if row_stride < 0 or (len(x.shape) == 3 and x.strides[0] < 0):
        raise InvalidArgument(f"{x.name} has strides {list(x.strides)}: must be 0 or more")
    if x.name in ("a", "b") and cols > 0:  # rows of no elements are never followed
        unit = 8 if kind == "bf16" else 16
        groups_apart = len(x.shape) == 3 and x.shape[0] > 1 and x.strides[0] % unit
        if (rows > 1 and row_stride % unit) or groups_apart:
            raise InvalidArgument(
                f"{x.name} has strides {list(x.strides)}: rows must lie a multiple of 16 bytes "
                f"({unit} elements) apart; octet.padded({x.name}) is a copy in which they do"
            )
    ld = round_up(max(cols, 1), 16) if rows <= 1 or cols == 0 else row_stride
    group_stride = 0
    if len(x.shape) == 3:
        group_stride = x.strides[0] if groups > 1 and cols > 0 else rows * ld
    return s.octet_matrix(x.pointer, rows, cols, ld, group_stride)


def _scales(
    args: Arguments, name: str, x: Any, v: View | None, shape: tuple[int, ...], shareable: bool
) -> s.octet_scale_matrix:
    """shape: [rows, K-blocks], or [groups, rows, K-blocks]."""
    if v is None:
        if not is_number(x):
            raise InvalidArgument(f"{name} is None: must be float32 scales {list(shape)}")
        if args.device != HOST:
            raise refusal(name, x, "must be an array on the device, as a is")
        try:
            number = ctypes.c_float(x)
        except (OverflowError, TypeError, ValueError):
            raise InvalidArgument(f"{name} is a number of no FP32 value: must be one") from None
        args.keep.append(number)
        return s.octet_scale_matrix(ctypes.addressof(number), 0, 0, 0)
    v.expect_type("f32")
    if v.shape == ():
        return s.octet_scale_matrix(v.pointer, 0, 0, 0)
    if v.shape != shape and not (shareable and v.shape == shape[1:]):
        shared = f" or {list(shape[1:])}" if shareable else ""
        raise v.wrong(f"{list(shape)}{shared} (rows or blocks of 128, K-blocks of 128), or []")
    row, k = v.strides[-2:]
    # Those of a dimension of one element are never followed: 0 for both makes it one scale.
    if 0 in (row, k):
        row, k = (row if shape[-2] > 1 else 0), (k if shape[-1] > 1 else 0)
    elif shape[-1] <= 1:
        k = round_up(max(shape[-2], 1), 4)
    return s.octet_scale_matrix(v.pointer, row, k, v.strides[0] if len(v.shape) == 3 else 0)


def _metadata(p: GemmProblem, views: dict[str, View], args: Arguments, rows: int) -> None:
    wanted = READS.get(p.grouping, ())
    if p.packed:
        wanted = ("group_counts",)
    for name in METADATA:
        x = views.get(name)
        if name not in wanted:
            if x is not None:
                raise InvalidArgument(f"{name} is given: must be None in {p.grouping} problems")
            continue
        if x is None:
            continue  # the library names it
        x.expect_type(p.index_type)
        length = rows if name == "group_index" else p.groups
        if p.grouping == "offsets":
            length += 1
        if x.shape != (length,) or x.strides != (1,):
            raise InvalidArgument(
                f"{name} has shape {list(x.shape)} and strides {list(x.strides)}: must be "
                f"[{length}], contiguous"
            )
        setattr(args.raw, name, x.pointer)


def _bias(p: GemmProblem, x: View | None, args: Arguments) -> None:
    if p.bias_type == "none":
        if x is not None:
            raise InvalidArgument("bias is given: must be None, as problem.bias_type is none")
        return
    if x is None:
        return  # the library names it
    x.expect_type(p.bias_type)
    shapes = [(p.n,)] if p.groups == 1 else [(p.n,), (p.groups, p.n)]
    if x.shape not in shapes and x.shape != (p.groups, p.n):
        raise x.wrong(" or ".join(str(list(shape)) for shape in shapes))
    if x.strides[-1] != 1 or min(x.strides) < 0:
        raise InvalidArgument(f"bias has strides {list(x.strides)}: must be 1 in the last")
    args.raw.bias = x.pointer
    args.raw.bias_group_stride = x.strides[0] if len(x.shape) == 2 and p.groups > 1 else 0


def fill(p: GemmProblem, arrays: dict[str, Any], views: dict[str, View]) -> Arguments:
    """The arguments of a call. arrays: as given; views: views_of(arrays).

    Makes `out` where it is None.
    """
    for name in ("a", "b"):
        if name not in views:
            raise InvalidArgument(f"{name} is None: must be an array")
    args = Arguments()
    a, b = views["a"], views["b"]
    args.device = a.device
    for x in views.values():
        args.keep += [x.owner, x.lent]
        if args.device == ANY_DEVICE:
            args.device = x.device
    grouping = p.grouping
    batched, kgrouped = grouping == "batched", grouping == "kgrouped"
    a_groups = p.groups if grouping in ("batched", "masked") else -1
    b_groups = -1 if grouping in ("dense", "kgrouped") else p.groups
    d_groups = p.groups if kgrouped else a_groups
    if p.packed:
        rows, k = _packed(p, a, b, args)
    else:
        args.raw.a = _matrix(a, p.in_type, a_groups, batched, _what("M, K", a_groups))
        args.raw.b = _matrix(b, p.in_type, b_groups, batched, _what("N, K", b_groups))
        rows, k = args.raw.a.rows, args.raw.a.cols

    blocks = ceil_div(k, 128)
    if p.granularity == "none":
        for name in ("sfa", "sfb"):
            if arrays.get(name) is not None:
                raise InvalidArgument(f"{name} is given: must be None with BF16 operands")
    else:
        b_rows = ceil_div(p.n, 128) if p.granularity == "1d2d" else p.n
        for name, groups, lines in (("sfa", a_groups, rows), ("sfb", b_groups, b_rows)):
            shape = (lines, blocks) if groups < 0 else (groups, lines, blocks)
            scales = _scales(args, name, arrays.get(name), views.get(name), shape, batched)
            setattr(args.raw, name, scales)

    what = _what("M, N", d_groups)
    shape = (rows, p.n) if d_groups < 0 else (d_groups, rows, p.n)
    out = views.get("out")
    if out is None:
        # Rows that no group owns are left alone: not with what lay there before.
        untouched = grouping in ("offsets", "aligned", "masked") or not p.zero_padding
        args.out = allocate(a, p.d_type, shape, untouched)
        args.keep.append(args.out)
        out = view("out", args.out)
    else:
        args.out = out.owner
        out.expect_writable()
    args.raw.d = _result(p, out, d_groups, shape, what)
    c = views.get("c")
    if p.accumulate and c is None:
        raise InvalidArgument(f"c is None: must be {list(shape)}, as problem.accumulate is True")
    if not p.accumulate and c is not None:
        raise InvalidArgument("c is given: must be None, as problem.accumulate is False")
    if c is not None:
        shared = batched and c.shape == shape[1:]
        args.raw.c = _result(p, c, d_groups, shape[1:] if shared else shape, what)
    _bias(p, views.get("bias"), args)
    _metadata(p, views, args, rows)
    workspace = views.get("workspace")
    if workspace is not None:
        if len(workspace.shape) != 1 or workspace.strides != (1,):
            raise workspace.wrong("one dimension, contiguous")
        workspace.expect_type("e4m3").expect_writable()
        args.raw.workspace, args.raw.workspace_bytes = workspace.pointer, workspace.shape[0]
    return args


def _result(
    p: GemmProblem, x: View, groups: int, shape: tuple[int, ...], what: str
) -> s.octet_matrix:
    if x.shape != shape:
        raise x.wrong(f"{list(shape)} ({what})")
    return _matrix(x, p.d_type, groups, x.name == "c" and p.grouping == "batched", what)


def _what(dimensions: str, groups: int) -> str:
    return f"[{dimensions}]" if groups < 0 else f"[groups, {dimensions}]"


def _packed(p: GemmProblem, a: View, b: View, args: Arguments) -> tuple[int, int]:
    """Packed K-grouped operands: one dimension of rows * sum of K elements each."""
    for x, rows in ((a, p.m), (b, p.n)):
        x.expect_type(p.in_type)
        if len(x.shape) != 1 or x.strides != (1,) or x.shape[0] % (128 * max(rows, 1)):
            raise x.wrong(f"one contiguous dimension, a multiple of 128 * {rows} (packed blocks)")
    k = a.shape[0] // max(p.m, 1) if p.m else b.shape[0] // max(p.n, 1)
    if p.m and p.n and b.shape[0] != k * p.n:
        raise b.wrong(f"[{k * p.n}], {p.n} rows of as many columns as a has")
    args.raw.a = s.octet_matrix(a.pointer, p.m, k, k, 0)
    args.raw.b = s.octet_matrix(b.pointer, p.n, k, k, 0)
    return p.m, k
