"""Timing on a device: by events, and by the profiler's table of kernels."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Callable

from ..._torch import torch as _torch
from ...errors import NoDevice

_FLUSH_BYTES = 256_000_000  # several times any L2


def _device(what: str) -> Any:
    torch = _torch(what)
    if not torch.cuda.is_available():
        raise NoDevice(f"{what} times work on a CUDA device: there is none")
    return torch


def bench(
    fn: Callable[[], Any], num_warmups: int = 5, num_tests: int = 10, high_precision: bool = False
) -> float:
    """Seconds that one call of fn keeps the device busy, on average of num_tests in a row.

    high_precision: the device is kept busy first, so that the host's part does not show.
    """
    torch = _device("bench()")
    torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda").zero_()
    for _ in range(num_warmups):
        fn()
    if high_precision:
        torch.cuda._sleep(20_000_000)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(num_tests):
        fn()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / num_tests / 1e3


@contextlib.contextmanager
def _silence(wanted: bool) -> Iterator[None]:
    """The profiler writes to the process's own standard output and error."""
    if not wanted:
        yield
        return
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in zip((1, 2), kept):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def times_of(
    kernels: dict[str, tuple[float, int]], names: tuple[str, ...], num_tests: int,
    with_multiple_kernels: bool,
) -> list[float]:  # fmt: skip
    """Seconds of the kernels whose name contains each of some words.

    kernels: name -> (seconds of all its launches, launches) in num_tests calls. Where none of the
    words is in any name the first stands for all the kernels of a call: what deep_gemm has a kernel
    of its own for may be another one here, or several of PyTorch's.
    """
    times = []
    for word in names:
        found = {name: kernels[name] for name in kernels if word in name}
        if not with_multiple_kernels:
            assert len(found) <= 1, f"{word!r} is in the names of several kernels: {list(found)}"
        seconds = sum(x[0] for x in found.values())
        launches = sum(x[1] for x in found.values())
        times.append(seconds / launches if launches else 0.0)
    if not any(times):
        times[0] = sum(x[0] for x in kernels.values()) / num_tests
    return times


def bench_kineto(
    fn: Callable[[], Any],
    kernel_names: str | tuple[str, ...],
    num_tests: int = 30,
    suppress_kineto_output: bool = False,
    trace_path: str | None = None,
    flush_l2: bool = True,
    with_multiple_kernels: bool = False,
    barrier: Callable[[], Any] | None = None,
) -> float | tuple[float, ...]:
    """Seconds of one launch of the kernel whose name contains a word, by PyTorch's profiler.

    kernel_names: a word, or a tuple of them, which gives a tuple; 0 for one that is in no kernel's
    name. Where none is, the first gets the time of all kernels of a call. A word in the names of
    several kernels is an AssertionError unless with_multiple_kernels, which takes the mean of their
    launches.
    flush_l2: writes more than the L2 holds before each call. barrier: called before each call, for
    processes that are timed together. trace_path: where to write a Chrome trace.
    With DG_USE_NVIDIA_TOOLS=1 in the environment, when another profiler runs: 1 at once.
    """
    names = (kernel_names,) if isinstance(kernel_names, str) else tuple(kernel_names)
    if int(os.environ.get("DG_USE_NVIDIA_TOOLS", "0")):
        return 1 if isinstance(kernel_names, str) else (1,) * len(names)
    torch = _device("bench_kineto()")
    flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda") if flush_l2 else None

    def calls() -> None:
        for _ in range(num_tests):
            if flush is not None:
                # A copy within, not a kernel: no name of it can be mistaken for fn's.
                flush[: _FLUSH_BYTES // 2].copy_(flush[_FLUSH_BYTES // 2 :])
            if barrier is not None:
                torch.cuda._sleep(20_000_000)
                barrier()
            fn()
        torch.cuda.synchronize()

    calls()  # the device is warm, everything is loaded
    with _silence(suppress_kineto_output):
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profiler:
            calls()
        if trace_path is not None:
            profiler.export_chrome_trace(trace_path)
    kernels: dict[str, tuple[float, int]] = {}
    for event in profiler.key_averages():
        name = str(event.key)
        if name.startswith(("Memcpy", "ProfilerStep")) or "spin_kernel" in name:
            continue
        total = getattr(event, "self_device_time_total", None)
        microseconds = float(event.self_cuda_time_total if total is None else total)
        if microseconds > 0:
            kernels[name] = (microseconds * 1e-6, int(event.count))
    times = times_of(kernels, names, num_tests, with_multiple_kernels)
    return times[0] if isinstance(kernel_names, str) else tuple(times)
