"""Copies with room behind each row, for operands whose rows do not start where a GEMM reads."""

from __future__ import annotations

import sys
from math import gcd
from typing import Any

from ._arrays import is_torch, view
from .errors import InvalidArgument


def padded(array: Any) -> Any:
    """A copy of `array` whose rows lie a multiple of 16 bytes apart; shape and dtype stay.

    A GEMM reads rows of A and B so, whatever K is. What `quantize()` makes lies so already; codes
    that were loaded from a file, with a K of 301, say, lie one row after the other:
    `a = octet.padded(numpy.load("a.npy"))`.

    array: NumPy or PyTorch (on any device), 2 dimensions or more, any strides. The room behind the
    rows is zero; nobody reads it.
    """
    x = view("array", array)
    if len(x.shape) < 2:
        raise x.wrong("2 dimensions or more")
    rows, cols = x.shape[:-1], x.shape[-1]
    if is_torch(array):
        torch = sys.modules["torch"]
        shape = (*rows, _pitch(cols, array.element_size()))
        copy = torch.zeros(shape, dtype=array.dtype, device=array.device)[..., :cols]
        copy.copy_(array)
        return copy
    if x.on_device:
        raise InvalidArgument(
            "array is on a device and no PyTorch tensor: must be padded where it is made"
        )
    import numpy

    source = numpy.asarray(array)
    out = numpy.zeros((*rows, _pitch(cols, source.itemsize)), source.dtype)[..., :cols]
    out[...] = source
    return out


def _pitch(cols: int, size: int) -> int:
    """Elements from row to row."""
    unit = 16 // gcd(16, size)
    return -(-max(cols, 1) // unit) * unit
