"""Each argument of each function given what it is not: one sentence, no exception from inside.

What nobody thought of is the point, so each function gets every one of the wrong values in every
place. octet.deep_gemm has its own (test_deep_gemm_hostile.py).
"""

import copy
import functools

import numpy as np
import pytest

import octet

try:
    import torch
except ImportError:
    torch = None

RNG = np.random.default_rng(4)


def given(name, framework):
    """Arrays, as NumPy's or PyTorch's."""
    if framework == "numpy":
        return name
    x = np.ascontiguousarray(name)
    if x.dtype.itemsize == 1:
        return torch.from_numpy(x.view(np.uint8)).view(torch.float8_e4m3fn)
    return torch.from_numpy(x)


@functools.lru_cache(maxsize=None)
def calls(framework):
    """name -> (function, arguments that are right)"""
    f = functools.partial(given, framework=framework)
    x = RNG.standard_normal((128, 256), dtype=np.float32)
    a, sfa = octet.quantize_activations(x)
    b, sfb = octet.quantize_weights(x)
    experts, scales = octet.quantize_weights(np.stack([x, x]))
    ka, ks = octet.quantize_activations(x[:16])
    problem = octet.GemmProblem(m=128, n=128, k=256, d_type="f32", sfa_layout="row_major")
    plan, out = octet.plan(problem), f(np.zeros((128, 128), np.float32))
    dense = dict(a=f(a), b=f(b), sfa=f(np.ascontiguousarray(sfa)), sfb=f(sfb))
    grouped = dict(a=f(a), b=f(experts), sfa=f(np.ascontiguousarray(sfa)), sfb=f(scales))
    ks = np.ascontiguousarray(ks)
    kgrouped = dict(a=f(ka), b=f(ka), sfa=f(ks), sfb=f(ks))
    masked = dict(
        grouped, a=f(a.reshape(2, 64, 256)), sfa=f(np.ascontiguousarray(sfa).reshape(2, 64, 2)))
    options = dict(out=None, threads=0, dtype=None, out_dtype="f32", c=None, bias=None,
                   granularity=None, split=0, batch_invariant=False)  # fmt: skip
    by_plan = dict(plan=plan, **dense, out=out)

    def numbers(*values):
        return f(np.array(values, np.int32))

    def problem_of(**fields):
        return octet.GemmProblem(**fields)

    how = dict(block="1x128", axis=1, transpose=False, threads=0)
    return {
        "gemm": (octet.gemm, dict(
            dense, **dict(options, out=out, c=f(np.zeros((128, 128), np.float32)),
                          bias=f(np.zeros(128, np.float32))))),
        "contiguous": (octet.gemm_contiguous, dict(
            grouped, group_index=f(np.zeros(128, np.int32)), alignment=128, zero_padding=True,
            expected_m=None, **options)),
        "offsets": (octet.gemm_offsets, dict(grouped, group_offsets=numbers(0, 64, 128), out=None)),
        "aligned": (octet.gemm_aligned, dict(
            grouped, group_ends=numbers(60, 128), alignment=64, out=None)),
        "masked": (octet.gemm_masked, dict(masked, group_counts=numbers(3, 64), out=None)),
        "kgrouped": (octet.gemm_kgrouped, dict(
            kgrouped, group_offsets=numbers(0, 128), group_counts=numbers(128, 128), out=None)),
        "quantize": (octet.quantize, dict(
            x=f(x), scale_format="f32", amax_min=0.0, scale_order=None, pad_k=False, codes=None,
            scales=None, dtype=None, **how)),
        "activations": (octet.quantize_activations, dict(x=f(x))),
        "weights": (octet.quantize_weights, dict(w=f(x))),
        "dequantize": (octet.dequantize, dict(
            codes=f(a), scales=f(np.ascontiguousarray(sfa)), out=None, out_dtype=None, **how)),
        "padded": (octet.padded, dict(array=f(a))),
        "cpu": (octet.cpu.run, by_plan),
        "ref": (octet.ref.run, by_plan),
        "check": (octet.check, by_plan),
        "validate": (octet.validate, by_plan),
        "plan": (octet.plan, dict(problem="dense_m4n4k4", device="cpu")),
        "supports": (octet.supports, dict(problem="dense_m4n4k4", device="cpu")),
        "problem": (problem_of, dict(
            m=4, n=4, k=4, groups=1, grouping="dense", in_type="e4m3", d_type="bf16", split=0,
            accumulate=False, seed=1)),
        "offsets of counts": (octet.groups.offsets, dict(counts=numbers(3, 4))),
        "ends": (octet.groups.ends, dict(counts=numbers(3, 4), alignment=64)),
        "index": (octet.groups.index, dict(counts=numbers(3, 4), alignment=64, total=128)),
        "rows": (octet.groups.rows, dict(counts=numbers(3, 4), alignment=64, total=7)),
    }  # fmt: skip


class Shaped:
    shape, dtype = (3,), "x"


class Silent:
    def __repr__(self):
        raise RuntimeError("no words")


def interface(name, value):
    return type("Broken", (), {name: value})()


def wrong_values():
    host, device = "__array_interface__", "__cuda_array_interface__"
    values = [
        None, 3, -1, 2**70, -(10**400), 1.5, "text", "", b"b", [], [[1, 2]], {}, object(), True,
        np.float32(2), np.nan, Shaped(), Silent(),
        interface(host, {"shape": (2, 2), "typestr": "<f4", "data": None, "version": 3}),
        interface(host, "no"), interface(device, {"shape": (2, 2)}), interface(device, 3),
        np.zeros(()), np.zeros(5), np.zeros((2, 3, 4, 5)), np.zeros((0, 0), np.float32),
        np.zeros((3, 3), object), np.array(["a"]), np.zeros((4, 4))[::-1], np.zeros((4, 4), ">f4"),
    ]  # fmt: skip
    if torch is not None:
        values += [
            torch.tensor(1.0), torch.ones(7), torch.ones(2, 2, 2, 2), torch.eye(3).to_sparse(),
            torch._neg_view(torch.ones(128, 2)), torch.ones(0, 5), torch.ones(4, 4, device="meta"),
            torch.ones(4, 4, dtype=torch.complex64), torch.ones(4, 4, dtype=torch.bool),
        ]  # fmt: skip
    return values


NAMES = (
    "gemm", "contiguous", "offsets", "aligned", "masked", "kgrouped", "quantize", "activations",
    "weights", "dequantize", "padded", "cpu", "ref", "check", "validate", "plan", "supports",
    "problem", "offsets of counts", "ends", "index", "rows",
)  # fmt: skip


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("name", NAMES)
def test_each_argument(name, framework):
    if framework == "torch" and torch is None:
        pytest.skip("no PyTorch installed")
    assert sorted(NAMES) == sorted(calls(framework))
    function, right = calls(framework)[name]
    function(**copy.copy(right))
    for argument in right:
        for wrong in wrong_values():
            try:
                function(**dict(right, **{argument: wrong}))
            except octet.Error as error:
                said = str(error)
                assert said and "\n" not in said and len(said) < 500, said
            except Exception as error:
                kind = type(wrong).__name__
                raise AssertionError(
                    f"{name}({argument}={kind}): {type(error).__name__}: {error}"
                ) from error
