"""Products grouped over M (experts): rows sorted by group, or a buffer of rows for each group."""

from __future__ import annotations

from typing import Any

from .. import _cache
from .._gemm import run
from .._library import refusal
from ..errors import InvalidArgument
from . import _operands as o
from .settings import get_mk_alignment_for_contiguous_layout, options


def _run(
    head: tuple[Any, ...], grouping: str, a: Any, b: Any, d: Any, metadata: str, layout: Any,
    recipes: tuple[Any, Any, Any], **said: Any,
) -> None:  # fmt: skip
    left, right = o.pair("a", a), o.pair("b", b)
    done, key = _cache.again(head, left[0], right[0], left[1], right[1], d, (layout,))
    if done is not None:
        return
    arrays = {
        "a": o.codes("a", left[0]),
        "b": o.codes("b", right[0]),
        "sfa": o.scales("sfa", left[1]),
        "sfb": o.scales("sfb", right[1]),
        "out": d,
        metadata: layout,
    }
    if metadata != "group_index":
        groups = o.dimensions_of("b", right[0], 1)[0]
        arrays[metadata] = o.one_dimension(metadata, layout, groups)
    o.expect_result(d)
    own = arrays["sfa"] is left[1] and arrays["sfb"] is right[1] and arrays[metadata] is layout
    sms, pdl = options()
    run(
        key if own else None, grouping, arrays, 0, dtype="e4m3", out_dtype=None,
        granularity=o.granularity(*recipes), sm_budget=sms, dependent_launch=pdl, **said,
    )  # fmt: skip


def m_grouped_fp8_gemm_nt_contiguous(
    a: tuple[Any, Any],
    b: tuple[Any, Any],
    d: Any,
    grouped_layout: Any = None,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = True,
    expected_m_for_psum_layout: int | None = None,
    *,
    m_indices: Any = None,
) -> None:
    """Row r of D: row r of A times B of the group that row r belongs to.

    a: e4m3 [M,K] and scales [M, ceil(K/128)]; b: e4m3 [G,N,K] and scales [G, ceil(N/128),
    ceil(K/128)]; d: [M,N], bfloat16 (float32 works too).
    grouped_layout: int32 [M], the group of each row: each block of
        `get_mk_alignment_for_contiguous_layout()` rows holds one group and may end in rows of -1.
        Those are stored as zeros; ensure_zero_padding=False leaves them as they were.
        use_psum_layout: int32 [G], where each group's rows end; a group starts where the one before
        ended, rounded up to the alignment. Rows between are left as they were, as on SM90.
    expected_m_for_psum_layout: rows expected per group, a hint. m_indices: older name of
    grouped_layout. The rest, and what is raised, as in `fp8_gemm_nt()`.
    """
    layout = grouped_layout if m_indices is None else m_indices
    if layout is None:
        raise InvalidArgument("grouped_layout is None: must be an int32 array")
    if expected_m_for_psum_layout is not None and not use_psum_layout:
        raise refusal(
            "expected_m_for_psum_layout", expected_m_for_psum_layout, "must be None without psum"
        )
    alignment = get_mk_alignment_for_contiguous_layout()
    head = (
        "deep_gemm.contiguous", recipe, recipe_a, recipe_b, use_psum_layout, ensure_zero_padding,
        expected_m_for_psum_layout, alignment, options(),
    )  # fmt: skip
    recipes = (recipe, recipe_a, recipe_b)
    if use_psum_layout:
        _run(
            head, "aligned", a, b, d, "group_ends", layout, recipes, alignment=alignment,
            expected_m=expected_m_for_psum_layout,
        )  # fmt: skip
    else:
        _run(
            head, "contiguous", a, b, d, "group_index", layout, recipes, alignment=alignment,
            zero_padding=bool(ensure_zero_padding),
        )  # fmt: skip


def m_grouped_fp8_gemm_nn_contiguous(
    a: tuple[Any, Any],
    b: tuple[Any, Any],
    d: Any,
    grouped_layout: Any = None,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = True,
    *,
    m_indices: Any = None,
) -> None:
    """`m_grouped_fp8_gemm_nt_contiguous()` with b seen transposed, [G,K,N]; see `fp8_gemm_nn()`."""
    m_grouped_fp8_gemm_nt_contiguous(
        a, o.flipped("b", b), d, grouped_layout, recipe, recipe_a, recipe_b, compiled_dims,
        disable_ue8m0_cast, use_psum_layout, ensure_zero_padding, m_indices=m_indices,
    )  # fmt: skip


def m_grouped_fp8_gemm_nt_masked(
    a: tuple[Any, Any],
    b: tuple[Any, Any],
    d: Any,
    masked_m: Any,
    expected_m: int,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    max_block_n: int | None = None,
    enable_overlap: bool = False,
    signal: Any = None,
) -> None:
    """A buffer of max_m rows for each group, of which masked_m[g] are real.

    a: e4m3 [G,max_m,K] and scales [G, max_m, ceil(K/128)]; b: e4m3 [G,N,K] and scales [G,
    ceil(N/128), ceil(K/128)]; d: [G,max_m,N], bfloat16 (float32 works too); rows past masked_m[g]
    are left as they were. masked_m: int32 [G], on the device. expected_m: rows expected per group,
    a hint.
    max_block_n, enable_overlap, signal: of forks; refused with a sentence when they ask for
    something. The rest, and what is raised, as in `fp8_gemm_nt()`.
    """
    o.refuse_overlap(max_block_n, enable_overlap, signal)
    head = ("deep_gemm.masked", recipe, recipe_a, recipe_b, expected_m, options())
    recipes = (recipe, recipe_a, recipe_b)
    _run(head, "masked", a, b, d, "group_counts", masked_m, recipes, expected_m=expected_m)


def m_grouped_gemm_fp8_fp8_bf16_nt_contiguous(
    lhs: tuple[Any, Any], rhs: tuple[Any, Any], out: Any, m_indices: Any
) -> None:
    """`m_grouped_fp8_gemm_nt_contiguous()` by its older name."""
    m_grouped_fp8_gemm_nt_contiguous(lhs, rhs, out, m_indices)


def m_grouped_gemm_fp8_fp8_bf16_nt_masked(
    lhs: tuple[Any, Any], rhs: tuple[Any, Any], out: Any, masked_m: Any, expected_m: int
) -> None:
    """`m_grouped_fp8_gemm_nt_masked()` by its older name."""
    m_grouped_fp8_gemm_nt_masked(lhs, rhs, out, masked_m, expected_m)


m_grouped_fp8_fp4_gemm_nt_contiguous = m_grouped_fp8_gemm_nt_contiguous
m_grouped_fp8_fp4_gemm_nn_contiguous = m_grouped_fp8_gemm_nn_contiguous
m_grouped_fp8_fp4_gemm_nt_masked = m_grouped_fp8_gemm_nt_masked
fp8_m_grouped_gemm_nt_masked = m_grouped_fp8_gemm_nt_masked
