"""Packing: pairs and documents into rows of a fixed length."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import chain

import pytest
import torch

from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.sequences import PackedSequences, SpecialIds, pack
from course_lib.text.packing import INPUT_FORMATS, input_sequences, pack_documents, pack_pair

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=1_000)
CLS, SEP, PAD = SPECIAL.cls, SPECIAL.sep, SPECIAL.pad
TENS, TWENTIES = list(range(10, 20)), list(range(20, 40))


@pytest.mark.parametrize(
    ("a", "b", "length", "row", "second"),
    [
        ([10, 11], [20, 21, 22], 10, [CLS, 10, 11, SEP, 20, 21, 22, SEP, PAD, PAD], 4),
        ([10, 11], None, 5, [CLS, 10, 11, SEP, PAD], 0),
        # Truncation takes from the longer.
        (TENS, TWENTIES, 12, [CLS, *TENS[:5], SEP, *TWENTIES[:4], SEP], 5),
        (TENS[:2], TWENTIES, 12, [CLS, 10, 11, SEP, *TWENTIES[:7], SEP], 8),
        (TENS, None, 6, [CLS, *TENS[:4], SEP], 0),
    ],
)
def test_pairs_and_texts_by_hand(
    a: list[int], b: list[int] | None, length: int, row: list[int], second: int
):
    ids, types, mask = pack_pair(a, b, SPECIAL, length, truncate=True)
    used = length - row.count(PAD)
    assert ids == row and mask == [1] * used + [0] * (length - used)
    assert types == [0] * (used - second) + [1] * second + [0] * (length - used)
    if len(a) + len(b or []) < length:  # it fits
        assert pack_pair(a, b, SPECIAL, length) == (ids, types, mask)


@pytest.mark.parametrize("length", range(6, 13))
def test_two_separators_stand_between_the_texts_of_robertas_pairs(length: int):
    two = replace(SPECIAL, separators=2)
    row, types, mask = pack_pair(TENS[:3], TWENTIES[:4], two, length, truncate=True)
    a, b = ([t for t in row if t in text] for text in (TENS, TWENTIES))
    assert row[: sum(mask)] == [CLS, *a, SEP, SEP, *b, SEP] and a and b
    assert sum(mask) == min(length, 11) and sum(types) == len(b) + 1
    assert types == [0] * (3 + len(a)) + [1] * (len(b) + 1) + [0] * (length - sum(mask))
    assert pack_pair(TENS[:3], None, two, length) == pack_pair(TENS[:3], None, SPECIAL, length)
    assert pack(a, b, two) == (row[: sum(mask)], types[: sum(mask)], mask[: sum(mask)])
    documents = [[TENS[:3], TENS[3:5], TWENTIES[:2]], [TWENTIES[2:5], TWENTIES[5:9]]]
    pairs = make_pairs(documents, two, length=length)
    assert ((pairs.input_ids == SEP).sum(1) == 3).all()
    with pytest.raises(ValueError, match="length=5 was given; expected at least 6"):
        pack_pair(TENS, TWENTIES, two, 5, truncate=True)


def test_truncation_at_both_ends():
    """With a seed, front and end lose alike; what stays is one run of the text."""
    text, fronts = list(range(100, 200)), []
    for seed in range(200):
        ids, *_ = pack_pair(text, None, SPECIAL, 52, truncate=True, seed=seed)
        kept = ids[1:-1]
        assert kept == list(range(kept[0], kept[0] + 50))
        fronts.append(kept[0] - 100)
    assert 24 < sum(fronts) / len(fronts) < 26  # sd of the mean: 3.5 / sqrt(200) = 0.25
    assert len(set(fronts)) > 5
    again, *_ = pack_pair(text, None, SPECIAL, 52, truncate=True, seed=3)
    assert again[1] - 100 == fronts[3]


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize(("a", "b"), [([], [1]), ([1], []), ([], None)])
def test_empty_text(a: list[int], b: list[int] | None, truncate: bool):
    with pytest.raises(ValueError, match=r"empty segment was given; expected .* Leave out"):
        pack_pair(a, b, SPECIAL, 8, truncate=truncate)


def test_too_long():
    with pytest.raises(ValueError, match=r"13 tokens were given.*at most length=12"):
        pack_pair([10] * 5, [20] * 5, SPECIAL, 12)
    with pytest.raises(ValueError, match="length=4 was given; expected at least 5"):
        pack_pair([10] * 5, [20] * 5, SPECIAL, 4, truncate=True)


def test_documents_by_hand():
    documents = [[[10, 11, 12], [13, 14]], [[15] * 11], [[16, 17]], [[18]]]
    sequences = pack_documents(documents, SPECIAL, 8)
    assert sequences.input_ids.tolist() == [
        [CLS, 10, 11, 12, 13, 14, SEP, PAD],
        [CLS, 15, 15, 15, 15, 15, 15, SEP],
        [CLS, 15, 15, 15, 15, 15, SEP, PAD],
        [CLS, 16, 17, SEP, 18, SEP, PAD, PAD],
    ]
    assert sequences.padding_share == pytest.approx(4 / 32)
    assert sequences.attention_mask.tolist() == (sequences.input_ids != PAD).long().tolist()
    assert not sequences.token_type_ids.any()
    joined = pack_documents(documents[2:], SPECIAL, 8, separate=False)
    assert joined.input_ids.tolist() == [[CLS, 16, 17, 18, SEP, PAD, PAD, PAD]]


def drawn_documents(count: int = 200) -> list[list[list[int]]]:
    draw = random.Random(0)
    return [
        [[draw.randrange(5, 1_000) for _ in range(draw.randint(1, 60))] for _ in range(n)]
        for n in (draw.randint(1, 9) for _ in range(count))
    ]


def words_of(sequences: PackedSequences) -> list[list[int]]:
    """The ids of each row without special tokens."""
    return [[i for i in row if i not in (CLS, SEP, PAD)] for row in sequences.input_ids.tolist()]


@pytest.mark.parametrize("across", [True, False])
def test_nothing_is_lost(across: bool):
    """Drawn documents: every id once and in order, every row well formed."""
    documents = drawn_documents()
    flat = [token for document in documents for sentence in document for token in sentence]
    for length in (3, 17, 128):
        sequences = pack_documents(documents, SPECIAL, length, across=across)
        ids = sequences.input_ids
        assert ids.shape[1] == length
        assert list(chain(*words_of(sequences))) == flat
        assert (ids[:, 0] == CLS).all()
        assert ((ids == CLS).sum(1) == 1).all()
        ends = sequences.attention_mask.sum(1) - 1
        assert (ids.gather(1, ends[:, None]) == SEP).all()


@pytest.mark.parametrize(
    ("documents", "length", "says"),
    [
        ([], 8, "No documents"),
        ([[[10]], []], 8, "Document 1 is empty"),
        ([[[10], []]], 8, "Document 0 is empty or holds an empty sentence"),
        ([[[10]]], 2, "length=2 was given; expected at least 3"),
    ],
)
def test_bad_documents(documents: list, length: int, says: str):
    with pytest.raises(ValueError, match=says):
        pack_documents(documents, SPECIAL, length)


# ---- the four input formats ----------------------------------------------------------------------

TOY = [[[10, 11], [12, 13, 14]], [[15, 16]], [[17], [18, 19]]]
OF_DOCUMENTS = [[CLS, 10, 11, 12, 13, 14, SEP], [CLS, 15, 16, SEP], [CLS, 17, 18, 19, SEP]]
LONGER = [[[10, 11], [12], [13, 14]], [[15]]]  # than a row: its last row ends with the document


@pytest.mark.parametrize(
    ("format", "documents", "length", "rows"),
    [
        ("full-sentences", TOY, 8, [OF_DOCUMENTS[0], [CLS, 15, 16, SEP, 17, 18, 19, SEP]]),
        ("doc-sentences", TOY, 8, OF_DOCUMENTS),
        ("doc-sentences", LONGER, 5, [[CLS, 10, 11, 12, SEP], [CLS, 13, 14, SEP], [CLS, 15, SEP]]),
    ],
)
def test_formats_of_sentences_by_hand(format: str, documents: list, length: int, rows: list):
    sequences = input_sequences(format, documents, SPECIAL, length)
    assert sequences.input_ids.tolist() == [row + [PAD] * (length - len(row)) for row in rows]
    assert sequences.padding_share == pytest.approx(1 - sum(map(len, rows)) / (length * len(rows)))
    assert sequences.next_sentence_label is None and not sequences.token_type_ids.any()


def numbered_documents(count: int, sentences: int, words: int) -> list[list[list[int]]]:
    """Ids 100·(document + 1) + 10·sentence + word."""
    return [
        [[100 * (d + 1) + 10 * s + w for w in range(words)] for s in range(sentences)]
        for d in range(count)
    ]


def segments(sequences: PackedSequences) -> list[tuple[list[int], list[int]]]:
    """Segments A and B of each row of pairs, without special tokens."""
    parts = []
    for row in torch.stack([sequences.input_ids, sequences.token_type_ids], dim=-1).tolist():
        words = [(i, t) for i, t in row if i not in (CLS, SEP, PAD)]
        parts.append(([i for i, t in words if t == 0], [i for i, t in words if t == 1]))
    return parts


def test_no_sequence_of_doc_sentences_goes_beyond_its_document():
    documents = numbered_documents(60, sentences=9, words=7)
    held, crossing = (
        [{i // 100 for i in row} for row in words_of(input_sequences(name, documents, SPECIAL, 40))]
        for name in ("doc-sentences", "full-sentences")
    )
    assert all(len(numbers) == 1 for numbers in held)
    assert any(len(numbers) > 1 for numbers in crossing)


def test_sentence_pairs_hold_one_sentence_each_and_say_whether_it_is_the_next():
    documents = numbered_documents(300, sentences=6, words=3)
    sequences = input_sequences("sentence-pair", documents, SPECIAL, 32)
    sentences = {tuple(s): (d, n) for d, text in enumerate(documents) for n, s in enumerate(text)}
    drawn, own = [], []
    rows = zip(segments(sequences), sequences.next_sentence_label.tolist(), strict=True)
    for (a, b), label in rows:
        (of_a, at_a), (of_b, at_b) = sentences[tuple(a)], sentences[tuple(b)]
        assert (label == 0) == (of_a == of_b) and (label == 1 or at_b == at_a + 1)
        drawn += [label] if at_a < 5 else []  # the last one has no next: no coin is thrown
        own += [tuple(a)] if label else [tuple(a), tuple(b)]
    assert abs(sum(drawn) / len(drawn) - 0.5) <= 4 * 0.5 / len(drawn) ** 0.5
    assert sorted(own) == sorted(sentences)  # each sentence once as its own document's text
    used = 3 + 3 + 3  # special tokens and two sentences of three words
    assert sequences.padding_share == pytest.approx(1 - used / 32)


def test_segment_pairs_are_berts_without_short_ones():
    documents = numbered_documents(100, sentences=9, words=7)
    sequences = input_sequences("segment-pair", documents, SPECIAL, 40, seed=3)
    same = make_pairs(documents, SPECIAL, length=40, seed=3, short_share=0.0)
    assert torch.equal(sequences.input_ids, same.input_ids)
    assert torch.equal(sequences.next_sentence_label, same.next_sentence_label)
    # Documents of one sentence as long as the room: A and B are cut until the row is full.
    single = numbered_documents(5, sentences=1, words=8)
    whole = input_sequences("segment-pair", single, SPECIAL, 11)
    assert whole.padding_share == 0 and (whole.next_sentence_label == 1).all()


def test_the_formats_differ_in_padding():
    documents = numbered_documents(200, sentences=9, words=7)  # 63 words each
    share = {f: input_sequences(f, documents, SPECIAL, 128).padding_share for f in INPUT_FORMATS}
    assert share["sentence-pair"] == pytest.approx(1 - 17 / 128)
    assert share["doc-sentences"] == pytest.approx(1 - 65 / 128)
    # 126 places hold 17 sentences of 7 (119), and a separator where a document ends inside.
    assert share["full-sentences"] < 1 - 121 / 128
    assert share["full-sentences"] < share["doc-sentences"] < share["sentence-pair"]


@pytest.mark.parametrize("format", INPUT_FORMATS)
def test_a_format_depends_on_its_seed_alone(format: str):
    documents = numbered_documents(50, sentences=5, words=4)
    first, again, other = (
        input_sequences(format, documents, SPECIAL, 24, seed=s) for s in (0, 0, 1)
    )
    assert torch.equal(first.input_ids, again.input_ids)
    drawn = format.endswith("pair")
    assert (first.next_sentence_label is not None) == drawn
    assert torch.equal(first.input_ids[:50], other.input_ids[:50]) == (not drawn)


@pytest.mark.parametrize("format", INPUT_FORMATS)
def test_bad_input_of_every_format(format: str):
    with pytest.raises(ValueError, match="Document 1 is empty"):
        input_sequences(format, [[[10]], []], SPECIAL, 8)
    with pytest.raises(ValueError, match="expected at least"):
        input_sequences(format, TOY, SPECIAL, 2)


def test_an_unknown_format():
    with pytest.raises(ValueError, match="format='pairs' was given; expected one of segment-pair"):
        input_sequences("pairs", TOY, SPECIAL, 8)
