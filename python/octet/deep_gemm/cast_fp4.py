"""FP4 (e2m1) by PyTorch operations: for programs that store it; SM90 multiplies none.

Two codes lie in a byte, the even column in the low half. Magnitudes are 0, 0.5, 1, 1.5, 2, 3, 4, 6;
a value half way between two goes to the smaller one.
"""

from __future__ import annotations

from typing import Any

from .._quantize_torch import scales_of
from .._torch import torch as _torch
from ..errors import InvalidArgument
from .cast import (
    AMAX_MIN,
    blocked,
    expect_matrix,
    granularity,
    pack_ue8m0_to_int,
    unpack_ue8m0_from_int,
)

_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_HALF_WAY = tuple((x + y) / 2 for x, y in zip(_MAGNITUDES, _MAGNITUDES[1:]))


def _joined(torch: Any, codes: Any) -> Any:
    """uint8 codes [M, 2n] -> int8 [M, n]."""
    return (codes[:, 0::2] | (codes[:, 1::2] << 4)).view(torch.int8)


def _apart(torch: Any, packed: Any) -> Any:
    """int8 [M, n] -> uint8 codes [M, 2n]."""
    bytes_ = packed.view(torch.uint8)
    return torch.stack((bytes_ & 15, bytes_ >> 4), dim=-1).flatten(-2)


def per_token_cast_to_fp4(
    x: Any, use_ue8m0: bool = False, gran_k: int = 128, use_packed_ue8m0: bool = False
) -> tuple[Any, Any]:
    """One scale for gran_k channels of a token: x [M,N] -> int8 [M, N/2] and scales.

    scales: float32 [M, ceil(N/gran_k)]. N must be even. use_packed_ue8m0 needs use_ue8m0.
    """
    torch = _torch("per_token_cast_to_fp4()")
    expect_matrix("x", x)
    m, n = x.shape
    if n % 2:
        raise InvalidArgument(f"x has shape {list(x.shape)}: must have an even number of columns")
    if use_packed_ue8m0 and not use_ue8m0:
        raise InvalidArgument("use_packed_ue8m0 = True: must come with use_ue8m0=True")
    gran_k = min(granularity(gran_k), max(x.shape[1], 1))  # no padding beyond the only block
    parts = blocked(torch, x, 1, gran_k).float()
    scale = scales_of(torch, parts, (1, 3), _MAGNITUDES[-1], AMAX_MIN, use_ue8m0)
    scaled = (parts * (1.0 / scale)).reshape(m, -1)[:, :n]
    bounds = torch.tensor(_HALF_WAY, dtype=torch.float32, device=x.device)
    code = torch.bucketize(scaled.abs(), bounds).to(torch.uint8)
    code = torch.where((scaled < 0) & (code > 0), code | 8, code)
    scales = scale.reshape(m, -1)
    return _joined(torch, code), pack_ue8m0_to_int(scales) if use_packed_ue8m0 else scales


def transpose_packed_fp4(a: Any) -> Any:
    """int8 [M, N/2] -> int8 [N, M/2], the transpose of the codes. M must be even."""
    torch = _torch("transpose_packed_fp4()")
    expect_matrix("a", a)
    if a.dtype != torch.int8 or a.shape[0] % 2:
        raise InvalidArgument(
            f"a is {a.dtype} {list(a.shape)}: must be torch.int8 with an even number of rows"
        )
    return _joined(torch, _apart(torch, a).t()).contiguous()


def cast_back_from_fp4(
    packed: Any, sf: Any, gran_k: int = 128, use_packed_ue8m0: bool = False
) -> Any:
    """int8 [M, N/2] and scales -> float32 [M,N]."""
    torch = _torch("cast_back_from_fp4()")
    expect_matrix("packed", packed)
    if packed.dtype != torch.int8:
        raise InvalidArgument(f"packed has dtype {packed.dtype}: must be torch.int8")
    if use_packed_ue8m0:
        sf = unpack_ue8m0_from_int(sf)
    expect_matrix("sf", sf)
    gran_k = granularity(gran_k)
    codes = _apart(torch, packed)
    if sf.shape[0] != codes.shape[0] or sf.shape[1] * gran_k < codes.shape[1]:
        raise InvalidArgument(
            f"sf has shape {list(sf.shape)}: must be [{codes.shape[0]}, "
            f"{-(-codes.shape[1] // gran_k)}], one scale for {gran_k} columns of a row"
        )
    table = torch.tensor(_MAGNITUDES, dtype=torch.float32, device=packed.device)
    magnitude = table[(codes & 7).to(torch.int64)]
    value = torch.where(codes > 8, -magnitude, magnitude)
    return value * sf.repeat_interleave(gran_k, dim=1)[:, : codes.shape[1]]
