"""Two processes do what one does with the same batches: DDP and FSDP, over gloo on loopback.

As a program this file is what each of the two processes runs:
torchrun --nproc_per_node 2 tests/test_pretrain_team.py FOLDER"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from course_lib.family.bert import bert_for_pretraining
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.pretraining import pretraining_batches, pretraining_loss
from course_lib.objectives.rows import Batch, SpecialIds
from course_lib.train.loop import fit
from course_lib.train.pretrain import LOG, RESULTS, RUN, batches_of, main, read_log, set_up
from course_lib.train.pretrain_recipe import (
    ModelPart,
    ObjectivePart,
    PretrainRecipe,
    TextPart,
    TrainingPart,
)
from course_lib.train.state import whole_weights
from course_lib.train.team import ALONE, SEEDS_APART, Alone, Team, choose_device, join, part_of

ROOT = Path(__file__).resolve().parent.parent
SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=40)
STEPS, HALF = 50, 25
CLOSE = 1e-4  # of losses in nats, and of weights
SMALL = {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 64}
STILL = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
MEMBERS = {  # family, size, objective: each has parts that the others lack
    "roberta": ("base", "mlm", {}),
    "albert": ("base", "mlm+sop", {"embedding_size": 16}),
    "distilbert": ("base", "mlm", {}),
    "electra": ("small", "rtd", {"embedding_size": 16}),
    "deberta": ("base", "mlm", {}),
    "deberta-v3": ("base", "mlm", {"span": 16, "furthest": 32}),
}
WAYS = {"ddp": False, "fsdp": True}
ACCUMULATE = (1, 2)


def sentences() -> list[list[list[int]]]:
    """Documents of unequal length, so that rows ask for unequal numbers of words."""
    draw = torch.Generator().manual_seed(0)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=draw))

    return [
        [[number(5, 40) for _ in range(number(2, 9))] for _ in range(number(2, 6))]
        for _ in range(60)
    ]


class Stop(Exception):
    """The run is stopped, as if killed."""


def stop_at_half(report) -> None:
    if report.step == HALF:
        raise Stop


def train(team: Alone = ALONE, checkpoint: Path | None = None, stop=False, **settings: Any):
    """Fifty steps without dropout; returns the weights and the losses, as one dictionary."""
    torch.manual_seed(0)
    model = bert_for_pretraining("tiny", vocab_size=40, max_positions=32, **SMALL, **STILL)
    rows = make_pairs(sentences(), SPECIAL, length=32)
    batches = pretraining_batches(rows, SPECIAL, batch_size=9)  # nine rows for two: five and four
    try:
        history = fit(
            model, pretraining_loss, batches, steps=STEPS, precision="float32", team=team,
            checkpoint=checkpoint, checkpoint_every=HALF - 1,
            callbacks=[stop_at_half] if stop else [], **settings,
        )  # fmt: skip
    except Stop:
        return {}
    return found(model, history.losses)


def found(model, losses) -> dict[str, torch.Tensor]:
    curves = {f"loss {name}": torch.tensor(values) for name, values in losses.items()}
    return {**whole_weights(model), **curves}


def recipe_of(family: str, name: str = "x", steps: int = 3) -> PretrainRecipe:
    size, objective, settings = MEMBERS[family]
    return PretrainRecipe(
        name, "", ModelPart(family, size, {**SMALL, **STILL, **settings}),
        ObjectivePart(objective), TextPart("world", 150, length=32, heldout=40),
        TrainingPart(steps, 9, learning_rate=1e-3, precision="float32", accumulate=2),
    )  # fmt: skip


def train_member(family: str, team: Alone = ALONE) -> dict[str, torch.Tensor]:
    ready = set_up(recipe_of(family))
    training = ready.recipe.training
    history = fit(
        ready.model, ready.objective, batches_of(ready), steps=training.steps, team=team,
        accumulate=training.accumulate, precision=training.precision,
    )  # fmt: skip
    return found(ready.model, history.losses)


# ---------------------------------------------------------------- what both processes run


def work(folder: Path) -> None:
    first = join("cpu")
    assert isinstance(first, Team) and first.size == 2
    done = {}
    for way, fsdp in WAYS.items():
        team = first if not fsdp else Team("cpu", fsdp=True)
        for accumulate in ACCUMULATE:
            done[f"{way} {accumulate}"] = train(team, accumulate=accumulate)
        done[f"{way} goes on"] = train(team, folder / f"one to {way}.safetensors")
        train(team, folder / f"{way} to one.safetensors", stop=True)
        for family in MEMBERS:
            done[f"{way} {family}"] = train_member(family, team)
    torch.manual_seed(first.seed(7))
    drawn = {f"drawn {first.rank}": torch.rand(4)}
    if first.first:
        for name, tensors in done.items():
            save_file({k: v.contiguous() for k, v in tensors.items()}, folder / f"{name}.st")
    save_file(drawn, folder / f"drawn {first.rank}.st")
    try:
        first.check_same("The number", first.rank)
    except ValueError as error:
        (folder / f"differs {first.rank}.txt").write_text(str(error))
    first.leave()


def torchrun(*arguments: str, processes: int = 2) -> subprocess.CompletedProcess[str]:
    alone = {"GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0"}
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr",
         "127.0.0.1", "--nproc_per_node", str(processes), *arguments],
        env={**os.environ, **alone, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    work(Path(sys.argv[1]))
