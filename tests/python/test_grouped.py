"""Grouped problems: every group's rows have the bits of a dense product of their own."""

import re

import ml_dtypes
import numpy as np
import pytest

import octet

BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(11)
G, N, K = 4, 72, 300


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def bits(x):
    return np.ascontiguousarray(x).view(np.uint8).tobytes()


@pytest.fixture(scope="module")
def weights():
    return octet.quantize_weights(normal(G, N, K))


def same_rows(d, rows, g, a, sfa, weights, **more):
    b, sfb = weights
    alone = octet.gemm(a[rows], b[g], sfa[rows], sfb[g], **more)
    assert bits(d[rows]) == bits(alone), (rows, g)


def test_contiguous(weights):
    a, sfa = octet.quantize_activations(normal(256, K))
    index = np.repeat(np.array([2, 0, 0, 3], np.int32), 64)
    index[50:64] = -1
    index[200:] = -1
    d = octet.gemm_contiguous(a, weights[0], sfa, weights[1], index, alignment=64)
    for rows, g in (((0, 50), 2), ((64, 192), 0), ((192, 200), 3)):
        same_rows(d, slice(*rows), g, a, sfa, weights)
    assert not d[index == -1].astype(np.float32).any()
    kept = np.full((256, N), 5, np.float32)
    octet.gemm_contiguous(
        a, weights[0], sfa, weights[1], index, kept, alignment=64, zero_padding=False
    )
    assert (kept[index == -1] == 5).all()
    assert bits(kept[:50].astype(BF16)) == bits(d[:50])


def test_contiguous_of_another_alignment_is_refused(weights):
    # Whatever row of a block breaks it: a run would store zeros there and say nothing.
    a, sfa = octet.quantize_activations(normal(256, K))
    call = lambda index, **k: octet.gemm_contiguous(  # noqa: E731
        a, weights[0], sfa, weights[1], index, **k)
    index = np.repeat(np.array([2, 0, 1, 3], np.int32), 64)
    call(index, alignment=64)
    out = np.full((256, N), 7, np.float32)
    with pytest.raises(octet.InvalidArgument, match=r"group_index\[64\] = 0: must be 2"):
        call(index, out=out)  # alignment 128
    plan = octet.plan(f"contiguous_g{G}m64n{N}k{K}_f32")
    with pytest.raises(octet.InvalidArgument, match=r"group_index\[64\] = 0: must be 2"):
        octet.cpu.run(plan, a, weights[0], sfa, weights[1], out, group_index=index)
    assert (out == 7).all()
    for row, group in ((1, 0), (63, 1), (64, 4), (128, -2), (255, 2), (200, 1)):
        bad = index.copy()
        bad[row] = group
        with pytest.raises(octet.InvalidArgument, match=rf"group_index\[{row}|group_index\[65"):
            call(bad, alignment=64)
    bad = index.copy()
    bad[10] = -1  # padding in the middle of a block
    with pytest.raises(octet.InvalidArgument, match=r"group_index\[11\] = 2"):
        call(bad, alignment=64)
    short = index[:200]
    octet.gemm_contiguous(a[:200], weights[0], sfa[:200], weights[1], short, alignment=64)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_offsets(weights, index_type):
    a, sfa = octet.quantize_activations(normal(50, K))
    offsets = np.array([3, 20, 20, 45, 47], index_type)
    bias = normal(G, N)
    d = octet.gemm_offsets(a, weights[0], sfa, weights[1], offsets, bias=bias, expected_m=12,
                           out_dtype="f32")  # fmt: skip
    for g in range(G):
        rows = slice(offsets[g], offsets[g + 1])
        same_rows(d, rows, g, a, sfa, weights, bias=bias[g], out_dtype="f32")
    assert not d[:3].any() and not d[47:].any()


def test_aligned(weights):
    a, sfa = octet.quantize_activations(normal(60, K))
    ends = np.array([5, 21, 21, 60], np.int32)
    d = octet.gemm_aligned(a, weights[0], sfa, weights[1], ends, alignment=8)
    for rows, g in (((0, 5), 0), ((8, 21), 1), ((24, 60), 3)):
        same_rows(d, slice(*rows), g, a, sfa, weights)
    assert not d[5:8].astype(np.float32).any()


def test_masked(weights):
    a, sfa = octet.quantize_activations(normal(G, 20, K))
    counts = np.array([20, 0, 7, 1], np.int32)
    d = octet.gemm_masked(a, weights[0], sfa, weights[1], counts, expected_m=7)
    for g in range(G):
        same_rows(d[g], slice(0, counts[g]), g, a[g], sfa[g], weights)
        assert not d[g, counts[g] :].astype(np.float32).any()


def test_kgrouped_from_tokens():
    # Weight gradients: tokens of each expert, quantised along the token axis and transposed.
    tokens, m, n = [130, 0, 256], 40, 24
    starts = np.array([0, 256, 256], np.int64)
    total = 512
    x, y = normal(total, m), normal(total, n)
    x[130:256] = y[130:256] = 0
    a, sfa = octet.quantize(x, axis=0, transpose=True)
    b, sfb = octet.quantize(y, axis=0, transpose=True)
    assert a.shape == (m, total) and sfa.shape == (m, 4)
    counts = np.array(tokens, np.int64)
    c = normal(3, m, n)
    d = octet.gemm_kgrouped(a, b, sfa, sfb, starts, counts, c=c)
    assert d.shape == (3, m, n) and d.dtype == np.float32
    for g, (start, count) in enumerate(zip(starts, tokens)):
        ka = slice(start, start + count)
        blocks = slice(start // 128, start // 128 + -(-count // 128))
        alone = octet.gemm(a[:, ka], b[:, ka], sfa[:, blocks], sfb[:, blocks], c=c[g],
                           granularity="1d1d")  # fmt: skip
        assert bits(d[g]) == bits(alone)
    wanted = np.einsum("tm,tn->mn", x[256:], y[256:]) + c[2]
    assert np.abs(d[2] - wanted).max() < 0.1 * np.abs(wanted).max()


def test_packed_kgrouped():
    m, n, ks = 8, 16, np.array([128, 256], np.int32)
    parts = [(octet.quantize_activations(normal(m, k)), octet.quantize_activations(normal(n, k)))
             for k in ks]  # fmt: skip
    a = np.concatenate([np.ascontiguousarray(p[0][0]).ravel() for p in parts])
    b = np.concatenate([np.ascontiguousarray(p[1][0]).ravel() for p in parts])
    sfa = np.asfortranarray(np.concatenate([p[0][1] for p in parts], 1))
    sfb = np.asfortranarray(np.concatenate([p[1][1] for p in parts], 1))
    plan = octet.plan("kgrouped_g2m8n16k192_f32_packed")
    d = octet.cpu.run(plan, a, b, sfa, sfb, group_counts=ks)
    assert bits(d) == bits(octet.ref.run(plan, a, b, sfa, sfb, group_counts=ks))
    for g, (left, right) in enumerate(parts):
        alone = octet.gemm(left[0], right[0], left[1], right[1], out_dtype="f32")
        assert bits(d[g]) == bits(alone)
    with pytest.raises(octet.InvalidArgument, match=r"b has shape \[6016\]: must be"):
        octet.cpu.run(plan, a, b[:-128], sfa, sfb, group_counts=ks)


def test_no_groups():
    b, sfb = np.zeros((0, N, 128), np.uint8), np.zeros((0, 1, 1), np.float32)
    a, sfa = octet.quantize_activations(normal(3, 128))
    d = octet.gemm_offsets(
        a.view(np.uint8), b, sfa, sfb, np.zeros(1, np.int32), dtype="e4m3", out_dtype="f32"
    )
    assert not d.any()


def refusals(weights):
    b, sfb = weights
    a, sfa = octet.quantize_activations(normal(64, K))
    i32 = lambda *x: np.array(x, np.int32)  # noqa: E731
    call = lambda o, **k: octet.gemm_offsets(a, b, sfa, sfb, o, **k)  # noqa: E731
    yield "group_offsets has shape [4] and strides [1]: must be [5]", lambda: call(i32(0, 1, 2, 3))
    yield "group_offsets has shape [5] and strides [2]: must be [5], contiguous", lambda: call(
        i32(*range(10))[::2])  # fmt: skip
    yield "group_offsets has dtype float32: must be int32 or int64", lambda: call(
        np.zeros(5, np.float32))  # fmt: skip
    yield "group_offsets is null: offsets problems read groups + 1", lambda: call(None)
    yield "group_offsets = [0, 1]: must be an array", lambda: call([0, 1])
    made = "__dlpack__); numpy.array({}, 'int32') makes one of a {}".format
    more = a, b, sfa, sfb
    for sentence, of_list in [
        (made("group_offsets", "list"), lambda: octet.gemm_offsets(*more, [0, 1, 2, 3, 4])),
        (made("group_index", "list"), lambda: octet.gemm_contiguous(*more, [0] * 64)),
        (made("group_ends", "tuple"), lambda: octet.gemm_aligned(*more, (1, 2, 3, 4))),
        (made("group_counts", "list"), lambda: octet.gemm_masked(*more, [1, 2, 3, 4])),
        (made("group_counts", "list"), lambda: octet.gemm_kgrouped(a, a, sfa, sfa, i32(0), [K])),
        (made("group_offsets", "list"), lambda: octet.gemm_kgrouped(a, a, sfa, sfa, [0], i32(K))),
    ]:
        yield re.compile(r"group_\w+ = [\[(].*: must be an array .*" + re.escape(sentence)), of_list
    yield "group_index has dtype int64: must be int32", lambda: octet.gemm_contiguous(
        a, b, sfa, sfb, np.zeros(64, np.int64))  # fmt: skip
    yield "alignment = 100: must be a positive multiple of 64", lambda: octet.gemm_contiguous(
        a, b, sfa, sfb, np.zeros(64, np.int32), alignment=100)  # fmt: skip
    yield "sfb has shape [3, 1, 3]: must be [4, 1, 3]", lambda: octet.gemm_offsets(
        a, b, sfa, sfb[:3], i32(0, 1, 2, 3, 4))  # fmt: skip
    yield "b has shape [72, 300]: must be K last, 3 dimensions", lambda: octet.gemm_offsets(
        a, b[0], sfa, sfb, i32(0, 1, 2, 3, 4))  # fmt: skip
    yield "a has shape [64, 300]: must be K last, 3 dimensions (masked)", lambda: octet.gemm_masked(
        a, b, sfa, sfb, i32(0, 1, 2, 3))  # fmt: skip
    yield "a has shape [3, 64, 300]: must be [groups, M, K], 4 groups in the first", lambda: (
        octet.gemm_masked(np.stack([a] * 3), b, sfa, sfb, i32(0, 1, 2, 3)))  # fmt: skip
    yield "group_counts is None", lambda: octet.gemm_kgrouped(a, a, sfa, sfa, i32(0), None)


def test_refusals_are_one_sentence(weights):
    for sentence, call in refusals(weights):
        with pytest.raises(octet.InvalidArgument) as caught:
            call()
        said = str(caught.value)
        as_wanted = (
            said.startswith(sentence) if isinstance(sentence, str) else sentence.fullmatch(said)
        )
        assert as_wanted, said


def test_bad_metadata_is_clamped_and_named(weights):
    b, sfb = weights
    a, sfa = octet.quantize_activations(normal(64, K))
    offsets = np.array([0, 10, 5, 64, 2**31 - 1], np.int32)
    d = octet.gemm_offsets(a, b, sfa, sfb, offsets)
    same_rows(d, slice(0, 10), 0, a, sfa, weights)
    plan = octet.plan(f"offsets_g{G}m16n{N}k{K}")
    with pytest.raises(octet.InvalidArgument, match=r"group_offsets\[2\] = 5: must be at least 10"):
        octet.validate(plan, a, b, sfa, sfb, group_offsets=offsets)
