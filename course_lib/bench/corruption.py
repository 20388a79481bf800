"""ELECTRA's corruption: what sampling a token at each masked position adds to the generator's own
forward pass.

The generator predicts at the masked positions only. Sampling reads every logit once more, so it is
costliest where the generator is cheapest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.config import published
from course_lib.family.electra import (
    GENERATOR_SIZE,
    ElectraConfig,
    electra_encoder,
    fill_in,
    generator_config,
)
from course_lib.heads import BertForMaskedLM
from course_lib.train.precision import FORMATS

from .inputs import random_sequences
from .measuring import (
    Contender,
    Measured,
    Step,
    Table,
    contenders_of,
    forward_only,
    precisions,
)

ROWS, TOKENS, RATE = 32, 128, 0.15
SIZES = ("small", "base")
Fill = Callable[[Tensor, Tensor, Tensor], Tensor]  # ids, positions, logits -> new ids


def tables() -> list[Table]:
    """One a published generator, in each number format worth using here."""
    return [_table(size, precision) for precision in precisions() for size in SIZES]


def _table(size: str, precision: str) -> Table:
    config = generator_config(published("electra", size, ElectraConfig), GENERATOR_SIZE[size])
    return Table(
        f"Corruption by ELECTRA-{size}'s generator, {config.num_layers}×{config.hidden_size}, "
        f"{ROWS}×{TOKENS} tokens, {RATE:.0%} masked, V={config.vocab_size:,}, {precision}",
        contenders(config, precision),
        remark,
    )


def contenders(config: ElectraConfig, precision: str) -> list[Contender]:
    """The generator alone, with the course's sampling, and with torch's."""
    fills: dict[str, Fill | None] = {
        "the generator's forward pass": None,
        "… and sampling: fill_in": fill_in,
        "… and torch's softmax and multinomial instead": torch_fill_in,
    }
    makes = {name: partial(corrupting, config, precision, fill) for name, fill in fills.items()}
    return contenders_of(makes, ROWS * TOKENS)


def torch_fill_in(input_ids: Tensor, predict_at: Tensor, logits: Tensor) -> Tensor:
    """The peer: torch's own sampling from the same distribution."""
    filled = input_ids.flatten().clone()
    filled[predict_at] = torch.multinomial(logits.float().softmax(-1), 1).squeeze(1)
    return filled.view_as(input_ids)


def corrupting(config: ElectraConfig, precision: str, fill: Fill | None) -> Step:
    """Forward only; in bfloat16 the weights themselves are bfloat16."""
    torch.manual_seed(0)
    generator = BertForMaskedLM(electra_encoder(config)).eval().to(FORMATS[precision])
    ids = random_sequences(ROWS, TOKENS).input_ids % config.vocab_size
    count = round(RATE * ids.numel())
    predict_at = torch.randperm(ids.numel())[:count].sort().values

    def work() -> None:
        logits = generator(ids, predict_at=predict_at).logits  # (N, V)
        if fill is not None:
            fill(ids, predict_at, logits)

    return forward_only(work)


def remark(results: Sequence[Measured], on: dict[str, Any]) -> str:
    """Time with sampling over time without it; the goal is 1.10 at most."""
    alone, ours, torchs = (r.median for r in results)
    return (
        f"time with sampling / without: ours {alone / ours:.2f}×, torch's {alone / torchs:.2f}× "
        "(goal: 1.10× or less)"
    )
