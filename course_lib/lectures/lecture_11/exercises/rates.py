"""Exercise 11.3: a learning rate for every layer."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number, Numbers


def rates(rate: float, layers: int, divisor: float) -> tuple[Tensor, float]:
    """rate / divisor^(L − i), from the embeddings (i = −1) to the head (i = L); top over lowest."""
    every = [rate / divisor ** (layers - i) for i in range(-1, layers + 1)]
    return torch.tensor(every, dtype=torch.float64), every[layers] / every[1]


# ---------------------------------------------------------------- cases


def case(draw: Draw, layers: int, rate: float, divisor: float) -> Case:
    return rate * draw.python.uniform(0.8, 1.25), layers, divisor


EVERY, RATIO = (
    "[rate / divisor ** (layers - i) for i in range(-1, layers + 1)]",
    ("every[layers] / every[1]"),
)

RATES = Exercise(
    **written("11.3"),
    solution=rates,
    returns=(Numbers("list of rates", shape="L+2"), Number("top over lowest")),
    library=("course_lib.train.layer_rates:layerwise_rates",),
    when_raised=((r"range|interpreted as an integer", "`layers` is a number: range(layers)."),),
    stages=(
        Stage("two layers, divisor 2", each(lambda draw, rate: (rate, 2, 2.0), (1.0,), (8.0,))),
        Stage("other layers and divisors",
              each(case, (4, 3.0, 1.2), (3, 1.0, 1.5), (6, 2.0, 1.1))),
        Stage("BERT-base as FinBERT tunes it", each(case, (12, 2.0, 1.2), (1, 3.0, 1.2))),
    ),
    mistakes=(
        Edit(EVERY, "[rate / divisor ** (layers - i) for i in range(layers + 1)]", "The "
             "embeddings are missing: they are one more layer, below all others."),
        Edit(EVERY, "[rate / divisor ** (layers - i) for i in range(-1, layers)] + [rate / "
             "divisor]", "The head's rate is divided, too. The head is new and learns with the "
                         "whole rate."),
        Edit(EVERY, "[rate / divisor ** max(layers - 1 - i, 0) for i in range(-1, layers + 1)]",
             "Your top layer has the whole rate. Only the head has it; the top layer is one "
             "step below."),
        Edit(EVERY, "[rate * divisor ** (layers - i) for i in range(-1, layers + 1)]", "Your "
             "rates grow towards the input. Layers near it should change *less*: divide."),
        Edit(EVERY, "[rate / divisor ** (i + 1) for i in range(-1, layers + 1)]", "Your order "
             "is reversed: the embeddings have the whole rate, the head the smallest."),
        Edit(EVERY, "[rate / (divisor * max(layers - i, 1 / divisor)) for i in range(-1, layers + "
             "1)]", "You multiply the divisor by the number of steps. Use a power: each layer "
             "is divided once more than the one above."),
        Edit(EVERY, "[rate * (i + 2) / (layers + 2) for i in range(-1, layers + 1)]", "Your "
             "rates fall in equal steps. Each layer has the rate of the layer above *divided* "
             "by the divisor."),
        Edit(EVERY, "[1 / divisor ** (layers - i) for i in range(-1, layers + 1)]", "You forgot "
             "`rate`: your head learns with 1. It has the whole `rate`."),
        Edit(RATIO, "every[1] / every[layers]", "This is the inverse: the lowest layer's rate "
             "over the top layer's."),
        Edit(RATIO, "every[-1] / every[0]", "This is the head over the embeddings. Compare the "
             "top *layer* with the lowest layer."),
        Edit(RATIO, "every[layers] - every[1]", "That is a difference. Return how many *times* "
             "as fast."),
    ),
)  # fmt: skip
