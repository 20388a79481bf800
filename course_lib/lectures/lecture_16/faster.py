"""`16_faster`: how soon is a model as good as course-bert? course-modernbert's recipe with fewer
steps and with Muon (data/recipes/fast.toml), on the same text.

A run takes half an hour to an hour of one core; one that was stopped goes on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from statistics import median
from time import process_time
from typing import Any

from course_lib.files import cache_dir, data_root
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import kept
from course_lib.text.world import MicroWorld
from course_lib.train.loop import Report, fit
from course_lib.train.pretrain import batches_of, pretrain, set_up
from course_lib.train.pretrain_recipe import PretrainRecipe, read_recipe

FILE, STEPS = "16_faster", 5_000


@dataclass(frozen=True)
class Faster:
    """course-modernbert's recipe with another optimizer and so many steps."""

    optimizer: str = "muon"
    steps: int = STEPS


MUON = "ModernBERT, Muon"
RECIPES = {MUON: Faster()}  # not run yet: Faster("adamw"), and further seeds


def recipe_of(faster: Faster, seed: int) -> PretrainRecipe:
    """data/recipes/fast.toml, but for the optimizer, the steps and the seed."""
    read = read_recipe(data_root() / "recipes" / "fast.toml")
    return replace(read, training=replace(read.training, seed=seed, **asdict(faster)))


def one_run(faster: Faster, _: Any, seed: int) -> dict[str, Any]:
    """Held-out masked-token accuracy, at the end and on the way."""

    def run() -> dict[str, Any]:
        folder = cache_dir("pretraining", f"16-{faster.optimizer}-{faster.steps}-{seed}")
        done = pretrain(recipe_of(faster, seed), folder)
        curve = [
            {"step": line["step"], "accuracy": line["heldout_accuracy"]}
            for line in done["curve"]
            if "heldout_accuracy" in line
        ]
        about = {name: done[name] for name in ("parameters", "precision")}
        about["text"] = done["text"]["hash"]
        reached = done["reached"]
        return {"seed": seed, **about, "accuracy": reached["heldout_accuracy"],
                "loss": reached["heldout_loss"], "curve": curve}  # fmt: skip

    return kept("16-faster", {"seed": seed, **asdict(faster)}, MicroWorld.load(), run)


def step_seconds(rounds: int = 3, steps: int = 10) -> dict[str, float]:
    """Processor seconds of a step of 32 texts of 128 tokens, the medians: course-bert's and
    these recipes', in alternation. (The FLOPs of matrix products do not hold Muon's own.)"""
    checkpoint = read_recipe(data_root() / "recipes" / "course_bert.toml")
    recipes = {"course-bert": checkpoint} | {n: recipe_of(of, 0) for n, of in RECIPES.items()}
    seconds: dict[str, list[float]] = {name: [] for name in recipes}
    for name, recipe in list(recipes.items()) * rounds:
        training = replace(recipe.training, short_steps=0)
        ready = set_up(replace(recipe, training=training))
        at: list[float] = []

        def note(report: Report, at: list[float] = at) -> None:
            at.append(process_time())

        fit(
            ready.model, ready.objective, batches_of(ready), steps=steps, callbacks=[note],
            learning_rate=training.learning_rate, optimizer=training.optimizer,
            precision=training.precision,
        )  # fmt: skip
        seconds[name] += [after - before for before, after in pairwise(at[1:])]
    return {name: round(median(of), 4) for name, of in seconds.items()}


EXPERIMENTS = (
    Experiment(
        FILE, RECIPES, (0,), run=one_run, precision=None,
        more={"step_seconds": lambda _: step_seconds()},
    ),
)  # fmt: skip
