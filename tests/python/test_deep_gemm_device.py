"""octet.deep_gemm for tensors on a device (stand_in.py): bound launches, settings, streams."""

import ml_dtypes
import numpy as np
import pytest
from stand_in import Tensor, bits, operands

import octet
from octet import _structs, deep_gemm

BF16 = ml_dtypes.bfloat16


@pytest.fixture(autouse=True)
def settings():
    yield
    deep_gemm.settings._values.update(num_sms=0, pdl=False, alignment=128, tc_util=100)


@pytest.fixture(autouse=True, params=["in Python", "in C"])
def remembered(request):
    """Where repeated calls are remembered; tests of the device hold for both."""
    if request.param == "in C":
        request.getfixturevalue("quick")


@pytest.fixture
def seen(library, monkeypatch):
    """Problems that plans were asked for."""
    problems = []
    real = library.octet_cuda_gemm

    def gemm(context, problem, args, stream):
        problems.append(octet.GemmProblem._wrap(
            _structs.octet_gemm_problem.from_buffer_copy(problem._obj)))  # fmt: skip
        return real(context, problem, args, stream)

    monkeypatch.setattr(library, "octet_cuda_gemm", gemm)
    return problems


def pairs(arrays):
    a, b, sfa, sfb = [Tensor(x) for x in arrays]
    return (a, sfa), (b, sfb)


def test_a_repeated_call_is_one_bound_launch(library, current, seen):
    arrays, out = operands(), np.zeros((5, 130), BF16)
    wanted = octet.gemm(*arrays)
    for name in ("gemm", "gemm", "bound", "bound"):
        out[:] = 0
        deep_gemm.fp8_gemm_nt(*pairs(arrays), Tensor(out))
        assert library.calls[-1] == (name, 0x700) and bits(out) == bits(wanted)
    assert [str(p) for p in seen] == ["dense_m5n130k256"] * 2
    current[0] = 0x800
    deep_gemm.fp8_gemm_nt(*pairs(arrays), Tensor(out))
    assert library.calls[-1] == ("bound", 0x800)


def test_settings_are_part_of_the_call(library, current, seen):
    arrays, out = operands(), np.zeros((5, 130), BF16)
    for _ in range(3):
        deep_gemm.fp8_gemm_nt(*pairs(arrays), Tensor(out))
    deep_gemm.set_num_sms(78)
    deep_gemm.set_pdl(True)
    for _ in range(3):
        deep_gemm.fp8_gemm_nt(*pairs(arrays), Tensor(out))
    assert [str(p) for p in seen[-2:]] == ["dense_m5n130k256_sms78_pdl"] * 2
    assert library.calls[-1][0] == "bound"


def test_scales_that_had_to_be_copied_are_not_bound(library, current):
    class Spread(Tensor):
        def contiguous(self):
            return Tensor(np.ascontiguousarray(self.array))

    a, b, sfa, sfb = operands()
    wide, out = np.zeros((10, 4), np.float32), np.zeros((5, 130), BF16)
    for seed in range(4):
        wide[::2, ::2] = sfa * (seed + 1)
        wanted = octet.gemm(a, b, wide[::2, ::2].copy(), sfb)
        deep_gemm.fp8_gemm_nt(
            (Tensor(a), Spread(wide[::2, ::2])), (Tensor(b), Tensor(sfb)), Tensor(out)
        )
        assert library.calls[-1][0] == "gemm" and bits(out) == bits(wanted)


def test_grouped(library, current, seen):
    a, b, sfa, sfb = operands(256)
    experts, scales = np.stack([b, b]), np.stack([sfb, sfb])
    out, rows = np.zeros((256, 130), BF16), np.repeat(np.array([1, 0], np.int32), 128)
    wanted = octet.gemm(a, b, sfa, sfb)
    left, right = (Tensor(a), Tensor(sfa)), (Tensor(experts), Tensor(scales))
    for name in ("gemm", "gemm", "bound"):
        out[:] = 0
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(left, right, Tensor(out), Tensor(rows))
        assert library.calls[-1][0] == name and bits(out) == bits(wanted)
    assert str(seen[-1]) == "contiguous_g2m128n130k256"
    ends = np.array([100, 256], np.int32)
    for name in ("gemm", "gemm", "bound"):
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(
            left, right, Tensor(out), Tensor(ends), use_psum_layout=True,
            expected_m_for_psum_layout=96)  # fmt: skip
        assert library.calls[-1][0] == name
    assert str(seen[-1]).startswith("aligned_g2m96n130k256")
    shape = (2, 128)
    masked = [x.reshape(2, 128, -1) for x in (a, np.ascontiguousarray(sfa), out)]
    counts = np.array([3, 128], np.int32)
    for name in ("gemm", "gemm", "bound"):
        out[:] = 0
        deep_gemm.m_grouped_fp8_gemm_nt_masked(
            (Tensor(masked[0]), Tensor(masked[1])), right, Tensor(masked[2]),
            Tensor(counts), 64)  # fmt: skip
        assert library.calls[-1][0] == name
        assert bits(out[:3]) == bits(wanted[:3]) and not out[3:128].astype("f4").any()
        assert bits(out[128:]) == bits(wanted[128:])
    assert str(seen[-1]).startswith("masked_g2m64n130k256") and shape == masked[0].shape[:2]


def test_metadata_that_had_to_be_copied_is_not_bound(library, current):
    class Spread(Tensor):
        def reshape(self, *shape):
            return Tensor(np.ascontiguousarray(self.array.reshape(*shape)))

    a, b, sfa, sfb = operands(256)
    right = (Tensor(np.stack([b, b])), Tensor(np.stack([sfb, sfb])))
    left = (Tensor(a.reshape(2, 128, -1)), Tensor(np.ascontiguousarray(sfa).reshape(2, 128, -1)))
    wide, out = np.zeros((2, 2), np.int32), np.zeros((2, 128, 130), BF16)
    for counts in ([3, 5], [128, 1], [0, 2], [9, 9]):
        out[:] = 0
        wide[:, 0] = counts
        deep_gemm.m_grouped_fp8_gemm_nt_masked(
            left, right, Tensor(out), Spread(wide[:, :1]), 64)  # fmt: skip
        rows = [np.flatnonzero(x.astype("f4").any(1)).size for x in out]
        assert rows == counts


@pytest.mark.parametrize("accumulate", [True, False])
def test_k_grouped(library, current, seen, accumulate):
    rng, sizes = np.random.default_rng(5), [128, 0, 256]
    rows, total, flat = {"a": 16, "b": 32}, sum(sizes), {}
    for name, lines in rows.items():
        codes, scales = octet.quantize_activations(
            rng.standard_normal((lines, total), dtype=np.float32))  # fmt: skip
        flat[name] = np.concatenate([codes[:, :128].ravel(), codes[:, 128:].ravel()]), scales
    ks, start = np.array(sizes, np.int32), rng.standard_normal((3, 16, 32), dtype=np.float32)
    call = deep_gemm.k_grouped_fp8_gemm_nt_contiguous
    wanted = start.copy()
    call(flat["a"], flat["b"], wanted, sizes, ks, wanted if accumulate else None)
    for name in ("gemm", "gemm", "bound", "bound"):
        d = start.copy() if name == "gemm" else d
        d[:] = start
        pairs = [tuple(Tensor(x) for x in flat[y]) for y in "ab"]
        given = Tensor(d)
        call(*pairs, given, sizes, Tensor(ks), given if accumulate else None)
        assert bits(d) == bits(wanted)
    assert [x[0] for x in library.calls[-4:]] == ["gemm", "gemm", "bound", "bound"]
    acc = "_acc" * accumulate
    assert str(seen[-1]) == f"kgrouped_g3m16n32k128_f32{acc}_packed"
    with pytest.raises(octet.InvalidArgument, match="a has shape"):  # other sizes, the same arrays
        call(*pairs, given, [128, 0, 128], Tensor(ks), given if accumulate else None)


def test_k_grouped_operands_that_had_to_be_copied(library, current):
    class Spread(Tensor):
        def reshape(self, *shape):
            return Tensor(np.ascontiguousarray(self.array.reshape(*shape)))

    codes, scales = octet.quantize_activations(np.ones((16, 128), np.float32))
    ks = Tensor(np.array([128], np.int32))
    for factor in (1, 2, 4, 8):
        d = np.zeros((1, 16, 16), np.float32)
        left = Spread(codes), Tensor(scales * np.float32(factor))
        deep_gemm.k_grouped_fp8_gemm_nt_contiguous(
            left, (Spread(codes), Tensor(scales)), Tensor(d), [128], ks)  # fmt: skip
        assert d[0, 0, 0] == pytest.approx(128 * factor, rel=1e-3)
        assert library.calls[-1][0] == "gemm"
