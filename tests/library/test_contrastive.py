"""InfoNCE, Matryoshka and SBERT's pair loss: by hand, and beside sentence-transformers' own."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.objectives.contrastive import (
    find_false_negatives,
    info_nce_loss,
    matryoshka_loss,
    pair_classification_loss,
    pair_features,
    symmetric_cross_entropy,
)

LOSSES = "sentence_transformers.sentence_transformer.losses"


class Columns(nn.Module):
    """What a SentenceTransformer is to its losses, its vectors being the inputs themselves."""

    device = torch.device("cpu")

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, features, **_):
        return {**features, "sentence_embedding": features["vectors"]}

    def get_embedding_dimension(self):
        return self.width


def theirs(loss, *vectors, labels=None):
    features = [{"vectors": x, "input_ids": torch.zeros(len(x), 1)} for x in vectors]
    return loss(features, labels)


def draw(B, H, count=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        (3 * torch.randn(B, H, generator=generator, dtype=torch.float64)).requires_grad_()
        for _ in range(count)
    ]


def same(ours, other, vectors):
    """Loss and gradients within 1e-6."""
    gradients = [torch.autograd.grad(x, vectors, retain_graph=True) for x in (ours, other)]
    assert ours.item() == pytest.approx(other.item(), abs=1e-6)
    for a, b in zip(*gradients, strict=True):
        assert (a - b).abs().max() <= 1e-6


odd_batches = pytest.mark.parametrize(("B", "H"), [(1, 1), (1, 7), (3, 2), (13, 11), (37, 5)])


@odd_batches
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("K", [0, 1, 3])
@pytest.mark.parametrize("temperature", [0.01, 0.05, 1.0])
def test_info_nce_is_multiple_negatives_ranking(B, H, K, symmetric, temperature):
    losses = pytest.importorskip(LOSSES)
    vectors = draw(B, H, 2 + K)
    directions = ("query_to_doc", "doc_to_query") if symmetric else ("query_to_doc",)
    other = losses.MultipleNegativesRankingLoss(
        Columns(H), scale=1 / temperature, directions=directions, partition_mode="per_direction"
    )
    negatives = torch.stack(vectors[2:], dim=1) if K else None  # (B, K, H)
    ours = info_nce_loss(*vectors[:2], negatives, temperature=temperature, symmetric=symmetric)
    same(ours, theirs(other, *vectors), vectors)
    if K == 1:
        plain = info_nce_loss(*vectors, temperature=temperature, symmetric=symmetric)
        assert torch.equal(ours, plain)


def test_their_joint_form_is_another_loss():
    """ "Symmetric" has two meanings there; ours is the mean of two losses."""
    losses = pytest.importorskip(LOSSES)
    vectors = draw(5, 4)
    directions = ("query_to_doc", "doc_to_query")
    joint = losses.MultipleNegativesRankingLoss(Columns(4), directions=directions)
    old = losses.MultipleNegativesSymmetricRankingLoss(Columns(4))
    ours = info_nce_loss(*vectors, symmetric=True)
    same(ours, theirs(old, *vectors), vectors)
    assert abs(ours.item() - theirs(joint, *vectors).item()) > 0.1


def test_symmetric_cross_entropy_is_info_nce_of_scores():
    vectors = draw(5, 4)
    cosines = F.normalize(vectors[0], dim=-1) @ F.normalize(vectors[1], dim=-1).T
    ours = info_nce_loss(*vectors, temperature=0.3, symmetric=True)
    assert symmetric_cross_entropy(cosines / 0.3).item() == pytest.approx(ours.item(), rel=1e-6)
    one_sided = F.cross_entropy(cosines / 0.3, torch.arange(5)).item()
    assert symmetric_cross_entropy(cosines / 0.3).item() != pytest.approx(one_sided, rel=1e-3)


@odd_batches
@pytest.mark.parametrize("weights", [None, [0.5, 2.0]])
def test_matryoshka(B, H, weights):
    losses = pytest.importorskip(LOSSES)
    vectors, sizes = draw(B, H), [H, (H + 1) // 2]
    inner = losses.MultipleNegativesRankingLoss(Columns(H))
    other = losses.MatryoshkaLoss(inner.model, inner, sizes, weights)
    same(matryoshka_loss(info_nce_loss, vectors, sizes, weights), theirs(other, *vectors), vectors)


def test_matryoshka_makes_the_full_vectors_unit_length_too():
    vectors = draw(4, 6)
    by_dot_product = matryoshka_loss(lambda u, v: (u * v).sum(), vectors, [6])
    assert by_dot_product.item() == pytest.approx(F.cosine_similarity(*vectors).sum().item())


@odd_batches
def test_sberts_pair_loss(B, H):
    losses = pytest.importorskip(LOSSES)
    u, v = draw(B, H)
    other = losses.SoftmaxLoss(Columns(H), H, 3).double()
    labels = torch.arange(B) % 3
    ours = pair_classification_loss(other.classifier, u, v, labels)
    same(ours, theirs(other, u, v, labels=labels), [u, v, *other.classifier.parameters()])
    assert pair_features(u, v).shape == (B, 3 * H)


def test_info_nce_by_hand():
    """Two pairs, of cosines 1 and 0: −log(e^2 / (e^2 + 1)) at temperature 0.5; chance is ln B."""
    eye = torch.eye(2)
    assert info_nce_loss(5 * eye, eye, temperature=0.5).item() == pytest.approx(
        math.log1p(math.exp(-2))
    )
    alike = torch.ones(7, 3)
    assert info_nce_loss(alike, alike, alike).item() == pytest.approx(math.log(14))


def test_false_negatives_leave_the_softmax():
    """Query 2 repeats query 0, and document 3 is document 1: neither pushes its double apart."""
    queries, documents = ["a", "b", "a", "c"], ["A", "B", "A2", "B"]
    right = find_false_negatives(queries, documents, [["x"], ["A"], ["B"], ["A2"]])
    assert right.int().tolist() == [
        [1, 0, 1, 0, 0, 1, 0, 1],
        [0, 1, 0, 1, 0, 0, 1, 0],
        [1, 0, 1, 0, 0, 1, 0, 1],
        [0, 1, 0, 1, 0, 0, 1, 0],
    ]
    q, d, n = draw(4, 3, 3)
    for symmetric in (False, True):
        loss = info_nce_loss(q, d, n, false_negatives=right, symmetric=symmetric)
        scores = F.normalize(q, dim=1) @ F.normalize(torch.cat([d, n]), dim=1).T / 0.05
        kept = ~right | torch.eye(4, 8, dtype=torch.bool)
        expected = F.cross_entropy(scores.masked_fill(~kept, -torch.inf), torch.arange(4))
        if symmetric:
            back = scores[:, :4].masked_fill(~kept[:, :4], -torch.inf).T
            expected = (expected + F.cross_entropy(back, torch.arange(4))) / 2
        assert loss.item() == pytest.approx(expected.item(), abs=1e-9)


def test_parts_of_a_batch_do_not_add_up():
    q, d = draw(8, 5)
    parts = [info_nce_loss(q[n : n + 4], d[n : n + 4]) for n in (0, 4)]
    assert sum(parts).item() / 2 < info_nce_loss(q, d).item()


@pytest.mark.parametrize("temperature", [0, -1, math.nan, math.inf, "0.05"])
def test_a_temperature_that_is_none(temperature):
    with pytest.raises(ValueError, match="temperature="):
        info_nce_loss(*draw(2, 2), temperature=temperature)


def test_what_does_not_fit():
    q, d = draw(3, 4)
    with pytest.raises(ValueError, match=r"expected \(B, H\) both"):
        info_nce_loss(q, d[:2])
    with pytest.raises(ValueError, match="expected one document a query"):
        find_false_negatives(["a"], ["A", "B"])
    with pytest.raises(ValueError, match="as many negatives for each"):
        find_false_negatives(["a", "b"], ["A", "B"], [["x"], ["y", "z"]])
    for sizes, weights in (([], None), ([5], None), ([0], None), ([2], [1.0, 2.0])):
        with pytest.raises(ValueError, match="expected sizes from 1 to 4"):
            matryoshka_loss(info_nce_loss, [q, d], sizes, weights)
