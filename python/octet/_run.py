"""The calls that take a plan and host arrays; `octet.cpu` and `octet.ref` name them."""

from __future__ import annotations

from ctypes import byref, c_int32, sizeof
from math import inf
from typing import Any

from . import _structs as s
from ._args import Arguments, fill, views_of
from ._library import check as check_code
from ._library import integer, lib, refusal
from ._plan import GemmPlan
from ._problem import word_number
from .errors import InvalidArgument


def int32(name: str, number: object) -> int:
    """A number that fits; the library says what is wrong with it otherwise."""
    value = integer(name, number, -inf, inf, "must be an integer")
    if not -(2**31) <= value < 2**31:
        raise refusal(name, value, "must fit 32 bits")
    return value


def as_plan(plan: object) -> GemmPlan:
    if isinstance(plan, str):
        return GemmPlan.parse(plan)
    if not isinstance(plan, GemmPlan):
        raise refusal("plan", plan, "must be a GemmPlan (octet.plan() makes one)")
    return plan


def host_arguments(plan: GemmPlan, arrays: dict[str, Any]) -> Arguments:
    views = views_of(arrays)
    for x in views.values():
        if x.on_device:
            raise InvalidArgument(
                f"{x.name} is on a device: must be in host memory for the CPU backend"
            )
    return fill(plan.problem, arrays, views)


def run_cpu(
    plan: GemmPlan, args: Arguments, threads: int = 0, isa: str = "auto"
) -> s.octet_cpu_report:
    options = s.octet_cpu_options(sizeof(s.octet_cpu_options), int32("threads", threads))
    options.isa = word_number("isa", s.ISAS, isa)
    report = s.octet_cpu_report(sizeof(s.octet_cpu_report))
    p, a = byref(plan._raw), byref(args.raw)
    if plan.problem.grouping == "contiguous" and not _blocks_are_whole(plan, args.raw):
        check_code(lib().octet_validate(p, a))  # names the row
    check_code(lib().octet_cpu_run(p, a, byref(options), byref(report)))
    return report


def _blocks_are_whole(plan: GemmPlan, args: s.octet_gemm_args) -> bool:
    """Whether each block of a group index is rows of one group, then padding.

    A run would take what is neither for padding and store zeros: that is not what somebody meant
    who gave an alignment other than the one the index was made with.
    """
    rows, alignment = args.a.rows, plan.problem.alignment
    if not args.group_index or rows <= 0:
        return True
    index = (c_int32 * rows).from_address(args.group_index)
    for first in range(0, rows, alignment):
        block = index[first : first + alignment]
        real = block.count(block[0])
        if block != [block[0]] * real + [-1] * (len(block) - real):
            return False
        if not -1 <= block[0] < plan.problem.groups:
            return False
    return True


def run_ref(plan: GemmPlan, args: Arguments) -> None:
    check_code(lib().octet_ref_run(byref(plan._raw), byref(args.raw)))


def check(plan: GemmPlan | str, a: Any, b: Any, sfa: Any = None, sfb: Any = None, out: Any = None,
          **arrays: Any) -> None:  # fmt: skip
    """Every rule about the arrays of a run: returns, or raises what the run would raise.

    Arguments as those of `octet.cpu.run()`; `out` must be given. Arrays may lie in host memory or
    on a device. Reads no operand.
    """
    if out is None:
        raise InvalidArgument("out is None: must be an array to be checked")
    given = {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "out": out, **_known(arrays)}
    p = as_plan(plan)
    args = fill(p.problem, given, views_of(given))
    check_code(lib().octet_check(byref(p._raw), byref(args.raw)))


def validate(plan: GemmPlan | str, a: Any, b: Any, sfa: Any = None, sfb: Any = None,
             out: Any = None, **arrays: Any) -> None:  # fmt: skip
    """For debugging: `check()`, then the values of host arrays.

    Raises InvalidArgument with the first group index, offset or count that a run would have to
    clamp, or scale that is not finite. Arguments as those of `octet.cpu.run()`; without `out` one
    is made.
    """
    given = {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "out": out, **_known(arrays)}
    p = as_plan(plan)
    args = host_arguments(p, given)
    check_code(lib().octet_check(byref(p._raw), byref(args.raw)))
    check_code(lib().octet_validate(byref(p._raw), byref(args.raw)))


def _known(arrays: dict[str, Any]) -> dict[str, Any]:
    known = ("c", "bias", "group_index", "group_offsets", "group_ends", "group_counts", "workspace")
    for name in arrays:
        if name not in known:
            raise TypeError(f"unexpected argument {name!r}: must be one of {', '.join(known)}")
    return arrays
