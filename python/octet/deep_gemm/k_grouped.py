"""Products grouped over K (weight gradients of experts), in the packed form that SM90 reads."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

from .. import _cache, cpu
from .._arrays import ANY_DEVICE, view
from .._infer import _layout
from .._library import refusal
from .._plan import plan
from .._problem import GemmProblem
from .._torch import torch as _torch
from ..cuda import default_context, run_problem
from ..errors import InvalidArgument, Unsupported
from . import _operands as o
from .layout import expect_tensor
from .settings import options


def _sizes(ks: Any) -> list[int]:
    try:
        sizes = [operator.index(k) for k in ks]
    except TypeError:
        raise refusal("ks_cpu", ks, "must be a list of each group's K") from None
    for g, k in enumerate(sizes):
        if k < 0 or k % 128:
            raise InvalidArgument(f"ks_cpu[{g}] = {k}: must be a multiple of 128, 0 or more")
    return sizes


def k_grouped_fp8_gemm_nt_contiguous(
    a: tuple[Any, Any],
    b: tuple[Any, Any],
    d: Any,
    ks_cpu: list[int] | None = None,
    grouped_layout: Any = None,
    c: Any = None,
    recipe: tuple[int, int, int] = (1, 1, 128),
    compiled_dims: str = "mn",
    use_psum_layout: bool = False,
    *,
    ks: list[int] | None = None,
    ks_tensor: Any = None,
) -> None:
    """D[g] = A_g * B_g^T, or C[g] + A_g * B_g^T.

    a: e4m3 of sum(ks) * M elements: for each group its [M,K_g], one after the other, and scales
    [M, sum(ks) / 128], where column kb is that of the kb-th block of all; b: the same with N.
    d: [G,M,N], float32 or bfloat16; c: as d, or d itself; without it D is the product.
    ks_cpu: each group's K, multiples of 128 (0: D[g] is C[g], or zero). grouped_layout: the same as
    int32 [G] where the operands are. ks, ks_tensor: older names of both.
    use_psum_layout: of SM100; raises Unsupported, as do other recipes.
    """
    if use_psum_layout:
        raise Unsupported("use_psum_layout = True: must be False in K-grouped products on SM90")
    if o.granularity(recipe) != "1d1d":
        raise Unsupported(f"recipe = {recipe!r}: must be (1, 1, 128) in K-grouped products")
    sizes = _sizes(ks_cpu if ks is None else ks)
    counts = grouped_layout if ks_tensor is None else ks_tensor
    if counts is None:
        raise InvalidArgument("grouped_layout is None: must be int32, each group's K")
    left, right = o.pair("a", a), o.pair("b", b)
    head = ("deep_gemm.k_grouped", tuple(sizes), options())
    done, key = _cache.again(head, left[0], right[0], left[1], right[1], d, (counts, c))
    if done is not None:
        return
    place, pointers = _cache.place_of(key)
    known = None if place is None else _cache.recall(place)
    if known is not None:
        known.run(d, pointers, key)
        return
    out = view("d", d)
    if len(out.shape) != 3 or out.shape[0] != len(sizes):
        raise out.wrong(f"[{len(sizes)}, M, N], one matrix per group")
    groups, m, n = out.shape
    total = sum(sizes)
    flat: list[Any] = []
    for name, x, rows in (("a", left[0], m), ("b", right[0], n)):
        v = view(name, x)
        if len(v.shape) > 1:
            o.codes(name, x)
        if prod(v.shape) != total * rows:
            raise v.wrong(f"[{total * rows}], {rows} rows of each group's K")
        flat.append(x if len(v.shape) == 1 else x.reshape(-1))
    sfa, sfb = o.scales("sfa", left[1]), o.scales("sfb", right[1])
    sms, pdl = options()
    problem = GemmProblem(
        grouping="kgrouped", packed=True, groups=groups, m=m, n=n, k=-(-total // max(groups, 1)),
        d_type=out.infer_type(("f32", "bf16", "f16"), None, ""), accumulate=c is not None,
        sfa_layout=_layout(view("sfa", sfa), "column_major"),
        sfb_layout=_layout(view("sfb", sfb), "column_major"), sm_budget=sms, dependent_launch=pdl,
    )  # fmt: skip
    more = {"group_counts": o.one_dimension("group_counts", counts, groups)}
    if not view("grouped_layout", counts).on_device:  # else it is not looked at
        held = more["group_counts"].tolist()
        if held != sizes:
            raise InvalidArgument(f"grouped_layout holds {held}: must be what ks_cpu says, {sizes}")
    more["c"] = c
    arrays = {"a": flat[0], "b": flat[1], "sfa": sfa, "sfb": sfb, "out": d, **more}
    if out.on_device:
        given = (left[0], right[0], left[1], right[1], d, counts, c)
        own = all(x is y for x, y in zip(arrays.values(), given))  # no copy
        context = default_context(0 if out.device == ANY_DEVICE else out.device)
        run_problem(context, problem, arrays, {}, place if own else None)
    else:
        cpu.run(plan(problem), **arrays)


def k_grouped_wgrad_gemm_fp8_fp8_fp32_nt(
    lhs: tuple[Any, Any], rhs: tuple[Any, Any], out: Any, batch_sizes: list[int]
) -> None:
    """out[g] += A_g * B_g^T by an older name: scales are [sum(K) / 128, M or N], the other way."""
    torch = _torch("k_grouped_wgrad_gemm_fp8_fp8_fp32_nt()")
    sizes = _sizes(batch_sizes)
    a, b = _turned("lhs", lhs), _turned("rhs", rhs)
    expect_tensor("out", out)
    counts = torch.tensor(sizes, dtype=torch.int32, device=out.device)
    k_grouped_fp8_gemm_nt_contiguous(a, b, out, sizes, counts, out)


def _turned(name: str, x: Any) -> tuple[Any, Any]:
    codes, scales = o.pair(name, x)
    expect_tensor(f"{name}'s scales", scales)
    if scales.dim() != 2:
        raise view(f"{name}'s scales", scales).wrong("2 dimensions, [sum(K) / 128, rows]")
    return codes, scales.t()
