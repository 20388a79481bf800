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
from course_lib.family.modernbert import ModernBertConfig, modernbert
from course_lib.teaching.numbers import percent
from course_lib.teaching.results import outcome, stored
from course_lib.teaching.verdicts import in_points
from course_lib.train.flops import forward_flops

from . import real_text
from .fine_tuning import CHECKPOINTS, TASKS
from .ladder import BEFORE, HELDOUT, LAST, LENGTH, RUNGS, STORIES
from .views.checkpoints import mean_tuned, right_of, tuned
from .views.real_text import FILE as REAL
from .views.real_text import real_runs
from .views.results import NORMS_FILE, TIMES, half_way, reached, runs_of, seconds
from .views.speed import speed_measured_on, times_ahead

KEYS = {  # rung -> as sentences' numbers call it
    "BERT": "bert", "no segments, no biases": "plain", "pre-norm": "prenorm", "RoPE": "rope",
    "GeGLU": "geglu", "local layers": "local", LAST: "modern",
}  # fmt: skip
OWN = dict(zip(("bert", "modern"), CHECKPOINTS, strict=True))
TOKENS, TRAINED_AT = 2 * 10**12, 1_024  # of ModernBERT's text; of its sequences, most of the time


def right(name: str) -> str:
    """What a rung reached, in percent with a decimal."""
    return percent(reached(name), 1)


def gained(name: str, against: str) -> str:
    """Points over another, with the rule's word."""
    return in_points(reached(name), reached(against))


def placed(name: str, what: str, at: int) -> str:
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


def _own_right(name: str) -> str:
    """Held-out masked pieces that a checkpoint finds, in percent with a decimal."""
    return percent([right_of(name)], 1)


def _own_tuned(name: str) -> str:
    """The mean of the four tasks, in percent with a decimal."""
    return percent(mean_tuned(name), 1)


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
    found = sum(p.numel() for name, p in model.named_parameters() if name.endswith("bias"))
    return found, count_parameters(model)


NUMBERS: dict[str, Callable[[], Any]] = {
    **{f"right_{KEYS[name]}": partial(right, name) for name in ("BERT", LAST)},
    **{
        f"step_{KEYS[name]}": partial(gained, name, before)
        for before, name in zip(RUNGS, list(RUNGS)[1:], strict=False)
    },
    "half_rope": lambda: in_points(half_way("RoPE"), half_way("pre-norm")),
    "half_right_prenorm": lambda: percent(half_way("pre-norm")),
    "half_right_rope": lambda: percent(half_way("RoPE")),
    "whole": partial(gained, LAST, "BERT"),
    "alone_rope": partial(gained, "BERT + RoPE", "BERT"),
    "right_alone": partial(right, "BERT + RoPE"),
    "alone_geglu": partial(gained, "BERT + GeGLU", "BERT"),
    "seeds": lambda: len(runs_of("BERT")),
    "stories": lambda: STORIES,
    "heldout": lambda: HELDOUT,
    "trained_length": lambda: LENGTH,
    "steps": lambda: runs_of("BERT")[0]["steps"],
    "modern_steps": lambda: runs_of(LAST)[0]["steps"],
    "ms_bert": lambda: f"{1e3 * seconds('BERT'):.0f}",
    "ms_modern": lambda: f"{1e3 * seconds(LAST):.0f}",
    "back_learned": partial(placed, "pre-norm", "further_back", 448),
    "back_rope": partial(placed, "GeGLU", "further_back", 448),
    "long_learned": partial(placed, "pre-norm", "longer", 512),
    "long_rope": partial(placed, "GeGLU", "longer", 512),
    "long_local": partial(placed, "local layers", "longer", 512),
    "mid_learned": partial(placed, "pre-norm", "longer", 256),
    "mid_rope": partial(placed, "GeGLU", "longer", 256),
    "mid_local": partial(placed, "local layers", "longer", 256),
    "post_low": partial(normed, "post-norm, 0.0005"),
    "pre_low": partial(normed, "pre-norm, 0.0005"),
    "post_high": partial(normed, "post-norm, 0.002"),
    "warm_low": partial(normed, "post-norm, 0.0005, warm-up"),
    "warm_high": partial(normed, "post-norm, 0.002, warm-up"),
    "pre_high": partial(normed, "pre-norm, 0.002"),
    **{f"real_{KEYS[name]}": partial(read_well, name) for name in ("BERT", LAST)},
    **{
        f"real_step_{KEYS[name]}": partial(gained_there, name, before)
        for name, before in BEFORE.items()
    },
    "real_whole": partial(gained_there, LAST, "BERT"),
    "real_seeds": lambda: len(real_runs(LAST)),
    "real_device": lambda: stored(REAL)["device"],
    "real_words": lambda: f"{stored(REAL)['read']['words'] / 1e6:.1f}",
    "real_steps": lambda: f"{real_text.Recipe().steps:,}",
    **{f"own_right_{key}": partial(_own_right, name) for key, name in OWN.items()},
    **{f"own_tuned_{key}": partial(_own_tuned, name) for key, name in OWN.items()},
    **{f"tuned_{task.split()[0]}": partial(after_tuning, task) for task in (*TASKS, "mean")},
    "tuned_outside": partial(after_tuning, "mean", "outside"),
    "ahead_short": lambda: f"{times_ahead(128):.2f}",
    "ahead_long": lambda: f"{times_ahead(8_192):.1f}",
    "speed_machine": speed_measured_on,
    "machine": lambda: where_measured(stored(TIMES)["machine"]),
    "time_short": partial(timed, "ModernBERT", "BERT", 128),
    "time_long": partial(timed, "BERT", "ModernBERT", 2_048),
    "time_global": partial(timed, "ModernBERT, all layers global", "ModernBERT", 2_048),
    "time_deberta": partial(timed, "DeBERTa", "ModernBERT", 2_048),
    "layers": lambda: published("bert", "base").num_layers,
    "modern_layers": lambda: published("modernbert", "base", ModernBertConfig).num_layers,
    "base_size": lambda: size("base"),
    "large_size": lambda: size("large"),
    "biases": lambda: f"{biases_of_bert()[0] / biases_of_bert()[1]:.2%}",
    "own_rate": lambda: f"{rate():,.0f}",
    "own_words": lambda: f"{stored('03_checkpoint')['text']['words'] / 1e6:.1f}",
    "base_times": lambda: f"{base_flops(TRAINED_AT):.0f}",
    "base_years": lambda: f"{TOKENS * base_flops(TRAINED_AT) / rate() / 3.156e7:.0f}",
}  # fmt: skip

TYPED = {
    "10,000": "base of the angles in local layers",
    "100": "positions by which a text is moved",
}
