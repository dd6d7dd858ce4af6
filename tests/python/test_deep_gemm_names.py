"""Names of octet.deep_gemm: its shim, what falls through to another package, what is refused."""

import inspect
import subprocess
import sys

import pytest

import octet
from octet import deep_gemm
from octet.deep_gemm import shim as shim_module


def python(code, *path, cwd=None):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": ":".join(map(str, path)), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def shim(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shim") / "on_path"
    done = subprocess.run(
        [sys.executable, "-m", "octet.deep_gemm.shim", str(folder)], capture_output=True, text=True,
        env={"PYTHONPATH": str(root / "python")}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and str(folder) in done.stdout, done.stderr
    return folder


def test_the_name_means_ours(shim, root):
    code = (
        "import deep_gemm\n"
        "from deep_gemm import fp8_gemm_nt, testing\n"
        "from deep_gemm.testing import calc_diff, bench_kineto, get_arch_major\n"
        "from deep_gemm.utils.layout import get_mn_major_tma_aligned_tensor as a\n"
        "from deep_gemm.utils.math import align\n"
        "from deep_gemm.utils import bench_kineto, calc_diff\n"
        "from deep_gemm.jit_kernels.utils import get_m_alignment_for_contiguous_layout\n"
        "from deep_gemm.jit_kernels import gemm_fp8_fp8_bf16_nt\n"
        "import deep_gemm.utils, deep_gemm.testing.bench\n"
        "import octet.deep_gemm as ours\n"
        "print(deep_gemm is ours, fp8_gemm_nt is ours.fp8_gemm_nt, deep_gemm.utils is ours.utils)\n"
        "print(a is ours.get_mn_major_tma_aligned_tensor, align(3, 2), len(deep_gemm.__path__))\n"
        "print(hasattr(deep_gemm, 'fp8_mqa_logits'))"
    )
    assert python(code, shim, root / "python") == ["True True True", "True 4 1", "False"]
    # A process that a program starts, without octet's folder on the path.
    code = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import deep_gemm; print(deep_gemm.__name__)'])"
    )
    assert python(code, shim) == ["octet.deep_gemm"]


def test_the_shim_leaves_other_folders_alone(tmp_path, shim):
    (tmp_path / "deep_gemm").mkdir()
    (tmp_path / "deep_gemm" / "__init__.py").write_text("mine = 1")
    with pytest.raises(FileExistsError, match="is there and no shim: it is left as it is"):
        shim_module.write(tmp_path)
    assert shim_module.main([str(tmp_path)]) == 2
    assert (tmp_path / "deep_gemm" / "__init__.py").read_text() == "mine = 1"
    shim_module.write(shim)  # again, over one of its own
    assert shim_module.main([]) == 2 and shim_module.main(["--help"]) == 0


@pytest.mark.parametrize("with_shim", [True, False])
def test_other_names_are_the_installed_package_s(shim, root, tmp_path, with_shim):
    package = tmp_path / "deep_gemm"
    package.mkdir()
    (package / "__init__.py").write_text(
        "print('imported')\nimport deep_gemm\nfrom .inner import einsum\n"
        "assert deep_gemm.inner\nfp8_gemm_nt = None\n"
    )
    (package / "inner.py").write_text("import deep_gemm\ndef einsum(): return 'theirs'\n")
    code = (
        "import octet.deep_gemm as ours\n"
        "print('first')\n"
        "print(ours.einsum(), ours.fp8_gemm_nt is not None, hasattr(ours, 'nothing'))\n"
        "import deep_gemm\n"
        "print(deep_gemm is ours)"
    )
    if with_shim:
        code = "import deep_gemm\n" + code
    path = [shim] * with_shim + [tmp_path, root / "python"]
    assert python(code, *path) == ["first", "imported", "theirs True False", str(with_shim)]


def test_names_that_nobody_has():
    if "deep_gemm" in sys.modules:
        pytest.skip("a deep_gemm is installed")
    with pytest.raises(NotImplementedError) as caught:
        deep_gemm.fp8_mqa_logits  # noqa: B018
    assert str(caught.value) == (
        "deep_gemm.fp8_mqa_logits is not offered by octet.deep_gemm, which has the FP8 functions "
        "of SM90, and no deep_gemm is installed"
    )
    assert isinstance(caught.value, octet.Unsupported)
    assert getattr(deep_gemm, "fp8_mqa_logits", None) is None
    with pytest.raises(ImportError):
        exec("from octet.deep_gemm import fp8_mqa_logits")


def test_what_needs_pytorch_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (
        lambda: deep_gemm.per_token_cast_to_fp8(None, False),
        lambda: deep_gemm.get_mn_major_tma_aligned_tensor(None),
        lambda: deep_gemm.cublaslt_gemm_nt(None, None, None),
        lambda: deep_gemm.bench(None),
    ):
        with pytest.raises(NotImplementedError, match="works? on .*: PyTorch is not installed"):
            call()
    assert deep_gemm.testing.get_arch_major() == 9


def test_every_name_is_documented_and_there():
    for module in (deep_gemm, deep_gemm.testing, deep_gemm.utils, deep_gemm.utils.layout,
                   deep_gemm.utils.math, deep_gemm.jit_kernels,
                   deep_gemm.jit_kernels.utils):  # fmt: skip
        assert inspect.getdoc(module)
        for name in module.__all__:
            assert inspect.getdoc(getattr(module, name)), name


def test_a_module_s_names_are_listed_once():
    utils = deep_gemm.utils
    for module in (utils.layout, utils.math):
        for name in module.__all__:
            assert getattr(utils, name) is getattr(module, name), name
    assert len(set(utils.__all__)) == len(utils.__all__)


def test_importing_is_quick_and_imports_no_framework(root):
    code = (
        "import sys, octet.deep_gemm\n"
        "print(sorted({'torch', 'numpy', 'deep_gemm'} & set(sys.modules)))"
    )
    assert python(code, root / "python") == ["[]"]
    code = (
        "import sys, octet\n"
        "print('octet.deep_gemm' in sys.modules)\n"
        "print(octet.deep_gemm.__name__, hasattr(octet, 'nothing'))"
    )
    assert python(code, root / "python") == ["False", "octet.deep_gemm False"]


def test_times_of_kernels():
    from octet.deep_gemm.testing.bench import times_of

    kernels = {"gemm_x": (3e-6, 3), "gemm_y": (9e-6, 3), "copy": (6e-6, 6)}
    assert times_of(kernels, ("copy",), 3, False) == pytest.approx([1e-6])
    assert times_of(kernels, ("gemm_", "_y"), 3, True) == pytest.approx([2e-6, 3e-6])
    assert times_of(kernels, ("pack",), 3, False) == pytest.approx([6e-6])  # all of a call
    assert times_of(kernels, ("pack", "x_"), 3, False) == pytest.approx([6e-6, 0])
    assert times_of(kernels, ("pack", "copy"), 3, False) == pytest.approx([0, 1e-6])
    with pytest.raises(AssertionError, match="'gemm_' is in the names of several"):
        times_of(kernels, ("gemm_",), 3, False)
    assert times_of({}, ("x",), 3, False) == [0.0]


def test_decorators(monkeypatch, capsys):
    import os

    testing = deep_gemm.testing
    monkeypatch.setenv("OCTET_TEST_NAME", "kept")

    @testing.ignore_env("OCTET_TEST_NAME", lambda: True)
    def without():
        return os.environ.get("OCTET_TEST_NAME")

    @testing.ignore_env("OCTET_TEST_NAME", lambda: False)
    def with_it():
        return os.environ.get("OCTET_TEST_NAME")

    assert without() is None and with_it() == "kept"
    assert os.environ["OCTET_TEST_NAME"] == "kept"
    run = []
    testing.test_filter(lambda: True)(run.append)(1)

    @testing.test_filter(lambda: False)
    def filtered():
        run.append(2)

    filtered()
    assert run == [1] and "filtered: left out" in capsys.readouterr().out
