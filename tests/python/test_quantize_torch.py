"""Quantise and dequantise of PyTorch tensors: the library's bits, by PyTorch's operations too."""

import importlib.util
import itertools

import numpy as np
import pytest

import octet
from octet import _quantize_torch

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch installed"),
]


def raw(x):
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x).view(np.uint8).tobytes()
    import torch

    return x.cpu().reshape(-1).view(torch.uint8).numpy().tobytes()


def sample(torch):
    torch.manual_seed(1)
    x = torch.randn(70, 300) * torch.exp2(torch.randint(-60, 60, (70, 300)).float())
    x[3, 4], x[6, 7], x[7, 7] = float("nan"), -float("inf"), float("inf")
    x[5], x[8], x[9] = 0, 1e-44, -0.0
    return x


@pytest.mark.parametrize("block", ["1x128", "128x128"])
@pytest.mark.parametrize("scale_format", ["f32", "pow2", "ue8m0"])
def test_the_bits_of_the_library(block, scale_format):
    import torch

    rows = 1 if block == "1x128" else 128
    for dtype, axis, transpose, amax_min in itertools.product(
        (torch.float32, torch.bfloat16, torch.float16), (0, 1), (False, True), (0.0, 1e-4)
    ):
        x = sample(torch).to(dtype)
        k_last = (axis == 1) != transpose
        how = dict(axis=axis, transpose=transpose)
        more = dict(scale_format=scale_format, amax_min=amax_min, pad_k=True)
        host = x.numpy() if dtype != torch.bfloat16 else x.float().numpy()
        wanted = octet.quantize(host, block, **how, **more)
        codes, scales = octet.quantize(x, block, **how, **more)
        assert isinstance(codes, torch.Tensor) and codes.dtype == torch.float8_e4m3fn
        assert raw(codes) == raw(wanted[0]) and raw(scales) == raw(wanted[1])
        # What a tensor on a device is computed by.
        other = torch.full_like(codes.view(torch.uint8), 9).view(torch.float8_e4m3fn)
        others = torch.zeros_like(scales.view(torch.uint8) if scale_format == "ue8m0" else scales)
        others = others.view(scales.dtype)
        _quantize_torch.quantize_into(
            torch, x, other, others, rows, axis, k_last, scale_format, amax_min
        )
        assert raw(other) == raw(codes) and raw(others) == raw(scales)
        codes, scales = octet.quantize(x, block, **how, scale_format=scale_format)
        for out_dtype in ("f32", "bf16", "f16"):
            back = octet.dequantize(codes, scales, block, **how, out_dtype=out_dtype)
            assert isinstance(back, torch.Tensor) and back.shape == x.shape
            again = torch.empty_like(back)
            _quantize_torch.dequantize_into(torch, codes, scales, again, rows, axis, k_last)
            assert raw(again) == raw(back)


def test_experts_and_layouts():
    import torch

    w = torch.randn(3, 140, 200)
    for function in (octet.quantize_weights, octet.quantize_activations):
        codes, scales = function(w)
        wanted = function(w.numpy())
        assert raw(codes) == raw(wanted[0]) and raw(scales) == raw(wanted[1])
        assert codes.stride() == (140 * 208, 208, 1)
        assert tuple(4 * s for s in scales.stride()) == wanted[1].strides
    a, sfa = octet.quantize_activations(w[0])
    b, sfb = octet.quantize_weights(w[1])
    assert float((octet.gemm(a, b, sfa, sfb).float() - w[0] @ w[1].t()).abs().max()) < 5
    nothing = octet.quantize_activations(w[0, :0])
    assert nothing[0].shape == (0, 200)
    assert octet.dequantize(codes[0], torch.tensor(0.5)).shape == (140, 200)


def test_refusals():
    import torch

    x = torch.randn(4, 256)
    with pytest.raises(octet.InvalidArgument, match="codes has dtype float32"):
        octet.quantize(x, codes=x)
    with pytest.raises(octet.InvalidArgument, match="amax_min = -1: must be finite and 0 or more"):
        octet.quantize(x, amax_min=-1)
    args = octet._structs.octet_quantize_args()
    for number in (float("nan"), -1.0):
        args.amax_min = number
        with pytest.raises(octet.InvalidArgument, match="amax_min = .*: must be finite"):
            octet._quantize._check_amax_min(args)
    args.amax_min = 1e-4
    octet._quantize._check_amax_min(args)
