"""Search by words and by vectors, and rankings joined: by hand, and beside the packages."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.train.searching import (
    BM25,
    HnswIndex,
    QuantisedIndex,
    VectorIndex,
    reciprocal_rank_fusion,
    search_terms,
    top_documents,
    weighted_mix,
)

DOCUMENTS = ["the cat sat on a mat", "dogs and cats run", "a dog ran home", "mats, mats, mats"]


def vectors_of(count, width=32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(count, width, generator=generator), dim=1)


# ---------------------------------------------------------------- words


def test_terms_are_stems_without_stop_words():
    assert search_terms(["The cats are running, a read_csv"]) == [["cat", "run", "read_csv"]]


@pytest.mark.parametrize("query", ["cat", "dog mat", "mat mat cat unknown"])
def test_bm25_by_the_formula(query):
    """A word that stands twice in the query counts twice; unknown ones count nothing."""
    bags = search_terms(DOCUMENTS)
    mean = sum(map(len, bags)) / len(bags)
    expected = []
    for bag in bags:
        score = 0.0
        for word in query.split():
            df, tf = sum(word in other for other in bags), bag.count(word)
            idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
            score += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(bag) / mean))
        expected.append(score)
    assert BM25(DOCUMENTS).scores([query])[0].tolist() == pytest.approx(expected, abs=2e-6)


def test_bm25_ranks_only_what_shares_a_word():
    index = BM25(DOCUMENTS, ["a", "b", "c", "d"])
    (ranking,) = index.search(["cat"], k=100)
    assert list(ranking) == ["a", "b"] and min(ranking.values()) > 0


def test_unknown_words_and_stop_words_rank_nothing():
    with pytest.warns(UserWarning, match="2 of 3 queries have no word .* such as 'zebra'"):
        rankings = BM25(DOCUMENTS).search(["zebra", "cat", "the of"])
    assert rankings[0] == rankings[2] == {} and rankings[1]


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_query(query):
    with pytest.raises(ValueError, match="query 1 is empty"):
        BM25(DOCUMENTS).search(["cat", query])


def test_a_corpus_that_is_none():
    with pytest.raises(ValueError, match="no documents were given"):
        BM25([])
    with pytest.raises(ValueError, match="none of the 2 documents has a word"):
        BM25(["the", ""])
    with pytest.raises(ValueError, match="the id 'b' stands twice"):
        BM25(DOCUMENTS, ["a", "b", "c", "b"])
    with pytest.raises(ValueError, match="3 ids were given for 4 documents"):
        VectorIndex(torch.ones(4, 2), ["a", "b", "c"])
    with pytest.raises(ValueError, match="no queries"):
        BM25(DOCUMENTS).search([])
    with pytest.raises(TypeError, match="put it into a list"):
        BM25(DOCUMENTS).search("cat")


# ---------------------------------------------------------------- vectors


def test_exact_search():
    corpus, queries = vectors_of(50), vectors_of(7, seed=1)
    ids = [f"d{n}" for n in range(50)]
    rankings = VectorIndex(corpus, ids).search(queries, k=5)
    order = (queries @ corpus.T).numpy().argsort(axis=1)[:, ::-1][:, :5]
    assert [list(r) for r in rankings] == [[ids[n] for n in row] for row in order]
    assert len(VectorIndex(corpus).search(queries, k=1_000)[0]) == 50


def test_equal_scores_keep_the_corpus_order():
    scores = torch.tensor([[1.0, 2.0, 1.0, -torch.inf]])
    assert list(top_documents(scores, "abcd", 4)[0]) == ["b", "a", "c"]


@pytest.mark.parametrize(("bits", "share"), [(8, 1 / 4), (1, 1 / 32)])
def test_quantised_search(bits, share):
    """Codes are small, rescoring all gives exact search, and more candidates never find less."""
    corpus, queries = vectors_of(400, 64), vectors_of(20, 64, seed=1)
    exact, codes = VectorIndex(corpus), QuantisedIndex(corpus, bits=bits)
    assert codes.nbytes <= exact.nbytes * share + 64 * 4
    truth = exact.search(queries, 10)

    def recall(rankings):
        pairs = zip(rankings, truth, strict=True)
        return np.mean([len(ours.keys() & theirs.keys()) / 10 for ours, theirs in pairs])

    found = [recall(codes.search(queries, 10, n)) for n in (None, 10, 40, 400)]
    assert found[0] == found[1] <= found[2] <= found[3] == 1
    assert found[0] > (0.9 if bits == 8 else 0.2)
    best = codes.search(queries, 10, 400)
    assert all(a == pytest.approx(b, abs=1e-6) for a, b in zip(best, truth, strict=True))


def test_codes_of_bits_by_hand():
    corpus = torch.tensor([[0.2, -4.0, 0.0], [-0.1, 8.0, 0.0]])
    index = QuantisedIndex(corpus)
    assert index.codes.tolist() == [[127, -64, 0], [-64, 127, 0]]
    assert QuantisedIndex(corpus, bits=1).scores(torch.tensor([[1.0, -1.0, 1.0]])).tolist() == [
        [1, -3]
    ]


def test_a_documents_code_depends_on_no_query():
    """sentence-transformers' quantize_embeddings takes its ranges from the texts of the call."""
    corpus = vectors_of(30)
    index = QuantisedIndex(corpus)
    before = index.codes.clone()
    first = index.scores(vectors_of(1, seed=3))
    both = index.scores(torch.cat([vectors_of(1, seed=3), 100 * vectors_of(1, seed=4)]))
    assert torch.equal(index.codes, before) and torch.allclose(first[0], both[0], atol=1e-5)


def test_a_graph_of_neighbours():
    pytest.importorskip("usearch")
    corpus, queries = vectors_of(1_000, 16), vectors_of(30, 16, seed=1)
    truth = VectorIndex(corpus).search(queries, 10)
    found = []
    for effort in (1, 400):
        graph = HnswIndex(corpus, effort=effort).search(queries, 10)
        found.append(
            np.mean([len(a.keys() & b.keys()) / 10 for a, b in zip(graph, truth, strict=True)])
        )
        for ours, theirs in zip(graph, truth, strict=True):
            assert all(
                ours[id] == pytest.approx(theirs[id], abs=1e-5) for id in ours.keys() & theirs
            )
            assert list(ours.values()) == sorted(ours.values(), reverse=True)
    assert found[0] < found[1] and found[1] > 0.97


@pytest.mark.parametrize("kind", [VectorIndex, QuantisedIndex])
def test_vectors_that_do_not_fit(kind):
    with pytest.raises(ValueError, match=r"expected at least one of H numbers"):
        kind(torch.zeros(0, 4))
    with pytest.raises(ValueError, match="row 1 of vectors holds nan"):
        kind(torch.tensor([[1.0], [math.nan]]))
    with pytest.raises(ValueError, match="4 numbers"):
        kind(torch.ones(2, 4)).search(torch.ones(1, 5))
    with pytest.raises(ValueError, match="k=0"):
        kind(torch.ones(2, 4)).search(torch.ones(1, 4), k=0)
    with pytest.raises(ValueError, match="bits=4"):
        QuantisedIndex(torch.ones(2, 4), bits=4)
    with pytest.raises(ValueError, match="candidates=3"):
        QuantisedIndex(torch.ones(2, 4)).search(torch.ones(1, 4), 10, 3)


# ---------------------------------------------------------------- joined


def test_rank_fusion_by_hand():
    """Ranks 1, 2.5, 2.5 and 3, 1, 2."""
    first, second = torch.tensor([[9.0, 1.0, 1.0]]), torch.tensor([[0.1, 0.3, 0.2]])
    expected = [1 / 61 + 1 / 63, 1 / 62.5 + 1 / 61, 1 / 62.5 + 1 / 62]
    assert reciprocal_rank_fusion(first, second)[0].tolist() == pytest.approx(expected)


def test_a_mix_is_of_standardised_scores():
    first, second = torch.tensor([[1.0, 3.0], [5.0, 5.0]]), torch.tensor([[0.0, -8.0], [1.0, 2.0]])
    assert weighted_mix(first, second, 0.25)[0].tolist() == pytest.approx([-0.5, 0.5])
    assert weighted_mix(first, second, 0.25)[1].tolist() == pytest.approx([-0.25, 0.25])
    for weight, only in ((0, first), (1, second)):
        mixed = weighted_mix(first, second, weight)[0]
        assert mixed.argsort().tolist() == only[0].argsort().tolist()


def test_what_cannot_be_joined():
    for join in (reciprocal_rank_fusion, weighted_mix):
        with pytest.raises(ValueError, match=r"expected \(Q, N\) each"):
            join(torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"weight=1\.5"):
        weighted_mix(torch.ones(1, 2), torch.ones(1, 2), 1.5)
