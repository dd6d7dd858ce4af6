"""Scale factors in the layouts that kernels of deep_gemm's devices read, by PyTorch operations.

Octet reads FP32 scales in rows or columns of any pitch, so none of this is needed before a call; it
is here for programs that keep scales in these layouts.
"""

from __future__ import annotations

from math import inf
from typing import Any

from .._arrays import is_torch
from .._library import integer as _integer
from .._library import refusal
from .._torch import torch as _torch
from ..errors import InvalidArgument, Unsupported
from .settings import get_mk_alignment_for_contiguous_layout


def ceil_div(x: int, y: int) -> int:
    """x / y rounded up."""
    return -(-x // y)


def align(x: int, y: int) -> int:
    """x rounded up to a multiple of y."""
    return ceil_div(x, y) * y


def integer(name: str, x: Any, least: int = 0) -> int:
    """A whole number, of whatever type."""
    return _integer(name, x, least, inf, f"must be a whole number, {least} or more")


def get_tma_aligned_size(x: int, element_size: int) -> int:
    """Elements of a column of x that the copy engine reads: a multiple of 16 bytes."""
    x, element_size = integer("x", x), integer("element_size", element_size)
    if element_size not in (1, 2, 4, 8, 16):
        raise InvalidArgument(f"element_size = {element_size}: must divide 16")
    return align(x, 16 // element_size)


def expect_tensor(name: str, x: Any, memory: bool = True) -> None:
    """A PyTorch tensor; memory: that holds what it says, as it is read byte by byte."""
    if not is_torch(x):
        raise InvalidArgument(f"{name} is {type(x).__name__}: must be a PyTorch tensor")
    if str(x.layout) != "torch.strided":
        raise InvalidArgument(f"{name} has layout {x.layout}: must be torch.strided")
    if memory and x.is_neg():
        raise InvalidArgument(
            f"{name} is a view that negates what lies in memory: resolve_neg() first"
        )


def _expect(name: str, sf: Any, dtype: Any, dimensions: tuple[int, ...]) -> None:
    expect_tensor(name, sf)
    if sf.dtype != dtype:
        raise InvalidArgument(f"{name} has dtype {sf.dtype}: must be {dtype}")
    if sf.dim() not in dimensions:
        raise InvalidArgument(
            f"{name} has shape {list(sf.shape)}: must have {' or '.join(map(str, dimensions))} "
            "dimensions"
        )


def get_mn_major_tma_aligned_tensor(sf: Any) -> Any:
    """FP32 scales [MN, K-blocks] or [G, MN, K-blocks] with MN contiguous, columns of 16 bytes.

    Strides of the result: (1, P), or (P * K-blocks, 1, P), where P is MN rounded up to a multiple
    of 4. Scales that lie so already are returned as they are.
    """
    torch = _torch("get_mn_major_tma_aligned_tensor()")
    _expect("sf", sf, torch.float32, (2, 3))
    mn, blocks = sf.shape[-2:]
    pitch = get_tma_aligned_size(mn, 4)
    strides = (pitch * blocks, 1, pitch)[-sf.dim() :]
    if tuple(sf.stride()) == strides:
        return sf
    out = torch.empty_strided(tuple(sf.shape), strides, dtype=sf.dtype, device=sf.device)
    return out.copy_(sf)


def reread(x: Any, dtype: Any) -> Any:
    """The bytes of x read as another type, along the last dimension.

    By way of one dimension: elsewhere strides that are never followed would be in the way.
    """
    flat = x.reshape(-1).view(dtype)
    return flat.view(*x.shape[:-1], x.shape[-1] * x.element_size() // flat.element_size())


def exponents(torch: Any, name: str, sf: Any, refuse: bool) -> Any:
    """The exponent bytes of FP32 scales, UE8M0. What is no power of two, nor zero, is refused; or,
    where nobody may wait for the device to look, becomes 255, which is NaN."""
    bits = sf.detach().view(torch.int32)
    wrong = ((bits & 0x7FFFFF) != 0) | (bits < 0) | (bits >> 23 == 255)
    if refuse and bool(wrong.any()):
        raise InvalidArgument(
            f"{name} holds no powers of two: must be as ceil_to_ue8m0() makes them"
        )
    return torch.where(wrong, 255, bits >> 23).to(torch.uint8)


def get_mn_major_tma_aligned_packed_ue8m0_tensor(sf: Any, psum_layout: Any = None) -> Any:
    """FP32 scales of powers of two as UE8M0, four K-blocks in an int32, MN contiguous.

    sf: [MN, K-blocks] or [G, MN, K-blocks] -> int32 [.., MN, ceil(K-blocks / 4)]; K-block 4i + j is
    byte j of word i, missing ones are 0. Strides as `get_mn_major_tma_aligned_tensor()` gives.
    Scales that are no powers of two raise InvalidArgument in host memory. On a device, where the
    host does not wait to look, they become UE8M0's NaN, 255; and so with psum_layout, which says
    that not all rows count: all are written, it is not looked at.
    """
    torch = _torch("get_mn_major_tma_aligned_packed_ue8m0_tensor()")
    _expect("sf", sf, torch.float32, (2, 3))
    mn, blocks = sf.shape[-2:]
    words, pitch = ceil_div(blocks, 4), get_tma_aligned_size(mn, 4)
    refuse = psum_layout is None and not sf.is_cuda
    bytes_ = torch.nn.functional.pad(exponents(torch, "sf", sf, refuse), (0, 4 * words - blocks))
    packed = reread(bytes_, torch.int32)
    shape = (*sf.shape[:-1], words)
    strides = (pitch * words, 1, pitch)[-sf.dim() :]
    out = torch.empty_strided(shape, strides, dtype=torch.int32, device=sf.device)
    return out.copy_(packed)


def get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(
    sf: Any,
    grouped_layout: Any,
    ks_cpu: list[int] | None = None,
    gran_k: int = 128,
    k_alignment: int | None = None,
    use_psum_layout: bool = False,
) -> Any:
    """`get_mn_major_tma_aligned_packed_ue8m0_tensor()` of K-grouped scales, group by group.

    sf: FP32 [blocks of all groups, MN], contiguous -> int32 [sum of ceil(blocks / 4), MN]: words of
    a group begin with its own first block.
    ks_cpu: each group's K; gran_k: K of one block. use_psum_layout: groups are told by
    grouped_layout alone, int32 [G], where each one's K ends (read by the host); they start at
    multiples of k_alignment, which is `get_mk_alignment_for_contiguous_layout()` by default.
    """
    torch = _torch("get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor()")
    _expect("sf", sf, torch.float32, (2,))
    gran_k = integer("gran_k", gran_k, 1)
    if use_psum_layout:
        alignment = integer(
            "k_alignment", k_alignment or get_mk_alignment_for_contiguous_layout(), 1)  # fmt: skip
        _expect("grouped_layout", grouped_layout, torch.int32, (1,))
        ends = [0, *grouped_layout.tolist()]
        ks = [end - align(start, alignment) for start, end in zip(ends, ends[1:])]
    else:
        given: Any = ks_cpu
        try:
            ks = [integer(f"ks_cpu[{g}]", k) for g, k in enumerate(given)]
        except TypeError:
            raise refusal("ks_cpu", ks_cpu, "must be a list of each group's K") from None
    if min(ks, default=0) < 0:
        raise InvalidArgument(
            f"grouped_layout holds {ends[1:]}: must be each group's end, no group before the last"
        )
    blocks = [ceil_div(k, gran_k) for k in ks]
    if sum(blocks) != sf.shape[0]:
        raise InvalidArgument(
            f"sf has shape {list(sf.shape)}: must have {sum(blocks)} rows, the blocks of "
            f"{gran_k} of all groups"
        )
    # Rows of the result in bytes: those of sf, and a row of zeros behind them for what is missing.
    rows: list[int] = []
    start = 0
    for count in blocks:
        missing = align(count, 4) - count
        rows += [*range(start, start + count), *[sf.shape[0]] * missing]
        start += count
    bytes_ = torch.nn.functional.pad(exponents(torch, "sf", sf, not sf.is_cuda), (0, 0, 0, 1))
    index = torch.tensor(rows, dtype=torch.int64, device=sf.device)
    picked = bytes_.index_select(0, index).view(len(rows) // 4, 4, sf.shape[1])
    return reread(picked.transpose(1, 2), torch.int32).squeeze(-1)


def transform_sf_into_required_layout(
    sf: Any,
    mn: int,
    k: int,
    recipe: tuple[int, ...],
    num_groups: int | None = None,
    is_sfa: bool | None = None,
    disable_ue8m0_cast: bool = False,
    psum_layout: Any = None,
) -> Any:
    """Scales as SM90's kernels of deep_gemm want them; Octet takes both forms.

    sf: float32 [ceil(mn / rows), ceil(k / 128)], a leading num_groups where it is given. recipe:
    (rows of SFA's blocks, of SFB's, 128) with is_sfa saying which this is, or (rows, 128) without.
    1x128: `get_mn_major_tma_aligned_tensor(sf)`. 128x128: sf itself.
    Raises InvalidArgument for other shapes, Unsupported for int32 scales and other recipes.
    """
    torch = _torch("transform_sf_into_required_layout()")
    mn, k = integer("mn", mn), integer("k", k)
    if num_groups is not None:
        num_groups = integer("num_groups", num_groups)
    try:
        numbers = tuple(integer("a number of recipe", n, 1) for n in recipe)
    except TypeError:
        numbers = ()
    if len(numbers) == 3:
        if is_sfa is None:
            raise InvalidArgument("is_sfa is None: must say whose scales they are, A's or B's")
        rows, channels = numbers[0 if is_sfa else 1], numbers[2]
    elif len(numbers) == 2 and is_sfa is None:
        rows, channels = numbers
    else:
        raise InvalidArgument(
            f"recipe = {recipe!r}: must be three numbers with is_sfa, or two without"
        )
    expect_tensor("sf", sf)
    if sf.dtype != torch.float32:
        raise Unsupported(f"sf has dtype {sf.dtype}: must be torch.float32 on SM90")
    if rows not in (1, 128) or channels != 128:
        raise Unsupported(
            f"recipe = {recipe!r}: must give blocks of 1x128 or 128x128; SM90 has no other"
        )
    shape = (ceil_div(mn, rows), ceil_div(k, 128))
    wanted = shape if num_groups is None else (num_groups, *shape)
    if tuple(sf.shape) != wanted:
        raise InvalidArgument(f"sf has shape {list(sf.shape)}: must be {list(wanted)}")
    return get_mn_major_tma_aligned_tensor(sf) if rows == 1 else sf
