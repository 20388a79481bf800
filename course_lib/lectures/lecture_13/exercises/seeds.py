"""Exercise 13.4: which of two models is better, in every seed and beyond the spread? S seeds."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Number


def better(a: Tensor, b: Tensor) -> int:
    """1 if `a` is better, −1 if `b` is, 0 if nobody knows: (S,), (S,), a seed's two side by side.

    Better means: in every seed, and on average by more than the standard deviation of the
    differences."""
    gains = a - b
    side = gains.mean().sign()
    if len(gains) < 2:
        return 0  # one seed has no spread
    always = (gains * side > 0).all()
    clear = gains.mean().abs() > gains.std()
    return int(side) if always and clear else 0


# ---------------------------------------------------------------- cases

Gains = tuple[float, ...]  # what one model has more than the other, seed by seed
CLEAR = (2.0, 3.0, 2.5, 3.5)
ENOUGH = (1.0, 3.2, 1.2, 3.4)  # the mean is 1.7 standard deviations
AGAINST = (3.0, 4.0, 3.5, -0.5)  # one seed says the opposite
WIDE = (0.2, 0.3, 4.0, 0.1)  # the mean is below the standard deviation
TWO = (0.2, 1.8)  # with n − 1 the standard deviation is above the mean, with n below
TIE = (0.0, 2.0, 2.2, 1.8)
SMALL = (0.30, 0.40, 0.35, 0.50)
STEADY = (2.15, 2.25, 2.20, 2.10)


def pair(draw: Draw, gains: Gains, seeds_apart: float, turned: bool) -> Case:
    """Scores in percent; what a seed does to both models takes steps of `seeds_apart`."""
    scale, order = draw.python.uniform(0.8, 1.2), draw.python.sample(gains, len(gains))
    b = 70 + scale * seeds_apart * torch.arange(len(gains)) + 0.01 * draw.normal(len(gains))
    a = b + scale * torch.tensor(order, dtype=torch.float64)
    return (b, a) if turned else (a, b)


def both_ways(*gains: tuple[Gains, float]) -> list[tuple[Gains, float, bool]]:
    return [(*one, turned) for one in gains for turned in (False, True)]


def by_hand(draw: Draw) -> list[Case]:
    pairs = ([71, 73, 75], [70, 71, 74]), ([70, 73, 76], [71, 72, 73]), ([72, 70], [73, 74])
    return [tuple(torch.tensor(x, dtype=torch.float64) for x in two) for two in pairs]


def clear(draw: Draw) -> list[Case]:
    gains = ((CLEAR, 0.1), (SMALL, 3.0), (ENOUGH, 0.1), (STEADY, 0.8), (STEADY, 1.0))
    return [pair(draw, *x) for x in both_ways(*gains)]


def not_always(draw: Draw) -> list[Case]:
    """One seed against; one that sorting would hide; a best run of the worse model."""
    hidden = torch.tensor([[82.5, 83.5, 84.5, 81.5], [80.0, 81.0, 82.0, 83.0]]).double()
    lucky = torch.tensor([[80.0, 83.0, 82.0], [79.0, 80.0, 84.0]]).double()
    pairs = [x + draw.integer(-9, 9) for x in (hidden, lucky)]
    return [*(pair(draw, *x) for x in both_ways((AGAINST, 0.1), (AGAINST, 2.0))),
            *((a, b) for a, b in pairs), *((a, b) for b, a in pairs)]  # fmt: skip


def large_spread(draw: Draw) -> list[Case]:
    return [pair(draw, *x) for x in both_ways((WIDE, 0.0), (WIDE, 2.0), (TWO, 0.1), (CLEAR, 2.0))]


def even(draw: Draw) -> list[Case]:
    same = 70 + draw.normal(4)
    return [(same, same.clone()), *(pair(draw, *x) for x in both_ways((TIE, 0.1), (CLEAR, 0.1)))]


def alone(draw: Draw) -> list[Case]:
    return [pair(draw, *x) for x in both_ways(((2.0,), 0.0), (CLEAR, 0.1))]


GAINS, SPREAD = "a - b\n", "gains.std()"
ALWAYS, CLEARLY = "(gains * side > 0).all()", "gains.mean().abs() > gains.std()"
RETURN = "int(side) if always and clear else 0"

SEEDS = Exercise(
    **written("13.4"),
    solution=better,
    returns=Number("verdict", kind="int"),
    when_raised=(
        (r"ambiguous", "Comparing tensors gives one True or False a seed: .all() reduces them to "
         "one."),
    ),
    stages=(
        Stage("on paper", by_hand),
        Stage("clearly better", clear),
        Stage("one seed says the opposite", not_always),
        Stage("in every seed, but how much differs", large_spread),
        Stage("as good as each other", even),
        Stage("one seed", alone),
    ),
    mistakes=(
        Edit(ALWAYS, "True", "In one seed the other model is better, yet you declare a winner. "
             "Every seed counts, not just most of them or the mean."),
        Edit(ALWAYS, "(gains * side >= 0).all()", "Equal is not better: in a seed with equal "
             "scores neither model wins."),
        Edit(CLEARLY, "True", "You do not compare with the standard deviation. Agreement of all "
             "seeds is not enough. (The standard error would not help: the mean exceeds it "
             "whenever all seeds agree.)"),
        Edit(SPREAD, "gains.std(correction=0)", "Your standard deviation divides by n. A few seeds "
             "are a sample: divide by n − 1, as .std() of torch does (numpy's does not)."),
        Edit(SPREAD, "gains.var()", "This is the variance. Its root is the standard deviation."),
        Edit(SPREAD, "2 * gains.std()", "You ask for two standard deviations. More than one "
             "is enough."),
        Edit(SPREAD, "a.std()", "You take the standard deviation of a's scores. What a seed does "
             "to both models alike does not matter: take that of the differences."),
        Edit(SPREAD, "b.std()", "You take the standard deviation of b's scores. Take that of the "
             "differences."),
        Edit(SPREAD, "(a.var() + b.var()).sqrt()", "You compare the models as if they had run on "
             "different seeds. Runs of one seed belong together: take the standard deviation of "
             "the differences."),
        Edit(SPREAD, "(a.std() + b.std())", "You require that mean ± standard deviation of both "
             "models do not overlap. Runs of one seed belong together: take the standard deviation "
             "of the differences."),
        Edit(ALWAYS, "((a.min() > b.max()) | (b.min() > a.max()))", "You require the worst run "
             "of one to be above the best of the other. Compare seed by seed."),
        Edit(GAINS, "a.sort().values - b.sort().values\n", "You sort the scores first. Then you "
             "compare the best run of one with the best of the other, whatever its seed."),
        Edit(RETURN, "int((a.max() - b.max()).sign())", "You compare the best runs. The best of "
             "several seeds is luck, and more seeds mean more luck."),
        Edit(RETURN, "int(always and clear)", "You say whether one is better, but not which: "
             "return −1 where it is `b`."),
        Edit(RETURN, "max(0, int(side)) if always and clear else 0", "Where `b` is better you "
             "return 0. Expected −1."),
        Edit(RETURN, "int(side)", "You say which mean is higher. A difference may be chance: the "
             "two conditions test for that."),
        Edit(RETURN, "int(side) if always or clear else 0", "One of the two conditions is enough "
             "in your answer. Both must hold."),
        Edit("return 0  #", "return int(side)  #", "You let one seed decide. It cannot say how far "
             "another would be from it: return 0."),
    ),
)  # fmt: skip
