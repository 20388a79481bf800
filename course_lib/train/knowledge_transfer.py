"""MobileBERT's three strategies: when layers learn from the teacher's, and when words are
predicted (Sun et al. 2020, section 3.5).

auxiliary: both at once, all steps. joint: first all layers learn together, then words. progressive:
first a layer at a time, from the bottom, then words. none: words alone. "Words" is pre-training
distillation: masked words, the teacher's answers to them and, with pairs, NSP.

Here every stage has AdamW, one rate, and its own climb and fall. The program trains with LAMB, and
while layers learn from layers, the rate is three times that of the last stage: it climbs in the
first tenth of a layer's turn, and then stays above nine tenths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.config import check_choice
from course_lib.heads import BertForMaskedLM, BertForPreTraining
from course_lib.objectives.distillation import Objective
from course_lib.objectives.knowledge_transfer import both_losses

from .distilling import DistillationPair
from .layer_rates import layer_of
from .loop import Batches, Callback, History, Scale, fit

STRATEGIES = ("none", "auxiliary", "joint", "progressive")
DONE = 0.1  # the program's rate of layers that have had their turn, beside the present one's


@dataclass(frozen=True)
class Stage:
    """A stretch of training. heads: whether it needs what stands on the encoders; scores: whether
    attention scores."""

    name: str
    objective: Objective
    steps: int
    heads: bool
    scores: bool
    scale: Scale | None = None


def stages(
    strategy: str,
    num_layers: int,
    transfer: Callable[..., Objective],
    words: Objective,
    *,
    steps: int,
    transfer_steps: int,
    done: float = DONE,
) -> list[Stage]:
    """The stages of a strategy, in order; `steps` in all.

    transfer: makes the loss of knowledge transfer, `transfer(layers=…)`. transfer_steps: how many
    steps the first part of joint and progressive has. done: the factor of the learning rate for
    layers below the present one, 0 to freeze them. While layers learn from layers, the embeddings
    stay fixed: they are the teacher's (`copy_all_but_blocks`).
    Raises ValueError for an unknown strategy, and for steps that cannot be divided up."""
    check_choice("strategy", strategy, STRATEGIES)
    if strategy == "none":
        return [Stage("words", words, steps, heads=True, scores=False)]
    if strategy == "auxiliary":
        both = both_losses(transfer(layers=None), words)
        return [Stage("both", both, steps, heads=True, scores=True)]
    if not 0 < transfer_steps < steps or transfer_steps % num_layers:
        raise ValueError(
            f"transfer_steps={transfer_steps} was given for {num_layers} layers and {steps} steps; "
            "expected a multiple of the layers, above 0 and below the steps."
        )
    last = Stage("words", words, steps - transfer_steps, heads=True, scores=False)
    if strategy == "joint":
        parts = {"layers": tuple(range(1, num_layers + 1))}
    else:
        parts = {f"layer {n}": (n,) for n in range(1, num_layers + 1)}
    first = [
        Stage(
            name, transfer(layers=layers), transfer_steps // len(parts), heads=False, scores=True,
            scale=turn(layers, num_layers, done),
        )
        for name, layers in parts.items()
    ]  # fmt: skip
    return [*first, last]


def turn(layers: Sequence[int], num_layers: int, done: float = DONE) -> Scale:
    """The learning rate's factor while `layers`, from 1, have their turn: 1 for these, `done` for
    layers below, 0 for layers above and for what is no layer."""

    def factor(name: str, step: int) -> float:
        layer = layer_of(name, num_layers) + 1
        if layer in layers:
            return 1.0
        return done if 1 <= layer < min(layers) else 0.0

    return factor


def pair_of(
    student: BertForMaskedLM | BertForPreTraining,
    teacher: BertForMaskedLM | BertForPreTraining,
    stage: Stage,
) -> DistillationPair:
    """Both networks as this stage trains them: whole, or their encoders alone."""
    if stage.heads:
        return DistillationPair(student, teacher, scores=stage.scores)
    return DistillationPair(student.encoder, teacher.encoder, scores=stage.scores)


def transfer_knowledge(
    student: BertForMaskedLM | BertForPreTraining,
    teacher: BertForMaskedLM | BertForPreTraining,
    batches: Batches,
    plan: Sequence[Stage],
    *,
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> dict[str, History]:
    """Train the student in the plan's stages, each with its own warm-up and decay; the loss curve
    of each by name. The teacher is frozen, for good.

    batches: step -> Batch, counted through all stages. settings: of `fit`, such as learning_rate,
    precision and seed. Raises ValueError for one checkpoint of several stages."""
    if settings.get("checkpoint") is not None and len(plan) > 1:
        raise ValueError(
            f"checkpoint={settings['checkpoint']!r} was given for {len(plan)} stages; expected a "
            "file for each. Call this a stage at a time, each with its own checkpoint and batches."
        )
    result, before = {}, 0
    for stage in plan:
        result[stage.name] = fit(
            pair_of(student, teacher, stage), stage.objective,
            lambda step, before=before: batches(before + step),  # type: ignore[misc]
            steps=stage.steps, scale=stage.scale, callbacks=callbacks, **settings,
        )  # fmt: skip
        before += stage.steps
    return result
