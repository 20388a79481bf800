"""`03_documentation` and `03_packages`: fine-tuning where labels have no end, in documentation.

The tasks of teaching/documentation_tasks.py, code words and sections, packages and kinds of
parameters, from the course's checkpoint and from its shape with random initialisation, against the
number of labelled texts; and baselines with the same texts. Every run is tested twice: on held-out
modules, and on packages that the checkpoint never read (`packages`: on paragraphs that it never
read)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import mean
from typing import Any

import torch

from course_lib.teaching.documentation_tasks import (
    CLASSES,
    CODE,
    KIND,
    LENGTH,
    PACKAGE,
    SECTION,
    SPLITS,
    DocumentationTask,
    as_sequences,
    documentation_task,
    without_encoder,
)
from course_lib.teaching.results import REPLAYED, kept, made_with
from course_lib.text.tasks import LabelledSequences
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import (
    LOSSES,
    head_on,
    labelled_batches,
    predicted_classes,
    task_score,
)
from course_lib.train.loop import fit

from .starts import COURSE, STARTS, encoder_of, pretrained, weights_of

MOST = (2_000, 400, 400)  # texts to learn from, of held-out modules, of packages never read
CURVE = {100: 120, 500: 220, 2_000: 320}  # texts of a learning curve -> steps
STEPS = {CODE: CURVE, SECTION: {2_000: 280}, PACKAGE: CURVE, KIND: {2_000: 320}}
SEEDS = {CODE: range(3), SECTION: range(2), PACKAGE: range(3), KIND: range(3)}
FILES = {"03_documentation": (CODE, SECTION), "03_packages": (PACKAGE, KIND)}
PRECISION = "float32"
BOTH = STARTS[:2]  # the course's checkpoint, and its shape with random initialisation


@dataclass(frozen=True)
class MarkupRecipe:
    """One run: `examples` texts drawn by the seed, or all where there are fewer."""

    task: str
    start: str
    examples: int
    steps: int
    batch_size: int = 16
    learning_rate: float = 3e-4
    length: int = LENGTH


def recipes(tasks: Sequence[str]) -> list[MarkupRecipe]:
    """Those of the tasks' learning curves."""
    return [
        MarkupRecipe(task, start, n, steps)
        for task in tasks for n, steps in STEPS[task].items() for start in BOTH
    ]  # fmt: skip


# ---------------------------------------------------------------- texts


def texts(task: str) -> DocumentationTask[Any]:
    """The texts of a task, built from what is installed."""
    return documentation_task(task, *MOST)


def some_texts(items: Sequence[Any], examples: int, seed: int) -> list[Any]:
    """`examples` of the items, drawn by the seed; a larger number begins with what a smaller one
    draws."""
    order = torch.randperm(len(items), generator=torch.Generator().manual_seed(seed)).tolist()
    return [items[n] for n in order[:examples]]


# ---------------------------------------------------------------- runs


def one_run(recipe: MarkupRecipe, seed: int) -> dict[str, Any]:
    """Fine-tune and score; finished runs are read from the cache."""
    about = {"weights": weights_of(COURSE), "precision": PRECISION}
    return _kept(recipe.task, {**asdict(recipe), **about}, seed, partial(_run, recipe, seed))


def one_baseline(task: str, examples: int, seed: int) -> dict[str, Any]:
    """The same for the task's baseline."""
    settings = {"task": task, "start": "baseline", "examples": examples}
    return _kept(task, settings, seed, partial(_baseline, task, examples, seed))


def _kept(task: str, settings: dict[str, Any], seed: int, run: Any) -> dict[str, Any]:
    settings = {**settings, "seed": seed, "texts": texts(task).hash}
    return kept(f"03-{task.replace(' ', '-')}", settings, MicroWorld.load(), run)


def _run(recipe: MarkupRecipe, seed: int) -> dict[str, Any]:
    tokenizer, corpus = pretrained(COURSE)[1], texts(recipe.task)
    train = some_texts(corpus.train, recipe.examples, seed)
    start = time.process_time()
    task = as_sequences(recipe.task, train, tokenizer, recipe.length)
    model = head_on(encoder_of(recipe.start, seed), task, seed)
    history = fit(
        model, LOSSES[type(task)], labelled_batches(task, recipe.batch_size, seed),
        steps=recipe.steps, learning_rate=recipe.learning_rate, seed=seed, precision=PRECISION,
    )  # fmt: skip
    losses = history.losses["total"]
    test, outside = (
        as_sequences(recipe.task, items, tokenizer, recipe.length)
        for items in (corpus.test, corpus.outside)
    )
    scores = {"score": task_score(model, test), "outside": task_score(model, outside)}
    more = {"confusion": confusion(model, test)} if isinstance(test, LabelledSequences) else {}
    every = [round(mean(losses[k : k + 20]), 4) for k in range(0, len(losses), 20)]
    return {**scores, **more, "loss": every, "seconds": round(time.process_time() - start, 1)}


def confusion(model: Any, test: LabelledSequences) -> list[list[int]]:
    """How many texts of each class (rows) were given each class (columns)."""
    counts = [[0] * len(test.names) for _ in test.names]
    predictions = predicted_classes(model, test)
    for true, name in zip(test.labels.tolist(), predictions, strict=True):
        counts[true][test.names.index(name)] += 1
    return counts


def _baseline(task: str, examples: int, seed: int) -> dict[str, Any]:
    corpus = texts(task)
    train = some_texts(corpus.train, examples, seed)
    return {"score": without_encoder(task, train, corpus.test),
            "outside": without_encoder(task, train, corpus.outside)}  # fmt: skip


def replay(recipe: MarkupRecipe) -> list[float]:
    """The first losses of a recipe, seed 0."""
    train = some_texts(texts(recipe.task).train, recipe.examples, 0)
    task = as_sequences(recipe.task, train, pretrained(COURSE)[1], recipe.length)
    history = fit(
        head_on(encoder_of(recipe.start), task, 0), LOSSES[type(task)],
        labelled_batches(task, recipe.batch_size), steps=REPLAYED,
        learning_rate=recipe.learning_rate, precision=PRECISION,
    )  # fmt: skip
    return history.losses["total"]


def build_documentation(tasks: Sequence[str]) -> dict[str, Any]:
    """What a file of FILES holds: task -> start -> number of texts -> a run a seed; no text of the
    packages."""
    runs: dict[str, Any] = {task: {start: {} for start in (*BOTH, "baseline")} for task in tasks}
    for recipe in recipes(tasks):
        runs[recipe.task][recipe.start][recipe.examples] = [
            one_run(recipe, seed) for seed in SEEDS[recipe.task]
        ]
    for task in tasks:
        for n in STEPS[task]:
            runs[task]["baseline"][n] = [one_baseline(task, n, seed) for seed in SEEDS[task]]
    seconds = sum(run["seconds"] for task in runs.values() for start in BOTH
                  for some in task[start].values() for run in some)  # fmt: skip
    first = recipes(tasks)[0]
    return {
        "recipe": asdict(replace(first, start="", examples=0, steps=0, task="")),
        "steps": {task: STEPS[task] for task in tasks},
        **{task: CLASSES[task] for task in tasks if task in CLASSES}, "runs": runs,
        "replay": replay(first), "texts": {task: about_texts(task) for task in tasks},
        "seconds": seconds, "seeds": {task: len(SEEDS[task]) for task in tasks},
        "weights": weights_of(COURSE), **made_with(MicroWorld.load(), PRECISION),
    }  # fmt: skip


def about_texts(task: str) -> dict[str, Any]:
    """How many texts of each split, of which versions, and their hash."""
    corpus = texts(task)
    counts = {split: len(getattr(corpus, split)) for split in SPLITS}
    return {**counts, "hash": corpus.hash, "versions": corpus.versions}
