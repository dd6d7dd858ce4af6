"""Casts to FP8 by PyTorch operations, on any device: codes, and scales of 448 steps.

The arithmetic is docs/numerics.md section 3 with a smallest magnitude of 1e-4 for a block, so on
the CPU and on a device the bits are those of `octet.quantize(..., amax_min=1e-4)`. Elements that
are not finite become NaN and leave their block alone.
"""

from __future__ import annotations

from typing import Any

from .._quantize_torch import LARGEST, codes_of, power_of_two, scales_of
from .._torch import torch as _torch
from ..errors import InvalidArgument
from .layout import align, expect_tensor, exponents, integer, reread

AMAX_MIN = 1e-4


def expect_matrix(name: str, x: Any) -> None:
    if type(x).__module__ == "numpy":
        raise InvalidArgument(
            f"{name} is {type(x).__name__}: must be a PyTorch tensor; octet.quantize_activations() "
            "and octet.quantize_weights() take NumPy arrays"
        )
    expect_tensor(name, x, memory=False)
    if x.dim() != 2:
        raise InvalidArgument(f"{name} has shape {list(x.shape)}: must have 2 dimensions")


def granularity(gran_k: Any) -> int:
    return integer("gran_k", gran_k, 1)


def ceil_to_ue8m0(x: Any) -> Any:
    """|x| in float32, rounded up to a power of two from 2^-126 to 2^127."""
    torch = _torch("ceil_to_ue8m0()")
    expect_tensor("x", x, memory=False)
    return power_of_two(torch, x.resolve_neg())


def pack_ue8m0_to_int(x: Any) -> Any:
    """float32 powers of two [.., 4n], contiguous, as UE8M0 bytes in int32 [.., n]."""
    torch = _torch("pack_ue8m0_to_int()")
    expect_tensor("x", x)
    if x.dtype != torch.float32 or x.dim() == 0 or x.shape[-1] % 4:
        raise InvalidArgument(
            f"x is {x.dtype} {list(x.shape)}: must be torch.float32, a multiple of 4 in the last "
            "dimension"
        )
    return reread(exponents(torch, "x", x, True), torch.int32)


def unpack_ue8m0_from_int(packed_sf: Any) -> Any:
    """int32 [.., n] of UE8M0 bytes as float32 [.., 4n]."""
    torch = _torch("unpack_ue8m0_from_int()")
    expect_tensor("packed_sf", packed_sf)
    if packed_sf.dtype != torch.int32 or packed_sf.dim() == 0:
        raise InvalidArgument(
            f"packed_sf is {packed_sf.dtype} {list(packed_sf.shape)}: must be torch.int32, 1 "
            "dimension or more"
        )
    return (reread(packed_sf, torch.uint8).to(torch.int32) << 23).view(torch.float32)


def blocked(torch: Any, x: Any, rows: int, cols: int) -> Any:
    """x [M,N] padded with zeros, as [M / rows, rows, N / cols, cols]."""
    m, n = x.shape
    pad = (0, align(n, cols) - n, 0, align(m, rows) - m)
    whole = torch.nn.functional.pad(x, pad) if any(pad) else x
    return whole.reshape(whole.shape[0] // rows, rows, whole.shape[1] // cols, cols)


def _cast(torch: Any, x: Any, rows: int, cols: int, use_ue8m0: bool) -> tuple[Any, Any]:
    """Codes [M,N], contiguous, and scales [ceil(M / rows), ceil(N / cols)]."""
    m, n = x.shape
    if 0 in (m, n):
        scales = torch.zeros(
            (-(-m // rows), -(-n // cols)), dtype=torch.float32, device=x.device)  # fmt: skip
        return torch.zeros((m, n), dtype=torch.float8_e4m3fn, device=x.device), scales
    rows, cols = min(rows, m), min(cols, n)  # no padding beyond the only block
    parts = blocked(torch, x, rows, cols)
    scale = scales_of(torch, parts, (1, 3), LARGEST, AMAX_MIN, use_ue8m0)
    codes = codes_of(torch, parts, scale).view(torch.uint8)
    codes = codes.reshape(parts.shape[0] * rows, -1)[:m, :n].contiguous()
    return codes.view(torch.float8_e4m3fn), scale.reshape(parts.shape[0], parts.shape[2])


def per_token_cast_to_fp8(
    x: Any, use_ue8m0: bool = False, gran_k: int = 128, use_packed_ue8m0: bool = False
) -> tuple[Any, Any]:
    """One scale for gran_k channels of a token: x [M,N] -> e4m3 [M,N], scales [M, ceil(N/gran_k)].

    use_ue8m0: scales are powers of two; use_packed_ue8m0: and packed, `pack_ue8m0_to_int()`.
    """
    torch = _torch("per_token_cast_to_fp8()")
    expect_matrix("x", x)
    codes, scales = _cast(torch, x, 1, granularity(gran_k), use_ue8m0)
    return codes, pack_ue8m0_to_int(scales) if use_packed_ue8m0 else scales


def per_channel_cast_to_fp8(
    x: Any, use_ue8m0: bool = False, gran_k: int = 128
) -> tuple[Any, Any]:
    """One scale for gran_k tokens of a channel: x [M,N] -> e4m3 [M,N], scales [M / gran_k, N].

    M must be a multiple of gran_k.
    """
    torch = _torch("per_channel_cast_to_fp8()")
    expect_matrix("x", x)
    gran_k = granularity(gran_k)
    if x.shape[0] % gran_k:
        raise InvalidArgument(f"x has shape {list(x.shape)}: must have a multiple of {gran_k} rows")
    return _cast(torch, x, gran_k, 1, use_ue8m0)


def per_block_cast_to_fp8(
    x: Any, use_ue8m0: bool = False, gran_k: int = 128
) -> tuple[Any, Any]:
    """One scale for a square of gran_k: x [M,N] -> e4m3 [M,N], scales [ceil(M/gran_k), ...]."""
    torch = _torch("per_block_cast_to_fp8()")
    expect_matrix("x", x)
    gran_k = granularity(gran_k)
    return _cast(torch, x, gran_k, gran_k, use_ue8m0)


def per_custom_dims_cast_to_fp8(
    x: Any, dims: tuple[int, ...], use_ue8m0: bool = False
) -> tuple[Any, Any]:
    """One scale for each index along dims, over all other dimensions; scales are squeezed."""
    torch = _torch("per_custom_dims_cast_to_fp8()")
    expect_tensor("x", x, memory=False)
    if not isinstance(dims, (tuple, list)) or any(d not in range(x.dim()) for d in dims):
        raise InvalidArgument(f"dims = {dims!r}: must be dimensions from 0 to {x.dim() - 1}")
    others = tuple(i for i in range(x.dim()) if i not in dims)
    # One more dimension of one element: without any to take the largest of, PyTorch takes all.
    scale = scales_of(
        torch, x.unsqueeze(-1), (*others, x.dim()), LARGEST, AMAX_MIN, use_ue8m0
    ).squeeze(-1)
    return codes_of(torch, x, scale), scale.squeeze()
