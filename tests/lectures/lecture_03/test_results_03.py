"""The result files and the shipped weights of lecture 03 are what today's recipes, texts and code
would make. A file that is not there is named, and its tests are skipped."""

from __future__ import annotations

import json
import math
import re
import statistics
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from course_lib.checkpoints import MissingCheckpoint, load_pretrained
from course_lib.files import data_root
from course_lib.lectures.lecture_03 import experiments as lecture_03
from course_lib.lectures.lecture_03.experiments import RATES, TASKS, TRIED
from course_lib.lectures.lecture_03.starts import COURSE, MINILM, STARTS
from course_lib.teaching import checkpoints
from course_lib.teaching.results import REPLAYED, read_result
from course_lib.text import english
from course_lib.text.world import MicroWorld
from course_lib.train import baselines
from course_lib.train.finetuning import head_on
from course_lib.train.pretrain_recipe import read_recipe

RECIPE = data_root() / "recipes" / "course_bert.toml"
ABOUT_TASKS = ("03_tasks", "03_curves", "03_features", "03_loss_line")


def result(name: str) -> dict[str, Any]:
    if not (data_root() / "results" / f"{name}.json").exists():
        pytest.skip(f"no {name}.json: python -m course_lib.teaching.results 03 makes it")
    return read_result(name)


def plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value))


def numbers(value: Any) -> list[float]:
    """Every number inside."""
    parts = value.values() if isinstance(value, dict) else value
    return [value] if isinstance(value, float | int) else [x for p in parts for x in numbers(p)]


@pytest.fixture(scope="module")
def course():
    return load_pretrained("course-bert")


# ---------------------------------------------------------------- the checkpoint


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return result("03_checkpoint")


CLAIM = re.compile(r"(\d\d(?:\.\d)?)% of (?:the |its )?(?:hidden|held-out)(?: hidden)? tokens")


def test_no_text_claims_more_than_the_file_says(made, root: Path):
    reached = 100 * made["reached"]["heldout_accuracy"]
    sources = [root / "README.md", root / "data" / "README.md"]
    for lecture in ("00", "02", "03"):
        sources += (root / "notebooks" / "source").glob(f"{lecture}_*.py")
        sources += (root / "slides" / "source").glob(f"{lecture}_*.md")
    for path in sources:
        claims = [float(claim) for claim in CLAIM.findall(path.read_text(encoding="utf-8"))]
        assert all(claim <= reached + 0.5 for claim in claims), (path.name, claims)
    assert CLAIM.findall("finds 45% of hidden tokens, and 51.2% of the held-out tokens") == [
        "45", "51.2",
    ]  # fmt: skip


# ---------------------------------------------------------------- its model card

FOUND = {
    "recipe": plain(read_recipe(RECIPE).as_dict()),
    "text": {"source": "documentation", "words": 1_234_567, "hash": "a1b2", "heldout_hash": "c3d4",
             "versions": {"python": "3.12.1", "numpy": "2.2.0"}},
    "rows": 23_456, "parameters": 5_432_100, "precision": "bfloat16", "threads": 3,
    "versions": {"torch": "9.8.7", "python": "3.12.1"},
    "reached": {"heldout_accuracy": 0.4321, "heldout_loss": 2.3456},
    "before_storing": {"heldout_accuracy": 0.4334, "heldout_loss": 2.3401},
    "as_trained": 0.4876, "commonest": 0.0567, "first_rows": 0.44, "sha256": "e5f6",
    "tokens_per_second": 12_345.6, "curve": [],
}  # fmt: skip


def test_the_card_says_what_was_found():
    card = checkpoints.model_card(FOUND)
    for figure in (
        "4 layers", "256 wide", "4 heads", "5,432,100 weights", "8,192 pieces", "128 tokens",
        "1,234,567 words", "23,456 sequences", "python 3.12.1, numpy 2.2.0", "`a1b2`", "`c3d4`",
        "15% of the tokens", "0.9 and 0.98", "initializer_range 0.05", "bfloat16, threads: 3",
        "torch 9.8.7: 12,346 tokens a second", "2,000 held-out sequences", "| 43.2% | 2.346 |",
        "| 43.3% | 2.340 |", "| 48.8% | |", "| 5.7% | |", "in\nbfloat16)", "`e5f6`", "CC BY 4.0",
    ):  # fmt: skip
        assert figure in card, figure
    training = FOUND["recipe"]["training"]
    read = training["steps"] * training["batch_size"] * 128
    assert f"{training['steps']:,} steps of" in card and f"{read / 1e6:.1f} million" in card
    assert f"about {read / 12_345.6 / 3600:.1f} hours" in card
    headings = re.findall(r"^#+ (.*)$", card, re.MULTILINE)
    assert headings == ["course-bert", "Data", "Recipe", "What it reaches", "Limits", "Licence"]
    assert not re.search(r"[{}]|/tmp|/work", card)


def test_the_card_knows_no_figure_of_its_own():
    other = deepcopy(FOUND)
    other["reached"] = {"heldout_accuracy": 0.5, "heldout_loss": 2.0}
    other["recipe"]["training"].update(steps=77, batch_size=5, accumulate=2, short_steps=11)
    card = checkpoints.model_card(other)
    assert "| 50.0% | 2.000 |" in card and "43.2%" not in card
    assert "77 steps of\n10 sequences; the first 11 of them" in card and "0.1 million" in card


# ---------------------------------------------------------------- fine-tuning


@pytest.mark.parametrize("name", ABOUT_TASKS)
def test_results_belong_to_the_shipped_weights_and_say_with_what_they_were_made(name, course):
    results, world = result(name), MicroWorld.load()
    assert results["recipe"] == asdict(lecture_03.TuningRecipe("", ""))
    assert results["weights"][COURSE] == course.sha256
    try:
        assert results["weights"][MINILM] == lecture_03.weights_of(MINILM)
    except MissingCheckpoint:
        assert re.fullmatch("[0-9a-f]{64}", results["weights"][MINILM])
    assert results["world"] == {"version": world.version, "hash": world.hash}
    assert results["seeds"] == len(lecture_03.SEEDS) == 5 and results["threads"] >= 1
    assert {"torch", "python"} <= set(results["versions"]) and results["date"]


def test_the_rates_are_the_best_that_were_tried():
    tuning = result("03_tasks")["tuning"]
    assert list(tuning) == list(STARTS[:3])  # the fourth takes the third's
    for start, scores in tuning.items():
        assert list(scores) == [f"{rate:g}" for rate in TRIED]
        seeds_a_rate = len(lecture_03.TUNING_SEEDS[start])
        assert all(len(seeds) == seeds_a_rate for seeds in scores.values())
        assert all(0 <= score <= 1 for score in numbers(scores))
        means = {rate: statistics.mean(seeds) for rate, seeds in scores.items()}
        taken = means.pop(f"{RATES[start]:g}")
        better = [rate for rate, score in means.items() if score > taken]
        assert better == [f"{r:g}" for s, r in lecture_03.PASSED_OVER.items() if s == start], start


def test_the_baselines_are_those_of_today():
    recorded = result("03_tasks")["baselines"]
    today = baselines.english_baselines()
    assert [row[:3] for row in recorded] == [list(row[:3]) for row in today]
    for (*_, was), (*_, now) in zip(recorded, today, strict=True):
        assert was == pytest.approx(now, abs=0.02)  # library versions may fit otherwise


@pytest.mark.usefixtures("recorded_draws")
def test_the_first_losses_are_the_recorded_ones():
    recorded = result("03_tasks")["replay"]
    assert len(recorded) == REPLAYED
    assert lecture_03.replay() == pytest.approx(recorded, rel=2e-3)


def counted(value: Any) -> Any:
    """A file's runs with each list of them replaced by its length, each score by None."""
    if isinstance(value, dict):
        return {name: counted(part) for name, part in value.items()}
    return len(value) if isinstance(value, list) else None


def layers(depth: int) -> dict[str, None]:
    return dict.fromkeys([*(f"layer {n}" for n in range(depth + 1)), "last four"])


def expected(name: str) -> Any:
    """What today's settings would run, as `counted` says it."""
    here, three = lecture_03, STARTS[:3]
    if name == "03_tasks":
        return {
            task: {
                start: len(here.seeds_of(start, task))
                for start in STARTS
                if task not in here.LEFT_OUT.get(start, ())
            }
            for task in TASKS
        }
    if name == "03_curves":
        sizes = {task: {str(n): 5 for n in of} for task, of in here.SIZES.items()}
        return {task: dict.fromkeys(three, of) for task, of in sizes.items()}
    if name == "03_reviews":
        plain = {str(n): len(seeds) for n, seeds in here.PLAIN_SEEDS.items()}
        return {start: plain if start != MINILM else {"144": plain["144"]} for start in three}
    return {start: dict.fromkeys(("sentiment", "ner"), layers(depth))
            for start, depth in ((COURSE, 4), (MINILM, 6))}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("03_tasks", "runs"),
        ("03_curves", "curves"),
        ("03_reviews", "runs"),
        ("03_features", "layers"),
    ],
)
def test_all_was_run_that_today_s_settings_ask_for(name, part):
    results = result(name)
    assert counted(results[part]) == expected(name)
    assert results.get("rates", RATES) == RATES


def test_the_largest_sizes_are_all_training_texts():
    texts = {"nli": english.nli_pairs("train"), "ner": english.tagged_sentences("train")}
    assert {task: sizes[-1] for task, sizes in lecture_03.SIZES.items()} == {
        task: len(of) for task, of in texts.items()
    }
    assert max(lecture_03.PLAIN_SEEDS) == len(english.plain_reviews("train"))


def test_the_curves_end_where_the_tasks_say():
    """The largest number is all texts: the same runs as in 03_tasks."""
    curves, runs = result("03_curves")["curves"], result("03_tasks")["runs"]
    for task, sizes in lecture_03.SIZES.items():
        for start in STARTS[:3]:
            scores = [run["score"] for run in runs[task][start]]
            assert curves[task][start][str(sizes[-1])][: len(scores)] == scores


def test_the_levels_of_the_curves_are_those_of_today():
    levels = result("03_curves")["baselines"]
    pairs = [english.nli_pairs(split) for split in ("train", "test")]
    now = baselines.label_accuracy(*pairs, "words")
    assert levels["nli"]["bag of words"] == pytest.approx(now, abs=0.02)
    assert levels["nli"]["majority class"] == pytest.approx(1 / 3, abs=0.01)
    assert all(0 <= level <= 1 for level in numbers(levels))


def test_the_bag_of_words_of_plain_reviews_is_that_of_today(course):
    results = result("03_reviews")
    assert results["weights"][COURSE] == course.sha256
    for n, runs in results["bag"].items():
        for seed, run in zip(lecture_03.PLAIN_SEEDS[int(n)], runs, strict=True):
            assert run == pytest.approx(lecture_03.bag_of_words(int(n), seed), abs=0.02)


def test_the_line_begins_at_the_start_and_descends():
    results = result("03_loss_line")
    assert results["task"] == lecture_03.LINE_TASK and list(results["lines"]) == list(STARTS[:2])
    for line in results["lines"].values():
        assert line["alpha"] == lecture_03.ALPHAS and line["distance"] > 1
        assert len(line["train_loss"]) == len(line["test_score"]) == len(line["alpha"])
        assert all(0 <= score <= 1 for score in line["test_score"])
        began, ended = (line["train_loss"][line["alpha"].index(place)] for place in (0.0, 1.0))
        assert 0 < ended < 0.5 * began


@pytest.mark.usefixtures("recorded_draws")
def test_the_line_begins_with_today_s_fresh_heads():
    results = result("03_loss_line")
    train = lecture_03.english_task(results["task"], "train", COURSE)
    for start, line in results["lines"].items():
        began = line["train_loss"][line["alpha"].index(0.0)]
        model = head_on(lecture_03.encoder_of(start), train, 0)
        assert lecture_03.whole_loss(model, train) == pytest.approx(began, rel=1e-3)


def test_the_plateau_was_drawn_by_today_s_settings(made):
    results = result("03_plateau")
    steps = lecture_03.PLATEAU_STEPS
    assert list(results["runs"]) == list(lecture_03.PLATEAU)
    assert (results["steps"], results["tokens_a_step"]) == (steps, lecture_03.PLATEAU_TOKENS)
    assert results["text"] == made["text"]  # the checkpoint's own
    largest = math.log(made["recipe"]["text"]["vocabulary"])
    assert 4 < results["unigram"] < largest
    for run in results["runs"].values():
        assert len(run["loss"]) == steps // 20
        # At first every token is as likely as any other; at last no worse than frequencies tell.
        assert largest - 2 < run["loss"][0] < largest + 2
        assert run["loss"][-1] < results["unigram"] + 0.3
