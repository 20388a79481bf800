"""ALBERT's pair maker: where both segments come from, in which order, and the loss."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch
from torch.nn import functional as F

from course_lib.objectives.sentence_order import (
    IN_ORDER,
    SWAPPED,
    albert_loss,
    make_ordered_pairs,
    ordered_pairs_of_document,
    sentence_order_loss,
)
from course_lib.objectives.sequences import PackedSequences, SpecialIds

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=1_000_000)
Pair = tuple[list[int], list[int], int]


def documents(count: int, sentences: int = 6, words: int = 4) -> list[list[list[int]]]:
    """Ids that count through each document: 100·(document + 1) + place in the document."""
    return [
        [[100 * (d + 1) + s * words + w for w in range(words)] for s in range(sentences)]
        for d in range(count)
    ]


def pairs_in(sequences: PackedSequences) -> list[Pair]:
    """The two segments and the label of each row."""
    assert sequences.sentence_order_label is not None
    words = (sequences.input_ids != SPECIAL.cls) & (sequences.input_ids != SPECIAL.sep)
    words &= sequences.attention_mask.bool()
    found = []
    for ids, types, word, label in zip(
        sequences.input_ids,
        sequences.token_type_ids,
        words,
        sequences.sentence_order_label,
        strict=True,
    ):
        a, b = ids[word & (types == 0)].tolist(), ids[word & (types == 1)].tolist()
        found.append((a, b, int(label)))
    return found


def document_of(segment: list[int]) -> int:
    """The number of the one document all these ids are from."""
    (number,) = {token // 100 for token in segment}
    return number


def is_one_run(segment: list[int]) -> bool:
    return segment == list(range(segment[0], segment[0] + len(segment)))


@pytest.mark.parametrize("short_share", [0.0, 0.5])
def test_both_segments_are_neighbours_and_the_label_is_their_order(short_share: float):
    """No text here is longer than a row, so the earlier segment ends where the later begins."""
    sequences = make_ordered_pairs(documents(200), SPECIAL, length=40, short_share=short_share)
    pairs = pairs_in(sequences)
    for a, b, label in pairs:
        first, second = (b, a) if label == SWAPPED else (a, b)
        assert second[0] == first[-1] + 1 and document_of(a) == document_of(b)
        assert is_one_run(first) and is_one_run(second)
    assert len(pairs) >= 200 and {label for *_, label in pairs} == {IN_ORDER, SWAPPED}
    assert len({len(a) for a, *_ in pairs}) > 2  # cut at different places


def test_half_are_swapped():
    sequences = make_ordered_pairs(documents(4_000), SPECIAL, length=40, short_share=0.0)
    labels = sequences.sentence_order_label.float()
    assert len(labels) == 4_000
    assert abs(labels.mean().item() - 0.5) <= 4 * 0.5 / 4_000**0.5  # four standard deviations


def test_where_the_text_is_cut_says_nothing_about_the_label():
    """Length of the first part in the text: the same distribution for both labels."""
    sequences = make_ordered_pairs(documents(4_000), SPECIAL, length=40, short_share=0.0)
    lengths: dict[int, list[int]] = {IN_ORDER: [], SWAPPED: []}
    for a, b, label in pairs_in(sequences):
        lengths[label].append(len(b if label == SWAPPED else a))
    in_order, swapped = (torch.tensor(lengths[label]).float() for label in (IN_ORDER, SWAPPED))
    sd = (in_order.var() / len(in_order) + swapped.var() / len(swapped)).sqrt()
    assert (in_order.mean() - swapped.mean()).abs() <= 4 * sd


def test_shortened_pairs_keep_their_order():
    """Sentences of ten words in rows of 24: every pair loses tokens, at fronts and at ends."""
    sequences = make_ordered_pairs(documents(300, words=10), SPECIAL, length=24, short_share=0.0)
    pairs = pairs_in(sequences)
    assert (sequences.attention_mask.sum(1) == 24).all()
    for a, b, label in pairs:
        assert document_of(a) == document_of(b) and is_one_run(a) and is_one_run(b)
        assert (label == SWAPPED) == (b[-1] < a[0]) and (label == IN_ORDER) == (a[-1] < b[0])
    gaps = {min(abs(b[0] - a[-1]), abs(a[0] - b[-1])) for a, b, _ in pairs}
    assert len(gaps) > 1  # some tokens were lost between the two


def test_every_sentence_is_used_once_and_single_ones_are_left_out():
    found = ordered_pairs_of_document(documents(3), 1, random.Random(0), 40, 0.0)
    assert sorted(found[0][0] + found[0][1]) == [w for s in documents(3)[1] for w in s]
    mixed = [*documents(5), [[7_000, 7_001]]]
    firsts = [document_of(a) for a, _, _ in pairs_in(make_ordered_pairs(mixed, SPECIAL, length=40))]
    assert 70 not in firsts and set(firsts) == {1, 2, 3, 4, 5}


def kinds(pairs: list[Pair]) -> Counter:
    """How many pairs are in order, swapped, or have a second segment from another document."""
    return Counter(
        "random" if document_of(a) != document_of(b) else "swapped" if b[0] < a[0] else "in order"
        for a, b, _ in pairs
    )


def test_as_released_a_single_sentence_gets_a_random_second_segment_with_label_1():
    """1,000 documents, a pair each: 900 of six sentences, 100 of a single one."""
    mixed = documents(900) + [d[:1] for d in documents(1_000)[900:]]
    settings = {"length": 40, "short_share": 0.0}
    released = pairs_in(make_ordered_pairs(mixed, SPECIAL, **settings, as_released=True))
    found = kinds(released)
    assert len(released) == 1_000 and found["random"] == 100
    assert abs(found["swapped"] - 450) <= 4 * (900 / 4) ** 0.5  # four standard deviations
    for a, b, label in released:
        of_one_document = document_of(a) == document_of(b)
        assert label == (IN_ORDER if of_one_document and a[0] < b[0] else SWAPPED)
    ours = kinds(pairs_in(make_ordered_pairs(mixed, SPECIAL, **settings)))
    assert ours["random"] == 0 and sum(ours.values()) == 900


def test_same_seed_same_pairs_other_seed_others():
    first, again, other = (
        make_ordered_pairs(documents(50), SPECIAL, length=40, seed=seed) for seed in (0, 0, 1)
    )
    assert torch.equal(first.input_ids, again.input_ids)
    assert torch.equal(first.sentence_order_label, again.sentence_order_label)
    assert pairs_in(first) != pairs_in(other)


def test_one_document_is_enough_unless_a_random_segment_may_be_needed():
    assert len(make_ordered_pairs(documents(1), SPECIAL, length=40, short_share=0.0)) == 1
    with pytest.raises(ValueError, match="expected at least two"):
        make_ordered_pairs(documents(1), SPECIAL, length=40, as_released=True)


@pytest.mark.parametrize(
    ("docs", "length", "says"),
    [
        ([], 40, r"0 document\(s\) were given; expected at least one"),
        ([[[7]], []], 40, "Document 1 is empty"),
        ([[[7]], [[8], []]], 40, "Document 1 is empty or holds an empty sentence"),
        ([[[7]], [[8]]], 40, "No document gave a pair"),
        (documents(3), 4, "expected at least 5"),
    ],
)
def test_bad_documents_are_refused(docs: list, length: int, says: str):
    with pytest.raises(ValueError, match=says):
        make_ordered_pairs(docs, SPECIAL, length=length)


def test_losses_are_those_of_torch():
    torch.manual_seed(0)

    class Output:
        prediction_logits = torch.randn(5, 11)
        sop_logits = torch.randn(4, 2)

    words, order = torch.tensor([3, -100, 0, 10, -100]), torch.tensor([0, 1, 1, 0])
    targets = {"labels": words, "next_sentence_label": order}
    losses = albert_loss(Output, targets)
    assert losses["sop"].item() == pytest.approx(F.cross_entropy(Output.sop_logits, order).item())
    expected = F.cross_entropy(Output.prediction_logits, words, ignore_index=-100).item()
    assert losses["mlm"].item() == pytest.approx(expected)
    assert losses["total"].item() == pytest.approx(expected + losses["sop"].item())
    assert sentence_order_loss(Output, targets)["total"].item() == losses["sop"].item()
