"""What is to be computed and where: GemmProblem, DeviceSpec. Values: print, parse, compare, hash.

Both wrap a C struct that nobody else writes to. Fields read as Python numbers, flags and words;
`replace()` makes a changed copy.
"""

from __future__ import annotations

import ctypes
import operator
from ctypes import byref, create_string_buffer
from typing import Any, TypeVar

from . import _structs as s
from ._library import check, encode, lib, refusal

_T = TypeVar("_T", bound="_Value")


class Field:
    """A read-only field of a struct, under its C name. Asked of the class it is itself."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, value: Any, to: Any) -> None:
        raise AttributeError(
            f"{type(value).__name__}.{self.name} cannot be set: replace({self.name}=...) makes a "
            "changed copy"
        )

    def store(self, raw: ctypes.Structure, to: Any) -> None:
        raise NotImplementedError


class Integer(Field):
    """A whole number."""

    def __get__(self, value: Any, owner: type | None = None) -> int:
        found: Any = self if value is None else getattr(value._raw, self.name)
        return found  # type: ignore[no-any-return]

    def store(self, raw: ctypes.Structure, to: Any) -> None:
        try:
            number = operator.index(to)
        except TypeError:
            raise refusal(self.name, to, "must be an integer") from None
        setattr(raw, self.name, number)
        if getattr(raw, self.name) != number:  # ctypes cuts what does not fit
            raise refusal(self.name, number, "must fit the field of octet.h")


class Flag(Field):
    """A yes or no."""

    def __get__(self, value: Any, owner: type | None = None) -> bool:
        found: Any = self if value is None else bool(getattr(value._raw, self.name))
        return found  # type: ignore[no-any-return]

    def store(self, raw: ctypes.Structure, to: Any) -> None:
        if not isinstance(to, int) or to not in (0, 1):
            raise refusal(self.name, to, "must be True or False")
        setattr(raw, self.name, int(to))


class Number(Field):
    """A floating-point number."""

    def __get__(self, value: Any, owner: type | None = None) -> float:
        found: Any = self if value is None else getattr(value._raw, self.name)
        return found  # type: ignore[no-any-return]

    def store(self, raw: ctypes.Structure, to: Any) -> None:
        try:
            setattr(raw, self.name, float(to))
        except (TypeError, ValueError):
            raise refusal(self.name, to, "must be a number") from None


class Word(Field):
    """A word that stands for a number of an enumeration."""

    def __init__(self, words: tuple[str, ...], doc: str) -> None:
        super().__init__(doc)
        self.words = words

    def __get__(self, value: Any, owner: type | None = None) -> str:
        found: Any = self if value is None else self.words[getattr(value._raw, self.name)]
        return found  # type: ignore[no-any-return]

    def store(self, raw: ctypes.Structure, to: Any) -> None:
        setattr(raw, self.name, word_number(self.name, self.words, to))


def word_number(name: str, words: tuple[str, ...], word: object) -> int:
    """The number of a word, or a sentence."""
    if not isinstance(word, str) or word not in words or not word:
        raise refusal(name, word, "must be " + ", ".join(repr(w) for w in words if w))
    return words.index(word)


class _Value:
    """A C struct and the fields declared in the class body."""

    __slots__ = ("_raw",)
    _raw: Any

    @classmethod
    def _wrap(cls: type[_T], raw: ctypes.Structure) -> _T:
        value = cls.__new__(cls)
        object.__setattr__(value, "_raw", raw)
        return value

    @classmethod
    def _field(cls, name: str) -> Field:
        field = cls.__dict__.get(name)
        if not isinstance(field, Field):
            raise TypeError(f"{cls.__name__} has no field {name!r} that can be given")
        return field

    def replace(self: _T, **fields: Any) -> _T:
        """A copy with some fields changed; raises InvalidArgument where one breaks a rule."""
        raw = type(self._raw).from_buffer_copy(self._raw)
        for name, to in fields.items():
            self._field(name).store(raw, to)
        value = self._wrap(raw)
        value._validate()
        return value

    def _validate(self) -> None:
        pass

    def __copy__(self: _T) -> _T:
        return self

    def __deepcopy__(self: _T, memo: Any) -> _T:
        return self


class GemmProblem(_Value):
    """D[M,N] = A[M,K] * B[N,K]^T: everything that planning and support depend on; no pointers.

        GemmProblem(m=4096, n=7168, k=2048)
        GemmProblem("masked_g32m192n4096k7168")
        GemmProblem(grouping="offsets", groups=8, m=64, n=512, k=1024, d_type="f32")

    text: a problem string (docs/problem-string.md); fields given beside it replace its own.
    fields: the attributes below. What is not given is dense, e4m3, 1D2D, with a BF16 result.

    Two problems are equal when their strings are. Raises InvalidArgument, with the library's
    sentence, for a string or fields that break a rule.
    """

    __slots__ = ()

    grouping = Word(s.GROUPINGS, "who owns a row: dense, batched, contiguous, offsets, ...")
    m = Integer("rows of A; grouped over M: rows expected per group, a hint")
    n = Integer("rows of B")
    k = Integer("columns of A and B; K-grouped: average K per group, a hint")
    groups = Integer("groups, or the batch; 1 when dense")
    max_m = Integer("masked: rows of each group's buffer")
    alignment = Integer("contiguous, aligned: what groups of rows start at multiples of")
    in_type = Word(s.TYPES, "type of A and B: e4m3 or bf16")
    d_type = Word(s.TYPES, "type of D and C: bf16, f16 or f32")
    bias_type = Word(s.TYPES, "type of the bias: none, f32, bf16 or f16")
    accumulate = Flag("whether C is added")
    granularity = Word(s.GRANULARITIES, "none, 1d2d (SFA 1x128, SFB 128x128) or 1d1d")
    sfa_layout = Word(s.SCALE_LAYOUTS, "column_major, row_major or column_major_odd")
    sfb_layout = Word(s.SCALE_LAYOUTS, "column_major, row_major or column_major_odd")
    index_type = Word(s.TYPES, "of group offsets and K-grouped counts: i32 or i64")
    packed = Flag("K-grouped: groups are row-major blocks one after the other")
    zero_padding = Flag("contiguous: rows of -1 are stored as zeros, not left untouched")
    split = Integer("ranges that K is cut into; 0: the planner chooses")
    batch_invariant = Flag("the split depends on N and K alone")
    sm_budget = Integer("SMs that the call may use; 0: all")
    dependent_launch = Flag("launched as a programmatic dependent of the kernel before it")
    weights_ready = Flag("B and SFB are written by no unfinished kernel")
    even = Flag("tests: groups of equal size")
    seed = Integer("tests: seed of the group sizes and the data")

    def __init__(self, text: str | None = None, /, **fields: Any) -> None:
        raw = s.octet_gemm_problem()
        if text is None:
            lib().octet_gemm_problem_init(byref(raw))
            raw.groups = 1
            said = {name: to for name, to in fields.items() if isinstance(to, str)}
            if said.get("in_type") == "bf16":  # operands without scales
                raw.granularity = 0
            if said.get("grouping") == "kgrouped":  # always
                raw.granularity = s.GRANULARITIES.index("1d1d")
            if "1d1d" in (said.get("granularity"), s.GRANULARITIES[raw.granularity]):
                raw.sfb_layout = s.SCALE_LAYOUTS.index("column_major")
        else:
            check(lib().octet_gemm_problem_parse(encode("problem", text), byref(raw)))
        for name, to in fields.items():
            self._field(name).store(raw, to)
        object.__setattr__(self, "_raw", raw)
        self._validate()

    @classmethod
    def parse(cls, text: str) -> GemmProblem:
        """The problem of a string; InvalidArgument names the first wrong character."""
        raw = s.octet_gemm_problem()
        check(lib().octet_gemm_problem_parse(encode("problem", text), byref(raw)))
        return cls._wrap(raw)

    def _validate(self) -> None:
        str(self)

    def __str__(self) -> str:
        text = create_string_buffer(s.TEXT_CAPACITY)
        check(lib().octet_gemm_problem_print(byref(self._raw), text, len(text)))
        return text.value.decode()

    def __repr__(self) -> str:
        return f"GemmProblem({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GemmProblem):
            return NotImplemented
        return bool(lib().octet_gemm_problem_equal(byref(self._raw), byref(other._raw)))

    def __hash__(self) -> int:
        return int(lib().octet_gemm_problem_hash(byref(self._raw)))

    def __reduce__(self) -> tuple[Any, ...]:
        return GemmProblem.parse, (str(self),)


class DeviceSpec(_Value):
    """What the planner knows of a device. Planning for a device needs no such device.

    `DeviceSpec.preset("h200")` gives the numbers of a kind, `octet.cuda.device_spec()` those of a
    device of this machine; `replace(sms=78)` changes some.
    """

    __slots__ = ()

    compute_major = Integer("9 for Hopper, 0 for the CPU")
    compute_minor = Integer("0")
    sms = Integer("streaming multiprocessors")
    shared_memory_bytes = Integer("most dynamic shared memory of one CTA")
    l2_bytes = Integer("bytes of the L2 cache")
    dram_bytes_per_second = Number("bandwidth of the device's memory")
    fp8_flops_per_second = Number("dense, sustained on random data")
    bf16_flops_per_second = Number("dense, sustained on random data")
    launch_seconds = Number("what a call costs besides its floor")

    def __init__(self) -> None:
        raise TypeError("use DeviceSpec.preset(name), or octet.cuda.device_spec(ordinal)")

    @classmethod
    def preset(cls, name: str) -> DeviceSpec:
        """name: h100_sxm, h100_pcie, h200, h800, h20, gh200 or cpu; InvalidArgument otherwise."""
        raw = s.octet_device_spec()
        check(lib().octet_device_preset(encode("device", name), byref(raw)))
        return cls._wrap(raw)

    @staticmethod
    def presets() -> list[str]:
        """The names that `preset()` knows."""
        library = lib()
        count = library.octet_device_preset_count()
        return [library.octet_device_preset_name(i).decode() for i in range(count)]

    @property
    def name(self) -> str:
        """The preset's name, or the device's."""
        return bytes(self._raw.name).decode("utf-8", "replace")

    @property
    def active_clusters(self) -> tuple[int, ...]:
        """Most clusters of 1, 2, 4, 8, 16 CTAs resident at once."""
        return tuple(self._raw.active_clusters)

    def __repr__(self) -> str:
        return f"<DeviceSpec {self.name}: {self.sms} SMs>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceSpec):
            return NotImplemented
        return bytes(self._raw) == bytes(other._raw)

    def __hash__(self) -> int:
        return hash(bytes(self._raw))
