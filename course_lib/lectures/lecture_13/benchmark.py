"""`13_benchmark`: every member of the family on the nine twins of GLUE, one recipe for all.

What `pretraining_runs` trained is fine-tuned on each twin; the learning rate is the better of two
on validation texts, chosen for each member. Controls: random initialisation, and plain models as
large as three of the smaller members. FastBERT is BERT with exits, fine-tuned
in its own way. Averages are the leaderboard's; intervals resample the test texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from statistics import fmean
from time import process_time
from typing import Any

import numpy as np
import torch

from course_lib.encoder import Encoder
from course_lib.kernels.early_exit import Exited
from course_lib.teaching.averages import PAIRS, glue_average
from course_lib.teaching.results import compared_runs, kept
from course_lib.text.glue import GLUE, glue_twin
from course_lib.text.tasks import LabelledSequences, ScoredSequences
from course_lib.text.world import MicroWorld
from course_lib.train.exits import fastbert_on, train_backbone, train_students, unlabelled_batches
from course_lib.train.finetuning import (
    finetune,
    labelled_batches,
    predicted_classes,
    predicted_values,
    text_inputs,
)
from course_lib.train.flops import text_flops
from course_lib.train.glue import glue_score, task_mean

from .intervals import drawn, interval, resampled
from .members import trainee
from .pretraining_runs import (
    BERT,
    CONTROLS,
    MEMBERS,
    PRECISION,
    RECIPES,
    encoder_of,
    pretrained,
    pretraining_run,
    replay,
)  # fmt: skip

SEEDS, DRAWS = range(2), 1_000
RANDOM, FAST = "random initialisation", "FastBERT"
RATES = (5e-4, 1e-3)
CHOSEN_ON = ("CoLA", "QQP")  # whose validation texts choose a member's rate, seed 0
MISMATCHED = "MNLI, mismatched"
SENTIMENT = "SST-2"  # the task of the worked example, text by text
TOKENS = 32  # of the text whose FLOPs are counted
SPEED = 0.4  # of FastBERT's row


@dataclass(frozen=True)
class Tuning:
    """Fine-tuning from one start. start: a name of RECIPES, RANDOM, or FAST: BERT with exits."""

    start: str = "BERT"
    steps: int = 500
    batch_size: int = 16
    speed: float = 1.0


TUNINGS = {
    **{name: Tuning(name) for name in (*MEMBERS, *CONTROLS, RANDOM)},
    FAST: Tuning(FAST, speed=SPEED),
}


def start_of(recipe: Tuning, seed: int) -> Encoder:
    """The encoder that is fine-tuned."""
    if recipe.start == RANDOM:
        return encoder_of(trainee(BERT, seed).kept)
    name = "BERT" if recipe.start == FAST else recipe.start
    return encoder_of(pretrained(RECIPES[name], seed))


@lru_cache
def twin(name: str, split: str) -> LabelledSequences | ScoredSequences:
    """A split of a twin, made once."""
    return glue_twin(name, split)


@cache
def task_run(recipe: Tuning, name: str, rate: float, seed: int) -> dict[str, Any]:
    """One start, one twin: what the fine-tuned model says of every validation and test text. Read
    from the cache if it was done before."""

    def run() -> dict[str, Any]:
        began, encoder = process_time(), start_of(recipe, seed)
        tasks = {s: fitting(twin(name, s), encoder) for s in ("train", *splits_of(name))}
        train = tasks.pop("train")
        settings: dict[str, Any] = {
            "steps": recipe.steps, "learning_rate": rate, "seed": seed, "precision": PRECISION,
        }  # fmt: skip
        if recipe.start == FAST and isinstance(train, LabelledSequences):
            return _with_exits(recipe, encoder, train, tasks, settings)
        model = finetune(encoder, train, batch_size=recipe.batch_size, **settings)
        said = {split: _said(model, task) for split, task in tasks.items()}
        return {"said": said, "cpu_seconds": round(process_time() - began, 1)}

    settings = {"task": GLUE[name].sizes, "rate": rate, "seed": seed}
    settings |= asdict(recipe) | {"flops": BERT.flops}
    return kept(f"13-{recipe.start}-{name}-{seed}", settings, MicroWorld.load(), run)


def fitting(task: Any, encoder: Encoder) -> Any:
    """The task as the encoder reads it: for one without segments all ids are 0."""
    if encoder.config.type_vocab_size > 1:
        return task
    sequences = task.sequences
    none = torch.zeros_like(sequences.token_type_ids)
    return replace(task, sequences=replace(sequences, token_type_ids=none))


def splits_of(name: str) -> tuple[str, ...]:
    """Of a twin, which are answered."""
    return ("validation", *tests_of(name).values())


def tests_of(name: str) -> dict[str, str]:
    """Its test sets, by the name of their row among the scores: MNLI has two."""
    return {name: "test", **({MISMATCHED: "test_mismatched"} if name == "MNLI" else {})}


def _said(model: Any, task: LabelledSequences | ScoredSequences) -> list[Any]:
    if isinstance(task, ScoredSequences):
        return [round(value, 3) for value in predicted_values(model, task)]
    return list(predicted_classes(model, task))


def _with_exits(
    recipe: Tuning,
    encoder: Encoder,
    train: LabelledSequences,
    tasks: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """FastBERT: backbone and teacher on labels, then the students on the same texts without."""
    began = process_time()
    model = fastbert_on(encoder, train.names, settings["seed"], exit_size=32)
    train_backbone(model, labelled_batches(train, recipe.batch_size, settings["seed"]), **settings)
    texts = unlabelled_batches(train.sequences, recipe.batch_size, settings["seed"])
    train_students(model, texts, **{**settings, "steps": recipe.steps // 2})
    model.eval()
    said, layers = {}, []
    for split, task in tasks.items():
        inputs: Any = text_inputs(task)
        found: Exited = model.answer(**inputs, speed=recipe.speed)
        said[split] = [train.names[n] for n in found.logits.argmax(-1)]
        layers += found.layers_used.tolist() if split != "validation" else []
    return {"said": said, "layers": fmean(layers), "cpu_seconds": round(process_time() - began, 1)}


@lru_cache
def true_labels(name: str, split: str) -> list[Any]:
    """What is right: names of classes, or numbers."""
    task = twin(name, split)
    if isinstance(task, ScoredSequences):
        return task.values.tolist()
    return [task.names[n] for n in task.labels]


@lru_cache
def rate_of(recipe: Tuning) -> float:
    """The rate of RATES that is better on validation texts."""
    tried = rates_tried(recipe)
    return max(RATES, key=lambda rate: tried[str(rate)])


@lru_cache
def rates_tried(recipe: Tuning) -> dict[str, float]:
    """What each of RATES reaches on the validation texts of CHOSEN_ON, seed 0."""
    return {
        str(rate): fmean(
            task_mean(
                glue_score(
                    name,
                    task_run(recipe, name, rate, 0)["said"]["validation"],
                    true_labels(name, "validation"),
                )
            )
            for name in CHOSEN_ON
        )
        for rate in RATES
    }


def one_run(recipe: Tuning, seed: int) -> dict[str, Any]:
    """A start on all nine twins: its scores, their average, and what it took."""
    rate, scores, seconds, layers = rate_of(recipe), {}, 0.0, []
    for name in GLUE:
        found = task_run(recipe, name, rate, seed)
        for row, split in tests_of(name).items():
            scores[row] = scored(name, found["said"][split], true_labels(name, split))
        seconds += found["cpu_seconds"]
        layers += [found["layers"]] if "layers" in found else []
    about = {} if recipe.start in (RANDOM, FAST) else pretraining_run(RECIPES[recipe.start], seed)
    return {
        "seed": seed,
        "rate": rate,
        "scores": scores,
        "average": average(scores),
        "sentiment": right_on(recipe, SENTIMENT, rate, seed),
        "tuning_seconds": round(seconds, 1),
        **({"layers": fmean(layers)} if layers else {}),
        **{f"pretraining_{k}" if k == "cpu_seconds" else k: v
           for k, v in about.items() if k != "seed"},
    }  # fmt: skip


def right_on(recipe: Tuning, name: str, rate: float, seed: int) -> str:
    """Of every test text of a task 1 where the answer is right, else 0, in one string."""
    said = task_run(recipe, name, rate, seed)["said"]["test"]
    return "".join(str(int(a == b)) for a, b in zip(said, true_labels(name, "test"), strict=True))


def scored(name: str, said: Sequence[Any], true: Sequence[Any]) -> dict[str, float]:
    """`glue_score`; the correlation of answers that are all alike is undefined, and counts 0."""
    return _defined(glue_score(name, said, true))


def _defined(scores: Mapping[str, float]) -> dict[str, float]:
    return {metric: 0.0 if score != score else score for metric, score in scores.items()}


def row_of(scores: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Scores by task as a row that `glue_average` takes: a number, or two in the order of PAIRS."""
    row: dict[str, Any] = {}
    for name in GLUE:
        numbers = tuple(scores[name].values())
        if name == "MNLI":
            numbers += tuple(scores[MISMATCHED].values())
        row[name] = numbers if name in PAIRS else numbers[0]
    return row


def average(scores: Mapping[str, Mapping[str, float]], recipe: str = "leaderboard") -> float:
    """One number of all nine, by a recipe of AVERAGES."""
    return glue_average(row_of(scores), recipe)


# ---------------------------------------------------------------- how sure, and what else there is


def resampled_averages(
    recipe: Tuning, seed: int, sets: Mapping[str, np.ndarray]
) -> Iterator[float]:
    """The average on each of DRAWS resampled test sets; sets: which texts, by row of the scores."""
    draws: dict[str, list[dict[str, float]]] = {}
    for name in GLUE:
        said = task_run(recipe, name, rate_of(recipe), seed)["said"]
        for row, split in tests_of(name).items():
            score = partial(scored, name)
            draws[row] = resampled(score, said[split], true_labels(name, split), sets[row])
    return (average({row: of[n] for row, of in draws.items()}) for n in range(DRAWS))


def intervals(recipes: Mapping[str, Tuning], seeds: Sequence[int]) -> dict[str, Any]:
    """Of each start's average, mean over seeds, and of its difference from BERT's: where 95% of
    DRAWS resampled test sets lie. The same texts are drawn for all starts."""
    tests = [(row, name, split) for name in GLUE for row, split in tests_of(name).items()]
    sets = {
        row: drawn(len(twin(name, split)), DRAWS, seed=n)
        for n, (row, name, split) in enumerate(tests)
    }

    def averages(recipe: Tuning) -> list[float]:
        of_seeds = (resampled_averages(recipe, seed, sets) for seed in seeds)
        return [fmean(values) for values in zip(*of_seeds, strict=True)]

    found = {name: averages(recipe) for name, recipe in recipes.items()}
    return {
        name: {
            "average": interval(values),
            "beside BERT": interval([a - b for a, b in zip(values, found["BERT"], strict=True)]),
        }
        for name, values in found.items()
    }  # fmt: skip


def without_learning() -> dict[str, dict[str, dict[str, float]]]:
    """What the oracle and the baselines reach, twin by twin; 0 where a correlation is undefined."""
    from course_lib.teaching.glue import rows

    return {name: {who: _defined(scores) for who, scores in rows(name).items()} for name in GLUE}


def build() -> dict[str, Any]:
    """What data/results/13_benchmark.json holds."""
    found = compared_runs(
        TUNINGS, SEEDS, MicroWorld.load(), one_run, precision=PRECISION, extends="13_benchmark",
        replay=replay, without_learning=without_learning,
    )  # fmt: skip
    rates = {name: rates_tried(recipe) for name, recipe in TUNINGS.items()}
    flops = {name: text_flops(start_of(recipe, 0), TOKENS) for name, recipe in TUNINGS.items()}
    found["pretraining"] = {name: asdict(recipe) for name, recipe in RECIPES.items()}
    return {**found, "text_flops": flops, "rates": rates, "intervals": intervals(TUNINGS, SEEDS)}


RESULTS = {"13_benchmark": build}
