"""docs/numerics.md section 3 in PyTorch operations, for tensors wherever they lie: the same bits.

Every operation is one that IEEE arithmetic defines. Two of PyTorch's shortcuts would change bits on
a device: dividing by a Python number multiplies by its reciprocal there, so divisors are tensors;
and a conversion to float8_e4m3fn turns what is too large into NaN, so values are clamped before.
"""

from __future__ import annotations

from typing import Any

LARGEST = 448.0  # of e4m3
SMALLEST_SCALE = 2.0**-126


def power_of_two(torch: Any, x: Any) -> Any:
    """FP32 rounded up to powers of two by the bits: exponent fields 1 to 254, signs ignored."""
    bits = x.float().view(torch.int32) & 0x7FFFFFFF
    exponent = (bits >> 23) + ((bits & 0x7FFFFF) != 0).to(torch.int32)
    return (exponent.clamp(1, 254) << 23).view(torch.float32)


def scales_of(
    torch: Any, x: Any, dims: tuple[int, ...], largest: float, amax_min: float, pow2: bool
) -> Any:
    """One FP32 scale for all elements along dims, which stay with one element.

    The largest finite magnitude, at least amax_min, over `largest`; 0 where there is none but 0.
    """
    x = x.float()
    magnitude = torch.where(torch.isfinite(x), x.abs(), torch.zeros((), device=x.device))
    amax = magnitude.amax(dims, keepdim=True)
    if amax_min > 0:
        amax = amax.clamp(min=amax_min)
    scale = (amax / torch.full((), largest, device=x.device)).clamp(min=SMALLEST_SCALE)
    if pow2:
        scale = power_of_two(torch, scale)
    return torch.where(amax == 0, torch.zeros((), device=x.device), scale)


def codes_of(torch: Any, x: Any, scale: Any) -> Any:
    """e4m3(x * (1 / scale)), saturating; 0 where the scale is 0, 0x7f for what is not finite."""
    x = x.float()
    scaled = x * torch.where(scale == 0, scale, 1.0 / scale)
    codes = scaled.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).view(torch.uint8)
    codes = torch.where(scale == 0, torch.zeros((), dtype=torch.uint8, device=x.device), codes)
    nan = torch.full((), 0x7F, dtype=torch.uint8, device=x.device)
    return torch.where(torch.isfinite(x), codes, nan).view(torch.float8_e4m3fn)
