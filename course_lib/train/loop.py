"""The training loop. It introduces a model to an objective, and reports through callbacks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import check_number, check_size
from course_lib.files import lock_file
from course_lib.objectives.sequences import Batch

from .allocator import keep_freed_memory
from .distributed import ONE_PROCESS, BorrowedDevice, Distributed
from .optimizers import make_optimizer
from .precision import choose_precision, computing_in, loss_scaler
from .schedule import check_training, warmup_then_linear
from .state import check_finite, load_run, save_run, whole_tensor

Objective = Callable[[Any, Mapping[str, Tensor]], dict[str, Tensor]]
Batches = Callable[[int], Batch]
Callback = Callable[["Report"], None]
Scale = Callable[[str, int], float]  # of a parameter's name and the step


@dataclass(frozen=True)
class Report:
    """What a callback hears after a step."""

    step: int  # steps done so far
    steps: int  # steps in all
    losses: Mapping[str, float]  # of this step's batch, all parts of it, in nats
    tokens_per_second: float  # since the run (or its resumption) began, padding counted
    model: nn.Module


@dataclass
class History:
    """The loss curve: losses["total"][i] belongs to step i + 1."""

    losses: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    tokens: int = 0  # positions seen, padding counted
    precision: str = "float32"
    device: str = "cpu"

    @property
    def steps(self) -> list[int]:
        return list(range(1, len(self.losses.get("total", [])) + 1))

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.seconds else 0.0

    def add(self, losses: Mapping[str, float]) -> None:
        for name, value in losses.items():
            self.losses.setdefault(name, []).append(value)


def fit(
    model: nn.Module,
    objective: Objective,
    batches: Batches,
    *,
    steps: int,
    learning_rate: float = 1e-3,
    warmup: float = 0.1,
    decay: float = 1.0,
    released_schedule: bool = False,
    weight_decay: float = 0.01,
    clip: float | None = 1.0,
    betas: tuple[float, float] = (0.9, 0.999),
    optimizer: str = "adamw",
    accumulate: int = 1,
    precision: str = "auto",
    device: str = "auto",
    seed: int = 0,
    scale: Scale | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 0,
    distributed: Distributed | None = None,
) -> History:
    """Train `model` for `steps` steps; returns the loss curve.

    batches(step) gives the step's Batch, objective(outputs, targets) its losses, "total" among
    them. With `accumulate=n` each step adds the gradients of n batches, step·n and those after it,
    and moves the weights once, as for one batch n times as large: the objective must divide by the
    count it is given (targets["num_labels"] …), as the course's own do. clip: the longest gradient
    that moves the weights as it is, a longer one is shortened to it; 0 or None: no clipping. betas:
    how slowly Adam forgets gradients and their squares. optimizer: "adamw", or "muon" for the
    matrices in blocks (optimizers.py). warmup, decay, released_schedule: how the learning rate
    climbs, stays and falls (`warmup_then_linear`).

    scale(name, step): a factor of the learning rate for the parameter of this name; 0 keeps it as
    it is. Layer-wise rates and gradual unfreezing are written with it (see layer_rates.py).

    With `checkpoint` the run is saved every `checkpoint_every` steps and at the end, and a run
    found there goes on where it stopped; no other process may write it meanwhile. A callback that
    has `memory()` (a dictionary for JSON) is given it back, as `remember(steps done, memory,
    losses)`, before the first step. On one machine, with one thread count and one precision,
    the result is the same to the last bit, interrupted or not. Raises ValueError for settings that
    make no sense, before anything else, and for a damaged or foreign checkpoint; FloatingPointError
    when loss, gradient or weights are no longer finite numbers, before they are saved.

    device: "cpu", "cuda", "mps", or "auto": where the model is, and for one on the CPU what
    choosing.TRAINING says of one as large. When a callback looks at the model, and afterwards, it
    is back where it was. What the objective reads besides outputs and targets must be there too.

    distributed: the processes that train together, all of which call this (see distributed.py), on
    its device. Each computes on its sequences of every batch; losses, clipping and counts are those
    of whole batches, so several follow what one does, up to rounding and to dropout. One of them
    saves; all hear the report.

    The process keeps the memory that a step frees for the next one (see allocator.py, which says
    how to switch that off)."""
    recipe: dict[str, Any] = {
        "steps": steps, "learning_rate": learning_rate, "warmup": warmup, "clip": clip,
        "weight_decay": weight_decay, "betas": betas, "accumulate": accumulate,
        "precision": precision, "seed": seed,
    }  # fmt: skip
    later = {"decay": decay, "optimizer": optimizer, "released_schedule": released_schedule}
    check_training(recipe | later)
    check_size("checkpoint_every", checkpoint_every, 0)
    if callable(callbacks) or not all(map(callable, callbacks)):
        raise ValueError(f"callbacks={callbacks!r:.60} was given; expected a list of functions.")
    keep_freed_memory()
    distributed = distributed or BorrowedDevice(model, device)
    history = History(
        precision=choose_precision(precision, distributed.device.type),
        device=distributed.device.type,
    )
    scaler = loss_scaler(history.precision, distributed.device.type)
    check_sharded(history.precision, distributed, optimizer)
    prepared = distributed.prepare(model)
    mover = make_optimizer(
        model, learning_rate, weight_decay, betas, name=optimizer, one_by_one=scale is not None
    )
    recipe |= {"clip": clip or 0.0, "betas": list(betas), "precision": history.precision}
    later["scaled"] = bool(scale)  # a run without does not go on with one that has it
    usual = {"optimizer": "adamw", "decay": 1, "released_schedule": False, "scaled": False}
    recipe |= {name: value for name, value in later.items() if value != usual[name]}
    writes, done = checkpoint is not None and distributed.is_main_process, 0
    lock = lock_file(checkpoint) if writes else nullcontext(lambda: None)  # type: ignore[arg-type]
    with lock as check, distributed.on_device(model):
        if checkpoint is not None:
            done, history.losses, memories = load_run(checkpoint, model, mover, recipe, scaler)
            distributed.check_same(f"The step at which {checkpoint} stopped", done)
            for name, callback in _with_memory(callbacks).items():
                callback.remember(done, memories.get(name, {}), history.losses)
        model.train()
        began = time.perf_counter()
        for step in range(done, steps):
            # Dropout's numbers, also after a resumption.
            torch.manual_seed(distributed.seed(seed * 1_000_003 + step))
            rate = warmup_then_linear(step, steps, warmup, released_schedule, decay)
            set_learning_rate(mover, learning_rate * rate, scale, step)
            parts = [batches(step * accumulate + part) for part in range(accumulate)]
            losses = distributed_step(
                prepared, objective, mover, parts, clip, history.precision, distributed, scaler
            )
            history.add(losses)
            history.tokens += sum(_positions(part) for part in parts)
            history.seconds = time.perf_counter() - began
            report = Report(step + 1, steps, losses, history.tokens_per_second, model)
            _notify(callbacks, report, distributed)
            if checkpoint is not None and is_due(step + 1, steps, checkpoint_every):
                check()
                memories = {name: c.memory() for name, c in _with_memory(callbacks).items()}
                save_run(
                    checkpoint, model, mover, history.losses, step + 1, recipe, scaler,
                    distributed.is_main_process, memories,
                )  # fmt: skip
    model.eval()
    return history


def train_step(
    model: nn.Module,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    clip: float | None = 1.0,
    precision: str = "float32",
) -> dict[str, float]:
    """Forward, loss, backward, clip, update, in one process: one step, and its losses in nats.

    clip: the longest gradient, 0 or None for any. Raises FloatingPointError, and moves nothing,
    when loss or gradient are no finite numbers. `fit` uses the more general `distributed_step`."""
    optimizer.zero_grad()
    with computing_in(precision, next(model.parameters()).device.type):
        outputs = model(**batch.inputs)
    losses = objective(outputs, batch.targets)
    check_finite("loss", losses["total"].item())
    losses["total"].backward()
    length = nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf)
    check_finite("gradient's length", length.item())
    optimizer.step()
    return {name: loss.item() for name, loss in losses.items()}


def distributed_step(
    model: nn.Module,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    batch: Batch | Sequence[Batch],
    clip: float | None,
    precision: str,
    distributed: Distributed = ONE_PROCESS,
    scaler: torch.amp.GradScaler | None = None,
) -> dict[str, float]:
    """`train_step` of one of several processes, or of one alone, with its errors; but gradients
    that overflow in float16 are the scaler's to deal with.

    Several batches are the parts of one large batch: each is divided by the count of all, so the
    gradients add up to that of the whole, however unequal the parts are; so do those of several
    processes, each of which computes on sequences of its own. scaler: `loss_scaler`'s, kept from
    step to step; None: one that changes nothing."""
    scaler = scaler or loss_scaler("float32", distributed.device.type)
    optimizer.zero_grad()  # what a step that failed has left
    parts = distributed.local_batches([batch] if isinstance(batch, Batch) else list(batch))
    all_losses = []
    for number, part in enumerate(parts, start=1):
        with distributed.sync_gradients(model, last=number == len(parts)):
            with computing_in(precision, distributed.device.type):
                outputs = model(**part.inputs)
            losses = objective(outputs, part.targets)
            distributed.backward(scaler.scale(losses["total"]))
        all_losses.append({name: loss.detach() for name, loss in losses.items()})
    numbers = {name: sum(losses[name].item() for losses in all_losses) for name in all_losses[0]}
    numbers = distributed.sum_over_processes(numbers)
    check_finite("loss", numbers["total"])
    scaler.unscale_(optimizer)
    length = nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf)
    if not scaler.is_enabled():
        check_finite("gradient's length", whole_tensor(length).item())
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return numbers


def check_sharded(precision: str, distributed: Distributed, optimizer: str = "adamw") -> None:
    """Raise ValueError for float16 and Muon where each process keeps a part of the weights."""
    if not distributed.sharded:
        return
    if precision == "float16":
        raise ValueError(
            "float16 was chosen for weights that are shared out (--fsdp); expected float32 or "
            'bfloat16. Set precision = "float32" under [training].'
        )
    if optimizer == "muon":
        raise ValueError(
            'optimizer="muon" was chosen for weights that are shared out (--fsdp); it reads whole '
            'matrices. Train without --fsdp, or set optimizer = "adamw" under [training].'
        )


def set_learning_rate(
    optimizer: torch.optim.Optimizer, rate: float, scale: Scale | None = None, step: int = 0
) -> None:
    for group in optimizer.param_groups:
        factor = scale(group["name"], step) if scale else 1.0
        check_number(f"scale({group.get('name')!r}, {step})", factor)
        group["lr"] = rate * factor


def _notify(callbacks: Sequence[Callback], report: Report, distributed: Distributed) -> None:
    """Call each callback whose turn it is, every `every` steps (0: none of them); the last step is
    everyone's turn. The model is where it was before the run meanwhile, unless all of them
    say `reads_model = False`."""
    steps = report.step, report.steps
    due = [callback for callback in callbacks if is_due(*steps, getattr(callback, "every", 1))]
    reads = any(getattr(callback, "reads_model", True) for callback in due)
    with distributed.on_cpu(report.model) if reads else nullcontext():
        for callback in due:
            callback(report)


def _with_memory(callbacks: Sequence[Callback]) -> dict[str, Any]:
    """The callbacks that remember something, by class; of two of a class the second as "Name 2"."""
    ours = [callback for callback in callbacks if hasattr(callback, "remember")]
    names = [type(callback).__name__ for callback in ours]
    again = [names[:at].count(name) for at, name in enumerate(names)]
    return {n + f" {k + 1}" * (k > 0): c for n, k, c in zip(names, again, ours, strict=True)}


def _positions(batch: Batch) -> int:
    """How many positions a batch holds, padding counted; a word of characters is one, and so is a
    picture."""
    inputs = batch.inputs
    positions = inputs.get("attention_mask", inputs.get("input_ids"))
    return len(inputs["pixel_values"]) if positions is None else positions.numel()


def is_due(step: int, steps: int, every: int) -> bool:
    """Whether something has its turn: every so many steps and at the last; 0: there alone."""
    return step == steps or (every > 0 and step % every == 0)
