"""Exceptions, one for each kind of refusal of octet.h.

The text of an exception is the library's sentence: it names the argument, what it was and what is
wanted. Catch `Error` for all of them. Those with a counterpart among Python's own exceptions are
that too, so `except ValueError` catches `InvalidArgument`.
"""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "DeviceError",
    "Error",
    "InternalError",
    "InvalidArgument",
    "LibraryNotFound",
    "NoDevice",
    "NotPrepared",
    "OutOfMemory",
    "Unsupported",
]


class Error(Exception):
    """Any refusal or fault; `code` is the octet_code, -1 where no library was asked."""

    code = -1


class InvalidArgument(Error, ValueError):
    """An argument breaks a rule of docs/limits.md."""

    code = 1


class Unsupported(Error, NotImplementedError):
    """Well-formed, but this build or device has no way to do it."""

    code = 2


class NoDevice(Error):
    """There is no usable NVIDIA driver or device."""

    code = 3


class NotPrepared(Error):
    """The plan's kernel is not loaded: `Context.prepare()` comes first."""

    code = 4


class DeviceError(Error):
    """The driver reported an error."""

    code = 5


class OutOfMemory(Error, MemoryError):
    """Memory of the machine or of the device is used up."""

    code = 6


class InternalError(Error):
    """A fault of the library; the sentence says which check failed. Please report it."""

    code = 7


class LibraryNotFound(Error, ImportError):
    """The shared library is not there, or is another version's."""


_BY_CODE = {
    kind.code: kind
    for kind in (
        InvalidArgument, Unsupported, NoDevice, NotPrepared, DeviceError, OutOfMemory, InternalError
    )
}  # fmt: skip


def raise_code(code: int, sentence: str) -> NoReturn:
    """Raises the exception of an octet_code other than 0."""
    raise _BY_CODE.get(code, InternalError)(sentence)
