"""Exercise 04.1: three ways to draw the masks, as one function without a memory.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
)

Number = Callable[[int, int, int], float]  # (epoch, example, position) -> [0, 1)
# rows of a batch, their numbers in the training set, epoch, copies, how many to choose, draw
Case = tuple[list[list[str]], list[int], int, int | None, int, Number]
Cases = Callable[[Draw], list[Case]]

SPECIAL = ("[PAD]", "[CLS]", "[SEP]")


def chosen_positions(
    rows: Sequence[Sequence[str]],
    examples: Sequence[int],
    epoch: int,
    copies: int | None,
    count: int,
    draw: Number,
) -> list[list[int]]:
    """The positions asked in each row of a batch; the same arguments give the same positions."""
    number = epoch if copies is None else epoch % copies
    chosen = []
    for row, example in zip(rows, examples, strict=True):
        words = [t for t, token in enumerate(row) if token not in SPECIAL]
        draws = {t: draw(number, example, t) for t in words}
        chosen.append(sorted(sorted(words, key=draws.__getitem__)[:count]))
    return chosen


# ---------------------------------------------------------------- known wrong answers


def _choose(
    which: Callable[[int, int | None], int] = lambda e, c: e if c is None else e % c,
    *,
    name: Callable[[int, int], int] = lambda example, place: example,
    never: Sequence[str] = SPECIAL,
    largest: bool = False,
    among_words: bool = False,
    draw_at: Callable[[Number, int, int, int], float] = lambda draw, n, x, t: draw(n, x, t),
) -> Answer:
    """The solution with switches for going wrong.

    which: the number of the draw, from epoch and copies; name: the number of a row, from its number
    in the training set and its place in the batch; among_words: positions counted among the words.
    """

    def answer(
        rows: list[list[str]],
        examples: list[int],
        epoch: int,
        copies: int | None,
        count: int,
        draw: Number,
    ) -> list[list[int]]:
        chosen = []
        for place, (row, example) in enumerate(zip(rows, examples, strict=True)):
            words = [t for t, token in enumerate(row) if token not in never]
            keys = {t: draw_at(draw, which(epoch, copies), name(example, place), t) for t in words}
            order = sorted(words, key=keys.__getitem__, reverse=largest)[:count]
            chosen.append(sorted(words.index(t) if among_words else t for t in order))
        return chosen

    return answer


CHOICE_SUSPECTS = (
    Suspect(
        "chooses specials",
        "[CLS], [SEP] and [PAD] take part in the draw. They carry form, not words, and are never "
        "asked: leave them out before you sort.",
        _choose(never=()),
    ),
    Suspect(
        "chooses [CLS] and [SEP]",
        "Padding is left out, but [CLS] and [SEP] take part in the draw. They are never asked.",
        _choose(never=("[PAD]",)),
    ),
    Suspect(
        "chooses padding",
        "[CLS] and [SEP] are left out, but padding takes part in the draw. It is never asked.",
        _choose(never=("[CLS]", "[SEP]")),
    ),
    Suspect(
        "largest draws",
        "The words with the *largest* draws are taken; take the smallest.",
        _choose(largest=True),
    ),
    Suspect(
        "counted among the words",
        "The positions are counted among the words only. A position is the place in the row, "
        "where [CLS] has place 0.",
        _choose(among_words=True),
    ),
    Suspect(
        "place in the batch",
        "The draw depends on the place of a row in its batch. Batches are shuffled: the row would "
        "get another mask because of its neighbours. Use its number in the training set, "
        "examples[i].",
        _choose(name=lambda example, place: place),
    ),
    Suspect(
        "one draw for the batch",
        "Every row of the batch is drawn with the same example number, so that all hide the same "
        "places. Each row has its own: examples[i].",
        lambda rows, examples, *rest: _choose(name=lambda example, place: examples[0])(
            rows, examples, *rest
        ),
    ),
    Suspect(
        "example 0 for all",
        "Every row is drawn as example 0, so that all hide the same places. Each has its own "
        "number: examples[i].",
        _choose(name=lambda example, place: 0),
    ),
    Suspect(
        "epoch and example swapped",
        "The epoch stands where the example should, and the other way round: draw(epoch, example, "
        "position).",
        _choose(draw_at=lambda draw, n, x, t: draw(x, n, t)),
    ),
    Suspect(
        "drawn once",
        "The mask is drawn once and reused: epochs 0 and 1 hide the same positions whatever "
        "copies says. That is right for copies=1 only.",
        _choose(lambda e, c: 0),
    ),
    Suspect(
        "None means one copy",
        "With copies=None the mask never changes. None means that nothing is stored: every epoch "
        "has a draw of its own.",
        _choose(lambda e, c: 0 if c is None else e % c),
    ),
    Suspect(
        "copies ignored",
        "Also with several copies every epoch has a fresh draw. With c copies only the draws 0 to "
        "c − 1 exist, and they are read again and again.",
        _choose(lambda e, c: e),
    ),
    Suspect(
        "one step late",
        "The copies are counted from one: epoch 0 reads copy 1. Epoch 0 reads copy 0, epoch c "
        "reads copy 0 again: epoch % copies.",
        _choose(lambda e, c: e if c is None else (e + 1) % c),
    ),
    Suspect(
        "one step early",
        "Epoch 0 reads the last copy. It reads copy 0, and epoch c reads copy 0 again: epoch % "
        "copies.",
        _choose(lambda e, c: e if c is None else (e - 1) % c),
    ),
    Suspect(
        "one copy too many",
        "The draws begin again one epoch too late: with c copies there are the draws 0 to c − 1, "
        "and epoch c reads draw 0.",
        _choose(lambda e, c: e if c is None else e % (c + 1)),
    ),
    Suspect(
        "one copy too few",
        "The draws begin again one epoch too early: draw c − 1 is never read.",
        _choose(lambda e, c: e if c is None else e % max(1, c - 1)),
    ),
    Suspect(
        "stays at the last copy",
        "After the last copy you stay there. The reader begins again with copy 0: epoch % copies, "
        "not the smaller of the two.",
        _choose(lambda e, c: e if c is None else min(e, c - 1)),
    ),
    Suspect(
        "same copy for several epochs",
        "The epoch is divided by the number of copies, so that one copy serves several epochs in a "
        "row. It is the remainder that is wanted: epoch % copies.",
        _choose(lambda e, c: e if c is None else e // c),
    ),
)


# ---------------------------------------------------------------- inputs


def _numbers(draw: Draw) -> Number:
    """A stand-in for a seeded generator: a number in [0, 1) that depends on its arguments alone."""
    seed = draw.integer(0, 2**31)

    def draw_number(epoch: int, example: int, position: int) -> float:
        return random.Random(f"{seed} {epoch} {example} {position}").random()

    return draw_number


WORDS = ("the", "lamp", "on", "a", "river", "boat", "went", "out", "before", "noon", "again")


def _row(draw: Draw, words: int, padding: int) -> list[str]:
    return ["[CLS]", *draw.python.choices(WORDS, k=words), "[SEP]", *["[PAD]"] * padding]


def _batch(draw: Draw, size: int, epoch: int, copies: int | None) -> Case:
    """Rows of 8 to 13 words, numbered at random, none by its place in the batch."""
    longest = 13
    lengths = [draw.integer(8, longest) for _ in range(size)]
    rows = [_row(draw, n, longest - n) for n in lengths]
    examples = draw.python.sample(range(100, 5_000), size)
    return rows, examples, epoch, copies, draw.integer(3, 5), _numbers(draw)


def _one_row(draw: Draw) -> list[Case]:
    """Example 0 in epoch 0: nothing to be wrong about but the words."""
    lengths = (4, 6, 8, 10, 12, 12)
    return [([_row(draw, n, 3)], [0], 0, 1, 3, _numbers(draw)) for n in lengths]


def _several_rows(draw: Draw) -> list[Case]:
    return [_batch(draw, size, 0, 1) for size in (2, 3, 5)]


def _other_epochs(epochs: Sequence[int], copies: Sequence[int | None]) -> Cases:
    """One batch, read in these epochs, for each number of copies."""

    def cases(draw: Draw) -> list[Case]:
        found = []
        for number in copies:
            rows, examples, _, _, count, numbers = _batch(draw, 3, 0, number)
            found += [(rows, examples, epoch, number, count, numbers) for epoch in epochs]
        return found

    return cases


def _every_scheme(draw: Draw) -> list[Case]:
    return _other_epochs((0, 1, 2, 3, 5, 10, 11), (1, None, 10, 3))(draw)


# ---------------------------------------------------------------- stages


def _positions(answer: Answer, case: Case) -> list[list[int]]:
    """The answer's positions, each row in ascending order; Mistake where they are none."""
    given = call(answer, *case)
    rows = case[0]
    if not isinstance(given, (list, tuple)) or len(given) != len(rows):
        raise Mistake(
            "wrong type",
            f"Your function returned {given!r:.80} ({type(given).__name__}); expected a list of "
            f"{len(rows)} lists of positions, one for each row.",
        )
    found = [_places_of(row, given) for row in given]
    for row, places in zip(rows, found, strict=True):
        if any(not 0 <= t < len(row) for t in places) or len(set(places)) < len(places):
            raise Mistake(
                "not positions",
                f"{places} was given for a row of {len(row)} tokens; expected different whole "
                f"numbers from 0 to {len(row) - 1}.",
            )
    return found


def _places_of(row: Any, given: Any) -> list[int]:
    try:
        places = sorted(row)
        if any(isinstance(t, bool) or int(t) != t for t in places):
            raise TypeError
    except (TypeError, ValueError):
        raise Mistake(
            "wrong type",
            f"Your function returned {given!r:.80}; expected a list of lists of positions, each a "
            "whole number.",
        ) from None
    return [int(t) for t in places]


def _same_positions(mine: Any, theirs: list[list[int]], _case: Any) -> bool:
    return [sorted(row) for row in mine] == theirs


def _ask_draws(cases: Cases) -> Callable[[Answer, Draw], None]:
    """A stage on these cases; a mistake is named on others of the same kind."""

    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _positions(answer, case), chosen_positions(*case)
            if given != right:
                _name_memory(answer, draw)
                pools = [_every_scheme(draw), cases(draw)]
                found = name_suspect(answer, case, pools, CHOICE_SUSPECTS, _same_positions)
                raise told(found, _example(case, given, right))

    return ask


def _example(case: Case, given: list[list[int]], right: list[list[int]]) -> str:
    rows, examples, epoch, copies, count, _ = case
    i = next(i for i, (mine, true) in enumerate(zip(given, right, strict=True)) if mine != true)
    return (
        f"Epoch {epoch}, copies={copies}, count={count}: in the row {' '.join(rows[i])} (example "
        f"{examples[i]}, place {i} of the batch) you choose {given[i]}; it is {right[i]}."
    )


def _name_memory(answer: Answer, draw: Draw) -> None:
    """Two questions that only an answer with a memory, or with numbers of its own, gets wrong."""
    rows, examples, _, _, count, numbers = _batch(draw, 3, 0, None)

    def at(epoch: int) -> list[list[int]]:
        return _positions(answer, (rows, examples, epoch, None, count, numbers))

    late, early, again = at(7), at(2), at(7)
    right = {
        epoch: chosen_positions(rows, examples, epoch, None, count, numbers) for epoch in (2, 7)
    }
    if late == early == again == right[7]:
        raise Mistake(
            "kept from the first visit",
            "The mask of a row is kept from the first time it is asked for: epoch 7, asked first, "
            "and epoch 2, asked afterwards, hide the same positions. Keep nothing between calls.",
        )
    if late != again:
        raise Mistake(
            "state",
            f"Asked twice for the same batch at epoch 7, with another question in between, your "
            f"function chose {late[0]} and then {again[0]} in the first row. Something is kept "
            "between the calls (a counter, a generator, a global), or numbers come from elsewhere "
            "than draw. After a crash nobody could draw this mask again.",
        )


def _ask_order(answer: Answer, draw: Draw) -> None:
    """The same rows in another order have the same masks; asking changes nothing."""
    _name_memory(answer, draw)
    rows, examples, epoch, copies, count, numbers = _batch(draw, 5, draw.integer(3, 30), None)
    first = _positions(answer, (rows, examples, epoch, copies, count, numbers))
    before = dict(zip(examples, first, strict=True))
    order = draw.python.sample(range(5), 5)
    rows, examples = [rows[i] for i in order], [examples[i] for i in order]
    after = _positions(answer, (rows, examples, epoch, copies, count, numbers))
    for example, places in zip(examples, after, strict=True):
        if places != before[example]:
            raise Mistake(
                "order",
                f"Example {example} has {before[example]} in one batch and {places} in the same "
                "batch in another order. A mask may depend on epoch, example and position alone.",
            )


DRAWS = Exercise(
    id="04.1",
    title="Three ways to draw a mask",
    purpose="a mask nobody has to store, and nobody can lose",
    difficulty=3,
    minutes=12,
    signature="my_choice(rows, examples, epoch, copies, count, draw)",
    statement=(
        "Return the positions that are asked in each row of a batch: a list of lists of whole "
        "numbers. `rows` are lists of tokens (strings); row `i` is number `examples[i]` of the "
        "training set. `draw(epoch, example, position)` gives a number from 0 to 1, always the "
        "same for the same three. Of each row take the `count` positions with the smallest draws; "
        "`[CLS]`, `[SEP]` and `[PAD]` may not be chosen. `copies` says how often the draw changes "
        "over the epochs 0, 1, 2, …: `copies=1` is one mask for ever, `copies=10` ten masks read "
        "in turn, beginning with that of epoch 0 and then again from the start; `None` is a fresh "
        "mask in every epoch. Keep nothing between calls."
    ),
    hints=(
        "Only one line knows about the three schemes: the number that stands in draw's first "
        "place. The rest is the same for all.",
        "That number is epoch for None, and epoch % copies otherwise.",
        "For each row list the eligible positions first: [t for t, token in enumerate(row) if "
        "token not in ('[CLS]', '[SEP]', '[PAD]')].",
        "draws = {t: draw(number, examples[i], t) for t in places}; then sorted(places, "
        "key=draws.__getitem__)[:count] takes the smallest.",
    ),
    solution=chosen_positions,
    see="course_lib.objectives.pretraining.pretraining_batches (mask_copies) and mask_sequences",
    stages=(
        Check("one row, epoch 0: only words", _ask_draws(_one_row)),
        Check("several rows, each with its own number", _ask_draws(_several_rows)),
        Check("one copy: the same at every epoch", _ask_draws(_other_epochs(range(4), (1,)))),
        Check("None: fresh at every epoch", _ask_draws(_other_epochs(range(8), (None,)))),
        Check(
            "ten copies, three copies: read in turn",
            _ask_draws(_other_epochs(range(13), (10, 3))),
        ),
        Check("any order, asked as often as you like", _ask_order),
    ),
)
