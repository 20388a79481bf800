"""FastBERT on the clock: one text and a batch, a small model and a larger one.

Whatever the exits say, all texts leave after half of the layers, or none before the last, so the
FLOPs are known. The second is the hard text: it pays for every exit and leaves at none. The exits
do their work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.config import published
from course_lib.encoder import Encoder
from course_lib.family.fastbert import FastBert

from .inputs import shape
from .measuring import Contender, Measured, Step, Table, contenders_of, forward_only

ROWS, TOKENS, CLASSES = (1, 32), 64, 3
Shape = dict[str, Any]
SMALL, DEEP, BASE = shape(4, 128), shape(12, 256), shape(12, 768)
PLAIN, NONE, HALF = "full depth, one classifier", "all exits, none leaves", "all leave at half"


def tables() -> list[Table]:
    """Each size with one text and with a batch of them, in float32."""
    return [_table(size, rows) for size in (SMALL, DEEP, BASE) for rows in ROWS]


def _table(size: Shape, rows: int) -> Table:
    title = f"FastBERT, {size['num_layers']}×{size['hidden_size']}, {rows}×{TOKENS} tokens"
    return Table(title, contenders(size, rows), partial(remark, size), turn=0.5)


def contenders(size: Shape, rows: int) -> list[Contender]:
    """The same encoder with its last exit alone, and with all of them."""
    makes = {name: partial(work_of, size, rows, name) for name in (PLAIN, NONE, HALF)}
    return contenders_of(makes, rows * TOKENS)


def model_of(size: Shape) -> FastBert:
    """A FastBERT of this size, whose exits are a fourth as wide as it is, BERT-base's 128."""
    config = published("bert", "base", vocab_size=1_000, **size)
    width = 128 if config.hidden_size == 768 else config.hidden_size // 4
    return FastBert(Encoder(config), CLASSES, width).eval()


def work_of(size: Shape, rows: int, name: str) -> Step:
    """Forward only."""
    torch.manual_seed(0)
    model = model_of(size)
    ids = torch.randint(5, 1_000, (rows, TOKENS))
    mask = torch.ones_like(ids)
    leave_at = {NONE: len(model.exits), HALF: len(model.exits) // 2}

    def plain() -> Tensor:
        return model.teacher(model.encoder(ids, mask).last_hidden_state, mask)

    def early() -> Tensor:
        return model.answer(ids, mask, rule=together(leave_at[name])).layers_used

    return forward_only(plain if name == PLAIN else early)


def together(leave_at: int) -> Callable[[Tensor], Tensor]:
    """A rigged rule, for one batch: all leave at this exit."""
    exits = iter(range(1, leave_at + 1))
    return lambda logits: torch.full((len(logits),), next(exits) == leave_at)


def flop_ratio(size: Shape) -> float:
    """FLOPs at full depth with one classifier over those of a text that leaves at half."""
    model = model_of(size)
    flops, leave = model.flops(TOKENS), model.exits[0].flops(TOKENS)  # type: ignore[operator]
    return (flops[-1] - (len(flops) - 1) * leave) / flops[len(flops) // 2 - 1]


def remark(size: Shape, results: Sequence[Measured], on: dict[str, Any]) -> str:
    """What leaving at half gains, in time and in FLOPs, and what a text pays that does not."""
    plain, none, half = (r.median for r in results)
    return (
        f"left at half: time {half / plain:.2f}× less, FLOPs {flop_ratio(size):.2f}× fewer; "
        f"left nowhere: {plain / none - 1:.0%} more time"
    )
