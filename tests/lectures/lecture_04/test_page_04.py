"""The page of lecture 04 prints the papers' tables as data/papers has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from course_lib.teaching.claims import printed

SOURCE = Path(__file__).resolve().parents[3] / "notebooks/source/04_roberta_dynamic_masking.py"
GLUE = ("bert_large_dev", "roberta_large_dev", "bert_large_leaderboard", "roberta_test")


def page_rows(first_cell: str) -> list[list[str]]:
    """The cells after the first of each table row that begins so, without bold type."""
    text = SOURCE.read_text(encoding="utf-8").replace("**", "")
    rows = re.findall(rf"^# \| {first_cell}[^|]*\|(.+)\|$", text, flags=re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def as_cell(score: float | list[float] | None) -> str:
    if score is None:
        return "–"
    return " / ".join(map(str, score)) if isinstance(score, list) else str(score)


@pytest.mark.parametrize("task", [t for t in printed("glue")["tasks"] if t != "where"])
def test_the_scores_of_glue(task: str) -> None:
    expected = [as_cell(printed("glue")[row]["scores"].get(task)) for row in GLUE]
    assert page_rows(f"{task}:") == [expected]


def test_race_is_test_against_test() -> None:
    race = printed("roberta")["race"]
    assert page_rows("BERT-large, from Yang") == [[str(race["bert_large"])]]
    assert page_rows("RoBERTa-large") == [[str(race["roberta"])]]


@pytest.mark.parametrize(
    ("line", "row"),
    [("for reference", "published"), ("static .ten copies", "static"), ("dynamic,", "dynamic")],
)
def test_the_comparison_of_masks(line: str, row: str) -> None:
    assert page_rows(line) == [list(map(str, printed("roberta")["masking"][row]))]
