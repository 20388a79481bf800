"""Exercise 14.3: random numbers from a counter. N examples, T tokens.

What is observed of an answer is which properties its numbers have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.kernels.masking import CHOICE, as_uniform, random_bits
from course_lib.teaching.exercises.calling import global_states
from course_lib.teaching.exercises.form import Answer, Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Exact, Items, Number, Numbers, Wrong


def numbers(seed: int, epoch: int, examples: Tensor, tokens: int) -> Tensor:
    """(N, T) numbers in [0, 1): a hash of the four, in whole-number arithmetic."""
    rows, positions = examples.numpy()[:, None], np.arange(tokens)
    bits = random_bits(seed, epoch, rows, CHOICE, positions)
    return torch.from_numpy(as_uniform(bits))


# ---------------------------------------------------------------- cases


def of(N: int, tokens: int) -> Callable[[Draw], list[Case]]:
    """Three times a seed, an epoch, and N different examples in no order."""

    def one(draw: Draw) -> Case:
        examples = torch.tensor(draw.python.sample(range(1, 50_000), N))
        return draw.integer(1, 9_999), draw.integer(1, 40), examples, tokens

    return lambda draw: [one(draw) for _ in range(3)]


def short(draw: Draw) -> list[Case]:
    return of(3, 1)(draw)[:1] + of(5, 6)(draw)[:2]


def many(draw: Draw) -> list[Case]:
    first = draw.integer(0, 10_000)
    return [(draw.integer(1, 9_999), draw.integer(0, 40), torch.arange(first, first + 300), 80)]


# ---------------------------------------------------------------- what is looked at


def drawn(function: Answer, seed: int, epoch: int, examples: Tensor, tokens: int) -> Tensor:
    right = torch.zeros(len(examples), tokens)
    out = Numbers("numbers", shape="N tokens")
    return torch.as_tensor(out.read(function(seed, epoch, examples, tokens), right)).double()


def outside(function: Answer, *case: Any) -> tuple[bool, bool, bool]:
    x = drawn(function, *case)
    return bool((x == x.round()).all()), bool((x < 0).any()), not bool((x < 1).all())


def again(function: Answer, *case: Any) -> bool:
    return torch.equal(drawn(function, *case), drawn(function, *case))


def independence(function: Answer, seed: int, epoch: int, e: Tensor, T: int) -> Any:
    """All examples alike; others' numbers the same; changed by split or order; by the length."""
    whole = drawn(function, seed, epoch, e, T)
    alone = torch.cat([drawn(function, seed, epoch, e[n : n + 1], T) for n in range(len(e))])
    turned = drawn(function, seed, epoch, e.flip(0), T).flip(0)
    return (
        bool((whole == whole[0]).all()),
        torch.equal(whole, drawn(function, seed, epoch, e + 50_003, T)),
        not (torch.equal(whole, alone) and torch.equal(whole, turned)),
        not torch.equal(whole, drawn(function, seed, epoch, e, T + 5)[:, :T]),
    )


def without_effect(function: Answer, seed: int, epoch: int, e: Tensor, T: int) -> list[str]:
    x = drawn(function, seed, epoch, e, T)
    same = {
        "position": bool((x == x[:, :1]).all()),
        "seed": torch.equal(x, drawn(function, seed + 1, epoch, e, T)),
        "epoch": torch.equal(x, drawn(function, seed, epoch + 1, e, T)),
    }
    return [name for name, yes in same.items() if yes]


NAMES = ("seed", "epoch", "example", "position")
SUMS = (
    "Your numbers collide because equal sums give equal numbers, with or without factors. Mix each "
    "of the four in before you add the next one."
)
SHIFTED = (
    "One row is another one, shifted: you add the position to something that also changes. Mix "
    "each of the four in before you add the next one."
)


def expect_no_collision(function: Answer, seed: int, *_: Any) -> None:
    """Three numbers in a row tell places apart that share one number by chance.

    1,011 examples of epoch 0: factors up to there are found, as in epoch·1,009 + example."""
    some = [*range(24), 99, 100, 101, 200, 1_000, 2_000, 10_000, 1_000_000]
    looked_at: list[tuple[int, int, Sequence[int], int]] = [
        (seed + s, epoch, some, 6) for s in range(4) for epoch in (0, 1, 2, 12)
    ]
    looked_at += [(seed, 0, range(1_011), 3)]
    looked_at += [(seed + s, p, range(5), 3) for s, p in ((0, 3), (0, 1), (0, 2), (1, 0), (1, 1))]
    seen: dict[tuple[float, ...], tuple[int, ...]] = {}
    for s, epoch, examples, tokens in looked_at:
        x = drawn(function, s, epoch, torch.tensor(examples), tokens).tolist()
        for example, row in zip(examples, x, strict=True):
            for t in range(tokens - 2):
                place = (s, epoch, example, t)
                other = seen.setdefault(tuple(row[t : t + 3]), place)
                if other != place:
                    why = SHIFTED if other[3] != t else SUMS
                    raise Wrong(f"({', '.join(NAMES)}) = {other} and {place} get the same number, "
                                f"and so do the two positions after each. {why}")  # fmt: skip


def uniformity(function: Answer, *case: Any) -> Any:
    """The fraction in each tenth; the correlation of neighbouring positions, and examples."""
    x = drawn(function, *case)
    pairs = (x[:, :-1], x[:, 1:]), (x[:-1], x[1:])
    together = [torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1] for a, b in pairs]
    return x.flatten().histc(10, 0, 1) / x.numel(), *together


def generators_moved(function: Answer, *case: Any) -> list[str]:
    before = global_states()
    function(*case)
    names = ("random", "torch", "numpy")
    return [n for n, a, b in zip(names, before, global_states(), strict=True) if a != b]


RANGE = (
    Exact("are these whole numbers"),
    Exact("are there numbers below 0"),
    Exact("are there numbers of 1 and above"),
)
BATCH = (
    Exact("is it the same row for all examples of a batch"),
    Exact("do other examples at the same places of a batch get the same numbers"),
    Exact("do an example's numbers change when the batch is split or turned round"),
    Exact("do the numbers change when more tokens are asked for"),
)
UNIFORM = (  # 24,000 numbers: six standard deviations of the difference of two right answers
    Numbers("fractions of the numbers in the ten tenths of [0, 1)", tol=0.016),
    Number("correlation of neighbouring positions (mix harder, until there is none)", tol=0.055),
    Number("correlation of neighbouring examples (mix harder, until there is none)", tol=0.055),
)

NUMBERS = Exercise(
    **written("14.3"),
    solution=numbers,
    returns=Numbers("numbers", shape="N tokens"),
    library=(
        "course_lib.kernels.masking:_mix",
        "course_lib.kernels.masking:random_bits",
        "course_lib.kernels.masking:as_uniform",
    ),
    when_raised=(
        (r"only integer|cannot be interpreted as an integer|SeedSequence|expected.*int",
         "Generators expect Python integers as seeds: loop over examples.tolist()."),
        (r"not supported for the input types|ufunc|too large to convert|out of bounds",
         "Keep to one type: make numpy arrays of examples and constants with np.uint64."),
    ),
    stages=(
        Stage("from 0 up to 1, one for each token", short, outside, RANGE),
        Stage("the same again", of(4, 8), again, Exact("is it the same at a second call")),
        Stage("any order, any split, any length", of(6, 8), independence, BATCH),
        Stage("each of the four matters", of(3, 8), without_effect,
              Items("inputs without any effect", of="names")),
        Stage("no two places agree", lambda draw: of(3, 3)(draw)[:1],
              ask=expect_no_collision),
        Stage("roughly uniform", many, uniformity, UNIFORM),
        Stage("the global generators are left alone", of(3, 5), generators_moved,
              Items("global generators moved", of="names")),
    ),
    mistakes=(
        Edit("as_uniform(bits)", "(100 * as_uniform(bits)).astype(int)",
             "These are integers; expected fractions, from 0 up to, not including, 1."),
        Edit("as_uniform(bits)", "2 * as_uniform(bits) - 1",
             "These are numbers from −1 to 1; expected from 0 up to, not including, 1."),
        Edit("as_uniform(bits)", "100 * as_uniform(bits)",
             "Some of your numbers are 1 and above; expected from 0 up to, not including, 1."),
        Edit("torch.from_numpy(as_uniform(bits))", "torch.rand(len(examples), tokens)",
             "The same four inputs gave other random numbers at the second call: you use a running "
             "generator. Make the numbers a function of (seed, epoch, example, position)."),
        Edit("examples.numpy()[:, None]", "np.zeros((len(examples), 1))",
             "All examples of a batch get the same row. Then the same positions are masked in "
             "every sequence: the number of the example must go in."),
        Edit("examples.numpy()[:, None]", "np.arange(len(examples))[:, None]", "Your numbers "
             "depend on the place in the batch: other examples in the same place get the same "
             "numbers. Make a row depend on the example's own number."),
        Edit("examples.numpy()[:, None]",
             "(examples.numpy() + 50_000 * np.arange(len(examples)))[:, None]", "The numbers of an "
             "example must not depend on who else is in the batch, nor on the order."),
        Edit("np.arange(tokens)", "np.arange(tokens, 0, -1)", "The first 8 numbers of a row change "
             "when 13 are asked for. Number t belongs to position t, however many follow."),
        Edit("np.arange(tokens)", "np.zeros(tokens)", "All positions of a row get the same number: "
             "then all of its tokens are masked, or none. The position must go in."),
        Edit("random_bits(seed", "random_bits(0",
             "The seed has no effect, so a second seed repeats the same experiment. It must go "
             "in."),
        Edit(", epoch, rows", ", 0, rows",
             "The epoch has no effect, so every epoch has the same mask. It must go in."),
        Edit(", epoch, rows", ", 0, rows + epoch", SUMS),
        Edit("CHOICE, positions", "CHOICE, 0 * positions",
             SHIFTED, more=((", rows,", ", rows + positions,"),)),
        Edit("as_uniform(bits)", "as_uniform(bits) ** 2",
             "The numbers are not uniform: each tenth of [0, 1) must be hit equally often."),
        Edit("as_uniform(bits)", "as_uniform(bits[:, :1]) / 2 + as_uniform(bits) / 2",
             "Neighbouring numbers are correlated: a large one predicts the next. Mix harder: "
             "multiply, shift, exclusive or."),
        Edit("rows, positions =", "torch.manual_seed(seed); rows, positions =", "Your numbers are "
             "right, but you changed torch's global generator, so later draws (dropout, "
             "initialisation) get other numbers. Use a generator of your own, or none."),
        Edit("rows, positions =", "np.random.seed(seed); rows, positions =",
             "Your numbers are right, but you changed numpy's global generator, so later draws get "
             "other numbers. Use np.random.default_rng, or none."),
    ),
)  # fmt: skip
