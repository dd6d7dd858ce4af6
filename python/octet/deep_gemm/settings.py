"""What deep_gemm keeps for the whole process: the SM budget, programmatic launch, an alignment.

Octet itself keeps nothing of the kind; these values are passed with each call of this module.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

from .._library import refusal
from .._problem import DeviceSpec

_values: dict[str, Any] = {"num_sms": 0, "pdl": False, "alignment": 128, "tc_util": 100}


def _positive(name: str, value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number <= 0 or isinstance(value, bool):
        raise refusal(name, value, "must be a positive integer")
    return number


def device_sms() -> int:
    """SMs of PyTorch's current device; those of an H200 where there is none."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        return int(properties.multi_processor_count)
    return DeviceSpec.preset("h200").sms


def set_num_sms(new_num_sms: int) -> None:
    """Most SMs that each further call may use. Raises InvalidArgument beyond what there are."""
    number, most = _positive("new_num_sms", new_num_sms), device_sms()
    if number > most:
        raise refusal("new_num_sms", new_num_sms, f"must be at most {most}, the device's SMs")
    _values["num_sms"] = number


def get_num_sms() -> int:
    """What was set, else all SMs of the device."""
    return int(_values["num_sms"]) or device_sms()


def set_pdl(enable_pdl: bool) -> None:
    """Whether kernels are launched as programmatic dependents of the one before. Off at first."""
    _values["pdl"] = bool(enable_pdl)


def get_pdl() -> bool:
    """What `set_pdl()` set."""
    return bool(_values["pdl"])


def set_mk_alignment_for_contiguous_layout(new_value: int) -> None:
    """Multiple of rows at which groups start in contiguous and psum layouts; 128 at first.

    Contiguous layouts take multiples of 64, psum layouts any number.
    """
    _values["alignment"] = _positive("new_value", new_value)


def get_mk_alignment_for_contiguous_layout() -> int:
    """What was set, else 128."""
    return int(_values["alignment"])


def get_theoretical_mk_alignment_for_contiguous_layout(
    expected_m: int | None = None, num_groups: int | None = None
) -> int:
    """128, as on SM90: programs may go on without setting what they asked for.

    expected_m, num_groups: taken for the interface's sake. Whoever sets 64 pads less.
    """
    return 128


def set_tc_util(new_tc_util: int) -> None:
    """Kept and handed out; Octet's plans do not depend on it."""
    _values["tc_util"] = _positive("new_tc_util", new_tc_util)


def get_tc_util() -> int:
    """What `set_tc_util()` set, 100 at first."""
    return int(_values["tc_util"])


def set_ignore_compile_dims(new_value: bool) -> None:
    """Nothing: no kernel is compiled for the dimensions of a call."""


def set_block_size_multiple_of(new_block_m: int, new_block_n: int | None = None) -> None:
    """Nothing: the planner chooses tiles, and results do not depend on them."""


def use_deterministic_algorithms(enabled: bool = True) -> None:
    """Nothing: results are the same bits every time."""


def options() -> tuple[int, bool]:
    """SM budget (0: all) and programmatic launch of a call now."""
    return _values["num_sms"], _values["pdl"]
