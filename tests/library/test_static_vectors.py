"""Static vectors: counts and PPMI by hand, the SVD on a matrix of known rank, the skip-gram loss
and its gradient against a plain version, neighbours in the micro-world."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from course_lib.text.characters import words_of
from course_lib.text.static_vectors import (
    StaticVectors,
    count_neighbours,
    frequent_words,
    neighbour_pairs,
    positive_pmi,
    ppmi_vectors,
    skip_gram_loss,
    skip_gram_vectors,
    svd_vectors,
)
from course_lib.text.world import MicroWorld

TOY = [["a", "b", "a"], ["b", "c"]]


def test_pairs_do_not_cross_sentences_and_unlisted_words_keep_their_place():
    left, right, distance = neighbour_pairs(TOY, ["a", "b", "c"], 2)
    found = sorted(zip(left.tolist(), right.tolist(), distance.tolist(), strict=True))
    assert found == [(0, 0, 2), (0, 1, 1), (1, 0, 1), (1, 2, 1)]
    left, right, distance = neighbour_pairs(TOY, ["a", "c"], 2)
    assert (left.tolist(), right.tolist(), distance.tolist()) == ([0], [0], [2])


def test_frequent_words_come_first():
    assert frequent_words([["c", "b", "a", "b"]], 1) == {"b": 2, "a": 1, "c": 1}


def test_ppmi_by_hand():
    """Window 1: a-b twice, b-c once, each seen from both ends: six in all."""
    counts = count_neighbours(TOY, ["a", "b", "c"], window=1)
    assert counts.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    plain = positive_pmi(counts, smoothing=1.0).toarray()
    # P(a, b) = 2/6, P(a) = 2/6, P(b) = 3/6; P(b, c) = 1/6, P(c) = 1/6.
    assert plain == pytest.approx(np.log([[1, 2, 1], [2, 1, 2], [1, 2, 1]]))
    smoothed = positive_pmi(counts, smoothing=0.5).toarray()
    whole = math.sqrt(2) + math.sqrt(3) + 1
    assert smoothed[1, 2] == pytest.approx(math.log((1 / 3) / (1 / whole)))
    assert smoothed[1, 0] == pytest.approx(math.log((2 / 3) / (math.sqrt(2) / whole)))


def test_what_is_rarer_than_chance_counts_as_zero():
    counts = csr_matrix(np.array([[9.0, 1.0], [1.0, 9.0]]))
    found = positive_pmi(counts, smoothing=1.0)
    assert found.nnz == 2 and found[0, 0] == pytest.approx(math.log(1.8))


def test_the_svd_keeps_a_matrix_of_low_rank():
    draw = np.random.default_rng(0)
    low = draw.normal(size=(30, 4)) @ draw.normal(size=(4, 30))
    found = svd_vectors(csr_matrix(low), 4, power=1.0).double().numpy()
    assert found @ found.T == pytest.approx(low @ low.T, abs=1e-3)
    lengths = np.linalg.norm(found, axis=0)
    assert lengths == pytest.approx(np.linalg.svd(low)[1][:4], rel=1e-5)  # the largest first
    halved = svd_vectors(csr_matrix(low), 4, power=0.5).double().numpy()
    assert np.abs(halved) == pytest.approx(np.abs(found) / np.sqrt(lengths), abs=1e-4)


def plain_skip_gram(words, contexts, negatives):
    """The loss and its gradients, pair by pair and number by number."""

    def sigma(x):
        return 1 / (1 + math.exp(-x))

    pairs = len(words)
    loss = 0.0
    grads = [np.zeros_like(x) for x in (words, contexts, negatives)]
    for p in range(pairs):
        targets = [(contexts[p], grads[1][p], 1)]
        targets += [(n, g, 0) for n, g in zip(negatives[p], grads[2][p], strict=True)]
        for vector, gradient, label in targets:
            said = sigma(sum(a * b for a, b in zip(words[p], vector, strict=True)))
            loss -= math.log(said if label else 1 - said) / pairs
            for d in range(len(vector)):
                gradient[d] += (said - label) * words[p][d] / pairs
                grads[0][p][d] += (said - label) * vector[d] / pairs
    return loss, grads


def test_the_skip_gram_loss_and_its_gradient_are_the_plain_ones():
    draw = np.random.default_rng(1)
    given = [draw.normal(size=shape) for shape in ((3, 5), (3, 5), (3, 2, 5))]
    tensors = [torch.tensor(x, requires_grad=True) for x in given]
    loss = skip_gram_loss(*tensors)
    loss.backward()
    expected, grads = plain_skip_gram(*given)
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    for ours, theirs in zip(tensors, grads, strict=True):
        assert ours.grad.numpy() == pytest.approx(theirs, abs=1e-12)


@pytest.fixture(scope="module")
def stories():
    return [words_of(s) for story in MicroWorld.load().stories(3_000) for s in story.sentences]


MAKERS = {
    "ppmi": lambda stories: ppmi_vectors(stories, 50),
    "skip-gram": lambda stories: skip_gram_vectors(stories, 32, epochs=6),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_words_of_the_world_are_near_words_of_their_slot(stories, maker):
    world = MicroWorld.load()
    vectors = MAKERS[maker](stories)
    tables = {
        "jobs": {row["job"] for row in world.grammar.tables["people"]},
        "foods": {row["food"] for row in world.grammar.tables["foods"]},
    }
    for slot in tables.values():
        inside = [word for word in slot if word in vectors][:20]
        near = [other for word in inside for other, _ in vectors.neighbours(word, 5)]
        chance = len(slot) / len(vectors.words)
        assert sum(other in slot for other in near) / len(near) > max(0.3, 3 * chance)


def test_the_same_seed_gives_the_same_vectors(stories):
    once, again, other = (
        skip_gram_vectors(stories[:300], 8, epochs=1, seed=seed) for seed in (0, 0, 1)
    )
    assert torch.equal(once.vectors, again.vectors)
    assert not torch.equal(once.vectors, other.vectors)


def test_neighbours_by_hand():
    vectors = StaticVectors(("x", "y", "z"), torch.tensor([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]]))
    assert vectors.neighbours("x") == [("y", pytest.approx(0.5**0.5)), ("z", pytest.approx(0.0))]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: frequent_words("a cat"), "Text was given; expected lists of words"),
        (lambda: frequent_words(["a cat"]), "Text was given"),
        (lambda: frequent_words([]), "0 of 0 words occur at least 5 times"),
        (lambda: ppmi_vectors(TOY, 3, least=1), "dimension=3 was given for 3 words; expected 1 to"),
        (lambda: neighbour_pairs(TOY, ["a"], 0), "window=0 was given"),
        (lambda: StaticVectors(("a",), torch.ones(1, 2))["cat"], "'cat' has no vector"),
    ],
)
def test_what_makes_no_sense_is_told(ask, says):
    with pytest.raises(ValueError, match=says):
        ask()
