"""The views of lecture 11: what they draw is what the vocabularies cut and the files say."""

from __future__ import annotations

import pytest
from view_parts import picture_of, plain

from course_lib import load_pretrained
from course_lib.lectures.lecture_11.views import pieces, results
from course_lib.teaching.results import read_result
from course_lib.text.wordpiece import WordPiece


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return load_pretrained("course-bert").tokenizer


def test_pieces_are_the_vocabularys(tokenizer) -> None:
    shown = pieces.pieces_picture({"course": tokenizer}, "diabetic retinopathy")
    cut = tokenizer.tokenize("diabetic retinopathy")
    assert " ".join(cut) in shown.text and f"{len(cut)} pieces, {len(cut) / 2:.2f}" in shown.text
    with pytest.raises(ValueError, match="no vocabulary was given"):
        pieces.pieces_picture({}, "a")


def test_pieces_view_follows_its_controls(tokenizer) -> None:
    live = pieces.pieces_view({"course": tokenizer})
    assert picture_of(live).endswith(live.static.html)
    live.controls["example"].value = "law"
    assert "hold  harm" in plain(picture_of(live))
    live.controls["text"].value = "<b>array</b>"
    assert "<b>array" not in picture_of(live) and "array" in plain(picture_of(live))


def test_ways_stand_in_one_order_and_hold_every_run() -> None:
    found = read_result("11_medicine")
    assert set(results.ORDER) == set(found["runs"])
    for measure in ("in domain", "general", "chapters", "added words"):
        reached = results.ways(measure)
        assert tuple(reached) == results.ORDER
        assert reached["continued"] == [run[measure] for run in found["runs"]["continued"]]


def test_tables_say_what_the_files_hold() -> None:
    words, found = results.words_table().text, read_result("11_words")["domains"]
    for name, of in found.items():
        (row,) = (line for line in words.splitlines() if line.startswith(name))
        assert f"{of['fertility']['bert-base']:.2f}" in row and f"{of['words']:,}" in row
    switches = results.switches_table().text
    plain_runs = results.switch("added words")
    assert ", ".join(f"{x:.0%}" for x in plain_runs) in switches
    assert "own vocabulary, afresh" in results.decision_table().text
    for measure in ("score", "plain", "hedged"):
        rows = results.finance_rows(measure)
        assert len(rows) == 5 and rows["MiniLM"] == results.switch("finance, MiniLM", measure)


@pytest.mark.parametrize(
    "chart",
    [results.hidden_words_chart, results.tasks_chart, results.law_chart, results.forgetting_chart],
)
def test_charts_are_drawn(chart) -> None:
    assert len(chart().data) > 1
