"""The numbers that sentences of lecture 13 say: counted, or read from results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from course_lib.bench.measuring import where_measured
from course_lib.family.albert import albert
from course_lib.family.bert import bert
from course_lib.teaching.numbers import percent, signed
from course_lib.teaching.results import stored, tokens_read
from course_lib.teaching.verdicts import OPEN, by_rule, in_points

from . import benchmark
from .guide import guide
from .members import SHORT, STORIES
from .pretraining_runs import BERT, CONTROLS, EQUAL, MEMBERS
from .views import benchmark as shown
from .views import real_text as written

STARTS = {
    "random": benchmark.RANDOM, "fast": benchmark.FAST,
    **{name.lower(): name for name in MEMBERS},
    "narrow": "plain, 58 wide", "short": "plain, two layers", "as_modernbert": "plain, 110 wide",
    "as_deberta": "plain, 138 wide", "as_tinybert": "plain, two layers, 64 wide",
}  # fmt: skip


def mean_of(start: str, by: str = "average") -> str:
    """The average of nine, or one number of a task, the mean over the seeds, in percent."""
    return percent(shown.values_of(start, by))


def each_seed(start: str, by: str) -> str:
    """One number of a task, seed by seed."""
    return in_words([f"{value:.1%}" for value in shown.values_of(start, by)])


def beside_bert(start: str) -> str:
    """How far a start is from BERT, in points."""
    one, other = (fmean(shown.values_of(name)) for name in (start, "BERT"))
    return signed(100 * (one - other))


def members(word: str) -> str:
    """The family's members with that word of the rule beside BERT, the best first."""
    names = shown.in_order([name for name in (*MEMBERS, benchmark.FAST) if name != "BERT"])
    return in_words([f"{name} ({mean_of(name)})" for name in names if shown.verdict(name) == word])


def pairs(word: str) -> str:
    """Members with that word beside the plain model as large, and both averages."""
    return in_words(
        [
            f"{member} ({mean_of(member)} against {mean_of(plain)})"
            for member, plain in EQUAL.items()
            if shown.verdict(member, plain) == word
        ]
    )


def plain() -> str:
    """The plain models, the best first, with their averages."""
    return in_words(
        [
            f"{name.removeprefix('plain, ')} ({mean_of(name)})"
            for name in shown.in_order(list(CONTROLS))
        ]
    )


def in_words(names: Sequence[str]) -> str:
    """A, B and C."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def false_alarms(seeds: int) -> str:
    """How often the rule tells two models apart whose scores have one normal distribution."""
    pairs_drawn = np.random.default_rng(0).normal(size=(4_000, 2, seeds)).tolist()
    return percent([sum(by_rule(a, b) != OPEN for a, b in pairs_drawn) / len(pairs_drawn)])


def _losses(start: str) -> dict[float, float]:
    """The held-out loss by rate of pre-training, the runs that collapsed left out."""
    tried = stored(shown.FILE)["pretraining_rates"][start]
    return {float(rate): loss for rate, loss in tried.items() if loss is not None}


def rates_apart() -> str:
    """The largest of the members' best rates of pre-training over the smallest."""
    best = [min(losses, key=losses.__getitem__) for losses in map(_losses, (*MEMBERS, *CONTROLS))]
    return f"{max(best) / min(best):.0f}"


def loss_at_best(start: str, times: float = 1.0) -> str:
    """At so many times the best rate."""
    losses = _losses(start)
    return f"{losses[times * min(losses, key=losses.__getitem__)]:.2f}"


def rate_there(start: str) -> str:
    """Of its pre-training on documentation, the best of those tried."""
    return f"{stored(written.FILE)['runs'][start][0]['pretraining_rate']:g}"


def places_moved() -> str:
    """Whose place differs by the recipe of the average, and its places."""
    recipes, family = shown.recipes_here(), (*MEMBERS, benchmark.FAST)
    moved = {name: [shown.place(name, recipe) for recipe in recipes] for name in family}
    most = max(moved, key=lambda name: max(moved[name]) - min(moved[name]))
    return (
        f"{most} ranks from {min(moved[most])} to {max(moved[most])}, by the recipe of the average"
    )


def interval_of(start: str) -> str:
    """Where 95% of resampled test sets have the difference from BERT, in points."""
    low, high = stored(shown.FILE)["intervals"][start]["beside BERT"]
    return f"{signed(100 * low)} to {signed(100 * high)}"


def masked(start: str) -> str:
    """Held-out masked words that the pre-trained model finds, in percent."""
    return percent([run["masked_accuracy"] for run in shown.runs_of(start)])


def steps(start: str) -> str:
    """Of its pre-training."""
    return f"{shown.runs_of(start)[0]['steps']:,}"


def documented(start: str) -> str:
    """The mean of the documentation tasks, in percent with a decimal."""
    return percent([written.scores_of(start)["mean"]], 1)


def beside_bert_there(start: str) -> str:
    """On documentation: how far a start is from BERT, in points, with the rule's word."""
    return in_points(written.means(STARTS[start]), written.means("BERT"))


def read_more() -> str:
    """How many times as many tokens as BERT's pre-training here course-bert's has read."""
    here = stored(written.FILE)["pretraining"]["BERT"]
    own = here["flops"] * here["batch_size"] * SHORT
    return f"{tokens_read(stored('03_checkpoint')) / own:.0f}"


def pieces(start: str) -> str:
    """Held-out masked pieces of the documentation that a start finds, in percent with a decimal."""
    return percent([run["masked_accuracy"] for run in stored(written.FILE)["runs"][start]], 1)


def seeds_run() -> int:
    return len(stored(shown.FILE)["runs"]["BERT"])


def lowest() -> float:
    """The lowest mean of the family, ALBERT left out."""
    return min(fmean(shown.values_of(name)) for name in MEMBERS if name != "ALBERT")


def hours() -> str:
    """CPU hours of all runs: pre-training, fine-tuning, and those that chose a rate."""
    runs: Mapping[str, Any] = stored(shown.FILE)["runs"]
    seconds = sum(
        run["tuning_seconds"] + run.get("pretraining_cpu_seconds", 0)
        for of in runs.values() for run in of
    )  # fmt: skip
    return f"{seconds / 3_600 + stored(shown.FILE)['hours_of_rates']:.0f}"


def bag_of_words(task: str) -> str:
    """What a bag of words reaches on a twin, one number of its metrics, in percent."""
    scores = stored(shown.FILE)["without_learning"][task]["words"]
    return percent([fmean(scores.values())])


# Digits that are computed here, and that a sentence also types with another meaning.
TYPED = {
    "70%": "by hand: who calls every sentence good",
    "80%": "by hand: a model's accuracy",
    "82%": "by hand: the second model's accuracy",
    "30%": "in the quiz",
    "100": "a hundred texts, by hand and in the quiz",
    "110": "a width",
    "138": "a width",
}
