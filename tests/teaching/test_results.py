"""Result files are what today's recipes, today's world and today's code would make: all experiments
of all lectures, alike. What is special of one lecture's results is tested beside that lecture."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import pytest
import torch

from course_lib.encoder import count_parameters
from course_lib.lectures.lecture_10.translations import translations
from course_lib.teaching.experiments import Experiment, Stories, Trainer
from course_lib.teaching.results import REPLAYED, outcome, read_result
from course_lib.teaching.rooms import lectures_with, room
from course_lib.text.domains import domain
from course_lib.text.world import MicroWorld
from course_lib.train.loop import Report

torch.set_num_threads(1)
EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for number in lectures_with("experiments")
    for one in getattr(room(number, "experiments"), "EXPERIMENTS", ())
}
LANGUAGES = {"09_chinese": "chinese"}  # of worlds that are not told in English
REPEATED = 3  # of the recorded first losses: a wrong model, batch, loss or rate shows in them
EXACT = ("02", "05", "06", "08_positions")  # their losses agree on all processors to rounding
READS: dict[str, Callable[[], str]] = {  # hashes of text that is installed, in some version
    **dict.fromkeys(
        ("10_retrieval", "10_retrieval_seven", "10_retrieval_tried"),
        lambda: translations().hash,
    ),
    "11_medicine": lambda: domain("medicine").hash,
}
REPLAYS = [name for name, one in EXPERIMENTS.items() if one.replayed is not None]
MEASURES = {  # what the seeds of a file must not differ in by much
    "05_sentence_tasks": "masked_accuracy", "05_sharing": "masked_accuracy",
    "06_distilbert": "masked_accuracy", "06_tinybert": "job_accuracy",
    "07_stepping_stones": "kinds", "07_variants": "kinds", "08_positions": "masked_accuracy",
    "09_masks": "masked_accuracy", "09_fusion": "country 100", "10_pairs": "retrieval centred",
    "10_retrieval": "retrieval with English centred", "10_order": "retrieval centred",
    "10_retrieval_seven": "retrieval with English centred", "10_transfer": "slots norlish",
    "11_switches": "score", "13_benchmark": "average", "16_ladder": "accuracy",
}  # fmt: skip
KNOWN = [  # what a file says that is known without a training
    *((name, "teacher") for name in ("06_distilbert", "06_past_plateau", "06_tinybert")),
    ("06_tinybert_attention", "teacher"), ("06_teacher", "weights"), ("07_electra", "weights"),
    ("08_sift", "encoder"), ("10_pairs", "languages"), ("10_spellings", "languages"),
    ("10_low_resource", "languages"), ("10_transfer", "languages"), ("10_order", "languages"),
]  # fmt: skip


def as_saved(value: Any) -> Any:
    """As JSON gives it back: tuples are lists there, and keys are strings."""
    return json.loads(json.dumps(value))


@cache
def shared(material: Any) -> Any:
    """The first of equal materials, with what was drawn of it already."""
    return material


@cache
def material_of(prepare: Callable[[], Any]) -> Any:
    """What an experiment reads, prepared once."""
    material = prepare()
    return shared(material) if isinstance(material, Stories) else material


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_file_was_made_by_these_recipes_in_this_world(name: str) -> None:
    one, stored = EXPERIMENTS[name], read_result(name)
    recipes = one.recipes_of(material_of(one.prepare) if callable(one.recipes) else None)
    assert stored["recipes"] == as_saved({key: asdict(recipe) for key, recipe in recipes.items()})
    assert list(stored["runs"]) == list(recipes)
    world = MicroWorld.load(language=LANGUAGES.get(name, "english"))
    assert stored["world"] == {"version": world.version, "hash": world.hash}
    assert stored["precision"] in ((one.precision,) if one.precision else ("float32", "bfloat16"))
    assert {"torch", "python"} <= set(stored["versions"]) and stored["date"]
    assert stored["threads"] >= 1
    for key, value in one.more.items():
        assert key in stored and (callable(value) or stored[key] == as_saved(value))
    recorded = one.replayed is not None or one.losses is not None
    assert len(stored.get("replay", ())) == (REPLAYED if recorded else 0)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_recipe_was_run_to_its_end_with_its_seeds(name: str) -> None:
    one, runs_of = EXPERIMENTS[name], read_result(name)["runs"]
    recipes, alike = read_result(name)["recipes"], 0
    for recipe, runs in runs_of.items():
        seeds = one.seeds[recipe] if isinstance(one.seeds, Mapping) else one.seeds
        assert [run["seed"] for run in runs] == list(seeds)
        if one.curve and one.curve[0] > 0:
            every, steps = one.curve[0], recipes[recipe]["steps"]
            looks = [at["step"] if isinstance(at, dict) else at[0] for at in runs[0]["curve"]]
            assert looks == list(range(every, steps + 1, every))
        reached = [
            {k: v for k, v in run.items() if k != "seed" and "seconds" not in k} for run in runs
        ]
        alike += len(runs) > 1 and any(reached.count(run) > 1 for run in reached)
    assert alike <= len(runs_of) / 2  # rules without draws, or all of them perfect


@pytest.mark.parametrize("name", MEASURES)
def test_the_seeds_are_not_far_from_one_another(name: str) -> None:
    for values in outcome(read_result(name), MEASURES[name]).values():
        assert len(set(values)) > 1 and statistics.stdev(values) < 0.2


@pytest.mark.parametrize(("name", "key"), KNOWN)
def test_a_file_names_the_weights_and_languages_of_today(name: str, key: str) -> None:
    assert as_saved(EXPERIMENTS[name].more[key](None)) == read_result(name)[key]


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name[:2] in ("05", "07", "08")])
def test_models_of_today_are_as_large_as_those_that_were_trained(name: str) -> None:
    one, stored = EXPERIMENTS[name], read_result(name)
    if not isinstance(one.train, Trainer) or callable(one.recipes):
        pytest.skip("no models of its own")
    for recipe, runs in stored["runs"].items():
        model, _ = one.train.draw(one.recipes[recipe], material_of(one.prepare), 0)
        today = count_parameters(one.train.kept(model))
        assert {run.get("parameters", today) for run in runs} == {today}


# ---------------------------------------------------------------- the first losses


class Enough(Exception):
    """As many losses as are compared."""


def first_losses(one: Experiment) -> list[float]:
    """The first REPEATED losses of an experiment's replay; the schedule is that of all REPLAYED."""
    losses: list[float] = []

    def note(report: Report) -> None:
        losses.append(report.losses["total"])
        if len(losses) == REPEATED:
            raise Enough

    assert one.train
    with pytest.raises(Enough):
        one.train(one.replayed, material_of(one.prepare), callbacks=[note], **one.of_replay)
    return losses


REPEATED_BEFORE: list[tuple[Any, list[float]]] = []


def repeated(one: Experiment) -> list[float]:
    """`first_losses`; experiments whose replays are the same training share one."""
    train, recipe = one.train, one.replayed
    if isinstance(train, Trainer):
        train = replace(train, precision="float32")
    if hasattr(recipe, "steps"):
        recipe = replace(recipe, steps=REPLAYED)
    same = (train, recipe, id(material_of(one.prepare)))
    for before, losses in REPEATED_BEFORE:
        if before == same:
            return losses
    REPEATED_BEFORE.append((same, first_losses(one)))
    return REPEATED_BEFORE[-1][1]


def needs_the_same_text(name: str) -> None:
    """A skip where a replay reads a package that is not installed, or in another version."""
    try:
        today = READS[name]() if name in READS else ""
    except LookupError as missing:
        pytest.skip(str(missing))
    if today and today != read_result(name)["text"]["hash"]:
        pytest.skip("other versions of the packages: other text")


@pytest.mark.usefixtures("recorded_draws")
@pytest.mark.filterwarnings("ignore:.*tried was")
@pytest.mark.parametrize("name", REPLAYS)
def test_the_first_steps_of_seed_0_give_the_recorded_losses(name: str) -> None:
    """Other processors round otherwise; where a generator draws words, the loss, times 50, may move
    by a word drawn otherwise."""
    needs_the_same_text(name)
    recorded = read_result(name)["replay"][:REPEATED]
    tolerance = 1e-4 if name.startswith(EXACT) else 5e-3
    assert repeated(EXPERIMENTS[name]) == pytest.approx(recorded, rel=tolerance)


OTHER_REPLAYS = ("06_tinybert_deeper", "11_medicine", "12_mobilebert", "13_benchmark",
                 "15_clip", "15_positions", "16_ladder")  # fmt: skip


@pytest.mark.usefixtures("recorded_draws")
@pytest.mark.parametrize("name", OTHER_REPLAYS)
def test_trainings_of_other_forms_begin_as_recorded(name: str) -> None:
    needs_the_same_text(name)
    losses = EXPERIMENTS[name].losses
    assert losses and losses(None) == pytest.approx(read_result(name)["replay"], rel=5e-3)


def test_results_of_one_training_record_one_replay() -> None:
    first = read_result("15_positions")["replay"]
    for name in ("15_pictures", "15_masked", "15_resolution"):
        assert read_result(name)["replay"] == pytest.approx(first, rel=1e-6)
