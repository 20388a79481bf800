"""Packing: pairs and documents into rows of a fixed length."""

from __future__ import annotations

import random

import pytest

from course_lib.objectives.rows import SpecialIds
from course_lib.text.packing import pack_documents, pack_pair

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=1_000)
CLS, SEP, PAD = SPECIAL.cls, SPECIAL.sep, SPECIAL.pad


def test_pair_by_hand():
    ids, types, mask = pack_pair([10, 11], [20, 21, 22], SPECIAL, 10)
    assert ids == [CLS, 10, 11, SEP, 20, 21, 22, SEP, PAD, PAD]
    assert types == [0, 0, 0, 0, 1, 1, 1, 1, 0, 0]
    assert mask == [1] * 8 + [0] * 2


def test_single_text_by_hand():
    ids, types, mask = pack_pair([10, 11], None, SPECIAL, 5)
    assert (ids, types, mask) == ([CLS, 10, 11, SEP, PAD], [0] * 5, [1, 1, 1, 1, 0])


def test_truncation_takes_from_the_longer():
    a, b = list(range(10, 20)), list(range(20, 40))
    ids, *_ = pack_pair(a, b, SPECIAL, 12, truncate=True)
    assert ids == [CLS, 10, 11, 12, 13, 14, SEP, 20, 21, 22, 23, SEP]
    short, *_ = pack_pair([10, 11], b, SPECIAL, 12, truncate=True)
    assert short == [CLS, 10, 11, SEP, 20, 21, 22, 23, 24, 25, 26, SEP]
    alone, *_ = pack_pair(a, None, SPECIAL, 6, truncate=True)
    assert alone == [CLS, 10, 11, 12, 13, SEP]


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


def test_truncation_leaves_what_fits():
    fits = pack_pair([10], [20], SPECIAL, 8)
    assert pack_pair([10], [20], SPECIAL, 8, truncate=True) == fits


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
    rows = pack_documents(documents, SPECIAL, 8)
    assert rows.input_ids.tolist() == [
        [CLS, 10, 11, 12, 13, 14, SEP, PAD],
        [CLS, 15, 15, 15, 15, 15, 15, SEP],
        [CLS, 15, 15, 15, 15, 15, SEP, PAD],
        [CLS, 16, 17, SEP, 18, SEP, PAD, PAD],
    ]
    assert rows.padding_share == pytest.approx(4 / 32)
    assert rows.attention_mask.tolist() == (rows.input_ids != PAD).long().tolist()
    assert not rows.token_type_ids.any()
    joined = pack_documents(documents[2:], SPECIAL, 8, separate=False)
    assert joined.input_ids.tolist() == [[CLS, 16, 17, 18, SEP, PAD, PAD, PAD]]


def test_nothing_is_lost():
    """Drawn documents: every id once and in order, every row well formed, few positions empty."""
    draw = random.Random(0)
    documents = [
        [[draw.randrange(5, 1_000) for _ in range(draw.randint(1, 60))] for _ in range(n)]
        for n in (draw.randint(1, 9) for _ in range(200))
    ]
    flat = [token for document in documents for sentence in document for token in sentence]
    for length in (3, 17, 128):
        rows = pack_documents(documents, SPECIAL, length)
        ids = rows.input_ids
        assert ids.shape[1] == length
        assert ids[(ids != CLS) & (ids != SEP) & (ids != PAD)].tolist() == flat
        assert (ids[:, 0] == CLS).all()
        assert ((ids == CLS).sum(1) == 1).all()
        ends = rows.attention_mask.sum(1) - 1
        assert (ids.gather(1, ends[:, None]) == SEP).all()
    assert rows.padding_share < 0.2
    pairs = [[sentence] for document in documents for sentence in document]
    alone = sum(128 - 2 - len(pair[0]) for pair in pairs) / (128 * len(pairs))
    assert rows.padding_share < alone / 3  # against one sentence a row


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
