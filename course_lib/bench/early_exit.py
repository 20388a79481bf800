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
from course_lib.train.precision import FORMATS, native_bfloat16

from .measuring import Contender, Measured, Step, Table

ROWS, TOKENS, CLASSES = 32, 128, 3
GOAL = 0.85
Shape = dict[str, Any]
DEEP: Shape = {"num_layers": 12, "hidden_size": 256, "num_heads": 4, "intermediate_size": 1_024}
WIDE: Shape = {"num_layers": 4, "hidden_size": 768, "num_heads": 12, "intermediate_size": 3_072}


def tables() -> list[Table]:
    """Twelve narrow layers, and four of base width, in each number format worth using here."""
    precisions = ["float32", *(["bfloat16"] if native_bfloat16() else [])]
    return [_table(shape, precision) for precision in precisions for shape in (DEEP, WIDE)]


def _table(shape: Shape, precision: str) -> Table:
    return Table(
        f"Early exit, {shape['num_layers']}×{shape['hidden_size']}, {ROWS}×{TOKENS} tokens, "
        f"{precision}",
        contenders(shape, precision),
        partial(remark, shape),
        turn=0.5,
    )


def contenders(shape: Shape, precision: str) -> list[Contender]:
    """The same layers and exits; at full depth no exit is confident but the last."""
    return [
        Contender("full depth", partial(leaving, shape, precision, False), ROWS * TOKENS),
        Contender("rows leave evenly", partial(leaving, shape, precision, True), ROWS * TOKENS),
    ]


class Evenly:
    """A rigged classifier at the exits: of B texts, after k of L layers B·k/L have left, the first
    first."""

    def __init__(self, layers: int) -> None:
        self.layers = layers
        self.left_at: list[int] = []  # how many texts were under way at each exit so far

    def __call__(self, logits: Tensor) -> Tensor:
        self.left_at.append(len(logits))
        stay = self.left_at[0] * (self.layers - len(self.left_at)) // self.layers
        return torch.arange(len(logits)) < len(logits) - stay


def leaving(shape: Shape, precision: str, early: bool) -> Step:
    """Forward only; an exit is a small classifier on [CLS]."""
    torch.manual_seed(0)
    config = published("bert", "base", **shape)
    stack = Stack(config).eval().to(FORMATS[precision])
    heads = [nn.Linear(config.hidden_size, CLASSES).to(FORMATS[precision]) for _ in stack.plan]
    layers: list[Layer] = [_as_layer(block) for block in stack.blocks]
    exits: list[Exit] = [_on_cls(head) for head in heads]
    x = torch.randn(ROWS, TOKENS, config.hidden_size).to(FORMATS[precision])
    mask = torch.ones(ROWS, TOKENS, dtype=torch.long)

    def nobody(logits: Tensor) -> Tensor:
        return torch.zeros(len(logits), dtype=torch.bool)

    def step() -> None:
        judge: Callable[[Tensor], Tensor] = Evenly(len(layers)) if early else nobody
        with torch.inference_mode():
            early_exit(x, layers, exits, judge, mask)

    return step


def _as_layer(block: nn.Module) -> Layer:
    return lambda x, mask: block(x, mask)[0]


def _on_cls(head: nn.Module) -> Exit:
    return lambda x: head(x[:, 0])  # (B, T, H) -> (B, C)


def flop_ratio(layers: int) -> float:
    """FLOPs at full depth over those of texts that leave evenly: each costs its layers."""
    judge, under_way, rows = Evenly(layers), ROWS, []
    for _ in range(layers):
        rows.append(under_way)
        under_way -= int(judge(torch.zeros(under_way, CLASSES)).sum())
    return layers * ROWS / sum(rows)


def remark(shape: Shape, results: Sequence[Measured], on: dict[str, Any]) -> str:
    """The gain in time over the gain in FLOPs; the goal is 0.85 at least."""
    full, early = (r.median for r in results)
    gain, flops = early / full, flop_ratio(shape["num_layers"])
    return (
        f"time {gain:.2f}× less, operations {flops:.2f}× fewer: {gain / flops:.2f} of what they "
        f"promise (goal: {GOAL} or more)"
    )
