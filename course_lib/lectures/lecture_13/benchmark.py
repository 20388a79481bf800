"""`13_benchmark`: every member of the family on the nine twins of GLUE, one recipe for all.

What `pretraining_runs` trained is fine-tuned on each twin; each member has the learning rate that
is best on the task's validation texts, seed 0, and that has a worse one on either side. A run that
says one thing to all texts has collapsed: it is counted, and repeated at a lower rate. Controls:
random initialisation, and a plain model as large as each member of another size than BERT. FastBERT
is BERT with exits, fine-tuned in its own way. Averages are the leaderboard's; intervals resample
the test texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache, lru_cache, partial
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import rankdata

from course_lib.teaching.averages import PAIRS, glue_average
from course_lib.teaching.experiments import Experiment
from course_lib.text.glue import GLUE, glue_twin
from course_lib.text.tasks import LabelledSequences, ScoredSequences
from course_lib.train.exits import fastbert_on
from course_lib.train.flops import text_flops
from course_lib.train.glue import glue_score, task_mean

from .intervals import bootstrap_indices, interval, resampled
from .pretraining_runs import (
    CONTROLS,
    MEMBERS,
    RECIPES,
    at_best,
    pretraining_rates,
    pretraining_run,
    replay,
    settled_run,
)
from .pretraining_runs import rates_tried as pretraining_rates_tried
from .tuning_runs import EXIT_SIZE, FAST, RANDOM, Tuning, best_of, settled, tuned, untrained_start
from .tuning_runs import start_of as start_of  # page 13

SEEDS, DRAWS = range(3), 1_000
MISMATCHED = "MNLI, mismatched"
SENTIMENT = "SST-2"  # the task of the worked example, text by text
TOKENS = 32  # of the text whose FLOPs are counted
SPEED = 0.4  # of FastBERT's row
NUMBERS = [name for name, task in GLUE.items() if not task.names]  # whose answers are numbers


TUNINGS = {
    **{name: Tuning(name) for name in (*MEMBERS, *CONTROLS, RANDOM)},
    FAST: Tuning(FAST, speed=SPEED),
}


@lru_cache
def twin(name: str, split: str) -> LabelledSequences | ScoredSequences:
    """A split of a twin, made once."""
    return glue_twin(name, split)


@cache
def task_run(recipe: Tuning, name: str, rate: float, seed: int) -> dict[str, Any]:
    """What a start, fine-tuned on a twin, says of every validation and test text."""
    about = {"task": GLUE[name].sizes}
    return tuned(recipe, name, rate, seed, partial(twin, name), splits_of(name), about)


def splits_of(name: str) -> tuple[str, ...]:
    """Of a twin, which are answered."""
    return ("validation", *tests_of(name).values())


def tests_of(name: str) -> dict[str, str]:
    """Its test sets, by the name of their row among the scores: MNLI has two."""
    return {name: "test", **({MISMATCHED: "test_mismatched"} if name == "MNLI" else {})}


@lru_cache
def true_labels(name: str, split: str) -> list[Any]:
    """What is right: names of classes, or numbers."""
    task = twin(name, split)
    if isinstance(task, ScoredSequences):
        return task.values.tolist()
    return [task.names[n] for n in task.labels]


@cache
def rates_tried(recipe: Tuning, name: str) -> tuple[dict[float, float], float]:
    """What each rate tried reaches on a twin's validation texts, seed 0, and the best rate."""

    def score(rate: float) -> float:
        outcome = task_run(recipe, name, rate, 0)
        if "diverged" in outcome:
            return -1.0
        true = true_labels(name, "validation")
        return task_mean(scored(name, outcome["said"]["validation"], true))

    return best_of(score)


@cache
def settled_task(recipe: Tuning, name: str, seed: int) -> tuple[dict[str, Any], float, list[float]]:
    """A start on a twin: what it says, its rate, and the rates at which it collapsed."""
    return settled(lambda rate: task_run(recipe, name, rate, seed), rates_tried(recipe, name)[1])


def one_run(recipe: Tuning, seed: int) -> dict[str, Any]:
    """A start on all nine twins: its scores, their average, and what it took."""
    scores, seconds, layers = {}, 0.0, []
    rates: dict[str, float] = {}
    fallen: dict[str, list[float]] = {}
    for name in GLUE:
        outcome, rates[name], fallen[name] = settled_task(recipe, name, seed)
        for row, split in tests_of(name).items():
            scores[row] = scored(name, outcome["said"][split], true_labels(name, split))
        seconds += outcome["cpu_seconds"]
        layers += [outcome["layers"]] if "layers" in outcome else []
    about = {} if recipe.start in (RANDOM, FAST) else settled_run(RECIPES[recipe.start], seed)
    renamed = {name: f"pretraining_{name}" for name in ("cpu_seconds", "rate", "collapsed")}
    return {
        "seed": seed,
        "rates": rates,
        "collapsed": {name: of for name, of in fallen.items() if of},
        "scores": scores,
        "average": average(scores),
        "sentiment": right_on(recipe, SENTIMENT, seed),
        "tuning_seconds": round(seconds, 1),
        **({"layers": fmean(layers)} if layers else {}),
        **{renamed.get(k, k): v for k, v in about.items() if k != "seed"},
    }


def right_on(recipe: Tuning, name: str, seed: int) -> str:
    """Of every test text of a task 1 where the answer is right, else 0, in one string."""
    predictions = settled_task(recipe, name, seed)[0]["said"]["test"]
    return "".join(
        str(int(a == b)) for a, b in zip(predictions, true_labels(name, "test"), strict=True)
    )


def scored(name: str, predictions: Sequence[Any], true: Sequence[Any]) -> dict[str, float]:
    """`glue_score`; the correlation of answers that are all alike is undefined, and counts 0."""
    return _defined(glue_score(name, predictions, true))


def correlated(predictions: Sequence[float], true: Sequence[float]) -> dict[str, float]:
    """STS-B's metrics in floating point: `scored` adds up fractions, too slow for DRAWS sets."""
    ranked = rankdata(predictions), rankdata(true)
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = {"Pearson": (predictions, true), "Spearman": ranked}
        return _defined({name: float(np.corrcoef(*two)[0, 1]) for name, two in pairs.items()})


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
        predictions = settled_task(recipe, name, seed)[0]["said"]
        for row, split in tests_of(name).items():
            score = correlated if name in NUMBERS else partial(scored, name)
            draws[row] = resampled(score, predictions[split], true_labels(name, split), sets[row])
    return (average({row: of[n] for row, of in draws.items()}) for n in range(DRAWS))


def intervals(recipes: Mapping[str, Tuning], seeds: Sequence[int]) -> dict[str, Any]:
    """Of each start's average, mean over seeds, and of its difference from BERT's: where 95% of
    DRAWS resampled test sets lie. The same texts are drawn for all starts."""
    tests = [(row, name, split) for name in GLUE for row, split in tests_of(name).items()]
    sets = {
        row: bootstrap_indices(len(twin(name, split)), DRAWS, seed=n)
        for n, (row, name, split) in enumerate(tests)
    }

    def averages(recipe: Tuning) -> list[float]:
        of_seeds = (resampled_averages(recipe, seed, sets) for seed in seeds)
        return [fmean(values) for values in zip(*of_seeds, strict=True)]

    by_start = {name: averages(recipe) for name, recipe in recipes.items()}
    return {
        name: {
            "average": interval(values),
            "beside BERT": interval([a - b for a, b in zip(values, by_start["BERT"], strict=True)]),
        }
        for name, values in by_start.items()
    }  # fmt: skip


def without_learning() -> dict[str, dict[str, dict[str, float]]]:
    """What the oracle and the baselines reach, twin by twin; 0 where a correlation is undefined."""
    from course_lib.teaching.glue import rows

    return {name: {who: _defined(scores) for who, scores in rows(name).items()} for name in GLUE}


BENCHMARK = Experiment(
    "13_benchmark",
    TUNINGS,
    SEEDS,
    run=lambda recipe, _, seed: one_run(recipe, seed),
    losses=lambda _: replay(),
    more={"without_learning": lambda _: without_learning()},
)


def flops_of(recipe: Tuning) -> int:
    """FLOPs of a text of TOKENS; of one that takes all layers and exits, where there are exits."""
    encoder = untrained_start(recipe)
    if recipe.start == FAST:
        return fastbert_on(encoder, ("no", "yes"), 0, exit_size=EXIT_SIZE).flops(TOKENS)[-1]
    return text_flops(encoder, TOKENS)


def hours_of_rates() -> float:
    """CPU hours of the runs that only chose a rate."""
    runs = [
        pretraining_run(replace(recipe, learning_rate=rate), 0)
        for recipe in RECIPES.values()
        for rate in set(pretraining_rates_tried(recipe)) - {at_best(recipe).learning_rate}
    ]
    runs += [
        task_run(recipe, name, rate, 0)
        for recipe in TUNINGS.values()
        for name in GLUE
        for rate in set(rates_tried(recipe, name)[0]) - {rates_tried(recipe, name)[1]}
    ]
    return sum(run.get("cpu_seconds", 0) for run in runs) / 3_600


def build() -> dict[str, Any]:
    """What data/results/13_benchmark.json holds."""
    result = BENCHMARK.build()
    result["hours_of_rates"] = round(hours_of_rates(), 2)
    rates = {
        name: {task: rates_tried(recipe, task)[0] for task in GLUE}
        for name, recipe in TUNINGS.items()
    }
    flops = {name: flops_of(recipe) for name, recipe in TUNINGS.items()}
    result["pretraining"] = {name: asdict(recipe) for name, recipe in RECIPES.items()}
    result["pretraining_rates"] = pretraining_rates(RECIPES)
    return {**result, "text_flops": flops, "rates": rates, "intervals": intervals(TUNINGS, SEEDS)}


RESULTS = {"13_benchmark": build}
