"""What is planned of lecture 17's experiments runs: a few pairs, a few steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from course_lib.lectures.lecture_17 import course, more, pairs, search

torch.set_num_threads(1)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[pairs.Pairs]:
    """Twenty-four pairs in place of every split."""
    split = pairs.slice_pairs("train")[:24]
    for module in (search, more):
        monkeypatch.setattr(module, "read", lambda _: split)
    caches = (search.packed_sides, search.by_words, search.shared_words, more.hard_negatives)
    for cached in caches:
        cached.cache_clear()
    yield split
    for cached in caches:
        cached.cache_clear()


def test_hard_negatives_are_never_the_querys_own(few: pairs.Pairs):
    hard = more.hard_negatives("train", 5)
    assert hard.shape == (24, 5) and not (hard == torch.arange(24)[:, None]).any()


@pytest.mark.parametrize("name", [more.CROSS, "hard negatives", "SimCSE"])
def test_a_trial_learns_its_batch(name: str, few: pairs.Pairs):
    trial = replace(more.TRIALS[name], batch_size=12, learning_rate=1e-3)
    encoder = search.start_encoder(trial, 0)
    cross = trial.way == "cross"
    model = more.CrossEncoder(encoder, 0) if cross else search.model_of(trial, 0)
    model, history = more.fit_trial(model, trial, 0, steps=6)
    losses = history.losses["total"]
    assert losses[-1] < losses[0] and not model.training
    scores = trial.scores(model, "train")
    assert scores.shape == (24, 24) and scores.isfinite().all()


def test_what_is_no_candidate_stays_below_in_bm25s_order(
    few: pairs.Pairs, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(more, "CANDIDATES", 3)
    model = more.CrossEncoder(search.start_encoder(more.TRIALS[more.CROSS], 0), 0).eval()
    words, scores = search.by_words("train"), more.reranked(model, "train")
    for before, after in zip(words, scores, strict=True):
        best = set(before.topk(3).indices[before.topk(3).values > 0].tolist())
        others = [n for n in range(24) if n not in best]
        assert not best or min(after[n] for n in best) > max(after[n] for n in others)
        assert (after[others].argsort() == before[others].argsort()).all()


def test_some_of_the_queries_are_measured_by_themselves(few: pairs.Pairs):
    scores = torch.randn(24, 24, generator=torch.Generator().manual_seed(0))
    whole, part = (search.measured(lambda _: scores, every=n) for n in (1, 3))
    each = search.ndcg(scores)
    assert whole["modules"]["ndcg"] == whole["dev"] == pytest.approx(float(each.mean()))
    assert part["modules"]["ndcg"] == part["dev"] == pytest.approx(float(each[::3].mean()))
    assert sum(of["queries"] for of in part["modules"]["by_shared"].values()) == 8


def test_a_function_becomes_query_and_code():
    source = 'def sort_rows(aTable, by=None):\n    """Sort the rows of a table.\n\n    More."""\n'
    body = "    # a comment\n    kept = [row for row in aTable]\n    return sorted(kept, key=by)"
    query, document = pairs.code_pair(source + body)
    assert query == "Sort the rows of a table"
    assert document.startswith("def sort rows(a Table") and "comment" not in document
    assert pairs.code_pair('def f(x):\n    """Too short."""\n    return x') is None


# ---------------------------------------------------------------- the course's own pages


def test_every_label_names_a_section_of_its_page():
    """A heading that was renamed, or a question that is gone, is a KeyError or a count too low."""
    labels = course.labels()
    right = course.judged("sections")
    assert len(right) == sum(map(len, labels.values())) > 60
    pages = [one.page[:2] for one in course.sections()]
    assert {pages[int(n)] for answers in right.values() for n in answers} == set(labels)


def test_questions_are_not_in_the_index():
    text = " ".join(" ".join(one.text.split()) for one in course.sections())
    assert not [q for q in course.judged("quiz") if len(q) > 60 and q in text]


def test_bm25_finds_pages_and_a_random_order_does_not():
    by_words = course.measures(course.by_words("quiz"), "quiz")
    by_chance = course.measures(0 * course.by_words("quiz"), "quiz")
    assert by_words["recall@1"] > 0.7 > 0.1 > by_chance["recall@1"]
    assert len(by_words["ndcg"]) == len(course.judged("quiz"))
