"""`16_times`: what a step of each rung takes, and what a text costs by its length.

`python -m course_lib.lectures.lecture_16.step_times`, on a machine that does nothing else (about
three minutes). All take turns in every round; the best round of each is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import torch
from torch import nn

from course_lib.bench.measuring import machine
from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.deberta import DebertaConfig, deberta_encoder
from course_lib.family.modernbert import ModernBertConfig, modernbert_encoder
from course_lib.files import data_root, write_atomic, write_manifest
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.train.flops import text_flops
from course_lib.train.loop import train_step
from course_lib.train.optimizers import make_optimizer

from .ladder import CONTROLS, PRECISION, RUNGS, Recipe, batches_of, model_of

LENGTHS = (128, 256, 512, 1_024, 2_048)
ROUNDS, STEPS = 5, 8
# One shape for all: BERT's two matrices of the feed-forward part, ModernBERT's three, are as large.
SHAPE: dict[str, Any] = {
    "vocab_size": 1_000, "hidden_size": 256, "num_layers": 6, "num_heads": 4,
    "intermediate_size": 1_024, "max_positions": LENGTHS[-1], "hidden_dropout": 0.0,
    "attention_dropout": 0.0, "pad_token_id": 0,
}  # fmt: skip
MODERN = {**SHAPE, "intermediate_size": 683, "window": 128}
ENCODERS: dict[str, Callable[[], Encoder]] = {
    "BERT": lambda: Encoder(BertConfig(**SHAPE)),
    "DeBERTa": lambda: deberta_encoder(
        DebertaConfig(**{**SHAPE, "type_vocab_size": 0, "span": 256})
    ),
    "ModernBERT": lambda: modernbert_encoder(ModernBertConfig(**MODERN)),
    "ModernBERT, all layers global": lambda: modernbert_encoder(
        ModernBertConfig(**{**MODERN, "global_every": 1})
    ),
}


def best(works: Mapping[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds of the best round of each; all take turns, after one round that warms up."""
    seconds = {name: float("inf") for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            if turn:
                seconds[name] = min(seconds[name], time.perf_counter() - began)
    return seconds


def training(recipe: Recipe, steps: int = STEPS) -> Callable[[], None]:
    """So many training steps of a rung, on other batches each time it is called."""
    model, batches = model_of(recipe, 0).train(), batches_of(recipe, 0)
    optimizer, step = make_optimizer(model, recipe.learning_rate, 0.01), count()

    def work() -> None:
        for _ in range(steps):
            train_step(model, masked_lm_loss, optimizer, batches(next(step)), 1.0, PRECISION)

    return work


def reading(encoder: nn.Module, tokens: int) -> Callable[[], None]:
    """The forward pass over one text."""
    ids = torch.randint(5, 1_000, (1, tokens), generator=torch.Generator().manual_seed(0))

    def work() -> None:
        with torch.inference_mode():
            encoder(ids)

    return work


def by_length(rounds: int = ROUNDS) -> dict[str, dict[str, dict[str, float]]]:
    """For each encoder, by length: seconds of one text, and FLOPs."""
    built = {name: build().eval() for name, build in ENCODERS.items()}
    times: dict[str, dict[str, dict[str, float]]] = {name: {} for name in built}
    for tokens in LENGTHS:
        works = {name: reading(encoder, tokens) for name, encoder in built.items()}
        for name, seconds in best(works, rounds).items():
            flops = text_flops(built[name], tokens)
            times[name][str(tokens)] = {"seconds": round(seconds, 5), "flops": flops}
    return times


def main() -> None:
    """Measure and store."""
    torch.set_num_threads(1)
    works = {name: training(recipe) for name, recipe in (RUNGS | CONTROLS).items()}
    steps = {name: round(seconds / STEPS, 5) for name, seconds in best(works).items()}
    record = {"machine": machine(), "threads": 1, "step": steps, "length": by_length()}
    write_atomic(data_root() / "results" / "16_times.json", json.dumps(record, indent=1) + "\n")
    write_manifest(data_root())
    for name, seconds in steps.items():
        print(f"{name:26} {1e3 * seconds:7.1f} ms a step")


if __name__ == "__main__":
    main()
