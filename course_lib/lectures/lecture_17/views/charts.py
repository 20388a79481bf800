"""Stored searches as a table and charts, and the cosines between texts that have nothing in
common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean, stdev
from typing import Any

from torch import Tensor

from course_lib.teaching import curves_chart, dots_chart
from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import stored

from ..course import ORDER
from ..more import TRIALS
from ..numbers import figure, reached, runs_of, signed
from ..search import RECIPES, SHARED, SIZES, TESTS, Recipe

SPLITS = {"modules": "unseen modules", "packages": "unseen packages"}


COLUMNS = {"alone": "ndcg", "fused": "fused", "mix": "mix"}


def ways_table() -> Html:
    """nDCG@10 of every way to search, alone and joined with BM25, on both splits."""
    return _table("way to search", RECIPES, COLUMNS, "nDCG@10 by way to search")


def trials_table() -> Html:
    """The further trials, each group below what it is compared with: alone, and mixed with BM25."""
    compared = {name: RECIPES[name] for name in ("BM25", "bi-encoder")} | TRIALS
    return _table("trial", compared, ("alone", "mix"), "nDCG@10 of further trials")


def _table(first: str, recipes: Mapping[str, Recipe], columns: Iterable[str], title: str) -> Html:
    """A row a recipe; of `columns`, keys of COLUMNS, one for each split."""
    cells = [(split, what) for split in TESTS for what in columns]
    head = [first, "steps", *(f"{split}: {what}" for split, what in cells)]
    rows = [
        [name, str(of.steps or "–"), *(_cell(name, split, COLUMNS[what]) for split, what in cells)]
        for name, of in recipes.items()
    ]
    return number_table(head, rows, title)


def _cell(name: str, split: str, what: str) -> str:
    """The mean, and the standard deviation where there are seeds."""
    if what != "ndcg" and "BM25" in name:
        return "–"
    values = reached(name, split, what)
    spread = f" ± {figure(stdev(values))}" if len(values) > 1 else ""
    return figure(fmean(values)) + spread


def course_table() -> Html:
    """nDCG@10 of questions for their page of the course, and its section: each way alone, and mixed
    with BM25; and what the mix gains on sections."""
    head = ["ranked by", "page: alone", "with BM25", "section: alone", "with BM25"]
    head += ["gain over BM25", "95% interval"]
    rows = []
    for name, runs in stored("17_course")["runs"].items():
        row, of_section = [name], [run["sections"]["mix"] for run in runs]
        for of in ("quiz", "sections"):
            row += [figure(fmean(run[of][way]["ndcg"] for run in runs)) for way in ("alone", "mix")]
        if name in ("BM25", ORDER):  # a mix with itself, or with nothing
            row[2::2] = "–", "–"
            rows.append([*row, "–", "–"])
        else:
            low, high = (
                signed(fmean(one["interval"][end] for one in of_section)) for end in (0, 1)
            )
            gain = signed(fmean(one["gain"] for one in of_section))
            rows.append([*row, gain, f"{low} to {high}"])
    return number_table(head, rows, "pages and sections that answer questions")


def shared_words_chart(split: str = "packages") -> Any:
    """nDCG@10 by how many words of the query its document has, too."""
    curves = {}
    for name in ("BM25", "TF-IDF", "token table", "bi-encoder", "MiniLM"):
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
