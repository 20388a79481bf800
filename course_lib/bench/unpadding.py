"""Padding removed: BERT's blocks on real tokens alone, beside transformers' and the course's own
padded batch.

Every contender reads the same batch of B×T positions, so rates count positions, padding included,
and the ratio of two rates is the gain in time. The rows named "linear part" leave attention out;
what is left are projections, feed-forward and norms, where the most to be gained is 1/(1 − p) for a
fraction p of padding. Making the list, once a batch, is timed with the whole encoder. Attention is
timed by itself in tables of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.config import published
from course_lib.encoder import Block, Encoder, SelfAttention, Stack
from course_lib.kernels.unpadding import (
    Packing,
    packed_attention,
    packed_attention_reference,
    shared_rows_attention,
)
from course_lib.train.precision import FORMATS

from .inputs import SPECIAL, random_sequences, shape
from .measuring import (
    Contender,
    Measured,
    Step,
    Table,
    contenders_of,
    forward_only,
    precisions,
)
from .sharing import peer_bert

BATCHES = ((32, 128), (8, 512))
PADDING = (0.25, 0.5, 0.75)  # fractions of a batch, about
SHAPE = shape(2, 768)  # of base width; more layers would multiply every time alike
PARTS = 4  # batches that texts sorted by length are read in
GOAL = 0.9
Attend = Callable[..., Tensor]


def tables() -> list[Table]:
    """One a batch and number format: whole encoder and linear part; then attention alone."""
    made = []
    for precision in precisions():
        for batch, tokens in BATCHES:
            size = f"{SHAPE['num_layers']}×{SHAPE['hidden_size']}, {batch}×{tokens}, {precision}"
            made.append(
                Table(
                    f"Padding removed, inference, {size}",
                    contenders(batch, tokens, precision),
                    partial(remark, batch, tokens),
                    turn=0.1,
                )
            )
    batch, tokens = BATCHES[0]
    made += [
        Table(
            f"Attention among real tokens, {SHAPE['num_heads']} heads, {batch}×{tokens}, half "
            f"padding, {precision}",
            attention_contenders(batch, tokens, precision),
            turn=0.1,
        )
        for precision in precisions()
    ]
    return made


def padded_mask(batch: int, tokens: int, padding: float) -> Tensor:
    """(B, T): rows of all lengths up to T, T among them, with about that fraction of padding.

    Lengths are T·u^k for u evenly spread over 0 to 1: their mean is T/(k + 1)."""
    u = (torch.arange(batch) + 0.5) / batch
    lengths = (tokens * u ** (padding / (1 - padding))).round().clamp(min=2)
    lengths[-1] = tokens
    shuffled = lengths[torch.randperm(batch, generator=torch.Generator().manual_seed(0))]
    return (torch.arange(tokens) < shuffled[:, None]).long()


def contenders(batch: int, tokens: int, precision: str) -> list[Contender]:
    """The padded ones once, as their time does not depend on how much is padding."""
    sizes = (batch, tokens)
    makes: dict[str, Callable[[], Step]] = {
        "transformers' BertModel (sdpa), padded": partial(peer, *sizes, 0.5, precision),
        "ours, padded": partial(encoding, *sizes, 0.5, precision, False),
    }
    for p in PADDING:
        name = f"ours, padding removed, {p:.0%} padding"
        makes[name] = partial(encoding, *sizes, p, precision, True)
    makes["linear part, padded"] = partial(linear_part, *sizes, 0.5, precision, False)
    for p in PADDING:
        name = f"linear part, padding removed, {p:.0%} padding"
        makes[name] = partial(linear_part, *sizes, p, precision, True)
    for p in PADDING:
        name = f"transformers' BertModel (sdpa), sorted, {p:.0%} padding"
        makes[name] = partial(sorted_peer, *sizes, p, precision)
    return contenders_of(makes, batch * tokens)


def attention_contenders(batch: int, tokens: int, precision: str) -> list[Contender]:
    """Both ways of keeping attention to the real tokens, and the padded batch."""
    ways = {
        "padded: packed_attention_reference": packed_attention_reference,
        "texts of one length together: packed_attention": packed_attention,
        "texts share a row: shared_rows_attention": shared_rows_attention,
    }
    makes = {name: partial(attending, w, batch, tokens, precision) for name, w in ways.items()}
    return contenders_of(makes, batch * tokens)


def peer(batch: int, tokens: int, padding: float, precision: str) -> Step:
    """transformers' model, which knows padding only as a mask."""
    torch.manual_seed(0)
    model = peer_bert(SHAPE).eval().to(FORMATS[precision])
    ids, mask = random_sequences(batch, tokens).input_ids, padded_mask(batch, tokens, padding)
    return forward_only(lambda: model(ids, attention_mask=mask))


def sorted_peer(batch: int, tokens: int, padding: float, precision: str) -> Step:
    """The same model on the same texts, sorted by length and read in PARTS batches, each cut to its
    own longest: what one does where padding cannot be left out."""
    torch.manual_seed(0)
    model = peer_bert(SHAPE).eval().to(FORMATS[precision])
    ids, mask = random_sequences(batch, tokens).input_ids, padded_mask(batch, tokens, padding)
    parts = []
    for part in mask.sum(1).argsort().chunk(PARTS):
        longest = int(mask[part].sum(1).max())
        parts.append((ids[part, :longest], mask[part, :longest]))
    return forward_only(lambda: [model(x, attention_mask=seen) for x, seen in parts])


def encoding(batch: int, tokens: int, padding: float, precision: str, removed: bool) -> Step:
    """Ours, forward only; finding the real tokens is part of the step."""
    torch.manual_seed(0)
    config = published("bert", "base", vocab_size=SPECIAL.vocab_size, **SHAPE)
    model = Encoder(config).eval().to(FORMATS[precision])
    ids, mask = random_sequences(batch, tokens).input_ids, padded_mask(batch, tokens, padding)
    return forward_only(lambda: model(ids, mask, remove_padding=removed))


class NoAttention(SelfAttention):
    """The four projections, and no token sees another."""

    def forward(self, x: Tensor, *_: Any) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return self.output(self.query(x).add_(self.key(x)).add_(self.value(x))), None, None


def linear_part(batch: int, tokens: int, padding: float, precision: str, removed: bool) -> Step:
    """One block without attention, on the padded batch or on the list of real tokens."""
    torch.manual_seed(0)
    config = published("bert", "base", **{**SHAPE, "num_layers": 1})
    stack = Stack(config)
    stack.blocks[0] = Block(config, NoAttention(config))
    stack.eval().to(FORMATS[precision])
    x = torch.randn(batch, tokens, config.hidden_size).to(FORMATS[precision])
    if removed:
        x = Packing(padded_mask(batch, tokens, padding)).unpad(x)  # (N, H)
    return forward_only(lambda: stack(x))


def attending(attend: Attend, batch: int, tokens: int, precision: str) -> Step:
    """Attention alone, its layout known, as in every layer but the first."""
    packing = Packing(padded_mask(batch, tokens, 0.5))
    shape = (len(packing.positions), SHAPE["hidden_size"])
    query, key, value = (torch.randn(shape).to(FORMATS[precision]) for _ in range(3))
    return forward_only(lambda: attend(query, key, value, packing, SHAPE["num_heads"]))


def remark(batch: int, tokens: int, results: Sequence[Measured], on: dict[str, Any]) -> str:
    """Gains over the padded batch and over sorted texts beside the limit, and the goal for the
    linear part."""
    medians, n = [r.median for r in results], len(PADDING)
    (peers, padded), whole, sorted_texts = medians[:2], medians[2 : 2 + n], medians[-n:]
    linear_padded, *linear = medians[2 + n : -n]
    lines = []
    for padding, ours, part, by_length in zip(PADDING, whole, linear, sorted_texts, strict=True):
        limit = 1 / padded_mask(batch, tokens, padding).float().mean().item()
        lines.append(
            f"padding {1 - 1 / limit:.0%}: {ours / peers:.2f}× transformers', "
            f"{ours / by_length:.2f}× its sorted texts, {ours / padded:.2f}× ours padded; "
            f"linear part {part / linear_padded:.2f}× (goal {GOAL * limit:.2f}×, "
            f"limit {limit:.2f}×)"
        )
    return "\n".join(lines)
