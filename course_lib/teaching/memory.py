"""How much a training step keeps in memory beside the weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def activation_bytes(model: nn.Module, *inputs: Tensor, **named: Any) -> int:
    """Bytes that the forward pass keeps for the backward pass, weights not counted.

    Each piece of memory counts once, however many operations keep it."""
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}
    alive: list[Tensor] = []  # so that no address is given away twice

    def keep(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
            alive.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        _ = model(*inputs, **named)
    return sum(kept.values())
