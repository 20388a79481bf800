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
    see="course_lib.objectives.coverage.coverage (for a given rate) and simulated_coverage",
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
        Edit("length - 2", "length", "The selected positions are divided by all tokens of the "
             "sequence. [CLS] and [SEP] are never selected: divide by the words, two fewer."),
        Edit("length - 2", "length - 1", "One special token was taken off. A sequence has two, "
             "[CLS] and [SEP]: divide by length − 2."),
        Edit("count / words", "0.15", "The rate is taken as 15%. A whole number of positions is "
             "selected, and you are given it: count. As a fraction of the words it is a little "
             "more than 15%."),
        Edit(RESULT, "count / words * draws", "The fractions of the epochs are added up. That "
             "passes 1 sooner or later, because a word selected twice is counted twice. Ask what "
             "fraction has never been selected: each draw multiplies it by the same factor."),
        Edit(RESULT, "min(1.0, count / words * draws)", "The fractions of the epochs are added up "
             "and cut off at 1. A word selected twice is counted twice. Ask what fraction has "
             "never been selected: each draw multiplies it by the same factor."),
        Edit(RESULT, "count / words * epochs", "The fractions of the epochs are added up, and "
             "copies has no effect. A word selected twice is counted twice: multiply the fractions "
             "that are *not* selected. And after the last copy the first is read again."),
        Edit(RESULT, "(1 - count / words) ** draws",
             "This is the fraction that was *never* selected. Expected is one minus it."),
        Edit(RESULT, "(count / words) ** draws", "You raise the fraction that is selected to a "
             "power: that is the fraction selected in *every* draw. Raise the fraction that "
             "escapes, and take one minus that."),
        Edit(RESULT, "count / words",
             "The number of epochs has no effect: this is the fraction after one draw."),
        Edit(RESULT, f"words * ({RESULT})",
             "This is the number of words; expected is their fraction, from 0 to 1."),
        Edit(DRAWN, "1 if copies is None else min(epochs, copies)", "With copies=None the fraction "
             "stays that of one draw. None means that nothing is stored: every epoch has a draw of "
             "its own."),
        Edit(DRAWN, "epochs", "After the last copy you go on as if new draws came. The reader "
             "begins again with the first copy, and selects nothing new: never more than `copies` "
             "different draws."),
        Edit(DRAWN, "epochs if copies is None else copies", "All copies are counted from the first "
             "epoch on. After p epochs only p of them have been read: the smaller of the two."),
        Edit(DRAWN, "epochs if copies is None else epochs / copies", "The epochs are divided by "
             "the copies. How often each copy is read does not matter, only how many different "
             "ones there were: the smaller of the two."),
        Edit(DRAWN, "epochs if copies is None else epochs // copies", "The epochs are divided by "
             "the copies, without the rest. How often a copy is read does not matter, only how "
             "many different ones there were: the smaller of epochs and copies."),
        Edit(DRAWN, "epochs if copies is None else epochs % copies", "The epochs are taken modulo "
             "the copies: after ten epochs over ten copies you count none. What was selected once "
             "stays so: the smaller of epochs and copies."),
        Edit(DRAWN, f"1 + ({DRAWN})", "One draw too many: after p epochs there were p draws."),
        Edit(DRAWN, f"({DRAWN}) - 1", "One draw too few: after p epochs there were p draws, and "
             "the first epoch is one of them."),
    ),
)  # fmt: skip
