"""The exam bank: items with keys and points, and which of them a seed draws.

The items are the lectures' quizzes (choices), their questions for review (a few sentences) and
their exercises (code). A point is about a minute of work. What is drawn is decided by SHA-256 of
seed and name, not by a random generator: the same seed draws the same paper on every machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ..exercises import all_exercises
from ..quizzes import Choice, read_quiz, read_review
from ..rooms import lectures_with

Kind = Literal["choice", "open", "code"]
POINTS = {"choice": 2, "open": 4}  # of code: the exercise's own minutes
ASKED = {"choice": 12, "open": 6, "code": 1}  # a paper, unless other numbers are given
LETTERS = "abcdefgh"
BESIDE_THE_PAGE = re.compile(
    r"\b(?:[Tt]able|[Pp]age|[Cc]hart|our|ours|we|[Ll]ecture's|lecture prints|[Aa]nother example)\b"
)


@dataclass(frozen=True)
class Item:
    """One item with its key.

    id: "12.q3" for choices, "12.r3" for a question to answer, "12.x3" for code. text, key: `code`
    and *stress* are marked as in quiz.toml. choices: of a choice item, in the quiz's own order.
    stub, solution: of code, the lines to fill in and a solution."""

    id: str
    lecture: str
    kind: Kind
    points: int
    text: str
    key: str = ""
    choices: tuple[Choice, ...] = ()
    stub: str = ""
    title: str = ""

    @property
    def for_paper(self) -> bool:
        """Whether it can be asked without the page: questions about a table, a run or a printed
        example cannot."""
        return self.kind != "open" or BESIDE_THE_PAGE.search(self.text) is None

    @property
    def question(self) -> str:
        """All that is asked, the lines to fill in included."""
        return f"{self.text}\n\n```\n{self.stub}```" if self.stub else self.text


@lru_cache(maxsize=1)
def bank() -> tuple[Item, ...]:
    """Every item of every lecture, in order."""
    items: list[Item] = []
    for lecture in lectures_with("exercises"):
        items += [
            Item(f"{lecture}.q{quiz.number}", lecture, "choice", POINTS["choice"], quiz.question,
                 choices=quiz.choices)
            for quiz in read_quiz(lecture)
        ]  # fmt: skip
        items += [
            Item(f"{lecture}.r{review.number}", lecture, "open", POINTS["open"], review.question,
                 key=review.answer)
            for review in read_review(lecture)
        ]  # fmt: skip
    items += [
        Item(f"{id[:2]}.x{id[3:]}", id[:2], "code", exercise.minutes, exercise.statement.strip(),
             key=f"```\n{exercise.source().rstrip()}\n```", stub=exercise.stub,
             title=exercise.title)
        for id, exercise in all_exercises().items()
    ]  # fmt: skip
    kinds = [*POINTS, "code"]
    return tuple(sorted(items, key=lambda item: (item.lecture, kinds.index(item.kind))))


def by_hash(seed: int, *names: str) -> str:
    """What things are ordered by: a number in hexadecimal, of the seed and a name."""
    return hashlib.sha256("/".join([str(seed), *names]).encode()).hexdigest()


def shuffled_choices(item: Item, seed: int) -> tuple[Choice, ...]:
    """The choices in this seed's order, which says nothing of which is right."""
    return tuple(sorted(item.choices, key=lambda choice: by_hash(seed, item.id, choice.text)))


@dataclass(frozen=True)
class Paper:
    """Items of each kind, for some lectures, drawn by a seed."""

    seed: int
    lectures: tuple[str, ...]
    items: tuple[Item, ...]

    @property
    def name(self) -> str:
        """Six signs by which a paper and its key are known to belong together; no seed."""
        return by_hash(0, *(item.id for item in self.items), str(self.seed))[:6]

    @property
    def points(self) -> int:
        return sum(item.points for item in self.items)


def draw(seed: int, lectures: Sequence[str] = (), counts: dict[str, int] | None = None) -> Paper:
    """A paper over these lectures (all, if none is named), which take turns: of two lectures none
    has two items more than the other, unless it has run out of a kind.

    counts: how many items of each kind, {"choice": 12, "open": 6, "code": 1}. Raises ValueError for
    lectures without items and for more items than there are."""
    counts = ASKED if counts is None else counts
    known = list(dict.fromkeys(item.lecture for item in bank()))
    lectures = tuple(dict.fromkeys(lectures)) or tuple(known)
    if unknown := [lecture for lecture in lectures if lecture not in known]:
        raise ValueError(
            f"a paper on lecture {unknown[0]!r} was asked for; expected lectures with items: "
            f"{', '.join(known)}. Write two digits as text."
        )
    if unfit := [kind for kind, n in counts.items() if kind not in ASKED or n < 0]:
        raise ValueError(
            f"asked for {counts[unfit[0]]} of {unfit[0]!r}; expected numbers, at least 0, of "
            f"{', '.join(ASKED)}."
        )
    turns = sorted(lectures, key=lambda lecture: by_hash(seed, lecture))
    taken: dict[str, int] = dict.fromkeys(turns, 0)
    drawn: list[Item] = []
    for kind in ASKED:
        drawn += _of_kind(seed, kind, counts.get(kind, 0), taken)
    return Paper(seed, tuple(sorted(lectures)), tuple(drawn))


def _of_kind(seed: int, kind: str, count: int, taken: dict[str, int]) -> list[Item]:
    """So many items of a kind; each from the lecture that has given fewest so far (`taken`)."""
    left = {
        lecture: sorted(
            (i for i in bank() if (i.lecture, i.kind) == (lecture, kind) and i.for_paper),
            key=lambda item: by_hash(seed, item.id),
        )
        for lecture in taken
    }
    if count > (there := sum(map(len, left.values()))):
        raise ValueError(
            f"{count} items of type {kind!r} were asked for; lectures "
            f"{', '.join(sorted(taken))} have {there}. Ask for fewer, or name more lectures."
        )
    drawn = []
    for _ in range(count):
        lecture = min((one for one in taken if left[one]), key=taken.__getitem__)
        taken[lecture] += 1
        drawn.append(left[lecture].pop(0))
    return drawn
