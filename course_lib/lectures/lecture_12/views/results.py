"""The stored runs as charts and tables: exits, strategies, and the ways to serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from course_lib.teaching import ablation_chart, curves_chart, tradeoff_chart
from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import outcome, stored

Run = Mapping[str, Any]
FAST = {"sections": "FastBERT", "pairs": "pairs: FastBERT"}
HALF = 0.6  # of the FLOPs at full depth: where trainings are compared
TRAININGS = {  # recipe -> as the chart calls it, in few letters
    "FastBERT": "paper's KL",
    "KL(teacher ‖ student)": "program's KL",
    "no dropout of the teacher": "no dropout",
    "exits on labels": "on labels",
    "joint": "joint",
}
STRATEGIES = {  # recipe -> as the chart calls it, in few letters
    "labels": "alone",
    "labels, LayerNorm and GELU": "alone, LN, GELU",
    "labels, the teacher's embeddings": "embeddings",
    "no transfer": "… and answers",
    "auxiliary": "auxiliary",
    "joint": "joint",
    "progressive": "progressive",
    "progressive, the slip": "… the bug",
    "progressive, LayerNorm and GELU": "… LN, GELU",
}


def runs_of(recipe: str, file: str = "12_fastbert") -> list[Run]:
    """A recipe's stored runs, one a seed."""
    runs: list[Run] = stored(file)["runs"][recipe]
    return runs


def over(
    cost: str, runs: Sequence[Run], rule: str, what: str, whole: float = 1.0
) -> list[list[tuple[float, float]]]:
    """For each run (cost, `what`) over the thresholds of a rule; cost, "flops" or "layers" of a
    text: the mean over the runs, as a fraction of `whole`, ascending, each once."""
    costs = [fmean(run[rule][k][cost] for run in runs) / whole for k in range(len(runs[0][rule]))]
    order = sorted(range(len(costs)), key=costs.__getitem__)
    kept = [k for n, k in enumerate(order) if not n or costs[k] - costs[order[n - 1]] > 1e-3]
    return [[(costs[k], run[rule][k][what]) for k in kept] for run in runs]


def exits_curves(task: str) -> dict[str, list[Any]]:
    """FastBERT over its speeds, and what it is held against: name -> a curve a seed."""
    runs = runs_of(FAST[task])
    whole = fmean(run["plain_flops"] for run in runs)
    prefix = "" if task == "sections" else f"{task}: "
    depths = [n for n in stored("12_fastbert")["runs"] if n.startswith(f"{prefix}fixed depth")]
    fixed = [
        [(runs_of(name)[seed]["plain_flops"] / whole, runs_of(name)[seed]["accuracy"])
         for name in sorted(depths)] + [(1.0, run["accuracy"])]
        for seed, run in enumerate(runs)
    ]  # fmt: skip
    return {
        "FastBERT": over("flops", runs, "by_entropy", "accuracy", whole),
        "by probability": over("flops", runs, "by_probability", "accuracy", whole),
        "at random": over("flops", runs, "by_entropy", "at_random", whole),
        "fixed depth": fixed,
    }


def exits_chart(task: str) -> Any:
    """Accuracy against FLOPs; of several seeds, in points above the same seed's full depth, as
    seeds differ by more than ways. task: "sections" or "pairs"."""
    curves, runs = exits_curves(task), runs_of(FAST[task])
    several = len(runs) > 1
    if several:
        curves = {
            name: [
                [(x, 100 * (y - run["accuracy"])) for x, y in curve]
                for curve, run in zip(of, runs, strict=True)
            ]
            for name, of in curves.items()
        }
    figure = curves_chart(
        curves, title="Accuracy against FLOPs, over the speed",
        x_title="FLOPs of a text, full depth with one classifier = 1",
        y_title="points above full depth" if several else "accuracy", percent=not several,
    )  # fmt: skip
    # Points above full depth are 0 at full depth: a name needs no number there.
    return figure.for_each_annotation(lambda name: name.update(text=name.text.removesuffix(" 0")))


ROADS = "12_roads"


def alone(layers: int) -> str:
    """The recipe of that many layers that was trained with its last exit alone, at its better
    rate."""
    names = [name for name in stored(ROADS)["runs"] if name.startswith(f"fixed depth {layers}")]
    return max(names, key=lambda n: fmean(run["accuracy"] for run in runs_of(n, ROADS)))


def roads_table() -> Html:
    """Accuracy of exits on texts of one, two and three roads: mean and worst seed."""
    exits = {f"exit {k} of 4": ("joint", k) for k in (1, 2, 3, 4)}
    exits |= {f"exit {k} of 2": ("joint, two layers", k) for k in (1, 2)}
    exits |= {f"trained alone, depth {k}": (alone(k), k) for k in (1, 2)}
    rows = []
    for name, (recipe, k) in exits.items():
        each = [[run["by_roads"][n][k - 1] for run in runs_of(recipe, ROADS)] for n in "123"]
        rows.append((name, *(f"{fmean(one):.1%} ({min(one):.1%})" for one in each)))
    return number_table(("", "one road", "two roads", "three roads"), rows, "roads")


def roads_chart() -> Any:
    """Accuracy against layers: early exit over its speeds, as many texts drawn at random, and all
    texts at one exit."""
    runs = runs_of("joint", ROADS)
    curves = {
        "early exit": over("layers", runs, "by_entropy", "accuracy"),
        "at random": over("layers", runs, "by_entropy", "at_random"),
        "one exit for all": [list(enumerate(run["by_layer"], start=1)) for run in runs],
    }
    return curves_chart(
        curves, title="Accuracy against layers, over the speed", x_title="layers of a text",
        y_title="accuracy", percent=True,
    )  # fmt: skip


def at_budget(run: Run, fraction: float = HALF) -> float:
    """Accuracy of a run where a text takes that fraction of the FLOPs, between two speeds on a
    straight line."""
    points = sorted((p["flops"] / run["plain_flops"], p["accuracy"]) for p in run["by_entropy"])
    flops, accuracies = zip(*points, strict=True)
    return float(np.interp(fraction, flops, accuracies))


def training_chart() -> Any:
    """How exits are trained: the last one's accuracy, and at a budget of FLOPs."""
    runs = {label: runs_of(name) for name, label in TRAININGS.items()}
    return ablation_chart(
        {
            "last exit": {label: [run["accuracy"] for run in of] for label, of in runs.items()},
            f"at {HALF:.0%} of the FLOPs": {
                label: [at_budget(run) for run in of] for label, of in runs.items()
            },
        },
        title="How the exits learn", x_title="accuracy", percent=True,
    )  # fmt: skip


def groups() -> dict[str, list[int]]:
    """Test texts of the pairs by their class."""
    classes = runs_of(FAST["pairs"])[0]["classes"]
    return {
        name: [n for n, of in enumerate(classes) if of == k]
        for k, name in enumerate(stored("12_fastbert")["texts"]["pairs"]["names"])
    }


def entropies_chart() -> Any:
    """Mean uncertainty, layer by layer, of each class's texts."""
    run = runs_of(FAST["pairs"])[0]
    curves = {}
    for name, texts in groups().items():
        columns = zip(*(run["entropies"][n] for n in texts), strict=True)
        means = [(layer, fmean(column)) for layer, column in enumerate(columns, start=1)]
        curves[f"{name} ({len(texts)})"] = [means]
    return curves_chart(
        curves, title="How unsure the exits are", x_title="layer", y_title="mean uncertainty"
    )


def strategies_chart() -> Any:
    """MobileBERT in miniature: what its teacher is good for."""
    names = {n: label for n, label in STRATEGIES.items() if n in stored("12_mobilebert")["runs"]}
    masked, facts = (
        outcome(stored("12_mobilebert"), what) for what in ("masked_accuracy", "job_accuracy")
    )
    return ablation_chart(
        {
            "masked words": {label: masked[name] for name, label in names.items()},
            "unstated facts": {label: facts[name] for name, label in names.items()},
        },
        title="How a thin student learns", x_title="accuracy", percent=True,
    )  # fmt: skip


# ---------------------------------------------------------------- serving


def served_accuracy(way: str) -> float:
    """Mean over the seeds; a way that changes no number has float32's."""
    accuracies = outcome(stored("12_serving"), "accuracy")
    return fmean(accuracies.get(way, accuracies["float32"]))


def timed_flops(way: str) -> float:
    """FLOPs of a text by the model that was timed, which is the first seed's."""
    flops = outcome(stored("12_serving"), "flops")
    return float(flops.get(way, flops["float32"])[0])


def serving_rows() -> list[tuple[str, ...]]:
    """A row a way: accuracy, latency, throughput, sizes."""
    ways, own = stored("12_serving_times")["ways"], stored("12_serving")["runs"]
    return [
        (
            name, f"{served_accuracy(name):.1%}" if name in own else "as float32",
            f"{row['median']:.2f}", f"{row['p95']:.2f}", f"{row['texts_a_second']:,.0f}",
            f"{row['stored']:.1f}", "–" if "ONNX" in name else f"{row['memory']:.1f}",
        )
        for name, row in ways.items()
    ]  # fmt: skip


def serving_table() -> Html:
    """Every way to serve the sections."""
    head = (
        "way", "accuracy", "ms, median", "ms, 95th", "texts a second", "MB, file", "MB, running"
    )  # fmt: skip
    return number_table(head, serving_rows(), "serving")


def flops_and_time_chart() -> Any:
    """Latency against FLOPs, a dot a way."""
    ways = stored("12_serving_times")["ways"]
    points = [
        {"name": name, "x": timed_flops(name) / 1e6, "y": row["median"]}
        for name, row in ways.items()
    ]
    figure = tradeoff_chart(
        points, x="millions of FLOPs of a text", y="milliseconds, one text at a time",
        title="FLOPs and time",
    )  # fmt: skip
    return figure.update_layout(margin_r=110)  # names right of the last dots
