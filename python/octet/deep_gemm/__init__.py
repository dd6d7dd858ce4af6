"""The deep_gemm package's interface, for FP8 on SM90, computed by Octet.

    import octet.deep_gemm as deep_gemm     # or: python -m octet.deep_gemm.shim DIR, then
                                            # PYTHONPATH=DIR makes `import deep_gemm` mean this
    deep_gemm.fp8_gemm_nt((a, sfa), (b, sfb), d)

Names, order of arguments, defaults and meaning are that package's; docs/deep_gemm.md says what is
the same and what is not. Tensors may lie on a Hopper device or, with the same bits, in host memory
(PyTorch's, or NumPy arrays for the matrix products). What is not offered here is looked up in an
installed deep_gemm, if there is one; else it is refused with a sentence.
"""

from __future__ import annotations

from typing import Any

from . import jit_kernels, testing, utils
from ._installed import missing
from .blas import cublaslt_gemm_nn, cublaslt_gemm_nt, cublaslt_gemm_tn, cublaslt_gemm_tt
from .gemm import (
    fp8_fp4_gemm_nn,
    fp8_fp4_gemm_nt,
    fp8_fp4_gemm_tn,
    fp8_fp4_gemm_tt,
    fp8_gemm_nn,
    fp8_gemm_nt,
    fp8_gemm_tn,
    fp8_gemm_tt,
    gemm_fp8_fp8_bf16_nt,
    wgrad_gemm_fp8_fp8_fp32_nt,
)
from .grouped import (
    fp8_m_grouped_gemm_nt_masked,
    m_grouped_fp8_fp4_gemm_nn_contiguous,
    m_grouped_fp8_fp4_gemm_nt_contiguous,
    m_grouped_fp8_fp4_gemm_nt_masked,
    m_grouped_fp8_gemm_nn_contiguous,
    m_grouped_fp8_gemm_nt_contiguous,
    m_grouped_fp8_gemm_nt_masked,
    m_grouped_gemm_fp8_fp8_bf16_nt_contiguous,
    m_grouped_gemm_fp8_fp8_bf16_nt_masked,
)
from .k_grouped import k_grouped_fp8_gemm_nt_contiguous, k_grouped_wgrad_gemm_fp8_fp8_fp32_nt
from .layout import transform_sf_into_required_layout
from .settings import (
    get_num_sms,
    get_pdl,
    get_tc_util,
    set_block_size_multiple_of,
    set_ignore_compile_dims,
    set_num_sms,
    set_pdl,
    set_tc_util,
    use_deterministic_algorithms,
)
from .testing import bench, bench_kineto, calc_diff
from .utils import (
    align,
    cast_back_from_fp4,
    ceil_div,
    ceil_to_ue8m0,
    get_col_major_tma_aligned_tensor,
    get_k_alignment_for_contiguous_layout,
    get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor,
    get_m_alignment_for_contiguous_layout,
    get_mk_alignment_for_contiguous_layout,
    get_mn_major_tma_aligned_packed_ue8m0_tensor,
    get_mn_major_tma_aligned_tensor,
    get_theoretical_mk_alignment_for_contiguous_layout,
    get_tma_aligned_size,
    pack_ue8m0_to_int,
    per_block_cast_to_fp8,
    per_channel_cast_to_fp8,
    per_custom_dims_cast_to_fp8,
    per_token_cast_to_fp4,
    per_token_cast_to_fp8,
    set_mk_alignment_for_contiguous_layout,
    transpose_packed_fp4,
    unpack_ue8m0_from_int,
)

# Programs ask this to choose among names; those of the 2.x interface are here, older ones too.
__version__ = "2.3.0+octet"

__all__ = [
    "align",
    "bench",
    "bench_kineto",
    "calc_diff",
    "cast_back_from_fp4",
    "ceil_div",
    "ceil_to_ue8m0",
    "cublaslt_gemm_nn",
    "cublaslt_gemm_nt",
    "cublaslt_gemm_tn",
    "cublaslt_gemm_tt",
    "fp8_fp4_gemm_nn",
    "fp8_fp4_gemm_nt",
    "fp8_fp4_gemm_tn",
    "fp8_fp4_gemm_tt",
    "fp8_gemm_nn",
    "fp8_gemm_nt",
    "fp8_gemm_tn",
    "fp8_gemm_tt",
    "fp8_m_grouped_gemm_nt_masked",
    "gemm_fp8_fp8_bf16_nt",
    "get_col_major_tma_aligned_tensor",
    "get_k_alignment_for_contiguous_layout",
    "get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor",
    "get_m_alignment_for_contiguous_layout",
    "get_mk_alignment_for_contiguous_layout",
    "get_mn_major_tma_aligned_packed_ue8m0_tensor",
    "get_mn_major_tma_aligned_tensor",
    "get_num_sms",
    "get_pdl",
    "get_tc_util",
    "get_theoretical_mk_alignment_for_contiguous_layout",
    "get_tma_aligned_size",
    "jit_kernels",
    "k_grouped_fp8_gemm_nt_contiguous",
    "k_grouped_wgrad_gemm_fp8_fp8_fp32_nt",
    "m_grouped_fp8_fp4_gemm_nn_contiguous",
    "m_grouped_fp8_fp4_gemm_nt_contiguous",
    "m_grouped_fp8_fp4_gemm_nt_masked",
    "m_grouped_fp8_gemm_nn_contiguous",
    "m_grouped_fp8_gemm_nt_contiguous",
    "m_grouped_fp8_gemm_nt_masked",
    "m_grouped_gemm_fp8_fp8_bf16_nt_contiguous",
    "m_grouped_gemm_fp8_fp8_bf16_nt_masked",
    "pack_ue8m0_to_int",
    "per_block_cast_to_fp8",
    "per_channel_cast_to_fp8",
    "per_custom_dims_cast_to_fp8",
    "per_token_cast_to_fp4",
    "per_token_cast_to_fp8",
    "set_block_size_multiple_of",
    "set_ignore_compile_dims",
    "set_mk_alignment_for_contiguous_layout",
    "set_num_sms",
    "set_pdl",
    "set_tc_util",
    "testing",
    "transform_sf_into_required_layout",
    "transpose_packed_fp4",
    "unpack_ue8m0_from_int",
    "use_deterministic_algorithms",
    "utils",
    "wgrad_gemm_fp8_fp8_fp32_nt",
]


def __getattr__(name: str) -> Any:
    """What is not offered here: an installed deep_gemm's, else a refusal."""
    return missing(name)
