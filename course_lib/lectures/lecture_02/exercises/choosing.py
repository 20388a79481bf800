"""Exercise 02.4: which positions are asked, and how many.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_lib.objectives.sequences import SpecialIds
from course_lib.teaching.exercises.machinery import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    call,
    expect_tensor,
    share_is,
)


def choose(
    input_ids: Tensor,
    special: SpecialIds,
    rate: float,
    max_predictions: int,
    generator: torch.Generator,
) -> Tensor:
    """Positions of one row (T,) where the model will be asked, by the released generator's rule."""
    length = int((input_ids != special.pad).sum())  # [CLS] and [SEP] count here …
    count = min(max_predictions, max(1, round(rate * length)))
    never = torch.tensor(special.never_masked)
    eligible = (~torch.isin(input_ids, never)).nonzero().flatten()  # … but are never chosen
    order = torch.randperm(len(eligible), generator=generator)
    chosen = torch.zeros(len(input_ids), dtype=torch.bool)
    chosen[eligible[order[:count]]] = True
    return chosen


Rule = Callable[[int, int, int, float, int], float]  # real, eligible, whole row, rate, cap -> count

COUNT_RULES: tuple[tuple[str, str, Rule], ...] = (
    (
        "floor",
        "The count is rounded down; the released code rounds to the nearest whole number.",
        lambda n, e, T, r, m: min(m, max(1, math.floor(r * n))),
    ),
    (
        "ceil",
        "The count is rounded up; the released code rounds to the nearest whole number.",
        lambda n, e, T, r, m: min(m, max(1, math.ceil(r * n))),
    ),
    (
        "half up",
        "Halves are rounded up. The released code calls Python's round, which takes halves to "
        "the even neighbour: round(2.5) is 2.",
        lambda n, e, T, r, m: min(m, max(1, math.floor(r * n + 0.5))),
    ),
    (
        "counts eligible only",
        "The rate was taken of the words without [CLS] and [SEP]. In the released code these "
        "count for the number, although they are never chosen.",
        lambda n, e, T, r, m: min(m, max(1, round(r * e))),
    ),
    (
        "counts padding",
        "Padding was counted: a padded row gets too many. Count real tokens only.",
        lambda n, e, T, r, m: min(m, max(1, round(r * T))),
    ),
    (
        "none for short rows",
        "A short row gets no position at all; at least one is always asked.",
        lambda n, e, T, r, m: min(m, round(r * n)),
    ),
    (
        "no limit",
        "max_predictions has no effect: no row may be asked at more positions than that.",
        lambda n, e, T, r, m: max(1, round(r * n)),
    ),
    (
        "floor of eligible",
        "The count is rounded down and leaves out [CLS] and [SEP]; it is round(rate · real "
        "tokens), with [CLS] and [SEP] counted.",
        lambda n, e, T, r, m: min(m, max(1, math.floor(r * e))),
    ),
    (
        "always the limit",
        "Every row is asked at max_predictions positions; that is the most, not the number.",
        lambda n, e, T, r, m: m,
    ),
)


def _special(draw: Draw) -> SpecialIds:
    pad, unk, cls, sep, mask = draw.python.sample(range(12), 5)
    return SpecialIds(pad, unk, cls, sep, mask, vocab_size=500)


def _row(draw: Draw, special: SpecialIds, words: int, padding: int) -> Tensor:
    """[CLS] words [SEP] words [SEP] and padding; a single word stands in one segment."""
    first = draw.integer(1, max(1, words - 1))
    ids = draw.ids(12, 499, words).tolist()
    row = [special.cls, *ids[:first], special.sep]
    row += [*ids[first:], special.sep] if words > first else []
    return torch.tensor(row + [special.pad] * padding)


def _call_choice(answer: Answer, row: Tensor, *rest: Any) -> Tensor:
    given = expect_tensor(
        call(answer, row, *rest), tuple(row.shape), "True or False for each position (T,)"
    )
    if given.dtype != torch.bool:
        raise Mistake(
            "not bool",
            f"Your result has type {given.dtype}; expected torch.bool, True where the model is "
            "asked.",
        )
    return given


def _ask_eligible(answer: Answer, draw: Draw) -> None:
    special = _special(draw)
    for words, padding in [(1, 0), (3, 2), *[(draw.integer(4, 30), 9) for _ in range(60)]]:
        row = _row(draw, special, words, padding)
        picked = row[_call_choice(answer, row, special, 0.5, 100, draw.generator())]
        for key, name, id in (("chooses padding", "padding", special.pad),
                              ("chooses specials", "[CLS]", special.cls),
                              ("chooses specials", "[SEP]", special.sep)):  # fmt: skip
            if (picked == id).any():
                raise Mistake(
                    key,
                    f"{name} was chosen in the row {row.tolist()} ({name} is {id}). Only words "
                    "may be: [PAD], [CLS] and [SEP] never.",
                )


def _ask_number(answer: Answer, draw: Draw) -> None:
    """Rows of every length, rates whose halves occur, padding, and limits that are met."""
    special = _special(draw)
    seen = []
    for words in [*range(1, 40), 46, 47, 66, 67, 86, 87, 96, 97]:
        for rate, limit in ((0.15, 1_000), (0.25, 1_000), (0.15, draw.integer(3, 6))):
            row = _row(draw, special, words, draw.integer(0, 30))
            args = (row, special, rate, limit, draw.generator())
            counts = [
                int(_call_choice(answer, *args[:4], draw.generator()).sum()) for _ in range(2)
            ]
            real = int((row != special.pad).sum())
            seen.append(((real, words, len(row), rate, limit), counts))
    _expect_counts(seen)


def _right_count(n: int, e: int, T: int, r: float, m: int) -> int:
    return min(e, m, max(1, round(r * n)))


def _expect_counts(seen: Sequence[tuple[tuple[int, int, int, float, int], list[int]]]) -> None:
    wrong = [(case, counts) for case, counts in seen if set(counts) != {_right_count(*case)}]
    if not wrong:
        return
    (n, e, T, rate, limit), counts = wrong[0]
    example = (
        f"A row of {n} real tokens ({e} words, {T - n} padding), rate {rate}, at most {limit}: "
        f"{' and '.join(map(str, sorted(set(counts))))} chosen; expected "
        f"{_right_count(n, e, T, rate, limit)}."
    )
    if sum(len(set(counts)) > 1 for _, counts in seen) > 5:
        if all(max(counts) <= _right_count(*case) for case, counts in seen):
            raise Mistake(
                "sometimes too few",
                "Sometimes fewer than the number. Can a position be drawn twice, or a [CLS] be "
                f"drawn and then dropped?\n{example}",
            )
        raise Mistake(
            "count varies",
            "The number changes from call to call: each position is drawn by itself with the "
            "rate as its probability. BERT fixes the number first and then draws "
            f"which.\n{example}",
        )
    for key, said, rule in COUNT_RULES:
        if all({min(case[1], rule(*case))} == set(counts) for case, counts in seen):
            raise Mistake(key, f"{said}\n{example}")
    raise Mistake("", example)


def _ask_even_choice(answer: Answer, draw: Draw) -> None:
    special, calls = _special(draw), 600
    row = _row(draw, special, 40, 5)
    picks = torch.stack(
        [_call_choice(answer, row, special, 0.15, 100, draw.generator()) for _ in range(calls)]
    )
    if (picks == picks[0]).all():
        raise Mistake(
            "always the same", "The same positions are chosen with every generator: draw them."
        )
    places = picks.double() @ torch.arange(len(row)).double()
    spread = [int(p.nonzero().max() - p.nonzero().min()) for p in picks]
    if sum(s <= int(picks[0].sum()) + 1 for s in spread) > 0.9 * calls:
        raise Mistake(
            "neighbours",
            "The chosen positions always lie side by side. That is another method (SpanBERT's); "
            "BERT draws them independently of each other (mean place "
            f"{float(places.mean()) / picks[0].sum():.1f}).",
        )
    often = picks.double().mean(0)[~torch.isin(row, torch.tensor(special.never_masked))]
    expected = float(often.mean())
    worst = int((often - expected).abs().argmax())
    if not share_is(float(often[worst]), expected, calls):
        raise Mistake(
            "uneven",
            f"Not every word is equally likely: word {worst + 1} of {len(often)} was chosen in "
            f"{float(often[worst]):.1%} of {calls} calls, where {expected:.1%} is expected.",
        )


def _ask_choice_generator(answer: Answer, draw: Draw) -> None:
    special = _special(draw)
    args = (_row(draw, special, 40, 5), special, 0.3, 100, draw.generator())
    if not torch.equal(_call_choice(answer, *args), _call_choice(answer, *args)):
        raise Mistake(
            "ignores the generator",
            "The same generator state gave two different choices. Draw from the generator you "
            "are given, so that an experiment can be repeated.",
        )


CHOOSING = Exercise(
    id="02.4",
    title="Which positions, and how many",
    purpose="a rule that looks like 15% and is not quite",
    difficulty=3,
    minutes=15,
    signature="my_choose(input_ids, special, rate, max_predictions, generator)",
    statement=(
        "`input_ids` (T,) is one packed row: [CLS], words, [SEP], perhaps more words and a second "
        "[SEP], then padding. Return a bool tensor (T,), True where the model will be asked. The "
        "number is fixed first, as in BERT's released generator: `rate` times the number of real "
        "tokens, rounded as Python's `round` does, at least 1, at most `max_predictions`. [CLS] "
        "and [SEP] count as real tokens there, yet neither they nor padding may be chosen; if "
        "there are fewer words than the number says, all are chosen. Every word is equally "
        "likely. `special` has `.pad`, `.cls`, `.sep` and `.never_masked`."
    ),
    hints=(
        "Two questions, one after the other: how many, then which.",
        "How many: length = int((input_ids != special.pad).sum()), then min(max_predictions, "
        "max(1, round(rate * length))).",
        "Which: list the eligible positions, shuffle them with torch.randperm(n, "
        "generator=generator), take the first.",
        "torch.isin(input_ids, torch.tensor(special.never_masked)) marks what may not be chosen.",
    ),
    solution=choose,
    see="course_lib.kernels.masking.count_to_predict and mask_tokens_reference",
    stages=(
        Check("only words are chosen", _ask_eligible),
        Check("the number follows the rule", _ask_number),
        Check("every word is equally likely", _ask_even_choice),
        Check("the draws come from the generator", _ask_choice_generator),
    ),
)
