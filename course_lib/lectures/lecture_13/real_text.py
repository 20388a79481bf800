"""`13_documentation`: the members once more, on text that people wrote: the documentation of what
is installed here, and three tasks made of its docstrings (see teaching/documentation_tasks.py).

As in `13_benchmark`: equal FLOPs, and for each member and task the best of its rates. Beside them,
on the same labels: what never looks, a bag of words, and a checkpoint that has read far more."""

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

from .benchmark import SPEED
from .members import DOCUMENTATION, PIECES, SHORT, prepare
from .pretraining_runs import MEMBERS, pretraining_rates, recipe_of, settled_run
from .tuning_runs import FAST, RANDOM, Tuning, best_of, settled, tuned

SEEDS = range(3)
TASKS = (SECTION, KIND, PACKAGE)
TRAIN, VALIDATION, TEST = 2_000, 400, 600  # texts
ANSWERED = ("validation", "test")
SPLITS = ("train", *ANSWERED)
PRETRAINED = (*MEMBERS, "plain, two layers")
# As many texts as in `13_benchmark`, in half as many steps.
TUNING = Tuning(steps=250, batch_size=32, text=DOCUMENTATION)
TUNINGS = {
    **{name: replace(TUNING, start=name) for name in (*PRETRAINED, RANDOM)},
    FAST: replace(TUNING, start=FAST, speed=SPEED),
    PIECES: replace(TUNING, start=PIECES),
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


@cache
def task_run(recipe: Tuning, name: str, rate: float, seed: int) -> dict[str, Any]:
    """What a start, fine-tuned on a task, says of every text of ANSWERED."""
    about = {"task": name, "texts": texts(name).hash, "read": prepare(DOCUMENTATION).hash}
    return tuned(recipe, name, rate, seed, partial(task, name), ANSWERED, about)


def right(outcome: dict[str, Any], name: str, split: str) -> str:
    """Of every text of a split 1 where a fine-tuned start is right, else 0, in one string."""
    pairs = zip(outcome["said"][split], items(name, split), strict=True)
    return "".join(str(int(prediction == item.label)) for prediction, item in pairs)


def accuracy(right: str) -> float:
    """The share of ones."""
    return right.count("1") / len(right)


@cache
def rates_tried(recipe: Tuning, name: str) -> tuple[dict[float, float], float]:
    """The accuracy on a task's validation texts, seed 0, by rate, and the best rate."""

    def score(rate: float) -> float:
        outcome = task_run(recipe, name, rate, 0)
        return -1.0 if "diverged" in outcome else accuracy(right(outcome, name, "validation"))

    return best_of(score)


def one_run(recipe: Tuning, seed: int) -> dict[str, Any]:
    """A start on all tasks: which texts it has right, its accuracy on each, and their mean."""
    runs = {
        name: settled(
            lambda rate, name=name: task_run(recipe, name, rate, seed),  # type: ignore[misc]
            rates_tried(recipe, name)[1],
        )
        for name in TASKS
    }
    texts_right = {name: right(outcome, name, "test") for name, (outcome, _, _) in runs.items()}
    scores = {name: accuracy(of) for name, of in texts_right.items()}
    about: dict[str, Any] = {}
    if recipe.start in PRETRAINED:
        about = settled_run(recipe_of(recipe.start, DOCUMENTATION), seed)
        renamed = {name: f"pretraining_{name}" for name in ("rate", "collapsed")}
        about = {renamed.get(key, key): value for key, value in about.items()}
    return {
        **about, "seed": seed, "rates": {name: rate for name, (_, rate, _) in runs.items()},
        "collapsed": {name: fallen for name, (_, _, fallen) in runs.items() if fallen},
        "right": texts_right, "scores": scores, "mean": fmean(scores.values()),
    }  # fmt: skip


def without_pretraining(sees: str) -> dict[str, float]:
    """Accuracy by task of a classifier with the same labels that sees "words", or "nothing"."""
    return {name: label_accuracy(items(name, "train"), items(name, "test"), sees) for name in TASKS}


DOCUMENTATION_TASKS = Experiment(
    "13_documentation", TUNINGS, SEEDS, run=lambda recipe, _, seed: one_run(recipe, seed),
    precision=None,
    more={
        "pretraining": lambda _: {
            name: asdict(recipe_of(name, DOCUMENTATION)) for name in PRETRAINED
        },
        "pretraining_rates": lambda _: pretraining_rates(
            {name: recipe_of(name, DOCUMENTATION) for name in PRETRAINED}
        ),
        "rates": lambda _: {
            start: {name: rates_tried(recipe, name)[0] for name in TASKS}
            for start, recipe in TUNINGS.items()
        },
        "bag_of_words": lambda _: without_pretraining("words"),
        "commonest": lambda _: without_pretraining("nothing"),
        "texts": lambda _: {
            name: {"hash": texts(name).hash, **{s: len(items(name, s)) for s in SPLITS}}
            for name in TASKS
        },
        "read": lambda _: {
            "hash": prepare(DOCUMENTATION).hash, "versions": texts(SECTION).versions
        },
    },
)  # fmt: skip
