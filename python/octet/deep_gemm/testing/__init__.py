"""Comparing and timing, under the names that deep_gemm.testing has."""

from __future__ import annotations

from .bench import bench, bench_kineto
from .numeric import assert_bitwise_equal, calc_diff, count_bytes
from .utils import get_arch_major, ignore_env, test_filter

__all__ = [
    "assert_bitwise_equal",
    "bench",
    "bench_kineto",
    "calc_diff",
    "count_bytes",
    "get_arch_major",
    "ignore_env",
    "test_filter",
]
