"""octet.deep_gemm on a Hopper device: products with the CPU's bits, streams, capture, settings."""

import pytest
from on_gpu import DEVICE, WHY_NOT, bits, normal, on_host, small

import octet
from octet import _cache, deep_gemm


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]


@pytest.fixture(autouse=True)
def settings():
    if not WHY_NOT:
        import torch

        torch.manual_seed(11)
    yield
    deep_gemm.settings._values.update(num_sms=0, pdl=False, alignment=128, tc_util=100)


def split_of(call):
    """Runs a call that takes the long way, and says into how many ranges its plan cut K."""
    _cache._forget()
    _cache._short = False  # what is remembered in C shows itself to nobody
    call()
    calls = list(_cache._calls.values())
    _cache._forget()
    assert len(calls) == 1
    return calls[0].plan._obj.split


def per_expert(w):
    import torch

    parts = [deep_gemm.per_block_cast_to_fp8(x, False) for x in w]
    return torch.stack([x[0].view(torch.uint8) for x in parts]).view(torch.float8_e4m3fn), (
        torch.stack([x[1] for x in parts]))  # fmt: skip


def or_skip(call):
    try:
        return call()
    except octet.Unsupported as error:
        pytest.skip(f"no kernel yet: {error}")


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("out", ["bfloat16", "float32"])
@pytest.mark.parametrize(
    "shape", [(1, 512, 1024), (64, 2112, 7168), (333, 576, 1536), (2048, 512, 512)]
)
def test_dense(shape, out, layout):
    import torch

    m, n, k = shape
    x, w = normal(m, k), normal(n, k)
    a, b = deep_gemm.per_token_cast_to_fp8(x, False), deep_gemm.per_block_cast_to_fp8(w, False)
    if layout == "columns":
        a = (a[0], deep_gemm.get_mn_major_tma_aligned_tensor(a[1]))
    d = torch.full((m, n), 7, dtype=getattr(torch, out), device=DEVICE)
    split = split_of(lambda: deep_gemm.fp8_gemm_nt(a, b, d))
    exact = x.float() @ w.float().t()
    assert float(deep_gemm.calc_diff(d, exact)) < 1e-3
    (ha, hsfa), (hb, hsfb) = on_host(a), on_host(b)
    word = "f32" if out == "float32" else "bf16"
    wanted = octet.gemm(ha, hb, hsfa, hsfb, out_dtype=word, split=split)
    assert bits(d) == bits(wanted)
    for _ in range(3):  # remembered, then bound
        d.fill_(7)
        deep_gemm.fp8_fp4_gemm_nt(a, b, d, disable_ue8m0_cast=True, recipe=None, alpha=None)
        assert bits(d) == bits(wanted)
    d.fill_(7)
    deep_gemm.fp8_gemm_nn(a, (b[0].T, b[1].T), d)
    assert bits(d) == bits(wanted)


@pytest.mark.parametrize("accumulate", [False, True])
def test_one_scale_per_row(accumulate):
    m, n, k = 256, 512, 1024
    x, w = normal(m, k), normal(n, k)
    a, b = (deep_gemm.per_token_cast_to_fp8(y, False) for y in (x, w))
    d = (normal(m, n) * 32).float()
    before = d.clone()
    c = d if accumulate else None
    call = lambda: deep_gemm.fp8_gemm_nt(a, b, d, c=c, recipe=(1, 1, 128))  # noqa: E731
    split = or_skip(lambda: split_of(call))
    exact = x.float() @ w.float().t() + (before if accumulate else 0)
    assert float(deep_gemm.calc_diff(d, exact)) < 1e-3
    (ha, hsfa), (hb, hsfb) = on_host(a), on_host(b)
    more = {"c": before.cpu()} if accumulate else {"out_dtype": "f32"}
    wanted = octet.gemm(ha, hb, hsfa, hsfb, granularity="1d1d", split=split, **more)
    assert bits(d) == bits(wanted)


def test_accumulation():
    m, n, k = 64, 512, 1024
    a = deep_gemm.per_token_cast_to_fp8(normal(m, k), False)
    b = deep_gemm.per_block_cast_to_fp8(normal(n, k), False)
    c, d = normal(m, n), normal(m, n)
    split = split_of(lambda: deep_gemm.fp8_gemm_nt(a, b, d, c))
    (ha, hsfa), (hb, hsfb) = on_host(a), on_host(b)
    wanted = octet.gemm(ha, hb, hsfa, hsfb, c=c.cpu(), split=split)
    assert bits(d) == bits(wanted)
    deep_gemm.fp8_gemm_nt(a, b, c, c)
    assert bits(c) == bits(wanted)


@pytest.mark.parametrize("alignment", [128, 64])
@pytest.mark.parametrize("psum", [False, True])
def test_contiguous(alignment, psum):
    import torch

    deep_gemm.set_mk_alignment_for_contiguous_layout(alignment)
    groups, n, k, real = 4, 576, 1024, [200, 0, 1, 129]
    rows = [deep_gemm.align(x, alignment) for x in real]
    x, w = normal(sum(rows), k), normal(groups, n, k)
    a, b = deep_gemm.per_token_cast_to_fp8(x, False), per_expert(w)
    index = torch.full((sum(rows),), -1, dtype=torch.int32)
    ends, start = [], 0
    exact = torch.zeros(sum(rows), n, device=DEVICE)
    for g in range(groups):
        index[start : start + real[g]] = g
        exact[start : start + real[g]] = x[start : start + real[g]].float() @ w[g].float().t()
        ends.append(start + real[g])
        start += rows[g]
    owned = index >= 0
    layout = torch.tensor(ends, dtype=torch.int32) if psum else index
    d = torch.full((sum(rows), n), 7, dtype=torch.bfloat16, device=DEVICE)
    there = layout.to(DEVICE)
    call = lambda: deep_gemm.m_grouped_fp8_gemm_nt_contiguous(  # noqa: E731
        a, b, d, there, use_psum_layout=psum)
    split = split_of(call)
    assert float(deep_gemm.calc_diff(d[owned.to(DEVICE)], exact[owned.to(DEVICE)])) < 1e-3
    (ha, hsfa), (hb, hsfb) = on_host(a), on_host(b)
    function = octet.gemm_aligned if psum else octet.gemm_contiguous
    wanted = function(ha, hb, hsfa, hsfb, layout, alignment=alignment, split=split)
    for _ in range(3):
        host = d.cpu()
        assert bits(host[owned]) == bits(wanted[owned])
        assert (host[~owned] == (7 if psum else 0)).all()
        d.fill_(7)
        call()


@pytest.mark.parametrize("max_m", [64, 65, 256])
def test_masked(max_m):
    import torch

    groups, n, k = 6, 512, 1536
    x, w = normal(groups, max_m, k), normal(groups, n, k)
    parts = [deep_gemm.per_token_cast_to_fp8(y, False) for y in x]
    a = torch.stack([y[0].view(torch.uint8) for y in parts]).view(torch.float8_e4m3fn), (
        torch.stack([y[1] for y in parts]))  # fmt: skip
    b = per_expert(w)
    counts = torch.tensor([max_m, 0, 1, 17, max_m - 1, 5], dtype=torch.int32)
    d = torch.full((groups, max_m, n), 7, dtype=torch.bfloat16, device=DEVICE)
    there = counts.to(DEVICE)
    call = lambda: deep_gemm.m_grouped_fp8_gemm_nt_masked(a, b, d, there, 24)  # noqa: E731
    split = split_of(call)
    (ha, hsfa), (hb, hsfb) = on_host(a), on_host(b)
    wanted = octet.gemm_masked(ha, hb, hsfa, hsfb, counts, expected_m=24, split=split)
    for _ in range(3):
        host = d.cpu()
        for g, count in enumerate(counts.tolist()):
            assert bits(host[g, :count]) == bits(wanted[g, :count])
            assert (host[g, count:] == 7).all()
        d.fill_(7)
        call()
    there.fill_(3)  # counts are read by each launch
    d.fill_(7)
    call()
    assert (d.cpu()[:, 3:] == 7).all() and not (d.cpu()[:, :3] == 7).all()


@pytest.mark.parametrize("accumulate", [True, False])
def test_k_grouped(accumulate):
    import torch

    m, n, ks = 256, 512, [256, 0, 128, 640]
    x, y = normal(sum(ks), m), normal(sum(ks), n)
    pairs = []
    for z in (x, y):
        codes, scales = deep_gemm.per_channel_cast_to_fp8(z, False)
        flat = torch.cat([part.t().flatten() for part in codes.view(torch.uint8).split(ks)])
        pairs.append((flat.view(torch.float8_e4m3fn), scales.t()))
    d = torch.randn(len(ks), m, n, device=DEVICE) * 32
    before = d.clone().cpu()
    counts = torch.tensor(ks, dtype=torch.int32)
    there = counts.to(DEVICE)
    c = d if accumulate else None
    or_skip(lambda: deep_gemm.k_grouped_fp8_gemm_nt_contiguous(*pairs, d, ks, there, c))
    host = before.clone() if accumulate else torch.zeros_like(before)
    deep_gemm.k_grouped_fp8_gemm_nt_contiguous(
        on_host(pairs[0]), on_host(pairs[1]), host, ks, counts, host if accumulate else None)
    assert float(deep_gemm.calc_diff(d.cpu(), host)) < 1e-6
    start = 0
    for g, k in enumerate(ks):
        exact = x[start : start + k].float().t() @ y[start : start + k].float()
        exact = exact.cpu() + (before[g] if accumulate else 0)
        assert float(deep_gemm.calc_diff(d[g].cpu(), exact)) < 1e-3
        start += k


def test_capture_and_streams():
    import torch

    a, b, d = small()
    wanted = bits(d)
    for _ in range(3):  # on the long way, remembered, and bound
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            deep_gemm.fp8_gemm_nt(a, b, d)
        d.zero_()
        graph.replay()
        assert bits(d) == wanted
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(10_000_000)
        d.zero_()
        deep_gemm.fp8_gemm_nt(a, b, d)
        doubled = d.float() * 2  # ordered behind it, on the same stream
    side.synchronize()
    assert bits(d) == wanted and torch.equal(doubled, d.float() * 2)


def test_settings():
    a, b, d = small(1024, 512, 512)
    deep_gemm.set_num_sms(20)
    deep_gemm.set_pdl(True)
    assert deep_gemm.get_num_sms() == 20
    split = split_of(lambda: deep_gemm.fp8_gemm_nt(a, b, d))
    (ha, hsfa), (hb, hsfb) = on_host(a), on_host(b)
    wanted = bits(octet.gemm(ha, hb, hsfa, hsfb, split=split))
    for _ in range(3):
        d.zero_()
        deep_gemm.fp8_gemm_nt(a, b, d)
        assert bits(d) == wanted
    with pytest.raises(octet.InvalidArgument, match="new_num_sms"):
        deep_gemm.set_num_sms(10_000)
