"""On a Hopper device, with PyTorch: the CPU's bits, streams, capture, the host's cost of a call."""

import time

import numpy as np
import pytest

import octet
from octet import cuda


def why_not():
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    if not torch.cuda.is_available():
        return "no CUDA device"
    try:
        cuda.device_spec(0)
    except octet.Error as error:
        return str(error)
    return "" if cuda.kernel_names() else "the library was built without kernels"


WHY_NOT = why_not()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]
RNG = np.random.default_rng(1)


def operands(m, n, k):
    a, sfa = octet.quantize_activations(RNG.standard_normal((m, k), dtype=np.float32))
    b, sfb = octet.quantize_weights(RNG.standard_normal((n, k), dtype=np.float32))
    return a, b, sfa, sfb


def to_device(a, b, sfa, sfb):
    import torch

    def codes(x):
        wide = torch.from_numpy(np.ascontiguousarray(x).view(np.uint8)).cuda()
        return wide.view(torch.float8_e4m3fn)

    columns = torch.from_numpy(np.ascontiguousarray(sfa.T)).cuda()
    pad = torch.zeros(columns.shape[0], -(-columns.shape[1] // 4) * 4, device="cuda")
    pad[:, : columns.shape[1]] = columns
    return codes(a), codes(b), pad.t()[: sfa.shape[0]], torch.from_numpy(sfb.copy()).cuda()


def bits(x):
    import torch

    if isinstance(x, torch.Tensor):
        x = x.contiguous().view(torch.uint8).cpu().numpy()
    return np.ascontiguousarray(x).view(np.uint8).tobytes()


@pytest.mark.parametrize("shape", [(1, 512, 1024), (64, 7168, 2048), (333, 520, 768)])
@pytest.mark.parametrize("out_dtype", ["bf16", "f32"])
def test_the_bits_of_the_cpu(shape, out_dtype):
    import torch

    host = operands(*shape)
    device = to_device(*host)
    d = octet.gemm(*device, out_dtype=out_dtype)
    split = octet.plan(octet.GemmProblem(m=shape[0], n=shape[1], k=shape[2], d_type=out_dtype),
                       cuda.default_context().device).split  # fmt: skip
    torch.cuda.synchronize()
    assert bits(d) == bits(octet.gemm(*host, out_dtype=out_dtype, split=split))


def test_bound_calls_follow_the_current_stream():
    import torch

    host = operands(64, 512, 1024)
    device = to_device(*host)
    context = cuda.default_context()
    plan = octet.plan("dense_m64n512k1024", context.device)
    context.prepare(plan)
    bound = context.bind(plan, *device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(10_000_000)
        bound.out.zero_()
        doubled = bound().float() * 2  # ordered behind it, on the same stream
    side.synchronize()
    assert bits(bound.out) == bits(octet.gemm(*host, split=plan.split))
    assert torch.equal(doubled, bound.out.float() * 2)


def test_capture():
    import torch

    host = operands(64, 512, 1024)
    device = to_device(*host)
    out = octet.gemm(*device)
    wanted = bits(out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        octet.gemm(*device, out)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert bits(out) == wanted


def test_not_prepared_during_capture():
    import torch

    device = to_device(*operands(64, 512, 1024))
    out = torch.zeros(64, 512, dtype=torch.bfloat16, device="cuda")
    context = cuda.Context(0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(octet.NotPrepared):
            context.gemm(octet.GemmProblem("dense_m64n512k1024"), *device, out)
        out.add_(1)  # the capture is intact
    graph.replay()
    torch.cuda.synchronize()
    assert (out == 1).all()


def test_refusals():
    a, b, sfa, sfb = to_device(*operands(64, 512, 1024))
    with pytest.raises(octet.InvalidArgument, match="sfa is in host memory"):
        octet.gemm(a, b, sfa.cpu(), sfb)
    with pytest.raises(octet.InvalidArgument, match="b has dtype float32"):
        octet.gemm(a, b.float(), sfa, sfb)
    with pytest.raises(octet.InvalidArgument, match="a has strides"):
        octet.gemm(b[:, :64].t(), b[:, :512], sfa, sfb)


def test_metadata_on_the_device_is_named():
    import torch

    a, b, sfa, sfb = operands(64, 512, 1024)
    device = to_device(a, np.stack([b, b]), sfa, np.stack([sfb, sfb]))
    context = cuda.Context(0)
    plan = octet.plan("offsets_g2m32n512k1024", "h200")
    good = torch.tensor([0, 30, 64], dtype=torch.int32, device="cuda")
    context.validate(plan, *device, group_offsets=good)
    with pytest.raises(octet.InvalidArgument, match="group_offsets"):
        context.validate(plan, *device, group_offsets=good.flip(0))


def host_microseconds(call):
    import torch

    best = 1e9
    for _ in range(20):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(200):
            call()
        best = min(best, (time.perf_counter() - began) / 200 * 1e6)
    torch.cuda.synchronize()
    return best


def test_host_cost(record_property):
    device = to_device(*operands(1, 128, 256))
    context = cuda.default_context()
    plan = octet.plan("dense_m1n128k256", context.device)
    context.prepare(plan)
    bound = context.bind(plan, *device)
    one_shot = host_microseconds(lambda: octet.gemm(*device, bound.out))
    costs = {"bound_us": host_microseconds(bound), "one_shot_us": one_shot}
    for name, cost in costs.items():
        record_property(name, cost)  # a figure for the report; nothing fails by the clock
    assert all(cost > 0 for cost in costs.values())
