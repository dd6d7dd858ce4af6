"""octet.cuda with a device of our own making (stand_in.py): arguments, streams, lifetimes."""

import gc
import types
import weakref

import ml_dtypes
import numpy as np
import pytest
from stand_in import RNG, Array, Tensor, bits, operands

import octet
from octet import cuda

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16


def on_device(arrays, **more):
    return [Array(x, **more) for x in arrays]


PROBLEM = octet.GemmProblem("dense_m5n130k256")


def test_bound_calls(library):
    arrays = operands()
    d = octet.gemm(*arrays)
    context = cuda.Context(0)
    assert context.device.name == "h200" and "device 0, h200" in repr(context)
    plan = octet.plan(PROBLEM, context.device)
    context.prepare(plan, str(plan))
    assert library.prepared == [plan.kernel.encode()] * 2
    out = np.zeros((5, 130), BF16)
    bound = context.bind(plan, *on_device(arrays), Array(out))
    assert not out.astype("f4").any()
    assert bound() is bound.out and bits(out) == bits(d)
    assert library.calls == [("bound", 0)]
    assert str(plan) in repr(bound)
    other = operands()
    second = np.zeros((5, 130), BF16)
    bound.rebind(*on_device(other), Array(second))
    bound(stream=0x55)
    assert bits(second) == bits(octet.gemm(*other)) and bits(out) == bits(d)
    assert library.calls[-1] == ("bound", 0x55)


def test_bound_objects_keep_context_and_arrays_alive(library):
    context = cuda.Context(0)
    arrays = on_device([*operands(), np.zeros((5, 130), BF16)])
    watched = [weakref.ref(x) for x in (*arrays, context)]
    bound = context.bind(octet.plan(PROBLEM, "h200"), *arrays)
    del context, arrays
    gc.collect()
    assert all(x() is not None for x in watched)
    bound()
    del bound
    gc.collect()
    assert all(x() is None for x in watched)


def test_run_and_gemm(library):
    arrays = operands()
    d = octet.gemm(*arrays)
    context = cuda.Context(0)
    for call, name in (
        (lambda out: context.run(octet.plan(PROBLEM, "h200"), *on_device(arrays), out), "run"),
        (lambda out: context.gemm(PROBLEM, *on_device(arrays), out), "gemm"),
        (lambda out: octet.gemm(*on_device(arrays), out), "gemm"),
    ):
        out = Array(np.zeros((5, 130), BF16))
        assert call(out) is out
        assert bits(out.array) == bits(d) and library.calls[-1] == (name, 0)
    assert cuda.default_context() is cuda.default_context(0)


def test_strided_arrays(library):
    a, b, sfa, sfb = operands()
    wide, canvas = np.zeros((5, 512), E4M3), np.zeros((5, 200), BF16)
    wide[:, 128:384] = a
    octet.gemm(*on_device([wide[:, 128:384], b, sfa, sfb]), Array(canvas[:, 10:140]))
    assert bits(canvas[:, 10:140]) == bits(octet.gemm(a, b, sfa, sfb))


def test_streams_of_the_interface(library):
    arrays = operands()
    out = np.zeros((5, 130), BF16)
    for stream in (1, 2, 0x1234):
        octet.gemm(*on_device(arrays, stream=stream), Array(out))
        assert library.calls[-1][1] == stream
    a, b, sfa, sfb = on_device(arrays, stream=0x10)
    other = Array(arrays[1], stream=0x20)
    with pytest.raises(octet.InvalidArgument) as caught:
        octet.gemm(a, other, sfa, sfb, Array(out))
    assert str(caught.value) == (
        "a is on stream 0x10 and b on stream 0x20: say stream=, and order the others yourself"
    )
    context = cuda.Context(0)
    context.gemm(PROBLEM, a, other, sfa, sfb, Array(out), stream=0x30)
    assert library.calls[-1][1] == 0x30
    bound = context.bind(octet.plan(PROBLEM, "h200"), a, b, sfa, sfb, Array(out))
    for x in (a, b, sfa, sfb):  # the framework moves on to another stream
        x.stream = 0x40
    bound()
    assert library.calls[-1][1] == 0x40


@pytest.mark.parametrize(
    "stream",
    [0x99, types.SimpleNamespace(cuda_stream=0x99), types.SimpleNamespace(ptr=0x99),
     types.SimpleNamespace(__cuda_stream__=lambda: (0, 0x99))],
)  # fmt: skip
def test_streams_that_are_passed(library, stream):
    out = Array(np.zeros((5, 130), BF16))
    cuda.Context(0).gemm(PROBLEM, *on_device(operands()), out, stream=stream)
    assert library.calls == [("gemm", 0x99)]


def test_torch_tensors(library, current):
    arrays = operands()
    d = octet.gemm(*arrays)
    tensors = [Tensor(x) for x in arrays]
    out = octet.gemm(*tensors)
    assert isinstance(out, Tensor) and bits(out.array) == bits(d)
    assert library.calls == [("gemm", 0x700)]
    context = cuda.Context(0)
    bound = context.bind(octet.plan(PROBLEM, "h200"), *tensors)
    current[0] = 0x800
    assert bits(bound().array) == bits(d) and library.calls[-1] == ("bound", 0x800)
    # Streams of its own are told to PyTorch, whose allocator would reuse the memory else.
    side = types.SimpleNamespace(cuda_stream=0x900)
    context.gemm(PROBLEM, *tensors, out, stream=side)
    assert library.calls[-1] == ("gemm", 0x900)
    assert tensors[0].recorded == out.recorded == [side]
    with pytest.raises(octet.InvalidArgument, match="out is None: must be given with a stream"):
        context.gemm(PROBLEM, *tensors, stream=side)
    assert isinstance(context.gemm(PROBLEM, *tensors, stream=0x800), Tensor)


def test_torch_tensors_on_the_cpu(current):
    arrays = operands()
    out = octet.gemm(*[Tensor(x, ("cpu", None)) for x in arrays])
    assert isinstance(out, Tensor) and bits(out.array) == bits(octet.gemm(*arrays))


def test_workspace(library, current):
    class Plan(octet.GemmPlan):
        __slots__ = ()

    plan = octet.plan(PROBLEM, "h200")
    raw = type(plan._raw).from_buffer_copy(plan._raw)
    raw.workspace_bytes = 512
    plan = Plan._wrap(raw)
    context = cuda.Context(0)
    out = np.zeros((5, 130), BF16)
    with pytest.raises(octet.InvalidArgument, match=r"workspace is None: must be uint8 \[512\]"):
        context.bind(plan, *on_device(operands()), Array(out))
    small = Array(np.zeros(256, np.uint8))
    with pytest.raises(octet.InvalidArgument, match="workspace_bytes = 256: the plan needs 512"):
        context.bind(plan, *on_device(operands()), Array(out), workspace=small)
    memory = np.zeros(1024, np.uint8)
    start = -memory.ctypes.data % 256
    fitting = Array(memory[start : start + 512])
    context.bind(plan, *on_device(operands()), Array(out), workspace=fitting)
    tensors = [Tensor(x) for x in operands()]
    with pytest.raises(octet.InvalidArgument, match="workspace is None: must be given with a"):
        context.run(plan, *tensors, Tensor(out), stream=0x5)


def refusals():
    arrays = operands()
    a, b, sfa, sfb = on_device(arrays)
    out = Array(np.zeros((5, 130), BF16))
    yield "b is in host memory: must be on device 0, as a is", lambda c: octet.gemm(
        a, arrays[1], sfa, sfb, out)  # fmt: skip
    yield "b is on device 1: must be on device 0, as a is", lambda c: octet.gemm(
        a, Array(arrays[1], 1), sfa, sfb, out)  # fmt: skip
    yield "a is on device 3: must be on device 0, the context's", lambda c: c.gemm(
        PROBLEM, *on_device(arrays, device=3), Array(out.array, 3))  # fmt: skip
    yield "a is in host memory: must be on device 0", lambda c: c.gemm(
        PROBLEM, *arrays, out.array)  # fmt: skip
    yield "a is on a device: must be in host memory for the CPU backend", lambda c: octet.cpu.run(
        octet.plan(PROBLEM), a, b, sfa, sfb, out)  # fmt: skip
    yield "out is read-only: must be writable", lambda c: octet.gemm(
        a, b, sfa, sfb, Array(out.array, readonly=True))  # fmt: skip
    yield "out is None: must be given, as a is no PyTorch tensor", lambda c: octet.gemm(
        a, b, sfa, sfb)  # fmt: skip
    yield "sfa = 0.5: must be an array on the device, as a is", lambda c: octet.gemm(
        a, b, 0.5, sfb, out)  # fmt: skip
    yield "stream = 'x': must be a cudaStream_t as a number", lambda c: c.gemm(
        PROBLEM, a, b, sfa, sfb, out, stream="x")  # fmt: skip
    yield "problem = 'dense'", lambda c: c.gemm("dense", a, b, sfa, sfb, out)
    yield "threads = 2: must be 0 for arrays on a device", lambda c: octet.gemm(
        a, b, sfa, sfb, out, threads=2)  # fmt: skip
    yield "x is on a device: must be in host memory", lambda c: octet.quantize(
        Array(np.zeros((2, 2), np.float32)))  # fmt: skip
    yield "device = '0': must be an integer", lambda c: cuda.Context("0")


def test_refusals_are_one_sentence(library):
    context = cuda.Context(0)
    for sentence, call in refusals():
        with pytest.raises(octet.InvalidArgument) as caught:
            call(context)
        assert str(caught.value).startswith(sentence), str(caught.value)
    assert library.calls == []
    library.refuse = 4
    with pytest.raises(octet.NotPrepared):
        out = Array(np.zeros((5, 130), BF16))
        context.run(octet.plan(PROBLEM, "h200"), *on_device(operands()), out)


def test_unsupported_on_the_device_says_why(library):
    out = Array(np.zeros((4, 4), BF16))
    a, b = on_device([np.zeros((4, 256), BF16), np.zeros((4, 256), BF16)])
    with pytest.raises(octet.Unsupported, match="on h200: "):
        octet.gemm(a, b, out=out)


def test_a_forked_child_leaves_the_driver_alone(library):
    context = cuda.Context(0)
    handle = context._handle.value
    context._process = -1
    del context
    gc.collect()
    assert handle in library.alive
    library.alive.clear()


def test_without_a_driver_there_is_a_sentence():
    if cuda.device_count():
        pytest.skip("there is a driver here")
    for call in (cuda.Context, cuda.driver_version, cuda.device_name, cuda.device_spec):
        with pytest.raises((octet.NoDevice, octet.Unsupported), match="[a-z]"):
            call()
    assert cuda.device_count() == 0
    assert all(isinstance(x, str) for x in cuda.kernel_names())
