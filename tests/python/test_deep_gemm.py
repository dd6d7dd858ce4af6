"""octet.deep_gemm without PyTorch: its products on NumPy arrays are Octet's own, to the bit."""

import re

import ml_dtypes
import numpy as np
import pytest

import octet
from octet import deep_gemm

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
RNG = np.random.default_rng(21)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def bits(x):
    return np.ascontiguousarray(x).view(np.uint8).tobytes()


@pytest.fixture(autouse=True)
def settings():
    yield
    deep_gemm.settings._values.update(num_sms=0, pdl=False, alignment=128, tc_util=100)


@pytest.fixture(scope="module")
def dense():
    a, b = octet.quantize_activations(normal(37, 320)), octet.quantize_weights(normal(200, 320))
    return a, b, octet.gemm(a[0], b[0], a[1], b[1])


def test_dense(dense):
    a, b, wanted = dense
    for name in ("fp8_gemm_nt", "fp8_fp4_gemm_nt", "gemm_fp8_fp8_bf16_nt"):
        d = np.full((37, 200), 9, BF16)
        assert getattr(deep_gemm, name)(a, b, d) is None
        assert bits(d) == bits(wanted)
    d = np.zeros((37, 200), BF16)
    deep_gemm.fp8_gemm_nt(a, list(b), d, None, (1, 128, 128), None, None, "mnk", True, None)
    assert bits(d) == bits(wanted)
    deep_gemm.fp8_gemm_nt(a, b, d, None, None, "nk", False)  # compiled_dims where it once stood
    assert bits(d) == bits(wanted)
    deep_gemm.fp8_gemm_nt(a, b, d, recipe_a=(1, 128), recipe_b=[128, 128], alpha=1.0)
    assert bits(d) == bits(wanted)
    rows = np.ascontiguousarray(a[1])  # row-major scales, and scales that lie in neither order
    spread = np.repeat(np.repeat(a[1], 2, 0), 2, 1)[::2, ::2]
    for sfa in (rows, spread):
        d[:] = 0
        deep_gemm.fp8_gemm_nt((a[0], sfa), b, d)
        assert bits(d) == bits(wanted)


def test_transposed_names(dense):
    a, b, wanted = dense
    at, bt = (a[0].T, a[1].T), (b[0].T, b[1].T)
    for name, left, right in (("nn", a, bt), ("tn", at, bt), ("tt", at, b)):
        for prefix in ("fp8_gemm_", "fp8_fp4_gemm_"):
            d = np.zeros((37, 200), BF16)
            getattr(deep_gemm, prefix + name)(left, right, d)
            assert bits(d) == bits(wanted)
    other = np.ascontiguousarray(b[0].T)
    with pytest.raises(NotImplementedError, match=r"b has strides \[1, 200\]: must be K-major"):
        deep_gemm.fp8_gemm_nn(a, (other, b[1].T), np.zeros((37, 200), BF16))


def test_accumulation_and_one_scale_per_row():
    a, b = (octet.quantize_activations(normal(m, 256)) for m in (16, 24))
    c = normal(16, 24)
    wanted = octet.gemm(a[0], b[0], a[1], b[1], c=c, granularity="1d1d", out_dtype="f32")
    d = np.zeros((16, 24), np.float32)
    deep_gemm.fp8_gemm_nt(a, b, d, c=c, recipe=(1, 1, 128))
    assert bits(d) == bits(wanted)
    d = c.copy()
    deep_gemm.fp8_gemm_nt(a, b, d, d, None, (1, 128), (1, 128))
    assert bits(d) == bits(wanted)
    d = c.copy()
    deep_gemm.wgrad_gemm_fp8_fp8_fp32_nt(a, b, d)
    assert bits(d) == bits(wanted)


def test_empty_products(dense):
    a, b, _ = dense
    deep_gemm.fp8_gemm_nt((a[0][:0], a[1][:0]), b, np.zeros((0, 200), BF16))
    nothing = np.zeros((37, 0), E4M3), np.zeros((37, 0), np.float32)
    none = np.zeros((200, 0), E4M3), np.zeros((2, 0), np.float32)
    d = np.full((37, 200), 3, BF16)
    deep_gemm.fp8_gemm_nt(nothing, none, d)
    assert not d.astype("f4").any()
    c = normal(37, 200).astype(BF16)
    deep_gemm.fp8_gemm_nt(nothing, none, d, c)
    assert bits(d) == bits(c)


@pytest.fixture(scope="module")
def experts():
    return octet.quantize_weights(normal(3, 72, 256))


@pytest.mark.parametrize("alignment", [128, 64])
def test_contiguous(experts, alignment):
    deep_gemm.set_mk_alignment_for_contiguous_layout(alignment)
    assert deep_gemm.get_m_alignment_for_contiguous_layout() == alignment
    real = [50, 0, 100]
    rows = [deep_gemm.align(n, alignment) for n in real]
    index = np.full(sum(rows), -1, np.int32)
    for g, n in enumerate(real):
        index[sum(rows[:g]) : sum(rows[:g]) + n] = g
    a = octet.quantize_activations(normal(sum(rows), 256))
    args = (a[0], experts[0], a[1], experts[1])
    wanted = octet.gemm_contiguous(*args, index, alignment=alignment)
    for name in ("m_grouped_fp8_gemm_nt_contiguous", "m_grouped_fp8_fp4_gemm_nt_contiguous",
                 "m_grouped_gemm_fp8_fp8_bf16_nt_contiguous"):  # fmt: skip
        d = np.full((sum(rows), 72), 5, BF16)
        getattr(deep_gemm, name)(a, experts, d, index)
        assert bits(d) == bits(wanted)
    kept = np.full((sum(rows), 72), 5, BF16)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous(
        a, experts, kept, m_indices=index, ensure_zero_padding=False
    )
    assert (kept[index < 0] == 5).all() and bits(kept[index >= 0]) == bits(wanted[index >= 0])
    flipped = experts[0].swapaxes(1, 2), experts[1].swapaxes(1, 2)
    deep_gemm.m_grouped_fp8_gemm_nn_contiguous(a, flipped, kept, index)
    assert bits(kept) == bits(wanted)
    ends = np.cumsum([0, *rows[:-1]]).astype(np.int32) + np.array(real, np.int32)
    psum = np.full((sum(rows), 72), 5, BF16)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous(
        a, experts, psum, ends, use_psum_layout=True, expected_m_for_psum_layout=40
    )
    assert bits(psum[index >= 0]) == bits(wanted[index >= 0])
    assert (psum[index < 0] == 5).all()  # as on SM90


def test_contiguous_of_another_alignment_is_refused(experts):
    a = octet.quantize_activations(normal(128, 256))
    index = np.repeat(np.array([0, 2], np.int32), 64)
    with pytest.raises(octet.InvalidArgument, match=r"group_index\[64\] = 2: must be 0"):
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a, experts, np.zeros((128, 72), BF16), index)


def test_masked(experts):
    a = octet.quantize_activations(normal(3, 20, 256))
    counts = np.array([20, 0, 7], np.int32)
    wanted = octet.gemm_masked(a[0], experts[0], a[1], experts[1], counts, expected_m=9)
    names = ("m_grouped_fp8_gemm_nt_masked", "m_grouped_fp8_fp4_gemm_nt_masked",
             "fp8_m_grouped_gemm_nt_masked", "m_grouped_gemm_fp8_fp8_bf16_nt_masked")  # fmt: skip
    for name in names:
        d = np.full((3, 20, 72), 5, BF16)
        getattr(deep_gemm, name)(a, experts, d, counts, 9)
        for g, n in enumerate(counts):
            assert bits(d[g, :n]) == bits(wanted[g, :n]) and (d[g, n:] == 5).all()
    again = np.zeros_like(d)
    deep_gemm.m_grouped_fp8_gemm_nt_masked(
        a, experts, again, counts.reshape(3, 1), 20, max_block_n=256, enable_overlap=False
    )
    assert bits(again[0]) == bits(wanted[0])


@pytest.mark.parametrize("ks", [[128, 256, 0, 128], [0, 0], []])
def test_k_grouped(ks):
    m, n, groups = 12, 20, len(ks)
    parts = [[octet.quantize_activations(normal(rows, max(k, 1)))
              for rows in (m, n)] for k in ks]  # fmt: skip
    data, scales = [], []
    for side in (0, 1):
        data.append(np.concatenate([np.zeros(0, E4M3)] + [
            np.ascontiguousarray(p[side][0]).ravel() for p, k in zip(parts, ks) if k]))  # fmt: skip
        rows = (m, n)[side]
        columns = [np.zeros((0, rows), np.float32)]
        columns += [p[side][1].T for p, k in zip(parts, ks) if k]
        scales.append(np.concatenate(columns).T)
    counts = np.array(ks, np.int32)
    c = normal(groups, m, n)
    for accumulate in (True, False):
        d = c.copy() if accumulate else np.full((groups, m, n), np.nan, np.float32)
        deep_gemm.k_grouped_fp8_gemm_nt_contiguous(
            (data[0], scales[0]), (data[1], scales[1]), d, ks, counts, d if accumulate else None
        )
        for g, k in enumerate(ks):
            start = c[g] if accumulate else np.zeros((m, n), np.float32)
            left, right = parts[g]
            alone = start if k == 0 else octet.gemm(
                left[0], right[0], left[1], right[1], c=start, granularity="1d1d")  # fmt: skip
            assert np.array_equal(d[g], alone)


def refusals(dense, experts):
    a, b, _ = dense
    d = np.zeros((37, 200), BF16)
    nt, masked = deep_gemm.fp8_gemm_nt, deep_gemm.m_grouped_fp8_gemm_nt_masked
    k_grouped = deep_gemm.k_grouped_fp8_gemm_nt_contiguous
    bad, no = octet.InvalidArgument, NotImplementedError
    yield bad, "a is a ndarray: must be a pair", lambda: nt(a[0], b, d)
    yield bad, "d is None: must be an array", lambda: nt(a, b, None)
    yield bad, "d is None: must be an array", lambda: masked(
        octet.quantize_activations(normal(3, 8, 256)), experts, None, np.zeros(3, np.int32),
        4)  # fmt: skip
    yield bad, r"out has shape \[37, 199\]: must be \[37, 200\]", lambda: nt(a, b, d[:, :199])
    yield bad, "sfa has dtype float64: must be float32", lambda: nt(
        (a[0], a[1].astype(np.float64)), b, d)  # fmt: skip
    yield no, "sfb has dtype int32 .packed UE8M0.: must be float32", lambda: nt(
        a, (b[0], b[1].view(np.int32)), d)  # fmt: skip
    yield no, "b has dtype int8: must be float8_e4m3fn; FP4", lambda: nt(
        a, (b[0].view(np.int8), b[1]), d)  # fmt: skip
    yield no, r"recipe = \(1, 1, 32\): must be \(1, 128, 128\)", lambda: nt(
        a, b, d, recipe=(1, 1, 32))  # fmt: skip
    yield no, "recipe = 'x'", lambda: nt(a, b, d, recipe="x")
    yield no, r"recipe_a = \(1, 32\)", lambda: nt(a, b, d, recipe_a=(1, 32), recipe_b=(1, 32))
    yield bad, "recipe_a and recipe_b: must both", lambda: nt(a, b, d, recipe_a=(1, 128))
    yield bad, "recipe is given beside", lambda: nt(
        a, b, d, recipe=(1, 128, 128), recipe_a=(1, 128), recipe_b=(1, 128))  # fmt: skip
    yield no, "alpha = 0.5: must be None", lambda: nt(a, b, d, alpha=0.5)
    yield bad, "sfb has shape", lambda: nt(a, b, d, recipe=(1, 1, 128))
    am = octet.quantize_activations(normal(3, 8, 256))
    dm, counts = np.zeros((3, 8, 72), BF16), np.array([1, 2, 3], np.int32)
    yield bad, "enable_overlap = True: must be False", lambda: masked(
        am, experts, dm, counts, 4, enable_overlap=True)  # fmt: skip
    yield bad, "signal is given: must be None", lambda: masked(
        am, experts, dm, counts, 4, signal=counts)  # fmt: skip
    yield bad, "max_block_n = 160: must be left alone", lambda: masked(
        am, experts, dm, counts, 4, max_block_n=160)  # fmt: skip
    yield bad, "group_counts has dtype int64: must be int32", lambda: masked(
        am, experts, dm, counts.astype(np.int64), 4)  # fmt: skip
    yield bad, r"group_counts has shape \[2, 1\]: must be \[3\], one", lambda: masked(
        am, experts, dm, counts[:2].reshape(2, 1), 4)  # fmt: skip
    ak = octet.quantize_activations(normal(128, 256))
    contiguous = deep_gemm.m_grouped_fp8_gemm_nt_contiguous
    yield bad, "expected_m_for_psum_layout = 4: must be None", lambda: contiguous(
        ak, experts, np.zeros((128, 72), BF16), counts, expected_m_for_psum_layout=4)  # fmt: skip
    yield bad, "grouped_layout is None", lambda: contiguous(ak, experts, np.zeros((128, 72), BF16))
    flat, dk = ak[0].reshape(-1)[: 128 * 128], np.zeros((1, 128, 128), np.float32)
    one = np.array([128], np.int32)
    sf = np.ones((128, 1), np.float32)
    yield no, "use_psum_layout = True", lambda: k_grouped(
        (flat, sf), (flat, sf), dk, [128], one, use_psum_layout=True)  # fmt: skip
    yield no, r"recipe = \(1, 128, 128\): must be \(1, 1, 128\) in K-grouped", lambda: k_grouped(
        (flat, sf), (flat, sf), dk, [128], one, recipe=(1, 128, 128))  # fmt: skip
    yield bad, r"ks_cpu\[0\] = 100: must be a multiple of 128", lambda: k_grouped(
        (flat, sf), (flat, sf), dk, [100], one)  # fmt: skip
    yield bad, "ks_cpu = None: must be a list", lambda: k_grouped(
        (flat, sf), (flat, sf), dk, None, one)  # fmt: skip
    yield bad, "grouped_layout is None", lambda: k_grouped((flat, sf), (flat, sf), dk, [128])
    yield bad, r"d has shape \[1, 128, 128\]: must be \[2, M, N\]", lambda: k_grouped(
        (flat, sf), (flat, sf), dk, [128, 0], one)  # fmt: skip
    yield bad, r"b has shape \[12800\]: must be \[16384\]", lambda: k_grouped(
        (flat, sf), (flat[:12800], sf), dk, [128], one)  # fmt: skip


def test_refusals_are_one_sentence(dense, experts):
    for kind, sentence, call in refusals(dense, experts):
        with pytest.raises(kind) as caught:
            call()
        assert re.match(sentence, str(caught.value)), str(caught.value)


def test_settings():
    everything = octet.DeviceSpec.preset("h200").sms
    assert deep_gemm.get_num_sms() == everything or deep_gemm.get_num_sms() > 0
    deep_gemm.set_num_sms(20)
    assert deep_gemm.get_num_sms() == 20 and deep_gemm.settings.options() == (20, False)
    for wrong in (0, -1, 10**6, True, "20", 2.5):
        with pytest.raises(octet.InvalidArgument, match="new_num_sms = "):
            deep_gemm.set_num_sms(wrong)
    assert deep_gemm.get_pdl() is False
    deep_gemm.set_pdl(True)
    assert deep_gemm.get_pdl() is True
    deep_gemm.set_tc_util(80)
    assert deep_gemm.get_tc_util() == 80
    for alignment in (256, 32):
        deep_gemm.utils.set_mk_alignment_for_contiguous_layout(alignment)
        for name in ("mk", "m", "k"):
            get = getattr(deep_gemm, f"get_{name}_alignment_for_contiguous_layout")
            assert get() == alignment
    assert deep_gemm.get_theoretical_mk_alignment_for_contiguous_layout(4, num_groups=2) == 128
    deep_gemm.set_block_size_multiple_of(2, 3)
    deep_gemm.set_ignore_compile_dims(True)
    deep_gemm.use_deterministic_algorithms(True)
    assert deep_gemm.ceil_div(7, 4) == 2 and deep_gemm.align(7, 4) == 8
    assert deep_gemm.get_tma_aligned_size(5, 4) == 8 and deep_gemm.get_tma_aligned_size(5, 1) == 16
