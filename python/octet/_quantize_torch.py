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


def _lines(x: Any, axis: int) -> Any:
    """x [rows, cols] with K last, whichever axis it runs along."""
    return x if axis == 1 else x.t()


def _blocks(torch: Any, x: Any, rows: int) -> Any:
    """[lines, K] padded with zeros, as [lines / rows, rows, K / 128, 128]."""
    lines, k = x.shape
    x = torch.nn.functional.pad(x, (0, -k % 128, 0, -lines % rows))
    return x.reshape(x.shape[0] // rows, rows, x.shape[1] // 128, 128)


def quantize_into(
    torch: Any, x: Any, codes: Any, scales: Any, rows: int, axis: int, k_last: bool,
    scale_format: str, amax_min: float,
) -> None:  # fmt: skip
    """`octet.quantize()` of a tensor. codes [lines, K] or its transpose, K perhaps padded; scales
    [blocks of `rows` lines, K-blocks]."""
    lined = codes.view(torch.uint8) if k_last else codes.view(torch.uint8).t()
    lined.zero_()
    if 0 in x.shape:
        return
    source = _lines(x, axis)
    lines, k = source.shape
    parts = _blocks(torch, source.float(), rows)
    scale = scales_of(torch, parts, (1, 3), LARGEST, amax_min, scale_format != "f32")
    made = codes_of(torch, parts, scale).view(torch.uint8)
    lined[:, :k].copy_(made.reshape(parts.shape[0] * rows, -1)[:lines, :k])
    scale = scale.reshape(parts.shape[0], parts.shape[2])
    if scale_format == "ue8m0":
        scales.view(torch.uint8).copy_((scale.view(torch.int32) >> 23).to(torch.uint8))
    else:
        scales.copy_(scale)


def dequantize_into(
    torch: Any, codes: Any, scales: Any, x: Any, rows: int, axis: int, k_last: bool
) -> None:
    """`octet.dequantize()` of tensors, into x."""
    if 0 in x.shape:
        return
    to = _lines(x, axis)
    lined = codes.view(torch.float8_e4m3fn) if k_last else codes.view(torch.float8_e4m3fn).t()
    lines, k = to.shape
    if scales.dtype != torch.float32:
        bytes_ = scales.view(torch.uint8)
        bits = torch.where(bytes_ == 255, 0x7FC00000, bytes_.to(torch.int32) << 23)
        scales = bits.to(torch.int32).view(torch.float32)
    if scales.dim() == 2:
        scales = scales.repeat_interleave(rows, 0)[:lines].repeat_interleave(128, 1)[:, :k]
    value = lined[:, :k].float() * scales
    to.copy_(value)
    wide = to.dtype == torch.float32  # one NaN of each type, as everywhere
    bits = to.view(torch.int32 if wide else torch.int16)
    bits.masked_fill_(torch.isnan(value), 0x7FFFFFFF if wide else 0x7FFF)
