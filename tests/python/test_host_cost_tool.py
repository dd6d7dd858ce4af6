"""bench/python_host_cost.py, as far as it goes without a device."""

import csv
import importlib.util
import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch installed"),
]


def test_it_prints_a_table_and_writes_one(root, library_file, tmp_path):
    where = tmp_path / "cost.csv"
    made = subprocess.run(
        [sys.executable, root / "bench" / "python_host_cost.py", "--library", library_file, "--host",
         "--loops", "2", "--calls", "3", "--csv", where],
        env={**os.environ, "PYTHONPATH": str(root / "python")}, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    rows = list(csv.DictReader(where.open()))
    assert {"piece", "alone_ns", "beside_a_launch_ns"} == set(rows[0])
    names = [row["piece"] for row in rows]
    assert "reading five tensors in Python" in names and "ctypes call, three pointers" in names
    assert all(float(row["alone_ns"]) > 0 for row in rows)
    assert all(name in made.stdout for name in names)
