"""`16_tasks`: the course's two checkpoints fine-tuned on lecture 03's tasks in documentation.

Both were pre-trained on the same text for as many FLOPs, and cut it into the same pieces. Tested on
held-out modules, and on packages that neither ever read (`packages`: on paragraphs never read). The
rate is the best of three for each checkpoint, on validation texts taken from those to learn from,
seed 0."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from statistics import fmean
from time import process_time
from typing import Any

from course_lib.checkpoints import load_pretrained
from course_lib.teaching.documentation_tasks import (
    TASKS,
    DocumentationTask,
    as_sequences,
    documentation_task,
    without_encoder,
)
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import kept
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import Task, finetune, task_score

CHECKPOINTS = ("course-bert", "course-modernbert")
TRAIN, VALIDATION, TEST = 2_000, 400, 400  # texts, at most
SEEDS, PRECISION = range(3), "bfloat16"
RATES = (1e-4, 3e-4, 1e-3)


@dataclass(frozen=True)
class Recipe:
    """Fine-tuning a checkpoint, at the best of RATES or at the one given."""

    checkpoint: str = "course-bert"
    steps: int = 320
    batch_size: int = 16
    learning_rate: float = 0.0  # 0: the best of RATES


RECIPES = {name: Recipe(name) for name in CHECKPOINTS}


def texts(task: str) -> DocumentationTask[Any]:
    """The texts of a task, built from what is installed."""
    return documentation_task(task, TRAIN, TEST, TEST, VALIDATION)


@lru_cache
def read(task: str, split: str) -> Task:
    """A split in the pieces of both checkpoints: train, validation, test, or outside."""
    tokenizer: Any = load_pretrained(CHECKPOINTS[0]).tokenizer
    return as_sequences(task, getattr(texts(task), split), tokenizer)


def scores(recipe: Recipe, task: str, seed: int) -> dict[str, float]:
    """A checkpoint fine-tuned on a task: F1 of code words or accuracy, by split. Read from the
    cache if it was done before."""
    start = load_pretrained(recipe.checkpoint)

    def run() -> dict[str, float]:
        began = process_time()
        model = finetune(
            start.encoder, read(task, "train"), steps=recipe.steps, batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate, seed=seed, precision=PRECISION,
            plain_head=True,
        )  # fmt: skip
        by_split = {s: task_score(model, read(task, s)) for s in ("validation", "test", "outside")}
        return {**by_split, "cpu_seconds": round(process_time() - began, 1)}

    about = {"weights": start.sha256, "texts": texts(task).hash, "precision": PRECISION}
    settings = {"task": task, "seed": seed, **asdict(recipe), **about}
    return kept(f"16-{recipe.checkpoint}-{task}-{seed}", settings, MicroWorld.load(), run)


@lru_cache
def rates_tried(recipe: Recipe) -> dict[float, float]:
    """The mean over the tasks on validation texts, seed 0, by rate."""
    tried = {rate: replace(recipe, learning_rate=rate) for rate in RATES}
    return {
        rate: fmean(scores(one, task, 0)["validation"] for task in TASKS)
        for rate, one in tried.items()
    }


def one_run(recipe: Recipe, seed: int) -> dict[str, Any]:
    """A checkpoint on all four tasks at its rate."""
    tried = rates_tried(recipe)
    rate = max(tried, key=lambda one: tried[one])
    by_task = {task: scores(replace(recipe, learning_rate=rate), task, seed) for task in TASKS}
    mean = fmean(of["test"] for of in by_task.values())
    return {"seed": seed, "rate": rate, "tasks": by_task, "mean": mean}


EXPERIMENTS = (
    Experiment(
        "16_tasks", RECIPES, SEEDS, run=lambda recipe, _, seed: one_run(recipe, seed),
        precision=PRECISION,
        more={
            "weights": lambda _: {name: load_pretrained(name).sha256 for name in CHECKPOINTS},
            "rates": lambda _: {
                name: {str(r): v for r, v in rates_tried(one).items()}
                for name, one in RECIPES.items()
            },
            "texts": lambda _: {
                task: {"hash": texts(task).hash, "versions": texts(task).versions}
                for task in TASKS
            },
            "without_encoder": lambda _: {
                task: {
                    split: without_encoder(task, texts(task).train, getattr(texts(task), split))
                    for split in ("test", "outside")
                }
                for task in TASKS
            },
        },
    ),
)  # fmt: skip
