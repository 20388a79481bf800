"""Sentence order prediction: are two consecutive segments in order? (Lan et al. 2019, section 3.1).

Both segments come from one document, so their topic says nothing: label 0 is in order, label 1
swapped. The pair maker cuts documents as next_sentence.py does, and sees to it that the lengths of
the segments say nothing either."""

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
    draw_target,
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
    swapped with, and is left out. Half of the documents are cut from their end: the sentence that
    fills a sequence is longer than others, and would always be in the later segment.
    as_released: as ALBERT's generator does it. Every document is cut from its start, a run of one
    sentence gets a random B and the label 1, and the short length is drawn once for a document.
    Raises ValueError when no document holds a pair."""
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
    """The pairs (a, b, label) that document `number` gives, in the order in which it is cut."""
    step = 1 if as_released or draw.random() < 0.5 else -1
    document, room, pairs, start = documents[number][::step], length - SPECIALS_IN_A_PAIR, [], 0
    target = draw_target(room, short_share, draw)
    while start < len(document):
        chunk = take_sentences(document, start, target)[::step]
        start += len(chunk)
        if len(chunk) > 1:
            split = draw.randint(1, len(chunk) - 1)
            a, b, label = join(chunk[:split]), join(chunk[split:]), IN_ORDER
            if draw.random() < 0.5:
                a, b, label = b, a, SWAPPED
            # Shortened after the swap: of two equally long segments B loses a token first.
            pairs.append((*truncate_pair(a, b, room, draw), label))
        elif as_released:
            a = join(chunk)
            b = from_elsewhere(documents, number, draw, target - len(a))
            pairs.append((*truncate_pair(a, b, room, draw), SWAPPED))
        if not as_released:
            target = draw_target(room, short_share, draw)
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
