"""octet.deep_gemm on PyTorch tensors in host memory: casts, layouts, products, comparisons."""

import importlib.util

import numpy as np
import pytest

import octet
from octet import deep_gemm

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch installed"),
]


@pytest.fixture(scope="module")
def torch():
    import torch

    torch.manual_seed(5)
    return torch


@pytest.fixture(autouse=True)
def settings():
    yield
    deep_gemm.settings._values.update(num_sms=0, pdl=False, alignment=128, tc_util=100)


def raw(x):
    """Bits as NumPy shows them."""
    if hasattr(x, "numpy"):
        x = x.contiguous().view(__import__("torch").uint8).numpy()
    return np.ascontiguousarray(x).view(np.uint8).reshape(-1).tobytes()


def samples(torch):
    """Matrices with everything that a cast may meet."""
    x = torch.randn(70, 300)
    yield x.to(torch.bfloat16)
    yield x * torch.exp2(torch.randint(-40, 40, (70, 300)).float())
    wild = x.clone()
    wild[3, 5], wild[9, 130], wild[20, 40] = float("nan"), float("inf"), -float("inf")
    wild[30], wild[31, :128], wild[32] = 0, -0.0, 1e-30
    wild[33, 7], wild[34, 9] = 3e38, 1e-42
    yield wild
    yield torch.zeros(3, 130)


@pytest.mark.parametrize("ue8m0", [False, True])
def test_casts_have_the_bits_of_octet(torch, ue8m0):
    more = dict(amax_min=1e-4, scale_format="pow2" if ue8m0 else "f32")
    for x in samples(torch):
        host = x.float().numpy()
        for cast, block in ((deep_gemm.per_token_cast_to_fp8, "1x128"),
                            (deep_gemm.per_block_cast_to_fp8, "128x128")):  # fmt: skip
            codes, scales = cast(x, ue8m0)
            assert codes.dtype == torch.float8_e4m3fn and codes.is_contiguous()
            wanted = octet.quantize(host, block, **more)
            assert codes.shape == x.shape and scales.shape == wanted[1].shape
            assert raw(codes) == raw(wanted[0]) and raw(scales) == raw(wanted[1])
        whole = torch.nn.functional.pad(x, (0, 0, 0, -x.shape[0] % 128))
        codes, scales = deep_gemm.per_channel_cast_to_fp8(whole, ue8m0)
        wanted = octet.quantize(whole.float().numpy(), axis=0, **more)
        assert raw(codes) == raw(wanted[0]) and raw(scales) == raw(wanted[1].T)
    if ue8m0:
        codes, packed = deep_gemm.per_token_cast_to_fp8(
            torch.randn(4, 512), True, use_packed_ue8m0=True)  # fmt: skip
        assert packed.dtype == torch.int32 and packed.shape == (4, 1)


def test_other_casts(torch):
    x = torch.randn(6, 256)
    codes, scales = deep_gemm.per_token_cast_to_fp8(x, False, gran_k=32)
    assert scales.shape == (6, 8)
    back = codes.float() * scales.repeat_interleave(32, 1)
    assert float(deep_gemm.calc_diff(back, x)) < 1e-3
    codes, scales = deep_gemm.per_custom_dims_cast_to_fp8(x, (0,), False)
    assert scales.shape == (6,)
    assert float(deep_gemm.calc_diff(codes.float() * scales[:, None], x)) < 1e-3
    with pytest.raises(octet.InvalidArgument, match=r"x has shape \[6, 256\]: must have a mul"):
        deep_gemm.per_channel_cast_to_fp8(x, False)
    with pytest.raises(octet.InvalidArgument, match="2 dimensions"):
        deep_gemm.per_token_cast_to_fp8(x[0], False)
    codes, scales = deep_gemm.per_token_cast_to_fp8(x[:0], False)
    assert codes.shape == (0, 256) and scales.shape == (0, 2)


def test_powers_of_two(torch):
    x = torch.tensor([0.0, 1e-45, 2.0**-126, 1.0, 1.0000001, -3.0, 2.0**127, 3e38])
    found = deep_gemm.ceil_to_ue8m0(x).tolist()
    wanted = [2.0**-126, 2.0**-126, 2.0**-126, 1.0, 2.0, 4.0, 2.0**127, 2.0**127]
    assert found == wanted
    powers = torch.exp2(torch.randint(-126, 127, (3, 8)).float())
    packed = deep_gemm.pack_ue8m0_to_int(powers)
    assert packed.shape == (3, 2) and packed.dtype == torch.int32
    assert torch.equal(deep_gemm.unpack_ue8m0_from_int(packed), powers)
    with pytest.raises(octet.InvalidArgument, match="x holds no powers of two"):
        deep_gemm.pack_ue8m0_to_int(powers * 1.5)
    with pytest.raises(octet.InvalidArgument, match="a multiple of 4"):
        deep_gemm.pack_ue8m0_to_int(powers[:, :3])


def test_fp4(torch):
    magnitudes = [0.0, 0.5, 1, 1.5, 2, 3, 4, 6]
    row = torch.tensor(magnitudes + [-x for x in magnitudes])[None].repeat(4, 2)  # [4, 32]
    packed, scales = deep_gemm.per_token_cast_to_fp4(row, False, gran_k=32)
    assert packed.shape == (4, 16) and packed.dtype == torch.int8 and torch.equal(
        scales, torch.ones(4, 1))  # fmt: skip
    assert packed[0, :4].tolist() == [0x10, 0x32, 0x54, 0x76]  # the even column in the low half
    assert torch.equal(deep_gemm.cast_back_from_fp4(packed, scales, 32), row)
    half_way = torch.tensor([[0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0]])
    packed, scales = deep_gemm.per_token_cast_to_fp4(half_way, False, gran_k=8)
    lower = [0.0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert deep_gemm.cast_back_from_fp4(packed, scales, 8)[0].tolist() == lower
    x = torch.randn(6, 70)
    packed, scales = deep_gemm.per_token_cast_to_fp4(x, True, gran_k=32)
    assert packed.shape == (6, 35) and scales.shape == (6, 3)
    assert float(deep_gemm.calc_diff(deep_gemm.cast_back_from_fp4(packed, scales, 32), x)) < 0.03
    flipped = deep_gemm.transpose_packed_fp4(packed)
    ones = torch.ones(70, 1)
    back = deep_gemm.cast_back_from_fp4(flipped, ones, 128)
    assert torch.equal(back, deep_gemm.cast_back_from_fp4(packed, torch.ones(6, 1), 128).t())
    x = torch.randn(2, 512)
    packed, words = deep_gemm.per_token_cast_to_fp4(x, True, use_packed_ue8m0=True)
    assert words.shape == (2, 1)
    whole = deep_gemm.per_token_cast_to_fp4(x, True)
    assert torch.equal(
        deep_gemm.cast_back_from_fp4(packed, words, use_packed_ue8m0=True),
        deep_gemm.cast_back_from_fp4(*whole),
    )
    with pytest.raises(octet.InvalidArgument, match="an even number of columns"):
        deep_gemm.per_token_cast_to_fp4(x[:, :5])
    with pytest.raises(octet.InvalidArgument, match="must come with use_ue8m0"):
        deep_gemm.per_token_cast_to_fp4(x, False, use_packed_ue8m0=True)


def test_products(torch):
    m, n, k = 33, 200, 384
    x, w = torch.randn(m, k, dtype=torch.bfloat16), torch.randn(n, k, dtype=torch.bfloat16)
    a, b = deep_gemm.per_token_cast_to_fp8(x, False), deep_gemm.per_block_cast_to_fp8(w, False)
    d = torch.empty(m, n, dtype=torch.bfloat16)
    deep_gemm.fp8_gemm_nt(a, b, d)
    assert float(deep_gemm.calc_diff(d, x.float() @ w.float().t())) < 1e-3
    laid = deep_gemm.transform_sf_into_required_layout(a[1], m, k, (1, 128, 128), is_sfa=True)
    again = torch.empty_like(d)
    deep_gemm.fp8_gemm_nt((a[0], laid), b, again)
    deep_gemm.testing.assert_bitwise_equal(again, d, "scales laid out")
    deep_gemm.fp8_gemm_nn(a, (b[0].t(), b[1].t()), again)
    deep_gemm.testing.assert_bitwise_equal(again, d)
    assert raw(octet.gemm(a[0], b[0], a[1], b[1])) == raw(d)
    total = torch.randn(m, n)
    wanted = total + x.float() @ w.float().t()
    one = deep_gemm.per_token_cast_to_fp8(w, False)
    deep_gemm.fp8_gemm_nt(a, one, total, c=total, recipe=(1, 1, 128))
    assert float(deep_gemm.calc_diff(total, wanted)) < 1e-3
    with pytest.raises(NotImplementedError, match="must be K-major"):
        deep_gemm.fp8_gemm_nn(a, (b[0].t().contiguous(), b[1].t()), d)


def test_grouped_products(torch):
    groups, n, k, alignment = 3, 136, 256, deep_gemm.get_mk_alignment_for_contiguous_layout()
    w = torch.randn(groups, n, k, dtype=torch.bfloat16)
    experts = [deep_gemm.per_block_cast_to_fp8(x, False) for x in w]
    b = torch.stack([x[0] for x in experts]), torch.stack([x[1] for x in experts])
    real = [100, 0, 129]
    rows = [deep_gemm.align(x, alignment) for x in real]
    x = torch.zeros(sum(rows), k, dtype=torch.bfloat16)
    index, ends = torch.full((sum(rows),), -1, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    start, wanted = 0, torch.zeros(sum(rows), n)
    for g in range(groups):
        x[start : start + real[g]] = torch.randn(real[g], k)
        index[start : start + real[g]], ends[g] = g, start + real[g]
        wanted[start : start + rows[g]] = x[start : start + rows[g]].float() @ w[g].float().t()
        start += rows[g]
    a = deep_gemm.per_token_cast_to_fp8(x, False)
    d, psum = (torch.full((sum(rows), n), 7, dtype=torch.bfloat16) for _ in range(2))
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a, b, d, index)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a, b, psum, ends, use_psum_layout=True)
    assert float(deep_gemm.calc_diff(d, wanted)) < 1e-3 and not d[index < 0].any()
    assert torch.equal(psum[index >= 0], d[index >= 0]) and (psum[index < 0] == 7).all()
    deep_gemm.m_grouped_fp8_gemm_nn_contiguous(a, (b[0].mT, b[1].mT), psum, index)
    assert torch.equal(psum, d)
    xm = torch.randn(groups, 30, k, dtype=torch.bfloat16)
    parts = [deep_gemm.per_token_cast_to_fp8(y, False) for y in xm]
    am = torch.stack([y[0] for y in parts]), torch.stack([y[1] for y in parts])
    counts = torch.tensor([30, 0, 11], dtype=torch.int32)
    d = torch.full((groups, 30, n), 7, dtype=torch.bfloat16)
    deep_gemm.m_grouped_fp8_gemm_nt_masked(am, b, d, counts, 12)
    for g, count in enumerate(counts.tolist()):
        assert (d[g, count:] == 7).all()
        if count:
            exact = xm[g, :count].float() @ w[g].float().t()
            assert float(deep_gemm.calc_diff(d[g, :count], exact)) < 1e-3


def test_k_grouped_products(torch):
    m, n, ks = 40, 24, [256, 0, 128]
    x, y = torch.randn(sum(ks), m), torch.randn(sum(ks), n)
    flat, columns, start = ([], []), [], 0
    for side, z in enumerate((x, y)):
        codes, scales = deep_gemm.per_channel_cast_to_fp8(z, False)
        columns.append(scales)
        for part in codes.view(torch.uint8).split(ks):
            flat[side].append(part.t().flatten())
    a, b = ((torch.cat(f).view(torch.float8_e4m3fn), s.t()) for f, s in zip(flat, columns))
    d = torch.randn(3, m, n)
    wanted = d.clone()
    for g, k in enumerate(ks):
        wanted[g] += x[start : start + k].t() @ y[start : start + k]
        start += k
    older = d.clone()
    counts = torch.tensor(ks, dtype=torch.int32)
    deep_gemm.k_grouped_fp8_gemm_nt_contiguous(a, b, d, ks, counts, c=d)
    assert float(deep_gemm.calc_diff(d, wanted)) < 1e-3 and torch.equal(d[1], older[1])
    deep_gemm.k_grouped_wgrad_gemm_fp8_fp8_fp32_nt(
        (a[0], columns[0]), (b[0], columns[1]), older, ks)  # fmt: skip
    assert torch.equal(older, d)


@pytest.mark.parametrize("shape", [(5, 3), (8, 4), (2, 7, 6), (1, 129, 1), (3, 128, 56)])
def test_layouts(torch, shape):
    *groups, mn, blocks = shape
    sf = torch.exp2(torch.randint(-9, 9, shape).float())
    pitch, words = deep_gemm.get_tma_aligned_size(mn, 4), deep_gemm.ceil_div(blocks, 4)
    for given in (sf, sf.mT.contiguous().mT):
        laid = deep_gemm.get_mn_major_tma_aligned_tensor(given)
        assert torch.equal(laid, sf) and laid.stride()[-2:] == (1, pitch)
        assert deep_gemm.get_col_major_tma_aligned_tensor(laid).data_ptr() == laid.data_ptr()
        packed = deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor(given)
        assert packed.shape == (*groups, mn, words) and packed.stride()[-2:] == (1, pitch)
        assert not groups or packed.stride(0) == pitch * words
        back = deep_gemm.unpack_ue8m0_from_int(packed.contiguous())
        assert torch.equal(back[..., :blocks], sf) and not back[..., blocks:].any()
    with pytest.raises(octet.InvalidArgument, match="sf has dtype torch.float64"):
        deep_gemm.get_mn_major_tma_aligned_tensor(sf.double())


def test_k_grouped_layouts(torch):
    ks, gran_k, mn = [384, 128, 0, 640], 128, 8
    counts = torch.tensor(ks, dtype=torch.int32)
    sf = torch.exp2(torch.randint(-9, 9, (sum(ks) // gran_k, mn)).float())
    function = deep_gemm.get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor
    packed = function(sf, counts, ks, gran_k, 128)
    assert packed.dtype == torch.int32 and packed.shape == (1 + 1 + 0 + 2, mn)
    start = word = 0
    for k in ks:
        rows = k // gran_k
        alone = deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor(sf[start : start + rows].t())
        assert torch.equal(packed[word : word + alone.shape[1]], alone.t())
        start, word = start + rows, word + alone.shape[1]
    assert torch.equal(function(sf, counts, ks), packed)
    # psum: ends tell the sizes, each group starts at a multiple of the alignment.
    real, ends, last = [300, 128, 0, 600], [], 0
    for k in real:
        last = deep_gemm.align(last, 128) + k
        ends.append(last)
    psum = function(sf, torch.tensor(ends, dtype=torch.int32), None, gran_k, 128, True)
    assert torch.equal(psum, packed)
    with pytest.raises(octet.InvalidArgument, match="must have 2 rows"):
        function(sf, counts, [256], gran_k)


def test_transform_refuses(torch):
    sf = torch.ones(2, 130, 4)
    transform = deep_gemm.transform_sf_into_required_layout
    laid = transform(sf, 130, 512, (1, 128), 2)
    assert laid.stride() == (132 * 4, 1, 132)
    blocks = torch.ones(2, 2, 4)
    assert transform(blocks, 130, 512, (1, 128, 128), 2, False) is blocks
    for sentence, call in (
        ("is_sfa is None", lambda: transform(sf, 130, 512, (1, 128, 128), 2)),
        (r"recipe = \(1, 128\): must be three", lambda: transform(sf, 130, 512, (1, 128), 2, True)),
        (r"recipe = \(1, 32\): must give", lambda: transform(sf, 130, 512, (1, 32), 2)),
        ("sf has dtype torch.int32", lambda: transform(sf.int(), 130, 512, (1, 128), 2)),
        (r"sf has shape \[2, 130, 4\]: must be \[2, 131, 4\]",
         lambda: transform(sf, 131, 512, (1, 128), 2)),
    ):  # fmt: skip
        with pytest.raises(octet.Error, match=sentence):
            call()


def test_cublaslt(torch):
    a, b = torch.randn(5, 32, dtype=torch.bfloat16), torch.randn(6, 32, dtype=torch.bfloat16)
    exact = a.float() @ b.float().t()
    for dtype in (torch.bfloat16, torch.float32):
        d, c = torch.empty(5, 6, dtype=dtype), torch.randn(5, 6).to(dtype)
        deep_gemm.cublaslt_gemm_nt(a, b, d)
        assert float(deep_gemm.calc_diff(d, exact)) < 1e-4
        deep_gemm.cublaslt_gemm_nt(a, b, d, c)
        assert float(deep_gemm.calc_diff(d, exact + c.float())) < 1e-4
        for name, x, y in (("nn", a, b.t()), ("tn", a.t(), b.t()), ("tt", a.t(), b)):
            other = torch.empty_like(d)
            getattr(deep_gemm, f"cublaslt_gemm_{name}")(x, y, other, c)
            assert torch.equal(other, d)
    with pytest.raises(octet.InvalidArgument, match="d has shape"):
        deep_gemm.cublaslt_gemm_nt(a, b, d.t())


def test_comparisons(torch):
    x = torch.randn(4, 5)
    assert abs(float(deep_gemm.calc_diff(x, x))) < 1e-12
    assert float(deep_gemm.calc_diff(x, -x)) == pytest.approx(2)
    assert float(deep_gemm.calc_diff(x * 0, x * 0)) == 0
    testing = deep_gemm.testing
    assert testing.count_bytes(x, None, (x.half(), [x.double()])) == 80 + 40 + 160
    testing.assert_bitwise_equal(x, x.clone())
    testing.assert_bitwise_equal(x[:0], x[:0])
    y = x.clone()
    y[2, 3] = 9
    with pytest.raises(AssertionError, match=r"case: 1 of 20 elements differ; \[2, 3\] is 9.0: m"):
        testing.assert_bitwise_equal(y, x, "case")
    with pytest.raises(AssertionError, match="differ"):
        testing.assert_bitwise_equal(torch.zeros(1), -torch.zeros(1))
    with pytest.raises(AssertionError, match="dtype torch.float64: must be torch.float32"):
        testing.assert_bitwise_equal(x.double(), x)
    nan = torch.full((2,), float("nan"))
    testing.assert_bitwise_equal(nan, nan.clone())
    if not torch.cuda.is_available():
        with pytest.raises(octet.NoDevice, match="bench_kineto.. times work on a CUDA device"):
            testing.bench_kineto(lambda: None, "gemm_")


def test_products_over_no_channels(torch):
    codes = torch.float8_e4m3fn
    d = octet.gemm(
        torch.empty(64, 0, dtype=codes), torch.empty(128, 0, dtype=codes), torch.zeros(64, 0),
        torch.zeros(1, 0))  # fmt: skip
    assert d.shape == (64, 128) and not d.any()


def test_a_view_that_negates_is_refused(torch):
    a = torch.ones(4, 128).to(torch.float8_e4m3fn)
    scales = torch._neg_view(torch.ones(4, 1))
    with pytest.raises(octet.InvalidArgument, match="sfa is a view that negates"):
        octet.gemm(a, a, scales, torch.ones(1, 1))


def test_a_tensor_without_memory_is_refused(torch):
    a, one = torch.ones(4, 128).to(torch.float8_e4m3fn), torch.ones(4, 1)

    def inside(scales):
        with pytest.raises(octet.InvalidArgument, match="sfa has no memory of its own"):
            octet.gemm(a, a, scales, torch.ones(1, 1))
        return scales

    torch.vmap(inside)(torch.stack([one, one]))


def test_a_view_that_negates_has_a_key_of_its_own(torch):
    from octet import _cache

    a, s, one = torch.ones(4, 128).to(torch.float8_e4m3fn), torch.ones(4, 1), torch.ones(1, 1)
    keys = {_cache.again(("head",), a, a, x, one, None, ())[1] for x in (s, torch._neg_view(s))}
    assert len(keys) == 2


@pytest.mark.parametrize("gran_k", [0, -1, 1.5, None, "a"])
def test_a_granularity_that_is_none(torch, gran_k):
    for cast in (
        deep_gemm.per_token_cast_to_fp8, deep_gemm.per_channel_cast_to_fp8,
        deep_gemm.per_block_cast_to_fp8,
    ):  # fmt: skip
        with pytest.raises(octet.InvalidArgument, match="gran_k"):
            cast(torch.ones(4, 256), gran_k=gran_k)
    with pytest.raises(octet.InvalidArgument, match="gran_k"):
        deep_gemm.per_token_cast_to_fp4(torch.ones(4, 256), True, gran_k=gran_k)


def test_a_granularity_may_be_any_integer(torch):
    for gran_k in (np.int64(64), torch.tensor(64)):
        assert deep_gemm.per_token_cast_to_fp8(torch.ones(4, 256), gran_k=gran_k)[1].shape == (4, 4)
    scales = deep_gemm.per_token_cast_to_fp4(torch.ones(4, 256), True, gran_k=10**9)[1]
    assert scales.shape == (4, 1)


@pytest.mark.parametrize("x", [np.ones((4, 256), np.float32), None, 3])
def test_casts_want_tensors(torch, x):
    for cast in (
        deep_gemm.per_token_cast_to_fp8, deep_gemm.per_channel_cast_to_fp8,
        deep_gemm.per_block_cast_to_fp8,
    ):  # fmt: skip
        with pytest.raises(octet.InvalidArgument, match="must be a PyTorch tensor"):
            cast(x)


def test_one_scale_for_all_of_a_short_row(torch):
    codes, scales = deep_gemm.per_token_cast_to_fp8(torch.ones(4, 256), gran_k=10**9)
    assert codes.shape == (4, 256) and scales.shape == (4, 1)


def test_only_powers_of_two_are_packed(torch):
    for wrong in (-1.0, float("inf"), 3.0):
        with pytest.raises(octet.InvalidArgument, match="no powers of two"):
            deep_gemm.pack_ue8m0_to_int(torch.full((1, 4), wrong))
