"""Exercise 04.2: how many of a row's words are ever asked.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Suspect,
    call,
    close,
)

Case = tuple[int, int, int, int | None]  # tokens of the row, positions asked, passes, copies


def share_asked(length: int, count: int, passes: int, copies: int | None) -> float:
    """The expected share of a row's words that are asked at least once (section 4.1)."""
    words = length - 2  # [CLS] and [SEP] are never asked
    draws = passes if copies is None else min(passes, copies)
    return 1 - (1 - count / words) ** draws


# ---------------------------------------------------------------- known wrong answers


def _asked(length: int, count: int) -> float:
    return count / (length - 2)


def _draws(passes: int, copies: int | None) -> int:
    return passes if copies is None else min(passes, copies)


def _after(
    draws: Callable[[int, int | None], float] = _draws,
    rate: Callable[[int, int], float] = _asked,
) -> Answer:
    """The solution with another number of draws, or another share that one draw asks."""
    return lambda n, k, p, c: 1 - (1 - rate(n, k)) ** draws(p, c)


SHARE_SUSPECTS = (
    Suspect(
        "adds up",
        "The shares of the passes are added up. That passes 1 sooner or later, because a word "
        "asked twice is counted twice. Ask instead what share has never been asked: it is "
        "multiplied by the same factor at each draw.",
        lambda n, k, p, c: _asked(n, k) * _draws(p, c),
    ),
    Suspect(
        "adds up, stops at 1",
        "The shares of the passes are added up and cut off at 1. A word asked twice is counted "
        "twice. Ask instead what share has never been asked: it is multiplied by the same factor "
        "at each draw.",
        lambda n, k, p, c: min(1.0, _asked(n, k) * _draws(p, c)),
    ),
    Suspect(
        "adds up and forgets the copies",
        "The shares of the passes are added up, and copies has no effect. A word asked twice is "
        "counted twice: multiply the shares that are *not* asked. And after the last copy the "
        "first is read again.",
        lambda n, k, p, c: _asked(n, k) * p,
    ),
    Suspect(
        "never asked",
        "This is the share that was *never* asked. One minus it is wanted.",
        lambda n, k, p, c: 1 - _after()(n, k, p, c),
    ),
    Suspect(
        "always asked",
        "You raise the share that is asked to a power: that is the share asked in *every* draw. "
        "Raise the share that escapes, and take one minus that.",
        lambda n, k, p, c: _asked(n, k) ** _draws(p, c),
    ),
    Suspect(
        "one pass only",
        "The number of passes has no effect: this is the share after one draw.",
        lambda n, k, p, c: _asked(n, k),
    ),
    Suspect(
        "None means one copy",
        "With copies=None the share stays that of one draw. None means that nothing is stored: "
        "every pass has a draw of its own.",
        _after(lambda p, c: min(p, 1 if c is None else c)),
    ),
    Suspect(
        "copies start again",
        "After the last copy you go on as if new draws came. The reader begins again with the "
        "first copy, and asks nothing that was not asked before: never more than `copies` "
        "different draws.",
        _after(lambda p, c: p),
    ),
    Suspect(
        "always all copies",
        "All copies are counted from the first pass on. After p passes only p of them have been "
        "read: the smaller of the two.",
        _after(lambda p, c: p if c is None else c),
    ),
    Suspect(
        "passes shared out",
        "The passes are divided by the copies. Every pass reads one whole copy; how often each is "
        "read does not matter, only how many different ones there were: the smaller of the two.",
        _after(lambda p, c: p if c is None else p / c),
    ),
    Suspect(
        "whole rounds",
        "The passes are divided by the copies, without the rest. How often a copy is read does "
        "not matter, only how many different ones there were: the smaller of passes and copies.",
        _after(lambda p, c: p if c is None else p // c),
    ),
    Suspect(
        "remainder",
        "The passes are taken modulo the copies: after ten passes over ten copies you count none. "
        "What was asked once stays asked: the smaller of passes and copies.",
        _after(lambda p, c: p if c is None else p % c),
    ),
    Suspect(
        "one draw too many",
        "One draw too many: after p passes there were p draws.",
        _after(lambda p, c: _draws(p, c) + 1),
    ),
    Suspect(
        "one draw too few",
        "One draw too few: after p passes there were p draws, and the first pass is one of them.",
        _after(lambda p, c: _draws(p, c) - 1),
    ),
    Suspect(
        "specials counted",
        "The positions asked are divided by all tokens of the row. [CLS] and [SEP] are never "
        "asked: divide by the words, two fewer.",
        _after(rate=lambda n, k: k / n),
    ),
    Suspect(
        "one special left out",
        "One special token was taken off. A row has two, [CLS] and [SEP]: divide by length − 2.",
        _after(rate=lambda n, k: k / (n - 1)),
    ),
    Suspect(
        "15% of the words",
        "The rate is taken as 15%. A row is asked at a whole number of positions, and you are "
        "given it: count. Its share of the words is a little more than 15%.",
        _after(rate=lambda n, k: 0.15),
    ),
    Suspect(
        "percent",
        "This is the right number in percent; expected a share, from 0 to 1.",
        lambda n, k, p, c: 100 * _after()(n, k, p, c),
    ),
    Suspect(
        "number of words",
        "This is the number of words; expected their share, from 0 to 1.",
        lambda n, k, p, c: (n - 2) * _after()(n, k, p, c),
    ),
)


# ---------------------------------------------------------------- stages


def _row(draw: Draw) -> tuple[int, int]:
    """Tokens and positions asked; a sixth of the words or so, never exactly 15%."""
    length = draw.integer(12, 130)
    return length, max(1, round(0.15 * length)) + draw.integer(0, 1)


def _cases(passes: Sequence[int], copies: Sequence[int | None]) -> Callable[[Draw], list[Case]]:
    return lambda draw: [(*_row(draw), p, c) for c in copies for p in passes]


def _drawn(draw: Draw) -> list[Case]:
    return [
        (*_row(draw), draw.integer(1, 60), draw.python.choice((None, 1, 2, 4, 10, 25)))
        for _ in range(60)
    ]


def _ask_share(cases: Callable[[Draw], list[Case]]) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _number(call(answer, *case)), share_asked(*case)
            if not close(given, right):
                pools = [_drawn(draw), cases(draw)]
                found = name_suspect(answer, case, pools, SHARE_SUSPECTS, _same_share)
                length, count, passes, copies = case
                said = (
                    f"{count} of the {length - 2} words of a row of {length} tokens, "
                    f"passes={passes}, copies={copies}: you have {given:.6g}; it is {right:.6g}."
                )
                raise told(found, said)

    return ask


def _same_share(mine: Any, theirs: float, _case: Any) -> bool:
    return close(_number(mine), theirs)


def _number(x: Any) -> float:
    return one_number(x, "the share")


SHARE = Exercise(
    id="04.2",
    title="Asked at least once",
    purpose="what a fixed mask never asks, in numbers",
    difficulty=2,
    minutes=10,
    signature="my_share(length, count, passes, copies)",
    statement=(
        "15% is a round number; a real row is asked at a whole number of positions. This one has "
        "`length` tokens: words, one `[CLS]` and one `[SEP]`. Every mask asks exactly `count` of "
        "its words, never `[CLS]` or `[SEP]`. Return the expected share of the *words* that have "
        "been asked at least once after `passes` passes. `copies` is the number of masks, read in "
        "turn and then again from the first; `None` means a fresh one in every pass."
    ),
    hints=(
        "First one draw: count of how many words? Then its opposite, the share that escapes.",
        "Draws are independent: to escape two of them a word must escape the first and the second.",
        "How many *different* draws were there? passes for None, otherwise at most copies: "
        "min(passes, copies).",
        "12 tokens, 2 asked, 3 passes, 2 copies: 10 words, each escapes a draw with chance 0.8, "
        "two draws: 1 − 0.8² = 0.36.",
    ),
    solution=share_asked,
    see="course_lib.objectives.coverage.coverage (for a given rate) and simulated_coverage",
    stages=(
        Check("one pass", _ask_share(_cases((1, 1, 1), (1,)))),
        Check("a fresh mask in every pass", _ask_share(_cases((1, 2, 3, 7, 40), (None,)))),
        Check("one copy for ever", _ask_share(_cases((1, 2, 3, 40), (1,)))),
        Check("no more passes than copies", _ask_share(_cases((1, 2, 5, 9, 10), (10,)))),
        Check("the copies are read again", _ask_share(_cases((3, 10, 11, 14, 40), (10, 4)))),
        Check("sixty drawn rows", _ask_share(_drawn)),
    ),
)
