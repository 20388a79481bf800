"""Exercise 07.4: where λ belongs. What both losses are before anything is learned.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import Any

from torch import Tensor

from course_lib.config import published
from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
)

Case = tuple[int, float]  # words in the vocabulary, λ
Pair = tuple[float, float]  # total loss, the discriminator's share of it


def at_the_start(V: int, weight: float) -> Pair:
    """L_MLM + λ · L_Disc before training, in nats, and the share of its second term (section 2)."""
    mlm = log(V)  # a fresh generator gives every word the chance 1/V
    disc = log(2)  # a fresh discriminator gives both answers the chance 1/2
    total = mlm + weight * disc
    return total, weight * disc / total


# ---------------------------------------------------------------- known wrong answers


def _of(terms: Callable[[int, float], Pair], scale: float = 1.0) -> Answer:
    """terms(V, λ): the two terms, each with its weight; scale: on the total alone."""

    def answer(V: int, weight: float) -> Pair:
        mlm, disc = terms(V, weight)
        return scale * (mlm + disc), disc / (mlm + disc)

    return answer


def _right(V: int, weight: float) -> Pair:
    return log(V), weight * log(2)


WRONG_SIDE = (
    "λ stands before the generator's loss (as one lecture prints it). The paper has it before the "
    "discriminator's: L_MLM + λ · L_Disc. Look at the share: with λ on the wrong side the network "
    "that is kept hardly counts."
)
BITS = "The total is in bits, with logarithms to base 2. The losses of this course are in nats: ln."

WEIGHING_SUSPECTS = (
    Suspect("λ on the generator", WRONG_SIDE, _of(lambda V, w: (w * log(V), log(2)))),
    Suspect(
        "λ on the generator, in bits",
        f"{WRONG_SIDE} {BITS}",
        _of(lambda V, w: (w * log(V), log(2)), 1 / log(2)),
    ),
    Suspect("bits", BITS, _of(_right, 1 / log(2))),
    Suspect(
        "base ten",
        "The total uses logarithms to base 10. The losses of this course are in nats: ln.",
        _of(_right, 1 / log(10)),
    ),
    Suspect(
        "averaged",
        "The two terms are averaged; they are added.",
        _of(_right, 0.5),
    ),
    Suspect(
        "weighted mean",
        "The sum is divided by the weights, 1 + λ. ELECTRA's loss is the sum itself; a mean would "
        "shrink the generator's steps by 51.",
        lambda V, w: (at_the_start(V, w)[0] / (1 + w), at_the_start(V, w)[1]),
    ),
    Suspect(
        "λ and 1 − λ",
        "The weights are taken as λ and 1 − λ, as in distillation. Here the generator's loss has "
        "the weight 1 and the discriminator's the weight λ.",
        _of(lambda V, w: ((1 - w) * log(V), w * log(2))),
    ),
    Suspect(
        "λ ignored",
        "λ has no effect: the discriminator's loss counts λ times.",
        _of(lambda V, w: (log(V), log(2))),
    ),
    Suspect(
        "λ on both",
        "λ multiplies both losses; then it weighs nothing against nothing. Only the "
        "discriminator's loss has it.",
        _of(lambda V, w: (w * log(V), w * log(2))),
    ),
    Suspect(
        "forgets the generator",
        "Only the discriminator's loss is in your total. The generator learns too, from its own "
        "loss: add ln V.",
        lambda V, w: (w * log(2), 1.0),
    ),
    Suspect(
        "forgets the generator",
        "The generator's loss is missing from your total: add ln V.",
        lambda V, w: (w * log(2), at_the_start(V, w)[1]),
    ),
    Suspect(
        "forgets the discriminator",
        "Only the generator's loss is in your total: add λ · ln 2.",
        lambda V, w: (log(V), 0.0),
    ),
    Suspect(
        "forgets the discriminator",
        "The discriminator's loss is missing from your total: add λ · ln 2.",
        lambda V, w: (log(V), at_the_start(V, w)[1]),
    ),
    Suspect(
        "generator's share",
        "The share is that of the generator; the discriminator's is one minus it.",
        lambda V, w: (at_the_start(V, w)[0], 1 - at_the_start(V, w)[1]),
    ),
    Suspect(
        "ratio",
        "The second number is the one term divided by the other. A share is a term divided by the "
        "total.",
        lambda V, w: (at_the_start(V, w)[0], w * log(2) / log(V)),
    ),
    Suspect(
        "share without λ",
        "The total is right, but the share is that of the bare losses. The term that enters the "
        "total is λ · ln 2.",
        lambda V, w: (at_the_start(V, w)[0], log(2) / (log(V) + log(2))),
    ),
    Suspect(
        "half weighted share",
        "The share is ln 2 divided by the total: λ is missing above the line.",
        lambda V, w: (at_the_start(V, w)[0], log(2) / at_the_start(V, w)[0]),
    ),
    Suspect(
        "percent",
        "The share is in percent; expected a number from 0 to 1.",
        lambda V, w: (at_the_start(V, w)[0], 100 * at_the_start(V, w)[1]),
    ),
    Suspect(
        "order",
        "The two numbers are right, in the other order: first the total, then the share.",
        lambda V, w: at_the_start(V, w)[::-1],
    ),
    Suspect(
        "the two terms",
        "You return the two terms. Expected their sum, and the second one's share of it.",
        lambda V, w: (log(V), w * log(2)),
    ),
    Suspect(
        "discriminator chooses among V",
        "The discriminator's loss is taken as ln V. It chooses between two answers, replaced or "
        "original: ln 2.",
        _of(lambda V, w: (log(V), w * log(V))),
    ),
    Suspect(
        "knows the rate",
        "The discriminator is taken to know already that about 15% of the tokens are replaced. "
        "Fresh weights give scores near zero: both answers have the chance 1/2.",
        _of(lambda V, w: (log(V), w * -(0.15 * log(0.15) + 0.85 * log(0.85)))),
    ),
    Suspect(
        "no logarithm",
        "These are chances, 1 − 1/V and 1/2, without a logarithm: a loss is −ln P.",
        _of(lambda V, w: (1 - 1 / V, w / 2)),
    ),
    Suspect(
        "sign",
        "The sign is wrong: a loss is −ln P, and ln(1/V) is negative.",
        _of(_right, -1.0),
    ),
)


# ---------------------------------------------------------------- stages


def _drawn(draw: Draw, weights: Sequence[float] = ()) -> list[Case]:
    drawn = (draw.integer(2, 79) + 0.5 for _ in range(6))
    return [(draw.integer(50, 60_000), weight) for weight in weights or drawn]


def _ask_start(cases: Callable[[Draw], list[Case]]) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case)), at_the_start(*case)
            if _agree(given, right):
                continue
            found = name_suspect(
                answer, case, [_drawn(draw), cases(draw)], WEIGHING_SUSPECTS, _same
            )
            said = (
                f"For V={case[0]:,} and λ={case[1]:g} you have {given[0]:.4f} and {given[1]:.4f}; "
                f"it is {right[0]:.4f} and {right[1]:.4f}."
            )
            raise told(found, said)

    return ask


def _read(x: Any) -> Pair:
    if isinstance(x, Tensor) and x.numel() == 2:
        x = x.flatten().tolist()
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r:.60} ({type(x).__name__}); expected two numbers, the "
            "total loss and the discriminator's share of it.",
        )
    return one_number(x[0], "the total loss"), one_number(x[1], "the share")


def _agree(mine: Pair, theirs: Pair) -> bool:
    return all(close(a, b, 1e-5) for a, b in zip(mine, theirs, strict=True))


def _same(mine: Any, theirs: Pair, _case: Case) -> bool:
    return _agree(_read(mine), theirs)


def _published(_draw: Draw) -> list[Case]:
    return [(published("bert", "base").vocab_size, 50.0)]


WEIGHING = Exercise(
    id="07.4",
    title="Where λ belongs",
    purpose="to see which network a weight of 50 serves",
    difficulty=2,
    minutes=8,
    signature="my_start(V, weight)",
    statement=(
        "ELECTRA makes one number small, made of two mean losses: the generator's, and `weight` "
        "(λ) times the discriminator's. Before any training neither network knows anything: the "
        "generator gives each of `V` words the same chance, the discriminator gives both of its "
        "answers the same chance. Return two numbers: the total loss at that moment, in nats, and "
        "the share of it, from 0 to 1, that is the discriminator's term."
    ),
    hints=(
        "A loss is −ln P(the right answer). What is P for one of V equal chances? For one of two?",
        "ln V and ln 2. math.log is the natural logarithm.",
        "total = ln V + λ · ln 2; the share is λ · ln 2 divided by the total.",
        "V = 8 and λ = 3: 3 ln 2 + 3 ln 2 = 4.1589, and the share is one half.",
    ),
    solution=at_the_start,
    see="course_lib.objectives.replaced_tokens.electra_loss (disc_weight is λ)",
    stages=(
        Check("λ = 1", _ask_start(lambda draw: _drawn(draw, (1.0, 1.0)))),
        Check("other weights", _ask_start(_drawn)),
        Check("30,522 words and λ = 50, as published", _ask_start(_published)),
    ),
)
