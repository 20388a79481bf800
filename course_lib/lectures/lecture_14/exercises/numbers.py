"""Exercise 14.3: random numbers from a counter. N examples, T tokens.

The solution first, then the stages. Wrong answers are named by the property that they lack.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.kernels.masking import CHOICE, as_uniform, random_bits
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


def numbers(seed: int, epoch: int, examples: Tensor, tokens: int) -> Tensor:
    """(N, T) numbers in [0, 1): a hash of the four, in whole-number arithmetic."""
    rows, places = examples.numpy()[:, None], np.arange(tokens)
    return torch.from_numpy(as_uniform(random_bits(seed, epoch, rows, CHOICE, places)))


# ---------------------------------------------------------------- reading


def _numbers(answer: Answer, seed: int, epoch: int, examples: Sequence[int], tokens: int) -> Tensor:
    """The answer's numbers, in float64 if they are numbers of some kind."""
    found: Any = call(answer, seed, epoch, torch.tensor(examples), tokens)
    if isinstance(found, np.ndarray):
        found = torch.from_numpy(found)
    shape = (len(examples), tokens)
    x = expect_tensor(found, shape, "a row for each example, a number for each token")
    if not x.is_floating_point():
        raise Mistake(
            "not shares",
            f"Your result has the type {x.dtype}; expected numbers from 0 up to, not including, 1.",
        )
    return x.detach().double()


def _drawn(draw: Draw, count: int) -> tuple[int, int, list[int]]:
    """A seed, an epoch, and so many different examples in no order."""
    examples = draw.python.sample(range(1, 50_000), count)
    return draw.integer(1, 10_000), draw.integer(1, 40), examples


# ---------------------------------------------------------------- stages


def _ask_shares(answer: Answer, draw: Draw) -> None:
    for tokens in (6, 1):
        seed, epoch, examples = _drawn(draw, 5)
        x = _numbers(answer, seed, epoch, examples, tokens)
        if not bool(((x >= 0) & (x < 1)).all()):
            raise Mistake(
                "out of range",
                f"Your numbers go from {float(x.min()):.4g} to {float(x.max()):.4g}; expected 0 up "
                "to, not including, 1.",
            )


def _ask_again(answer: Answer, draw: Draw) -> None:
    given = *_drawn(draw, 4), 8
    if not torch.equal(_numbers(answer, *given), _numbers(answer, *given)):
        raise Mistake(
            "drawn anew",
            "The same four numbers gave other random numbers at the second call: a running "
            "generator is at work. Make them a function of (seed, epoch, example, position).",
        )


def _ask_batches(answer: Answer, draw: Draw) -> None:
    """In any order, in any split, in texts of any length."""
    seed, epoch, examples = _drawn(draw, 6)
    whole = _numbers(answer, seed, epoch, examples, 8)
    if bool((whole == whole[0]).all()):
        raise Mistake(
            "same row for all",
            "All examples of a batch get the same row. Then the same places are hidden in every "
            "text: the number of the example must go in.",
        )
    _, _, others = _drawn(draw, 6)
    if torch.equal(whole, _numbers(answer, seed, epoch, others, 8)):
        raise Mistake(
            "place in the batch",
            f"Examples {examples} and examples {others} get the same numbers: what counts is the "
            "place in the batch. A row drawn from one stream belongs to whoever stands there; make "
            "it depend on the example's own number.",
        )
    alone = torch.cat([_numbers(answer, seed, epoch, [e], 8) for e in examples])
    turned = _numbers(answer, seed, epoch, examples[::-1], 8).flip(0)
    if not torch.equal(whole, alone) or not torch.equal(whole, turned):
        raise Mistake(
            "depends on the batch",
            f"Example {examples[0]} gets other numbers when the batch is split or turned round. "
            "They must not depend on who else is in the batch.",
        )
    if not torch.equal(whole, _numbers(answer, seed, epoch, examples, 13)[:, :8]):
        raise Mistake(
            "depends on the length",
            "The first 8 numbers of a row change when 13 are asked for. Number t belongs to "
            "position t, however many follow.",
        )


def _ask_all_four(answer: Answer, draw: Draw) -> None:
    """Each of the four changes the numbers."""
    seed, epoch, examples = _drawn(draw, 3)
    x = _numbers(answer, seed, epoch, examples, 8)
    if bool((x == x[:, :1]).all()):
        raise Mistake(
            "position ignored",
            "All positions of a row get the same number: then all of its tokens are hidden, or "
            "none. The position must go in.",
        )
    for name, other in (("seed", (seed + 1, epoch)), ("epoch", (seed, epoch + 1))):
        if torch.equal(x, _numbers(answer, *other, examples, 8)):
            what = "at every visit the same mask" if name == "epoch" else "no second experiment"
            raise Mistake(f"{name} ignored", f"The {name} has no effect: {what}. It must go in.")


SEEDS, EPOCHS = (0, 1, 2, 3), (0, 1, 2, 10)
EXAMPLES = (*range(40), 99, 100, 101, 200, 1_000, 2_000, 10_000, 100_000, 1_000_000)
TOKENS = 6
MANY = range(2_001)  # factors up to here are found: epoch·1,009 + example


def _ask_collisions(answer: Answer, draw: Draw) -> None:
    """Different (seed, epoch, example, position) give different numbers.

    Three numbers in a row tell places apart that share one number by chance."""
    seen: dict[tuple[float, ...], tuple[int, int, int, int]] = {}
    begin = draw.integer(0, 1_000)
    for seed in SEEDS:
        for epoch in EPOCHS:
            x = _numbers(answer, seed + begin, epoch, EXAMPLES, TOKENS).tolist()
            for example, row in zip(EXAMPLES, x, strict=True):
                for t in range(TOKENS - 2):
                    place = (seed + begin, epoch, example, t)
                    other = seen.setdefault(tuple(row[t : t + 3]), place)
                    if other != place:
                        raise _collision(other, place)
    _ask_sums(answer, begin)


def _ask_sums(answer: Answer, seed: int) -> None:
    """The first examples of other epochs and seeds beside many of epoch 0."""
    rows = _numbers(answer, seed, 0, MANY, 3).tolist()
    many = {tuple(row): (seed, 0, example, 0) for example, row in zip(MANY, rows, strict=True)}
    for place in ((0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (2, 0)):
        other, epoch = seed + place[0], place[1]
        for example, row in enumerate(_numbers(answer, other, epoch, range(5), 3).tolist()):
            if found := many.get(tuple(row)):
                raise _collision(found, (other, epoch, example, 0))


def _collision(one: tuple[int, ...], two: tuple[int, ...]) -> Mistake:
    names = ("seed", "epoch", "example", "position")
    differ = [name for name, a, b in zip(names, one, two, strict=True) if a != b]
    key = "shifted rows" if "position" in differ else "collision"
    why = (
        "A collision of sums: numbers that are added up, with or without factors, meet again "
        "sooner or later"
        if key == "collision"
        else "One row is the other one shifted: the position is added to something that moves"
    )
    return Mistake(
        key,
        f"(seed, epoch, example, position) = {one} and {two} get the same number, and so do the "
        f"two places after each. {why}. Mix each of the four in before the next one comes.",
    )


def _ask_uniform(answer: Answer, draw: Draw) -> None:
    """Each tenth of [0, 1) is hit equally often; neighbours have nothing in common."""
    seed, epoch = draw.integer(1, 10_000), draw.integer(0, 40)
    first = draw.integer(0, 10_000)
    x = _numbers(answer, seed, epoch, range(first, first + 600), 40)
    for tenth in range(10):
        share = float(((x >= tenth / 10) & (x < (tenth + 1) / 10)).double().mean())
        if not share_is(share, 0.1, x.numel()):
            raise Mistake(
                "not uniform",
                f"{share:.1%} of {x.numel():,} numbers lie between {tenth / 10:.1f} and "
                f"{(tenth + 1) / 10:.1f}; expected about 10%.",
            )
    pairs = {
        "positions": (x[:, :-1], x[:, 1:]),
        "examples": (x[:-1], x[1:]),
    }
    for what, (a, b) in pairs.items():
        together = float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])
        if not abs(together) < 6 / a.numel() ** 0.5:
            raise Mistake(
                "neighbours alike",
                f"The numbers of neighbouring {what} go together (correlation {together:.2f}): a "
                "large one tells the next. Mix harder: multiply, shift, exclusive or.",
            )


def _ask_untouched(answer: Answer, draw: Draw) -> None:
    given = *_drawn(draw, 3), 5
    before = _states()
    _numbers(answer, *given)
    for name, a, b in zip(("torch", "random", "numpy"), before, _states(), strict=True):
        if a != b:
            raise Mistake(
                "disturbs the generator",
                f"Your numbers are right, but the global generator of {name} is not where it was: "
                "whoever draws next (dropout, weights) gets other numbers. Use a generator of your "
                "own, or none.",
            )


def _states() -> tuple[Any, ...]:
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        [x.tolist() if isinstance(x, np.ndarray) else x for x in np.random.get_state()],
    )


NUMBERS = Exercise(
    id="14.3",
    title="Numbers without a stream",
    purpose="masks that can be made again, anywhere, and are never stored",
    difficulty=3,
    minutes=15,
    signature="my_numbers(seed, epoch, examples, tokens)",
    statement=(
        "Return a float tensor (N, `tokens`) of numbers from 0 up to, not including, 1. `examples` "
        "(N,) holds the numbers of the texts in their corpus. Number t of a row is a *function of "
        "(`seed`, `epoch`, example, t)* and of nothing else: not of the batch's order, of who "
        "else is in it, or of what was drawn before. Another seed, epoch, example or position "
        "gives another number, also where sums agree: epoch 2 of example 3 is not epoch 3 of "
        "example 2. Each tenth of [0, 1) is hit equally often. Leave the global generators as they "
        "are. Numpy is welcome; a loop over rows is slow, but counts as right."
    ),
    hints=(
        "The easy way, slow: a generator of its own for each row, whose seed is made of three "
        "numbers. np.random.default_rng([seed, epoch, example]) mixes a list of whole numbers.",
        "The fast way is a hash: whole-number steps that move every bit, such as `x ^= x >> 30` "
        "and `x *= m` with a large odd m, on unsigned 64-bit numbers: np.uint64.",
        "Begin with the seed; add the epoch and hash; add the example and hash; add the position "
        "and hash. Hashed between, sums cannot meet.",
        "examples[:, None] and np.arange(tokens) broadcast to (N, tokens).",
        "The upper 53 bits make a share: `(bits >> np.uint64(11)) * 2.0**-53`.",
    ),
    solution=numbers,
    library=(
        "course_lib.kernels.masking:_mix",
        "course_lib.kernels.masking:random_bits",
        "course_lib.kernels.masking:as_uniform",
    ),
    when_raised=(
        (
            r"only integer|cannot be interpreted as an integer|SeedSequence|expected.*int",
            "Generators want Python's whole numbers as seeds: loop over examples.tolist().",
        ),
        (
            r"not supported for the input types|ufunc|too large to convert|out of bounds",
            "Keep to one type: make numpy arrays of examples and constants with np.uint64.",
        ),
    ),
    stages=(
        Check("shares, one for each token", _ask_shares),
        Check("the same again", _ask_again),
        Check("any order, any split, any length", _ask_batches),
        Check("each of the four matters", _ask_all_four),
        Check("no two places agree", _ask_collisions),
        Check("roughly uniform", _ask_uniform),
        Check("the global generators are left alone", _ask_untouched),
    ),
)
