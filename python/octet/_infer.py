"""Arrays -> the problem that they are: types, granularity, layouts and sizes are read off them."""

from __future__ import annotations

from typing import Any

from . import _structs as s
from ._args import ceil_div
from ._arrays import View, type_word
from ._library import refusal
from ._problem import GemmProblem, word_number
from .errors import InvalidArgument


def _layout(v: View | None, preferred: str) -> str:
    """How a scale matrix lies; the library refuses one that lies in no way it knows."""
    if v is None or len(v.shape) < 2:
        return preferred
    rows, blocks = v.shape[-2:]
    row, k = v.strides[-2:]
    unit_row, unit_k = rows <= 1 or row == 1, blocks <= 1 or k == 1
    groups_fit = len(v.shape) < 3 or v.shape[0] <= 1 or v.strides[0] % 4 == 0
    fits = {
        "row_major": unit_k,
        "column_major": unit_row
        and (blocks <= 1 or k % 4 == 0)
        and groups_fit
        and v.pointer % 16 == 0,
        "column_major_odd": unit_row,
    }
    return next((x for x in (preferred, *fits) if fits[x]), preferred)


def _granularity(sfb: View | None, n: int, said: str | None) -> str:
    if said is not None:
        return s.GRANULARITIES[word_number("granularity", s.GRANULARITIES, said)]
    if sfb is None or len(sfb.shape) < 2:
        return "1d2d"
    lines = sfb.shape[-2]
    if lines == ceil_div(n, 128):
        return "1d2d"
    if lines == n:
        return "1d1d"
    raise InvalidArgument(
        f"sfb has shape {list(sfb.shape)}: must have {ceil_div(n, 128)} rows (one scale for "
        f"128x128) or {n} (one for 1x128)"
    )


def _result_type(views: dict[str, View], said: Any) -> str:
    for name in ("out", "c"):
        if name in views:
            return views[name].infer_type(("bf16", "f16", "f32"), said, "out_dtype")
    word = type_word(said)
    if word is not None and (not isinstance(word, str) or word not in ("bf16", "f16", "f32")):
        raise refusal("out_dtype", said, "must be 'bf16', 'f16' or 'f32'")
    return word or "bf16"


def problem_of(
    grouping: str,
    views: dict[str, View],
    *,
    dtype: Any,
    out_dtype: Any,
    granularity: str | None = None,
    expected_m: int | None = None,
    **fields: Any,
) -> GemmProblem:
    """The problem of some arrays. fields: what arrays cannot say (split, alignment, ...)."""
    for name in ("a", "b"):
        if name not in views:
            raise InvalidArgument(f"{name} is None: must be an array")
    a, b = views["a"], views["b"]
    batched = grouping == "batched"
    for x, dimensions in (
        (a, (3,) if grouping == "masked" else (2, 3) if batched else (2,)),
        (b, (2,) if grouping in ("dense", "kgrouped") else (2, 3) if batched else (3,)),
    ):
        if len(x.shape) not in dimensions:
            what = "K last, " + " or ".join(f"{d} dimensions" for d in dimensions)
            raise x.wrong(f"{what} ({grouping})")
    in_type = a.infer_type(("e4m3", "bf16"), dtype, "dtype")
    n, k = b.shape[-2], a.shape[-1]
    groups = 1
    rows = a.shape[-2]
    if grouping == "kgrouped":
        groups = max(views[x].shape[0] if x in views and views[x].shape else 0
                     for x in ("group_counts",))  # fmt: skip
        k = ceil_div(k, max(groups, 1))
    elif grouping != "dense":
        groups = b.shape[0] if len(b.shape) == 3 else a.shape[0]
    if grouping == "masked":
        fields["max_m"] = rows
    m = rows
    if grouping in ("contiguous", "offsets", "aligned"):
        m = ceil_div(rows, max(groups, 1))
    if grouping in ("contiguous", "offsets", "aligned", "masked") and expected_m is not None:
        m = expected_m
    fields.update(grouping=grouping, m=m, n=n, k=k, groups=groups, in_type=in_type)
    fields.update(d_type=_result_type(views, out_dtype), accumulate="c" in views)
    if "bias" in views:
        fields["bias_type"] = views["bias"].infer_type(("f32", "bf16", "f16"), None, "")
    if in_type == "e4m3":
        sfb = views.get("sfb")
        sort = "1d1d" if grouping == "kgrouped" else _granularity(sfb, n, granularity)
        fields.update(
            granularity=sort,
            sfa_layout=_layout(views.get("sfa"), "column_major"),
            sfb_layout=_layout(sfb, "row_major" if sort == "1d2d" else "column_major"),
        )
    for name in ("group_offsets", "group_counts"):
        if name in views and grouping in ("offsets", "kgrouped"):
            fields["index_type"] = views[name].infer_type(("i32", "i64"), None, "")
    return GemmProblem(**fields)
