"""Exercise 07.2: words drawn from the generator, put into the text. B texts of T tokens, N
positions asked, V words.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    expect_tensor,
    find_suspect,
    share_is,
    writes_into,
)

Case = tuple[Tensor, Tensor, Tensor]  # input_ids (B, T), predict_at (N,), logits (N, V)
MASK = 4
POSITIONS = 6_000  # enough for shares to tell the suspects apart


@torch.no_grad()
def corrupt(input_ids: Tensor, predict_at: Tensor, logits: Tensor) -> Tensor:
    """The text with a word drawn from softmax(logits) at each position asked (section 2)."""
    words = torch.multinomial(logits.softmax(dim=-1), 1).squeeze(1)  # (N,)
    filled = input_ids.flatten().clone()  # (B·T,), a new tensor
    filled[predict_at] = words
    return filled.view_as(input_ids)


# ---------------------------------------------------------------- known wrong answers: where


def _at(place: Callable[[Tensor, Tensor, Tensor], None]) -> Answer:
    """The likeliest words, put in by place(filled (B, T), predict_at, words)."""

    def answer(input_ids: Tensor, predict_at: Tensor, logits: Tensor) -> Tensor:
        filled = input_ids.clone()
        place(filled, predict_at, logits.argmax(-1))
        return filled

    return answer


def _put(filled: Tensor, rows: Tensor | slice | int, columns: Tensor, words: Tensor) -> None:
    filled[rows, columns] = words


def _put_flat(filled: Tensor, at: Tensor, words: Tensor) -> None:
    filled.view(-1)[at] = words


def _put_at_masks(filled: Tensor, words: Tensor) -> None:
    flat = filled.view(-1)
    at = (flat == MASK).nonzero().flatten()
    flat[at] = words[: len(at)]


PLACE_SUSPECTS = (
    Suspect(
        "nothing put in",
        "The text comes back as it was. Put the drawn words in at predict_at.",
        lambda ids, at, logits: ids,
    ),
    Suspect(
        "row and column mixed up",
        "predict_at is taken apart the wrong way round, with B where T belongs. It counts along "
        "the rows: position t of row b is b·T + t, so the row is at // T and the column at % T.",
        _at(lambda out, at, words: _put(out, at % len(out), at // len(out), words)),
    ),
    Suspect(
        "first row only",
        "All words land in the first row. predict_at counts through the whole batch, b·T + t: "
        "flatten the ids, or take at // T as the row.",
        _at(lambda out, at, words: _put(out, 0, at % out.shape[1], words)),
    ),
    Suspect(
        "every row",
        "Each word is put into every row at its column. predict_at counts through the whole "
        "batch, b·T + t: it names one position of one row.",
        _at(lambda out, at, words: _put(out, slice(None), at % out.shape[1], words)),
    ),
    Suspect(
        "one position early",
        "Each word lands one position too early: predict_at counts from 0.",
        _at(lambda out, at, words: _put_flat(out, at - 1, words)),
    ),
    Suspect(
        "one position late",
        "Each word lands one position too late: predict_at counts from 0.",
        _at(lambda out, at, words: _put_flat(out, (at + 1) % out.numel(), words)),
    ),
    Suspect(
        "looks for [MASK]",
        "The words are put where a [MASK] stands. A position can be asked although its own word "
        "was left in place; there the generator's word goes too. predict_at says where.",
        _at(lambda out, at, words: _put_at_masks(out, words)),
    ),
    Suspect(
        "words in another order",
        "The words arrive at the right positions in another order: the i-th row of the logits "
        "belongs to the i-th number in predict_at.",
        _at(lambda out, at, words: _put_flat(out, at, words.sort().values)),
    ),
)

# ---------------------------------------------------------------- known wrong answers: which word

# What each draws from, as weights (N, V) of the words; rows need not sum to 1.
CHANCES: tuple[tuple[str, str, Callable[[Tensor], Tensor]], ...] = (
    (
        "likeliest word",
        "You always put in the likeliest word. Then every text is corrupted in the same way at "
        "every visit, and the discriminator only ever sees the generator's favourites. Draw.",
        lambda x: F.one_hot(x.argmax(-1), x.shape[-1]).double(),
    ),
    (
        "uniform",
        "Every word is drawn equally often: the scores have no effect. Draw each word with its "
        "probability, softmax(logits).",
        torch.ones_like,
    ),
    (
        "no softmax",
        "The scores themselves are taken for chances. A score is not a probability: exponentiate "
        "and normalise first, with softmax.",
        lambda x: x.clamp(min=0),
    ),
    (
        "no softmax",
        "The scores are taken for chances, shifted or without their sign. A score is not a "
        "probability: exponentiate and normalise, with softmax.",
        lambda x: x - x.amin(-1, keepdim=True),
    ),
    (
        "no softmax",
        "The scores without their sign are taken for chances. A score is not a probability: "
        "exponentiate and normalise, with softmax.",
        torch.abs,
    ),
    (
        "softmax twice",
        "The softmax is applied twice, and the chances are nearly equal. torch.multinomial wants "
        "softmax(logits); Categorical(logits=…) wants the logits.",
        lambda x: x.softmax(-1).softmax(-1),
    ),
    (
        "softmax over the positions",
        "The softmax runs over the positions (axis 0). The words of one position share the "
        "probability 1 among them: dim=-1.",
        lambda x: x.softmax(0),
    ),
    (
        "sigmoid",
        "The chances are sigmoids. The words of one position exclude each other: softmax.",
        torch.sigmoid,
    ),
    (
        "unlikely words",
        "Unlikely words come often and likely ones rarely: the sign of the scores is reversed.",
        lambda x: (-x).softmax(-1),
    ),
    (
        "first position's chances",
        "Every position is filled from the distribution of the first one. Each position has a "
        "distribution of its own, a row of the logits.",
        lambda x: x[:1].softmax(-1).expand_as(x),
    ),
)  # fmt: skip


# ---------------------------------------------------------------- inputs


def _certain(draw: Draw, B: int, T: int, N: int, V: int, left: bool = False) -> Case:
    """One word a position is as good as certain; no position has the word that stands there.

    left: the first of the asked positions shows its own word instead of [MASK]."""
    ids = draw.ids(5, V - 1, B, T)
    at = torch.randperm(B * T, generator=draw.torch)[:N].sort().values
    flat = ids.view(-1)
    words = 5 + (flat[at] - 5 + draw.ids(1, V - 6, N)) % (V - 5)
    flat[at[1:] if left else at] = MASK
    return ids, at, (60.0 * F.one_hot(words, V).double()).requires_grad_()


def _ladder(draw: Draw, steps: Sequence[float]) -> Tensor:
    """Scores so far apart that the suspects' shares differ, in drawn order."""
    scores = [step + draw.integer(-10, 10) / 100 for step in steps]
    draw.python.shuffle(scores)
    return torch.tensor(scores, dtype=torch.float64)


def _spread(draw: Draw, steps: Sequence[float], N: int) -> Case:
    """Every position is asked; odd ones have one distribution and even ones another."""
    two = torch.stack([_ladder(draw, steps), _ladder(draw, steps)])
    while bool(two[0].argmax() == two[1].argmax()):
        two[1] = _ladder(draw, steps)
    ids = torch.full((4, N // 4), MASK)
    return ids, torch.arange(N), two.repeat(N // 2, 1).requires_grad_()


# ---------------------------------------------------------------- stages


def _ask_places(*sizes: tuple[int, int, int, int, bool]) -> Callable[[Answer, Draw], None]:
    """Scores that leave no doubt about the word: what can go wrong is where it goes."""

    def ask(answer: Answer, draw: Draw) -> None:
        for size in sizes:
            case, others = _certain(draw, *size), [_certain(draw, *size) for _ in range(3)]
            _expect_places(answer, case, others, draw)

    return ask


def _expect_places(answer: Answer, case: Case, others: Sequence[Case], draw: Draw) -> None:
    ids, at, _ = case
    given, right = _read(call(answer, *case), case), corrupt(*case)
    if torch.equal(given, right):
        return
    if found := find_suspect(answer, [case, *others], PLACE_SUSPECTS, _same_ids):
        raise Mistake(found.key, found.message)
    elsewhere = torch.ones(ids.numel(), dtype=torch.bool)
    elsewhere[at] = False
    changed = (given != ids).flatten() & elsewhere
    shown = f"ids {ids.tolist()}, predict_at {at.tolist()}: you have {given.tolist()}"
    if changed.any():
        raise Mistake(
            "other positions changed",
            f"{int(changed.sum())} of {int(elsewhere.sum())} positions that were not asked have "
            "changed. The generator fills predict_at only; all other tokens stay. With "
            f"{shown}; it is {right.tolist()}.",
        )
    _expect_chances(answer, _spread(draw, POSITIVE, POSITIONS), draw)
    raise Mistake("", f"With {shown}; it is {right.tolist()}.")


def _read(x: Any, case: Case) -> Tensor:
    ids, at, _ = case
    if isinstance(x, Tensor) and x.shape != ids.shape:
        _name_shape(tuple(x.shape), tuple(ids.shape), len(at))
    x = expect_tensor(x, tuple(ids.shape), "the ids of the corrupted text")
    if x.requires_grad:
        raise Mistake(
            "gradient kept",
            "A gradient would flow from your result back into the logits. The generator must not "
            "learn from the discriminator: draw whole words, without gradient.",
        )
    if x.is_floating_point() or x.dtype == torch.bool:
        raise Mistake(
            "not whole numbers",
            f"Your result has the type {x.dtype}; expected ids, whole numbers that can be looked "
            "up in a table.",
        )
    return x


def _name_shape(shape: tuple[int, ...], expected: tuple[int, ...], asked: int) -> None:
    if shape in ((asked,), (asked, 1)):
        raise Mistake(
            "only the drawn words",
            f"Your result has {asked} numbers: the drawn words. Put them into the text and return "
            f"the whole of it, of shape {expected}.",
        )
    if shape == (expected[0] * expected[1],):
        raise Mistake(
            "left flat",
            f"Your result is flat, of shape {shape}. Give it its rows back: view_as(input_ids).",
        )


def _same_ids(mine: Any, theirs: Tensor, case: Case) -> bool:
    return torch.equal(_read(mine, case), theirs)


def _ask_untouched(answer: Answer, draw: Draw) -> None:
    """The text that was given is needed again: the generator's loss looks at it."""
    case = _certain(draw, 2, 6, 3, 20)
    _expect_places(answer, case, [_certain(draw, 2, 6, 3, 20) for _ in range(3)], draw)
    place = writes_into(answer, *case)
    if place is not None:
        name = ("input_ids", "predict_at", "logits")[place]
        raise Mistake(
            "writes into its input",
            f"Your function changes {name} itself. Others still need it. Work on a copy: "
            f"{name}.clone(). (flatten and view alone make no copy.)",
        )


POSITIVE = (0.4, 0.9, 1.4, 1.9, 2.5, 3.4)
ANY = (-2.6, -1.7, -0.9, -0.2, 0.5, 1.4)


def _ask_chances(steps: Sequence[float]) -> Callable[[Answer, Draw], None]:
    return lambda answer, draw: _expect_chances(answer, _spread(draw, steps, POSITIONS), draw)


def _expect_chances(answer: Answer, case: Case, draw: Draw) -> None:
    """Whether words come as often as they should; which wrong weights explain them, if not."""
    logits = case[2].detach()
    words = _read(call(answer, *case), case).flatten()
    _name_constancy(answer, case, words)
    if _explains(logits.softmax(-1), words):
        return
    for key, message, weigh in CHANCES:
        if _explains(weigh(logits), words, deviations=4.5):
            raise Mistake(key, message)
    raise Mistake("", _strangest(logits.softmax(-1), words))


def _name_constancy(answer: Answer, case: Case, words: Tensor) -> None:
    ids, at, logits = case[0], case[1], case[2].detach()
    small = (ids[:, :8], at[:32], logits[:32].requires_grad_())
    drawn = [_read(call(answer, *small), small).flatten() for _ in range(12)]
    constant = all(len(run[half::2].unique()) == 1 for run in drawn for half in (0, 1))
    likeliest = logits.argmax(-1)
    if constant and any(not torch.equal(run, likeliest[:32]) for run in drawn):
        raise Mistake(
            "one draw for all",
            "All positions with the same distribution get the same word: one random number "
            "decides for the whole batch. Each position needs a draw of its own.",
        )
    same = all(torch.equal(run, drawn[0]) for run in drawn)
    if same and not torch.equal(words, likeliest):
        raise Mistake(
            "always the same",
            "Twelve calls drew the same words at all 32 positions: the random numbers are fixed "
            "inside your function. A text must be corrupted anew at every visit.",
        )


def _counts(weights: Tensor, words: Tensor) -> list[tuple[int, int, float, float, int]]:
    """(half, word, its share among the draws, its expected share, draws), for both halves."""
    found = []
    for half in (0, 1):
        row, mine = weights[half] / weights[half].sum(), words[half::2]
        share = torch.bincount(mine.clamp(0, len(row)), minlength=len(row) + 1) / len(mine)
        found += [
            (half, word, float(share[word]), float(row[word]), len(mine))
            for word in range(len(row))
        ]
        if bool((mine < 0).any()) or bool((mine >= len(row)).any()):
            raise Mistake(
                "no word",
                f"Your function put in ids outside the vocabulary: expected 0 to {len(row) - 1}.",
            )
    return found


def _explains(weights: Tensor, words: Tensor, deviations: float = 6.0) -> bool:
    return all(
        share_is(share, min(1.0, expected), n, deviations)
        for _, _, share, expected, n in _counts(weights, words)
    )


def _strangest(weights: Tensor, words: Tensor) -> str:
    half, word, share, right, n = max(_counts(weights, words), key=lambda c: abs(c[2] - c[3]))
    where = ("even", "odd")[half]
    return (
        f"At the {n:,} {where} positions of the flattened text word {word} has the probability "
        f"{right:.3f}; you drew it with a share of {share:.3f}."
    )


CORRUPTING = Exercise(
    id="07.2",
    title="Corrupt a text",
    purpose="the one step between the two networks",
    difficulty=3,
    minutes=12,
    signature="my_corrupt(input_ids, predict_at, logits)",
    statement=(
        "The generator was asked at N positions. `input_ids` (B, T) is what it read; `predict_at` "
        "(N,) counts through the batch: position t of row b is the number b·T + t; `logits` (N, V) "
        "are its scores. Draw *one word* for each position, from the generator's distribution, and "
        "put it in. Return the new ids, (B, T). An asked position usually shows `[MASK]`, but not "
        "always. All other tokens stay, `input_ids` itself is not changed, and no gradient may "
        "flow through the draw. Use torch's own random numbers, unseeded."
    ),
    hints=(
        "Three steps: chances, draws, putting in. logits.softmax(dim=-1) are the chances.",
        "torch.multinomial(chances, 1) draws one word a row; its shape is (N, 1): squeeze(1).",
        "input_ids.flatten() counts as predict_at does. Make a copy with clone(), then "
        "copy[predict_at] = words.",
        "view_as(input_ids) gives the rows back. Ids are whole numbers and carry no gradient.",
    ),
    solution=corrupt,
    library=(
        "course_lib.family.electra:fill_in",
        "course_lib.kernels.sampling:sample_tokens_reference",
    ),
    see="course_lib.kernels.sampling.sample_tokens draws for all positions at once",
    when_raised=(
        (
            r"probability tensor contains|invalid multinomial|Expected parameter probs|"
            r"constraint Simplex",
            "torch.multinomial wants probabilities, and scores can be negative: apply "
            "softmax(dim=-1) first.",
        ),
        (
            r"shape mismatch: value tensor of shape \[(\d+), 1\]",
            "torch.multinomial(…, 1) gives (N, 1); N places want (N,): add .squeeze(1).",
        ),
        (
            r"shape mismatch|number of elements",
            "There are not as many places as words. predict_at says where the words go; it counts "
            "through the flattened ids, and an asked position need not show [MASK].",
        ),
        (
            r"out of bounds|out of range",
            "predict_at counts through the whole batch, b·T + t. It is an index into "
            "input_ids.flatten(), not into the rows.",
        ),
        (
            r"requires grad|requires_grad",
            "The logits carry a gradient. Draw under torch.no_grad(), or from logits.detach().",
        ),
    ),
    stages=(
        Check("one text, no doubt about the word", _ask_places((1, 9, 3, 20, False))),
        Check(
            "several texts, predict_at counts through them",
            _ask_places((3, 7, 6, 20, False), (2, 9, 5, 30, True)),
        ),
        Check("the text that was given stays as it is", _ask_untouched),
        Check("words come as often as their probability says", _ask_chances(POSITIVE)),
        Check("scores below zero too", _ask_chances(ANY)),
    ),
)
