"""NVIDIA Hopper. Only the driver is needed; nothing here is touched by importing.

    context = octet.cuda.Context(0)
    plan = octet.plan(octet.GemmProblem("dense_m64n7168k2048"), context.device)
    context.prepare(plan)                              # loads the kernel: milliseconds
    bound = context.bind(plan, a, b, sfa, sfb, out)    # checks and encodes once
    bound()                                            # one launch, may be captured

Arrays are PyTorch tensors, or have `__cuda_array_interface__` (CuPy, Numba) or `__dlpack__` (JAX,
as inputs). Calls queue work and return; they use PyTorch's current stream, or the stream that the
interface names, unless `stream=` says another.
"""

from __future__ import annotations

import os
import sys
import threading
from ctypes import byref, c_int32, c_void_p, create_string_buffer
from typing import Any

from . import _cache
from . import _structs as s
from ._args import Arguments, fill, views_of
from ._arrays import ANY_DEVICE, View, is_torch, view
from ._infer import problem_of
from ._library import check, fail, lib, refusal
from ._plan import GemmPlan, plan
from ._problem import DeviceSpec, GemmProblem
from ._run import _known, as_plan, int32
from ._stream import current_stream, handle_of, record, torch_stream
from .errors import InvalidArgument

__all__ = [
    "BoundGemm",
    "Context",
    "default_context",
    "device_count",
    "device_name",
    "device_spec",
    "driver_version",
    "kernel_names",
]


def device_count() -> int:
    """Devices the driver shows, of whatever kind; 0 without a driver."""
    return int(lib().octet_cuda_device_count())


def driver_version() -> int:
    """CUDA's version that the driver is for, 13000 for 13.0; NoDevice says why there is none."""
    version = c_int32()
    check(lib().octet_cuda_driver_version(byref(version)))
    return version.value


def device_name(device: int = 0) -> str:
    """What the driver calls a device, usable or not: "NVIDIA H200"."""
    text = create_string_buffer(s.TEXT_CAPACITY)
    check(lib().octet_cuda_device_name(int32("device", device), text, len(text)))
    return text.value.decode("utf-8", "replace")


def device_spec(device: int = 0) -> DeviceSpec:
    """The device as the planner sees it; NoDevice or Unsupported say why it cannot be used."""
    raw = s.octet_device_spec()
    check(lib().octet_cuda_device_spec(int32("device", device), byref(raw)))
    return DeviceSpec._wrap(raw)


def kernel_names() -> list[str]:
    """Kernels inside the library; none where it was built with OCTET_CUDA=off or without nvcc."""
    library = lib()
    count = library.octet_cuda_kernel_count()
    return [library.octet_cuda_kernel_name(i).decode() for i in range(count)]


class Context:
    """Kernels and cached plans of one device, for any number of threads and streams at once.

    device: its number. Create it after a fork. Raises NoDevice or Unsupported, with the reason.
    """

    def __init__(self, device: int = 0) -> None:
        self._process = os.getpid()
        self._destroy = lib().octet_cuda_context_destroy
        self._handle = c_void_p()
        self.ordinal = int32("device", device)
        check(lib().octet_cuda_context_create(self.ordinal, byref(self._handle)))
        raw = s.octet_device_spec()
        check(lib().octet_cuda_context_device(self._handle, byref(raw)))
        self.device = DeviceSpec._wrap(raw)

    def __del__(self) -> None:
        # A child of a fork must not touch the driver of its parent.
        # At the interpreter's end `os` may be gone, and the process with it soon.
        if getattr(self, "_handle", None) and os is not None and self._process == os.getpid():
            self._destroy(self._handle)

    def __repr__(self) -> str:
        return f"<octet.cuda.Context of device {self.ordinal}, {self.device.name}>"

    def prepare(self, *plans: GemmPlan | str) -> None:
        """Loads the kernels of plans, a few milliseconds each the first time."""
        raws = [as_plan(p)._raw for p in plans]
        if raws:
            array = (s.octet_gemm_plan * len(raws))(*raws)
            check(lib().octet_cuda_prepare(self._handle, array, len(raws)))

    def _arguments(self, problem: GemmProblem, workspace: int, arrays: dict[str, Any],
                   stream: Any) -> tuple[Arguments, list[View], int]:  # fmt: skip
        """Arguments on this device, their arrays, and the stream to use."""
        views = views_of(arrays, None if stream is None else handle_of(stream))
        for x in views.values():
            if not x.on_device:
                raise InvalidArgument(
                    f"{x.name} is in host memory: must be on device {self.ordinal}"
                )
            if x.device not in (ANY_DEVICE, self.ordinal):
                raise InvalidArgument(
                    f"{x.name} is on device {x.device}: must be on device {self.ordinal}, the "
                    "context's"
                )
        given = list(views.values())
        if stream is None:
            handle = current_stream(given, self.ordinal)
        else:
            handle = handle_of(stream)
            missing = "out" if "out" not in views else "workspace" if (
                workspace and "workspace" not in views) else ""  # fmt: skip
            if missing and handle != current_stream(given, self.ordinal):
                raise InvalidArgument(
                    f"{missing} is None: must be given with a stream that is not the current one"
                )
        if workspace and "workspace" not in views:
            views["workspace"] = self._workspace(views, workspace)
        args = fill(problem, arrays, views)
        return args, given, handle

    def _workspace(self, views: dict[str, View], size: int) -> View:
        like = next((x for x in views.values() if is_torch(x.owner)), None)
        if like is None:
            raise InvalidArgument(
                f"workspace is None: must be uint8 [{size}] on the device, 256-byte aligned"
            )
        torch = sys.modules["torch"]
        return view("workspace", torch.empty(size, dtype=torch.uint8, device=like.owner.device))

    def bind(self, plan: GemmPlan | str, a: Any, b: Any, sfa: Any = None, sfb: Any = None,
             out: Any = None, **arrays: Any) -> BoundGemm:  # fmt: skip
        """A plan with its arrays, checked and encoded once; each call of it is one launch.

        Arrays as those of `octet.cpu.run()`, on the device; a bound object keeps them alive. With
        PyTorch tensors `out` and `workspace` (uint8, plan.workspace_bytes) are made when None.
        Raises NotPrepared unless the plan is prepared, and as `octet.cpu.run()` does.
        """
        return BoundGemm(self, as_plan(plan), _arrays(a, b, sfa, sfb, out, arrays))

    def run(self, plan: GemmPlan | str, a: Any, b: Any, sfa: Any = None, sfb: Any = None,
            out: Any = None, *, stream: Any = None, **arrays: Any) -> Any:  # fmt: skip
        """Binds and runs in one call; the plan must be prepared. Returns D, which may not be done.

        stream: where to queue the work; None takes the arrays' framework's current one. With a
        number as stream the arrays must live until the work is done; PyTorch is told about streams
        of its own.
        """
        p = as_plan(plan)
        given = _arrays(a, b, sfa, sfb, out, arrays)
        args, views, handle = self._arguments(p.problem, p.workspace_bytes, given, stream)
        check(lib().octet_cuda_run(self._handle, byref(p._raw), byref(args.raw), handle))
        record([x.owner for x in views], stream)
        return args.out

    def validate(self, plan: GemmPlan | str, a: Any, b: Any, sfa: Any = None, sfb: Any = None,
                 out: Any = None, *, stream: Any = None, **arrays: Any) -> None:  # fmt: skip
        """Waits for the stream and names the first value of the grouping metadata on the device that
        a run would have to clamp: `octet.validate()` for arrays that only the device holds.

        Raises InvalidArgument with its name, number and value; and as `run()` does.
        """
        p = as_plan(plan)
        given = _arrays(a, b, sfa, sfb, out, arrays)
        args, _, handle = self._arguments(p.problem, p.workspace_bytes, given, stream)
        check(lib().octet_cuda_validate(self._handle, byref(p._raw), byref(args.raw), handle))

    def gemm(self, problem: GemmProblem, a: Any, b: Any, sfa: Any = None, sfb: Any = None,
             out: Any = None, *, stream: Any = None, **arrays: Any) -> Any:  # fmt: skip
        """Plans, prepares if need be, runs: `run()` without a plan. Returns D.

        While the stream is captured a kernel that is not loaded is refused with NotPrepared, and
        the capture stays intact.
        """
        if not isinstance(problem, GemmProblem):
            raise refusal("problem", problem, "must be a GemmProblem")
        made = plan(problem, self.device)
        return self._gemm(problem, made, _arrays(a, b, sfa, sfb, out, arrays), stream).out

    def _gemm(
        self, problem: GemmProblem, made: GemmPlan, arrays: dict[str, Any], stream: Any
    ) -> Arguments:
        args, views, handle = self._arguments(problem, made.workspace_bytes, arrays, stream)
        check(lib().octet_cuda_gemm(self._handle, byref(problem._raw), byref(args.raw), handle))
        record([x.owner for x in views], stream)
        return args


class BoundGemm:
    """A plan with its arrays, ready to launch; made by `Context.bind()`.

    Keeps its context and arrays alive. `out` is D. May be called by several threads at once, but
    not while another one rebinds it.
    """

    def __init__(self, context: Context, plan: GemmPlan, arrays: dict[str, Any]) -> None:
        self.context = context
        self.plan = plan
        self._destroy = lib().octet_cuda_bound_destroy
        self._run = lib().octet_cuda_run_bound
        self._device = context._handle
        self._ordinal = context.ordinal
        self._handle = c_void_p()
        args = self._arguments(arrays)
        check(
            lib().octet_cuda_bind(
                context._handle, byref(plan._raw), byref(args.raw), byref(self._handle)
            )
        )
        self._hold(args)

    def _arguments(self, arrays: dict[str, Any]) -> Arguments:
        p = self.plan
        args, views, _ = self.context._arguments(p.problem, p.workspace_bytes, arrays, None)
        args.keep.append([(x.name, x.owner) for x in views])
        return args

    def _hold(self, args: Arguments) -> None:
        self._owners = args.keep.pop()
        self._keep = args.keep
        # The common case without a detour: one question to PyTorch.
        self._torch_alone = all(is_torch(x) for _, x in self._owners)
        self.out = args.out

    def _current_stream(self, ordinal: int) -> int:
        # What DLPack lent was ready when it was bound, and names no stream.
        says = [view(name, x) for name, x in self._owners
                if is_torch(x) or hasattr(x, "__cuda_array_interface__")]  # fmt: skip
        return current_stream(says, ordinal)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and os is not None and self.context._process == os.getpid():
            self._destroy(self._handle)

    def __repr__(self) -> str:
        return f"<octet.cuda.BoundGemm {self.plan}>"

    def rebind(self, a: Any, b: Any, sfa: Any = None, sfb: Any = None, out: Any = None,
               **arrays: Any) -> None:  # fmt: skip
        """Other arrays for the same plan. What was bound before is let go; a call that still runs
        on the device must have its arrays kept alive by whoever owns them."""
        args = self._arguments(_arrays(a, b, sfa, sfb, out, arrays))
        check(lib().octet_cuda_rebind(self._device, self._handle, byref(args.raw)))
        self._hold(args)

    def __call__(self, stream: Any = None) -> Any:
        """One launch: never allocates, loads or synchronises, and may be captured. Returns D.

        stream: as in `Context.run()`.
        """
        if stream is None:
            handle = (torch_stream if self._torch_alone else self._current_stream)(self._ordinal)
        else:
            handle = handle_of(stream)
        code = self._run(self._device, self._handle, handle)
        if code:
            fail(code)
        return self.out


def _arrays(
    a: Any, b: Any, sfa: Any, sfb: Any, out: Any, more: dict[str, Any]
) -> dict[str, Any]:
    return {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "out": out, **_known(more)}


_contexts: dict[tuple[int, int], Context] = {}
_lock = threading.Lock()


def default_context(device: int = 0) -> Context:
    """The context that `octet.gemm()` and its grouped forms use for arrays of a device."""
    key = (os.getpid(), device)
    context = _contexts.get(key)
    if context is None:
        with _lock:
            context = _contexts.get(key)
            if context is None:
                context = _contexts[key] = Context(device)
    return context


def run_arrays(
    grouping: str, arrays: dict[str, Any], views: dict[str, View], place: Any, **said: Any
) -> Any:
    """`octet.gemm()` of arrays on a device. place: what to remember the call under, or None."""
    devices = [x.device for x in views.values() if x.device != ANY_DEVICE]
    context = default_context(devices[0] if devices else 0)
    return run_problem(context, problem_of(grouping, views, **said), arrays, views, place)


def run_problem(context: Context, problem: GemmProblem, arrays: dict[str, Any],
                views: dict[str, View], place: Any) -> Any:  # fmt: skip
    """A problem of arrays on a device. views: of some of them, made already; place: as above."""
    made = plan(problem, context.device)
    args = context._gemm(problem, made, {**arrays, **views}, None)
    ours = place is not None and not args.raw.workspace
    if ours and all(x is None or is_torch(x) for x in arrays.values()):
        _cache.remember(place, context, problem, arrays, args, made)
    return args.out
