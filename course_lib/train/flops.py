"""How many FLOPs a text or a training step takes, counted while it runs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from course_lib.objectives.sequences import Batch

from .loop import Objective


def step_flops(model: nn.Module, objective: Objective, *batches: Batch) -> int:
    """FLOPs of the matrix products of a step, forward and backward, on this batch or the mean over
    several; a multiply-add counts as two. All networks in the model count, also those that are
    thrown away later. Leaves no gradients behind."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    # Of the mathematics, not of the quickest path: fused attention computes its scores twice.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        for batch in batches:
            objective(model(**batch.inputs), batch.targets)["total"].backward()
    model.zero_grad(set_to_none=True)
    return round(counter.get_total_flops() / len(batches))


def forward_flops(build: Callable[[], nn.Module], tokens: int) -> int:
    """FLOPs of the matrix products of an encoder's forward pass over one text of `tokens` tokens; a
    multiply-add counts as two. Counted on shapes: nothing is allocated or computed.

    build: makes the encoder, such as `mobilebert`."""
    with torch.device("meta"):
        return text_flops(build(), tokens)


def text_flops(model: nn.Module, tokens: int) -> int:
    """The same of an encoder that is there. It is left in evaluation mode."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    ids = torch.zeros(1, tokens, dtype=torch.long, device=next(model.parameters()).device)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as result:
        model.eval()(ids)
    return int(result.get_total_flops())
