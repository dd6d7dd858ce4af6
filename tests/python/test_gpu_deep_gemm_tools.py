"""octet.deep_gemm on a Hopper device: casts, layouts, what the profiler sees, times."""

import time

import pytest
from on_gpu import DEVICE, WHY_NOT, bits, normal, small

import octet
from octet import _cache, deep_gemm

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]


@pytest.fixture(autouse=True)
def seed():
    if not WHY_NOT:
        import torch

        torch.manual_seed(12)


@pytest.mark.parametrize("ue8m0", [False, True])
def test_casts_have_the_bits_of_the_cpu(ue8m0):
    import torch

    x = torch.randn(256, 640, device=DEVICE) * torch.exp2(
        torch.randint(-30, 30, (256, 640), device=DEVICE).float())  # fmt: skip
    x[3, 4], x[5, 6], x[7], x[8] = float("nan"), float("inf"), 0, 1e-44
    for dtype in (torch.float32, torch.bfloat16):
        y = x.to(dtype)
        for cast in (deep_gemm.per_token_cast_to_fp8, deep_gemm.per_block_cast_to_fp8,
                     deep_gemm.per_channel_cast_to_fp8,
                     deep_gemm.per_token_cast_to_fp4):  # fmt: skip
            z = torch.nan_to_num(y, posinf=1) if cast is deep_gemm.per_token_cast_to_fp4 else y
            for one, other in zip(cast(z, ue8m0), cast(z.cpu(), ue8m0)):
                assert one.device.type == DEVICE and bits(one) == bits(other)
        for block in ("1x128", "128x128"):
            how = dict(block=block, scale_format="ue8m0" if ue8m0 else "f32")
            codes, scales = octet.quantize(y, **how)
            assert codes.device.type == DEVICE
            host = octet.quantize(y.cpu(), **how)
            assert bits(codes) == bits(host[0]) and bits(scales) == bits(host[1])
            back = octet.dequantize(codes, scales, block, out_dtype="bf16")
            assert bits(back) == bits(octet.dequantize(*host, block, out_dtype="bf16"))
    d = octet.gemm(*sum(zip(octet.quantize_activations(x[16:48]), octet.quantize_weights(x)), ()))
    assert d.shape == (32, 256)


def test_layouts():
    import torch

    for shape in ((130, 7), (3, 129, 6), (2, 128, 56)):
        sf = torch.exp2(torch.randint(-9, 9, shape, device=DEVICE).float())
        for given in (sf, sf.mT.contiguous().mT):
            for function in (deep_gemm.get_mn_major_tma_aligned_tensor,
                             deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor):  # fmt: skip
                one, other = function(given), function(given.cpu())
                assert one.stride() == other.stride() and bits(one) == bits(other)
    ks = [256, 128, 640]
    sf = torch.exp2(torch.randint(-9, 9, (8, 64), device=DEVICE).float())
    counts = torch.tensor(ks, dtype=torch.int32, device=DEVICE)
    function = deep_gemm.get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor
    assert bits(function(sf, counts, ks)) == bits(function(sf.cpu(), counts.cpu(), ks))


def test_groups_from_counts_on_the_device():
    import torch

    counts = torch.tensor([5, 0, 129, 64], dtype=torch.int32, device=DEVICE)
    groups = octet.groups
    for function, more in ((groups.offsets, ()), (groups.ends, (64,)), (groups.index, (64, 512)),
                           (groups.rows, (64, 198))):  # fmt: skip
        made = function(counts, *more)
        assert made.device.type == DEVICE
        assert made.tolist() == function(counts.cpu(), *more).tolist()


def test_unscaled_products():
    import torch

    a, b = normal(64, 128), normal(96, 128)
    exact = a.float() @ b.float().t()
    for dtype in (torch.bfloat16, torch.float32):
        d, c = torch.empty(64, 96, dtype=dtype, device=DEVICE), normal(64, 96).to(dtype)
        deep_gemm.cublaslt_gemm_nt(a, b, d)
        assert float(deep_gemm.calc_diff(d, exact)) < 1e-4
        deep_gemm.cublaslt_gemm_nt(a, b, d, c=c)
        assert float(deep_gemm.calc_diff(d, exact + c.float())) < 1e-4
    d = torch.empty(64, 96, dtype=torch.bfloat16, device=DEVICE)
    deep_gemm.cublaslt_gemm_nt(a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), d)
    assert float(deep_gemm.calc_diff(d, exact)) < 1e-2


def kernels_of(call):
    import torch

    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        call()
        torch.cuda.synchronize()
    events = profiler.key_averages()
    return [e.key for e in events for _ in range(e.count) if e.self_device_time_total > 0]


def test_one_kernel_a_call():
    a, b, d = small()
    for _ in range(3):
        assert len(kernels_of(lambda: deep_gemm.fp8_gemm_nt(a, b, d))) == 1


def test_its_name_says_gemm():
    a, b, d = small()
    names = kernels_of(lambda: deep_gemm.fp8_gemm_nt(a, b, d))
    assert len([name for name in names if "gemm_" in name]) == 1


def test_the_short_way(monkeypatch):
    import torch

    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip(f"PyTorch {torch.__version__} cannot be read from C")
    a, b, d = small()
    wanted = bits(d)
    assert _cache._short
    monkeypatch.setattr(octet.cuda, "run_arrays", None)  # from here on nothing takes a detour
    weight = torch.nn.Parameter(b[1], requires_grad=False)
    for out in (d, torch.zeros_like(d), torch.zeros_like(d)):
        for _ in range(3):  # checked, checked and bound, bound
            out.zero_()
            deep_gemm.fp8_gemm_nt(a, (b[0], weight), out)
            assert bits(out) == wanted
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        d.zero_()
        deep_gemm.fp8_gemm_nt(a, b, d)
    stream.synchronize()
    assert bits(d) == wanted
    with torch.cuda.graph(graph):
        deep_gemm.fp8_gemm_nt(a, b, d)
    d.zero_()
    graph.replay()
    assert bits(d) == wanted


def test_timing(record_property):
    a, b, d = small(512, 512, 1024)
    call = lambda: deep_gemm.fp8_gemm_nt(a, b, d)  # noqa: E731
    by_profiler = deep_gemm.bench_kineto(call, "gemm_", suppress_kineto_output=True)
    assert isinstance(by_profiler, float) and 1e-6 < by_profiler < 1e-3
    assert len(deep_gemm.bench_kineto(call, ("gemm_", "nothing"), num_tests=3)) == 2
    by_events = deep_gemm.bench(call, high_precision=True)
    assert 1e-6 < by_events < 1e-3
    sf = a[1]
    packing = deep_gemm.bench_kineto(
        lambda: deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor(sf), "pack_fp32_into_ue8m0")
    assert packing > 0
    record_property("kernel_us", by_profiler * 1e6)


def test_host_cost(record_property):
    import torch

    def microseconds(call):
        best = 1e9
        for _ in range(20):
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(200):
                call()
            best = min(best, (time.perf_counter() - began) / 200 * 1e6)
        torch.cuda.synchronize()
        return best

    a, b, d = small(1, 128, 256)
    many = torch.zeros(3000, 1, 128, dtype=torch.bfloat16, device=DEVICE)
    fresh = iter(list(many) * 2)
    costs = {
        "fp8_gemm_nt_us": microseconds(lambda: deep_gemm.fp8_gemm_nt(a, b, d)),
        "gemm_us": microseconds(lambda: octet.gemm(a[0], b[0], a[1], b[1], d)),
        "gemm_that_makes_out_us": microseconds(lambda: octet.gemm(a[0], b[0], a[1], b[1])),
        "gemm_of_new_pointers_us": microseconds(
            lambda: octet.gemm(a[0], b[0], a[1], b[1], next(fresh))),
    }  # fmt: skip
    for name, cost in costs.items():
        record_property(name, cost)  # figures for the report; nothing fails by the clock
        print(f"{name}: {cost:.2f}")
    assert all(cost > 0 for cost in costs.values())
