"""How far two tensors are apart, and how many bytes some hold."""

from __future__ import annotations

from typing import Any

from ..._library import refusal
from ..._torch import torch as _torch
from ...errors import InvalidArgument
from ..layout import expect_tensor


def calc_diff(x: Any, y: Any) -> Any:
    """1 - 2 sum(xy) / sum(x^2 + y^2), in float64: 0 for equal tensors. A tensor of one element; of
    NumPy arrays a number. One may be NumPy's and the other PyTorch's.

    Two tensors of zeros are equal: 0.
    """
    for name, z in (("x", x), ("y", y)):
        if not hasattr(z, "double") and not hasattr(z, "astype"):
            raise refusal(name, z, "must be a PyTorch tensor or a NumPy array")
    shapes = tuple(x.shape), tuple(y.shape)
    if any(a != b and 1 not in (a, b) for a, b in zip(shapes[0][::-1], shapes[1][::-1])):
        raise InvalidArgument(f"x has shape {list(shapes[0])}: must be {list(shapes[1])}, as y has")
    if not hasattr(x, "double") and not hasattr(y, "double"):  # NumPy's
        x, y = x.astype("float64"), y.astype("float64")
        squares = (x * x + y * y).sum()
        return 0.0 if squares == 0 else 1 - 2 * (x * y).sum() / squares
    torch = _torch("calc_diff()")
    device = (x if hasattr(x, "double") else y).device
    x, y = (
        z.double() if hasattr(z, "double") else torch.tensor(z.astype("float64"), device=device)
        for z in (x, y)
    )
    squares = (x * x + y * y).sum()
    likeness = 2 * (x * y).sum() / squares.clamp(min=5e-324)
    return (1 - likeness) * (squares != 0)


def count_bytes(*tensors: Any) -> int:
    """Bytes of the elements of tensors, of those in tuples and lists too; None counts nothing."""
    total = 0
    for x in tensors:
        if isinstance(x, (tuple, list)):
            total += count_bytes(*x)
        elif x is not None:
            total += x.numel() * x.element_size()
    return total


def assert_bitwise_equal(actual: Any, expected: Any, message: str = "") -> None:
    """Raises AssertionError, with the first differing element, unless all bits are the same."""
    torch = _torch("assert_bitwise_equal()")
    for name, x in (("actual", actual), ("expected", expected)):
        expect_tensor(name, x, memory=False)
    actual, expected = actual.resolve_neg(), expected.resolve_neg()
    said = f"{message}: " if message else ""
    for what in ("shape", "dtype"):
        one, other = getattr(actual, what), getattr(expected, what)
        assert one == other, f"{said}{what} {one}: must be {other}"
    size = actual.element_size()
    bits = [
        x.contiguous().view(torch.uint8).reshape(-1, size) if x.numel() else x
        for x in (actual, expected)
    ]
    if actual.numel() == 0 or torch.equal(*bits):
        return
    wrong = (bits[0] != bits[1]).any(dim=1).nonzero()
    first = int(wrong[0])
    index: list[int] = []
    place = first
    for n in reversed(actual.shape):
        index.insert(0, place % n)
        place //= n
    raise AssertionError(
        f"{said}{len(wrong)} of {actual.numel()} elements differ; {index} is "
        f"{actual.flatten()[first].item()}: must be {expected.flatten()[first].item()}"
    )
