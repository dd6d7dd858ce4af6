"""What deep_gemm passes to cuBLASLt goes to PyTorch, which does so too: unscaled products."""

from __future__ import annotations

from typing import Any

from .._torch import torch as _torch
from ..errors import InvalidArgument


def cublaslt_gemm_nt(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """D = A * B^T (+ C), PyTorch's matrix product: none of Octet's bits.

    a: [M,K], b: [N,K], of one type: bfloat16, float16, float32, or float8_e4m3fn on a device. d:
    [M,N]; c: as d, or d itself.
    """
    torch = _torch("cublaslt_gemm_nt()")
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[1]:
        raise InvalidArgument(
            f"a is {list(a.shape)} and b {list(b.shape)}: must be [M, K] and [N, K]"
        )
    if tuple(d.shape) != (a.shape[0], b.shape[0]):
        raise InvalidArgument(f"d has shape {list(d.shape)}: must be {[a.shape[0], b.shape[0]]}")
    if c is not None and (c.dtype != d.dtype or c.shape != d.shape):
        raise InvalidArgument("c: must have d's shape and dtype")
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


def cublaslt_gemm_nn(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """`cublaslt_gemm_nt()` with b [K,N]."""
    cublaslt_gemm_nt(a, b.t(), d, c)


def cublaslt_gemm_tn(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """`cublaslt_gemm_nt()` with a [K,M] and b [K,N]."""
    cublaslt_gemm_nt(a.t(), b.t(), d, c)


def cublaslt_gemm_tt(a: Any, b: Any, d: Any, c: Any = None) -> None:
    """`cublaslt_gemm_nt()` with a [K,M]."""
    cublaslt_gemm_nt(a.t(), b, d, c)
