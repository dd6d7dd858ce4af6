"""What the functions share: pairs of codes and scales, recipes, and which way operands lie."""

from __future__ import annotations

from typing import Any

from .._arrays import view
from .._library import refusal
from ..errors import InvalidArgument, Unsupported

_RECIPES = {(1, 128, 128): "1d2d", (1, 1, 128): "1d1d"}
_PAIRS = {((1, 128), (128, 128)): "1d2d", ((1, 128), (1, 128)): "1d1d"}


def pair(name: str, x: Any) -> tuple[Any, Any]:
    """(codes, scales)."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise InvalidArgument(
            f"{name} is a {type(x).__name__}: must be a pair of FP8 codes and FP32 scales"
        )
    return x[0], x[1]


def granularity(recipe: Any, recipe_a: Any = None, recipe_b: Any = None) -> str:
    """Octet's word for a recipe: (1, 128, 128), the default, or (1, 1, 128); or for the pair."""
    if isinstance(recipe_a, str):  # older callers: compiled_dims stood in its place
        recipe_a = recipe_b = None
    if recipe is None and recipe_a is None and recipe_b is None:
        return "1d2d"
    if recipe is not None and (recipe_a is not None or recipe_b is not None):
        raise InvalidArgument("recipe is given beside recipe_a and recipe_b: must be one or both")
    if recipe is None and (recipe_a is None or recipe_b is None):
        raise InvalidArgument("recipe_a and recipe_b: must both be given, or neither")
    try:
        if recipe is not None:
            word = _RECIPES.get(tuple(recipe))
        else:
            word = _PAIRS.get((tuple(recipe_a), tuple(recipe_b)))
    except TypeError:
        word = None
    if word is None:
        said = f"recipe = {recipe!r}" if recipe is not None else (
            f"recipe_a = {recipe_a!r}, recipe_b = {recipe_b!r}")  # fmt: skip
        raise Unsupported(
            f"{said}: must be (1, 128, 128), or (1, 1, 128) for one scale of both operands per row "
            "and 128 channels; SM90 has no other"
        )
    return word


def codes(name: str, x: Any) -> Any:
    """Operands as SM90 takes them: e4m3, K contiguous."""
    v = view(name, x)
    if v.dtype in ("int8", "float4_e2m1fn_x2"):
        raise Unsupported(
            f"{name} has dtype {v.dtype}: must be float8_e4m3fn; FP4 operands need SM100"
        )
    if len(v.shape) >= 2 and v.strides[-1] != 1:
        raise Unsupported(
            f"{name} has strides {list(v.strides)}: must be K-major, 1 along K; SM90 reads FP8 "
            f"operands in no other order, {name}.contiguous() of the transposed view is a copy"
        )
    return x


def scales(name: str, x: Any) -> Any:
    """Scales that lie in rows or columns as they are, others as a copy that does."""
    v = view(name, x)
    if v.dtype == "int32":
        raise Unsupported(
            f"{name} has dtype int32 (packed UE8M0): must be float32 on SM90; "
            "unpack_ue8m0_from_int() gives such"
        )
    if len(v.shape) >= 2 and 1 not in v.strides[-2:] and 0 not in v.strides[-2:]:
        return x.contiguous() if hasattr(x, "contiguous") else x.copy()
    return x


def dimensions_of(name: str, x: Any, least: int) -> tuple[int, ...]:
    """The shape of an array of so many dimensions or more."""
    v = view(name, x)
    if len(v.shape) < least:
        raise v.wrong(f"{least} dimensions or more")
    return v.shape


def flipped(name: str, x: Any) -> tuple[Any, Any]:
    """Codes and scales with their last two dimensions exchanged; nothing is copied."""
    turned = []
    for what, y in zip((name, f"sf{name}"), pair(name, x)):
        dimensions_of(what, y, 2)
        if not hasattr(y, "swapaxes"):
            raise refusal(what, y, "must be a PyTorch, NumPy or CuPy array, to be seen transposed")
        turned.append(y.swapaxes(-1, -2))
    return turned[0], turned[1]


def one_dimension(name: str, x: Any, length: int) -> Any:
    """Metadata of one number per group, whatever shape it came in."""
    v = view(name, x)
    if len(v.shape) == 1:
        return x
    count = 1
    for n in v.shape:
        count *= n
    if count != length:
        raise v.wrong(f"[{length}], one number per group")
    return x.reshape(-1)


def expect_result(d: Any) -> None:
    if d is None:
        raise InvalidArgument("d is None: must be an array, where the result goes")


def no_alpha(alpha: float | None) -> None:
    if alpha is not None and alpha != 1.0:
        raise Unsupported(f"alpha = {alpha!r}: must be None; SM90's functions have no factor")


def refuse_overlap(max_block_n: Any, enable_overlap: Any, signal: Any) -> None:
    """The arguments of forks that let another kernel start on finished tiles."""
    if enable_overlap:
        raise refusal("enable_overlap", enable_overlap, "must be False; no tile is signalled")
    if signal is not None:
        raise InvalidArgument("signal is given: must be None; no tile is signalled")
    if max_block_n not in (None, 256):
        raise refusal("max_block_n", max_block_n, "must be left alone; the planner chooses tiles")
