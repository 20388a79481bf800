"""Exercise 10.1: how often each language is drawn. K languages."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Other,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Numbers


def sampling(sizes: list[int], alpha: float) -> tuple[Tensor, Tensor]:
    """p^α / Σ p^α of each language, and how often each of its sentences is read (mBERT's README;
    Conneau et al. 2019, section 3): (K,) twice."""
    size = torch.tensor(sizes).double()
    p = size / size.sum()
    powers = p**alpha
    q = powers / powers.sum()
    return q, q / p


# ---------------------------------------------------------------- cases


def case(draw: Draw, languages: int, alpha: float) -> Case:
    """Sizes of all orders of magnitude, no two alike, in no order."""
    sizes = [int(10 ** draw.python.uniform(2 + n / 2, 2.4 + n / 2)) for n in range(languages)]
    draw.python.shuffle(sizes)
    return sizes, alpha


def icelandic() -> str:
    """Said when mBERT's own example is passed."""
    q, read = sampling([1_000_000, 1_000], 0.7)
    (english, small), (once, often) = q.tolist(), read.tolist()
    return (
        f"A thousand times as much English as Icelandic is drawn {english / small:.0f} times as "
        f"often: 1000^0.7. Each Icelandic sentence is read {often:.1f} times, each English one "
        f"{once:.2f} times."
    )


def q_alone(sizes: list[int], alpha: float) -> Tensor:
    """A known mistake: half of what is to be returned."""
    return sampling(sizes, alpha)[0]


def in_pairs(sizes: list[int], alpha: float) -> list[tuple[Tensor, Tensor]]:
    """A known mistake: a pair for each language instead of two lists."""
    return list(zip(*sampling(sizes, alpha), strict=True))


POWER, Q, READ = "p**alpha", "powers / powers.sum()", "return q, q / p"

SAMPLING = Exercise(
    **written("10.1"),
    solution=sampling,
    returns=(Numbers("list of probabilities", shape="K"),
             Numbers("list of times read", shape="K")),
    library=("course_lib.text.language_sampling:smoothed",
             "course_lib.text.language_sampling:times_read"),
    when_raised=(
        (r"\*\* or pow|unsupported operand", "`sizes` is a list: use its entries one by one, [… "
         "for size in sizes]."),
    ),
    stages=(
        Stage("two languages, α = 0.5", each(lambda draw, *sizes: ([*sizes], 0.5),
                                             (900, 100), (640, 360), (100, 900))),
        Stage("no smoothing, and every language alike",
              each(case, (3, 1.0), (4, 0.0), (2, 1.0), (3, 0.0))),
        Stage("other languages, other α", each(case, (3, 0.3), (5, 0.6), (4, 0.8), (6, 0.3))),
        Stage("mBERT's example: English and Icelandic, 1000 to 1, α = 0.7",
              each(lambda draw, *sizes: ([*sizes], 0.7), (1_000_000, 1_000)), remark=icelandic),
    ),
    mistakes=(
        Other(q_alone, "Your function returns the probabilities alone. Return two lists: the "
              "probabilities, and how often each language's sentences are read."),
        Other(in_pairs, "Your function returns a pair for each language. Return two lists, each "
              "with an entry for each language."),
        Edit(Q, "powers", "Your probabilities do not add up to one. Powers of fractions do "
             "not: divide by their sum."),
        Edit(Q, "powers / powers.max()", "The powers are divided by the "
             "largest of them. Divide by their sum: probabilities add up to one."),
        Edit(Q, "p", "α has no effect: these are the languages' fractions of the data."),
        Edit(Q, "torch.ones_like(p) / len(p)", "All languages have the same probability. That "
             "is α = 0, the default of XLM's program; here use the given α."),
        Edit(POWER, "p ** (1 / max(alpha, 1e-9))", "This is p^(1/α), as if α were a temperature "
             "(T5's mixing has p^(1/T)). With α below 1 that makes *large* languages larger. "
             "Use p^α."),
        Edit(POWER, "p ** (1 - alpha)", "This is p^(1 − α). With α = 1 languages must be drawn "
             "in the proportions of the data."),
        Edit(POWER, "alpha * p", "You multiply the fractions by α. Use α as an exponent: p to "
             "the power α."),
        Edit(POWER, "alpha**p", "Base and exponent are exchanged: p^α, not α^p."),
        Edit(POWER, "alpha * p + (1 - alpha) / len(p)", "This is a mixture, α of the data's "
             "fractions and 1 − α of equal ones. It agrees with p^α at α = 0 and 1, but not in "
             "between."),
        Edit(POWER, "p**-alpha", "Your exponent is negative, so the smallest language is drawn "
             "most often. α between 0 and 1 makes languages more alike and keeps their order."),
        Edit(Q, "powers.softmax(0)", "A softmax exponentiates the powers before it divides. "
             "Divide the powers themselves by their sum."),
        Edit(POWER, "(alpha * p).exp()", "This is a softmax of α · p. p is raised to a power: p to "
             "the power α, not e to the power α · p."),
        Edit(READ, "return q, q * size.sum()", "This is how many sentences of each *language* "
             "are read. Expected is how often each *sentence* is read: divide by their number."),
        Edit(READ, "return q, p / q", "This is the inverse: how much text there is for each "
             "sentence read."),
        Edit(READ, "return q, q / size", "Dividing by the size is right, but as many sentences "
             "are read as there are in all: multiply by their total number."),
        Edit(READ, "return q, q * len(p)", "You compare with drawing all languages equally "
             "often. Compare with how much text each has."),
        Edit(READ, "return q, q / q.max()", "You compare with the language drawn most often. "
             "Expected is how often each sentence is read."),
        Edit(READ, "return q, powers / p", "p^α / p lacks the sum: divide it by Σ p^α, as you "
             "did with the probabilities."),
    ),
)  # fmt: skip
