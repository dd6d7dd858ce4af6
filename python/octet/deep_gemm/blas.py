"""What deep_gemm passes to cuBLASLt goes to PyTorch, which does so too: unscaled products."""

from __future__ import annotations

from typing import Any

from .._torch import torch as _torch
from ..errors import InvalidArgument
from .layout import expect_tensor


def _place(x: Any) -> tuple[Any, ...]:
    return x.data_ptr(), tuple(x.stride())


def _lines(x: Any) -> tuple[int, int, int, int]:
    """Where a matrix lies: first byte, bytes of a line without gaps, from line to line, lines."""
    steps = sorted((s * x.element_size(), n) for s, n in zip(x.stride(), x.shape) if n > 1)
    pitch, lines = steps[1] if len(steps) > 1 else (0, 1)
    within = steps[0][0] * (steps[0][1] - 1) if steps else 0
    return int(x.data_ptr()), int(x.element_size() + within), int(pitch), int(lines)


def _overlap(x: Any, y: Any) -> bool:
    """Whether two matrices share memory; columns of one buffer, side by side, do not."""
    if 0 in (x.numel(), y.numel()):
        return False
    (one, width, pitch, lines), (other, wide, far, many) = _lines(x), _lines(y)
    if one >= other + wide + far * (many - 1) or other >= one + width + pitch * (lines - 1):
        return False
    if lines > 1 and many > 1 and pitch != far:
        return True  # lines in each other's gaps, at different pitches: nobody's layout
    pitch = max(pitch, far)
    if pitch < width + wide:
        return True
    apart = (other - one) % pitch
    return apart < width or apart + wide > pitch


def cublaslt_gemm_nt(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """D = A * B^T (+ C), PyTorch's matrix product: none of Octet's bits.

    a: [M,K], b: [N,K], of one type: bfloat16, float16, float32, or float8_e4m3fn on a device. d:
    [M,N], sharing no memory with a and b; c: as d, or d itself.
    """
    torch = _torch("cublaslt_gemm_nt()")
    for name, x in (("a", a), ("b", b), ("d", d), *((("c", c),) if c is not None else ())):
        expect_tensor(name, x)
        if x.device != a.device:
            raise InvalidArgument(f"{name} is on {x.device}: must be on {a.device}, as a is")
    if a.dtype != b.dtype:
        raise InvalidArgument(f"b has dtype {b.dtype}: must be {a.dtype}, as a has")
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[1]:
        raise InvalidArgument(
            f"a is {list(a.shape)} and b {list(b.shape)}: must be [M, K] and [N, K]"
        )
    if tuple(d.shape) != (a.shape[0], b.shape[0]):
        raise InvalidArgument(f"d has shape {list(d.shape)}: must be {[a.shape[0], b.shape[0]]}")
    if c is not None and (c.dtype != d.dtype or c.shape != d.shape):
        raise InvalidArgument("c: must have d's shape and dtype")
    for name, x in (("a", a), ("b", b), ("c", c)):
        same = name == "c" and x is not None and _place(x) == _place(d)
        if x is not None and not same and _overlap(x, d):
            raise InvalidArgument(f"d overlaps {name}: must lie in memory of its own")
    if a.dtype == torch.float8_e4m3fn and a.is_cuda:
        one = torch.ones((), dtype=torch.float32, device=a.device)
        product = torch._scaled_mm(a, b.t(), one, one, out_dtype=d.dtype)
    elif a.dtype == d.dtype:
        if c is None:
            torch.mm(a, b.t(), out=d)
        else:
            torch.addmm(c, a, b.t(), out=d)
        return
    elif a.is_cuda and d.dtype == torch.float32 and a.dtype != torch.float8_e4m3fn:
        product = torch.mm(a, b.t(), out_dtype=torch.float32)
    else:
        product = a.float() @ b.float().t()
    d.copy_(product if c is None else product + c)


def _turned(name: str, x: Any) -> Any:
    expect_tensor(name, x)
    if x.dim() != 2:
        raise InvalidArgument(f"{name} has shape {list(x.shape)}: must have 2 dimensions")
    return x.t()


def cublaslt_gemm_nn(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """`cublaslt_gemm_nt()` with b [K,N]."""
    cublaslt_gemm_nt(a, _turned("b", b), d, c)


def cublaslt_gemm_tn(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """`cublaslt_gemm_nt()` with a [K,M] and b [K,N]."""
    cublaslt_gemm_nt(_turned("a", a), _turned("b", b), d, c)


def cublaslt_gemm_tt(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """`cublaslt_gemm_nt()` with a [K,M]."""
    cublaslt_gemm_nt(_turned("a", a), b, d, c)
