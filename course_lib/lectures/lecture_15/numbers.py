"""The numbers that sentences of lecture 15 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from course_lib.encoder import count_parameters
from course_lib.family.vit import vit
from course_lib.images import digits
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import percent
from course_lib.teaching.results import stored
from course_lib.teaching.verdicts import in_points

from . import picture_runs
from .views.results import LARGER, MASKED, PICTURES, POSITIONS, reached

GENTLE, MEAN, LOW = ", a quarter of the rate", ", mean of patches", "0 to 4: random"


def right(file: str, recipe: str, what: str = "accuracy") -> str:
    """What a recipe reached, the mean over the seeds, in percent with a decimal."""
    return percent(reached(file, recipe, what), 1)


def compared(file: str, recipe: str, against: str) -> str:
    """The mean difference in points with the rule's word."""
    return in_points(reached(file, recipe), reached(file, against))


def parameters() -> int:
    """Of ViT-B/16 with its pooler."""
    with torch.device("meta"):
        return count_parameters(vit("B/16"))


NUMBERS: dict[str, Callable[[], Any]] = {
    "parameters": parameters,
    "seeds": lambda: len(picture_runs.SEEDS),
    "train": lambda: len(digits()),
    "test": lambda: len(digits("test")),
    "hidden": lambda: picture_runs.MAIN.hidden_size,
    "layers": lambda: picture_runs.MAIN.num_layers,
    # positions and order
    "one_d": partial(right, POSITIONS, "1-D positions"),
    "two_d": partial(right, POSITIONS, "2-D positions"),
    "none": partial(right, POSITIONS, "no positions"),
    "none_longer": partial(right, POSITIONS, "no positions, longer"),
    "row_none": partial(right, POSITIONS, "which row, none"),
    "circle_none": partial(right, POSITIONS, "a circle, none"),
    "vit_lost_rule": partial(compared, POSITIONS, "ViT, one permutation", "1-D positions"),
    "cnn_lost_rule": partial(compared, POSITIONS, "CNN, one permutation", "CNN"),
    "cnn_each": partial(right, POSITIONS, "CNN, one a picture"),
    "none_longer_train": partial(
        right, POSITIONS, "no positions, longer", "train_accuracy"
    ),
    "cnn_moved": partial(right, PICTURES, "CNN shifted, all"),
    "cnn_moved_permuted": partial(right, PICTURES, "CNN shifted, all, one permutation"),
    "cnn_moved_rule": partial(
        compared, PICTURES, "CNN shifted, all, one permutation", "CNN shifted, all"
    ),
    "vit_moved_rule": partial(
        compared, PICTURES, "ViT shifted, all, one permutation", "ViT shifted, all"
    ),
    "vit_each": partial(right, POSITIONS, "ViT, one a picture"),
    # pictures
    **{
        f"{said}_{size}": partial(right, PICTURES, f"{model}, {size}")
        for said, model in (("vit", "ViT"), ("cnn", "CNN"), ("logistic", "logistic regression"))
        for size in ("50", "all")
    },
    "vit_200": partial(right, PICTURES, "ViT, 200"),
    "cnn_200": partial(right, PICTURES, "CNN, 200"),
    "logistic_200": partial(right, PICTURES, "logistic regression, 200"),
    "vit_50_rule": partial(compared, PICTURES, "ViT, 50", "CNN, 50"),
    "vit_all_rule": partial(compared, PICTURES, "ViT, all", "CNN, all"),
    "vit_parameters": lambda: stored(PICTURES)["runs"]["ViT, all"][0]["parameters"],
    "cnn_parameters": lambda: stored(PICTURES)["runs"]["CNN, all"][0]["parameters"],
    "vit_shifted": partial(right, PICTURES, "ViT shifted, all"),
    "vit_shifted_rule": partial(compared, PICTURES, "ViT shifted, all", "ViT, all"),
    "cnn_shifted_rule": partial(compared, PICTURES, "CNN shifted, all", "CNN, all"),
    "vit_shifted_200_rule": partial(compared, PICTURES, "ViT shifted, 200", "ViT, 200"),
    "cnn_shifted_200_rule": partial(compared, PICTURES, "CNN shifted, 200", "CNN, 200"),
    "vit_shifted_train": partial(right, PICTURES, "ViT shifted, all", "train_accuracy"),
    # masked patches
    "random_50": partial(right, MASKED, "random, 50"),
    "equal_50": partial(right, MASKED, "equal FLOPs, 50"),
    "masked_50": partial(right, MASKED, "masked patches, 50"),
    "masked_rule": partial(compared, MASKED, "masked patches, 50", "random, 50"),
    "masked_equal_rule": partial(compared, MASKED, "masked patches, 50", "equal FLOPs, 50"),
    "masked_200": partial(right, MASKED, "masked patches, 200"),
    "random_200": partial(right, MASKED, "random, 200"),
    "equal_200": partial(right, MASKED, "equal FLOPs, 200"),
    "masked_200_rule": partial(compared, MASKED, "masked patches, 200", "random, 200"),
    "gentle_rule": partial(compared, MASKED, f"masked patches, 50{GENTLE}", f"random, 50{GENTLE}"),
    "mean_random": partial(right, MASKED, f"random, 50{MEAN}"),
    "mean_masked": partial(right, MASKED, f"masked patches, 50{MEAN}"),
    "mean_rule": partial(compared, MASKED, f"masked patches, 50{MEAN}", f"random, 50{MEAN}"),
    "low_masked_rule": partial(compared, MASKED, "0 to 4: masked patches of 5 to 9", LOW),
    "low_labels_rule": partial(compared, MASKED, "0 to 4: labels of 5 to 9", LOW),
    "low_random": partial(right, MASKED, "0 to 4: random"),
    "low_masked": partial(right, MASKED, "0 to 4: masked patches of 5 to 9"),
    "low_labels": partial(right, MASKED, "0 to 4: labels of 5 to 9"),
    # larger pictures
    "at_once": partial(right, LARGER, "bicubic", "at_once"),
    "at_once_bilinear": partial(right, LARGER, "bilinear", "at_once"),
    "resize_rule": lambda: in_points(
        reached(LARGER, "bicubic", "at_once"), reached(LARGER, "bilinear", "at_once")
    ),
    **{
        f"larger_{said}": partial(right, LARGER, recipe)
        for said, recipe in (
            ("bicubic", "bicubic"), ("bilinear", "bilinear"), ("new", "new positions"),
            ("random", "random initialisation"),
        )
    },
    "at_once_new": partial(right, LARGER, "new positions", "at_once"),
    # printed
    "paper_none": lambda: f"{printed('vit')['positions']['none']:.1f}",
    "paper_1d": lambda: f"{printed('vit')['positions']['one_dimension']:.1f}",
    "paper_2d": lambda: f"{printed('vit')['positions']['two_dimensions']:.1f}",
    "paper_masked": lambda: printed("vit")["masked"]["accuracy"],
}  # fmt: skip

TYPED = {  # printed in the paper, and quoted in questions
    "61.4": "without positions",
    "64.2": "1-D positions",
    "64.0": "2-D and relative positions",
    "79.9": "after masked patches",
    "86,389,248": "parameters, in an answer that counts them",
}
