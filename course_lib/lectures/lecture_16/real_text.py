"""`16_real_text`: the ladder on text that people wrote.

The documentation of what is installed here, in the shape of the course's checkpoints, 4 layers of
256. Sequences of 32 tokens: in short ones a neighbour is easier to find (lecture 03), so that the
plateau at the words' frequencies ends within minutes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from time import process_time
from typing import Any

import torch

from course_lib.family.modernbert import AS_BERT
from course_lib.files import data_path
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import kept
from course_lib.text.world import MicroWorld
from course_lib.train.flops import step_flops
from course_lib.train.loop import fit
from course_lib.train.metrics import evaluate
from course_lib.train.precision import choose_precision
from course_lib.train.pretrain import Pretraining, batches_of, set_up
from course_lib.train.pretrain import build as build_model
from course_lib.train.pretrain_recipe import PretrainRecipe, read_recipe

from .ladder import RUNGS, Curve

SEEDS, LOOKS = range(3), 24
WIDE = 688  # with a gate: as many weights as BERT's 1,024, within 1%


@dataclass(frozen=True)
class Recipe:
    """A rung on documentation. steps: as many FLOPs as BERT needs for so many."""

    rung: str = "BERT"
    steps: int = 1_200
    batch_size: int = 128
    length: int = 32
    warmup: float = 0.25  # of the steps


HURRIED = "BERT, 36 steps of warm-up"
RECIPES = {**{name: Recipe(name) for name in RUNGS}, HURRIED: Recipe(warmup=0.03)}


def recipe_of(recipe: Recipe, seed: int) -> PretrainRecipe:
    """The same as a recipe of the pre-training command: course-modernbert's, changed."""
    rung = RUNGS[recipe.rung]
    settings = AS_BERT | {"num_layers": 4, "hidden_size": 256, "num_heads": 4,
                          "intermediate_size": 1_024, "initializer_range": 0.05,
                          "global_base": 10_000.0} | dict(rung.changes)  # fmt: skip
    if settings["gated"]:
        settings["intermediate_size"] = WIDE
    whole = read_recipe(data_path("recipes/course_modernbert.toml"))
    return replace(
        whole,
        model=replace(whole.model, settings=settings),
        objective=replace(whole.objective, rate=rung.rate),
        text=replace(whole.text, length=recipe.length),
        training=replace(
            whole.training, steps=recipe.steps, batch_size=recipe.batch_size, short_steps=0,
            warmup=recipe.warmup, seed=seed,
        ),
    )  # fmt: skip


@lru_cache(maxsize=1)
def read() -> Pretraining:
    """The text, which is the same for all."""
    return set_up(recipe_of(Recipe(), 0))


def untrained(recipe: Recipe, seed: int) -> Pretraining:
    """A rung before its first step."""
    full = recipe_of(recipe, seed)
    torch.manual_seed(seed)
    model, objective = build_model(full, read().special)
    return replace(read(), recipe=full, model=model, objective=objective)


@lru_cache
def flops_a_step(recipe: Recipe) -> int:
    """FLOPs of a mean step, over three batches."""
    start = untrained(recipe, 0)
    return step_flops(start.model, start.objective, *map(batches_of(start), range(3)))


def one_run(recipe: Recipe, seed: int) -> dict[str, Any]:
    """A rung pre-trained: its held-out curve. Read from the cache if it was trained before."""

    def run() -> dict[str, Any]:
        steps = round(recipe.steps * flops_a_step(Recipe()) / flops_a_step(recipe))
        start = untrained(recipe, seed)
        training = start.recipe.training

        def look(model: Any) -> dict[str, float]:
            metrics = evaluate(model, start.heldout, start.special)
            return {"accuracy": metrics.masked_accuracy, "loss": metrics.mlm_loss}

        curve = Curve(steps // LOOKS, look)
        began = process_time()
        fit(
            start.model, start.objective, batches_of(start), steps=steps, seed=seed,
            learning_rate=training.learning_rate, warmup=training.warmup,
            weight_decay=training.weight_decay, betas=training.betas, callbacks=(curve,),
        )  # fmt: skip
        return {
            "seed": seed, "steps": steps, "flops_a_step": flops_a_step(recipe),
            "curve": curve.values, "accuracy": curve.values["accuracy"][-1],
            "cpu_seconds_a_step": round((process_time() - began - curve.seconds) / steps, 4),
        }  # fmt: skip

    about = {"precision": choose_precision(), "read": read().reading.about["hash"]}
    settings = {"seed": seed, **asdict(recipe), **about}
    return kept(f"16-real-{recipe.rung}-{seed}", settings, MicroWorld.load(), run)


EXPERIMENTS = (
    Experiment(
        "16_real_text",
        RECIPES,
        SEEDS,
        run=lambda recipe, _, seed: one_run(recipe, seed),
        precision=None,
        more={"read": lambda _: read().reading.about},
    ),
)
