"""How a problem is computed: GemmPlan, and the pure functions that ask the planner."""

from __future__ import annotations

from ctypes import byref, c_int32, c_size_t, create_string_buffer
from typing import Any, Union

from . import _structs as s
from ._library import check, encode, lib, refusal
from ._problem import DeviceSpec, GemmProblem, Integer, Number, _Value

ProblemLike = Union[GemmProblem, str]
DeviceLike = Union[DeviceSpec, str]


def as_problem(problem: ProblemLike) -> GemmProblem:
    if isinstance(problem, str):
        return GemmProblem.parse(problem)
    if not isinstance(problem, GemmProblem):
        raise refusal("problem", problem, "must be a GemmProblem or a problem string")
    return problem


def as_device(device: DeviceLike) -> DeviceSpec:
    if isinstance(device, str):
        return DeviceSpec.preset(device)
    if not isinstance(device, DeviceSpec):
        raise refusal("device", device, "must be a DeviceSpec or the name of a preset")
    return device


class GemmPlan(_Value):
    """How a problem is computed on a device: a value that prints, parses back and compares.

    Plans come from `octet.plan()` or from `GemmPlan.parse(str(plan))`. The bits of a result depend
    on the inputs and on `split` alone.
    """

    __slots__ = ()

    split = Integer("ranges that K is cut into, each with an accumulator of its own")
    sms = Integer("most CTAs launched at once; 0 on the CPU")
    workspace_bytes = Integer("bytes of workspace that a call needs")
    predicted_us = Number("predicted time in microseconds; 0 on the CPU")

    def __init__(self) -> None:
        raise TypeError("use octet.plan(problem, device), or GemmPlan.parse(text)")

    @classmethod
    def parse(cls, text: str) -> GemmPlan:
        """The plan of a string that a plan printed; InvalidArgument names what is wrong."""
        raw = s.octet_gemm_plan()
        check(lib().octet_gemm_plan_parse(encode("plan", text), byref(raw)))
        return cls._wrap(raw)

    @property
    def problem(self) -> GemmProblem:
        """What is computed."""
        return GemmProblem._wrap(s.octet_gemm_problem.from_buffer_copy(self._raw.problem))

    @property
    def device(self) -> str:
        """Name of the device it was made for."""
        return bytes(self._raw.device).decode("utf-8", "replace")

    @property
    def kernel(self) -> str:
        """Name of the kernel; "cpu" for the CPU backend."""
        return bytes(self._raw.kernel).decode("utf-8", "replace")

    def _validate(self) -> None:
        str(self)

    def __str__(self) -> str:
        text = create_string_buffer(2 * s.TEXT_CAPACITY)
        check(lib().octet_gemm_plan_print(byref(self._raw), text, len(text)))
        return text.value.decode()

    def __repr__(self) -> str:
        return f"GemmPlan.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GemmPlan):
            return NotImplemented
        return bool(lib().octet_gemm_plan_equal(byref(self._raw), byref(other._raw)))

    def __hash__(self) -> int:
        return hash((self.problem, self.split, self.kernel))

    def __reduce__(self) -> tuple[Any, ...]:
        return GemmPlan.parse, (str(self),)


def supports(problem: ProblemLike, device: DeviceLike = "cpu") -> None:
    """Returns if the problem can be computed on the device; else raises, with the reason in words.

    Raises InvalidArgument for a problem that breaks a rule and Unsupported for one that no kernel
    of this build takes. Runs nothing.
    """
    check(lib().octet_supports(byref(as_problem(problem)._raw), byref(as_device(device)._raw)))


def is_supported(problem: ProblemLike, device: DeviceLike = "cpu") -> bool:
    """Whether `supports()` has nothing to say; a string that is no problem still raises."""
    p, d = as_problem(problem), as_device(device)
    return bool(lib().octet_supports(byref(p._raw), byref(d._raw)) == 0)


def plan(problem: ProblemLike, device: DeviceLike = "cpu") -> GemmPlan:
    """Chooses how to compute a problem. Pure: depends on its arguments alone.

    problem: a GemmProblem or a problem string. device: a DeviceSpec or the name of a preset.
    Raises as `supports()` does.
    """
    raw = s.octet_gemm_plan()
    p, d = as_problem(problem), as_device(device)
    check(lib().octet_plan_gemm(byref(p._raw), byref(d._raw), byref(raw)))
    return GemmPlan._wrap(raw)


def plan_candidates(
    problem: ProblemLike, device: DeviceLike = "cpu", most: int = 1000
) -> list[GemmPlan]:
    """The plans that `plan()` chooses from, cheapest prediction first, at most `most` of them."""
    p, d = as_problem(problem), as_device(device)
    plans: list[GemmPlan] = []
    count = c_int32(1)
    while len(plans) < min(most, count.value):
        raw = s.octet_gemm_plan()
        code = lib().octet_plan_candidate(
            byref(p._raw), byref(d._raw), len(plans), byref(raw), byref(count)
        )
        check(code)
        plans.append(GemmPlan._wrap(raw))
    return plans


def explain(problem: ProblemLike, device: DeviceLike = "cpu") -> str:
    """The planner's reasons, for people: candidates with their times, and those refused."""
    p, d = as_problem(problem), as_device(device)
    needed = c_size_t()
    check(lib().octet_plan_explain(byref(p._raw), byref(d._raw), None, 0, byref(needed)))
    text = create_string_buffer(needed.value)
    check(lib().octet_plan_explain(byref(p._raw), byref(d._raw), text, len(text), None))
    return text.value.decode()
