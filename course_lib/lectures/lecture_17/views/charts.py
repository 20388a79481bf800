"""Stored searches as a table and charts, and the cosines between texts that have nothing in
common."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, stdev
from typing import Any

from torch import Tensor

from course_lib.teaching import curves_chart, dots_chart
from course_lib.teaching.page import Html, number_table

from ..course import by_words, judged, measures, sections
from ..numbers import figure, reached, runs_of
from ..search import RECIPES, SHARED, SIZES, TESTS

SPLITS = {"modules": "unseen modules", "packages": "unseen packages"}


def ways_table() -> Html:
    """nDCG@10 of every way to search, alone and joined with BM25, on both splits."""
    head = ["way to search", "steps"]
    head += [f"{split}: {what}" for split in TESTS for what in ("alone", "fused", "mix")]
    rows = [
        [name, str(recipe.steps or "–"), *(_cell(name, split, what) for split in TESTS
                                            for what in ("ndcg", "fused", "mix"))]
        for name, recipe in RECIPES.items()
    ]  # fmt: skip
    return number_table(head, rows, "nDCG@10 by way to search")


def _cell(name: str, split: str, what: str) -> str:
    """The mean, and the standard deviation where there are seeds."""
    if what != "ndcg" and name == "BM25":
        return "–"
    values = reached(name, split, what)
    spread = f" ± {figure(stdev(values))}" if len(values) > 1 else ""
    return figure(fmean(values)) + spread


def course_table() -> Html:
    """How well quiz questions find their page of the course, and its section, by BM25: counted now,
    on the pages as they are. Without pages, in Colab, the sentence that says so."""
    try:
        counts = {of: len(judged(of)) for of in ("quiz", "sections")}
        head = [f"{len(sections())} sections"]
    except FileNotFoundError as missing:
        return Html(str(missing), str(missing))
    for of, what in (("quiz", "page"), ("sections", "section")):
        columns = ("recall@1", "recall@5", "nDCG@10")
        head += [f"{what} (of {counts[of]}): {column}" for column in columns]
    rows = []
    for name, weight in (("a random order", 0), ("BM25", 1)):
        each = [measures(weight * by_words(of), of) for of in counts]
        values = [x for m in each for x in (m["recall@1"], m["recall@5"], fmean(m["ndcg"]))]
        rows.append([name, *map(figure, values)])
    return number_table(head, rows, "pages and sections that answer questions")


def shared_words_chart(split: str = "packages") -> Any:
    """nDCG@10 by how many words of the query its document has, too."""
    curves = {}
    for name in ("BM25", "token table", "bi-encoder", "MiniLM"):
        of_runs = [run[split]["by_shared"] for run in runs_of(name)]
        curves[name] = [
            [(n, groups[label]["ndcg"]) for n, label in enumerate(SHARED) if label in groups]
            for groups in of_runs
        ]
    chart = curves_chart(
        curves, title=f"By shared words: {SPLITS[split]}", x_title="shared words",
        y_title="nDCG@10",
    )  # fmt: skip
    return chart.update_xaxes(tickvals=list(range(len(SHARED))), ticktext=list(SHARED))


def sizes_chart(split: str = "modules") -> Any:
    """nDCG@10 by how many numbers of each vector are kept."""
    curves = {
        label: [[(size, run["sizes"][split][str(size)]) for size in SIZES] for run in runs_of(name)]
        for label, name in (
            ("trained at every size", "Matryoshka table"), ("at the full size alone", "token table")
        )
    }  # fmt: skip
    chart = curves_chart(
        curves, title="Shortened vectors", x_title="numbers per vector", y_title="nDCG@10",
        log_x=True,
    )  # fmt: skip
    return chart.update_xaxes(tickvals=list(SIZES), ticktext=[str(size) for size in SIZES])


def cosines_chart(vectors: Mapping[str, Tensor], most: int = 200) -> Any:
    """Cosines between vectors (N, H) of different texts, the first `most` pairs of neighbours."""
    groups = {}
    for name, of in vectors.items():
        unit = of / of.norm(dim=1, keepdim=True)
        groups[name] = (unit[:-1] * unit[1:]).sum(dim=1)[:most].tolist()
    return dots_chart(groups, title="Cosines between texts on different subjects", y_title="cosine")
