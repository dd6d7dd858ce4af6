"""Metadata of grouped problems from the rows that each group has: where rows go, and whose they are.

    counts = [5, 0, 7]                                   # rows of each expert
    offsets = octet.groups.offsets(counts)               # [0, 5, 5, 12]: gemm_offsets()
    ends = octet.groups.ends(counts, 128)                # [5, 128, 135]: gemm_aligned()
    index = octet.groups.index(counts, 128)              # int32 [256]: gemm_contiguous()
    rows = octet.groups.rows(counts, 128)                # where row i of the sorted rows lies there

counts is a list of numbers, a NumPy array or a PyTorch tensor; what is made is a NumPy array, or a
tensor where counts is one, on its device. Nothing but `index()` and `rows()` without `total` reads
a device's counts on the host.
"""

from __future__ import annotations

import sys
from typing import Any

from ._arrays import is_torch
from ._library import integer, refusal
from .errors import InvalidArgument

__all__ = ["ends", "index", "offsets", "padded_rows", "rows"]


_MOST = 2**31 - 1


def _module(counts: Any) -> Any:
    if is_torch(counts):
        return sys.modules["torch"]
    import numpy

    return numpy


def _int64(counts: Any) -> Any:
    """counts, one dimension of int64."""
    if is_torch(counts):
        torch = sys.modules["torch"]
        whole = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
        floating = counts.dtype not in whole or counts.layout != torch.strided
        made = counts if floating else counts.to(torch.int64)
    else:
        import numpy

        try:
            made = numpy.asarray(counts)
        except (TypeError, ValueError):
            raise refusal("counts", counts, "must be whole numbers in one dimension") from None
        floating = made.size > 0 and made.dtype.kind not in "iu"
        if not floating and made.dtype.kind == "u":
            made = made.clip(None, _MOST + 1)
        made = made if floating else made.astype(numpy.int64)
    if floating or len(made.shape) != 1:
        raise refusal("counts", counts, "must be whole numbers in one dimension, one for each group")
    if _on_host(made) and ((made < 0).any() or (made > _MOST).any()):
        raise refusal("counts", counts, "must be numbers of rows, 0 or more, that fit 32 bits")
    return made


def _on_host(x: Any) -> bool:
    """Whether looking at x waits for nobody."""
    return not is_torch(x) or x.device.type == "cpu"


def _alignment(alignment: int) -> int:
    return integer("alignment", alignment, 1, _MOST, "must be 1 or more, and fit 32 bits")


def _total(total: int) -> int:
    return integer("total", total, 0, _MOST, "must be a number of rows, 0 or more, and fit 32 bits")


def _padded(counts: Any, alignment: int) -> Any:
    return (counts + (alignment - 1)) // alignment * alignment


def _starts(numbers: Any, module: Any) -> Any:
    """Sum of the numbers before each."""
    return module.cumsum(numbers, 0) - numbers


def _int32(x: Any, module: Any) -> Any:
    if _on_host(x) and (x > _MOST).any():
        raise InvalidArgument(f"counts: are {int(x.max())} rows with their padding, must fit 32 bits")
    return x.to(module.int32) if is_torch(x) else x.astype(module.int32)


def offsets(counts: Any) -> Any:
    """int32 [G+1]: group g owns rows offsets[g] to offsets[g+1] - 1."""
    module, numbers = _module(counts), _int64(counts)
    made = module.zeros(numbers.shape[0] + 1, dtype=module.int64, **_place(numbers))
    made[1:] = module.cumsum(numbers, 0)
    return _int32(made, module)


def _place(numbers: Any) -> dict[str, Any]:
    return {"device": numbers.device} if is_torch(numbers) else {}


def ends(counts: Any, alignment: int = 128) -> Any:
    """int32 [G]: where each group's rows end, when each starts at a multiple of alignment."""
    module, numbers = _module(counts), _int64(counts)
    starts = _starts(_padded(numbers, _alignment(alignment)), module)
    return _int32(starts + numbers, module)


def padded_rows(counts: Any, alignment: int = 128) -> int:
    """Rows of the whole, when each group starts at a multiple of alignment; read on the host."""
    return int(_padded(_int64(counts), _alignment(alignment)).sum())


def index(counts: Any, alignment: int = 128, total: int | None = None) -> Any:
    """int32 [rows]: the group of each row, -1 for padding; groups start at multiples of alignment.

    total: how many rows there are to be, at least `padded_rows()`, which is the default; those
    behind the last group are padding.
    """
    module, numbers = _module(counts), _int64(counts)
    alignment = _alignment(alignment)
    padded = _padded(numbers, alignment)
    size = int(padded.sum()) if total is None else _total(total)
    if size > _MOST:
        raise InvalidArgument(f"counts: are {size} rows with their padding, must fit 32 bits")
    if _on_host(numbers) and int(padded.sum()) > size:
        raise InvalidArgument(f"total = {total}: must be at least {int(padded.sum())}")
    row = module.arange(size, **_place(numbers))
    after = module.cumsum(padded, 0)
    # The group whose padded rows hold a row: so many groups lie before it.
    group = (module.searchsorted(after, row, right=True) if is_torch(numbers)
             else module.searchsorted(after, row, side="right"))  # fmt: skip
    last = max(int(numbers.shape[0]) - 1, 0)
    if numbers.shape[0] == 0:
        return _int32(row * 0 - 1, module)
    held = group.clip(0, last)
    inside = row < (after - padded + numbers)[held]
    real = inside & (group <= last)
    return _int32(module.where(real, held, held * 0 - 1), module)


def rows(counts: Any, alignment: int = 128, total: int | None = None) -> Any:
    """int64 [sum of counts]: where row i of rows sorted by group lies among those of `index()`.

    `a[rows]` takes padded rows back to dense ones; `padded[rows] = a` does the opposite. total: the
    sum of counts, which is read on the host without it.
    """
    module, numbers = _module(counts), _int64(counts)
    size = int(numbers.sum()) if total is None else _total(total)
    if _on_host(numbers) and size != int(numbers.sum()):
        raise refusal("total", total, f"must be {int(numbers.sum())}, the sum of counts")
    starts = _starts(_padded(numbers, _alignment(alignment)), module)
    shift = starts - _starts(numbers, module)
    row = module.arange(size, **_place(numbers))
    if size == 0:
        return row
    after = module.cumsum(numbers, 0)
    group = (module.searchsorted(after, row, right=True) if is_torch(numbers)
             else module.searchsorted(after, row, side="right"))  # fmt: skip
    return row + shift[group]
