"""What a DeBERTa reads beyond the reach of its table of distances, tried on untrained models; and
what its position terms cost."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from course_lib.config import encoder_flops
from course_lib.encoder import Encoder
from course_lib.family.deberta import DebertaConfig, deberta
from course_lib.kernels.positions import position_rows

TOKENS, SPAN = 40, 4
WORD, EXCHANGED = 30, (30, 35)  # positions, all further from position 0 than the table reaches


def small_encoder(blocks: int) -> Encoder:
    """A DeBERTa with k = 4, randomly initialised, in float64."""
    torch.manual_seed(0)
    return deberta(
        "base", vocab_size=TOKENS + 1, num_layers=blocks, hidden_size=32, num_heads=2,
        intermediate_size=64, max_positions=TOKENS, span=SPAN, initializer_range=0.2,
    ).double().eval()  # fmt: skip


@lru_cache(maxsize=4)
@torch.no_grad()
def far_changes(blocks: int) -> tuple[float, float]:
    """How far the first token's vector moves when something changes that lies beyond the table:
    when one word becomes another one, and when two words change places."""
    encoder, text = small_encoder(blocks), torch.arange(TOKENS)[None]
    other, exchanged = text.clone(), text.clone()
    other[0, WORD] = TOKENS
    exchanged[0, list(EXCHANGED)] = text[0, list(EXCHANGED[::-1])]

    def first(ids: Tensor) -> Tensor:
        return encoder(ids).last_hidden_state[0, 0]  # type: ignore[no-any-return]

    moved = [float((first(ids) - first(text)).abs().max()) for ids in (other, exchanged)]
    return moved[0], moved[1]


def pairs_of_two_rules(tokens: int, span: int, furthest: int) -> float:
    """The fraction of all pairs of a text whose row differs between transformers' rule and the
    authors'."""
    rows, cut = (position_rows(tokens, span, furthest, one) for one in (False, True))
    distance = torch.arange(1 - tokens, tokens)
    return float((tokens - distance.abs())[rows != cut].sum() / tokens**2)


# ---------------------------------------------------------------- what the position terms cost


def position_flops(config: DebertaConfig, tokens: int, batch: int) -> tuple[int, int]:
    """FLOPs that the position terms add to one pass through the blocks, forward; a multiply-add
    counts as two: of the products of each text's tokens with the rows that its length reaches, and
    of projecting these rows, once whatever the batch. A training step has three times both.

    (`train.flops.step_flops` counts the same: a test.)"""
    H, L = config.hidden_size, config.num_layers
    rows, terms = min(2 * config.span, 2 * tokens - 1), len(config.terms)
    return batch * L * terms * 2 * tokens * rows * H, L * terms * 2 * rows * H * H


def more_flops(config: DebertaConfig, tokens: int, batch: int) -> float:
    """The same, both together, as a fraction of what the blocks need without position terms."""
    return sum(position_flops(config, tokens, batch)) / (batch * encoder_flops(config, tokens))
