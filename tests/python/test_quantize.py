"""Quantise and dequantise against the formula of docs/numerics.md, written once more in NumPy."""

import ml_dtypes
import numpy as np
import pytest

import octet

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32) * np.float32(3)


def bits(x):
    return np.ascontiguousarray(x).view(np.uint8).tobytes()


def by_formula(x, rows, scale_format):
    """rows: 1 or 128 of a block."""
    x = x.astype(np.float32)
    lines, blocks = -(-x.shape[0] // rows), -(-x.shape[1] // 128)
    codes = np.zeros(x.shape, np.uint8)
    scales = np.zeros((lines, blocks), np.float32)
    for i in range(lines):
        for j in range(blocks):
            at = (slice(i * rows, (i + 1) * rows), slice(j * 128, (j + 1) * 128))
            amax = np.abs(x[at]).max()
            scale = max(amax / np.float32(448), np.float32(2.0**-126)) if amax else np.float32(0)
            if scale_format != "f32" and scale:
                fraction, exponent = np.frexp(scale)
                scale = np.ldexp(np.float32(1), exponent - (fraction == 0.5))
            if scale:
                scaled = np.clip(x[at] * (np.float32(1) / scale), -448, 448)
                codes[at] = scaled.astype(E4M3).view(np.uint8)
            scales[i, j] = scale
    return codes, scales


@pytest.mark.parametrize("shape", [(1, 1), (5, 103), (130, 300), (4, 128)])
@pytest.mark.parametrize("scale_format", ["f32", "pow2", "ue8m0"])
@pytest.mark.parametrize("x_type", [np.float32, BF16, np.float16])
def test_codes_and_scales(shape, scale_format, x_type):
    x = normal(*shape).astype(x_type)
    for function, rows in ((octet.quantize_activations, 1), (octet.quantize_weights, 128)):
        codes, scales = function(x, scale_format=scale_format)
        wanted_codes, wanted_scales = by_formula(x, rows, scale_format)
        assert codes.dtype == E4M3 and codes.shape == x.shape
        assert bits(codes) == bits(wanted_codes)
        if scale_format == "ue8m0":
            assert scales.dtype == ml_dtypes.float8_e8m0fnu
            exponents = np.ascontiguousarray(scales).view(np.uint8).astype(np.int32) - 127
            scales = np.ldexp(np.float32(1), exponents)
        assert bits(scales) == bits(wanted_scales)


def test_layouts_are_those_a_gemm_reads_fastest():
    codes, scales = octet.quantize_activations(normal(5, 300))
    assert codes.strides == (304, 1) and scales.strides == (4, 32)
    codes, scales = octet.quantize_weights(normal(200, 300))
    assert codes.strides == (304, 1) and scales.strides == (12, 4)
    _, scales = octet.quantize(normal(5, 300), scale_order="row")
    assert scales.strides == (12, 4)


def test_experts():
    w = normal(3, 140, 200)
    codes, scales = octet.quantize_weights(w)
    tokens, token_scales = octet.quantize_activations(w)
    for g in range(3):
        for both, function in (((codes, scales), octet.quantize_weights),
                               ((tokens, token_scales), octet.quantize_activations)):  # fmt: skip
            alone = function(w[g])
            assert bits(both[0][g]) == bits(alone[0]) and bits(both[1][g]) == bits(alone[1])


def test_axis_transpose_and_padding():
    x = normal(130, 20)
    codes, scales = octet.quantize(x, axis=0, transpose=True, pad_k=True)
    assert codes.shape == (20, 256) and scales.shape == (20, 2)
    plain, plain_scales = octet.quantize(np.ascontiguousarray(x.T))
    assert bits(codes[:, :130]) == bits(plain) and bits(scales) == bits(plain_scales)
    assert not np.ascontiguousarray(codes[:, 130:]).view(np.uint8).any()
    upright, _ = octet.quantize(x, axis=0)
    assert bits(upright) == bits(plain.T)


@pytest.mark.parametrize("block", ["1x128", "128x128"])
@pytest.mark.parametrize("out_dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("scale_format", ["f32", "ue8m0"])
def test_round_trip(block, out_dtype, scale_format):
    x = normal(130, 300)
    codes, scales = octet.quantize(x, block, scale_format=scale_format)
    y = octet.dequantize(codes, scales, block, out_dtype=out_dtype)
    assert y.dtype == {"f32": np.float32, "bf16": BF16, "f16": np.float16}[out_dtype]
    assert np.abs(y.astype(np.float32) - x).max() < np.abs(x).max() / 8
    full = scales.astype(np.float32)
    full = np.repeat(full, 128, 1)[:, :300]
    full = np.repeat(full, 128, 0)[:130] if block == "128x128" else full
    assert bits(y) == bits((codes.astype(np.float32) * full).astype(y.dtype))


def test_types_may_be_dtypes():
    x = normal(4, 256)
    codes, scales = octet.quantize(x)
    for word, types in (("f32", (np.float32, np.dtype("f4"), "float32")),
                        ("bf16", (BF16, np.dtype(BF16), "bfloat16")),
                        ("f16", (np.float16, np.dtype(np.float16)))):  # fmt: skip
        for said in types:
            wanted = octet.dequantize(codes, scales, out_dtype=word)
            assert bits(octet.dequantize(codes, scales, out_dtype=said)) == bits(wanted)
            got = octet.gemm(codes, codes, scales, 1.0, out_dtype=said)
            assert got.dtype == wanted.dtype
            assert bits(got) == bits(octet.gemm(codes, codes, scales, 1.0, out_dtype=word))
    raw = codes.view(np.uint8)
    assert bits(octet.gemm(raw, raw, scales, 1.0, dtype=codes.dtype)) == bits(
        octet.gemm(codes, codes, scales, 1.0))
    assert bits(octet.quantize(x.astype(BF16).view(np.uint16), dtype=BF16)[0]) == bits(
        octet.quantize(x.astype(BF16))[0])


def test_special_values():
    x = np.zeros((3, 128), np.float32)
    x[0, 5] = np.nan
    x[0, 6] = 448
    x[1, 3] = -np.inf
    codes, scales = octet.quantize(x)
    raw = np.ascontiguousarray(codes).view(np.uint8)
    assert raw[0, 5] == 0x7F and raw[0, 6] == 0x7E and raw[1, 3] == 0x7F
    assert scales[:, 0].tolist() == [1, 0, 0]
    assert octet.quantize(x, amax_min=896)[1][:, 0].tolist() == [2, 2, 2]


def test_one_scale_and_outputs_given():
    codes, _ = octet.quantize(normal(4, 64))
    out = np.zeros((4, 64), np.uint16)
    scale = np.array(0.5, np.float32)
    assert octet.dequantize(codes, scale, out=out, out_dtype="bf16") is out
    assert bits(out) == bits((codes.astype(np.float32) * scale).astype(BF16))
    x = normal(4, 64)
    into, scales = np.zeros((4, 80), np.uint8), np.zeros((4, 1), np.float32)
    octet.quantize(x, codes=into[:, :64], scales=scales)
    wanted = octet.quantize(x)
    assert bits(into[:, :64]) == bits(wanted[0]) and bits(scales) == bits(wanted[1])
    raw = octet.quantize(x.astype(BF16).view(np.uint16), dtype="bf16")
    assert bits(raw[0]) == bits(octet.quantize(x.astype(BF16))[0])


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("x has dtype float64: must be float32 or bfloat16 or float16",
         lambda: octet.quantize(np.zeros((2, 2)))),
        ("x has dtype uint16: say dtype='bf16'", lambda: octet.quantize(np.zeros((2, 2), "u2"))),
        ("x has shape [4]: must be 2 dimensions", lambda: octet.quantize(np.zeros(4, "f4"))),
        ("block = '64': must be '1x128', '128x128'", lambda: octet.quantize(normal(2, 2), "64")),
        ("scale_format = 'e8': must be 'f32', 'pow2', 'ue8m0'",
         lambda: octet.quantize(normal(2, 2), scale_format="e8")),
        ("axis = 2: must be 1", lambda: octet.quantize(normal(2, 2), axis=2)),
        ("amax_min = -1: must be finite and 0 or more",
         lambda: octet.quantize(normal(2, 2), amax_min=-1)),
        ("amax_min = 'x': must be a number", lambda: octet.quantize(normal(2, 2), amax_min="x")),
        ("x has strides [1, 2]: must be 1 in the last", lambda: octet.quantize(normal(3, 2).T)),
        ("codes.rows = 3: must be 2",
         lambda: octet.quantize(normal(2, 2), codes=np.zeros((3, 2), "u1"))),
        ("scales has shape [2, 2]: must be [2, 1]",
         lambda: octet.quantize(normal(2, 2), scales=np.zeros((2, 2), "f4"))),
        ("codes is read-only", lambda: octet.quantize(
            normal(2, 2), codes=np.broadcast_to(np.zeros(2, "u1"), (2, 2)))),
        ("scales has dtype float64: must be float8_e8m0fnu or uint8",
         lambda: octet.dequantize(np.zeros((2, 2), "u1"), np.zeros((2, 1)))),
        ("scales has shape [1, 2]: must be [4, 2]; this shape is of block='128x128'",
         lambda: octet.dequantize(*octet.quantize(normal(4, 256), "128x128"))),
        ("scales has shape [4, 2]: must be [1, 2]; this shape is of block='1x128'",
         lambda: octet.dequantize(*octet.quantize(normal(4, 256)), "128x128")),
        ("out_dtype = <class 'int'>: must be 'f32'", lambda: octet.dequantize(
            np.zeros((2, 2), "u1"), np.zeros((2, 1), "f4"), out_dtype=int)),
        ("out_dtype = <class 'numpy.float64'>: must be", lambda: octet.gemm(
            np.zeros((2, 16), "u1"), np.zeros((2, 16), "u1"), 1.0, 1.0, dtype="e4m3",
            out_dtype=np.float64)),
        ("dtype = [1]: must be", lambda: octet.quantize(np.zeros((2, 2), "u2"), dtype=[1])),
        ("out_dtype = 'i8': must be", lambda: octet.dequantize(
            np.zeros((2, 2), "u1"), np.zeros((2, 1), "f4"), out_dtype="i8")),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence(sentence, call):
    with pytest.raises(octet.InvalidArgument) as caught:
        call()
    assert str(caught.value).startswith(sentence), str(caught.value)
