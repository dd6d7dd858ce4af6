"""Dense products: D = A * B^T (+ C), FP8 with fine-grained scales."""

from __future__ import annotations

from typing import Any

from .. import _cache
from .._gemm import run
from . import _operands as o
from .settings import options


def fp8_gemm_nt(
    a: tuple[Any, Any],
    b: tuple[Any, Any],
    d: Any,
    c: Any = None,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    alpha: float | None = None,
) -> None:
    """D = A * B^T, or C + A * B^T.

    a: e4m3 [M,K] and its FP32 scales [M, ceil(K/128)]; b: e4m3 [N,K] and [ceil(N/128),
    ceil(K/128)], or [N, ceil(K/128)] with recipe=(1, 1, 128). K is contiguous in the codes; scales
    lie in rows or columns of any pitch, and are read where they are. d: [M,N], bfloat16 or
    float32. c: as d, or d itself.
    recipe_a, recipe_b: (1, 128) and (128, 128) or (1, 128), the same said another way.
    compiled_dims, disable_ue8m0_cast: without effect, nothing is compiled and FP32 scales stay.

    Raises InvalidArgument for arrays that do not fit together, Unsupported (a
    NotImplementedError) for what SM90 has not: FP4, packed scales, MN-major operands, alpha.
    """
    left, right = o.pair("a", a), o.pair("b", b)
    head = ("deep_gemm.fp8_gemm_nt", recipe, recipe_a, recipe_b, options())
    key = None
    if alpha is None:
        more = () if c is None else (c,)
        done, key = _cache.again(head, left[0], right[0], left[1], right[1], d, more)
        if done is not None:
            return
    o.no_alpha(alpha)
    o.expect_result(d)
    sms, pdl = options()
    arrays = {
        "a": o.codes("a", left[0]),
        "b": o.codes("b", right[0]),
        "sfa": o.scales("sfa", left[1]),
        "sfb": o.scales("sfb", right[1]),
        "out": d,
        "c": c,
    }
    # NOTE: a launch bound under the key reads the caller's own scales, never a copy of them.
    own = arrays["sfa"] is left[1] and arrays["sfb"] is right[1]
    run(
        key if own else None, "dense", arrays, 0, dtype="e4m3", out_dtype=None,
        granularity=o.granularity(recipe, recipe_a, recipe_b), sm_budget=sms, dependent_launch=pdl,
    )  # fmt: skip


def fp8_gemm_nn(
    a: tuple[Any, Any],
    b: tuple[Any, Any],
    d: Any,
    c: Any = None,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    alpha: float | None = None,
) -> None:
    """`fp8_gemm_nt()` with b, codes and scales, seen transposed: [K,N].

    SM90 takes FP8 operands in which K is contiguous, so codes must be a transposed view of such;
    others raise Unsupported.
    """
    b = o.flipped("b", b)
    fp8_gemm_nt(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast, alpha)


def fp8_gemm_tn(
    a: tuple[Any, Any],
    b: tuple[Any, Any],
    d: Any,
    c: Any = None,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "mn",
    disable_ue8m0_cast: bool = False,
    alpha: float | None = None,
) -> None:
    """`fp8_gemm_nt()` with a and b seen transposed; see `fp8_gemm_nn()`."""
    a, b = o.flipped("a", a), o.flipped("b", b)
    fp8_gemm_nt(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast, alpha)


def fp8_gemm_tt(
    a: tuple[Any, Any],
    b: tuple[Any, Any],
    d: Any,
    c: Any = None,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "mn",
    disable_ue8m0_cast: bool = False,
    alpha: float | None = None,
) -> None:
    """`fp8_gemm_nt()` with a seen transposed; see `fp8_gemm_nn()`."""
    a = o.flipped("a", a)
    fp8_gemm_nt(a, b, d, c, recipe, recipe_a, recipe_b, compiled_dims, disable_ue8m0_cast, alpha)


def wgrad_gemm_fp8_fp8_fp32_nt(lhs: tuple[Any, Any], rhs: tuple[Any, Any], out: Any) -> None:
    """out += A * B^T, in float32, both with one scale per row and 128 channels."""
    fp8_gemm_nt(lhs, rhs, out, out, (1, 1, 128))


def gemm_fp8_fp8_bf16_nt(lhs: tuple[Any, Any], rhs: tuple[Any, Any], out: Any) -> None:
    """`fp8_gemm_nt()` by its older name."""
    fp8_gemm_nt(lhs, rhs, out)


fp8_fp4_gemm_nt, fp8_fp4_gemm_nn = fp8_gemm_nt, fp8_gemm_nn
fp8_fp4_gemm_tn, fp8_fp4_gemm_tt = fp8_gemm_tn, fp8_gemm_tt
