"""Members on documentation begin as their recipes say; the stored file is that of today's recipes,
and its numbers hang together."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from course_lib.lectures.lecture_13 import pretraining_runs
from course_lib.lectures.lecture_13 import real_text as room
from course_lib.lectures.lecture_13.members import DOCUMENTATION, prepare
from course_lib.lectures.lecture_13.readme import readme_table
from course_lib.lectures.lecture_13.views import real_text as views
from course_lib.teaching.results import read_result

NAME = "13_documentation"


@pytest.mark.parametrize("name", pretraining_runs.RECIPES)
def test_on_documentation_only_the_optimizer_is_another(name: str) -> None:
    stories, written = (pretraining_runs.recipe_of(name, t) for t in ("stories", DOCUMENTATION))
    assert stories == pretraining_runs.RECIPES[name] and stories.optimizer == "adamw"
    assert written == replace(stories, text=DOCUMENTATION, optimizer="muon")
    assert pretraining_runs.path_of(stories, 0) != pretraining_runs.path_of(written, 0)


def test_an_unknown_text_is_refused() -> None:
    with pytest.raises(ValueError, match="text='poems' was given; expected stories or doc"):
        prepare("poems")


def test_it_was_made_with_these_recipes() -> None:
    stored = read_result(NAME)
    recipes = {n: pretraining_runs.recipe_of(n, DOCUMENTATION) for n in room.PRETRAINED}
    assert stored["pretraining"] == {name: asdict(recipe) for name, recipe in recipes.items()}
    assert stored["precision"] == "bfloat16"


def test_each_start_has_three_seeds_at_rates_of_its_own() -> None:
    stored = read_result(NAME)
    for name in room.PRETRAINED:
        tried = {float(rate): loss for rate, loss in stored["pretraining_rates"][name].items()}
        best = min(tried, key=lambda rate: tried[rate])
        assert min(tried) < best < max(tried), name  # no end of what was tried
        for run in stored["runs"][name]:
            assert run["pretraining_rate"] == best and not run["pretraining_collapsed"]


def test_what_learns_lies_between_its_zero_line_and_its_ceiling() -> None:
    for task, commonest in read_result(NAME)["commonest"].items():
        assert commonest < views.scores_of(views.BAG)[task]
        for name in ("BERT", "ModernBERT", "plain, two layers"):
            assert commonest < views.scores_of(name)[task]
            assert views.scores_of(name)["mean"] < views.scores_of(room.PIECES)["mean"]


def test_flops_are_equal_and_who_left_the_plateau() -> None:
    runs = read_result(NAME)["runs"]
    whole = runs["BERT"][0]["flops"]
    for name in room.PRETRAINED:
        for run in runs[name]:
            assert run["flops"] == pytest.approx(whole, rel=0.01)
    for name in ("BERT", "RoBERTa", "ModernBERT", "plain, two layers"):
        assert views.masked_accuracy(name) > 3 * 0.06  # who says the commonest piece has 6%


def test_scores_are_those_of_the_texts() -> None:
    stored = read_result(NAME)
    for runs in stored["runs"].values():
        for run in runs:
            for task, right in run["right"].items():
                assert len(right) == stored["texts"][task]["test"] and set(right) <= {"0", "1"}
                assert run["scores"][task] == pytest.approx(room.accuracy(right))
            mean = sum(run["scores"].values()) / len(run["scores"])
            assert run["mean"] == pytest.approx(mean)


def test_the_readme_shows_the_benchmark(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    section = text.split("<!-- benchmark -->")[1].split("<!-- /benchmark -->")[0]
    assert section.strip() == readme_table()
    assert all(f"{views.scores_of(n)['mean']:.1%}" in text for n in (views.BAG, room.PIECES))
    assert len(readme_table().splitlines()) == 2 + len(pretraining_runs.MEMBERS) + 3


def test_views_say_what_the_file_says() -> None:
    stored = read_result(NAME)
    mean = [run["mean"] for run in stored["runs"]["ModernBERT"]]
    ahead = sum(mean) / len(mean) - views.scores_of("BERT")["mean"]
    points, (low, high) = views.beside_bert("ModernBERT")
    assert points == pytest.approx(ahead) and low < points < high
    assert views.scores_of(views.BAG)["sections"] == stored["bag_of_words"]["sections"]
    order = [views.scores_of(name)["mean"] for name in views.starts()]
    assert order == sorted(order, reverse=True) and len(order) == len(stored["runs"]) + 2
    means = [row[-1] for row in views.documentation_chart().data[0].z]
    assert means == [views.scores_of(name)["mean"] for name in views.starts()]
    assert views.masked_accuracy(views.BAG) is None is views.masked_accuracy("ELECTRA")
