#!/usr/bin/env python3
"""What a call from Python costs the host, piece by piece: PyTorch tensors on a Hopper device.

    PYTHONPATH=python python3 bench/python_host_cost.py --library build/release/liboctet.so

Without a device (or with --host) the tensors lie in host memory and nothing is launched: the pieces
that ask PyTorch, Python and ctypes are measured all the same.

Two columns: a piece alone, in a loop in which everything stays in the caches; and beside a launch,
the time of piece and launch less that of the launch, which is what it costs in a program. Each is
the best of several loops. The problem is so small that the device is never behind the host.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import platform
import sys
import time
from typing import Any, Callable

import torch

import octet
from octet import _cache, _library, _shortcut, deep_gemm

SHAPE = (16, 128, 256)  # m, n, k
ATTRIBUTES = ("data_ptr()", "shape", "stride()", "dtype", "get_device()", "is_neg()")


def seconds_of(call: Callable[[], Any], loops: int, calls: int, wait: Callable[[], Any]) -> float:
    """Of one call: the best of so many loops."""
    best = float("inf")
    for _ in range(loops):
        wait()
        began = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - began) / calls)
    wait()
    return best


def compiled(text: str, **names: Any) -> Callable[[], Any]:
    """A function of one expression, whose names are its own defaults: nothing is looked up."""
    defaults = ", ".join(f"{name}={name}" for name in names)
    return eval(f"lambda {defaults}: {text}", dict(names))  # noqa: S307: our own text


def operands(device: str) -> tuple[Any, ...]:
    m, n, k = SHAPE
    torch.manual_seed(5)
    a = deep_gemm.per_token_cast_to_fp8(torch.randn(m, k, device=device))
    b = deep_gemm.per_block_cast_to_fp8(torch.randn(n, k, device=device))
    return a, b, torch.zeros(m, n, dtype=torch.bfloat16, device=device)


def pieces_of_python(a: Any, b: Any, d: Any) -> dict[str, Callable[[], Any]]:
    """What needs no launch."""
    lib, pointer = _library.lib(), ctypes.c_void_p(4096)
    nothing = ctypes.CDLL(None).labs  # takes any arguments, does nothing
    nothing.argtypes, nothing.restype = [ctypes.c_void_p] * 3, ctypes.c_int32
    pieces = {
        "an empty function": compiled("None"),
        "ctypes call, no argument": compiled("f()", f=lib.octet_cuda_kernel_count),
        "ctypes call, one pointer": compiled("f(None)", f=lib.octet_cuda_bound_destroy),
        "ctypes call, three pointers": compiled("f(p, p, 77)", f=nothing, p=pointer),
    }
    for name in ATTRIBUTES:
        pieces[f"one tensor's .{name}"] = compiled(f"x.{name}", x=d)
    whole = ", ".join(f"x.{name}" for name in ATTRIBUTES)
    pieces["all of one tensor"] = compiled(f"({whole})", x=d)
    five = (a[0], b[0], a[1], b[1], d)
    key = ("gemm", *(x for t in five for x in _read(t)))
    table = {(i, *key): i for i in range(500)}
    table[key] = 500
    pieces["hash of a key of five tensors"] = compiled("hash(key)", key=key)
    other = tuple(list(key))
    pieces["look-up of that key among 500"] = compiled("f(key)", f=table.get, key=other)
    of = dict(a=a[0], b=b[0], sfa=a[1], sfb=b[1], d=d)
    every = ", ".join(f"{n}.{x}" for n in ("a", "b", "sfa", "sfb", "d") for x in ATTRIBUTES)
    pieces["reading five tensors in Python"] = compiled(f"({every})", **of)
    short = _shortcut.find(1)
    if short is not None:
        pieces["an empty launcher, no argument"] = compiled("f()", f=short.launcher())
        pieces["reading five tensors in C, found nothing"] = compiled(
            "f(a, b, sfa, sfb, d)", f=short.launcher(), **of)
    return pieces


def _read(x: Any) -> tuple[Any, ...]:
    return x.data_ptr(), x.shape, x.stride(), x.dtype, x.get_device(), x.is_neg()


def pieces_of_a_device(
    a: Any, b: Any, d: Any, bound: octet.cuda.BoundGemm
) -> dict[str, Callable[[], Any]]:
    current, ordinal = torch.cuda.current_stream, torch.cuda.current_device()
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return {
        "torch.cuda.current_stream().cuda_stream": compiled("f(0).cuda_stream", f=current),
        **({"raw current stream": compiled("f(n)", f=raw, n=ordinal)} if raw else {}),
        "torch.empty_strided of a result": compiled(
            "f(s, t, dtype=y, device=e)", f=torch.empty_strided, s=tuple(d.shape), t=d.stride(),
            y=d.dtype, e=d.device,
        ),
    }  # fmt: skip


def launches(a: Any, b: Any, d: Any, bound: octet.cuda.BoundGemm) -> dict[str, Callable[[], Any]]:
    many = list(torch.zeros(4096, *d.shape, dtype=d.dtype, device=d.device))
    fresh = _Endless(many)
    groups, x = 4, torch.randn(4 * 128, SHAPE[2], device=d.device)
    ga = deep_gemm.per_token_cast_to_fp8(x)
    gb = (torch.stack([b[0].view(torch.uint8)] * groups).view(b[0].dtype), torch.stack([b[1]] * groups))
    gd = torch.zeros(groups * 128, SHAPE[1], dtype=d.dtype, device=d.device)
    index = torch.arange(groups, dtype=torch.int32, device=d.device).repeat_interleave(128)
    counts = torch.full((groups,), 100, dtype=torch.int32, device=d.device)
    ma, md = tuple(t.view(groups, 128, -1) for t in ga), gd.view(groups, 128, -1)
    stream = torch.cuda.current_stream().cuda_stream
    of = dict(a=a[0], b=b[0], sfa=a[1], sfb=b[1], d=d)
    return {
        "octet_cuda_run_bound through ctypes": compiled(
            "f(c, h, s)", f=_library.lib().octet_cuda_run_bound, c=bound._device, h=bound._handle,
            s=stream),
        "a bound object": bound,
        **_launcher(of),
        "octet.gemm with out": compiled("f(a, b, sfa, sfb, d)", f=octet.gemm, **of),
        "octet.gemm with out and options": compiled(
            "f(a, b, sfa, sfb, d, split=1, out_dtype='bf16')", f=octet.gemm, **of),
        "octet.gemm that makes out": compiled(
            "f(a, b, sfa, sfb)", f=octet.gemm, a=a[0], b=b[0], sfa=a[1], sfb=b[1]),
        "octet.gemm, an out at a new place each time": compiled(
            "f(a, b, sfa, sfb, d.next())", f=octet.gemm, **{**of, "d": fresh}),
        "deep_gemm.fp8_gemm_nt": compiled("f(a, b, d)", f=deep_gemm.fp8_gemm_nt, a=a, b=b, d=d),
        "deep_gemm.m_grouped_fp8_gemm_nt_contiguous": compiled(
            "f(a, b, d, i)", f=deep_gemm.m_grouped_fp8_gemm_nt_contiguous, a=ga, b=gb, d=gd, i=index),
        "deep_gemm.m_grouped_fp8_gemm_nt_masked": compiled(
            "f(a, b, d, i, 100)", f=deep_gemm.m_grouped_fp8_gemm_nt_masked, a=ma, b=gb, d=md,
            i=counts),
    }  # fmt: skip


def _launcher(of: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """The function in C that octet.gemm() comes to, where there is one."""
    octet.gemm(*of.values())
    if not _cache._short:
        print("# calls are remembered in Python: PyTorch before 2.10, or no liboctet_python.so")
        return {}
    (launch,) = list(_cache._launchers.values())[-1:]
    return {"its launcher alone": compiled("f(a, b, sfa, sfb, d)", f=launch, **of)}


class _Endless:
    """Elements of a list, one after the other, without end."""

    def __init__(self, items: list[Any]) -> None:
        self.items, self.place = items, 0

    def next(self) -> Any:
        self.place = (self.place + 1) % len(self.items)
        return self.items[self.place]


def measure(arguments: argparse.Namespace) -> list[tuple[str, str, str]]:
    on_device = not arguments.host and torch.cuda.is_available()
    wait = torch.cuda.synchronize if on_device else (lambda: None)
    a, b, d = operands("cuda" if on_device else "cpu")

    def ns(call: Callable[[], Any]) -> float:
        return seconds_of(call, arguments.loops, arguments.calls, wait) * 1e9

    rows = []
    pieces = pieces_of_python(a, b, d)
    if not on_device:
        return [(name, f"{ns(call):.0f}", "") for name, call in pieces.items()]
    context = octet.cuda.default_context(torch.cuda.current_device())
    problem = octet.GemmProblem(m=SHAPE[0], n=SHAPE[1], k=SHAPE[2], sfa_layout="row_major")
    plan = octet.plan(problem, context.device)
    context.prepare(plan)
    bound = context.bind(plan, a[0], b[0], a[1], b[1], d)
    pieces.update(pieces_of_a_device(a, b, d, bound))
    run, device, handle = bound._run, bound._device, bound._handle
    stream = torch.cuda.current_stream().cuda_stream
    launch = compiled("f(c, h, s)", f=run, c=device, h=handle, s=stream)
    for name, call in pieces.items():
        both = compiled("(g(), f(c, h, s))", g=call, f=run, c=device, h=handle, s=stream)
        rows.append((name, f"{ns(call):.0f}", f"{ns(both) - ns(launch):.0f}"))
    rows += [(name, f"{ns(call):.0f}", "") for name, call in launches(a, b, d, bound).items()]
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="What a call from Python costs, piece by piece.")
    parser.add_argument("--library", dest="shared_object", help="liboctet.so; default: that of the package")
    parser.add_argument("--host", action="store_true", help="the pieces that need no device")
    parser.add_argument("--csv", default="", help="where to write the table as CSV as well")
    parser.add_argument("--loops", type=int, default=25, help="loops, of which the best counts")
    parser.add_argument("--calls", type=int, default=200, help="calls of a loop")
    arguments = parser.parse_args()
    octet.load_library(arguments.shared_object)
    if not torch.cuda.is_available() and not arguments.host:
        print("no CUDA device: the pieces that need none, with tensors in host memory")
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "no device"
    print(f"# {where}; PyTorch {torch.__version__}, Python {platform.python_version()}, "
          f"Octet {octet.__version__}; ns, best of {arguments.loops} loops")  # fmt: skip
    rows = measure(arguments)
    print(f"{'':48} {'alone':>8} {'beside a launch':>16}")
    for name, alone, beside in rows:
        print(f"{name:48} {alone:>8} {beside:>16}")
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("piece", "alone_ns", "beside_a_launch_ns"))
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
