"""The two pair makers, BERT's and ALBERT's: labels, where segments come from, packing and
truncation; and their losses."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from objective_parts import special_ids, within_sd
from torch.nn import functional as F

from course_lib.objectives.next_sentence import (
    IS_NEXT,
    NOT_NEXT,
    make_pairs,
    next_sentence_loss,
    one_sentence_pairs_of_document,
    pairs_of_document,
    truncate_pair,
)
from course_lib.objectives.pretraining import pretraining_batches, pretraining_loss
from course_lib.objectives.sentence_order import (
    IN_ORDER,
    SWAPPED,
    albert_loss,
    make_ordered_pairs,
    ordered_pairs_of_document,
    sentence_order_loss,
)
from course_lib.train.baselines import bag_of_words_accuracy

SPECIAL = special_ids(1_000_000)


def documents(count, sentences=6, words=4):
    """Ids that count through each document: 100·(document + 1) + place in the document."""
    return [
        [[100 * (d + 1) + s * words + w for w in range(words)] for s in range(sentences)]
        for d in range(count)
    ]


def words_of(document):
    return [word for sentence in document for word in sentence]


def document_of(segment):
    """The number of the one document all these ids are from."""
    (number,) = {token // 100 for token in segment}
    return number


def is_one_run(segment):
    return segment == list(range(segment[0], segment[0] + len(segment)))


def pairs_in(sequences):
    """The two segments and the label of each row, which is [CLS] a [SEP] b [SEP] and padding."""
    columns = "input_ids", "token_type_ids", "attention_mask", "sentence_order_label"
    rows = zip(*(getattr(sequences, name).tolist() for name in columns), strict=True)
    found = []
    for ids, types, mask, label in rows:
        first, last = (i for i, token in enumerate(ids) if token == SPECIAL.sep)
        assert [i for i, token in enumerate(ids) if token == SPECIAL.cls] == [0]
        padding = len(ids) - last - 1
        assert mask == [1] * (last + 1) + [0] * padding
        assert types == [0] * (first + 1) + [1] * (last - first) + [0] * padding
        found.append((ids[1:first], ids[first + 1 : last], label))
    return found


# ---- does B follow A? ----------------------------------------------------------------------------


def test_the_label_tells_where_b_is_from():
    pairs = pairs_in(make_pairs(documents(400), SPECIAL, length=40))
    for a, b, label in pairs:
        follows = b[0] == a[-1] + 1
        same_document = document_of(b) == document_of(a)
        assert same_document == (label == IS_NEXT) and (not same_document or follows)
    assert {label for *_, label in pairs} == {IS_NEXT, NOT_NEXT}


def test_about_half_are_random_and_one_sentence_chunks_always():
    labels = make_pairs(documents(4_000), SPECIAL, length=40, short_share=0).next_sentence_label
    share = (labels == NOT_NEXT).float().mean().item()
    # 28 tokens fill a chunk before its last sentence; what a random B leaves over shrinks to one
    # sentence at a document's end, and such a chunk must take a random B: more than half in all.
    assert 0.5 < share < 0.75
    single = [[[1000 * d, 1000 * d + 1]] for d in range(1, 50)]
    assert (make_pairs(single, SPECIAL, length=16).next_sentence_label == NOT_NEXT).all()


def test_pairs_of_single_sentences_by_hand():
    """Whatever the coins say: each own text is one sentence of the document, and so is each B."""
    docs = documents(5)
    seen = set()
    for seed in range(40):
        pairs = one_sentence_pairs_of_document(docs, 2, random.Random(seed), 40)
        own = [a for a, _, _ in pairs] + [b for _, b, label in pairs if label == IS_NEXT]
        assert sorted(own) == docs[2]
        for a, b, label in pairs:
            assert b in docs[document_of(b) - 1]
            assert (label == IS_NEXT) == (b[0] == a[0] + 4)
        seen.add(tuple(label for *_, label in pairs))
    assert len(seen) > 5


def test_single_sentences_longer_than_the_sequence_are_shortened():
    for a, b, _ in one_sentence_pairs_of_document(documents(5), 2, random.Random(0), 8):
        assert len(a) + len(b) == 5 and a and b  # 8 positions less three special tokens


def test_truncation_takes_from_the_longer_one_at_either_end():
    draw = random.Random(0)
    seen = set()
    for _ in range(50):
        a, b = truncate_pair(range(10), range(100, 104), 8, draw)
        assert len(a) == 4 and len(b) == 4 and b == [100, 101, 102, 103]
        assert a == list(range(a[0], a[0] + 4))
        seen.add(a[0])
    assert len(seen) > 3


# ---- are A and B in order? -----------------------------------------------------------------------


@pytest.mark.parametrize("short_share", [0.0, 0.5])
def test_both_segments_are_neighbours_and_the_label_is_their_order(short_share):
    """No text here is longer than a row, so the earlier segment ends where the later begins."""
    sequences = make_ordered_pairs(documents(200), SPECIAL, length=40, short_share=short_share)
    pairs = pairs_in(sequences)
    for a, b, label in pairs:
        first, second = (b, a) if label == SWAPPED else (a, b)
        assert second[0] == first[-1] + 1 and document_of(a) == document_of(b)
        assert is_one_run(first) and is_one_run(second)
    assert len(pairs) >= 200 and {label for *_, label in pairs} == {IN_ORDER, SWAPPED}
    assert len({len(a) for a, *_ in pairs}) > 2  # cut at different places


def uneven_documents(seed):
    """Documents of 2 to 11 sentences, each of 3 to 59 tokens."""
    draw = random.Random(seed)
    return [[[5] * draw.randint(3, 59) for _ in range(draw.randint(2, 11))] for _ in range(700)]


TIES = [[[10] * 40, [11] * 40]] * 800  # two sentences that are equally long
RELEASED = partial(make_ordered_pairs, as_released=True)


@pytest.mark.parametrize(
    ("make", "documents_of", "lengths"),
    [
        (make_ordered_pairs, uneven_documents, (16, 33, 64)),
        (make_ordered_pairs, lambda _: TIES, (44, 63, 64)),
        (RELEASED, lambda _: TIES, (44, 63, 64)),
        (make_pairs, uneven_documents, (32, 65)),
        (make_pairs, lambda _: TIES, (63, 64)),
    ],
)
def test_lengths_alone_tell_nothing(make, documents_of, lengths):
    """A classifier that sees how long A and B are is no better than the majority class."""
    special = special_ids(100)
    for length in lengths:
        train, heldout = (make(documents_of(s), special, length=length, seed=s) for s in (1, 2))
        mean = heldout.next_sentence_label.float().mean().item()
        majority, sd = max(mean, 1 - mean), (mean * (1 - mean) / len(heldout)) ** 0.5
        reached = bag_of_words_accuracy(train, heldout, special, kind="lengths")
        assert reached < majority + 4 * sd, (length, reached, majority)


def test_half_are_swapped_wherever_the_text_is_cut():
    """Length of the first part in the text: the same distribution for both labels."""
    sequences = make_ordered_pairs(documents(4_000), SPECIAL, length=40, short_share=0.0)
    assert len(sequences) == 4_000
    assert within_sd(4, int(sequences.sentence_order_label.sum()), 4_000, 0.5)
    lengths = {IN_ORDER: [], SWAPPED: []}
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


def kinds(pairs):
    """How many pairs are in order, swapped, or have a second segment from another document."""
    return Counter(
        "random" if document_of(a) != document_of(b) else "swapped" if b[0] < a[0] else "in order"
        for a, b, _ in pairs
    )


def test_as_released_a_single_sentence_gets_a_random_second_segment_with_label_1():
    """1,000 documents, a pair each: 900 of six sentences, 100 of a single one."""
    mixed = documents(900) + [d[:1] for d in documents(1_000)[900:]]
    settings = {"length": 40, "short_share": 0.0}
    released = pairs_in(as_released(mixed, SPECIAL, **settings))
    found = kinds(released)
    assert len(released) == 1_000 and found["random"] == 100
    assert within_sd(4, found["swapped"], 900, 0.5)
    for a, b, label in released:
        of_one_document = document_of(a) == document_of(b)
        assert label == (IN_ORDER if of_one_document and a[0] < b[0] else SWAPPED)
    ours = kinds(pairs_in(make_ordered_pairs(mixed, SPECIAL, **settings)))
    assert ours["random"] == 0 and sum(ours.values()) == 900


# ---- both ----------------------------------------------------------------------------------------

both_makers = pytest.mark.parametrize("make", [make_pairs, make_ordered_pairs])


@both_makers
def test_same_seed_same_pairs_other_seed_others(make):
    made = [pairs_in(make(documents(50), SPECIAL, length=40, seed=seed)) for seed in (0, 0, 1)]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize(
    ("pairs_of", "all_own"),
    [(pairs_of_document, {IS_NEXT}), (ordered_pairs_of_document, {IN_ORDER, SWAPPED})],
)
def test_every_sentence_of_a_document_is_used_as_own_text(pairs_of, all_own):
    pairs = pairs_of(documents(5), 2, random.Random(0), 40, 0.0)
    own = [w for a, b, label in pairs for w in (a + b if label in all_own else a)]
    assert sorted(own) == words_of(documents(5)[2])


@pytest.mark.parametrize(
    ("docs", "length", "says"),
    [
        ([[[7]], []], 40, "Document 1 is empty"),
        ([[[7]], [[8], []]], 40, "Document 1 is empty or holds an empty sentence"),
        (documents(3), 4, "expected at least 5"),
    ],
)
@both_makers
def test_bad_documents_are_refused(make, docs, length, says):
    with pytest.raises(ValueError, match=says):
        make(docs, SPECIAL, length=length)


as_released = partial(make_ordered_pairs, as_released=True)


@pytest.mark.parametrize(
    ("make", "docs", "says"),
    [
        (make_pairs, documents(1), "expected at least two"),
        (as_released, documents(1), "expected at least two"),
        (make_ordered_pairs, [], r"0 document\(s\) were given; expected at least one"),
        (make_ordered_pairs, [[[7]]], "No document gave a pair"),
    ],
)
def test_too_few_documents_are_refused(make, docs, says):
    with pytest.raises(ValueError, match=says):
        make(docs, SPECIAL, length=40)


# ---- losses and batches --------------------------------------------------------------------------


def test_batches_visit_every_sequence_once_an_epoch_with_dynamic_or_repeated_masks():
    sequences = make_pairs(documents(64), SPECIAL, length=40)[:64]
    count = len(sequences) // 16

    def seen(batches, epoch):
        steps = range(epoch * count, (epoch + 1) * count)
        return torch.cat([batches(s).targets["labels"] for s in steps])

    fresh = pretraining_batches(sequences, SPECIAL, batch_size=16)
    once = pretraining_batches(sequences, SPECIAL, batch_size=16, mask_copies=1)
    assert sorted(seen(once, 0).tolist()) == sorted(seen(once, 1).tolist())
    assert sorted(seen(fresh, 0).tolist()) != sorted(seen(fresh, 1).tolist())
    assert torch.equal(fresh(3).inputs["input_ids"], fresh(3).inputs["input_ids"])


@pytest.mark.parametrize(
    ("both_losses", "pair_loss", "name", "field"),
    [
        (pretraining_loss, next_sentence_loss, "nsp", "seq_relationship_logits"),
        (albert_loss, sentence_order_loss, "sop", "sop_logits"),
    ],
)
def test_losses_are_those_of_torch_and_add(both_losses, pair_loss, name, field):
    torch.manual_seed(0)
    words, labels = torch.tensor([3, -100, 0, 10, -100]), torch.tensor([0, 1, 1, 0])
    word_logits, logits = torch.randn(5, 11), torch.randn(4, 2)
    outputs = SimpleNamespace(prediction_logits=word_logits, **{field: logits})
    targets = {"labels": words, "next_sentence_label": labels}
    losses = both_losses(outputs, targets)
    assert losses[name].item() == pytest.approx(F.cross_entropy(logits, labels).item())
    assert pair_loss(outputs, targets)["total"] == losses[name]
    expected = F.cross_entropy(word_logits, words, ignore_index=-100).item()
    assert losses["mlm"].item() == pytest.approx(expected)
    assert losses["total"].item() == pytest.approx(expected + losses[name].item())
