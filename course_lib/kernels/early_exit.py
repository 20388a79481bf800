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
Exit = Callable[[Tensor, Tensor | None], Tensor]  # x (B, T, H), mask (B, T) -> logits (B, C)
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
    logits, depths = [], []
    for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), start=1):
        x = layer(x, mask)
        if leave is not None:
            logits.append(leave(x, mask))
            depths.append(depth)
    result = first_confident(torch.stack(logits), confident)
    return Exited(result.logits, torch.tensor(depths, device=x.device)[result.layers_used - 1])


def first_confident(logits: Tensor, confident: Confident) -> Exited:
    """Each text's answer where all exits have answered: of its first confident exit, or of the last
    one. logits (L, B, C), one exit a layer."""
    sure = torch.stack(
        [confident(of_one_exit) for of_one_exit in logits[:-1]]
        + [logits.new_ones(logits.shape[1], dtype=torch.bool)]
    )  # (L, B)
    first = sure.int().argmax(dim=0)  # (B,), the first one that is true
    rows = torch.arange(logits.shape[1], device=logits.device)
    return Exited(logits[first, rows], first + 1)


@torch.no_grad()
def early_exit(
    x: Tensor,
    layers: Sequence[Layer],
    exits: Sequence[Exit | None],
    confident: Confident,
    mask: Tensor | None = None,
) -> Exited:
    """The same, but texts leave the batch when they are done; later layers compute the rest only.

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
        logits = leave(x, mask)
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


def normalised_entropy(logits: Tensor) -> Tensor:
    """The uncertainty of an answer, between 0 and 1: entropy over log C (Liu et al. 2020, equation
    7); logits (…, C) -> (…).

    Raises ValueError for fewer than two classes."""
    if logits.shape[-1] < 2:
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} were given; expected two classes or more: "
            "with one, there is nothing to be unsure about."
        )
    p = logits.float().softmax(dim=-1)  # (…, C)
    # Rounded, that of equal probabilities may come out above 1, and nothing else does.
    return (torch.special.entr(p).sum(dim=-1) / math.log(p.shape[-1])).clamp(max=1)


def entropy_at_most(speed: float) -> Confident:
    """FastBERT's rule: leave where the normalised entropy of the answer is at most `speed`. 1: all
    texts leave at the first exit; the higher, the sooner.

    At most, as in the authors' run_fastbert.py; the paper (section 3.3) and their package fastbert
    say below, which differs at the boundary alone. Raises ValueError for a speed outside 0 to 1."""
    _check_share(speed)
    return lambda logits: normalised_entropy(logits) <= speed


def probability_above(threshold: float) -> Confident:
    """Leave where the likeliest class has a probability above `threshold`. 1: never; the higher,
    the later. With two classes it is the entropy rule at another threshold; with more it is not.

    Raises ValueError for a threshold outside 0 to 1."""
    _check_share(threshold)
    return lambda logits: logits.float().softmax(dim=-1).amax(dim=-1) > threshold


def _check_share(threshold: float) -> None:
    if not 0 <= threshold <= 1:
        raise ValueError(
            f"a speed or threshold of {threshold!r} was given; expected a number from 0 to 1: a "
            "fraction of the largest possible entropy, or a probability."
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
