"""Calls that were made before: PyTorch tensors on a device take the short way the second time.

Reading a problem off its arrays costs more than a small kernel takes, so what came of it is kept,
in two tables:

  _calls   by everything a call depends on but pointers (types, shapes, strides, alignment, device,
           options): the arguments, in which a further call only replaces pointers
  _bound   the same and the pointers: a launch that is checked and encoded. Made when the same
           pointers come a second time, as weights do, and outputs of a caching allocator

No tensor is kept alive. A bound launch says where memory lies and how, nothing about what is in it,
and its key holds all of that: whoever owns the memory now, the arguments are those that were
checked.

Where PyTorch can be read from C (2.10 and later), both tables are those of _shortcut.py, which asks
it for nothing in Python; what is below then serves nobody.
"""

from __future__ import annotations

import os
import struct
import sys
from ctypes import byref, c_void_p, sizeof
from typing import Any

from . import _structs as s
from ._args import Arguments
from ._library import fail, lib
from ._stream import raw_stream

_ARGS = s.octet_gemm_args
_WORDS = struct.Struct(f"={sizeof(_ARGS) // 8}q")
# Which word of octet_gemm_args is an array's pointer; `data` comes first in matrices.
_WORD = {
    name: getattr(_ARGS, "d" if name == "out" else name).offset // 8
    for name in ("a", "b", "sfa", "sfb", "out", "c", "bias", "group_index", "group_offsets",
                 "group_ends", "group_counts")
}  # fmt: skip
_MOST = 1024  # calls that each table remembers; then it forgets all
_MOST_PLACES = 4  # of a result that a call makes

# In a key, where an array has its pointer, shape, strides, dtype, device, and whether it is a view
# that negates, which the long way refuses.
_NOTHING = (None,) * 6

_calls: dict[Any, Call] = {}
_bound: dict[Any, Any] = {}  # key -> what `again()` unpacks, or a _Maker
# Hashes of keys that came once. No keys: thousands of tuples would keep the garbage collector busy,
# and where two share a hash a call is bound a little early.
_seen: set[int] = set()


# What is called with which options -> a launcher of _shortcut.py.
_launchers: dict[Any, Any] = {}
_short: Any = None  # its Shortcut; False where there is none, None before anybody looked


def _forget() -> None:
    global _short
    _launchers.clear()
    _short = None
    _calls.clear()
    _bound.clear()
    _seen.clear()


os.register_at_fork(after_in_child=_forget)  # contexts do not outlive a fork


def again(
    head: tuple[Any, ...], a: Any, b: Any, sfa: Any, sfb: Any, out: Any, more: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Launches a call that is bound already: its result, and None. Else None, and the call's key,
    None without one.

    head: what is called and its options; more: other arrays, None where there is none, in the order
    that `run()` is given them in. Everything that is not a PyTorch tensor ends without a key, and is
    told what is wrong on the long way.
    """
    if _short:
        try:
            launch = _launchers.get(head)
        except TypeError:  # an option that cannot be hashed
            return None, None
        if launch is not None:
            done = launch(a, b, sfa, sfb, out, *more)
            if done is not None:
                return done if out is not None else done(launch, a, b, sfa, sfb, more), None
        return None, (head,)
    try:
        key: tuple[Any, ...] = (
            head,
            a.data_ptr(), a.shape, a.stride(), a.dtype, a.get_device(), a.is_neg(),
            b.data_ptr(), b.shape, b.stride(), b.dtype, b.get_device(), b.is_neg(),
            sfa.data_ptr(), sfa.shape, sfa.stride(), sfa.dtype, sfa.get_device(), sfa.is_neg(),
            sfb.data_ptr(), sfb.shape, sfb.stride(), sfb.dtype, sfb.get_device(), sfb.is_neg(),
        )  # fmt: skip
        if out is None:
            key += _NOTHING
        else:
            key += (out.data_ptr(), out.shape, out.stride(), out.dtype, out.get_device(), out.is_neg())
        for x in more:
            if x is None:
                key += _NOTHING
            else:
                key += (x.data_ptr(), x.shape, x.stride(), x.dtype, x.get_device(), x.is_neg())
        found = _bound.get(key)
    except (AttributeError, RuntimeError, TypeError):
        return None, None
    if found is None:
        return None, key
    if out is None:
        return found.run(), None
    run, context, handle, stream, ordinal, _owner = found
    code = run(context, handle, stream(ordinal))
    if code:
        fail(code)
    return out, None


class _Owner:
    """Gives a bound launch back; what `again()` unpacks keeps it alive while it runs."""

    __slots__ = ("context", "destroy", "handle", "process")

    def __init__(self, context: Any, handle: c_void_p) -> None:
        self.context = context
        self.handle = handle
        self.process = os.getpid()
        self.destroy = lib().octet_cuda_bound_destroy

    def __del__(self) -> None:
        if self.process == os.getpid():
            self.destroy(self.handle)


def maker_of(problem: Any, args: Arguments) -> Any:
    """A function that makes an `out` as that of a call which made its own."""
    torch = sys.modules["torch"]
    zeros = problem.grouping in ("offsets", "aligned", "masked") or not problem.zero_padding
    shape, strides = tuple(args.out.shape), tuple(args.out.stride())
    options = {"dtype": getattr(torch, str(args.out.dtype).rpartition(".")[2]),
               "device": args.out.device}  # fmt: skip
    # empty_strided() takes half the time that empty() does.
    zeroed, empty = torch.zeros, torch.empty_strided
    return (lambda: zeroed(shape, **options)) if zeros else (
        lambda: empty(shape, strides, **options))  # fmt: skip


class Call:
    """Arguments without pointers, and how to make `out`."""

    __slots__ = ("context", "make", "places", "plan", "problem", "stream", "words")

    def __init__(self, context: Any, problem: Any, arrays: dict[str, Any], args: Arguments,
                 plan: Any) -> None:  # fmt: skip
        self.context = context
        self.problem = byref(problem._raw)
        self.plan = byref(plan._raw)
        self.words = list(_WORDS.unpack(bytes(args.raw)))
        self.places = [_WORD[name] for name, x in arrays.items() if x is not None]
        self.stream = raw_stream()
        self.make: Any = maker_of(problem, args) if arrays["out"] is None else None

    def run(self, out: Any, pointers: list[int], key: Any) -> Any:
        """key: that of `again()`."""
        words = self.words.copy()
        for place, pointer in zip(self.places, pointers):
            words[place] = pointer
        if out is not None:
            found = self.launch(words, _again(_seen, hash(key), _MOST))
            if found:
                _keep(_bound, key, found, _MOST)
            return out
        maker = _Maker(self, words)
        if _again(_seen, hash(key), _MOST):
            _keep(_bound, key, maker, _MOST)
        return maker.run()

    def launch(self, words: list[int], bind: bool) -> Any:
        """Launches; bound, if that is wanted and goes well: then returns what `again()` unpacks."""
        args = _WORDS.pack(*words)  # bytes: the call reads their memory, which is aligned to 8
        context = self.context
        stream = self.stream(context.ordinal)
        found = self._bind(args) if bind else None
        if found:
            code = found[0](found[1], found[2], stream)
        else:
            code = lib().octet_cuda_gemm(context._handle, self.problem, args, stream)
        if code:
            fail(code)
        return found

    def _bind(self, args: bytes) -> Any:
        """What `again()` unpacks; None where it is refused, which the launch will say better."""
        context, handle = self.context, c_void_p()
        if lib().octet_cuda_bind(context._handle, self.plan, args, byref(handle)):
            return None
        return (
            lib().octet_cuda_run_bound, context._handle, handle, self.stream, context.ordinal,
            _Owner(context, handle),
        )  # fmt: skip


class _Maker:
    """A call that makes its `out`: an allocator that caches gives the same few places."""

    __slots__ = ("call", "launches", "seen", "words")

    def __init__(self, call: Call, words: list[int]) -> None:
        self.call = call
        self.words = words
        self.launches: dict[int, Any] = {}
        self.seen: set[int] = set()

    def run(self) -> Any:
        out = self.call.make()
        pointer = out.data_ptr()
        found = self.launches.get(pointer)
        if found is None:
            words = self.words.copy()
            words[_WORD["out"]] = pointer
            found = self.call.launch(words, _again(self.seen, pointer, _MOST_PLACES))
            if found:
                _keep(self.launches, pointer, found, _MOST_PLACES)
            return out
        run, context, handle, stream, ordinal, _owner = found
        code = run(context, handle, stream(ordinal))
        if code:
            fail(code)
        return out


def _again(seen: set[int], what: int, most: int) -> bool:
    """Whether it came before."""
    if what in seen:
        return True
    if len(seen) >= most:
        seen.clear()
    seen.add(what)
    return False


def _keep(table: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    if len(table) >= most:
        table.clear()
    table[key] = value


def place_of(key: Any) -> tuple[Any, list[int]]:
    """What a call depends on but for pointers, and these, without those of arrays that are None.
    key: that of `again()`; None gives None."""
    pointers: list[int] = []
    if key is None:
        return None, pointers
    place = list(key)
    for i in range(1, len(place), len(_NOTHING)):
        pointer = place[i]
        if pointer is not None:
            pointers.append(pointer)
            place[i] = pointer & 15
    return tuple(place), pointers


def recall(place: Any) -> Call | None:
    try:
        return _calls.get(place)
    except TypeError:  # an option that cannot be hashed
        return None


def remember(
    place: Any, context: Any, problem: Any, arrays: dict[str, Any], args: Arguments, plan: Any
) -> None:
    """A call that went well, of PyTorch tensors alone. place: that of `place_of()`."""
    global _short
    if _short is None:
        from . import _shortcut  # by whoever has a device alone

        _short = _shortcut.find(_MOST) or False
    try:
        if _short:
            launch = _launchers.get(place[0])
            if launch is None:
                launch = _short.launcher()
                _keep(_launchers, place[0], launch, _MOST)
            _short.remember(launch, context, problem, arrays, args, plan)
        else:
            _keep(_calls, place, Call(context, problem, arrays, args, plan), _MOST)
    except TypeError:  # an option that cannot be hashed, and was taken all the same
        pass
