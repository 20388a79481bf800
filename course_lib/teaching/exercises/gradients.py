"""The last stage of an exercise through whose inputs a gradient must flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from .form import Answer, Exercise, Stage, copy_of
from .outputs import Numbers, Out, Wrong, short, text_of, without_gradient


def all_stages(exercise: Exercise) -> list[Stage]:
    """The exercise's stages, and that of the gradient where one is declared."""
    return [*exercise.stages, *([gradient_stage(exercise)] if exercise.gradient else [])]


def gradient_stage(exercise: Exercise) -> Stage:
    """Through which inputs the gradient flows, and how: asked on the last plain stage's cases."""
    cases = [stage for stage in exercise.stages if not stage.observe and not stage.ask][-1].cases
    outs = (exercise.returns,) if isinstance(exercise.returns, Out) else tuple(exercise.returns)

    def observe(function: Answer, *case: Any) -> Any:
        inputs = copy_of(case)
        named = zip(exercise.parameters, inputs, strict=False)
        leaves = _leaves([(name, x) for name, x in named], exercise.gradient)
        for _, x in leaves:
            x.requires_grad_()
        result = function(*inputs)
        _expect_still_leaves(leaves)
        loss = _weighed(result, exercise.solution(*inputs), outs, exercise.gradient)
        grads = _gradients(loss, [x for _, x in leaves])
        _expect_no_others(exercise, [name for name, _ in leaves], grads)
        pairs = list(zip(leaves, grads, strict=True))
        gradients = []
        for name in exercise.gradient:
            parts = [torch.zeros_like(x) if g is None else g for (of, x), g in pairs if of == name]
            gradients.append(
                parts[0] if len(parts) == 1 else torch.cat([g.flatten() for g in parts])
            )
        return tuple(gradients) if len(gradients) > 1 else gradients[0]

    returns = [Numbers(f"gradient of `{name}`") for name in exercise.gradient]
    return Stage("the gradient", cases, observe=observe, returns=returns)


def _leaves(named: Sequence[tuple[str, Any]], first: Sequence[str]) -> list[tuple[str, Tensor]]:
    """Every floating-point tensor among the inputs once, with its name, one of `first` if it can
    be."""
    leaves: list[tuple[str, Tensor]] = []

    def add(name: str, x: Any) -> None:
        if isinstance(x, Tensor) and x.is_floating_point():
            leaves.append((name, x))
        elif isinstance(x, (list, tuple)):
            for part in x:
                add(name, part)
        elif is_dataclass(x):
            for field in fields(x):
                add(f"{name}.{field.name}", getattr(x, field.name))

    for name, x in named:
        add(name, x)
    leaves.sort(key=lambda pair: pair[0] in first)
    return list({id(x): (name, x) for name, x in leaves}.values())  # of two names the last


def _expect_still_leaves(leaves: Sequence[tuple[str, Tensor]]) -> None:
    for name, x in leaves:
        if not (x.is_leaf and x.requires_grad):
            raise Wrong(
                f"Your function changes `{name}` in place (by a method such as "
                "`requires_grad_(…)`, whose name ends in _), so the caller's tensor changes too. "
                "Write `.detach()`, which leaves the input unchanged.",
                "writes",
            )


def _gradients(loss: Tensor, leaves: Sequence[Tensor]) -> Sequence[Tensor | None]:
    if not loss.requires_grad:
        return [None] * len(leaves)
    try:
        return torch.autograd.grad(loss, leaves, allow_unused=True)
    except RuntimeError as error:
        raise Wrong(
            "torch cannot compute the gradient of what your function returns. Is something that "
            "the gradient needs changed in place (`x[…] = …`, `+=`, a function whose name ends in "
            f"an underscore)? Make a new tensor instead. torch says: {short(text_of(error), 200)}",
            "gradient",
        ) from error


def _weighed(result: Any, right: Any, outs: Sequence[Out], inputs: Sequence[str]) -> Tensor:
    """One number of all that is returned, each entry with a weight of its own."""
    parts, rights = ((x,) if len(outs) == 1 else tuple(x) for x in (result, right))
    total = torch.zeros(())
    for part, expected, out in zip(parts, rights, outs, strict=True):
        if not isinstance(part, Tensor) or not part.requires_grad:
            if isinstance(expected, Tensor) and expected.requires_grad:
                raise without_gradient(out.name, inputs)
            continue
        weights = torch.linspace(0.5, 1.5, max(1, part.numel()), dtype=part.dtype)
        total = total + (part * weights.view(part.shape)).sum()
    return total


def _expect_no_others(
    exercise: Exercise, names: Sequence[str], grads: Sequence[Tensor | None]
) -> None:
    for name, grad in zip(names, grads, strict=True):
        if name not in exercise.gradient and grad is not None and bool((grad != 0).any()):
            raise Wrong(
                f"A gradient flows into `{name}`, but none should: call .detach() on it, or on "
                "what you compute from it.",
                "gradient",
            )
