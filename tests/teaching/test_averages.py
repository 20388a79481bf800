"""Averages: every printed one comes out of its printed row, and a wrong recipe does not give it."""

from __future__ import annotations

from statistics import mean

import pytest

from course_lib.teaching.averages import AVERAGES, HOWS, PAIRS, glue_average
from course_lib.teaching.claims import printed

ROWS = {name: row for name, row in printed("glue").items() if "scores" in row}
COMPLETE = [name for name, row in ROWS.items() if "printed" in row and "incomplete" not in row]
COLUMNS = ("SQuAD 1.1", "SQuAD 2.0", "MNLI", "SST-2", "RACE")


def albert_rows(table, path=()):
    """(where it stands, row) of every row of ALBERT's tables that ends with an average."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from albert_rows(value, (*path, name))
        elif isinstance(value, list) and len(value) == 6 and isinstance(value[0], list):
            yield "/".join((*path, name)), value


ALBERT = dict(albert_rows(printed("albert")))


@pytest.mark.parametrize("name", COMPLETE)
def test_a_printed_average_comes_out_of_its_row(name):
    row = ROWS[name]
    assert round(glue_average(row["scores"], row["recipe"]), 1) == row["printed"]


def test_there_are_printed_averages_of_three_recipes():
    assert {ROWS[name]["recipe"] for name in COMPLETE} == {"test-9", "leaderboard", "dev-9"}


@pytest.mark.parametrize("where", ALBERT)
def test_alberts_average_comes_out_of_its_row(where):
    """80.05 may be rounded either way, and is printed as 80.1."""
    *scores, average = ALBERT[where]
    result = glue_average(dict(zip(COLUMNS, scores, strict=True)), "ALBERT-5")
    assert abs(result - average) <= 0.05 + 1e-9
    first_numbers = mean(cell[0] if isinstance(cell, list) else cell for cell in scores)
    assert abs(first_numbers - average) > 0.05 or where.endswith("layers/1")


def test_alberts_tables_are_all_there():
    tables = {where.split("/")[0] for where in ALBERT}
    assert len(ALBERT) == 43
    assert tables == {
        *("overall", "embedding_size", "sharing", "sentence_loss", "equal_time", "extra_data"),
        *("dropout", "depth", "width", "xxlarge_depth"),
    }


@pytest.mark.parametrize(
    ("name", "recipe", "expected"),
    [
        ("bert_large_dev", "dev-8", 84.05),
        ("roberta_large_dev", "dev-8", 88.925),
        ("roberta_base_dev", "dev-8", 86.35),
        ("roberta_large_dev", "dev-9", 89.1889),
        ("distilbert_dev", "dev-8", 79.6),
        ("albert_dev", "dev-8", 89.9625),
    ],
)
def test_averages_that_are_not_printed_with_their_row(name, recipe, expected):
    assert glue_average(ROWS[name]["scores"], recipe) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("recipe", AVERAGES)
def test_a_recipe_by_hand(recipe):
    """Every task 50, its second number 60: the average counts how often a second one entered."""
    tasks = AVERAGES[recipe].tasks
    row = {task: (50.0, 60.0) if task in PAIRS else 50.0 for task in tasks}
    hows = list(tasks.values())
    numbers = len(hows) + hows.count("each")
    seconds = hows.count("each") + hows.count("second") + hows.count("mean") / 2
    assert glue_average(row, recipe) == pytest.approx(50 + 10 * seconds / numbers)


def test_how_many_numbers_each_recipe_averages():
    assert {name: len(recipe.tasks) for name, recipe in AVERAGES.items()} == {
        "test-9": 8, "leaderboard": 9, "ensembles": 9, "dev-9": 9, "dev-8": 8, "ALBERT-5": 5
    }  # fmt: skip
    for recipe in AVERAGES.values():
        assert set(recipe.tasks.values()) <= set(HOWS) and len(recipe.used_by) > 20


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_of_the_kind_that_its_recipe_averages(name):
    assert AVERAGES[ROWS[name]["recipe"]].split == ROWS[name]["split"]


@pytest.mark.parametrize("name", ["roberta_test", "albert_test"])
def test_an_ensembles_printed_average_does_not_come_out_of_one_number_a_task(name):
    """The papers print one number for QQP, MRPC and STS-B; the leaderboard averages two."""
    row = ROWS[name]
    with pytest.raises(ValueError, match=r"one number was given for (QQP|MNLI)"):
        glue_average(row["scores"], "ensembles")
    assert glue_average(row["scores"], "dev-9") > row["printed"] + 0.9  # the printed ones alone


def test_ensembles_are_added_up_as_the_leaderboard_does():
    row = ROWS["bert_large_leaderboard"]["scores"]
    assert glue_average(row, "ensembles") == glue_average(row, "leaderboard")
    assert AVERAGES["ensembles"].split != AVERAGES["leaderboard"].split


def test_tasks_beyond_the_recipe_are_passed_over():
    row = ROWS["bert_large_dev"]["scores"]
    assert glue_average({**row, "WNLI": 0.0}, "dev-8") == glue_average(row, "dev-8")


def test_the_recipe_matters():
    row = ROWS["bert_large_leaderboard"]["scores"]
    averages = {recipe: round(glue_average(row, recipe), 1) for recipe in ("test-9", "leaderboard")}
    assert averages == {"test-9": 82.1, "leaderboard": 80.5}


@pytest.mark.parametrize(
    ("row", "recipe", "message"),
    [
        ({}, "GLUE", "'GLUE' was given; expected one of test-9"),
        ({"CoLA": 1.0}, "dev-8", "without MNLI, MRPC, QNLI, QQP, RTE, SST-2, STS-B"),
        ({**ROWS["roberta_test"]["scores"]}, "leaderboard", "one number was given for QQP"),
        ({**ROWS["bert_large_dev"]["scores"], "RTE": (1.0, 2.0)}, "dev-8", "2 numbers .* for RTE"),
        ({**ROWS["bert_large_dev"]["scores"], "MNLI": (1, 2, 3)}, "dev-8", "matched and mismatch"),
    ],
    ids=["no such recipe", "tasks missing", "half a pair", "a pair too many", "three numbers"],
)
def test_what_cannot_be_averaged_is_refused(row, recipe, message):
    with pytest.raises(ValueError, match=message):
        glue_average(row, recipe)
