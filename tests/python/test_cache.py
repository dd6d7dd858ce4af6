"""Calls that are remembered: the short way computes, refuses and lets go as the long one does."""

import gc
import os
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
from stand_in import Tensor, bits, call_from_threads, operands

import octet
from octet import _cache, cuda

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16


def test_calls_that_lie_alike_are_remembered(library, current, monkeypatch):
    first, second = operands(), operands()
    tensors = [Tensor(x) for x in first]
    watched = weakref.ref(tensors[0])
    octet.gemm(*tensors)
    assert len(_cache._calls) == 1
    del tensors
    gc.collect()
    assert watched() is None  # the call is kept, the tensors are not
    with monkeypatch.context() as patch:
        patch.setattr(cuda, "run_arrays", None)  # what is remembered takes no detour
        current[0] = 0x710
        out = octet.gemm(*[Tensor(x) for x in second])
        assert bits(out.array) == bits(octet.gemm(*second))
        assert library.calls[-1] == ("gemm", 0x710)
        library.refuse = 5
        with pytest.raises(octet.DeviceError):
            octet.gemm(*[Tensor(x) for x in second])
        library.refuse = 0
    given = Tensor(np.zeros((5, 130), np.float32))
    for _ in range(2):
        assert octet.gemm(*[Tensor(x) for x in second], given) is given
        assert bits(given.array) == bits(octet.gemm(*second, out_dtype="f32"))
        given.array[:] = 0
    assert len(_cache._calls) == 2
    # Anything that is different is another call.
    for more in (dict(split=2), dict(out_dtype="f32"), dict(bias=Tensor(np.ones(130, "f4"))),
                 dict(c=Tensor(np.ones((5, 130), "f4")))):  # fmt: skip
        host = {k: getattr(v, "array", v) for k, v in more.items()}
        for _ in range(2):
            out = octet.gemm(*[Tensor(x) for x in second], **more)
            assert bits(out.array) == bits(octet.gemm(*second, **host))
    assert len(_cache._calls) == 6
    wide = np.zeros((5, 512), E4M3)
    wide[:, :256] = second[0]
    for x in (wide[:, :256], second[0]):
        out = octet.gemm(*[Tensor(y) for y in (x, *second[1:])])
        assert bits(out.array) == bits(octet.gemm(*second))
    with pytest.raises(octet.InvalidArgument, match="split = .*must be an integer"):
        octet.gemm(*[Tensor(x) for x in second], split=[])


def test_remembering_has_an_end(library, current, monkeypatch):
    monkeypatch.setattr(_cache, "_MOST", 3)
    for m in range(1, 9):
        arrays = operands(m)
        out = Tensor(np.zeros((m, 130), BF16))
        for _ in range(3):
            octet.gemm(*[Tensor(x) for x in arrays], out)
        assert 1 <= len(_cache._calls) <= 3 and 1 <= len(_cache._bound) <= 3
        assert bits(out.array) == bits(octet.gemm(*arrays))
    gc.collect()
    assert len(library.alive) <= 4  # bound launches that were forgotten are given back; a context


def test_the_same_pointers_are_bound_the_second_time(library, current):
    arrays, out = operands(), np.zeros((5, 130), BF16)
    d = octet.gemm(*arrays)

    def call(*more, **options):
        out[:] = 0
        octet.gemm(*[Tensor(x) for x in (*arrays, out)], **options)
        assert bits(out) == bits(octet.gemm(*arrays, **options))
        return library.calls[-1][0]

    assert [call() for _ in range(4)] == ["gemm", "gemm", "bound", "bound"]
    current[0] = 0x720
    call()
    assert library.calls[-1] == ("bound", 0x720)
    # Whatever else the call depends on makes another one of it, with the same pointers.
    assert call(split=2) == "gemm" and call() == "bound"
    narrow = Tensor(arrays[0][:, :128])
    with pytest.raises(octet.InvalidArgument, match="sfa has shape"):
        octet.gemm(narrow, *[Tensor(x) for x in (*arrays[1:], out)])
    assert call() == "bound"
    moved = [Tensor(x) for x in (*arrays, out)]
    moved[3].device = type(moved[3].device)("cuda", 1)
    with pytest.raises(octet.InvalidArgument, match="sfb is on device 1"):
        octet.gemm(*moved)
    elsewhere = np.zeros((5, 130), BF16)
    octet.gemm(*[Tensor(x) for x in (*arrays, elsewhere)])
    assert library.calls[-1][0] == "gemm" and bits(elsewhere) == bits(d)
    library.refuse = 5
    with pytest.raises(octet.DeviceError):
        call()
    library.refuse = 0
    watched = [weakref.ref(x) for x in moved]
    del moved
    gc.collect()
    assert all(x() is None for x in watched)


def test_results_that_come_back_to_a_place_are_bound(library, current, monkeypatch):
    arrays = operands()
    wanted = bits(octet.gemm(*arrays))
    pool = [np.zeros((5, 130), BF16) for _ in range(20)]
    turn = []

    def empty(shape, strides, dtype, device):
        turn.append(None)
        return Tensor(pool[len(turn) % places])

    monkeypatch.setattr(sys.modules["torch"], "empty_strided", empty)
    for places, bound in ((2, True), (20, False)):  # 20: more than are kept for a call
        for _ in range(45):
            out = octet.gemm(*[Tensor(x) for x in arrays])
            assert bits(out.array) == wanted
            out.array[:] = 0
        assert (library.calls[-1][0] == "bound") is bound
    (maker,) = [x for x in _cache._bound.values() if x]
    assert len(maker.launches) <= _cache._MOST_PLACES


def test_groups_are_bound_the_second_time(library, current):
    a, b, sfa, sfb = operands(40)
    experts, scales = np.stack([b, b]), np.stack([sfb, sfb])
    offsets, out = np.array([0, 17, 40], np.int32), np.zeros((40, 130), BF16)
    arrays = (a, experts, sfa, scales, offsets)
    d = octet.gemm_offsets(*arrays, expected_m=20)
    for name in ("gemm", "gemm", "bound"):
        out[:] = 0
        octet.gemm_offsets(*[Tensor(x) for x in (*arrays, out)], expected_m=20)
        assert library.calls[-1][0] == name and bits(out) == bits(d)
    offsets[1] = 3  # counts are read by the launch, whatever they were before
    octet.gemm_offsets(*[Tensor(x) for x in (*arrays, out)], expected_m=20)
    assert library.calls[-1][0] == "bound" and bits(out) == bits(d)


def test_pointers_that_are_wrong_are_told_every_time(library, current):
    a, b, sfa, sfb = operands()
    whole = np.zeros(1400, np.uint8)
    whole = whole[-whole.ctypes.data % 16 :]  # as aligned as the others are
    within = whole[: 5 * 130 * 2].view(BF16).reshape(5, 130)
    within_a = whole[: 5 * 256].view(E4M3).reshape(5, 256)
    octet.gemm(*[Tensor(x) for x in (a, b, sfa, sfb, np.zeros((5, 130), BF16))])
    for _ in range(4):
        with pytest.raises(octet.InvalidArgument, match="d overlaps a"):
            octet.gemm(*[Tensor(x) for x in (within_a, b, sfa, sfb, within)])
    assert len(_cache._calls) == 1


def test_threads_share_what_is_remembered(library, current, monkeypatch):
    monkeypatch.setattr(_cache, "_MOST", 4)  # forgotten again and again, while others use it
    call_from_threads(library)


def test_a_forked_child_starts_with_nothing(library, current):
    arrays, out = operands(), np.zeros((5, 130), BF16)
    for _ in range(3):
        octet.gemm(*[Tensor(x) for x in (*arrays, out)])
    alive = set(library.alive)
    assert len(_cache._bound) == 1 and len(alive) == 2  # a context, a bound launch
    child = os.fork()
    if child == 0:
        gc.collect()
        os._exit(0 if not _cache._bound and not _cache._calls and library.alive == alive else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    octet.gemm(*[Tensor(x) for x in (*arrays, out)])
    assert library.calls[-1][0] == "bound"
