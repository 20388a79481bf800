"""The stored benchmark as pictures: who reaches what, how sure, and at what size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from statistics import fmean, stdev
from typing import Any

import numpy as np
import torch
from scipy.stats import binomtest

from course_lib.teaching import ablation_chart, heat_chart, tradeoff_chart
from course_lib.teaching.averages import AVERAGES
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import signed
from course_lib.teaching.page import Html, Live, check_one_of
from course_lib.teaching.playgrounds import choice, playground
from course_lib.teaching.results import stored
from course_lib.teaching.style import BLUE, FAINT, GREY, VERMILION
from course_lib.teaching.svg import Scale, dot, line, picture, words
from course_lib.teaching.verdicts import by_rule
from course_lib.text.glue import GLUE
from course_lib.train.calibration import bootstrap_interval
from course_lib.train.glue import task_mean

from ..benchmark import FAST, RANDOM, SENTIMENT, average
from ..exercises import pareto
from ..pretraining_runs import CONTROLS, EQUAL, MEMBERS
from .written import written_table

FILE = "13_benchmark"
SHOWN = {"all": None, "the family": (*MEMBERS, FAST), "plain models": (*CONTROLS, RANDOM)}
SORTED = ("average", "name", "parameters", *GLUE)
STRIP = 270  # pixels of the strip of dots
COLUMNS = (4, 170, 500, 550, 620, 640)  # where a row's cells stand


def runs_of(name: str) -> list[Mapping[str, Any]]:
    """The runs of a start, one a seed."""
    runs: list[Mapping[str, Any]] = stored(FILE)["runs"][name]
    return runs


def values_of(name: str, by: str = "average") -> list[float]:
    """The leaderboard's average of a start, or one number of a task, one a seed."""
    if by in GLUE:
        return [task_mean(run["scores"][by]) for run in runs_of(name)]
    return [run["average"] for run in runs_of(name)]


def verdict(name: str, other: str = "BERT", by: str = "average") -> str:
    """Better, worse or not settled: a start beside another."""
    return by_rule(values_of(name, by), values_of(other, by))


def parameters(name: str) -> int:
    """Weights of the encoder; what was not pre-trained by itself is as large as BERT."""
    return int(runs_of(name if "parameters" in runs_of(name)[0] else "BERT")[0]["parameters"])


def in_order(names: Sequence[str], by: str = "average") -> list[str]:
    """The best first; by name and by size ascending."""
    if by == "name":
        return sorted(names, key=str.lower)
    if by == "parameters":
        return sorted(names, key=parameters)
    return sorted(names, key=lambda name: -fmean(values_of(name, by)))


def benchmark_view() -> Live:
    """All starts, to sort and to filter. Controls: sorted by, shown."""
    controls = {
        "by": choice("sorted by", "average", SORTED),
        "shown": choice("shown", "all", SHOWN),
    }
    return playground(benchmark_picture, controls)


def benchmark_picture(by: str = "average", shown: str = "all") -> Html:
    """A row a start: a dot a seed, a line for the mean, a grey bar for the interval of the average.

    by: one of SORTED; shown: one of SHOWN. Raises ValueError for others."""
    check_one_of(SORTED, by=by)
    check_one_of(SHOWN, shown=shown)
    of = by if by in GLUE else "average"
    every = list(stored(FILE)["runs"])
    names = in_order([name for name in every if name in (SHOWN[shown] or every)], by)
    numbers = [value for name in names for value in values_of(name, of)]
    across = Scale(min(numbers) - 0.02, max(numbers) + 0.02, COLUMNS[1], COLUMNS[1] + STRIP)
    parts = _cells(("", of if of in GLUE else "average of nine", "mean", "± sd", "weights", ""), 18)
    for n, name in enumerate(names):
        parts += _row(name, of, across, 44 + 24 * n)
    best = in_order(names, of)[0]
    sentence = (
        f"Highest: {best}, {fmean(values_of(best, of)):.1%}. Without training: a bag of words "
        f"{baseline('words', of):.1%}, the majority class {baseline('nothing', of):.1%}; "
        f"the oracle {baseline('oracle', of):.0%}."
    )
    lines = [f"{name}: {in_words(name, of)}" for name in names]
    return picture(
        "benchmark", 760, 58 + 24 * len(names), parts, sentence, card_width=800,
        label="; ".join(lines), text="\n".join([*lines, sentence]),
    )  # fmt: skip


def in_words(name: str, of: str = "average") -> str:
    """A start's mean and spread, its size, and the rule's word for it beside BERT."""
    values = values_of(name, of)
    beside = "" if name == "BERT" else f", beside BERT {verdict(name, by=of)}"
    return f"{fmean(values):.1%} ± {100 * stdev(values):.1f}, {parameters(name):,} weights{beside}"


def baseline(who: str, of: str = "average") -> float:
    """What "words", "nothing" (the majority class) or the "oracle" has: on a task, or the mean of
    the tasks."""
    rows = stored(FILE)["without_learning"]
    return fmean(task_mean(rows[task][who]) for task in ([of] if of in GLUE else GLUE))


def _row(name: str, of: str, x: Scale, y: float) -> list[str]:
    values, line_y = values_of(name, of), y - 4
    beside = "" if name == "BERT" else verdict(name, by=of)
    parts = _cells((name, "", f"{fmean(values):.1%}", f"{100 * stdev(values):.1f}",
                    f"{parameters(name) / 1e3:,.0f}k", beside), y)  # fmt: skip
    parts.append(line(x.start, line_y, x.end, line_y, ink=FAINT))
    if of not in GLUE:
        low, high = (x(end) for end in stored(FILE)["intervals"][name]["average"])
        parts.append(line(low, line_y, high, line_y, ink=GREY, wide=6, opacity=0.4))
    parts += [dot(x(value), line_y, 3.5, BLUE) for value in values]
    mean = x(fmean(values))
    return [*parts, line(mean, line_y - 8, mean, line_y + 8, ink=VERMILION, wide=2.5)]


def _cells(texts: Sequence[str], y: float) -> list[str]:
    ends = ("start", "start", "end", "end", "end", "start")
    return [
        words(x, y, escape(text), 13, end)
        for text, x, end in zip(texts, COLUMNS, ends, strict=True)
    ]


def rates_table() -> Html:
    """Each start's learning rates, what pre-training at half and at twice its rate loses, and its
    collapsed runs."""
    head = ("start", "pre-training", "loss at half, at it, at twice", "fine-tuning", "collapsed")
    rows = []
    for name in in_order(list(stored(FILE)["runs"])):
        tried = stored(FILE)["pretraining_rates"].get(name)
        best, losses = "–", ["–"]
        if tried:
            rates = sorted(tried, key=float)
            at = rates.index(min(rates, key=lambda rate: _loss(tried[rate])))
            best, losses = rates[at], [_or_collapsed(tried[rates[n]]) for n in (at - 1, at, at + 1)]
        of_tasks = sorted(rate for run in runs_of(name) for rate in run["rates"].values())
        rows.append((
            name, f"{float(best):g}" if tried else best, ", ".join(losses),
            f"{of_tasks[0]:g} to {of_tasks[-1]:g}", str(collapsed(name)),
        ))  # fmt: skip
    return written_table(head, rows, "rates", 820)


def _loss(loss: float | None) -> float:
    return float("inf") if loss is None else loss


def _or_collapsed(loss: float | None) -> str:
    return "collapsed" if loss is None else f"{loss:.2f}"


def collapsed(name: str) -> int:
    """How many runs of a start collapsed at its best rate, in pre-training and in fine-tuning, and
    were repeated."""
    fallen = [run.get("pretraining_collapsed", []) for run in runs_of(name)]
    fallen += [rates for run in runs_of(name) for rates in run["collapsed"].values()]
    return sum(map(len, fallen))


def equal_size_chart() -> Any:
    """Members of another size than BERT, each beside a plain model with as many parameters."""
    return ablation_chart(
        {
            "the member": {member: values_of(member) for member in EQUAL},
            "plain, as large": {member: values_of(plain) for member, plain in EQUAL.items()},
        },
        title="Equal parameters, equal FLOPs", x_title="average of nine", percent=True,
    )  # fmt: skip


def tasks_chart() -> Any:
    """Every member on every twin, mean over the seeds."""
    names = in_order([name for name in stored(FILE)["runs"] if name not in CONTROLS])
    means = [[fmean(values_of(name, task)) for task in GLUE] for name in names]
    chart = heat_chart(means, names, list(GLUE), title="Nine twins, one number each", percent=True)
    chart.update_traces(texttemplate="%{z:.0%}")  # more cells than a heat map has numbers in
    return chart.update_layout(height=450, width=760)


def recipes_here() -> list[str]:
    """The averages that can be made of the twins; of two that add up alike the first."""
    made = {
        str(about.tasks): name
        for name, about in reversed(AVERAGES.items()) if set(about.tasks) <= set(GLUE)
    }  # fmt: skip
    return list(made.values())[::-1]


def under(recipe: str) -> dict[str, float]:
    """The family's averages by a recipe, mean over the seeds, the best first."""
    scores = {
        name: fmean(average(run["scores"], recipe) for run in runs_of(name))
        for name in (*MEMBERS, FAST)
    }
    return dict(sorted(scores.items(), key=lambda row: -row[1]))


def place(name: str, recipe: str) -> int:
    """A member's place in the family by a recipe, from 1."""
    return list(under(recipe)).index(name) + 1


def averages_table() -> Html:
    """The family's scores under each recipe, and the place that each gives."""
    recipes = recipes_here()
    rows = [
        (name, *(f"{under(r)[name]:.1%}, no. {place(name, r)}" for r in recipes))
        for name in under(recipes[0])
    ]
    return written_table(("", *recipes), rows, "averages", 820)


# ---------------------------------------------------------------- what is compared


def glue_table(theirs: bool = True) -> Html:
    """The nine tasks: what a twin asks, its metrics, and how many texts train either. theirs: with
    what GLUE asks."""
    head = ("task", *["GLUE asks"] * theirs, "its twin asks", "metric", "texts, GLUE", "twin")
    tasks = printed("glue")["tasks"]
    rows = [
        (
            name,
            *[tasks[name]["asks"]] * theirs,
            task.asks,
            " and ".join(task.metrics),
            f"{task.real['released'][0]:,}",
            f"{task.sizes[0]:,}",
        )
        for name, task in GLUE.items()
    ]
    return written_table(head, rows, "glue-tasks", 820)


def flops_table() -> Html:
    """Every start that was pre-trained: its weights, and how many steps equal FLOPs are."""
    head = ("start", "weights", "steps", "FLOPs of a step", "masked words")
    rows = []
    for name in (*MEMBERS, *CONTROLS):
        run = runs_of(name)[0]
        named = [r["masked_accuracy"] for r in runs_of(name)]
        rows.append((
            name, f"{run['parameters']:,}", f"{run['steps']:,}",
            f"{run['flops'] / run['steps'] / 1e9:.1f} billion",
            "–" if None in named else f"{fmean(named):.1%}",
        ))  # fmt: skip
    return written_table(head, rows, "flops", 820)


# ---------------------------------------------------------------- two models, one task


def sentiment_table() -> Html:
    """BERT against each of the family on sentiment, text by text."""
    head = ("", "accuracy", "BERT's lead", "95% of test sets", "differ", "p")
    bert = [_right(run) for run in runs_of("BERT")]
    rows = []
    for name in in_order([n for n in (*MEMBERS, FAST, RANDOM) if n != "BERT"], SENTIMENT):
        other_runs = [_right(run) for run in runs_of(name)]
        gained = np.mean([a - b for a, b in zip(bert, other_runs, strict=True)], axis=0)  # (texts,)
        low, high = bootstrap_interval(gained)
        one, other, chance = mcnemar(name)
        rows.append((
            name, f"{np.mean(other_runs):.1%}", signed(100 * float(gained.mean())),
            f"{signed(100 * low)} to {signed(100 * high)}", f"{one} and {other}", f"{chance:.2g}",
        ))  # fmt: skip
    return written_table(
        head, [("BERT", f"{np.mean(bert):.1%}", "", "", "", ""), *rows], "two", 820
    )


def mcnemar(name: str) -> tuple[int, int, float]:
    """With seed 0: texts that only BERT gets right, texts that only the other does, and p."""
    gained = _right(runs_of("BERT")[0]) - _right(runs_of(name)[0])
    one, other = (int((gained == sign).sum()) for sign in (1, -1))
    return one, other, binomtest(one, one + other).pvalue if one + other else 1.0


def _right(run: Mapping[str, Any]) -> Any:
    """(texts,) 1 where a run's answer on sentiment is right, else 0."""
    return np.array(list(run["sentiment"]), dtype=int)


# ---------------------------------------------------------------- what is paid


def cost(name: str) -> float:
    """FLOPs of one text, millions; of texts that leave early the mean layer's share of them."""
    layers = [run["layers"] / 4 for run in runs_of(name) if "layers" in run]
    whole: float = stored(FILE)["text_flops"][name] / 1e6
    return whole * (fmean(layers) if layers else 1.0)


def front() -> list[str]:
    """Those that no other beats in both, average and FLOPs of a text; the cheapest first."""
    names = sorted((*MEMBERS, FAST, *CONTROLS), key=cost)
    scores, costs = (
        torch.tensor([of(name) for name in names], dtype=torch.float64)
        for of in (lambda name: fmean(values_of(name)), cost)
    )
    return [name for name, kept in zip(names, pareto.front(scores, costs), strict=True) if kept]


def front_chart() -> Any:
    """Average against the FLOPs of one text: the family, less ALBERT, and the plain models."""
    names = [n for n in (*MEMBERS, FAST, *CONTROLS) if n != "ALBERT"]
    points = [{"name": n, "x": cost(n), "y": fmean(values_of(n))} for n in names]
    return tradeoff_chart(
        points, x="millions of FLOPs, one text of 32 tokens", y="average of nine", percent=True,
        title="What the average costs", log_x=True, height=500,
    )  # fmt: skip


def points_ahead() -> str:
    """How far the best of the others in the family is ahead of BERT, in words."""
    best = in_order([name for name in (*MEMBERS, FAST) if name != "BERT"])[0]
    ahead = 100 * (fmean(values_of(best)) - fmean(values_of("BERT")))
    return f"{signed(ahead)} ({best}, {verdict(best)} by the rule)"
