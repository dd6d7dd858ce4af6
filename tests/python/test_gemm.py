"""Dense and batched products on the CPU backend, from NumPy arrays."""

import threading
import time

import ml_dtypes
import numpy as np
import pytest

import octet

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def operands(m, n, k):
    a, sfa = octet.quantize_activations(normal(m, k))
    b, sfb = octet.quantize_weights(normal(n, k))
    return a, b, sfa, sfb


def bits(x):
    return np.ascontiguousarray(x).view(np.uint8).tobytes()


def exact(a, b, sfa, sfb):
    """The product of the dequantised operands in float64, and the sum of its absolute terms."""
    x = a.astype(np.float64) * np.repeat(sfa, 128, -1)[..., : a.shape[-1]]
    y = np.repeat(sfb, 128, -1)[..., : b.shape[-1]]
    if sfb.shape[-2] != b.shape[-2]:
        y = np.repeat(y, 128, -2)[..., : b.shape[-2], :]
    y = b.astype(np.float64) * y
    return x @ np.swapaxes(y, -1, -2), np.abs(x) @ np.swapaxes(np.abs(y), -1, -2)


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 130, 103), (33, 70, 300), (128, 256, 512),
                                   (0, 4, 16), (4, 0, 16), (4, 8, 0)])  # fmt: skip
@pytest.mark.parametrize("out_dtype", ["bf16", "f16", "f32"])
def test_gemm_has_the_bits_of_ref(shape, out_dtype):
    m, n, k = shape
    args = operands(m, n, k)
    d = octet.gemm(*args, out_dtype=out_dtype)
    assert d.shape == (m, n)
    assert d.dtype == {"bf16": BF16, "f16": np.float16, "f32": np.float32}[out_dtype]
    plan = octet.plan(f"dense_m{m}n{n}k{k}_{out_dtype}".replace("_bf16", ""))
    assert bits(d) == bits(octet.ref.run(plan, *args))
    if d.size and k:
        wanted, scale = exact(args[0], args[1], args[2], args[3])
        assert (np.abs(d.astype(np.float64) - wanted) <= scale * 0.01).all()


def test_1d1d_is_read_off_the_shape_of_sfb():
    a, sfa = octet.quantize_activations(normal(20, 256))
    b, sfb = octet.quantize_activations(normal(40, 256))
    d = octet.gemm(a, b, sfa, sfb, out_dtype="f32")
    assert bits(d) == bits(octet.ref.run(octet.plan("dense_m20n40k256_1d1d_f32"), a, b, sfa, sfb))
    wanted, scale = exact(a, b, sfa, sfb)
    assert (np.abs(d - wanted) <= scale * 0.01).all()
    one = octet.gemm(a, b[:1], sfa, sfb[:1], granularity="1d1d", out_dtype="f32")
    assert bits(one) == bits(d[:, :1])


def test_bf16_operands():
    a, b = normal(9, 64).astype(BF16), normal(24, 64).astype(BF16)
    d = octet.gemm(a, b, out_dtype="f32")
    assert np.allclose(d, a.astype(np.float32) @ b.astype(np.float32).T, atol=1e-4)
    assert bits(d) == bits(octet.ref.run("dense_m9n24k64_bf16in_f32 @ cpu: kernel=cpu split=1",
                                         a, b))  # fmt: skip
    assert bits(octet.gemm(a.view(np.uint16), b.view(np.uint16), dtype="bf16", out_dtype="f32")) \
        == bits(d)  # fmt: skip
    with pytest.raises(octet.InvalidArgument, match="sfa is given: must be None with BF16"):
        octet.cpu.run("dense_m9n24k64_bf16in @ cpu: kernel=cpu split=1", a, b, 1.0)


def test_bias_and_accumulation():
    args = operands(6, 20, 140)
    bias = normal(20)
    plain = octet.gemm(*args, out_dtype="f32")
    assert bits(octet.gemm(*args, bias=bias, out_dtype="f32")) == bits(plain + bias)
    c = normal(6, 20)
    d = octet.gemm(*args, bias=bias, c=c)
    assert d.dtype == c.dtype  # what C is, D is
    assert bits(d) == bits((plain + bias) + c)
    assert octet.gemm(*args, bias=bias, c=c, out=c) is c  # in place
    assert bits(c) == bits(d)
    half = bias.astype(BF16)
    assert bits(octet.gemm(*args, bias=half, out_dtype="f32")) == bits(
        plain + half.astype(np.float32)
    )


def test_raw_bits_with_dtype():
    a, b, sfa, sfb = operands(7, 33, 256)
    d = octet.gemm(a, b, sfa, sfb)
    raw = octet.gemm(a.view(np.uint8), b.view(np.uint8), sfa, sfb, dtype="e4m3")
    assert bits(raw) == bits(d)
    out = np.zeros((7, 33), np.uint16)
    octet.gemm(a, b, sfa, sfb, out, out_dtype="bf16")
    assert bits(out) == bits(d)
    octet.cpu.run(octet.plan("dense_m7n33k256"), a.view(np.uint8), b, sfa, sfb, out)
    assert bits(out) == bits(d)


def test_strides_are_those_of_the_arrays():
    a, b, sfa, sfb = operands(12, 24, 256)
    d = octet.gemm(a, b, sfa, sfb)
    wide = np.full((12, 640), 0x7F, np.uint8).view(E4M3)  # NaN everywhere else
    wide[:, 256:512] = a
    assert bits(octet.gemm(wide[:, 256:512], b, sfa, sfb)) == bits(d)
    tall = np.full((24, 256), 0x7F, np.uint8).view(E4M3)
    tall[::2] = a
    assert bits(octet.gemm(tall[::2], b, sfa, sfb)) == bits(d)
    for scales in (np.ascontiguousarray(sfa), np.asfortranarray(sfa), sfa[:, :].copy("F")[:12]):
        assert bits(octet.gemm(a, b, scales, sfb)) == bits(d)
    odd = np.empty((2, 13), np.float32).T[:12]
    odd[:] = sfa
    assert bits(octet.gemm(a, b, odd, np.asfortranarray(sfb))) == bits(d)
    canvas = np.full((12, 50), 7, BF16)
    octet.gemm(a, b, sfa, sfb, canvas[:, 13:37])
    assert bits(canvas[:, 13:37]) == bits(d)
    assert (canvas[:, :13] == 7).all() and (canvas[:, 37:] == 7).all()


def test_one_scale_for_everything():
    a, b, _, _ = operands(8, 130, 300)
    full = octet.gemm(a, b, np.full((8, 3), 0.5, np.float32), np.full((2, 3), 3, np.float32))
    for sfa, sfb in (
        (0.5, 3),
        (np.float32(0.5), np.array(3, np.float32)),
        (np.broadcast_to(np.float32(0.5), (8, 3)), np.broadcast_to(np.float32(3), (2, 3))),
    ):
        assert bits(octet.gemm(a, b, sfa, sfb)) == bits(full)
    row = octet.gemm(a[:1], b, np.broadcast_to(np.float32(0.5), (1, 3)), 3.0)
    assert bits(row) == bits(full[:1])
    column = octet.gemm(a[:, :100], b[:, :100], np.broadcast_to(np.float32(0.5), (8, 1)), 3.0)
    assert bits(column) == bits(octet.gemm(a[:, :100], b[:, :100], 0.5, 3.0))


def test_batches():
    a, sfa = octet.quantize_activations(normal(3, 10, 200))
    b, sfb = octet.quantize_weights(normal(3, 140, 200))
    d = octet.gemm(a, b, sfa, sfb)
    assert d.shape == (3, 10, 140)
    for g in range(3):
        assert bits(d[g]) == bits(octet.gemm(a[g], b[g], sfa[g], sfb[g]))
    shared = octet.gemm(a, b[1], sfa, sfb[1])
    assert bits(shared[2]) == bits(octet.gemm(a[2], b[1], sfa[2], sfb[1]))
    shared = octet.gemm(a[1], b, sfa[1], sfb)
    assert bits(shared[2]) == bits(octet.gemm(a[1], b[2], sfa[1], sfb[2]))


def test_options():
    args = operands(4, 64, 1024)
    split = octet.gemm(*args, split=4, out_dtype="f32")
    plan = octet.plan("dense_m4n64k1024_f32_split4")
    assert bits(split) == bits(octet.ref.run(plan, *args))
    for isa in octet.cpu.available_isas():
        assert bits(octet.cpu.run(plan, *args, threads=1, isa=isa)) == bits(split)
    assert "portable" in octet.cpu.available_isas()
    row = octet.gemm(args[0][:1], args[1], args[2][:1], args[3], batch_invariant=True)
    assert bits(octet.gemm(*args, batch_invariant=True)[:1]) == bits(row)


def refusals():
    a, b, sfa, sfb = operands(8, 40, 256)
    out = np.zeros((8, 40), BF16)
    frozen = out.copy()
    frozen.flags.writeable = False
    yield "a = [1, 2]: must be an array", lambda: octet.gemm([1, 2], b, sfa, sfb)
    yield "a is None: must be an array", lambda: octet.gemm(None, b, sfa, sfb)
    yield "a has dtype float32: must be float8_e4m3fn or bfloat16", lambda: octet.gemm(
        sfa, b, sfa, sfb)  # fmt: skip
    yield "a has dtype uint8: say dtype='e4m3'", lambda: octet.gemm(a.view("u1"), b, sfa, sfb)
    yield "dtype = 'fp8': must be 'e4m3' or 'bf16'", lambda: octet.gemm(a, b, sfa, sfb, dtype="fp8")
    yield "b has dtype bfloat16: must be float8_e4m3fn or uint8", lambda: octet.gemm(
        a, b.astype(BF16), sfa, sfb)  # fmt: skip
    yield "b.cols = 128: must be 256 (problem.k)", lambda: octet.gemm(a, b[:, :128], sfa, sfb)
    yield "a has strides [512, 2]: must be 1 in the last", lambda: octet.gemm(
        np.zeros((8, 512), E4M3)[:, ::2], b, sfa, sfb)  # fmt: skip
    yield "a has strides [-256, 1]: must be 0 or more", lambda: octet.gemm(a[::-1], b, sfa, sfb)
    yield "a has strides [250, 1]: rows must lie a multiple of 16 bytes (16 elements) apart; " \
        "octet.padded(a)", lambda: octet.gemm(
        np.zeros((8, 250), E4M3), b[:, :250], sfa, sfb)  # fmt: skip
    yield "b has strides [252, 1]: rows must lie a multiple of 16 bytes (8 elements) apart; " \
        "octet.padded(b)", lambda: octet.gemm(
        np.zeros((8, 256), BF16)[:, :252], np.zeros((40, 252), BF16))  # fmt: skip
    yield "b has strides [10000, 250, 1]: rows must lie", lambda: octet.gemm(
        np.zeros((2, 8, 256), E4M3)[..., :250], np.zeros((2, 40, 250), E4M3), 1.0, 1.0)
    yield "b has strides [250, 1, 1]: rows must lie", lambda: octet.gemm(
        np.zeros((2, 8, 256), E4M3)[..., :250], np.zeros((2, 1, 250), E4M3), 1.0, 1.0)
    yield "array has shape [3]: must be 2 dimensions or more", lambda: octet.padded(np.zeros(3))
    yield "array = 3: must be an array", lambda: octet.padded(3)
    yield "a.data = ", lambda: octet.gemm(a[:, 1:], b[:, 1:], sfa, sfb)
    yield "sfa has shape [7, 2]: must be [8, 2]", lambda: octet.gemm(a, b, sfa[:7], sfb)
    yield "sfa has dtype float64: must be float32", lambda: octet.gemm(
        a, b, sfa.astype("f8"), sfb)  # fmt: skip
    yield "sfa is None: must be float32 scales [8, 2]", lambda: octet.gemm(a, b, None, sfb)
    yield "sfb has shape [3, 2]: must have 1 rows (one scale for 128x128) or 40", lambda: (
        octet.gemm(a, b, sfa, np.ones((3, 2), np.float32)))  # fmt: skip
    yield "sfa has row_stride 4, k_stride 2", lambda: octet.gemm(
        a, b, np.ones((8, 4), np.float32)[:, ::2], sfb)  # fmt: skip
    yield "out has shape [8, 41]: must be [8, 40] ([M, N])", lambda: octet.gemm(
        a, b, sfa, sfb, np.zeros((8, 41), BF16))  # fmt: skip
    yield "out has dtype float64: must be bfloat16 or float16 or float32", lambda: octet.gemm(
        a, b, sfa, sfb, np.zeros((8, 40)))  # fmt: skip
    yield "out has dtype uint16: say out_dtype='bf16'", lambda: octet.gemm(
        a, b, sfa, sfb, out.view(np.uint16))  # fmt: skip
    yield "out has dtype >f4: must be in the machine's byte order", lambda: octet.gemm(
        a, b, sfa, sfb, np.zeros((8, 40), ">f4"))  # fmt: skip
    yield "out is read-only: must be writable", lambda: octet.gemm(a, b, sfa, sfb, frozen)
    yield "out_dtype = 'f64': must be 'bf16', 'f16' or 'f32'", lambda: octet.gemm(
        a, b, sfa, sfb, out_dtype="f64")  # fmt: skip
    yield "out has strides [1, 8]: must be 1 in the last", lambda: octet.gemm(
        a, b, sfa, sfb, np.zeros((40, 8), BF16).T)  # fmt: skip
    memory = np.zeros(8 * 256, np.uint8)
    yield "d overlaps a: what is written must not share", lambda: octet.gemm(
        memory.view(E4M3).reshape(8, 256), b, sfa, sfb, memory[:640].view(BF16).reshape(8, 40)
    )
    yield "c has shape [8, 39]", lambda: octet.gemm(a, b, sfa, sfb, out, c=out[:, :39])
    yield "c overlaps d: c must be d itself", lambda: octet.gemm(
        a, b, sfa, sfb, memory[:640].view(BF16).reshape(8, 40),
        c=memory[2:642].view(BF16).reshape(8, 40))  # fmt: skip
    yield "bias has shape [39]: must be [40]", lambda: octet.gemm(
        a, b, sfa, sfb, bias=np.zeros(39, np.float32))  # fmt: skip
    yield "bias has dtype float64: must be float32 or bfloat16 or float16", lambda: octet.gemm(
        a, b, sfa, sfb, bias=np.zeros(40))  # fmt: skip
    yield "bias is given: must be None, as problem.bias_type is none", lambda: octet.cpu.run(
        octet.plan("dense_m8n40k256"), a, b, sfa, sfb, bias=np.zeros(40))  # fmt: skip
    yield "c is None: must be [8, 40], as problem.accumulate is True", lambda: octet.cpu.run(
        octet.plan("dense_m8n40k256_acc"), a, b, sfa, sfb)  # fmt: skip
    yield "bias is null: must point to", lambda: octet.cpu.run(
        octet.plan("dense_m8n40k256_bias"), a, b, sfa, sfb)  # fmt: skip
    yield "a.rows = 8: must be 9 (problem.m)", lambda: octet.cpu.run(
        octet.plan("dense_m9n40k256"), a, b, np.ones((8, 2), np.float32), sfb)  # fmt: skip
    yield "threads = -1: must be from 0 (all)", lambda: octet.gemm(a, b, sfa, sfb, threads=-1)
    yield "threads = 'x': must be an integer", lambda: octet.gemm(a, b, sfa, sfb, threads="x")
    yield "plan = 3: must be a GemmPlan", lambda: octet.cpu.run(3, a, b, sfa, sfb)
    yield "isa = 'mmx': must be 'auto', 'portable'", lambda: octet.cpu.run(
        octet.plan("dense_m8n40k256"), a, b, sfa, sfb, isa="mmx")  # fmt: skip
    yield "group_index is given: must be None in dense problems", lambda: octet.cpu.run(
        octet.plan("dense_m8n40k256"), a, b, sfa, sfb,
        group_index=np.zeros(8, np.int32))  # fmt: skip


@pytest.mark.parametrize(("sentence", "call"), list(refusals()))
def test_refusals_are_one_sentence(sentence, call):
    with pytest.raises(octet.InvalidArgument) as caught:
        call()
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("k", [1, 15, 16, 301])
@pytest.mark.parametrize("kind", [E4M3, np.uint8, BF16, np.float32])
def test_padded(k, kind):
    x = (RNG.standard_normal((3, 5, k)) * 9).astype(kind)
    for array in (x, x[1], x[:, ::2], x.swapaxes(0, 1), x[1:1]):
        copy = octet.padded(array)
        assert copy.shape == array.shape and copy.dtype == array.dtype
        assert bits(copy) == bits(array) and not np.shares_memory(copy, array)
        assert all(stride % 16 == 0 for stride in copy.strides[:-1])
        assert copy.ctypes.data % 16 == 0


def test_padded_operands_of_files(tmp_path):
    # What came from a file lies one row after the other; padded, it has the bits it was made with.
    a, b, sfa, sfb = operands(8, 40, 301)
    np.save(tmp_path / "a.npy", np.ascontiguousarray(a).view(np.uint8))
    loaded = np.load(tmp_path / "a.npy")
    with pytest.raises(octet.InvalidArgument, match=r"octet\.padded\(a\)"):
        octet.gemm(loaded, b, sfa, sfb, dtype="e4m3")
    again = octet.gemm(octet.padded(loaded), b, sfa, sfb, dtype="e4m3")
    assert bits(again) == bits(octet.gemm(a, b, sfa, sfb))
    x, w = np.ones((3, 5), BF16), np.ones((7, 5), BF16)
    assert (octet.gemm(octet.padded(x), octet.padded(w)) == 5).all()
    batch = np.ones((2, 3, 5), BF16)
    assert octet.gemm(octet.padded(batch), octet.padded(w)).shape == (2, 3, 7)


def test_unknown_keywords():
    a, b, sfa, sfb = operands(8, 40, 256)
    with pytest.raises(TypeError, match="unexpected argument 'biass'"):
        octet.cpu.run(octet.plan("dense_m8n40k256"), a, b, sfa, sfb, biass=1)


def test_check_and_validate():
    a, b, sfa, sfb = operands(8, 40, 256)
    plan = octet.plan("dense_m8n40k256")
    octet.check(plan, a, b, sfa, sfb, np.zeros((8, 40), BF16))
    octet.validate(plan, a, b, sfa, sfb)
    sfa[3, 1] = np.inf
    octet.check(plan, a, b, sfa, sfb, np.zeros((8, 40), BF16))  # reads no operand
    with pytest.raises(octet.InvalidArgument, match="sfa: group 0, row 3, K-block 1 is inf"):
        octet.validate(plan, a, b, sfa, sfb)
    with pytest.raises(octet.InvalidArgument, match="out is None"):
        octet.check(plan, a, b, sfa, sfb)


def test_threads_run_beside_each_other():
    # While one thread is in the library another runs Python: the interpreter lock is released.
    args = operands(512, 2048, 2048)
    began = time.perf_counter()
    octet.gemm(*args, threads=1)
    alone = time.perf_counter() - began
    for _ in range(5):  # what else the machine does must not decide
        running = threading.Thread(target=octet.gemm, args=args, kwargs={"threads": 1})
        longest, last = 0.0, time.perf_counter()
        running.start()
        while running.is_alive():
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        running.join()
        if longest < alone / 2:
            return
    pytest.fail(f"no Python ran for {longest} s of calls of {alone} s")
