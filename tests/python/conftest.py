"""Tests of the Python package against a library that was built, not installed.

OCTET_LIBRARY names the shared library (the default is the release build's); the package itself
reads no environment.
"""

import gc
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("OCTET_LIBRARY", str(ROOT / "build" / "release" / "liboctet.so"))
sys.path.insert(0, str(ROOT / "python"))

import octet  # noqa: E402
from octet import _cache, _library, _shortcut, cuda  # noqa: E402

octet.load_library(LIBRARY)


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs an NVIDIA Hopper device and PyTorch")
    config.addinivalue_line("markers", "torch: needs PyTorch, of whatever kind")


def pytest_terminal_summary(terminalreporter):
    for mark, what in (("gpu", "GPU"), ("torch", "PYTORCH")):
        skipped = [r for r in terminalreporter.stats.get("skipped", []) if mark in r.keywords]
        if skipped:
            why = skipped[0].longrepr[2]
            terminalreporter.write_line(f"{what} TESTS SKIPPED: {len(skipped)} ({why})")


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def library_file():
    return LIBRARY


@pytest.fixture
def library(monkeypatch):
    import stand_in

    device = stand_in.Library(_library.lib())
    monkeypatch.setattr(_library, "_library", device)
    monkeypatch.setattr(cuda, "_contexts", {})
    yield device
    _cache._forget()
    cuda._contexts.clear()
    gc.collect()
    assert not device.alive  # every context and bound object was given back


@pytest.fixture
def current(monkeypatch):
    import stand_in

    stream = [0x700]
    monkeypatch.setitem(sys.modules, "torch", stand_in.torch(stream))
    return stream


@pytest.fixture
def quick(library, current, monkeypatch):
    """The short way of calls, in C, for the stand-in's tensors and device."""
    import ctypes

    import stand_in

    exchange, functions = stand_in.Exchange(current), stand_in.addresses(library)
    monkeypatch.setattr(
        stand_in.Tensor, "__dlpack_c_exchange_api__", exchange.capsule, raising=False)
    monkeypatch.setattr(
        _shortcut, "_address", lambda name: ctypes.cast(functions[name], ctypes.c_void_p).value)
    yield exchange, functions
    _cache._forget()  # while the functions are there
    gc.collect()
