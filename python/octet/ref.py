"""The normative loops of docs/numerics.md: short, slow, the law that every backend equals."""

from __future__ import annotations

from typing import Any

from ._plan import GemmPlan
from ._run import _known, as_plan, host_arguments, run_ref

__all__ = ["run"]


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
