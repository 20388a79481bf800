"""What exercises of several lectures share: naming a suspect, and reading a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

from torch import Tensor

from .legacy import (
    Answer,
    AnswerRaised,
    Mistake,
    Suspect,
    Unanswered,
    _safely,
    call,
    find_suspect,
)

Case = tuple[Any, ...]


def name_suspect(
    answer: Answer,
    case: Case,
    pools: Sequence[Sequence[Case]],
    suspects: Sequence[Suspect],
    same: Callable[[Any, Any, Case], bool],
) -> Suspect | None:
    """The first suspect that agrees on the failed case and all of a pool; pools in order.

    The first pool is the widest: there, suspects that agree on easy inputs part. Where the answer
    agrees with none of them on it, or cannot do it at all yet, the next, narrower one is asked.
    """
    with suppress(AnswerRaised, Mistake, Unanswered):
        given = call(answer, *case)  # most suspects differ here already: they are asked only once
        suspects = [suspect for suspect in suspects if _safely(same, given, suspect, case)]
    for pool in pools:
        with suppress(AnswerRaised, Mistake, Unanswered):
            if found := find_suspect(answer, [case, *pool], suspects, same):
                return found
    return None


def told(found: Suspect | None, example: str) -> Mistake:
    """The mistake by its name with the example that shows it, or the example alone."""
    return Mistake(found.key, f"{found.message}\n{example}") if found else Mistake("", example)


def one_number(x: Any, what: str) -> float:
    """The result as a float, from any kind of number or a tensor of one; Mistake otherwise."""
    if isinstance(x, Tensor) and x.numel() == 1:
        x = x.item()
    if isinstance(x, bool) or not isinstance(x, Real):  # numpy's numbers are welcome
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r:.60} ({type(x).__name__}); expected one number, {what}.",
        )
    return float(x)
