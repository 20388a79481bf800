"""The views of lecture 11: what they draw is what the vocabularies cut and the files say."""

from __future__ import annotations

import pytest
from view_parts import picture_of, plain

from course_lib import load_pretrained
from course_lib.lectures.lecture_11.views import pieces, results
from course_lib.teaching.numbers import signed
from course_lib.teaching.results import read_result
from course_lib.teaching.verdicts import by_rule, in_points
from course_lib.text.wordpiece import WordPiece


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return load_pretrained("course-bert").tokenizer


def test_pieces_are_the_vocabularys(tokenizer) -> None:
    picture = pieces.pieces_picture({"course": tokenizer}, "diabetic retinopathy")
    cut = tokenizer.tokenize("diabetic retinopathy")
    assert " ".join(cut) in picture.text
    assert f"{len(cut)} pieces, {len(cut) / 2:.2f}" in picture.text


def test_punctuation_is_in_the_picture_and_not_counted(tokenizer) -> None:
    assert (
        "c: 2 pieces, 1.00 per word: array , list"
        in pieces.pieces_picture({"c": tokenizer}, "array, list").text
    )
    assert "0 pieces, 0.00" in pieces.pieces_picture({"c": tokenizer}, ",").text


def test_pieces_view_follows_its_controls(tokenizer) -> None:
    live = pieces.pieces_view({"course": tokenizer})
    assert picture_of(live).endswith(live.static.html)
    live.controls["example"].value = "law"
    assert "hold  harm" in plain(picture_of(live))
    live.controls["text"].value = "<b>array</b>"
    assert "<b>array" not in picture_of(live) and "array" in plain(picture_of(live))


def test_ways_stand_in_one_order_and_hold_every_run() -> None:
    stored = read_result("11_medicine")
    assert set(results.ORDER) == set(stored["runs"])
    for measure in ("in domain", "general", "chapters", "added words"):
        reached = results.ways(measure)
        assert tuple(reached) == results.ORDER
        assert reached["continued"] == [run[measure] for run in stored["runs"]["continued"]]


def test_tables_say_what_the_files_hold() -> None:
    words_table, domains = results.words_table().text, read_result("11_words")["domains"]
    for name, of in domains.items():
        (row,) = (line for line in words_table.splitlines() if line.startswith(name))
        assert f"{of['fertility']['bert-base']:.2f}" in row and f"{of['words']:,}" in row
    rates = results.rates_table().text
    for name in read_result("11_labels")["runs"]:
        assert sum(line.startswith(name) for line in rates.splitlines()) >= 1
    switches = results.switches_table().text
    plain_runs = results.switch("added words")
    assert ", ".join(f"{x:.0%}" for x in plain_runs) in switches
    assert "not settled" in switches and "42%" in switches  # of weights; general words kept
    ways_table = results.ways_table().text
    for runs in read_result("11_medicine")["runs"].values():
        assert f"{runs[0]['vocabulary']:,}  {runs[0]['steps']:,}" in ways_table
    for measure in ("score", "plain", "hedged"):  # counting words, and four starts
        rows = results.finance_rows(measure)
        assert len(rows) == 5 and rows["MiniLM"] == results.switch("finance, MiniLM", measure)


def test_differences_are_the_means_and_the_rules_word() -> None:
    rows = results.differences_table().text.splitlines()[1:]
    assert len(rows) == len(results.COMPARED)
    runs = read_result("11_medicine")["runs"]
    (row,) = (line for line in rows if line.startswith("continued − as it is"))
    for measure in ("in domain", "general", "chapters", "added words"):
        gained = [
            a[measure] - b[measure]
            for a, b in zip(runs["continued"], runs["as it is"], strict=True)
        ]
        assert signed(100 * sum(gained) / len(gained)) in row
    assert row.count("better") == 2 and "not settled" in row and "worse" in row


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        ((0.5, 0.6, 0.55), (0.3, 0.4, 0.35), "better"),
        ((0.3, 0.4, 0.35), (0.5, 0.6, 0.55), "worse"),
        ((0.5, 0.6, 0.34), (0.3, 0.4, 0.35), "not settled"),  # not in every seed
        ((0.31, 0.51, 0.71), (0.3, 0.5, 0.7), "not settled"),  # less than the seeds differ
        ((0.4, 0.5, 0.6), (0.3, 0.3, 0.3), "better"),
        ((0.35, 0.5, 0.65), (0.4, 0.4, 0.4), "not settled"),  # the larger deviation counts
    ],
)
def test_the_rule_asks_for_every_seed_and_more_than_their_deviation(one, other, word) -> None:
    assert by_rule(one, other) == word
    assert in_points(one, other).endswith(word)


def test_the_rule_wants_the_same_seeds() -> None:
    with pytest.raises(ValueError, match="expected one a seed, as many in both"):
        by_rule([0.1, 0.2], [0.1])
    with pytest.raises(ValueError, match="at least two"):
        by_rule([0.1], [0.2])


@pytest.mark.parametrize(
    "chart",
    [results.hidden_words_chart, results.tasks_chart, results.law_chart, results.forgetting_chart],
)
def test_charts_are_drawn(chart) -> None:
    assert len(chart().data) > 1


def test_ways_of_one_family_look_alike_and_a_dashed_line_needs_no_encoder() -> None:
    figure = results.tasks_chart()
    colour = {t.name.split(",")[0]: t.marker.color for t in figure.data if t.mode == "markers"}
    assert colour["rows added"] == colour["rows replaced"] != colour["continued"]
    assert len(set(colour.values())) == len(set(results.FAMILIES.values()))
    lines = [trace for trace in figure.data if trace.line.dash == "dash"]
    counted = read_result("11_medicine")["without_encoder"]["chapters"]
    assert lines[0].x[0] == pytest.approx(sum(counted) / len(counted), rel=1e-3)
    assert [line.xaxis for line in lines] == ["x", "x2"]


def test_the_forgetting_chart_has_both_kinds_of_words() -> None:
    traces = {trace.name: trace for trace in results.forgetting_chart().data}
    run = read_result("11_medicine")["runs"]["continued"]
    for name, field in (("words of diagnoses", "medicine"), ("general words", "general")):
        last = sum(one["curve"][-1][field] for one in run) / len(run)
        assert traces[name].y[-1] == pytest.approx(last, rel=1e-3)
