"""In which number format sums are taken: the tensor's own if it is wide enough, else float32."""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor


def upcast_type(*tensors: Tensor) -> torch.dtype:
    """float64 where one of them is, else float32."""
    return reduce(torch.promote_types, (x.dtype for x in tensors), torch.float32)


def upcast(x: Tensor) -> Tensor:
    """x in float32, or in float64 if it is: bfloat16 keeps 8 bits, too few for a long sum."""
    return x.to(upcast_type(x))
