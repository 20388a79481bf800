"""`13_documentation`: the members once more, on text that people wrote: the documentation of what
is installed here, and three tasks made of its docstrings (see teaching/documentation_tasks.py).

As in `13_benchmark`: equal FLOPs, equal settings, the better of two rates. A bag of words has seen
the same labels."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache, lru_cache, partial
from statistics import fmean
from typing import Any

from course_lib.checkpoints import load_pretrained
from course_lib.teaching.documentation_tasks import (
    KIND,
    PACKAGE,
    SECTION,
    DocumentationTask,
    as_sequences,
    documentation_task,
)
from course_lib.teaching.experiments import Experiment
from course_lib.text.english import LabelledText
from course_lib.text.tasks import LabelledSequences
from course_lib.train.baselines import label_accuracy

from .benchmark import RATES, SPEED
from .members import DOCUMENTATION, PIECES, SHORT, prepare
from .pretraining_runs import MEMBERS, pretraining_run, recipe_of
from .tuning_runs import FAST, RANDOM, Tuning, tuned

SEEDS = range(3)
TASKS = (SECTION, KIND, PACKAGE)
TRAIN, VALIDATION, TEST = 2_000, 400, 600  # texts
ANSWERED = ("validation", "test")
SPLITS = ("train", *ANSWERED)
PRETRAINED = (*MEMBERS, "plain, two layers")
# As many texts as in `13_benchmark`, in half as many steps: a step costs more at this size.
TUNING = Tuning(steps=250, batch_size=32, text=DOCUMENTATION)
TUNINGS = {
    **{name: replace(TUNING, start=name) for name in (*PRETRAINED, RANDOM)},
    FAST: replace(TUNING, start=FAST, speed=SPEED),
}


def texts(name: str) -> DocumentationTask[LabelledText]:
    """The texts of a task, built from what is installed."""
    return documentation_task(name, TRAIN, TEST, 0, VALIDATION)


@lru_cache
def items(name: str, split: str) -> list[LabelledText]:
    """Of a split, those that are read whole."""
    every = getattr(texts(name), split)
    return [item for item in every if len(tokenizer().encode(item.text)) <= SHORT - 2]


@cache
def tokenizer() -> Any:
    """That of the pre-training, read once: with it come the weights, each time."""
    return load_pretrained(PIECES).tokenizer


@lru_cache
def task(name: str, split: str) -> LabelledSequences:
    """A split in the pieces of the pre-training."""
    return as_sequences(name, items(name, split), tokenizer(), SHORT)


def right_on(recipe: Tuning, name: str, rate: float, seed: int, split: str) -> str:
    """Of every text of one of ANSWERED 1 where a fine-tuned start is right, else 0, in one
    string."""
    about = {"task": name, "texts": texts(name).hash, "read": prepare(DOCUMENTATION).hash}
    outcome = tuned(recipe, name, rate, seed, partial(task, name), ANSWERED, about)
    pairs = zip(outcome["said"][split], items(name, split), strict=True)
    return "".join(str(int(prediction == item.label)) for prediction, item in pairs)


def accuracy(right: str) -> float:
    """The share of ones."""
    return right.count("1") / len(right)


@lru_cache
def rates_tried(recipe: Tuning) -> dict[float, float]:
    """The mean accuracy on validation texts, seed 0, by rate."""
    return {
        rate: fmean(accuracy(right_on(recipe, name, rate, 0, "validation")) for name in TASKS)
        for rate in RATES
    }


def one_run(recipe: Tuning, seed: int) -> dict[str, Any]:
    """A start on all tasks: which texts it has right, its accuracy on each, and their mean."""
    tried = rates_tried(recipe)
    rate = max(tried, key=lambda one: tried[one])
    right = {name: right_on(recipe, name, rate, seed, "test") for name in TASKS}
    scores = {name: accuracy(of) for name, of in right.items()}
    about: dict[str, Any] = {}
    if recipe.start not in (RANDOM, FAST):
        about = pretraining_run(recipe_of(recipe.start, DOCUMENTATION), seed)
    return {
        **about, "seed": seed, "rate": rate, "right": right, "scores": scores,
        "mean": fmean(scores.values()),
    }  # fmt: skip


def bag_of_words() -> dict[str, float]:
    """Accuracy of a bag of words with the same labels, by task."""
    return {
        name: label_accuracy(items(name, "train"), items(name, "test"), "words") for name in TASKS
    }


DOCUMENTATION_TASKS = Experiment(
    "13_documentation", TUNINGS, SEEDS, run=lambda recipe, _, seed: one_run(recipe, seed),
    precision=None,
    more={
        "pretraining": lambda _: {
            name: asdict(recipe_of(name, DOCUMENTATION)) for name in PRETRAINED
        },
        "bag_of_words": lambda _: bag_of_words(),
        "texts": lambda _: {
            name: {"hash": texts(name).hash, **{s: len(items(name, s)) for s in SPLITS}}
            for name in TASKS
        },
        "read": lambda _: {
            "hash": prepare(DOCUMENTATION).hash, "versions": texts(SECTION).versions
        },
    },
)  # fmt: skip
