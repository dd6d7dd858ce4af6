"""Calls that are remembered in C (liboctet_python.so): as test_cache.py, and what only C could do."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
import stand_in
from stand_in import Tensor, bits, call_from_threads, operands

import octet
from octet import _cache, _shortcut, cuda, deep_gemm

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16


@pytest.fixture
def no_detour(monkeypatch, quick):
    """From here on no call may go the long way."""

    def close():
        monkeypatch.setattr(cuda, "run_arrays", None)

    return close


def test_it_is_there(quick, library):
    octet.gemm(*[Tensor(x) for x in operands()])
    assert isinstance(_cache._short, _shortcut.Shortcut)
    assert not _cache._calls and not _cache._bound and len(_cache._launchers) == 1


def test_calls_that_lie_alike(quick, library, current, no_detour):
    first, second = operands(), operands()
    tensors = [Tensor(x) for x in first]
    given = Tensor(np.zeros((5, 130), np.float32))
    octet.gemm(*tensors, given)
    watched = [weakref.ref(x) for x in (*tensors, given)]
    del tensors, given
    gc.collect()
    assert all(x() is None for x in watched)  # the call is kept, the tensors are not
    no_detour()
    for name, place in (("gemm", 0x710), ("bound", 0x720), ("bound", 0x730)):
        current[0] = place
        given = Tensor(np.zeros((5, 130), np.float32)) if name == "gemm" else given
        again = [Tensor(x) for x in second]
        assert octet.gemm(*again, given) is given
        assert bits(given.array) == bits(octet.gemm(*second, out_dtype="f32"))
        assert library.calls[-1] == (name, place)
        given.array[:] = 0


def test_whatever_a_call_depends_on_makes_another_one(quick, library, current):
    arrays, out = operands(), np.zeros((5, 130), BF16)

    def call(*more, **options):
        out[:] = 0
        octet.gemm(*[Tensor(x) for x in (*arrays, out)], **options)
        host = {k: getattr(v, "array", v) for k, v in options.items()}
        assert bits(out) == bits(octet.gemm(*arrays, **host))
        return library.calls[-1][0]

    assert [call() for _ in range(4)] == ["gemm", "gemm", "bound", "bound"]
    assert call(split=2) == "gemm" and call() == "bound"
    for more in (dict(bias=Tensor(np.ones(130, "f4"))), dict(c=Tensor(np.ones((5, 130), BF16))),
                 dict(batch_invariant=True)):  # fmt: skip
        for _ in range(3):
            call(**more)
        assert call() == "bound"
    with pytest.raises(octet.InvalidArgument, match="sfa has shape"):
        octet.gemm(Tensor(arrays[0][:, :128]), *[Tensor(x) for x in (*arrays[1:], out)])
    with pytest.raises(octet.InvalidArgument, match="split = .*must be an integer"):
        octet.gemm(*[Tensor(x) for x in (*arrays, out)], split=[])
    moved = [Tensor(x) for x in (*arrays, out)]
    moved[3].device = type(moved[3].device)("cuda", 1)
    with pytest.raises(octet.InvalidArgument, match="sfb is on device 1"):
        octet.gemm(*moved)
    for wrong in (arrays[0].view(np.uint8), arrays[0].view(ml_dtypes.float8_e5m2)):
        with pytest.raises(octet.InvalidArgument, match="a has dtype"):
            octet.gemm(*[Tensor(x) for x in (wrong, *arrays[1:], out)])
    assert call() == "bound"
    elsewhere = np.zeros((5, 130), BF16)
    octet.gemm(*[Tensor(x) for x in (*arrays, elsewhere)])
    assert library.calls[-1][0] == "gemm" and bits(elsewhere) == bits(octet.gemm(*arrays))
    wide = np.zeros((5, 512), E4M3)
    wide[:, :256] = arrays[0]
    for _ in range(3):
        elsewhere[:] = 0
        octet.gemm(*[Tensor(x) for x in (wide[:, :256], *arrays[1:], elsewhere)])
        assert bits(elsewhere) == bits(octet.gemm(*arrays))
    library.refuse = 5
    for _ in range(2):
        with pytest.raises(octet.DeviceError):
            call()
    library.refuse = 0
    assert call() == "bound"


def test_a_view_that_negates_is_told_every_time(quick, library, monkeypatch):
    arrays, out = operands(), np.zeros((5, 130), BF16)
    for _ in range(3):
        octet.gemm(*[Tensor(x) for x in (*arrays, out)])
    monkeypatch.setattr(Tensor, "is_neg", lambda self: self.array is arrays[2])
    _cache._forget()  # is_neg is looked up when the table is made
    for _ in range(3):
        octet.gemm(*[Tensor(x) for x in (*arrays[:2], arrays[2].copy(), arrays[3], out)])
    for _ in range(3):
        with pytest.raises(octet.InvalidArgument, match="sfa is a view that negates"):
            octet.gemm(*[Tensor(x) for x in (*arrays, out)])


def test_results_that_it_makes(quick, library, current, monkeypatch):
    arrays = operands()
    wanted = bits(octet.gemm(*arrays))
    pool = [np.zeros((5, 130), BF16) for _ in range(3)]
    turn = []

    def empty(shape, strides, dtype, device):
        assert (shape, strides) == ((5, 130), (130, 1))
        turn.append(None)
        return Tensor(pool[len(turn) % len(pool)])

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["torch"], "empty_strided", empty)
        for _ in range(20):
            out = octet.gemm(*[Tensor(x) for x in arrays])
            assert bits(out.array) == wanted
            out.array[:] = 0
        assert library.calls[-1][0] == "bound"
        library.refuse = 5
        with pytest.raises(octet.DeviceError):
            octet.gemm(*[Tensor(x) for x in arrays])
        library.refuse = 0
    _cache._forget()
    for kind in ("f32", "f16", "bf16"):
        for _ in range(3):
            out = octet.gemm(*[Tensor(x) for x in arrays], out_dtype=kind)
            assert bits(out.array) == bits(octet.gemm(*arrays, out_dtype=kind))


def test_groups(quick, library, current):
    a, b, sfa, sfb = operands(40)
    experts, scales = np.stack([b, b]), np.stack([sfb, sfb])
    offsets, out = np.array([0, 17, 40], np.int32), np.zeros((40, 130), BF16)
    arrays = (a, experts, sfa, scales, offsets)
    d = octet.gemm_offsets(*arrays, expected_m=20)
    for name in ("gemm", "gemm", "bound"):
        out[:] = 0
        octet.gemm_offsets(*[Tensor(x) for x in (*arrays, out)], expected_m=20)
        assert library.calls[-1][0] == name and bits(out) == bits(d)
    offsets[:] = 0, 3, 30  # counts are read by the launch, whatever they were before
    for _ in range(4):
        made = octet.gemm_offsets(*[Tensor(x) for x in arrays], expected_m=20)
        assert bits(made.array) == bits(octet.gemm_offsets(*arrays, expected_m=20))
        assert not made.array[30:].astype("f4").any()  # rows that nobody owns
    left, right = (Tensor(a), Tensor(sfa)), (Tensor(b), Tensor(sfb))
    for name in ("gemm", "gemm", "bound"):
        deep_gemm.fp8_gemm_nt(left, right, Tensor(out))
        assert library.calls[-1][0] == name and bits(out) == bits(octet.gemm(a, b, sfa, sfb))


def test_pointers_that_are_wrong_are_told_every_time(quick, library):
    a, b, sfa, sfb = operands()
    whole = np.zeros(1400, np.uint8)
    whole = whole[-whole.ctypes.data % 16 :]  # as aligned as the others are
    within = whole[: 5 * 130 * 2].view(BF16).reshape(5, 130)
    within_a = whole[: 5 * 256].view(E4M3).reshape(5, 256)
    octet.gemm(*[Tensor(x) for x in (a, b, sfa, sfb, np.zeros((5, 130), BF16))])
    for _ in range(4):
        with pytest.raises(octet.InvalidArgument, match="d overlaps a"):
            octet.gemm(*[Tensor(x) for x in (within_a, b, sfa, sfb, within)])


def test_remembering_has_an_end(quick, library, monkeypatch):
    monkeypatch.setattr(_cache, "_MOST", 3)
    for m in range(1, 9):
        arrays = operands(m)
        out = Tensor(np.zeros((m, 130), BF16))
        for split in (1, 2):
            for _ in range(3):
                octet.gemm(*[Tensor(x) for x in arrays], out, split=split)
                assert bits(out.array) == bits(octet.gemm(*arrays, split=split))
        assert 1 <= len(_cache._launchers) <= 3
    gc.collect()
    assert len(library.alive) <= 4  # bound launches that were forgotten are given back; a context


def test_threads(quick, library, current, monkeypatch):
    monkeypatch.setattr(_cache, "_MOST", 4)  # forgotten again and again, while others use it
    call_from_threads(library)


def test_the_interpreter_lock_is_let_go(quick, library):
    """Two launches at once, each of which waits for the other one."""
    meeting = threading.Barrier(2, timeout=30)
    cases = [(operands(m), np.zeros((m, 130), BF16)) for m in (3, 4)]
    for arrays, out in cases:
        for _ in range(3):
            octet.gemm(*[Tensor(x) for x in (*arrays, out)])
    library.before = meeting.wait
    threads = [
        threading.Thread(target=lambda c=c: octet.gemm(*[Tensor(x) for x in (*c[0], c[1])]))
        for c in cases
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    library.before = None
    assert [name for name, _ in library.calls[-2:]] == ["bound", "bound"]
    assert not meeting.broken


def test_a_forked_child_starts_with_nothing(quick, library):
    arrays, out = operands(), np.zeros((5, 130), BF16)
    for _ in range(3):
        octet.gemm(*[Tensor(x) for x in (*arrays, out)])
    child = os.fork()
    if child == 0:
        os._exit(0 if not _cache._launchers and _cache._short is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    octet.gemm(*[Tensor(x) for x in (*arrays, out)])
    assert library.calls[-1][0] == "bound"


def test_what_a_launcher_does_not_know(quick, library):
    arrays, out = operands(), np.zeros((5, 130), BF16)
    tensors = [Tensor(x) for x in (*arrays, out)]
    octet.gemm(*tensors)
    (launch,) = _cache._launchers.values()
    assert launch(*tensors) is tensors[-1]

    class Other(Tensor):  # may mean anything by its functions
        pass

    for wrong in ((), (1,), tensors[:4], [*tensors, 3], [None] * 7, [*tensors[:4], Other(out)],
                  [*tensors, *[None] * 3, tensors[0]], [*tensors] * 3, [*arrays, out],
                  [Tensor(np.zeros((1, 1, 1, 1), "f4"))] * 5, list("abcde")):  # fmt: skip
        assert launch(*wrong) is None
    assert launch(*tensors, None, None) is tensors[-1]
    broken = Tensor(out)
    broken.array = None  # reading it fails: an exception that must not stay behind
    assert launch(*tensors[:4], broken) is None


@pytest.mark.parametrize("how", ["no table", "version", "no file", "sizes", "other Python"])
def test_without_it_calls_are_remembered_in_python(quick, library, current, monkeypatch, how):
    if how == "no table":
        monkeypatch.delattr(Tensor, "__dlpack_c_exchange_api__")
    elif how == "version":
        quick[0].words[0] = 2
    elif how == "no file":
        monkeypatch.setattr(_shortcut, "_FILE", "nothing.so")
    elif how == "sizes":
        monkeypatch.setattr(_shortcut, "sizeof", lambda kind: 8)
    else:
        monkeypatch.setattr(sys.implementation, "name", "pypy")
    arrays, out = operands(), np.zeros((5, 130), BF16)
    for name in ("gemm", "gemm", "bound"):
        octet.gemm(*[Tensor(x) for x in (*arrays, out)])
        assert library.calls[-1][0] == name and bits(out) == bits(octet.gemm(*arrays))
    assert _cache._short is False and _cache._calls


def test_an_older_version_behind_a_newer_one(quick, library, current, monkeypatch):
    both = stand_in.Exchange(current, older=True)
    monkeypatch.setattr(Tensor, "__dlpack_c_exchange_api__", both.capsule)
    octet.gemm(*[Tensor(x) for x in operands()])
    assert _cache._short
    _cache._forget()


def test_it_needs_no_python_where_there_is_none(library_file):
    """A program that is not Python may open it, and gets nothing."""
    path = os.path.join(os.path.dirname(os.path.realpath(library_file)), "liboctet_python.so")
    code = (
        "import ctypes, sys\n"
        f"library = ctypes.CDLL({path!r}, mode=ctypes.RTLD_LOCAL)\n"
        "print(library.octet_python_table is not None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr
