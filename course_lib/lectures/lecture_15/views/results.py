"""The stored runs as charts."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from statistics import fmean
from typing import Any

from course_lib.images import digits
from course_lib.teaching import ablation_chart, curves_chart
from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import stored

from ..clip_runs import CANDIDATES
from ..clip_runs import FILE as CLIP
from ..picture_runs import CNN, FEW, KEPT, LOGISTIC, SIZES, VIT

Run = Mapping[str, Any]
ORDERS = {KEPT: "", "one permutation": ", one permutation", "one a picture": ", one a picture"}
OF_TASK = {  # panel -> rows of positions -> recipe
    "digits": ("1-D positions", "2-D positions", "no positions"),
    "scenes: which row?": ("which row, 1-D", "which row, 2-D", "which row, none"),
    "scenes: a circle?": ("a circle, 1-D", "a circle, 2-D", "a circle, none"),
}

POSITIONS, PICTURES, MASKED, LARGER = (
    f"15_{name}" for name in ("positions", "pictures", "masked", "resolution")
)


def reached(file: str, recipe: str, what: str = "accuracy") -> list[float]:
    """What each seed reached by a recipe."""
    return [run[what] for run in stored(file)["runs"][recipe]]


def at_best(recipe: str) -> str:
    """The name of the runs of `15_pictures` at the rate where this recipe's mean accuracy is
    highest."""
    names = (n for n in stored(PICTURES)["runs"] if n == recipe or n.startswith(f"{recipe}, rate"))
    return max(names, key=lambda name: fmean(reached(PICTURES, name)))


def positions_chart() -> Any:
    """1-D, 2-D and no positions, on three tasks."""
    rows = ("1-D", "2-D", "none")
    groups = {
        task: {row: reached(POSITIONS, name) for row, name in zip(rows, names, strict=True)}
        for task, names in OF_TASK.items()
    }
    return ablation_chart(groups, title="Positions", x_title="accuracy", percent=True)


def orders_chart() -> Any:
    """ViT, CNN and logistic regression, with the patches where they are and elsewhere."""
    groups = {}
    for model in (VIT, CNN, LOGISTIC):
        names = {order: f"{model}{end}" for order, end in ORDERS.items()}
        names[KEPT] = "1-D positions" if model == VIT else model
        groups[model] = {order: reached(POSITIONS, name) for order, name in names.items()}
    return ablation_chart(groups, title="Order of the patches", x_title="accuracy", percent=True)


def pictures_chart() -> Any:
    """Accuracy against the number of pictures with labels."""
    curves: dict[str, list[Any]] = {}
    whole = len(digits())
    for model in (VIT, CNN, LOGISTIC, f"{VIT} shifted", f"{CNN} shifted"):
        sizes = [n for n in SIZES if f"{model}, {n or 'all'}" in stored(PICTURES)["runs"]]
        columns = [reached(PICTURES, f"{model}, {n or 'all'}") for n in sizes]
        curves[model] = [
            [(n or whole, y) for n, y in zip(sizes, of, strict=True)]
            for of in zip(*columns, strict=True)
        ]
    figure = curves_chart(
        curves, title="How many labelled images?", x_title="images with labels",
        y_title="accuracy", percent=True, log_x=True,
    )  # fmt: skip
    sizes = [n or whole for n in SIZES]
    edges = [log10(0.9 * min(sizes)), log10(1.1 * max(sizes))]
    return figure.update_xaxes(tickvals=sizes, ticktext=[f"{n:,}" for n in sizes], range=edges)


def masked_chart() -> Any:
    """Few labels: after masked patches, and without, at equal steps and at equal FLOPs."""
    names = ("random", "equal FLOPs", "masked patches")
    groups = {f"{n} labels": {name: reached(MASKED, f"{name}, {n}") for name in names} for n in FEW}
    return ablation_chart(
        groups, title="Pre-training on masked patches", x_title="accuracy", percent=True
    )


def retrieval_table() -> Html:
    """CLIP in small: what it retrieves among the candidates, beside chance level."""
    runs = stored(CLIP)["runs"]["CLIP"]
    measures = ("accuracy", "five", "picture_accuracy")
    rows = [("chance level", *(f"{n / CANDIDATES:.1%}" for n in (1, 5, 1)))]
    rows += [(f"seed {run['seed']}", *(f"{run[what]:.1%}" for what in measures)) for run in runs]
    head = ("", "image → sentence", "… among the first five", "sentence → image")
    return number_table(head, rows, "retrieval", 700)


def resolution_chart() -> Any:
    """From 8×8 to 16×16: accuracy against further steps."""
    curves = {
        name: [[(point["step"], point["accuracy"]) for point in run["curve"]] for run in runs]
        for name, runs in stored(LARGER)["runs"].items()
    }
    return curves_chart(
        curves, title="Going on with larger images", x_title="steps on 16×16",
        y_title="accuracy", percent=True,
    )  # fmt: skip
