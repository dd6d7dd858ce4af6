"""Metadata from counts: the grouped forms agree on what each group owns."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest

import octet
from octet import groups

BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(31)
CASES = [[5, 0, 7], [0, 0], [128], [], [129, 64, 0, 1], [0, 300, 0]]


def test_the_numbers():
    assert groups.offsets([5, 0, 7]).tolist() == [0, 5, 5, 12]
    assert groups.ends([5, 0, 7], 128).tolist() == [5, 128, 135]
    assert groups.ends([5, 0, 7], 1).tolist() == [5, 5, 12]
    assert groups.padded_rows([5, 0, 7], 8) == 16
    assert groups.index([2, 0, 3], 4).tolist() == [0, 0, -1, -1, 2, 2, 2, -1]
    assert groups.index([2, 0, 3], 4, total=12).tolist()[8:] == [-1] * 4
    assert groups.rows([2, 0, 3], 4).tolist() == [0, 1, 4, 5, 6]
    for made in (groups.offsets([1]), groups.ends([1]), groups.index([1])):
        assert made.dtype == np.int32
    assert groups.index([], 64, total=3).tolist() == [-1] * 3


@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("alignment", [64, 128])
def test_the_forms_agree(counts, alignment):
    n, k = 24, 256
    experts = octet.quantize_weights(
        RNG.standard_normal((max(len(counts), 1), n, k), dtype=np.float32))  # fmt: skip
    experts = experts[0][: len(counts)], experts[1][: len(counts)]
    dense = RNG.standard_normal((sum(counts), k), dtype=np.float32)
    size = groups.padded_rows(counts, alignment)
    padded = np.zeros((size, k), np.float32)
    rows = groups.rows(counts, alignment)
    padded[rows] = dense
    a, pa = octet.quantize_activations(dense), octet.quantize_activations(padded)
    d = octet.gemm_offsets(a[0], experts[0], a[1], experts[1], groups.offsets(counts))
    index, ends = groups.index(counts, alignment), groups.ends(counts, alignment)
    call = (pa[0], experts[0], pa[1], experts[1])
    one = octet.gemm_contiguous(*call, index, alignment=alignment)
    other = octet.gemm_aligned(*call, ends, alignment=alignment)
    assert one.tobytes() == other.tobytes()
    assert one[rows].tobytes() == d.tobytes()
    assert (index >= 0).sum() == sum(counts)


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch installed")
@pytest.mark.parametrize("counts", CASES)
def test_tensors(counts):
    import torch

    for dtype in (torch.int32, torch.int64):
        tensor = torch.tensor(counts, dtype=dtype)
        for function, more in ((groups.offsets, ()), (groups.ends, (64,)), (groups.index, (64,)),
                               (groups.index, (64, 1024)), (groups.rows, (64,))):  # fmt: skip
            made, wanted = function(tensor, *more), function(counts, *more)
            assert isinstance(made, torch.Tensor) and made.tolist() == wanted.tolist()
            assert str(made.dtype).endswith(str(wanted.dtype))


def test_refusals():
    for sentence, call in (
        ("counts = [1.5]: must be whole numbers", lambda: groups.offsets([1.5])),
        ("counts = [[1]]: must be whole numbers in one dimension", lambda: groups.ends([[1]])),
        ("counts = [-1, 2]: must be numbers of rows, 0 or more", lambda: groups.offsets([-1, 2])),
        ("counts = [2147483648]: must be numbers of rows", lambda: groups.ends([2**31])),
        ("counts = [4611686018427387904", lambda: groups.padded_rows([2**62, 2**62])),
        ("counts: are 3221225472 rows", lambda: groups.offsets([2**30] * 3)),
        ("counts: are 2147483651 rows", lambda: groups.ends([2**31 - 5, 3], 128)),
        ("counts: are 2147483648 rows", lambda: groups.index([2**30, 2**30], 1)),
        ("alignment = 0: must be 1 or more", lambda: groups.ends([1], 0)),
        ("total = 64: must be at least 128", lambda: groups.index([1, 1], 64, total=64)),
    ):
        with pytest.raises(octet.InvalidArgument) as caught:
            call()
        assert str(caught.value).startswith(sentence)


def test_tensors_in_host_memory_are_looked_at():
    torch = pytest.importorskip("torch")
    for sentence, call in (
        ("counts = tensor([-1,  3]): must be numbers", lambda c: groups.offsets(c([-1, 3]))),
        ("counts = tensor([-300,    3]): must", lambda c: groups.padded_rows(c([-300, 3]))),
        ("total = 64: must be at least 128", lambda c: groups.index(c([3, 3]), 64, 64)),
        ("total = 9: must be 6", lambda c: groups.rows(c([3, 3]), 64, 9)),
    ):
        with pytest.raises(octet.InvalidArgument) as caught:
            call(torch.tensor)
        assert str(caught.value).replace(" ", "").startswith(sentence.replace(" ", ""))


def test_the_reference_quantisers():
    x = RNG.standard_normal((130, 200), dtype=np.float32)
    for block in ("1x128", "128x128"):
        for more in ({}, {"axis": 0, "transpose": True}, {"scale_format": "ue8m0"}):
            one, other = octet.quantize(x, block, **more), octet.ref.quantize(x, block, **more)
            assert one[0].tobytes() == other[0].tobytes() and one[1].tobytes() == other[1].tobytes()
            how = {name: more[name] for name in more if name != "scale_format"}
            back = octet.dequantize(*one, block, **how)
            assert back.tobytes() == octet.ref.dequantize(*one, block, **how).tobytes()
    with pytest.raises(TypeError):
        octet.ref.quantize(x, nothing=1)
