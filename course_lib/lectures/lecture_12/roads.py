"""Texts that differ in the depth they need: where does one end up after one, two or three roads?

From each of eight places one road leads to another place, and all roads together form one round
trip. A text is [CLS] start number [SEP] and the eight roads in random order. Each road has one
position: its token is the place where it begins, its segment the place where it leads. The answer
is a place."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.objectives.sequences import PackedSequences
from course_lib.text.tasks import LabelledSequences

PLACES = "ABCDEFGH"
COUNTS = torch.tensor([1, 1, 2, 3])  # how many are taken: every second text takes one
CLS, SEP, NUMBER = 1, 2, 2  # tokens; a number n of roads is NUMBER + n
FIRST = 6  # token of the first place


def road_texts(count: int, seed: int) -> LabelledSequences:
    """`count` texts of 12 tokens and their answers, drawn by the seed."""
    generator, N = torch.Generator().manual_seed(seed), len(PLACES)
    trip = torch.rand(count, N, generator=generator).argsort(1)  # (B, N): each leads to the next
    order = torch.rand(count, N, generator=generator).argsort(1)
    begins, leads = trip.gather(1, order), trip.roll(-1, 1).gather(1, order)
    roads = COUNTS[torch.randint(len(COUNTS), (count, 1), generator=generator)]
    at = torch.randint(N, (count, 1), generator=generator)
    start, answer = trip.gather(1, at), trip.gather(1, (at + roads) % N)
    cls, sep = (torch.full((count, 1), token) for token in (CLS, SEP))
    ids = torch.cat([cls, FIRST + start, NUMBER + roads, sep, FIRST + begins], 1)
    types = torch.cat([torch.zeros(count, 4, dtype=torch.long), 1 + leads], 1)
    packed = PackedSequences(ids, torch.ones_like(ids), types)
    return LabelledSequences(packed, answer.squeeze(1), tuple(PLACES))


def roads_of(texts: LabelledSequences) -> Tensor:
    """How many roads each text takes: (N,)."""
    return texts.sequences.input_ids[:, 2] - NUMBER


def as_text(texts: LabelledSequences, index: int) -> str:
    """A text as a reader sees it, with its answer."""
    ids, types = (x[index].tolist() for x in (texts.sequences.input_ids,
                                              texts.sequences.token_type_ids))  # fmt: skip
    listed = " ".join(
        f"{PLACES[i - FIRST]}→{PLACES[t - 1]}" for i, t in zip(ids[4:], types[4:], strict=True)
    )
    start, number = PLACES[ids[1] - FIRST], ids[2] - NUMBER
    return f"{listed} · from {start}, roads: {number} · {texts.names[texts.labels[index]]}"


def road_encoder(layers: int, seed: int) -> Encoder:
    """A randomly initialised BERT, 64 wide, for these texts; it drops nothing out."""
    torch.manual_seed(seed)
    N = len(PLACES)
    return Encoder(BertConfig(
        vocab_size=FIRST + N, max_positions=N + 4, type_vocab_size=N + 1, hidden_size=64,
        num_layers=layers, num_heads=2, intermediate_size=256, hidden_dropout=0,
        attention_dropout=0, initializer_range=0.05,
    ))  # fmt: skip
