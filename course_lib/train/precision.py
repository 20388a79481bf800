"""Which number format to compute in: bfloat16 only where the processor multiplies it natively."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch

FORMATS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def native_bfloat16(device: str = "cpu") -> bool:
    """True where a bfloat16 matrix product is quicker than a float32 one, not emulated."""
    if device != "cpu":  # torch calls it "supported" on older GPUs too, such as Colab's T4
        return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)
    flags = Path("/proc/cpuinfo")
    if not flags.exists():  # macOS and Windows: nothing to read, and float32 is never wrong
        return False
    words = set(flags.read_text().split())
    return bool(words & {"avx512_bf16", "amx_bf16"})


def choose_precision(requested: str = "auto", device: str = "cpu") -> str:
    """ "auto" becomes "bfloat16" or "float32"; anything else must be one of these two."""
    if requested == "auto":
        return "bfloat16" if native_bfloat16(device) else "float32"
    if requested not in FORMATS:
        raise ValueError(
            f"precision {requested!r} was given; expected auto, {' or '.join(FORMATS)}."
        )
    return requested


def computing_in(precision: str, device: str = "cpu") -> AbstractContextManager[object]:
    """A context in which matrix products run in `precision`; weights stay float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device, dtype=FORMATS[precision])
