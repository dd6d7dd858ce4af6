"""Arrays that show their memory through DLPack alone: JAX's, or any other producer's."""

import ctypes
import gc
import sys

import ml_dtypes
import numpy as np
import pytest
import stand_in
from stand_in import Tensor, bits, operands

import octet
from octet import _dlpack

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16


class Lends:
    """What NumPy exports, and nothing else of it. old: a producer from before versions."""

    def __init__(self, array, old=False):
        self.array = array
        self.old = old
        self.shape = array.shape

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        assert "stream" not in options  # nobody asks for one on the CPU
        if self.old:
            if options:
                raise TypeError("unexpected argument max_version")
            return self.array.__dlpack__()
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("old", [False, True])
def test_inputs_and_outputs(old):
    arrays = [np.ascontiguousarray(x) for x in operands()]
    raw = [Lends(x.view(np.uint8) if x.dtype == E4M3 else x, old) for x in arrays]
    wanted = bits(octet.gemm(*arrays, out_dtype="f32"))
    d = octet.gemm(*raw, dtype="e4m3", out_dtype="f32")
    assert isinstance(d, np.ndarray) and bits(d) == wanted
    out = np.zeros((5, 130), np.float32)
    given = Lends(out, old)
    assert octet.gemm(*raw, given, dtype="e4m3") is given and bits(out) == wanted
    x = np.random.default_rng(1).standard_normal((6, 300), dtype=np.float32)
    for one, other in zip(octet.quantize(Lends(x[::2, 20:], old)), octet.quantize(x[::2, 20:])):
        assert bits(one) == bits(other)


def test_memory_is_given_back():
    x = np.ones((4, 256), np.float32)
    before = sys.getrefcount(x)
    lent = Lends(x)
    octet.quantize(lent)
    with pytest.raises(octet.InvalidArgument):
        octet.gemm(lent, lent, 1.0, 1.0)
    del lent
    gc.collect()
    assert sys.getrefcount(x) == before


def test_what_is_read_only_is_not_written():
    arrays = operands()
    out = np.zeros((5, 130), np.float32)
    out.flags.writeable = False
    try:
        out.__dlpack__(max_version=(1, 0))
    except (BufferError, TypeError):
        pytest.skip("this NumPy lends nothing that is read-only")
    with pytest.raises(octet.InvalidArgument, match="out is read-only"):
        octet.gemm(*arrays, Lends(out))


def test_what_shows_nothing():
    class Broken(Lends):
        def __dlpack__(self, **options):
            raise BufferError("not today")

    class Odd(Lends):
        def __dlpack__(self, **options):
            return "no capsule"

    class Elsewhere(Lends):
        def __dlpack_device__(self):
            raise RuntimeError("deleted")

    arrays = operands()
    x = np.ones((5, 256), np.float32)
    for wrong, says in ((Broken(x), "not today"), (Odd(x), "no capsule of DLPack's"),
                        (Elsewhere(x), "deleted")):  # fmt: skip
        with pytest.raises(octet.InvalidArgument, match=f"a does not show its memory: {says}"):
            octet.gemm(wrong, *arrays[1:])
    with pytest.raises(octet.InvalidArgument, match="a has dtype float32"):
        octet.gemm(Lends(x), *arrays[1:])


class OnDevice:
    """An array on a device, as JAX shows FP8 there: a capsule made by hand."""

    def __init__(self, array, device=(2, 0), major=None, lanes=1):
        self.array, self.device, self.major, self.lanes = array, device, major, lanes
        self.shape, self.streams = array.shape, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, max_version=None):
        self.streams.append(stream)
        x = self.array
        numbers = ctypes.c_int64 * x.ndim
        lists = numbers(*x.shape), numbers(*(b // x.itemsize for b in x.strides))
        tensor = _dlpack._Tensor(
            x.ctypes.data, *self.device, x.ndim, *stand_in._CODES[x.dtype.name], self.lanes,
            *(ctypes.cast(n, ctypes.POINTER(ctypes.c_int64)) for n in lists), 0)  # fmt: skip
        if x.flags.c_contiguous:
            tensor.strides = None
        name, whole = b"dltensor", tensor
        if self.major is not None:
            name, whole = b"dltensor_versioned", _dlpack._Versioned(major=self.major, tensor=tensor)
        self.kept = lists, name, whole
        new = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
            ("PyCapsule_New", ctypes.pythonapi))  # fmt: skip
        return new(ctypes.addressof(whole), name, None)


@pytest.mark.parametrize("major", [None, 1])
def test_on_a_device(library, current, major):
    arrays, out = operands(), np.zeros((5, 130), BF16)
    wanted = bits(octet.gemm(*arrays))
    lent = [OnDevice(x, major=major) for x in arrays]
    given = OnDevice(out, major=major)
    assert octet.gemm(*lent, given) is given and bits(out) == wanted
    assert library.calls[-1] == ("gemm", 0) and lent[0].streams == [1]
    out[:] = 0
    given = Tensor(out)  # among PyTorch's tensors: on its stream
    octet.gemm(*lent, given)
    assert bits(out) == wanted
    assert library.calls[-1] == ("gemm", 0x700) and lent[0].streams == [1, 0x700]
    context = octet.cuda.default_context()
    plan = octet.plan(octet.GemmProblem(m=5, n=130, k=256), context.device)
    context.run(plan, *lent, Tensor(out), stream=0x900)
    assert library.calls[-1] == ("run", 0x900) and lent[0].streams[-1] == 0x900
    bound = context.bind(plan, *lent, Tensor(out))
    asked = len(lent[0].streams)
    bound()
    assert library.calls[-1] == ("bound", 0x700) and len(lent[0].streams) == asked
    with pytest.raises(octet.InvalidArgument, match="out is None: must be given"):
        octet.gemm(*lent)
    with pytest.raises(octet.InvalidArgument, match="b is in host memory"):
        octet.gemm(lent[0], *arrays[1:], given)


def test_other_devices_and_versions(library, current):
    arrays = operands()
    for wrong, says in (
        (dict(device=(10, 0)), "device type 10: must be on the CPU or a CUDA"),
        (dict(major=2), "a shows DLPack 2: must be version 1"),
        (dict(lanes=4), "a has dtype DLPack's 10 of 8 bits"),
        (dict(device=(2, 1)), "b is on device 0: must be on device 1, as a is"),
    ):
        lent = [OnDevice(x) for x in arrays]
        with pytest.raises(octet.InvalidArgument, match=says):
            octet.gemm(OnDevice(arrays[0], **wrong), *lent[1:], Tensor(np.zeros((5, 130), BF16)))


def test_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    arrays = [np.ascontiguousarray(x) for x in operands()]
    ours = [jax.numpy.asarray(x) for x in arrays]
    d = octet.gemm(*ours)
    assert isinstance(d, np.ndarray) and bits(d) == bits(octet.gemm(*arrays))
    with pytest.raises(octet.InvalidArgument, match="out is read-only"):
        octet.gemm(*ours, jax.numpy.zeros((5, 130), "bfloat16"))
    x = jax.numpy.ones((4, 256)) * 3
    assert bits(octet.quantize(x)[0]) == bits(octet.quantize(np.asarray(x))[0])
