"""octet.deep_gemm given what is no operand: a sentence, never an exception from inside."""

import copy
import functools
import os
import sys

import numpy as np
import pytest

import octet
from octet import deep_gemm
from octet.deep_gemm import shim

try:
    import torch
except ImportError:
    torch = None

pytestmark = [
    pytest.mark.torch, pytest.mark.skipif(torch is None, reason="no PyTorch installed")
]  # fmt: skip
NOTHING = [None, 3, "text", [], object(), np.float32(1)]


def codes(*shape):
    return torch.ones(*shape).to(torch.float8_e4m3fn)


def operands(m=128, n=128, k=128):
    return (codes(m, k), torch.ones(m, k // 128)), (codes(n, k), torch.ones(n // 128, k // 128))


def tensors():
    return [torch.tensor(1.0), torch.ones(7), codes(7), torch.ones(2, 3, 4, 5),
            torch.ones(3, 3).to_sparse(), torch._neg_view(torch.ones(128, 1)),
            torch.ones(0, 5), np.ones((4, 4)), torch.ones(128, 1, dtype=torch.int32)]  # fmt: skip


@functools.lru_cache(maxsize=None)
def calls():
    """name -> (function, arguments that are right)"""
    a, b = operands()
    d, d32 = torch.zeros(128, 128, dtype=torch.bfloat16), torch.zeros(128, 128)
    turned = b[0].t(), b[1].t()
    left = a[0].t(), a[1].t()
    experts = codes(2, 128, 128), torch.ones(2, 1, 1)
    rows = torch.zeros(128, dtype=torch.int32)
    masked = (codes(2, 64, 128), torch.ones(2, 64, 1)), torch.zeros(2, 64, 128, dtype=d.dtype)
    counts = torch.tensor([3, 5], dtype=torch.int32)
    packed = (codes(128 * 256), torch.ones(128, 2)), torch.zeros(2, 128, 128)
    older = packed[0][0], torch.ones(2, 128)
    ks = torch.tensor([128, 128], dtype=torch.int32)
    x, y = torch.ones(64, 128), torch.ones(64, 128, dtype=torch.bfloat16)
    d64, dg = torch.zeros(64, 64), deep_gemm
    fp4 = dg.per_token_cast_to_fp4(x, True)
    rows4 = torch.ones(8, 4)
    found = {
        "nt": (dg.fp8_gemm_nt, [a, b, d]),
        "nn": (dg.fp8_gemm_nn, [a, turned, d]),
        "tn": (dg.fp8_gemm_tn, [left, turned, d]),
        "tt": (dg.fp8_gemm_tt, [left, b, d]),
        "c": (dg.fp8_gemm_nt, [a, b, d32, d32.clone()]),
        "older": (dg.gemm_fp8_fp8_bf16_nt, [a, b, d]),
        "wgrad": (dg.wgrad_gemm_fp8_fp8_fp32_nt, [a, (b[0], torch.ones(128, 1)), d32]),
        "contiguous": (dg.m_grouped_fp8_gemm_nt_contiguous, [a, experts, d, rows]),
        "contiguous nn": (
            dg.m_grouped_fp8_gemm_nn_contiguous,
            [a, (experts[0].mT, experts[1].mT), d, rows]),
        "masked": (dg.m_grouped_fp8_gemm_nt_masked, [masked[0], experts, masked[1], counts, 4]),
        "k grouped": (
            dg.k_grouped_fp8_gemm_nt_contiguous,
            [packed[0], packed[0], packed[1], [128, 128], ks]),
        "k grouped, older": (
            dg.k_grouped_wgrad_gemm_fp8_fp8_fp32_nt, [older, older, packed[1], [128, 128]]),
        "unscaled": (dg.cublaslt_gemm_nt, [x, x.clone(), d64, d64.clone()]),
        "unscaled nn": (dg.cublaslt_gemm_nn, [x, x.t().clone(), d64]),
        "unscaled tn": (dg.cublaslt_gemm_tn, [x.t().clone(), x.t().clone(), d64]),
        "unscaled tt": (dg.cublaslt_gemm_tt, [x.t().clone(), x, d64]),
        "columns": (dg.get_mn_major_tma_aligned_tensor, [rows4]),
        "packed columns": (dg.get_mn_major_tma_aligned_packed_ue8m0_tensor, [rows4]),
        "packed groups": (
            dg.get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor,
            [torch.ones(2, 8), ks, [128, 128]]),
        "packed psum": (
            lambda sf, ends: dg.get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(
                sf, ends, use_psum_layout=True),
            [torch.ones(2, 8), torch.tensor([128, 256], dtype=torch.int32)]),
        "required": (dg.transform_sf_into_required_layout, [rows4, 8, 512, (1, 128), None]),
        "per token": (dg.per_token_cast_to_fp8, [y]),
        "per channel": (dg.per_channel_cast_to_fp8, [torch.ones(128, 64)]),
        "per block": (dg.per_block_cast_to_fp8, [y]),
        "per dims": (dg.per_custom_dims_cast_to_fp8, [y, (0,)]),
        "fp4": (dg.per_token_cast_to_fp4, [x]),
        "fp4 back": (dg.cast_back_from_fp4, list(fp4)),
        "fp4 turned": (dg.transpose_packed_fp4, [fp4[0]]),
        "ceil": (dg.ceil_to_ue8m0, [x]),
        "pack": (dg.pack_ue8m0_to_int, [rows4]),
        "unpack": (dg.unpack_ue8m0_from_int, [dg.pack_ue8m0_to_int(rows4)]),
        "calc_diff": (dg.calc_diff, [x, x]),
        "bitwise": (dg.testing.assert_bitwise_equal, [x, x]),
        "sizes": (dg.get_tma_aligned_size, [3, 4]),
    }  # fmt: skip
    return found


def fresh(name):
    """A call of one's own to spoil."""
    call, right = calls()[name]
    return call, copy.deepcopy(right)


def ends_well(name, call, arguments):
    try:
        call(*arguments)
    except octet.Error as error:
        assert str(error)
    except AssertionError:
        assert name == "bitwise"  # what it is for
    except Exception as error:
        shown = [getattr(x, "shape", x) for x in arguments]
        raise AssertionError(f"{type(error).__name__}: {error} of {name}({shown})") from error


NAMES = (
    "nt", "nn", "tn", "tt", "c", "older", "wgrad", "contiguous", "contiguous nn", "masked",
    "k grouped", "k grouped, older", "unscaled", "unscaled nn", "unscaled tn", "unscaled tt",
    "columns", "packed columns", "packed groups", "packed psum", "required", "per token",
    "per channel", "per block", "per dims", "fp4", "fp4 back", "fp4 turned", "ceil", "pack",
    "unpack", "calc_diff", "bitwise", "sizes",
)  # fmt: skip


def test_every_call_is_tried():
    assert sorted(NAMES) == sorted(calls())


@pytest.mark.parametrize("name", NAMES)
def test_operands_that_are_none(name):
    call, right = fresh(name)
    call(*right)
    may_be_none = {("c", 3), ("unscaled", 3), ("masked", 4), ("required", 4), ("packed groups", 1)}
    for place in range(len(right)):
        for wrong in [*NOTHING, *tensors()]:
            whole = fresh(name)[1]
            whole[place] = wrong
            ends_well(name, call, whole)
            if isinstance(right[place], tuple) and name not in ("required", "per dims"):
                for member in range(2):
                    whole = fresh(name)[1]
                    pair = list(whole[place])
                    pair[member] = wrong
                    whole[place] = tuple(pair)
                    ends_well(name, call, whole)
        if (name, place) not in may_be_none:
            whole = fresh(name)[1]
            whole[place] = None
            with pytest.raises((octet.Error, AssertionError)):
                call(*whole)


def test_counts_that_contradict_each_other():
    call, right = fresh("k grouped")
    for ks in ([256, 0], [0, 256]):
        with pytest.raises(octet.InvalidArgument, match=r"grouped_layout holds \[128, 128\]: must"):
            call(*right[:3], ks, right[4])
    for ks in ([128.0, 128.0], ["128", "128"], 256, None):
        with pytest.raises(octet.InvalidArgument, match="ks_cpu = .*must be a list"):
            call(*right[:3], ks, right[4])


def test_a_product_does_not_write_over_what_it_reads():
    nt = deep_gemm.cublaslt_gemm_nt
    whole = torch.randn(64, 192)
    a, b = whole[:, :64], torch.randn(64, 64)
    for d in (a, a.t(), whole[:, 32:96], whole[1:, :64].new_empty(0).set_(
              whole.untyped_storage(), 100, (64, 64), (64, 1))):  # fmt: skip
        with pytest.raises(octet.InvalidArgument, match="d overlaps a: must lie in memory of its"):
            nt(a, b, d)
        with pytest.raises(octet.InvalidArgument, match="d overlaps b"):
            nt(b, a, d)
        with pytest.raises(octet.InvalidArgument, match="d overlaps c"):
            nt(b, b.clone(), whole[:, 64:128], whole[:, 65:129])
    exact = a @ b.t()
    for d in (whole[:, 64:128], whole[:, 128:], torch.empty(64, 64), torch.empty(64, 64).t()):
        nt(a, b, d)
        assert torch.equal(d, exact) or float(deep_gemm.calc_diff(d, exact)) < 1e-9
        nt(a, b, d, d)
        assert float(deep_gemm.calc_diff(d, 2 * exact)) < 1e-9


@pytest.mark.parametrize("wrong", [-1.0, -0.0, float("inf"), float("nan"), 3.0, 1e-40])
def test_only_powers_of_two_are_packed(wrong):
    sf = torch.ones(8, 3)
    sf[5, 1] = wrong
    layout = deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor
    grouped = deep_gemm.get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor
    ks = torch.tensor([8 * 128], dtype=torch.int32)
    for call in (lambda: layout(sf), lambda: grouped(sf, ks, [8 * 128])):
        with pytest.raises(octet.InvalidArgument, match="sf holds no powers of two"):
            call()
    packed = layout(sf, psum_layout=ks)  # rows that do not count may hold anything
    assert packed[5, 0] == 127 | 255 << 8 | 127 << 16 and packed[4, 0] == 127 | 127 << 8 | 127 << 16
    sf[5, 1] = 0  # padding
    assert layout(sf)[5, 0] == 127 | 127 << 16


def test_scales_that_want_gradients_are_packed():
    sf = torch.ones(8, 4, requires_grad=True)
    assert deep_gemm.get_mn_major_tma_aligned_packed_ue8m0_tensor(sf)[0, 0] == 0x7F7F7F7F
    assert deep_gemm.pack_ue8m0_to_int(sf)[0, 0] == 0x7F7F7F7F


def test_differences_of_numpy_and_pytorch():
    x = torch.randn(4, 5)
    for one, other in ((x, x.numpy()), (x.numpy(), x), (x.double().numpy(), x.numpy())):
        assert abs(float(deep_gemm.calc_diff(one, other))) < 1e-12
    assert float(deep_gemm.calc_diff(x, -x.numpy())) == pytest.approx(2)
    for wrong in (None, 3, [1.0]):
        with pytest.raises(octet.InvalidArgument, match="y = .*must be a PyTorch tensor or a Num"):
            deep_gemm.calc_diff(x, wrong)


def test_folders_of_the_shim(tmp_path):
    assert shim.write(os.fsencode(tmp_path / "bytes")) == str(tmp_path / "bytes")
    assert shim.write(tmp_path / "path") == str(tmp_path / "path")
    for name in ("deep_gemm.py", "deep_gemm"):
        folder = tmp_path / f"dangling_{name}"
        folder.mkdir()
        (folder / name).symlink_to(folder / "nowhere")
        with pytest.raises(FileExistsError, match="is there"):
            shim.write(folder)
        assert shim.main([str(folder)]) == 2 and not (folder / "nowhere").exists()
    folder = tmp_path / "file"
    folder.mkdir()
    (folder / "deep_gemm").write_text("mine")
    with pytest.raises(FileExistsError, match="is there and no folder: it is left as it is"):
        shim.write(folder)
    assert "deep_gemm" not in sys.modules
