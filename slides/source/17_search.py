"""What deck 17 shows: read from data/results, or counted; never trained."""

from __future__ import annotations

from typing import Any

import torch
from drawing import for_a_hall, on_one_line, table  # fmt: skip

from course_lib.lectures.lecture_17.numbers import mean_of
from course_lib.lectures.lecture_17.search import TESTS, ndcg
from course_lib.lectures.lecture_17.views import charts


def by_hand() -> str:
    """Three queries, three documents: whose own stands where."""
    scores = torch.tensor([[0.9, 0.2, 0.1], [0.8, 0.1, 0.3], [0.5, 0.5, 0.5]])
    rows = [
        (f"query {n + 1}", *(f"{x:.1f}" for x in row), f"{value:.3f}")
        for n, (row, value) in enumerate(zip(scores.tolist(), ndcg(scores).tolist(), strict=True))
    ]
    return table(("", "document 1", "document 2", "document 3", "nDCG@10"), rows)


def temperatures() -> str:
    """What a softmax makes of two cosines."""
    rows = []
    for temperature in (1.0, 0.2, 0.05):
        right = (torch.tensor([0.6, 0.5]) / temperature).softmax(dim=0)
        rows.append((f"{temperature:g}", *(f"{p:.2f}" for p in right.tolist())))
    return table(("temperature", "cosine 0.6 (correct)", "cosine 0.5 (wrong)"), rows)


def three_ways() -> str:
    rows = [
        ("bi-encoder", "one vector per text", "all documents", "N dot products"),
        ("late interaction", "one vector per token, MaxSim", "all documents",
         "N × thousands of products"),
        ("cross-encoder", "both texts in one input", "nothing", "N texts through the model"),
    ]  # fmt: skip
    head = ("", "compared", "precomputed", "cost of a query")
    return table(head, rows, numbers=False, size=22)


WAYS = ("BM25", "[CLS]", "mean", "MiniLM", "token table", "bi-encoder from nothing", "bi-encoder",
        "MaxSim, untrained", "MaxSim, trained")  # fmt: skip


def ways() -> str:
    rows = [(name, mean_of(name, "modules"), mean_of(name, "packages")) for name in WAYS]
    return table(("nDCG@10", "unseen modules", "unseen packages"), rows, size=20)


def code() -> str:
    rows = [
        (name.removeprefix("code: "), *(mean_of(name, split, what) for split in TESTS
                                        for what in ("ndcg", "mix")))
        for name in ("code: untrained", "code: MiniLM", "code: bi-encoder")
    ]  # fmt: skip
    words = [mean_of("code: BM25", split) for split in TESTS]
    head = ("nDCG@10", "unseen modules", "with BM25", "unseen packages", "with BM25")
    return table(head, [("BM25", words[0], "–", words[1], "–"), *rows], size=22)


def together() -> str:
    rows = [
        (name, *(mean_of(name, "packages", what) for what in ("ndcg", "fused", "mix")))
        for name in ("token table", "bi-encoder", "MaxSim, trained", "MiniLM")
    ]
    head = ("unseen packages", "alone", "with BM25, by ranks", "with BM25, by scores")
    return table(head, [("BM25", mean_of("BM25", "packages"), "–", "–"), *rows], size=22)


def shared() -> Any:
    return on_one_line(for_a_hall(charts.shared_words_chart(), 1140, 450, 330))


def sizes() -> Any:
    return on_one_line(for_a_hall(charts.sizes_chart(), 1140, 450, 330))
