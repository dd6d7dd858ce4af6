"""The normative loops of docs/numerics.md: short, slow, the law that every backend equals."""

from __future__ import annotations

from typing import Any

from ._arrays import view
from ._plan import GemmPlan
from ._quantize import dequantize_by, quantize_by
from ._run import _known, as_plan, host_arguments, run_ref
from .errors import InvalidArgument

__all__ = ["dequantize", "quantize", "run"]


def run(
    plan: GemmPlan | str,
    a: Any,
    b: Any,
    sfa: Any = None,
    sfb: Any = None,
    out: Any = None,
    **arrays: Any,
) -> Any:
    """What `octet.cpu.run()` computes, hundreds of times slower. Same arguments, same bits."""
    p = as_plan(plan)
    args = host_arguments(p, {"a": a, "b": b, "sfa": sfa, "sfb": sfb, "out": out, **_known(arrays)})
    run_ref(p, args)
    return args.out


def _expect_host(name: str, array: Any) -> None:
    if view(name, array).on_device:
        raise InvalidArgument(f"{name} is on a device: must be in host memory for the reference")


def quantize(x: Any, block: str = "1x128", **more: Any) -> tuple[Any, Any]:
    """What `octet.quantize()` gives, slowly. Same arguments, same bits; x in host memory."""
    _expect_host("x", x)
    return quantize_by("octet_ref_quantize", x, block, **more)


def dequantize(codes: Any, scales: Any, block: str = "1x128", **more: Any) -> Any:
    """What `octet.dequantize()` gives, slowly. Same arguments, same bits; in host memory."""
    _expect_host("codes", codes)
    return dequantize_by("octet_ref_dequantize", codes, scales, block, **more)
