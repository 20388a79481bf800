"""Two processes do what one does with the same batches: DDP and FSDP, over gloo on loopback.

As a program this file is what each of the two processes runs:
torchrun --nproc_per_node 2 tests/library/test_pretrain_distributed.py FOLDER"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from limits import AGAINST_HANGING
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_pretrain import SMALL, small

from course_lib.family.bert import bert_for_pretraining
from course_lib.files import lock_file
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.pretraining import pretraining_batches, pretraining_loss
from course_lib.objectives.sequences import SpecialIds
from course_lib.train.distributed import ONE_PROCESS, Distributed, ManyProcesses, join, part_of
from course_lib.train.loop import fit
from course_lib.train.pretrain import (
    LOG,
    RESULTS,
    RUN,
    batches_of,
    main,
    pretrain,
    read_log,
    set_up,
)
from course_lib.train.pretrain_recipe import read_recipe
from course_lib.train.state import whole_weights

ROOT = Path(__file__).resolve().parent.parent.parent
SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=40)
STEPS, HALF = 50, 25
CLOSE = 1e-4  # of losses in nats, and of weights
STILL = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
MEMBERS = {  # family, size, objective: each has parts that the others lack
    "albert": ("base", "mlm+sop", {"embedding_size": 16}),
    "electra": ("small", "rtd", {"embedding_size": 16}),
    "deberta": ("base", "mlm", {}),
    "deberta-v3": ("base", "mlm", {"span": 16, "furthest": 32}),
}
WAYS = ("ddp", "fsdp")


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


def train(
    distributed: Distributed = ONE_PROCESS,
    checkpoint: Path | None = None,
    stop=False,
    **settings: Any,
):
    """Fifty steps without dropout; returns the weights and the losses, as one dictionary."""
    torch.manual_seed(0)
    model = bert_for_pretraining(
        "tiny", vocab_size=40, max_positions=32, initializer_range=0.1, **SMALL, **STILL
    )
    rows = make_pairs(sentences(), SPECIAL, length=32)
    batches = pretraining_batches(rows, SPECIAL, batch_size=9)  # nine rows for two: five and four
    try:
        history = fit(
            model, pretraining_loss, batches, steps=STEPS, precision="float32",
            distributed=distributed, learning_rate=5e-3, checkpoint=checkpoint,
            checkpoint_every=HALF - 1,
            callbacks=[stop_at_half] if stop else [], **settings,
        )  # fmt: skip
    except Stop:
        return {}
    return found(model, history.losses)


def found(model, losses) -> dict[str, torch.Tensor]:
    curves = {f"loss {name}": torch.tensor(values) for name, values in losses.items()}
    return {**whole_weights(model), **curves}


def train_member(family: str, distributed: Distributed = ONE_PROCESS) -> dict[str, torch.Tensor]:
    """A few steps of a member on the micro-world, by its own objective."""
    size, objective, settings = MEMBERS[family]
    recipe = small(
        family, objective, size=size, settings={**STILL, **settings}, steps=4, batch_size=9,
        accumulate=2, precision="float32",
    )  # fmt: skip
    ready, training = set_up(recipe), recipe.training
    history = fit(
        ready.model, ready.objective, batches_of(ready), steps=training.steps,
        distributed=distributed, accumulate=training.accumulate, precision=training.precision,
    )  # fmt: skip
    return found(ready.model, history.losses)


# ---------------------------------------------------------------- what both processes run


def work(folder: Path) -> None:
    distributed = join("cpu")
    assert isinstance(distributed, ManyProcesses) and (
        distributed.world_size,
        distributed.sharded,
    ) == (2, False)
    torch.manual_seed(distributed.seed(7))
    save_file({"drawn": torch.rand(4)}, folder / f"drawn {distributed.rank}.st")
    try:
        distributed.check_same("The number", distributed.rank)
    except ValueError as error:
        (folder / f"differs {distributed.rank}.txt").write_text(str(error))
    done = {}
    for way in WAYS:
        distributed = ManyProcesses("cpu", fsdp=way == "fsdp")
        done[f"{way} 2"] = train(distributed, accumulate=2)
        done[f"{way} goes on"] = train(distributed, folder / f"one to {way}.safetensors")
        train(distributed, folder / f"{way} to one.safetensors", stop=True)
        for family in MEMBERS:
            done[f"{way} {family}"] = train_member(family, distributed)
    if distributed.is_main_process:
        for name, tensors in done.items():
            save_file({k: v.contiguous() for k, v in tensors.items()}, folder / f"{name}.st")
    pretrain(read_recipe(folder / "recipe.toml"), folder / "ddp out", ManyProcesses("cpu"))
    main([str(folder / "recipe.toml"), "--out", str(folder / "fsdp out"), "--device", "cpu",
          "--fsdp"])  # fmt: skip


# ---------------------------------------------------------------- what is seen from outside

RECIPE = """
name = "small"
[model]
family = "electra"
size = "small"
settings = { hidden_size = 32, num_layers = 2, intermediate_size = 64, embedding_size = 16 }
[objective]
name = "rtd"
[text]
source = "world"
stories = 150
length = 32
heldout = 40
[training]
steps = 6
batch_size = 9
accumulate = 2
precision = "float32"
[reports]
log_every = 2
evaluate_every = 3
save_every = 4
"""


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone",
            "--local-addr", "127.0.0.1", "--nproc_per_node", "2"]  # fmt: skip


def environment() -> dict[str, str]:
    loopback = "lo" if sys.platform == "linux" else "lo0"
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return {**os.environ, "GLOO_SOCKET_IFNAME": loopback, "OMP_NUM_THREADS": "1",
            "PYTHONPATH": paths}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """What two processes left behind, after they were given what one had begun."""
    path = tmp_path_factory.mktemp("processes")
    (path / "recipe.toml").write_text(RECIPE)
    for way in WAYS:
        train(checkpoint=path / f"one to {way}.safetensors", stop=True)
    done = subprocess.run(
        [*TORCHRUN, __file__, str(path)],
        env=environment(), capture_output=True, text=True, timeout=AGAINST_HANGING,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (path / "said.txt").write_text(done.stdout + done.stderr)
    return path


@pytest.fixture(scope="module")
def alone() -> dict[int, dict[str, torch.Tensor]]:
    """One process's weights and losses, by how many batches it accumulates."""
    return {accumulate: train(accumulate=accumulate) for accumulate in (1, 2)}


def furthest(found, expected) -> float:
    assert set(found) == set(expected)
    return max((found[name] - expected[name]).abs().max().item() for name in expected)


def test_one_process_learns_and_accumulating_is_another_run(alone):
    """So that what follows compares runs that went somewhere, and not the same run."""
    for found in alone.values():
        assert found["loss total"][-5:].mean() < found["loss total"][:5].mean() - 0.2
    assert furthest(alone[1], alone[2]) > 1_000 * CLOSE


@pytest.mark.parametrize("way", WAYS)
def test_two_processes_follow_one(folder, alone, way):
    """Fifty steps of two batches each, every loss and every weight, in float32 without dropout.
    (One batch a step: the runs below, which two processes end or begin.)"""
    assert furthest(load_file(folder / f"{way} 2.st"), alone[2]) < CLOSE


@pytest.mark.parametrize("way", WAYS)
def test_a_run_begun_by_one_is_ended_by_two(folder, alone, way):
    assert furthest(load_file(folder / f"{way} goes on.st"), alone[1]) < CLOSE


@pytest.mark.parametrize("way", WAYS)
def test_a_run_begun_by_two_is_ended_by_one(folder, alone, way):
    path = folder / f"{way} to one.safetensors"
    with safe_open(path, framework="pt") as file:
        assert int(file.metadata()["step"]) == HALF - 1
    assert furthest(train(checkpoint=path), alone[1]) < CLOSE


@pytest.mark.parametrize("family", MEMBERS)
def test_every_member_follows(folder, family):
    """ELECTRA's processes draw words of their own, so its losses are near those of one, and the
    same whichever way its weights are kept."""
    expected = train_member(family)
    for way in WAYS:
        found = load_file(folder / f"{way} {family}.st")
        if family == "electra":
            assert set(found) == set(expected)
            assert found["loss rtd"].numpy() == pytest.approx(expected["loss rtd"].numpy(), rel=0.1)
        else:
            assert furthest(found, expected) < CLOSE
    if family == "electra":
        assert furthest(found, load_file(folder / "ddp electra.st")) < CLOSE


def test_the_command_writes_once_and_one_process_reads_it(folder, capsys):
    said = (folder / "said.txt").read_text()
    assert said.count("2 processes on cpu\n") == 1
    assert said.count("2 processes on cpu, weights shared out\n") == 1
    assert said.count("held-out: ") == 1 and "Warning" not in said
    reached = {}
    for way in WAYS:
        out = folder / f"{way} out"
        log = read_log(out / LOG)
        assert [line["step"] for line in log if "total" in line] == [2, 4, 6]
        assert [line["step"] for line in log if "heldout_loss" in line] == [3, 6]
        results = json.loads((out / RESULTS).read_text())
        assert results["processes"] == 2 and results["curve"] == log
        reached[way] = results["reached"]
        weights = load_file(out / "model" / "model.safetensors")
        main([str(folder / "recipe.toml"), "--out", str(out), "--device", "cpu"])  # it is done
        again = json.loads((out / RESULTS).read_text())
        assert again["reached"] == pytest.approx(results["reached"], rel=1e-5)
        assert again["parameters"] == results["parameters"] and again["processes"] == 1
        assert furthest(load_file(out / "model" / "model.safetensors"), weights) == 0
    assert reached["fsdp"] == pytest.approx(reached["ddp"], rel=1e-3)


def test_processes_draw_their_own_dropout_and_notice_what_differs(folder):
    drawn = [load_file(folder / f"drawn {rank}.st")["drawn"] for rank in range(2)]
    torch.manual_seed(7)
    assert torch.equal(drawn[0], torch.rand(4))  # the first draws what one process does
    assert not torch.equal(*drawn)
    for rank in range(2):
        said = (folder / f"differs {rank}.txt").read_text()
        assert said.startswith("The number differs between the processes (0, 1); expected the same")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_a_signal_ends_all_processes_with_one_line(tmp_path, sent):
    """torchrun passes it on. Its own words come besides; a process that it left behind would hold
    the file open to which all of them write, and the run's lock."""
    recipe, out = tmp_path / "recipe.toml", tmp_path / "out"
    recipe.write_text(RECIPE.replace("steps = 6", "steps = 100_000"))
    run = subprocess.Popen(
        [*TORCHRUN, "-m", "course_lib.train.pretrain", str(recipe), "--out", str(out),
         "--device", "cpu"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    began = time.monotonic()
    while not (out / RUN).exists() and run.poll() is None:
        assert time.monotonic() - began < AGAINST_HANGING
        time.sleep(0.1)
    run.send_signal(sent)
    said, _ = run.communicate(timeout=AGAINST_HANGING)
    lines = [line for line in said.splitlines() if line.startswith("pretrain: ")]
    assert len(lines) == 1, said
    assert re.fullmatch(
        r"pretrain: stopped at step .*; the same command goes on after.*run.safetensors\)", lines[0]
    )
    assert "KeyboardInterrupt" not in said and not list(out.glob("*.holder")), said
    with lock_file(out / RUN):
        assert read_log(out / LOG)


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize("size", [2, 4, 9])
def test_every_sequence_is_one_processs(size):
    rows = make_pairs(sentences(), SPECIAL, length=32)
    batches = pretraining_batches(rows, SPECIAL, batch_size=9)
    step = [batches(0), batches(1)]
    shares = [part_of(step, rank, size) for rank in range(size)]
    asked = sum(len(batch.targets["labels"]) for batch in step)
    for number, batch in enumerate(step):
        parts = [share[number] for share in shares]
        ids = torch.cat([part.inputs["input_ids"] for part in parts])
        assert torch.equal(ids, batch.inputs["input_ids"])  # each once, in order
        labels = torch.cat([part.targets["labels"] for part in parts])
        assert torch.equal(labels, batch.targets["labels"])
        if 9 % size:  # so that a mean of the parts' means would be wrong
            assert len({len(part.targets["labels"]) for part in parts}) > 1
        for part in parts:
            assert part.targets["num_labels"] == asked  # of both batches
            assert part.targets["num_next_sentence_label"] == 18


def test_more_processes_than_sequences_are_refused():
    rows = make_pairs(sentences(), SPECIAL, length=32)
    batch = pretraining_batches(rows, SPECIAL, batch_size=9)(0)
    with pytest.raises(ValueError, match="parts=10 was given for a batch of 9 sequences"):
        part_of([batch], 0, 10)


def test_one_process_is_alone_and_needs_no_accelerate():
    code = (
        "import sys; from course_lib.train.distributed import join; one = join('cpu'); "
        "print(type(one).__name__, one.rank, one.world_size, 'accelerate' in sys.modules)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "WORLD_SIZE"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["Distributed", "0", "1", "False"], done.stderr
    with pytest.raises(ValueError, match="--fsdp was given to one process"):
        join("cpu", fsdp=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    work(Path(sys.argv[1]))
