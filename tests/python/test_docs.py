"""Examples in docs/*.md run as they stand there; the reference is what the docstrings say now."""

import importlib.util
import re
import subprocess
import sys

import pytest

HAVE_TORCH = importlib.util.find_spec("torch") is not None


def examples(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)


@pytest.mark.torch
@pytest.mark.skipif(not HAVE_TORCH, reason="no PyTorch installed")
def test_the_examples_of_deep_gemm_run(root, capsys):
    page = root / "docs" / "deep_gemm.md"
    names = {}
    for example in examples(page):
        exec(compile(example, page.name, "exec"), names)
    said = capsys.readouterr().out.strip()
    assert f"\n    {said}\n" in page.read_text()


def test_every_page_s_examples_are_run(root):
    pages = {page.name for page in (root / "docs").glob("*.md") if examples(page)}
    assert pages == {"deep_gemm.md"}  # run above


def test_the_page_names_what_is_there(root):
    from octet import deep_gemm

    page = (root / "docs" / "deep_gemm.md").read_text()
    table = page[page.index("## What is there") : page.index("## What differs")]
    word = r"`((?:\w+_)?(?:gemm|cast|set|get|calc|count|bench)_\w+[a-z0-9])`"
    for name in re.findall(word, table):
        found = hasattr(deep_gemm, name) or hasattr(deep_gemm.testing, name)
        assert found, name


def test_the_reference_is_current(root):
    script = root / "tools" / "house" / "python_reference.py"
    made = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": str(root / "python")},
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    page = root / "docs" / "python-reference.md"
    assert page.read_text() == made.stdout, f"run {script.name} > {page.name}"
