"""Octet: matrix multiplication in FP8 with fine-grained scales, to the bit of Hopper's tensor cores.

    import octet

    problem = octet.GemmProblem("dense_m4096n7168k2048")
    print(octet.plan(problem, "h200"))           # how an H200 would compute it; needs none

Importing opens no library and touches no GPU; the shared library is opened by the first call.
Every refusal is an exception of octet.errors with one sentence that names the argument, what it
was and what is wanted.
"""

from . import errors
from ._library import VERSION as __version__
from ._library import load_library
from ._plan import GemmPlan, explain, is_supported, plan, plan_candidates, supports
from ._problem import DeviceSpec, GemmProblem
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
    "errors",
    "explain",
    "is_supported",
    "load_library",
    "plan",
    "plan_candidates",
    "supports",
]
