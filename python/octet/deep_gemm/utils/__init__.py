"""Casts, layouts and small arithmetic, under the names that deep_gemm.utils has.

Older versions had `bench`, `bench_kineto` and `calc_diff` here, too.
"""

from __future__ import annotations

from ..testing.bench import bench, bench_kineto
from ..testing.numeric import calc_diff
from . import layout, math
from .layout import *  # noqa: F403
from .math import *  # noqa: F403

__all__ = layout.__all__ + math.__all__
__all__ += ["bench", "bench_kineto", "calc_diff"]
