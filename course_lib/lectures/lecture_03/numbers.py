"""The measured numbers that sentences of lecture 03 repeat, each from its file of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean
from typing import Any

from course_lib.teaching.results import read_result

from .experiments import COURSE, STARTS, rise_beyond

CHECKPOINT, PLATEAU, TASKS, CURVES = (
    read_result(f"03_{name}") for name in ("checkpoint", "plateau", "tasks", "curves")
)
LINE = read_result("03_loss_line")["lines"]
TRAINING: dict[str, Any] = CHECKPOINT["recipe"]["training"]
TOKENS = TRAINING["steps"] * TRAINING["batch_size"] * CHECKPOINT["recipe"]["text"]["length"]
SHORT, *OTHERS = [run["loss"][-1] for run in PLATEAU["runs"].values()]


def _passes() -> str:
    rows = TRAINING["steps"] * TRAINING["batch_size"]
    return f"{rows / CHECKPOINT['rows']:.0f}"


def _left_plateau() -> str:
    """The first step written down whose loss is a nat below what frequencies explain."""
    losses = ((line["step"], line["total"]) for line in CHECKPOINT["curve"] if "total" in line)
    return f"{next(step for step, loss in losses if loss < PLATEAU['unigram'] - 1):,}"


def _score(task: str, start: str) -> float:
    return mean(run["score"] for run in TASKS["runs"][task][start])


def _rule(what: str, sees: str) -> float:
    """A baseline's score, of the row with these words."""
    return next(row[-1] for row in TASKS["baselines"] if (row[0], row[2]) == (what, sees))


def _world(start: str) -> float:
    sizes = CURVES["curves"]["world nli"][start]
    return mean(sizes[max(sizes, key=int)])


def _validation_apart() -> str:
    """By how much the rate that was passed over was ahead of the one taken, in points."""
    rates = TASKS["passed_over"]["rate"], TASKS["rates"][COURSE]
    ahead, taken = (mean(TASKS["tuning"][COURSE][f"{rate:g}"]) for rate in rates)
    return f"{100 * (ahead - taken):.1f}"


def _few() -> tuple[str, str]:
    """The fewest sentences with which the pre-trained one finds what the fresh one finds in all."""
    ours, fresh = (CURVES["curves"]["ner"][start] for start in STARTS[:2])
    goal = mean(list(fresh.values())[-1])
    return next((n, f"{mean(scores):.0%}") for n, scores in ours.items() if mean(scores) >= goal)


def _range(scores: Iterable[float]) -> str:
    """From the lowest to the highest, in percent."""
    low, *_, high = sorted(scores)
    return f"{low:.0%} to {high:.0%}"


NUMBERS: dict[str, Callable[[], str]] = {
    "million_tokens": lambda: f"{TOKENS / 1e6:.0f}",
    "passes": _passes,
    "minutes": lambda: f"{TOKENS / CHECKPOINT['tokens_per_second'] / 60:.0f}",
    "plateau_short": lambda: f"{SHORT:.1f}",
    "plateau_least": lambda: f"{min(OTHERS):.1f}",
    "plateau_most": lambda: f"{max(OTHERS):.1f}",
    "short_steps": lambda: f"{TRAINING['short_steps']:,}",
    "left_plateau": _left_plateau,
    "rate_ours": lambda: f"{TASKS['rates'][COURSE]:g}",
    "rate_others": lambda: "{:g}".format(*{TASKS["rates"][start] for start in STARTS[1:]}),
    "rate_passed_over": lambda: f"{TASKS['passed_over']['rate']:g}",
    "validation_apart": _validation_apart,
    "names_passed_over": lambda: f"{mean(TASKS['passed_over']['ner']):.0%}",
    "names_ours": lambda: f"{_score('ner', COURSE):.0%}",
    "few": lambda: _few()[0],
    "few_score": lambda: _few()[1],
    "names_fresh": lambda: f"{_score('ner', STARTS[1]):.0%}",
    "way_ours": lambda: f"{LINE[COURSE]['distance']:.0f}",
    "way_fresh": lambda: f"{LINE[STARTS[1]]['distance']:.0f}",
    "rise": lambda: f"{max(map(rise_beyond, LINE.values())):.3f}",
    "list_of_names": lambda: f"{_rule('tagged', 'list of names'):.0%}",
    "pairs_words": lambda: f"{_rule('nli', 'words'):.0%}",
    "pairs_range": lambda: _range(_score("nli", start) for start in STARTS),
    "pairs_range_curves": lambda: _range(_score("nli", start) for start in STARTS[:3]),
    "never_answer": lambda: f"{_rule('passages', 'no answer'):.0%}",
    "world_ours": lambda: f"{_world('pre-trained'):.0%}",
    "world_fresh": lambda: f"{_world('fresh'):.0%}",
}
