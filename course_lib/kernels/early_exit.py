"""Early exit: a text leaves a stack of layers as soon as a classifier on the way is sure of it
(FastBERT, Liu et al. 2020, section 3.3), and a batch shrinks as its texts leave.

B batch, T tokens, H hidden, C classes. Papers count the FLOPs saved; time is saved only if
texts that are done are no longer computed. So the fast twin takes them out of the batch. Copying
what remains costs next to nothing beside a layer, so this is done after every exit at which a text
leaves. For inference only: nothing here keeps gradients, as which layers a text goes through is a
decision, not a smooth function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Layer = Callable[[Tensor, Tensor | None], Tensor]  # x (B, T, H), mask (B, T) -> x
Exit = Callable[[Tensor], Tensor]  # x (B, T, H) -> logits (B, C)
Confident = Callable[[Tensor], Tensor]  # logits (B, C) -> (B,), true where the answer will do


@dataclass(frozen=True)
class Exited:
    """What a stack with exits answers."""

    logits: Tensor  # (B, C), of the exit each text took
    layers_used: Tensor  # (B,), from 1 to L


@torch.no_grad()
def early_exit_reference(
    x: Tensor,
    layers: Sequence[Layer],
    exits: Sequence[Exit | None],
    confident: Confident,
    mask: Tensor | None = None,
) -> Exited:
    """All layers for all texts; then each text takes the answer of its first confident exit, or
    that of the last one.

    x (B, T, H), mask (B, T), 1 real and 0 padding. exits: one a layer, None where there is none;
    the last layer must have one. Raises ValueError for an empty batch, and for exits that do not
    fit the layers."""
    _check(x, layers, exits, mask)
    logits, depths, sure = [], [], []
    for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), start=1):
        x = layer(x, mask)
        if leave is not None:
            logits.append(leave(x))
            sure.append(confident(logits[-1]))
            depths.append(depth)
    sure[-1] = torch.ones_like(sure[-1])
    first = torch.stack(sure).int().argmax(dim=0)  # (B,), the first one that is true
    rows = torch.arange(len(x), device=x.device)
    used = torch.tensor(depths, device=x.device)[first]
    return Exited(torch.stack(logits)[first, rows], used)


@torch.no_grad()
def early_exit(
    x: Tensor,
    layers: Sequence[Layer],
    exits: Sequence[Exit | None],
    confident: Confident,
    mask: Tensor | None = None,
) -> Exited:
    """The same; texts leave the batch when they are done, and later layers see the rest only.

    `confident` must decide for each text by itself, as its neighbours are others than in the
    reference. A smaller batch may round differently, so a text exactly at a threshold may go either
    way."""
    _check(x, layers, exits, mask)
    left = torch.arange(len(x), device=x.device)  # the texts still under way
    used = torch.full_like(left, len(layers))
    answers: Tensor | None = None
    for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), start=1):
        x = layer(x, mask)
        if leave is None:
            continue
        logits = leave(x)
        if answers is None:
            answers = torch.empty_like(logits)
        done = confident(logits)
        if depth == len(layers) or bool(done.all()):
            answers[left], used[left] = logits, depth
            break
        if bool(done.any()):
            going, stay = done.nonzero().squeeze(1), (~done).nonzero().squeeze(1)
            answers[left[going]], used[left[going]] = logits[going], depth
            left, x = left[stay], x[stay]
            mask = None if mask is None else mask[stay]
    assert answers is not None  # the last layer has an exit
    return Exited(answers, used)


def entropy_below(threshold: float) -> Confident:
    """FastBERT's rule: leave where the entropy of the answer, divided by log C so that it lies
    between 0 and 1, is below `threshold`, the paper's "speed". 0: never; the higher, the sooner.

    Raises ValueError for a threshold outside 0 to 1, and, when asked, for fewer than two
    classes."""
    _check_share(threshold)

    def confident(logits: Tensor) -> Tensor:
        if logits.shape[-1] < 2:
            raise ValueError(
                f"logits of shape {tuple(logits.shape)} were given; expected two classes or more: "
                "with one, there is nothing to be unsure about."
            )
        p = logits.float().softmax(dim=-1)  # (B, C)
        uncertainty = torch.special.entr(p).sum(dim=-1) / math.log(p.shape[-1])
        return uncertainty < threshold

    return confident


def probability_above(threshold: float) -> Confident:
    """Leave where the likeliest class has a probability above `threshold`. 1: never; the higher,
    the later. With two classes it is the entropy rule at another threshold; with more it is not.

    Raises ValueError for a threshold outside 0 to 1."""
    _check_share(threshold)
    return lambda logits: logits.float().softmax(dim=-1).amax(dim=-1) > threshold


def _check_share(threshold: float) -> None:
    if not 0 <= threshold <= 1:
        raise ValueError(
            f"threshold={threshold!r} was given; expected a number from 0 to 1: a share of the "
            "largest possible entropy, or a probability."
        )


def _check(
    x: Tensor, layers: Sequence[Layer], exits: Sequence[Exit | None], mask: Tensor | None
) -> None:
    if not len(x):
        raise ValueError(f"x of shape {tuple(x.shape)} was given; expected one text at least.")
    if not layers or len(exits) != len(layers) or exits[-1] is None:
        raise ValueError(
            f"{len(layers)} layers and {len(exits)} exits were given, the last one "
            f"{'missing' if not exits or exits[-1] is None else 'there'}; expected one exit a "
            "layer, None where a layer has none, and one after the last layer, where every text "
            "must leave."
        )
    if mask is not None and mask.shape != x.shape[:2]:
        raise ValueError(
            f"a mask of shape {tuple(mask.shape)} was given for x of shape {tuple(x.shape)}; "
            f"expected {tuple(x.shape[:2])}: 1 at real tokens, 0 at padding."
        )
