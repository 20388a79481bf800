"""The numbers that sentences of lecture 15 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any

import torch

from course_lib.encoder import count_parameters
from course_lib.family.vit import VitConfig, vit
from course_lib.images import digits
from course_lib.lectures.lecture_15.exercises.count import sizes
from course_lib.teaching.numbers import percent
from course_lib.teaching.verdicts import in_points

from . import clip_runs, picture_runs
from .views.results import LARGER, MASKED, PICTURES, POSITIONS, at_best, reached

GENTLE, MEAN = ", a quarter of the rate", ", mean of patches"


def right(file: str, recipe: str, what: str = "accuracy") -> str:
    """What a recipe reached, the mean over the seeds, in percent with a decimal."""
    return percent(reached(file, recipe, what), 1)


def compared(file: str, recipe: str, against: str) -> str:
    """The mean difference in points with the rule's word."""
    return in_points(reached(file, recipe), reached(file, against))


def wrong_words() -> str:
    """How many words are wrong where CLIP's first sentence is, the mean over the seeds."""
    return f"{fmean(reached(clip_runs.FILE, 'CLIP', 'wrong_words')):.1f}"


def parameters() -> int:
    """Of ViT-B/16 with its pooler."""
    with torch.device("meta"):
        return count_parameters(vit("B/16"))


NUMBERS: dict[str, Callable[[], Any]] = {
    "one_d": partial(right, POSITIONS, "1-D positions"),
    "none": partial(right, POSITIONS, "no positions"),
    "vit_lost_rule": partial(compared, POSITIONS, "ViT, one permutation", "1-D positions"),
    "cnn_lost_rule": partial(compared, POSITIONS, "CNN, one permutation", "CNN"),
    "cnn_moved": partial(right, PICTURES, "CNN shifted, all"),
    "gentle_rule": partial(compared, MASKED, f"masked patches, 50{GENTLE}", f"random, 50{GENTLE}"),
    "mean_random": partial(right, MASKED, f"random, 50{MEAN}"),
    "mean_masked": partial(right, MASKED, f"masked patches, 50{MEAN}"),
    "mean_rule": partial(compared, MASKED, f"masked patches, 50{MEAN}", f"random, 50{MEAN}"),
}  # fmt: skip

TYPED = {  # printed in the paper, and quoted in questions
    "300": "million pictures, JFT",
    "61.4": "without positions",
    "64.2": "1-D positions",
    "64.0": "2-D and relative positions",
    "79.9": "after masked patches",
    "86,389,248": "parameters, in an answer that counts them",
}
