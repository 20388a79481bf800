"""Ids into sequences of a fixed length: a pair of texts, or a stream of documents without a gap.

`pack_pair` is BERT's input, [CLS] a [SEP] b [SEP] and padding. `pack_documents` is what RoBERTa
calls FULL-SENTENCES (Liu et al. 2019, section 4.2): sentences follow each other until the sequence
is full, across the ends of documents, so that few positions are padding. `input_sequences` makes
the same documents into any of the four formats of that section.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from course_lib.config import check_choice
from course_lib.objectives.next_sentence import (
    Document,
    check_documents,
    make_pairs,
    one_sentence_pairs_of_document,
    pack_pairs,
    truncate_pair,
)
from course_lib.objectives.sequences import PackedSequences, SpecialIds, pack, to_sequences

Packed = tuple[list[int], list[int], list[int]]  # input_ids, token_type_ids, attention_mask
INPUT_FORMATS = ("segment-pair", "sentence-pair", "full-sentences", "doc-sentences")


def pack_pair(
    a: Sequence[int],
    b: Sequence[int] | None,
    special: SpecialIds,
    length: int,
    *,
    truncate: bool = False,
    seed: int | None = None,
) -> Packed:
    """[CLS] a [SEP] b [SEP] padded to `length`: (input_ids, token_type_ids, attention_mask); with
    the vocabularies of RoBERTa and XLM-R <s> a </s></s> b </s>.

    a, b: ids without special ones; b=None for a single text.
    truncate: shorten what does not fit, token by token from whichever text is longer (b when they
    are equally long). seed=None takes every token from the end, as in fine-tuning; a number draws
    front or end for each, as BERT's pre-training does, so that both get lost alike.
    Raises ValueError for an empty text, and for a too long one unless `truncate` is set.
    """
    if truncate and a and (b is None or b):
        a, b = _shorten(a, b, special, length, seed)
    return pack(a, b, special, length)


def _shorten(
    a: Sequence[int], b: Sequence[int] | None, special: SpecialIds, length: int, seed: int | None
) -> tuple[Sequence[int], Sequence[int] | None]:
    controls = 2 if b is None else 2 + special.separators  # [CLS] and what ends the texts
    needed = controls + (1 if b is None else 2)
    if length < needed:
        raise ValueError(
            f"length={length} was given; expected at least {needed}: {controls} special tokens "
            "and one token of each text."
        )
    draw = random.Random(seed) if seed is not None else _AtTheEnd()
    a, other = truncate_pair(a, b or [], length - controls, draw)
    return a, None if b is None else other


class _AtTheEnd(random.Random):
    """A coin that always says: the last token goes."""

    def random(self) -> float:
        return 1.0


def pack_documents(
    documents: Sequence[Sequence[Sequence[int]]],
    special: SpecialIds,
    length: int,
    *,
    separate: bool = True,
    across: bool = True,
) -> PackedSequences:
    """Sequences [CLS] sentence sentence … [SEP] of `length` positions, filled across documents.

    documents: document -> sentences -> ids without special ones. A sentence that no longer fits
    begins the next sequence; one that is longer than that is cut. A document that ends within a
    sequence is followed by an extra [SEP] (unless `separate` is False), or, with `across=False`, by
    padding: the next document begins a sequence of its own. All of it is segment A.
    (fairseq's program keeps a separator that falls on a sequence's edge, and does not cut a long
    sentence.) Every id comes out once, in its order; `padding_share` says how much of the sequences
    is empty.
    Raises ValueError when there is no text, for an empty document or sentence, or length < 3.
    """
    _check(documents, length)
    room, sequences, row = length - 2, [], list[int]()
    for document in documents:
        gap, begins = [special.sep] if separate else [], not across
        for piece in _pieces(document, room):
            if row and (begins or len(row) + len(gap) + len(piece) > room):
                sequences.append(row)
                row = []
            row += [*gap, *piece] if row else piece
            gap, begins = [], False
    return to_sequences([pack(row, None, special, length) for row in [*sequences, row]])


def input_sequences(
    format: str, documents: Sequence[Document], special: SpecialIds, length: int, *, seed: int = 0
) -> PackedSequences:
    """Documents as sequences of one of INPUT_FORMATS (Liu et al. 2019, section 4.2).

    segment-pair: A and B are runs of sentences that fill the sequence together. sentence-pair: A
    and B are one sentence each, so that most of a sequence is padding. Both carry
    `next_sentence_label`, and `seed` draws them. full-sentences: pack_documents; doc-sentences: the
    same, but none goes beyond the end of a document. Both have no label and nothing to draw. As in
    the paper, no pair is made short on purpose. Raises ValueError for another format, and as the
    makers do."""
    if format == "segment-pair":
        return make_pairs(documents, special, length=length, seed=seed, short_share=0.0)
    if format == "sentence-pair":
        return pack_pairs(documents, special, one_sentence_pairs_of_document, length, seed, 0.0)
    check_choice("format", format, INPUT_FORMATS)
    return pack_documents(documents, special, length, across=format == "full-sentences")


def _pieces(document: Sequence[Sequence[int]], room: int) -> Iterator[Sequence[int]]:
    """The sentences, those longer than `room` in several parts."""
    for sentence in document:
        for start in range(0, len(sentence), room):
            yield sentence[start : start + room]


def _check(documents: Sequence[Sequence[Sequence[int]]], length: int) -> None:
    if length < 3:
        raise ValueError(f"length={length} was given; expected at least 3: [CLS], a token, [SEP].")
    if not documents:
        raise ValueError("No documents were given; expected at least one with text in it.")
    check_documents(documents)
