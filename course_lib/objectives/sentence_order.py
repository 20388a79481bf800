"""Sentence order prediction: are two consecutive segments in order? (Lan et al. 2019, section 3.1).

Both segments come from one document, so their topic says nothing: label 0 is in order, label 1
swapped. The pair maker cuts documents as next_sentence.py does, and differs in one line."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from course_lib.kernels.masked_loss import mean_cross_entropy

from .masked_lm import masked_lm_loss
from .next_sentence import (
    SPECIALS_IN_A_PAIR,
    Document,
    Pair,
    from_elsewhere,
    join,
    pack_pairs,
    take_sentences,
    truncate_pair,
)
from .sequences import PackedSequences, SpecialIds

IN_ORDER, SWAPPED = 0, 1


def make_ordered_pairs(
    documents: Sequence[Document],
    special: SpecialIds,
    *,
    length: int,
    seed: int = 0,
    short_share: float = 0.1,
    as_released: bool = False,
) -> PackedSequences:
    """Pairs of consecutive segments, half of them swapped, with `sentence_order_label` (N,).

    documents, length, seed, short_share: as for make_pairs. A run of one sentence has nothing to be
    swapped with, and is left out; `as_released` gives it a random B and the label 1 instead, as the
    released generator does. Raises ValueError when no document holds a pair."""
    pairs_of = partial(ordered_pairs_of_document, as_released=as_released)
    fewest = 2 if as_released else 1  # a random B comes from another document
    return pack_pairs(documents, special, pairs_of, length, seed, short_share, fewest)


def ordered_pairs_of_document(
    documents: Sequence[Document],
    number: int,
    draw: random.Random,
    length: int,
    short_share: float = 0.1,
    as_released: bool = False,
) -> list[Pair]:
    """The pairs (a, b, label) that document `number` gives, in order."""
    document, pairs, start = documents[number], [], 0
    while start < len(document):
        room = length - SPECIALS_IN_A_PAIR
        target = draw.randint(2, room) if draw.random() < short_share else room
        chunk = take_sentences(document, start, target)
        start += len(chunk)
        if len(chunk) > 1:
            split = draw.randint(1, len(chunk) - 1)
            a, b = truncate_pair(join(chunk[:split]), join(chunk[split:]), room, draw)
            swapped = draw.random() < 0.5
            pairs.append((b, a, SWAPPED) if swapped else (a, b, IN_ORDER))
        elif as_released:
            a = join(chunk)
            b = from_elsewhere(documents, number, draw, target - len(a))
            pairs.append((*truncate_pair(a, b, room, draw), SWAPPED))
    return pairs


def sentence_order_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean of −log P(the true label), in nats: outputs.sop_logits (B, 2)."""
    label, count = targets["next_sentence_label"], targets.get("num_next_sentence_label")  # (B,)
    loss = mean_cross_entropy(outputs.sop_logits, label, count)
    return {"total": loss, "sop": loss}


def albert_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean over the selected positions plus mean over the pairs, in nats: total, mlm, sop."""
    mlm = masked_lm_loss(outputs, targets)["mlm"]
    sop = sentence_order_loss(outputs, targets)["sop"]
    return {"total": mlm + sop, "mlm": mlm, "sop": sop}
