"""Octet: FP8 matrix multiplication with fine-grained scales, to the bit of Hopper's tensor cores.

    import octet

    a, sfa = octet.quantize_activations(x)       # x [M,K], float32: NumPy
    b, sfb = octet.quantize_weights(w)           # w [N,K]
    d = octet.gemm(a, b, sfa, sfb)               # [M,N], bfloat16

    problem = octet.GemmProblem("dense_m4096n7168k2048")
    print(octet.plan(problem, "h200"))           # how an H200 would compute it; needs none

Importing opens no library and touches no GPU; the shared library is opened by the first call.
Every refusal is an exception of octet.errors with one sentence that names the argument, what it
was and what is wanted.
"""

from __future__ import annotations

from typing import Any

from . import cpu, cuda, errors, groups, ref
from ._gemm import (
    gemm,
    gemm_aligned,
    gemm_contiguous,
    gemm_kgrouped,
    gemm_masked,
    gemm_offsets,
)
from ._library import VERSION as __version__
from ._library import load_library
from ._pad import padded
from ._plan import GemmPlan, explain, is_supported, plan, plan_candidates, supports
from ._problem import DeviceSpec, GemmProblem
from ._quantize import dequantize, quantize, quantize_activations, quantize_weights
from ._run import check, validate
from .errors import (
    DeviceError,
    Error,
    InternalError,
    InvalidArgument,
    LibraryNotFound,
    NoDevice,
    NotPrepared,
    OutOfMemory,
    Unsupported,
)

__all__ = [
    "DeviceError",
    "DeviceSpec",
    "Error",
    "GemmPlan",
    "GemmProblem",
    "InternalError",
    "InvalidArgument",
    "LibraryNotFound",
    "NoDevice",
    "NotPrepared",
    "OutOfMemory",
    "Unsupported",
    "__version__",
    "check",
    "cpu",
    "cuda",
    "dequantize",
    "errors",
    "explain",
    "gemm",
    "gemm_aligned",
    "gemm_contiguous",
    "gemm_kgrouped",
    "gemm_masked",
    "gemm_offsets",
    "groups",
    "is_supported",
    "load_library",
    "padded",
    "plan",
    "plan_candidates",
    "quantize",
    "quantize_activations",
    "quantize_weights",
    "ref",
    "supports",
    "validate",
]


def __getattr__(name: str) -> Any:
    """`octet.deep_gemm`, which is imported when somebody asks for it."""
    if name == "deep_gemm":
        import importlib

        return importlib.import_module("octet.deep_gemm")
    raise AttributeError(f"module 'octet' has no attribute {name!r}")
