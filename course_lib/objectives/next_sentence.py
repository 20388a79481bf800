"""Next sentence prediction: does B follow A? (Devlin et al. 2018, section 3.1, task 2).

The pair maker follows the released generator: a "sentence" is a run of whole sentences, label 0 is
IsNext, label 1 NotNext, and B comes from another document in half of the cases."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.masked_loss import mean_cross_entropy

from .sequences import PackedSequences, SpecialIds, pack, to_sequences

IS_NEXT, NOT_NEXT = 0, 1
AT_ONCE = 2_000  # documents: Python lists weigh ten times what a tensor does
SPECIALS_IN_A_PAIR = 3  # [CLS] a [SEP] b [SEP]

Sentence = Sequence[int]
Document = Sequence[Sentence]
Pair = tuple[list[int], list[int], int]  # segment A, segment B, label
# (documents, number of one, random numbers, length, fraction of short pairs) -> its pairs
PairsOfDocument = Callable[[Sequence[Document], int, random.Random, int, float], list[Pair]]


def make_pairs(
    documents: Sequence[Document],
    special: SpecialIds,
    *,
    length: int,
    seed: int = 0,
    short_share: float = 0.1,
) -> PackedSequences:
    """Pairs of segments packed to `length` positions, with `next_sentence_label` (N,).

    documents: document → sentences → ids. A fraction `short_share` of the pairs aims at a shorter
    length. (The released generator draws that once for a document and pass: more pairs are short,
    19% of them on this course's documentation at 128 tokens.) A chunk that ends with its document
    is short, too, which tells a little where documents are: lecture 05 measures how much lengths
    alone say. Raises ValueError for fewer than two documents or an empty one."""
    return pack_pairs(documents, special, pairs_of_document, length, seed, short_share)


def pack_pairs(
    documents: Sequence[Document],
    special: SpecialIds,
    pairs_of: PairsOfDocument,
    length: int,
    seed: int,
    short_share: float,
    fewest: int = 2,
) -> PackedSequences:
    """The pairs that `pairs_of` makes of every document, packed, with their labels.

    fewest: how many documents it needs; two if it takes segments from others."""
    _check(documents, length, fewest)
    draw = random.Random(seed)
    parts, labels = [], []
    for start in range(0, len(documents), AT_ONCE):
        packed = []
        for number in range(start, min(start + AT_ONCE, len(documents))):
            for a, b, label in pairs_of(documents, number, draw, length, short_share):
                packed.append(pack(a, b, special, length))
                labels.append(label)
        if packed:
            parts.append(to_sequences(packed))
    if not parts:
        raise ValueError(
            "No document gave a pair; expected at least one with two sentences that fit the length."
        )
    return PackedSequences(
        torch.cat([part.input_ids for part in parts]),
        torch.cat([part.attention_mask for part in parts]),
        torch.cat([part.token_type_ids for part in parts]),
        torch.tensor(labels),
    )


def pairs_of_document(
    documents: Sequence[Document],
    number: int,
    draw: random.Random,
    length: int,
    short_share: float = 0.1,
    one_sentence: bool = False,
) -> list[Pair]:
    """The pairs (a, b, label) that document `number` gives, in order."""
    document, pairs, start = documents[number], [], 0
    while start < len(document):
        room = length - SPECIALS_IN_A_PAIR
        target = draw_target(room, short_share, draw)
        if one_sentence:  # one token more than A has: as much as makes one other sentence
            target = len(document[start]) + 1
        chunk = take_sentences(document, start, target)
        split = draw.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        a = join(chunk[:split])
        # A chunk of one sentence has nothing that could follow: its B is always a random one.
        if len(chunk) == 1 or draw.random() < 0.5:
            b, label = from_elsewhere(documents, number, draw, target - len(a)), NOT_NEXT
            start += split  # the unused rest of the chunk is used again
        else:
            b, label = join(chunk[split:]), IS_NEXT
            start += len(chunk)
        pairs.append((*truncate_pair(a, b, room, draw), label))
    return pairs


def one_sentence_pairs_of_document(
    documents: Sequence[Document],
    number: int,
    draw: random.Random,
    length: int,
    short_share: float = 0.0,
) -> list[Pair]:
    """The same, but A and B are one natural sentence each (SENTENCE-PAIR of Liu et al. 2019,
    section 4.2)."""
    return pairs_of_document(documents, number, draw, length, short_share, one_sentence=True)


def truncate_pair(
    a: Sequence[int], b: Sequence[int], room: int, draw: random.Random
) -> tuple[list[int], list[int]]:
    """Take tokens from the longer segment, at its front or its end, until both fit into `room`."""
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        longer = a if len(a) > len(b) else b
        longer.pop(0 if draw.random() < 0.5 else -1)
    return a, b


def next_sentence_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean of −log P(the true label), in nats: outputs.seq_relationship_logits (B, 2)."""
    label, count = targets["next_sentence_label"], targets.get("num_next_sentence_label")  # (B,)
    loss = mean_cross_entropy(outputs.seq_relationship_logits, label, count)
    return {"total": loss, "nsp": loss}


def draw_target(room: int, short_share: float, draw: random.Random) -> int:
    """How many tokens the next pair aims at: `room`, or from 2 to `room` in `short_share` cases."""
    return draw.randint(2, room) if draw.random() < short_share else room


def take_sentences(document: Document, start: int, target: int) -> list[Sentence]:
    """Sentences from `start` on, until together they hold `target` tokens or the document ends."""
    chunk: list[Sentence] = []
    for sentence in document[start:]:
        chunk.append(sentence)
        if sum(map(len, chunk)) >= target:
            break
    return chunk


def from_elsewhere(
    documents: Sequence[Document], number: int, draw: random.Random, room: int
) -> list[int]:
    """A run of sentences from a random position of another document, about `room` tokens long."""
    other = draw.randrange(len(documents) - 1)
    other += other >= number  # skips the document itself
    document = documents[other]
    return join(take_sentences(document, draw.randrange(len(document)), room))


def join(sentences: Sequence[Sentence]) -> list[int]:
    """Sentences as one run of ids."""
    return [token for sentence in sentences for token in sentence]


def _check(documents: Sequence[Document], length: int, fewest: int) -> None:
    if len(documents) < fewest:
        needed = "two, because a random segment is taken from another document"
        raise ValueError(
            f"{len(documents)} document(s) were given; expected at least "
            f"{needed if fewest == 2 else 'one'}."
        )
    if length < SPECIALS_IN_A_PAIR + 2:
        raise ValueError(
            f"length={length} was given; expected at least {SPECIALS_IN_A_PAIR + 2}: three special "
            "tokens and one word on each side."
        )
    for number, document in enumerate(documents):
        if not document or not all(document):
            raise ValueError(
                f"Document {number} is empty or holds an empty sentence; expected words in each. "
                "Leave out empty texts before making pairs."
            )
