"""One call from arrays to result: the problem is read off the arrays, planned and run.

Arrays in host memory go to the CPU backend, those on a device to `octet.cuda`.
"""

from __future__ import annotations

from typing import Any

from . import _cache, cuda
from ._args import fill, views_of
from ._infer import problem_of
from ._library import refusal
from ._plan import plan
from ._run import int32, run_cpu
from .errors import InvalidArgument


def run(
    key: Any, grouping: str, arrays: dict[str, Any], threads: int, **said: Any
) -> Any:
    """The call of some arrays, in the order of `_cache.again()`; key: what that said."""
    place, pointers = _cache.place_of(key)
    if place is not None:
        call = _cache.recall(place)
        if call is not None:
            return call.run(arrays["out"], pointers, key)
    views = views_of(arrays)
    if any(x.on_device for x in views.values()):
        if threads:
            raise refusal("threads", threads, "must be 0 for arrays on a device")
        return cuda.run_arrays(grouping, arrays, views, place, **said)
    problem = problem_of(grouping, views, **said)
    args = fill(problem, arrays, views)
    run_cpu(plan(problem), args, threads)
    return args.out


def _dimensions(x: Any) -> int:
    """0 for what is no array; `view()` says so in time."""
    try:
        return len(x.shape)
    except (AttributeError, RuntimeError, TypeError):
        return 0


def gemm(
    a: Any,
    b: Any,
    sfa: Any = None,
    sfb: Any = None,
    out: Any = None,
    *,
    c: Any = None,
    bias: Any = None,
    dtype: Any = None,
    out_dtype: Any = None,
    granularity: str | None = None,
    split: int = 0,
    batch_invariant: bool = False,
    threads: int = 0,
) -> Any:
    """D = A * B^T (+ bias) (+ C). Returns D.

    a: [M,K], float8_e4m3fn (ml_dtypes) or bfloat16. b: [N,K], the same type. A third dimension in
        front of either is a batch; one without it serves the whole batch. Rows are contiguous; the
        stride between them is a multiple of 16 bytes (`quantize_activations()` pads so, `padded()`
        makes such a copy of other arrays).
    sfa: float32 [M, ceil(K/128)]. sfb: float32 [ceil(N/128), ceil(K/128)], or [N, ceil(K/128)]: one
        scale for 1x128 (granularity says which where the shape cannot: "1d2d", "1d1d"). A number
        is one scale for everything. Both None for BF16 operands.
    out: [M,N], where to write; made when None.
    c: added to the product, shape and type of out; may be `out` itself. bias: [N], added too;
        float32, bfloat16 or float16.
    dtype: "e4m3" or "bf16", to read arrays of uint8 or uint16 as that.
    out_dtype: "bf16" (default), "f16" or "f32", or a dtype that is one (numpy.float32,
        ml_dtypes.bfloat16, torch.float16); also says what an `out` or `c` of uint16 holds.
    split: ranges that K is cut into, 0 lets the planner choose; batch_invariant: the split, and so
        the bits of a row, depend on N and K alone. threads: 0 for all.

    Raises InvalidArgument, with one sentence, for arrays that do not fit together, have a wrong
    dtype, are not contiguous in K, are read-only where written, or overlap.
    """
    head = ("gemm", dtype, out_dtype, granularity, split, batch_invariant)
    key = None
    if type(threads) is not int:
        threads = int32("threads", threads)
    if not threads:
        more = () if c is None and bias is None else (c, bias)
        done, key = _cache.again(head, a, b, sfa, sfb, out, more)
        if done is not None:
            return done
    arrays = {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "out": out, "c": c, "bias": bias}
    batched = 3 in (_dimensions(a), _dimensions(b))
    return run(
        key, "batched" if batched else "dense", arrays, threads, dtype=dtype,
        out_dtype=out_dtype, granularity=granularity, split=split, batch_invariant=batch_invariant,
    )  # fmt: skip


def gemm_contiguous(
    a: Any,
    b: Any,
    sfa: Any,
    sfb: Any,
    group_index: Any,
    out: Any = None,
    *,
    alignment: int = 128,
    zero_padding: bool = True,
    threads: int = 0,
    dtype: Any = None,
    out_dtype: Any = None,
    **more: Any,
) -> Any:
    """Rows sorted by group: row r of A times B[group_index[r]]. Returns D [rows,N].

    a: [rows,K]. b: [G,N,K]. sfa: float32 [rows, ceil(K/128)]. sfb: [G, ...] as in `gemm()`.
    group_index: int32 [rows]; each block of `alignment` rows (a multiple of 64) holds one group and
        may end in rows of -1, which are stored as zeros (zero_padding=False: left untouched). In
        host memory this is checked, and an index that breaks it is refused; on a device it is not,
        and rows that are not of their block's group come out as if they were -1 (`validate()`
        looks at host copies).
    more: c, bias ([N] or [G,N]), granularity, split, batch_invariant, and expected_m, the rows
        expected per group. The rest, and what is raised, as in `gemm()`.
    """
    return _grouped(
        "contiguous", a, b, sfa, sfb, out, {"group_index": group_index}, more, threads,
        dtype=dtype, out_dtype=out_dtype, alignment=alignment, zero_padding=zero_padding,
    )  # fmt: skip


def gemm_offsets(
    a: Any,
    b: Any,
    sfa: Any,
    sfb: Any,
    group_offsets: Any,
    out: Any = None,
    *,
    threads: int = 0,
    dtype: Any = None,
    out_dtype: Any = None,
    **more: Any,
) -> Any:
    """Rows sorted by group, no padding: group g owns rows offsets[g] to offsets[g+1] - 1.

    group_offsets: int32 or int64 [G+1]; groups may be empty, and rows outside all are left
    untouched (zero in an `out` made here). The rest as in `gemm_contiguous()`.
    """
    return _grouped(
        "offsets", a, b, sfa, sfb, out, {"group_offsets": group_offsets}, more, threads,
        dtype=dtype, out_dtype=out_dtype,
    )  # fmt: skip


def gemm_aligned(
    a: Any,
    b: Any,
    sfa: Any,
    sfb: Any,
    group_ends: Any,
    out: Any = None,
    *,
    alignment: int = 128,
    threads: int = 0,
    dtype: Any = None,
    out_dtype: Any = None,
    **more: Any,
) -> Any:
    """Group g owns the rows from group_ends[g-1], rounded up to `alignment`, to group_ends[g] - 1.

    group_ends: int32 [G]; the first group starts at 0. Gaps are left untouched (zero in an `out`
    made here). The rest as in `gemm_contiguous()`.
    """
    return _grouped(
        "aligned", a, b, sfa, sfb, out, {"group_ends": group_ends}, more, threads,
        dtype=dtype, out_dtype=out_dtype, alignment=alignment,
    )  # fmt: skip


def gemm_masked(
    a: Any,
    b: Any,
    sfa: Any,
    sfb: Any,
    group_counts: Any,
    out: Any = None,
    *,
    threads: int = 0,
    dtype: Any = None,
    out_dtype: Any = None,
    **more: Any,
) -> Any:
    """A buffer of max_m rows for each group, of which group_counts[g] are real.

    a: [G,max_m,K]. sfa: float32 [G, max_m, ceil(K/128)]. out: [G,max_m,N]; rows past the count are
    left untouched (zero in an `out` made here). group_counts: int32 [G]. The rest as in
    `gemm_contiguous()`.
    """
    return _grouped(
        "masked", a, b, sfa, sfb, out, {"group_counts": group_counts}, more, threads,
        dtype=dtype, out_dtype=out_dtype,
    )  # fmt: skip


def gemm_kgrouped(
    a: Any,
    b: Any,
    sfa: Any,
    sfb: Any,
    group_offsets: Any,
    group_counts: Any,
    out: Any = None,
    *,
    threads: int = 0,
    dtype: Any = None,
    out_dtype: Any = None,
    **more: Any,
) -> Any:
    """Weight gradients: D[g] = A[:, K of g] * B[:, K of g]^T. Returns D [G,M,N].

    a: [M,sumK]. b: [N,sumK]. sfa, sfb: float32 [M or N, ceil(sumK/128)]. group_offsets: int32 or
    int64 [G], where each group's K starts, multiples of 128; group_counts: its true K, same type.
    The elements between a group's true K and the next multiple of 128 are zero codes. A group
    with a K of 0 gives zeros, or C. more: c [G,M,N], split, batch_invariant. The packed form needs
    a plan of its own: `octet.cpu.run()`.
    """
    if group_counts is None:
        raise InvalidArgument("group_counts is None: must be int32 or int64 [groups]")
    metadata = {"group_offsets": group_offsets, "group_counts": group_counts}
    return _grouped(
        "kgrouped", a, b, sfa, sfb, out, metadata, more, threads, dtype=dtype, out_dtype=out_dtype
    )


# `more` of the grouped forms, besides c and bias; in one order, for the key of a call.
_OPTIONS = {"granularity": None, "split": 0, "batch_invariant": False, "expected_m": None}
_DEFAULTS = tuple(_OPTIONS.values())


def _grouped(
    grouping: str, a: Any, b: Any, sfa: Any, sfb: Any, out: Any, metadata: dict[str, Any],
    more: dict[str, Any], threads: int, **said: Any,
) -> Any:  # fmt: skip
    options, values, c, bias = _OPTIONS, _DEFAULTS, None, None
    if more:
        for name in more:
            if name not in ("c", "bias", *_OPTIONS):
                known = ", ".join(("c", "bias", *_OPTIONS))
                raise TypeError(f"unexpected argument {name!r}: must be one of {known}")
        options = {name: more.get(name, default) for name, default in _OPTIONS.items()}
        values, c, bias = tuple(options.values()), more.get("c"), more.get("bias")
    head = (grouping, values, *said.values())
    key = None
    if type(threads) is not int:
        threads = int32("threads", threads)
    if not threads:
        others = (c, bias) if more else ()
        done, key = _cache.again(head, a, b, sfa, sfb, out, (*metadata.values(), *others))
        if done is not None:
            return done
    arrays = {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "out": out, **metadata, "c": c, "bias": bias}
    return run(key, grouping, arrays, threads, **options, **said)
