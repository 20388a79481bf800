"""Early exit: what leaving early saves in time, beside what it saves in FLOPs.

Exits sit after every layer and are rigged: whatever they say, an equal part of the texts leaves at
each, so the FLOPs are known. The exits themselves do their work. "Tokens" are those
that enter the first layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import published
from course_lib.encoder import Stack
from course_lib.kernels.early_exit import Exit, Layer, early_exit
from course_lib.train.precision import FORMATS

from .inputs import shape
from .measuring import (
    Contender,
    Measured,
    Step,
    Table,
    contenders_of,
    forward_only,
    precisions,
)

ROWS, TOKENS, CLASSES = 32, 128, 3
GOAL = 0.85
Shape = dict[str, Any]
DEEP, WIDE = shape(12, 256), shape(4, 768)


def tables() -> list[Table]:
    """Twelve narrow layers, and four of base width, in each number format worth using here."""
    return [_table(size, precision) for precision in precisions() for size in (DEEP, WIDE)]


def _table(size: Shape, precision: str) -> Table:
    return Table(
        f"Early exit, {size['num_layers']}×{size['hidden_size']}, {ROWS}×{TOKENS} tokens, "
        f"{precision}",
        contenders(size, precision),
        partial(remark, size),
        turn=0.5,
    )


def contenders(size: Shape, precision: str) -> list[Contender]:
    """The same layers and exits; at full depth no exit is confident but the last."""
    early = {"full depth": False, "texts leave evenly": True}
    makes = {name: partial(leaving, size, precision, leave) for name, leave in early.items()}
    return contenders_of(makes, ROWS * TOKENS)


class Evenly:
    """A rigged classifier at the exits: of B texts, after k of L layers B·k/L have left, the first
    first."""

    def __init__(self, layers: int) -> None:
        self.layers = layers
        self.left_at: list[int] = []  # how many texts were under way at each exit so far

    def __call__(self, logits: Tensor) -> Tensor:
        self.left_at.append(len(logits))
        stay = _staying(self.left_at[0], len(self.left_at), self.layers)
        return torch.arange(len(logits)) < len(logits) - stay


def leaving(size: Shape, precision: str, early: bool) -> Step:
    """Forward only; an exit is a small classifier on [CLS]."""
    torch.manual_seed(0)
    config = published("bert", "base", **size)
    stack = Stack(config).eval().to(FORMATS[precision])
    heads = [nn.Linear(config.hidden_size, CLASSES).to(FORMATS[precision]) for _ in stack.blocks]
    layers: list[Layer] = [as_layer(block) for block in stack.blocks]
    exits: list[Exit] = [on_cls(head) for head in heads]
    x = torch.randn(ROWS, TOKENS, config.hidden_size).to(FORMATS[precision])
    mask = torch.ones(ROWS, TOKENS, dtype=torch.long)

    def nobody(logits: Tensor) -> Tensor:
        return torch.zeros(len(logits), dtype=torch.bool)

    def work() -> None:
        confident: Callable[[Tensor], Tensor] = Evenly(len(layers)) if early else nobody
        early_exit(x, layers, exits, confident, mask)

    return forward_only(work)


def as_layer(block: nn.Module) -> Layer:
    return lambda x, mask: block(x, mask)[0]


def on_cls(head: nn.Module) -> Exit:
    return lambda x, mask: head(x[:, 0])  # (B, T, H) -> (B, C)


def under_way(layers: int, batch: int = ROWS) -> list[int]:
    """How many texts each layer sees when they leave evenly."""
    return [_staying(batch, passed, layers) for passed in range(layers)]


def _staying(batch: int, passed: int, layers: int) -> int:
    """Of a batch, those still under way after so many of the layers' exits."""
    return batch * (layers - passed) // layers


def flop_ratio(layers: int) -> float:
    """FLOPs at full depth over those of texts that leave evenly: each costs its layers."""
    return layers * ROWS / sum(under_way(layers))


def remark(size: Shape, results: Sequence[Measured], on: dict[str, Any]) -> str:
    """The gain in time over the gain in FLOPs; the goal is 0.85 at least."""
    full, early = (r.median for r in results)
    gain, flops = early / full, flop_ratio(size["num_layers"])
    return (
        f"time {gain:.2f}× less, FLOPs {flops:.2f}× fewer: {gain / flops:.2f} of what they "
        f"promise (goal: {GOAL} or more)"
    )
