"""What users get: types, docstrings, the README's example, and the wheel of `pip install .`."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
import zipfile

import pytest

import octet

PUBLIC = [octet, octet.cpu, octet.cuda, octet.ref, octet.groups, octet.errors]


def test_types_are_strict(root):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"),
         "--cache-dir", str(root / "build" / "mypy")],
        cwd=root, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_is_documented():
    for module in PUBLIC:
        assert module.__doc__
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.isroutine(thing) and not inspect.isclass(thing):
                continue
            assert inspect.getdoc(thing), name
            for attribute, member in vars(thing).items() if inspect.isclass(thing) else ():
                if not attribute.startswith("_") and attribute != "code":
                    assert member.__doc__, f"{name}.{attribute}"


def test_sources_are_those_of_the_oldest_python(root):
    for file in (root / "python").rglob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 9))
        # Without this, annotations of newer syntax would be evaluated.
        assert "\ndef " not in file.read_text() or "from __future__ import annotations" in (
            file.read_text()
        )


def test_readme_example_runs(root, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", (root / "README.md").read_text(), re.M | re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    said = capsys.readouterr().out.splitlines()
    assert float(said[0].split()[1]) < 0.05
    assert said[1].startswith("dense_m64n7168k2048 @ h200: kernel=")
    assert said[2].startswith("a has strides [304, 2]: must be 1 in the last dimension")


def test_wheel(root, tmp_path):
    # Unoptimised and without kernels: what is looked at is the wheel, not its speed.
    if importlib.util.find_spec("scikit_build_core") is None:
        pytest.skip("scikit-build-core is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-q",
         "--disable-pip-version-check", "-w", str(tmp_path),
         "--config-settings=cmake.build-type=Debug",
         "--config-settings=build-dir=build/wheel-test",
         "--config-settings=cmake.define.OCTET_CUDA=off"],
        cwd=root, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert re.fullmatch(r"octet_gemm-[\d.]+-py3-none-linux_\w+\.whl", wheel.name)
    assert wheel.name.split("-")[1] == octet.__version__
    names = zipfile.ZipFile(wheel).namelist()
    ours = {p.relative_to(root / "python").as_posix() for p in (root / "python").rglob("*.py")}
    inside = {n for n in names if n.startswith("octet/")}
    assert inside == ours | {"octet/py.typed", "octet/liboctet.so", "octet/liboctet_python.so"}
    where = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(where)
    # Isolated, without site-packages: the wheel needs nothing.
    code = (
        f"import sys; sys.path.insert(0, {str(where)!r})\n"
        "import octet; print(octet.load_library()); print(octet.plan('dense_m4n4k4'))"
    )
    said = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True,
                          timeout=60)  # fmt: skip
    assert said.stdout.splitlines() == [
        str((where / "octet" / "liboctet.so").resolve()),
        "dense_m4n4k4 @ cpu: kernel=cpu split=1",
    ], said.stderr
