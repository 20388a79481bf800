"""The pair maker: labels, where B comes from, packing and truncation."""

from __future__ import annotations

import random

import pytest
import torch

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
from course_lib.objectives.sequences import SpecialIds, pack

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=100_000)


def documents(count=400, sentences=6, words=4):
    """Every word's id tells its document, sentence and place: 1000·document + 10·sentence +
    place."""
    return [
        [[1000 * (d + 1) + 10 * s + w for w in range(words)] for s in range(sentences)]
        for d in range(count)
    ]


def split(row):
    ids = [i for i in row.tolist() if i != SPECIAL.pad]
    first = ids.index(SPECIAL.sep)
    return ids[1:first], ids[first + 1 : -1]


def test_each_sequence_is_cls_a_sep_b_sep_and_its_label_tells_where_b_is_from():
    sequences = make_pairs(documents(), SPECIAL, length=40)
    for ids, types, mask, label in zip(
        sequences.input_ids,
        sequences.token_type_ids,
        sequences.attention_mask,
        sequences.next_sentence_label,
        strict=True,
    ):
        real = ids[mask.bool()]
        assert (real == SPECIAL.cls).sum() == 1 and real[0] == SPECIAL.cls
        assert (real == SPECIAL.sep).sum() == 2 and real[-1] == SPECIAL.sep
        a, b = split(ids)
        assert types.sum() == len(b) + 1
        follows = b[0] == a[-1] + 7  # last word of a sentence, first word of the next: 3 -> 10
        same_document = b[0] // 1000 == a[0] // 1000
        assert same_document == (label == IS_NEXT) and (not same_document or follows)


def test_about_half_are_random_and_one_sentence_chunks_always():
    labels = make_pairs(documents(4_000), SPECIAL, length=40, short_share=0).next_sentence_label
    share = (labels == NOT_NEXT).float().mean().item()
    # 28 tokens fill a chunk before its last sentence; what a random B leaves over shrinks to one
    # sentence at a document's end, and such a chunk must take a random B: more than half in all.
    assert 0.5 < share < 0.75
    single = [[[1000 * d, 1000 * d + 1]] for d in range(1, 50)]
    assert (make_pairs(single, SPECIAL, length=16).next_sentence_label == NOT_NEXT).all()


def test_every_sentence_of_a_document_is_used_as_own_text():
    pairs = pairs_of_document(documents(5), 2, random.Random(0), 40, 0.0)
    own = [w for a, b, label in pairs for w in (a + b if label == IS_NEXT else a)]
    assert sorted(own) == [w for s in documents(5)[2] for w in s]


def test_pairs_of_single_sentences_by_hand():
    """Whatever the coins say: each own text is one sentence of the document, and so is each B."""
    docs = documents(5)
    seen = set()
    for seed in range(40):
        pairs = one_sentence_pairs_of_document(docs, 2, random.Random(seed), 40)
        own = [a for a, _, _ in pairs] + [b for _, b, label in pairs if label == IS_NEXT]
        assert sorted(own) == docs[2]
        for a, b, label in pairs:
            assert b in docs[b[0] // 1000 - 1]
            assert (label == IS_NEXT) == (b[0] == a[0] + 10)
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


def test_same_seed_same_pairs_other_seed_others():
    first, again, other = (make_pairs(documents(), SPECIAL, length=40, seed=s) for s in (0, 0, 1))
    assert torch.equal(first.input_ids, again.input_ids)
    assert first.input_ids.shape != other.input_ids.shape or not torch.equal(
        first.input_ids, other.input_ids
    )


def test_the_loss_depends_on_the_true_label_and_the_two_losses_add():
    class Output:
        prediction_logits = torch.zeros(2, 7)
        seq_relationship_logits = torch.tensor([[2.0, 0.0], [2.0, 0.0]])

    right = next_sentence_loss(Output, {"next_sentence_label": torch.tensor([0, 0])})["nsp"]
    wrong = next_sentence_loss(Output, {"next_sentence_label": torch.tensor([1, 1])})["nsp"]
    assert wrong - right == pytest.approx(2.0)
    targets = {"labels": torch.tensor([1, 2]), "next_sentence_label": torch.tensor([0, 1])}
    losses = pretraining_loss(Output, targets)
    assert losses["mlm"].item() == pytest.approx(1.9459, abs=1e-4)  # ln 7
    assert losses["total"].item() == pytest.approx((losses["mlm"] + losses["nsp"]).item())


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
    ("docs", "length", "says"),
    [
        (documents(1), 40, "expected at least two"),
        ([[[7]], []], 40, "Document 1 is empty"),
        ([[[7]], [[]]], 40, "Document 1 is empty"),
        (documents(3), 4, "expected at least 5"),
    ],
)
def test_bad_documents_are_refused(docs, length, says):
    with pytest.raises(ValueError, match=says):
        make_pairs(docs, SPECIAL, length=length)


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        ([], None, "empty segment"),
        ([7], [], "empty segment"),
        ([7] * 9, None, "expected at most length=8"),
    ],
)
def test_text_that_does_not_fit_is_refused(a, b, says):
    with pytest.raises(ValueError, match=says):
        pack(a, b, SPECIAL, 8)
