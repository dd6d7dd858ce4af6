"""`deep_gemm.jit_kernels.utils` of older versions, under the same names."""

from __future__ import annotations

from ..layout import ceil_div, get_tma_aligned_size
from ..settings import get_num_sms, set_num_sms
from ..utils.layout import get_col_major_tma_aligned_tensor, get_m_alignment_for_contiguous_layout

__all__ = [
    "ceil_div",
    "get_col_major_tma_aligned_tensor",
    "get_m_alignment_for_contiguous_layout",
    "get_num_sms",
    "get_tma_aligned_size",
    "set_num_sms",
]
