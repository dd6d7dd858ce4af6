"""A device of our own making: the real library, with the driver's part played in host memory.

Kernels become the CPU backend, which gives the same bits; streams and contexts become numbers that
are written down. So everything the package does for arrays on a device is tested without one.
"""

import collections
import ctypes
import threading
import types

import ml_dtypes
import numpy as np

import octet
from octet import _structs

RNG = np.random.default_rng(3)


def operands(m=5, n=130, k=256):
    a, sfa = octet.quantize_activations(RNG.standard_normal((m, k), dtype=np.float32))
    b, sfb = octet.quantize_weights(RNG.standard_normal((n, k), dtype=np.float32))
    return a, b, sfa, sfb


def bits(x):
    return np.ascontiguousarray(x).view(np.uint8).tobytes()


def _struct(args):
    """Arguments as the library reads them, which are a struct or its bytes."""
    if isinstance(args, bytes):
        return ctypes.byref(_structs.octet_gemm_args.from_buffer_copy(args))
    return args


class Library:
    """liboctet.so, but for octet_cuda_*."""

    def __init__(self, real):
        self.real = real
        self.calls = []  # (name, stream) of every launch
        self.prepared = []
        self.bound = {}
        self.alive = set()
        self.numbers = iter(range(0x1000, 0x9000, 16))
        self.refuse = 0
        self.before = None  # called by each launch

    def __getattr__(self, name):
        if not name.startswith("octet_cuda_"):
            return getattr(self.real, name)
        raise AttributeError(name)

    def _new(self, out):
        number = next(self.numbers)
        ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[0] = number
        self.alive.add(number)
        return 0

    def octet_cuda_context_create(self, ordinal, out):
        return self._new(out)

    def octet_cuda_context_destroy(self, context):
        self.alive.remove(context.value)

    def octet_cuda_context_device(self, context, out):
        return self.real.octet_device_preset(b"h200", out)

    def octet_cuda_prepare(self, context, plans, count):
        self.prepared += [plans[i].kernel for i in range(count)]
        return 0

    def _launch(self, plan, args, name, stream):
        if self.before:
            self.before()
        self.calls.append((name, stream))
        return self.refuse or self.real.octet_cpu_run(plan, args, None, None)

    def octet_cuda_run(self, context, plan, args, stream):
        return self._launch(plan, args, "run", stream)

    def octet_cuda_gemm(self, context, problem, args, stream):
        args = _struct(args)
        plan, device = _structs.octet_gemm_plan(), _structs.octet_device_spec()
        self.octet_cuda_context_device(context, ctypes.byref(device))
        code = self.real.octet_plan_gemm(problem, ctypes.byref(device), ctypes.byref(plan))
        return code or self._launch(ctypes.byref(plan), args, "gemm", stream)

    def octet_cuda_bind(self, context, plan, args, out):
        args = _struct(args)
        code = self.real.octet_check(plan, args)
        if code:
            return code
        self._new(out)
        number = ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[0]
        self.bound[number] = (
            _structs.octet_gemm_plan.from_buffer_copy(plan._obj),
            _structs.octet_gemm_args.from_buffer_copy(args._obj),
        )
        return 0

    def octet_cuda_rebind(self, context, bound, args):
        plan, _ = self.bound[bound.value]
        code = self.real.octet_check(ctypes.byref(plan), args)
        if not code:
            copy = _structs.octet_gemm_args.from_buffer_copy(args._obj)
            self.bound[bound.value] = (plan, copy)
        return code

    def octet_cuda_run_bound(self, context, bound, stream):
        plan, args = self.bound[bound.value]
        return self._launch(ctypes.byref(plan), ctypes.byref(args), "bound", stream)

    def octet_cuda_bound_destroy(self, bound):
        self.alive.remove(bound.value)


class Array:
    """An array of a framework like CuPy: what the interface says, and a device with a number."""

    def __init__(self, array, device=0, stream=None, readonly=False):
        self.array = array
        self.dtype = array.dtype
        self.device = types.SimpleNamespace(id=device)
        self.stream = stream
        self.readonly = readonly

    @property
    def __cuda_array_interface__(self):
        strides = None if self.array.flags.c_contiguous else self.array.strides
        return {
            "data": (self.array.ctypes.data, self.readonly),
            "shape": self.array.shape,
            "typestr": self.array.dtype.str,
            "strides": strides,
            "stream": self.stream,
            "version": 3,
        }


Device = collections.namedtuple("Device", "type index")


class Tensor:
    """A tensor as PyTorch shows them."""

    layout = "torch.strided"

    def __init__(self, array, device=("cuda", 0)):
        self.array = array
        self.device = Device(*device)
        self.dtype = f"torch.{array.dtype.name}"
        self.recorded = []

    @property
    def shape(self):
        return self.array.shape

    def stride(self):
        return tuple(b // self.array.itemsize for b in self.array.strides)

    def is_neg(self):
        return False

    def get_device(self):
        return -1 if self.device.type == "cpu" else self.device.index

    def data_ptr(self):
        return self.array.ctypes.data

    def record_stream(self, stream):
        self.recorded.append(stream)


def call_from_threads(library):
    """Eight shapes from eight threads, again and again: right, and bound launches among them."""
    cases = []
    for m in range(1, 9):
        arrays = operands(m)
        cases.append((arrays, np.zeros((m, 130), ml_dtypes.bfloat16), bits(octet.gemm(*arrays))))
    wrong = []

    def work(case):
        arrays, out, wanted = case
        for _ in range(40):
            out[:] = 0
            octet.gemm(*[Tensor(x) for x in (*arrays, out)])
            if bits(out) != wanted:
                wrong.append(out.shape)

    threads = [threading.Thread(target=work, args=(case,)) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and {name for name, _ in library.calls} == {"gemm", "bound"}


def torch(current):
    """A module like PyTorch. current: list of one number, the current stream."""
    import ml_dtypes

    def make(shape, dtype, device, value):
        shape = (shape,) if isinstance(shape, int) else shape
        memory = np.full(shape, value, np.uint8 if dtype == "uint8" else dtype)
        return Tensor(memory, (device.type, device.index))

    return types.SimpleNamespace(
        Tensor=Tensor,
        bfloat16=ml_dtypes.bfloat16,
        float16=np.float16,
        float32=np.float32,
        uint8="uint8",
        empty_strided=lambda shape, strides, dtype, device: make(shape, dtype, device, 77),
        empty=lambda shape, dtype, device: make(shape, dtype, device, 77),
        zeros=lambda shape, dtype, device: make(shape, dtype, device, 0),
        _C=types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: current[0]),
        cuda=types.SimpleNamespace(is_available=lambda: False),
    )


# --- What lets the short way in C read our tensors, and call our device -----------------------------

_CODES = {
    "float8_e4m3fn": (10, 8), "bfloat16": (4, 16), "float32": (2, 32), "float16": (2, 16),
    "int32": (0, 32), "int64": (0, 64), "uint8": (1, 8), "uint16": (1, 16),
}  # fmt: skip


class _Read(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
        ("dimensions", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


def _read(tensor, out):
    x = tensor
    dtype = str(x.dtype).rpartition(".")[2]
    if x.array is None or dtype not in _CODES:
        return -1
    numbers = ctypes.c_int64 * len(x.shape)
    x.kept = numbers(*x.shape), numbers(*x.stride())
    code, bits_ = _CODES[dtype]
    lists = [ctypes.cast(n, ctypes.POINTER(ctypes.c_int64)) for n in x.kept]
    out[0] = _Read(
        x.data_ptr() - 8, 2 if x.device.type == "cuda" else 1, max(x.get_device(), 0),
        len(x.shape), code, bits_, 1, *lists, 8)  # fmt: skip
    return 0


class Exchange:
    """A table of C functions as PyTorch has one. older: put behind a table of another version."""

    def __init__(self, current, older=False):
        def stream(device_type, device, out):
            out[0] = current[0]
            return 0

        self.read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Read))(_read)
        self.stream = ctypes.PYFUNCTYPE(
            ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))(stream)
        functions = [ctypes.cast(f, ctypes.c_void_p).value for f in (self.read, self.stream)]
        self.words = (ctypes.c_uint64 * 7)(1 | 3 << 32, 0, 0, 0, 0, *functions)
        self.newer = (ctypes.c_uint64 * 7)(2, ctypes.addressof(self.words), 0, 0, 0, 0, 0)
        new = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
            ("PyCapsule_New", ctypes.pythonapi))  # fmt: skip
        self.name = b"dlpack_exchange_api"
        self.capsule = new(ctypes.addressof(self.newer if older else self.words), self.name, None)


def addresses(library):
    """name -> a C function that calls the stand-in's."""
    pointer = ctypes.c_void_p

    def struct(kind, address):
        return ctypes.byref(kind.from_address(address))

    def bind(context, plan, args, out):
        plan = struct(_structs.octet_gemm_plan, plan)
        args = struct(_structs.octet_gemm_args, args)
        return library.octet_cuda_bind(pointer(context), plan, args, pointer(out))

    def run(context, bound, stream):
        return library.octet_cuda_run_bound(pointer(context), pointer(bound), stream)

    def gemm(context, problem, args, stream):
        problem = struct(_structs.octet_gemm_problem, problem)
        args = struct(_structs.octet_gemm_args, args)
        return library.octet_cuda_gemm(pointer(context), problem, args, stream)

    code, four = ctypes.c_int32, [pointer] * 4
    return {
        "octet_cuda_bind": ctypes.CFUNCTYPE(code, *four)(bind),
        "octet_cuda_run_bound": ctypes.CFUNCTYPE(code, *four[:3])(run),
        "octet_cuda_gemm": ctypes.CFUNCTYPE(code, *four)(gemm),
        "octet_cuda_bound_destroy": ctypes.CFUNCTYPE(None, pointer)(
            lambda bound: library.octet_cuda_bound_destroy(pointer(bound))),
    }  # fmt: skip
