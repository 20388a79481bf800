"""Lecture 17's pairs, its measure of a ranking, and what its results file says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib.lectures.lecture_17 import pairs, search
from course_lib.lectures.lecture_17.views import charts
from course_lib.teaching.results import read_result
from course_lib.train.ranking_metrics import as_run, ranking_scores

torch.set_num_threads(1)
DOCSTRING = """Sort the rows of a table by one column.  Ties keep their order.

    Parameters
    ----------
    table : list of rows, each as long as the first one; it is left as it was

    Examples
    --------
    >>> sort_rows([[2], [1]])
    """


def test_a_docstring_becomes_query_and_document():
    query, document = pairs.pair_in(DOCSTRING)
    assert query == "Sort the rows of a table by one column"
    assert document.startswith("Ties keep their order. Parameters") and ">>>" not in document
    assert "Examples" not in document and "---" not in document


@pytest.mark.parametrize(
    "text",
    ["", "Sort.", "Sort the rows of a table.", ">>> a first line\n\n" + "word " * 20],
    ids=["empty", "short query", "no document", "code"],
)
def test_a_docstring_that_cannot_stand_alone_gives_no_pair(text: str):
    assert pairs.pair_in(text) is None


def test_pairs_of_a_slice_do_not_repeat_and_come_from_both_sides():
    train, modules = (pairs.slice_pairs(split) for split in ("train", "modules"))
    queries = [query.lower() for part in (train, modules) for query in part.queries]
    assert len(queries) == len(set(queries)) and min(len(train), len(modules)) > 300
    assert not {p.module for p in train.pairs} & {p.module for p in modules.pairs}
    with pytest.raises(ValueError, match="split='test' was given; expected train or modules"):
        pairs.slice_pairs("test")
    with pytest.raises(ValueError, match="expected one of train, modules, packages"):
        pairs.pairs("test")


def test_a_document_is_cut_where_the_encoders_stop_reading():
    text = "The rows of a table, re-sorted by reverse_order. " * 40
    cut, of = search.as_read(text), search.tokenizer()
    assert text.startswith(cut) and of.encode(cut) == of.encode(text)[: search.READ - 2]
    assert search.as_read("A short one.") == "A short one."


def test_pairs_are_put_aside_by_module():
    train, dev = pairs.held_out_of_training(pairs.slice_pairs("train"))
    assert len(train) + len(dev) == len(pairs.slice_pairs("train")) and len(dev) > 20
    assert not {p.module for p in train.pairs} & {p.module for p in dev.pairs}


@pytest.mark.parametrize("steps", [1, 3, 50])
def test_ndcg_is_the_librarys_ties_included(steps: int):
    draw = torch.Generator().manual_seed(steps)
    scores = torch.randint(0, steps + 1, (23, 23), generator=draw).float()
    names = [str(n) for n in range(23)]
    run = as_run(scores, names, names, k=23)
    theirs = ranking_scores(run, {n: {n: 1} for n in names})
    assert search.ndcg(scores).tolist() == pytest.approx(theirs.ndcg.tolist())


def test_ndcg_by_hand():
    scores = torch.tensor([[0.9, 0.2, 0.1], [0.8, 0.1, 0.3], [0.5, 0.5, 0.5]])
    third = (1 + 0.6309 + 0.5) / 3
    assert search.ndcg(scores).tolist() == pytest.approx([1, 0.5, third], abs=1e-4)


@pytest.mark.parametrize("name", ["token table", "bi-encoder", "MaxSim, trained"])
def test_a_way_learns_its_batch(name: str, monkeypatch: pytest.MonkeyPatch):
    """Sixteen pairs again and again: the loss falls."""
    few = pairs.slice_pairs("train")[:16]
    monkeypatch.setattr(search, "read", lambda split: few)
    search.packed_sides.cache_clear()
    recipe = replace(search.RECIPES[name], batch_size=16, learning_rate=3e-3)
    model, history = search.train(recipe, 0, steps=8)
    search.packed_sides.cache_clear()
    losses = history.losses["total"]
    assert losses[-1] < losses[0] - 0.05
    scores = search.model_scores(model, recipe, "train")
    assert scores.shape == (16, 16) and scores.isfinite().all()


# ---------------------------------------------------------------- the results file


def test_no_rate_that_is_best_stands_at_an_end():
    for name in search.TRAINED:
        if search.RECIPES[name].learning_rate:
            continue
        rates = {
            float(r): dev for r, dev in read_result("17_search")["runs"][name][0]["rates"].items()
        }
        best = max(rates, key=lambda rate: rates[rate])
        assert min(rates) < best < max(rates), name


def test_every_query_is_counted_once_by_its_shared_words():
    result = read_result("17_search")
    for runs in result["runs"].values():
        for run in runs:
            for split in search.TESTS:
                groups = run[split]["by_shared"].values()
                assert sum(x["queries"] for x in groups) == result["texts"][split]["pairs"]
                mean = sum(x["queries"] * x["ndcg"] for x in groups)
                assert run[split]["ndcg"] == pytest.approx(mean / result["texts"][split]["pairs"])


def test_words_find_nothing_where_none_is_shared():
    for split in search.TESTS:
        (run,) = read_result("17_search")["runs"]["BM25"]
        assert run[split]["by_shared"]["0"]["ndcg"] < 0.01


def test_the_table_has_a_row_for_every_way():
    text = charts.ways_table().text
    assert all(name in text for name in search.RECIPES)
