"""Exercise 13.3: the paired bootstrap. N test texts, R resampled test sets."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def interval(correct_a: Tensor, correct_b: Tensor, resampled: Tensor) -> Tensor:
    """From where to where accuracy(A) − accuracy(B) goes in 95% of the resampled test sets:
    (N,), (N,) bool, (R, N) indices -> (2,), numbers between −1 and 1."""
    gains = correct_a.double() - correct_b.double()  # (N,): 1, 0 or −1 a text
    differences = gains[resampled].mean(dim=1)  # (R,)
    return differences.quantile(torch.tensor([0.025, 0.975]).double())


# ---------------------------------------------------------------- cases


def case(draw: Draw, texts: int, sets: int, apart: float) -> Case:
    """Two models, right on most texts, that differ on a fraction `apart` of them."""
    correct_a = torch.rand(texts, generator=draw.torch) < 0.8
    other = torch.rand(texts, generator=draw.torch) < apart
    other[0] = True  # they differ once at least
    return correct_a, correct_a ^ other, draw.ids(0, texts - 1, sets, texts)


def distinct(draw: Draw, texts: int, sets: int, b_ahead: bool) -> Case:
    """Models that are nearly as good, either of them ahead, and no ties at the ends of the
    interval: an end one place off is another number."""
    while True:
        correct_a, correct_b, resampled = case(draw, texts, sets, 0.5)
        swapped = torch.rand(texts, generator=draw.torch) < 0.5
        both = torch.stack([correct_a, correct_b])
        one, other = torch.where(swapped, both.flip(0), both)
        gains = one.double() - other.double()
        if (gains.sum() < 0) != b_ahead:
            continue
        ordered, end = gains[resampled].mean(dim=1).sort().values, (sets - 1) // 40
        if len({*ordered[: end + 2].tolist(), *ordered[-end - 2 :].tolist()}) == 2 * end + 4:
            return one, other, resampled


def by_hand(draw: Draw) -> list[Case]:
    """The statement's four texts."""
    right = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 1]]).bool()
    return [(*right, draw.ids(0, 3, 41, 4)), (*right.flip(1), draw.ids(0, 3, 81, 4)),
            case(draw, 5, 41, 0.5)]  # fmt: skip


def equal(draw: Draw) -> list[Case]:
    """Models that answer alike: no test set tells them apart."""
    right, _, resampled = case(draw, 30, 41, 0)
    return [(right, right.clone(), resampled), case(draw, 30, 41, 0.02)]


GAINS = "correct_a.double() - correct_b.double()"
DIFFERENCES, ENDS = "gains[resampled].mean(dim=1)", "[0.025, 0.975]"
QUANTILES = f"differences.quantile(torch.tensor({ENDS}).double())"
OF_A, OF_B = (f"correct_{x}.double()[resampled].mean(dim=1).quantile(torch.tensor({ENDS}).double())"
              for x in "ab")  # fmt: skip
GIVEN = "The indices are given, so that the interval can be checked: use `resampled`."

BOOTSTRAP = Exercise(
    **written("13.3"),
    solution=interval,
    returns=Numbers("interval", shape="2"),
    see="course_lib.train.calibration.bootstrap_interval draws the indices itself; given the N "
    "gains, −1, 0 or 1, it is the paired bootstrap",
    forbidden={r"rand\w*|multinomial|choices?|integers|permut\w+|shuffle|sample|bernoulli_?|"
               r"uniform_?|normal_?": GIVEN},
    when_raised=(
        (r"quantile|q values|percentile", "torch.quantile takes floats, and fractions of 1: 0.025, "
         "not 2.5. (numpy's percentile takes percent.)"),
        (r"[Ss]ubtract.*bool|bool.*(mean|subtract)|dtype|Bool", "True and False cannot be "
         "subtracted or averaged: .double() makes 1 and 0 of them."),
    ),
    stages=(
        Stage("four texts", by_hand),
        Stage("models that often differ", each(case, (40, 81, 0.4), (60, 201, 0.3))),
        Stage("models that are nearly equally good", 
              each(distinct, (300, 41, False), (400, 41, True))),
        Stage("models that seldom differ", each(case, (80, 201, 0.06), (120, 401, 0.04))),
        Stage("models that never differ", equal),
    ),
    axes={"0": "the resampled sets", "1": "the texts of a set"},
    mistakes=(
        Edit(DIFFERENCES, "correct_a.double()[resampled].mean(dim=1) - "
             "correct_b.double()[resampled.roll(1, 0)].mean(dim=1)", "You test A and B on "
             "different resampled texts. This loses the pairing: hard texts are hard for both."),
        Edit(QUANTILES, f"({OF_A} - {OF_B})", "You take each model's own interval, and subtract "
             "the ends. The difference has a distribution of its own: subtract first, text by "
             "text."),
        Edit(QUANTILES, f"({OF_A} - {OF_B}.flip(0))", "You subtract B's upper end from A's lower "
             "end, and the other way round. That is even wider than if both were tested on "
             "different texts."),
        Edit(QUANTILES, OF_A, "This is the interval of A's own accuracy. Return that of the "
             "difference."),
        Edit(QUANTILES, OF_B, "This is the interval of B's own accuracy. Return that of the "
             "difference."),
        Edit(ENDS, "[0.05, 0.95]", "These are the ends of 90%. A 95% interval leaves out 2.5% on "
             "*either* side."),
        Edit(ENDS, "[0.05, 1.0]", "You leave out all 5% below: one-sided. Leave 2.5% out on "
             "either side."),
        Edit(ENDS, "[0.0, 0.95]", "You leave out all 5% above: one-sided. Leave 2.5% out on "
             "either side."),
        Edit(ENDS, "[0.0, 1.0]", "These are the smallest and the largest difference. They move "
             "outwards as R grows; the percentiles do not."),
        Edit(ENDS, "[0.25, 0.75]", "These are the quartiles, the middle *half*. 2.5% is 0.025."),
        Edit(ENDS, "[0.005, 0.995]", "These are the ends of 99%. Leave 2.5% out on either side."),
        *(Edit(QUANTILES, f"differences.sort().values[[(len(resampled) - 1) // 40 {inner} 1, "
               f"-1 - (len(resampled) - 1) // 40 {outer} 1]]", "Both ends are one place too "
               f"{where} in the sorted differences: counted from 0, they are at 0.025 (R − 1) and "
               "0.975 (R − 1).")
          for inner, outer, where in (("+", "-", "far inside"), ("-", "+", "far outside"))),
        Edit(GAINS, "(correct_a ^ correct_b).double()", "You count the texts on which they "
             "differ, whichever is right. A text that B alone gets right counts −1."),
        Edit(GAINS, "(correct_a & ~correct_b).double()", "You count what A alone gets right. "
             "Subtract what B alone gets right."),
        Edit(DIFFERENCES, "gains[resampled].std(dim=1)", "You take each set's standard deviation. "
             "Expected its mean."),
        Edit(QUANTILES, "(differences.mean() + 1.96 * differences.std() * "
             "torch.tensor([-1.0, 1.0]))", "This is mean ± 1.96 standard deviations, which assumes "
             "normal differences. Expected percentiles."),
        Edit(QUANTILES, "(differences.mean() + differences.std() * torch.tensor([-1.0, 1.0]))",
             "This is mean ± one standard deviation. Expected percentiles."),
        Edit(QUANTILES, f"({QUANTILES} - gains.mean())", "You subtract the difference on the "
             "whole test set. Then every interval contains 0."),
        Edit(QUANTILES, f"{QUANTILES}.flip(0)", "You swapped the two ends: the lower one "
             "comes first."),
    ),
)  # fmt: skip
