"""Recall, MRR and nDCG: by hand, over all orders of equal scores, and beside ir_measures."""

from __future__ import annotations

from itertools import permutations
from math import log2

import numpy as np
import pytest
import torch

from course_lib.train.ranking_metrics import as_run, ranking_scores


def test_by_hand():
    """Ranks 2 and 4 of three relevant ones, gains 3 and 1, and one that is not ranked."""
    run = {"q": {"a": 0.9, "b": 0.8, "c": -0.1, "d": -0.2}}
    relevant = {"q": {"b": 3, "d": 1, "e": 1, "a": 0}}
    scores = ranking_scores(run, relevant, 4)
    ideal = 3 + 1 / log2(3) + 1 / log2(4)
    expected = {
        "recall": 2 / 3, "mrr": 1 / 2, "ndcg": (3 / log2(3) + 1 / log2(5)) / ideal, "judged": 3 / 4,
    }  # fmt: skip
    assert scores.means == pytest.approx(expected)
    assert ranking_scores(run, relevant, 1).means["mrr"] == 0


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10])
def test_equal_scores_count_as_the_mean_of_all_orders(k):
    values = {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 0.0, "f": 0.0}
    relevant = {"q": {"b": 1, "d": 2, "f": 1}}
    tied = ranking_scores({"q": values}, relevant, k).means
    results = []
    for order in permutations("bcd"):
        for end in permutations("ef"):
            ranked = ["a", *order, *end]
            run = {"q": {document: float(-n) for n, document in enumerate(ranked)}}
            results.append(list(ranking_scores(run, relevant, k).means.values()))
    assert list(tied.values()) == pytest.approx(np.mean(results, axis=0).tolist())


def drawn(count, seed):
    """Queries with judgements of 0 to 3 and unjudged documents, scores of both signs, no ties."""
    rng = np.random.default_rng(seed)
    run, relevant = {}, {}
    for q in range(count):
        scores = rng.permutation(60)[:40] / 7 - 4
        documents = rng.permutation(60)
        if q % 5:  # else missing
            run[f"q{q}"] = {f"d{d}": float(s) for d, s in zip(documents, scores, strict=False)}
        judged = rng.permutation(60)[:20]
        relevant[f"q{q}"] = {f"d{d}": int(rng.integers(0, 4)) for d in judged} | {"d0": 1}
    return run, relevant


@pytest.mark.parametrize("k", [1, 3, 10, 100])
def test_beside_ir_measures(k):
    """Unjudged documents, documents that are not ranked, missing queries, negative scores."""
    measures = pytest.importorskip("ir_measures")
    run, relevant = drawn(23, k)
    scores = ranking_scores(run, relevant, k)
    names = {"recall": measures.R @ k, "mrr": measures.RR @ k, "ndcg": measures.nDCG @ k}
    names["judged"] = measures.Judged @ k
    theirs = measures.calc_aggregate(names.values(), relevant, run)
    for name, measure in names.items():
        assert scores.means[name] == pytest.approx(theirs[measure], abs=1e-6)
    assert scores.missing == tuple(f"q{n}" for n in range(0, 23, 5))


def test_ir_measures_breaks_ties_by_name_and_ours_by_none():
    """Two documents of one score: the relevant one's name decides there, 1 or 0.5; here 0.75."""
    measures = pytest.importorskip("ir_measures")
    theirs = set()
    for names in ("ab", "ba"):
        run, relevant = {"q": dict.fromkeys(names, 1.0)}, {"q": {names[0]: 1}}
        theirs.add(measures.calc_aggregate([measures.RR @ 10], relevant, run)[measures.RR @ 10])
        assert ranking_scores(run, relevant).means["mrr"] == 0.75
    assert theirs == {0.5, 1.0}


def test_missing_queries_count_nothing():
    scores = ranking_scores(
        {"a": {"x": 1.0}, "b": {}}, {"a": {"x": 1}, "b": {"y": 1}, "c": {"z": 1}}
    )
    assert scores.means == {"recall": 1 / 3, "mrr": 1 / 3, "ndcg": 1 / 3, "judged": 1 / 3}
    assert scores.missing == ("b", "c") and scores.queries == ("a", "b", "c")


def test_vectors_that_are_all_alike_are_at_chance():
    """Ten of a hundred: the order of a file is no merit."""
    ids = [f"d{n}" for n in range(100)]
    run = as_run(torch.ones(100, 100), [f"q{n}" for n in range(100)], ids, 10)
    relevant = {f"q{n}": {f"d{n}": 1} for n in range(100)}
    assert ranking_scores(run, relevant).means["recall"] == pytest.approx(0.1)


def test_a_run_keeps_what_equals_its_last():
    run = as_run(
        torch.tensor([[3.0, 1.0, 1.0, 0.0], [1.0, 2.0, -torch.inf, 0.5]]), [*"pq"], [*"abcd"], 2
    )
    assert run == {"p": {"a": 3.0, "b": 1.0, "c": 1.0}, "q": {"a": 1.0, "b": 2.0}}
    with pytest.raises(ValueError, match="the id 'p' stands twice"):
        as_run(torch.ones(2, 2), [*"pp"], [*"ab"])
    with pytest.raises(ValueError, match="the id 'a' stands twice"):
        as_run(torch.ones(1, 2), [*"p"], [*"aa"])


@pytest.mark.parametrize(
    ("run", "relevant", "says"),
    [
        ({"q": {"a": 1.0}}, {}, "expected judgements"),
        ({"other": {"a": 1.0}}, {"q": {"a": 1}}, "Do the ids agree"),
        ({"q": {"a": 1.0}}, {"q": {"a": 0}}, "query 'q' has no relevant document"),
        ({"q": {"a": float("nan")}}, {"q": {"a": 1}}, "score of 'a' is not finite"),
    ],
)
def test_what_cannot_be_judged(run, relevant, says):
    with pytest.raises(ValueError, match=says):
        ranking_scores(run, relevant)
