"""Finds liboctet.so, opens it on first use and gives its functions their types.

The library lies next to this file in an installed package. A program that keeps it elsewhere says
so with `load_library(path)` before the first call. The environment is not asked. ctypes releases
the interpreter lock for the time of every call.
"""

from __future__ import annotations

import ctypes
import operator
import os
import threading
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, NoReturn

from . import _structs as s
from .errors import InvalidArgument, LibraryNotFound, raise_code

if TYPE_CHECKING:
    from typing import Union

    PathLike = Union[str, "os.PathLike[str]"]

VERSION = "0.1.0"  # of this package, and of the only library it fits

_PROBLEM, _DEVICE, _PLAN = (
    POINTER(s.octet_gemm_problem), POINTER(s.octet_device_spec), POINTER(s.octet_gemm_plan)
)  # fmt: skip
_ARGS, _QUANTIZE = POINTER(s.octet_gemm_args), POINTER(s.octet_quantize_args)
_INT, _SIZE, _SIZE_OUT = POINTER(c_int32), c_size_t, POINTER(c_size_t)
_HANDLE_OUT = POINTER(c_void_p)

# Result and arguments of every function that this package calls.
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "octet_status_message": (c_char_p, []),
    "octet_version": (c_char_p, []),
    "octet_gemm_problem_init": (None, [_PROBLEM]),
    "octet_gemm_problem_parse": (c_int32, [c_char_p, _PROBLEM]),
    "octet_gemm_problem_print": (c_int32, [_PROBLEM, c_char_p, _SIZE]),
    "octet_gemm_problem_equal": (c_int32, [_PROBLEM, _PROBLEM]),
    "octet_gemm_problem_hash": (c_uint64, [_PROBLEM]),
    "octet_device_preset": (c_int32, [c_char_p, _DEVICE]),
    "octet_device_preset_count": (c_int32, []),
    "octet_device_preset_name": (c_char_p, [c_int32]),
    "octet_supports": (c_int32, [_PROBLEM, _DEVICE]),
    "octet_plan_gemm": (c_int32, [_PROBLEM, _DEVICE, _PLAN]),
    "octet_plan_candidate": (c_int32, [_PROBLEM, _DEVICE, c_int32, _PLAN, _INT]),
    "octet_gemm_plan_print": (c_int32, [_PLAN, c_char_p, _SIZE]),
    "octet_gemm_plan_parse": (c_int32, [c_char_p, _PLAN]),
    "octet_gemm_plan_equal": (c_int32, [_PLAN, _PLAN]),
    "octet_plan_explain": (c_int32, [_PROBLEM, _DEVICE, c_char_p, _SIZE, _SIZE_OUT]),
    "octet_gemm_args_init": (None, [_ARGS]),
    "octet_check": (c_int32, [_PLAN, _ARGS]),
    "octet_validate": (c_int32, [_PLAN, _ARGS]),
    "octet_isa_available": (c_int32, [c_int32]),
    "octet_cpu_options_init": (None, [POINTER(s.octet_cpu_options)]),
    "octet_cpu_run": (
        c_int32, [_PLAN, _ARGS, POINTER(s.octet_cpu_options), POINTER(s.octet_cpu_report)]
    ),
    "octet_ref_run": (c_int32, [_PLAN, _ARGS]),
    "octet_quantize_args_init": (None, [_QUANTIZE]),
    "octet_cpu_quantize": (c_int32, [_QUANTIZE]),
    "octet_ref_quantize": (c_int32, [_QUANTIZE]),
    "octet_cpu_dequantize": (c_int32, [_QUANTIZE]),
    "octet_ref_dequantize": (c_int32, [_QUANTIZE]),
    "octet_cuda_device_count": (c_int32, []),
    "octet_cuda_driver_version": (c_int32, [_INT]),
    "octet_cuda_device_name": (c_int32, [c_int32, c_char_p, _SIZE]),
    "octet_cuda_device_spec": (c_int32, [c_int32, _DEVICE]),
    "octet_cuda_kernel_count": (c_int32, []),
    "octet_cuda_kernel_name": (c_char_p, [c_int32]),
    "octet_cuda_context_create": (c_int32, [c_int32, _HANDLE_OUT]),
    "octet_cuda_context_destroy": (None, [c_void_p]),
    "octet_cuda_context_device": (c_int32, [c_void_p, _DEVICE]),
    "octet_cuda_prepare": (c_int32, [c_void_p, _PLAN, c_int32]),
    # Arguments come as a struct or, on the short way, as bytes that hold one.
    "octet_cuda_bind": (c_int32, [c_void_p, _PLAN, c_void_p, _HANDLE_OUT]),
    "octet_cuda_rebind": (c_int32, [c_void_p, c_void_p, _ARGS]),
    "octet_cuda_bound_destroy": (None, [c_void_p]),
    "octet_cuda_run_bound": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "octet_cuda_run": (c_int32, [c_void_p, _PLAN, _ARGS, c_void_p]),
    "octet_cuda_validate": (c_int32, [c_void_p, _PLAN, _ARGS, c_void_p]),
    "octet_cuda_gemm": (c_int32, [c_void_p, _PROBLEM, c_void_p, c_void_p]),
}  # fmt: skip

_lock = threading.Lock()
_library: ctypes.CDLL | None = None
_opened = ""


def _beside_the_package() -> str:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "liboctet.so")
    if not os.path.exists(path):
        raise LibraryNotFound(
            f"{path} is not there: install the package (pip install .), or say where the library "
            "is with octet.load_library(path) before the first call"
        )
    return path


def _open(path: str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise LibraryNotFound(f"{path} cannot be opened: {error}") from None
    for name, (result, arguments) in _SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise LibraryNotFound(f"{path} has no {name}: must be Octet {VERSION}") from None
        function.restype, function.argtypes = result, arguments
    version = library.octet_version().decode()
    if version != VERSION:
        raise LibraryNotFound(f"{path} is Octet {version}: must be {VERSION}, as this package")
    for struct, init in (
        (s.octet_gemm_problem(), library.octet_gemm_problem_init),
        (s.octet_gemm_args(), library.octet_gemm_args_init),
        (s.octet_quantize_args(), library.octet_quantize_args_init),
    ):
        init(byref(struct))
        if struct.struct_size != ctypes.sizeof(struct):
            raise LibraryNotFound(
                f"{path}: its {type(struct).__name__} has {struct.struct_size} bytes: must be "
                f"{ctypes.sizeof(struct)}, as this package was written for"
            )
    return library


def load_library(path: PathLike | None = None) -> str:
    """Opens the shared library, if that has not happened yet, and says which file it is.

    path: the file; None takes the one inside the package. Touches no GPU. Only needed when the
    library lies elsewhere: every other function opens the package's own on first use.

    Raises LibraryNotFound if it is not there, cannot be opened or is another version's, and if
    another file was opened before: a process has one.
    """
    global _library, _opened
    with _lock:
        wanted = _opened if path is None and _opened else ""
        wanted = wanted or os.path.realpath(_beside_the_package() if path is None else path)
        if _library is None:
            _library = _open(wanted)
            _opened = wanted
        elif wanted != _opened:
            raise LibraryNotFound(
                f"path = {wanted}: {_opened} is open already, and a process has one"
            )
        return _opened


def lib() -> ctypes.CDLL:
    """The library, opened if need be."""
    if _library is None:
        load_library()
    assert _library is not None
    return _library


def fail(code: int) -> NoReturn:
    """Raises what the calling thread's last failed call says."""
    raise_code(code, lib().octet_status_message().decode("utf-8", "replace"))


def check(code: int) -> None:
    """Raises unless a call went well."""
    if code:
        fail(code)


def encode(name: str, text: object) -> bytes:
    """A string as the C interface reads it: a zero inside must not cut it, and is refused."""
    if not isinstance(text, str):
        raise refusal(name, text, "must be a string")
    return text.encode("utf-8", "replace").replace(b"\0", b"?")


def refusal(name: str, got: object, want: str) -> InvalidArgument:
    """An InvalidArgument in the library's manner, to be raised."""
    try:
        shown = " ".join(repr(got).split())  # one line, whatever it is
    except Exception:
        shown = f"<{type(got).__name__}>"
    return InvalidArgument(f"{name} = {shown if len(shown) < 80 else shown[:77] + '...'}: {want}")


def integer(name: str, x: Any, least: float, most: float, want: str) -> int:
    """A whole number of whatever type, or a sentence."""
    try:
        number = operator.index(x)
    except TypeError:
        raise refusal(name, x, want) from None
    if isinstance(x, bool) or not least <= number <= most:
        raise refusal(name, x, want)
    return number
