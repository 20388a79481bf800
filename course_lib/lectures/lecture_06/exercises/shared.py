"""What the exercises of this lecture share: combining slips, reading a loss, keeping the inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.legacy import Answer, Mistake, Suspect, call

# A known slip: its key -> (what to say of it, the settings it changes).
Slips = Mapping[str, tuple[str, Mapping[str, Any]]]


def suspects_of(
    slips: Slips, compute: Callable[..., Any], together: Collection[str] | None = None
) -> list[Suspect]:
    """Every slip alone, then every two (of `together`, if given) that change different settings."""
    pairs = [
        (a, b)
        for a, b in combinations(slips if together is None else together, 2)
        if not set(slips[a][1]) & set(slips[b][1])
    ]
    return [_suspect(keys, slips, compute) for keys in [*((key,) for key in slips), *pairs]]


def _suspect(keys: tuple[str, ...], slips: Slips, compute: Callable[..., Any]) -> Suspect:
    changed = {name: value for key in keys for name, value in slips[key][1].items()}
    said = "\nAnd: ".join(slips[key][0] for key in keys)
    return Suspect(" + ".join(keys), said, lambda *case: compute(*case, **changed))


def one_loss(x: Any) -> Tensor:
    """The result as a tensor of one number; Mistake, in words, for anything else."""
    if isinstance(x, (tuple, list)):
        raise Mistake(
            "several values",
            f"Your function returned {len(x)} values in a {type(x).__name__}; expected one number, "
            "the loss.",
        )
    if not isinstance(x, (Tensor, float, int)):
        raise Mistake(
            "wrong type", f"Your function returned a {type(x).__name__}; expected one number."
        )
    found = torch.as_tensor(x)
    if found.numel() != 1:
        raise Mistake(
            "not reduced",
            f"Your result has shape {tuple(found.shape)}; expected one number, a mean.",
        )
    return found.reshape(())


def same_loss(mine: Any, theirs: Tensor, tol: float = 1e-6) -> bool:
    """Whether two losses agree, within tol of the larger of 1 and the right one."""
    a, b = one_loss(mine).detach().double(), torch.as_tensor(theirs).detach().double()
    return bool(torch.isfinite(a)) and float((a - b).abs()) <= tol * max(1.0, float(b.abs()))


def call_keeping(answer: Answer, *inputs: Any) -> tuple[Any, tuple[Any, ...]]:
    """The answer's result, and the very objects it was given: copies, with gradients of their
    own."""
    kept: list[tuple[Any, ...]] = []

    def noted(*given: Any) -> Any:
        kept.append(given)
        return answer(*given)

    return call(noted, *inputs), kept[0]


def gradient(loss: Tensor, of: Tensor) -> Tensor:
    """The gradient of a loss; zero where none arrives."""
    (found,) = torch.autograd.grad(loss, of, allow_unused=True, retain_graph=True)
    return torch.zeros_like(of) if found is None else found
