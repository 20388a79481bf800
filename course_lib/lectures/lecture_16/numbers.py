"""The numbers that sentences of lecture 16 say: counted, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from course_lib.bench.measuring import where_measured
from course_lib.config import published
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.family.eurobert import EuroBertConfig
from course_lib.family.modernbert import ModernBertConfig, modernbert, modernbert_for_masked_lm
from course_lib.lectures.lecture_16.exercises import flops
from course_lib.teaching.numbers import percent
from course_lib.teaching.results import outcome, stored
from course_lib.teaching.verdicts import in_points
from course_lib.train.flops import forward_flops

from . import faster, real_text
from .fine_tuning import CHECKPOINTS
from .ladder import HELDOUT, LAST, LENGTH, STORIES
from .views.checkpoints import mean_tuned, right_of, tuned
from .views.real_text import FILE as REAL
from .views.real_text import real_runs
from .views.results import NORMS_FILE, TIMES, extended, half_way, reached, runs_of, seconds
from .views.speed import speed_measured_on, times_ahead

TOKENS, TRAINED_AT = 2 * 10**12, 1_024  # of ModernBERT's text; of its sequences, most of the time


def right(name: str) -> str:
    """What a rung reached, in percent with a decimal."""
    return percent(reached(name), 1)


def gained(name: str, against: str) -> str:
    """Points over another, with the rule's word."""
    return in_points(reached(name), reached(against))


def accuracy_at(name: str, what: str, at: int) -> str:
    """Right further back or in longer texts, in percent."""
    return percent([run[what][str(at)] for run in runs_of(name)])


def normed(name: str) -> str:
    """What twelve layers reached without warm-up, in percent with a decimal."""
    return percent(outcome(stored(NORMS_FILE), "accuracy")[name], 1)


def gained_there(name: str, against: str) -> str:
    """The same on documentation."""
    one, other = ([run["accuracy"] for run in real_runs(n)] for n in (name, against))
    return in_points(one, other)


def read_well(name: str) -> str:
    """Held-out masked pieces of the documentation that a rung finds, in percent with a decimal."""
    return percent([run["accuracy"] for run in real_runs(name)], 1)


def after_tuning(task: str, split: str = "test") -> str:
    """course-modernbert's points over course-bert on a task, or on their "mean", with the rule's
    word."""
    bert, modern = (
        mean_tuned(name, split) if task == "mean" else tuned(name, task, split)
        for name in CHECKPOINTS
    )
    return in_points(modern, bert)


def own_right(name: str) -> str:
    """Held-out masked pieces that a checkpoint finds, in percent with a decimal."""
    return percent([right_of(name)], 1)


def sooner(name: str) -> str:
    """The same of a shorter run, the mean over seeds."""
    return percent([run["accuracy"] for run in stored(faster.FILE)["runs"][name]], 1)


def time_of(name: str) -> float:
    """A shorter run's processor time, as a part of that of course-bert's training, by the time that
    a step takes."""
    record = stored(faster.FILE)
    steps = stored("03_checkpoint")["recipe"]["training"]["steps"]
    a_step, own = record["step_seconds"], record["recipes"][name]["steps"]
    return float(own * a_step[name] / (steps * a_step["course-bert"]))


def own_tuned(name: str) -> str:
    """The mean of the four tasks, in percent with a decimal."""
    return percent(mean_tuned(name), 1)


def at_length(way: str, length: int) -> str:
    """What a way to go on finds in texts of a length, in percent."""
    return percent(extended(way, length))


def longer_by(way: str, other: str, length: int) -> str:
    """Points between two ways at a length, with the rule's word."""
    return in_points(extended(way, length), extended(other, length))


def timed(one: str, other: str, tokens: int) -> str:
    """How many times as long one encoder takes for a text as another."""
    of = stored(TIMES)["length"]
    return f"{of[one][str(tokens)]['seconds'] / of[other][str(tokens)]['seconds']:.1f}"


@cache
def base_flops(tokens: int) -> float:
    """FLOPs of a token in ModernBERT-base over those in the course's checkpoint's shape, which read
    128 at a time."""
    small = forward_flops(partial(bert, "mini"), 128) / 128
    return forward_flops(modernbert, tokens) / tokens / small


def rate() -> float:
    """Tokens a second of the course's checkpoint's training."""
    return float(stored("03_checkpoint")["tokens_per_second"])


@cache
def size(of: str) -> int:
    """Parameters of a published ModernBERT, without its head."""
    with torch.device("meta"):
        return count_parameters(modernbert(of))


@cache
def biases_of_bert() -> tuple[int, int]:
    """Of BERT-base: parameters that are biases, and all."""
    with torch.device("meta"):
        model = bert("base")
    biases = sum(p.numel() for name, p in model.named_parameters() if name.endswith("bias"))
    return biases, count_parameters(model)


NUMBERS: dict[str, Callable[[], Any]] = {
    "alone_rope": partial(gained, "BERT + RoPE", "BERT"),
    "alone_geglu": partial(gained, "BERT + GeGLU", "BERT"),
    "back_learned": partial(accuracy_at, "pre-norm", "further_back", 448),
    "back_rope": partial(accuracy_at, "GeGLU", "further_back", 448),
    "modern_layers": lambda: published("modernbert", "base", ModernBertConfig).num_layers,
}  # fmt: skip

TYPED = {
    "5,000": "a position in a long text, in a question",
    "50%": "a control at five learning rates, rounded",
    "500": "a vocabulary in an example",
    "25.3": "million parameters, arithmetic of the quiz",
    "2026": "the year of the newest encoders",
    "10,000": "base of the angles in local layers",
    "100": "positions by which a text is moved",
}
