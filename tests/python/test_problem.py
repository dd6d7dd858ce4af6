"""Problems, devices and plans as values."""

import copy
import pickle

import pytest

import octet


def strings(root):
    for file in sorted((root / "cases").glob("*.txt")):
        for line in file.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                yield line.split()[0]


def test_strings_print_and_parse_back(root):
    count = 0
    for text in strings(root):
        problem = octet.GemmProblem(text)
        again = octet.GemmProblem.parse(str(problem))
        assert problem == again and hash(problem) == hash(again)
        assert pickle.loads(pickle.dumps(problem)) == problem
        count += 1
    assert count > 100


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("dense_m4096n7168k2048", dict(m=4096, n=7168, k=2048)),
        ("dense_m1n2k3_1d1d", dict(m=1, n=2, k=3, granularity="1d1d")),
        ("dense_m1n2k3_bf16in", dict(m=1, n=2, k=3, in_type="bf16")),
        ("dense_m1n2k3_f32_acc_bias", dict(m=1, n=2, k=3, d_type="f32", accumulate=True,
                                           bias_type="f32")),
        ("dense_m1n2k3_sfarow_sfbcol", dict(m=1, n=2, k=3, sfa_layout="row_major",
                                            sfb_layout="column_major")),
        ("batched_g16m128n512k128_f16", dict(grouping="batched", groups=16, m=128, n=512, k=128,
                                             d_type="f16")),
        ("contiguous_g8m512n4096k7168_align64_keeppad",
         dict(grouping="contiguous", groups=8, m=512, n=4096, k=7168, alignment=64,
              zero_padding=False)),
        ("masked_g32m192n4096k7168", dict(grouping="masked", groups=32, m=192, n=4096, k=7168,
                                          max_m=256)),
        ("kgrouped_g8m768n2048k192_f32_acc", dict(grouping="kgrouped", groups=8, m=768, n=2048,
                                                  k=192, d_type="f32", accumulate=True)),
        ("kgrouped_g8m768n2048k192_i64_packed_split3_inv_sms78_pdl_wready_even_seed9",
         dict(grouping="kgrouped", groups=8, m=768, n=2048, k=192, index_type="i64", packed=True,
              split=3, batch_invariant=True, sm_budget=78, dependent_launch=True,
              weights_ready=True, even=True, seed=9)),
    ],
)  # fmt: skip
def test_keywords_and_string_are_one_problem(text, fields):
    if "inv" in text:  # a given split and batch invariance exclude nothing, but order is fixed
        assert str(octet.GemmProblem(**fields)).startswith("kgrouped_g8m768n2048k192_i64_packed")
    problem = octet.GemmProblem(**fields)
    assert problem == octet.GemmProblem(text)
    assert str(problem) == text
    for name, value in fields.items():
        assert getattr(problem, name) == value


def test_fields_beside_a_string_replace_its_own():
    problem = octet.GemmProblem("dense_m1n2k3", d_type="f32")
    assert str(problem) == "dense_m1n2k3_f32"
    assert str(problem.replace(m=9, d_type="f16")) == "dense_m9n2k3_f16"
    assert str(problem) == "dense_m1n2k3_f32"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (dict(m=-1), "m = -1: must be 0 or more"),
        (dict(m=2**31), "m = 2147483648: must be at most 2147483647"),
        (dict(m=2**64 + 4), "m = 18446744073709551620: must fit the field of octet.h"),
        (dict(m=1.5), "m = 1.5: must be an integer"),
        (dict(split=2**32 + 1), "split = 4294967297: must fit the field of octet.h"),
        (dict(d_type="f64"), "d_type = 'f64': must be 'none', 'e4m3', 'bf16', "),
        (dict(accumulate="yes"), "accumulate = 'yes': must be True or False"),
        (dict(groups=3), "groups = 3: a dense problem has 1 (batched has several)"),
    ],
)
def test_bad_fields_are_named(fields, sentence):
    with pytest.raises(octet.InvalidArgument) as caught:
        octet.GemmProblem(**{"m": 4, "n": 4, "k": 4, **fields})
    assert str(caught.value).startswith(sentence)


def test_bad_strings_are_named():
    with pytest.raises(octet.InvalidArgument, match="at character 14: expected k and a number"):
        octet.GemmProblem("dense_m64n7168")
    with pytest.raises(octet.InvalidArgument, match="at character 20"):
        octet.GemmProblem("dense_m4096n7168k204\0")
    with pytest.raises(octet.InvalidArgument, match="problem = 7: must be"):
        octet.plan(7)
    with pytest.raises(TypeError, match="no field 'mm'"):
        octet.GemmProblem(mm=1)


def test_problems_are_values():
    problem = octet.GemmProblem("dense_m4n4k4")
    with pytest.raises(AttributeError, match=r"replace\(m=...\)"):
        problem.m = 5
    assert problem != octet.GemmProblem("dense_m4n4k5") and problem != "dense_m4n4k4"
    assert copy.deepcopy(problem) == problem == copy.copy(problem)
    assert eval(repr(problem), vars(octet)) == problem
    assert len({problem, octet.GemmProblem("dense_m4n4k4")}) == 1


def test_devices():
    assert octet.DeviceSpec.presets() == [
        "h100_sxm", "h100_pcie", "h200", "h800", "h20", "gh200", "cpu"
    ]  # fmt: skip
    h200 = octet.DeviceSpec.preset("h200")
    assert (h200.name, h200.sms, h200.compute_major) == ("h200", 132, 9)
    assert len(h200.active_clusters) == 5 and h200.dram_bytes_per_second > 1e12
    smaller = h200.replace(sms=78, launch_seconds=1e-6)
    assert smaller.sms == 78 and smaller.launch_seconds == 1e-6 and h200.sms == 132
    assert smaller != h200 and h200 == octet.DeviceSpec.preset("h200")
    with pytest.raises(octet.InvalidArgument, match='device "h300": must be one of'):
        octet.DeviceSpec.preset("h300")
    with pytest.raises(octet.InvalidArgument, match="sms = 'x': must be an integer"):
        h200.replace(sms="x")


def test_plans():
    plan = octet.plan("dense_m64n7168k2048", "h200")
    assert plan == octet.GemmPlan.parse(str(plan)) and hash(plan) == hash(pickle.loads(
        pickle.dumps(plan)))  # fmt: skip
    assert str(plan.problem) == "dense_m64n7168k2048" and plan.device == "h200"
    assert plan.kernel != "cpu" and plan.sms > 0 and plan.predicted_us > 0
    assert eval(repr(plan), vars(octet)) == plan
    cpu = octet.plan(octet.GemmProblem("dense_m64n7168k2048_split3"))
    assert cpu.kernel == "cpu" and cpu.split == 3 and cpu != plan
    with pytest.raises(octet.InvalidArgument, match="plan string, at character"):
        octet.GemmPlan.parse("dense_m4n4k4 @ nowhere")
    with pytest.raises(octet.InvalidArgument, match="plan.split = 65"):
        cpu.replace(split=65)


def test_candidates_and_reasons():
    problem = octet.GemmProblem("dense_m64n7168k2048")
    # A device without a tuned table: there the planner takes the cheapest candidate.
    plans = octet.plan_candidates(problem, "h100_sxm")
    assert plans[0] == octet.plan(problem, "h100_sxm") and len(plans) > 3
    assert octet.plan_candidates(problem, "h100_sxm", 2) == plans[:2]
    text = octet.explain(problem, "h100_sxm")
    assert plans[0].kernel in text and "\0" not in text


def test_supports():
    assert octet.supports("masked_g4m64n128k128") is None
    octet.supports("dense_m1n1k1", "h200")
    assert octet.is_supported("dense_m1n1k1", "h200")
    with pytest.raises(octet.Unsupported, match="on h200: "):
        octet.supports("dense_m64n64k64_bf16in", "h200")
    assert not octet.is_supported("dense_m64n64k64_bf16in", "h200")
    with pytest.raises(octet.Unsupported, match=r"has compute capability 8.9: must be 9.0"):
        device = octet.DeviceSpec.preset("h200").replace(compute_major=8, compute_minor=9)
        octet.supports("dense_m4n4k4", device)
