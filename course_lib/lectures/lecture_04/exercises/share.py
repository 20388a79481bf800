"""Exercise 04.2: how many of a sequence's words are ever selected for prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Number


def fraction_selected(length: int, count: int, epochs: int, copies: int | None) -> float:
    """The expected fraction of words that are selected at least once (section 4.1)."""
    words = length - 2  # [CLS] and [SEP] are never selected
    draws = epochs if copies is None else min(epochs, copies)
    return 1 - (1 - count / words) ** draws


def sequence(draw: Draw) -> tuple[int, int]:
    """Tokens and selected positions; a sixth of the words or so, never exactly 15%."""
    length = draw.integer(12, 130)
    return length, max(1, round(0.15 * length)) + draw.integer(0, 1)


def cases(epochs: Sequence[int], *copies: int | None) -> Callable[[Draw], list[Case]]:
    return lambda draw: [(*sequence(draw), p, c) for c in copies for p in epochs]


def sixty(draw: Draw) -> list[Case]:
    several = (None, 1, 2, 4, 10, 25)
    return [(*sequence(draw), draw.integer(1, 60), draw.python.choice(several)) for _ in range(60)]


DRAWN = "epochs if copies is None else min(epochs, copies)"
RESULT = "1 - (1 - count / words) ** draws"

SHARE = Exercise(
    **written("04.2"),
    solution=fraction_selected,
    returns=Number("fraction"),
    see="course_lib.teaching.coverage.coverage (for a given rate) and simulated_coverage",
    when_raised=(("NoneType", "copies can be None: every epoch then has a draw of its own."),),
    stages=(
        Stage("one epoch", cases((1, 1, 1), 1)),
        Stage("a new mask in every epoch", cases((1, 2, 3, 7, 40), None)),
        Stage("one copy for ever", cases((1, 2, 3, 40), 1)),
        Stage("no more epochs than copies", cases((1, 2, 5, 9, 10), 10)),
        Stage("the copies are read again", cases((3, 10, 11, 14, 40), 10, 4)),
        Stage("sixty drawn sequences", sixty),
    ),
    mistakes=(
        Edit("length - 2", "length", "You divide the selected positions by all tokens of the "
             "sequence. [CLS] and [SEP] are never selected: divide by the number of words, two "
             "fewer."),
        Edit("length - 2", "length - 1", "You subtract only one special token. A sequence has two, "
             "[CLS] and [SEP]: divide by length − 2."),
        Edit("count / words", "0.15", "You take the rate as 15%. A whole number of positions is "
             "selected, and `count` gives it. As a fraction of the words it is a little more than "
             "15%."),
        Edit(RESULT, "count / words * draws", "You add up the fractions of the epochs. Their sum "
             "passes 1 sooner or later, because a word selected twice is counted twice. Ask what "
             "fraction has never been selected: each draw multiplies it by the same factor."),
        Edit(RESULT, "min(1.0, count / words * draws)", "You add up the fractions of the epochs "
             "and cut the sum off at 1. A word selected twice is counted twice. Ask what fraction "
             "has never been selected: each draw multiplies it by the same factor."),
        Edit(RESULT, "count / words * epochs", "You add up the fractions of the epochs, and copies "
             "has no effect. That counts a word selected twice two times: multiply the fractions "
             "that are *not* selected. After the last copy the first is read again."),
        Edit(RESULT, "(1 - count / words) ** draws",
             "This is the fraction that was *never* selected. Return one minus it."),
        Edit(RESULT, "(count / words) ** draws", "You raise the fraction that is selected to a "
             "power: that is the fraction selected in *every* draw. Raise the fraction that "
             "escapes, and take one minus that."),
        Edit(RESULT, "count / words",
             "The number of epochs has no effect: this is the fraction after one draw."),
        Edit(RESULT, f"words * ({RESULT})",
             "This is a number of words; return their fraction, from 0 to 1."),
        Edit(DRAWN, "1 if copies is None else min(epochs, copies)",
             "With copies=None your fraction remains that of one draw. None means that nothing is "
             "stored: every epoch has a draw of its own."),
        Edit(DRAWN, "epochs", "After the last copy you go on as if there were new draws. Training "
             "reads the first copy again, which selects nothing new: there are never more than "
             "`copies` different draws."),
        Edit(DRAWN, "epochs if copies is None else copies", "You count all copies from the first "
             "epoch on. After p epochs only p of them have been read: take the smaller of the "
             "two."),
        Edit(DRAWN, "epochs if copies is None else epochs / copies",
             "You divide the epochs by the copies. How often each copy is read does not matter, "
             "only how many different ones were read: the smaller of the two."),
        Edit(DRAWN, "epochs if copies is None else epochs // copies",
             "You divide the epochs by the copies and drop the remainder. How often a copy is read "
             "does not matter, only how many different ones were read: the smaller of epochs and "
             "copies."),
        Edit(DRAWN, "epochs if copies is None else epochs % copies",
             "You take the epochs modulo the copies, so after ten epochs over ten copies you count "
             "no draw. Take the smaller of epochs and copies."),
        Edit(DRAWN, f"1 + ({DRAWN})", "One draw too many: after p epochs there were p draws."),
        Edit(DRAWN, f"({DRAWN}) - 1", "One draw too few: after p epochs there were p draws, and "
             "the first epoch is one of them."),
    ),
)  # fmt: skip
