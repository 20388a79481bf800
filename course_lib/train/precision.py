"""Which number format to compute in: a short one only where it is multiplied natively."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from pathlib import Path

import torch

from course_lib.config import check_choice

FORMATS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def native_bfloat16(device: str = "cpu") -> bool:
    """True where a bfloat16 matrix product is quicker than a float32 one, not emulated."""
    if device != "cpu":  # torch calls it "supported" on older GPUs too, where it is emulated
        return _capability() >= (8, 0)
    return bool(_flags() & {"avx512_bf16", "amx_bf16"})


@lru_cache(maxsize=1)
def _flags() -> set[str]:
    """What the processor can do; nothing on macOS and Windows, where float32 is never wrong."""
    path = Path("/proc/cpuinfo")
    return set(path.read_text(encoding="utf-8").split()) if path.exists() else set()


def _capability() -> tuple[int, int]:
    """Of the GPU: 7.5 is a T4, as Colab lends it, 8.0 an A100."""
    return torch.cuda.get_device_capability() if torch.cuda.is_available() else (0, 0)


def choose_precision(requested: str = "auto", device: str = "cpu") -> str:
    """ "auto" becomes the quickest of FORMATS that `device` multiplies natively, float16 on older
    GPUs only; anything else must be one of them."""
    check_choice("precision", requested, ("auto", *FORMATS))
    if requested != "auto":
        return requested
    if native_bfloat16(device):
        return "bfloat16"
    return "float16" if device == "cuda" and _capability() >= (7, 0) else "float32"


def computing_in(precision: str, device: str = "cpu") -> AbstractContextManager[object]:
    """A context in which matrix products run in `precision`; weights stay float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device, dtype=FORMATS[precision])


def loss_scaler(precision: str, device: str = "cpu") -> torch.amp.GradScaler:
    """What keeps the gradients of float16 from becoming 0: the loss is multiplied by a large number
    and the gradients are divided by it again; where they overflow, the step is left out and the
    number halved. With the other formats it changes nothing."""
    return torch.amp.GradScaler(device, enabled=precision == "float16")
