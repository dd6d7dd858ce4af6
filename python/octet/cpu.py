"""The CPU backend: exactly the bits that Hopper's tensor cores compute, on any processor."""

from __future__ import annotations

from typing import Any

from . import _structs as s
from ._library import lib
from ._plan import GemmPlan
from ._run import _known, as_plan, host_arguments, run_cpu

__all__ = ["available_isas", "run"]


def available_isas() -> list[str]:
    """Instruction sets of this build and processor, slowest first: portable, avx2, avx512."""
    return [x for i, x in enumerate(s.ISAS) if i and lib().octet_isa_available(i)]


def run(
    plan: GemmPlan | str,
    a: Any,
    b: Any,
    sfa: Any = None,
    sfb: Any = None,
    out: Any = None,
    *,
    threads: int = 0,
    isa: str = "auto",
    **arrays: Any,
) -> Any:
    """D = A * B^T (+ bias) (+ C) by a plan, on arrays in host memory. Returns D.

    plan: a GemmPlan or its string; its problem says the types, so uint8 may stand for e4m3 and
    uint16 for BF16 and FP16 everywhere. G is problem.groups; rows lie contiguous, with any stride
    between them that is a multiple of 16 bytes in A and B.

    a: [M,K]; batched [G,M,K] or [M,K] for all; masked [G,max_m,K]; K-grouped [M,sumK], packed
        K-grouped one dimension of M * sumK.
    b: [N,K]; [G,N,K] in batched and M-grouped problems (batched: or [N,K]); K-grouped [N,sumK].
    sfa: float32 [M, ceil(K/128)], with a leading G where A has it. Strides as problem.sfa_layout.
    sfb: float32 1D2D [ceil(N/128), ceil(K/128)], 1D1D [N, ceil(K/128)]; a leading G where B has it.
        A number, or an array of shape [], is one scale for everything. None for BF16 operands.
    out: [M,N], a leading G where A has it and in K-grouped problems; made when None, where rows
        that no group owns are then zero.
    c: shape and type of out; may be `out` itself. Given exactly when problem.accumulate.
    bias: [N], or [G,N]. Given exactly when problem.bias_type is not none.
    group_index: contiguous: int32 [M]. group_offsets: offsets: [G+1]; K-grouped: [G], where each
        group's K starts. group_ends: aligned: int32 [G]. group_counts: masked: int32 [G];
        K-grouped: [G], true K of each. Of problem.index_type.
    threads: 0 for all the processor's. isa: auto, or one of `available_isas()`.

    Raises InvalidArgument with a sentence for a wrong dtype, shape, stride, alignment, for a
    read-only `out`, and for an output that shares memory with an input; nothing is written then.
    The interpreter lock is released.
    """
    p = as_plan(plan)
    args = host_arguments(p, {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "out": out, **_known(arrays)})
    run_cpu(p, args, threads, isa)
    return args.out
