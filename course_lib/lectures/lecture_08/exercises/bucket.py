"""Exercise 08.3: logarithmic buckets, with a free choice of how many distances keep their own. k
buckets to either side.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.positions import log_bucket
from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    expect_tensor,
)

Case = tuple[Tensor, int, int, int]  # distances, buckets k, furthest, exact
Cases = Callable[[Draw], list[Case]]
Sizes = tuple[int, int, int]  # buckets k, furthest, exact


def bucket(distance: Tensor, buckets: int, furthest: int, exact: int) -> Tensor:
    """Whole distances -> whole buckets, from −(k − 1) to k − 1, of the same shape."""
    size = distance.abs().clamp(exact, furthest - 1)  # nearer ones are not used; further ones stop
    share = (size / exact).log() / math.log((furthest - 1) / exact)  # 0 at `exact`, 1 at the end
    far = exact + (share * (buckets - 1 - exact)).ceil().long()
    far = far.clamp(max=buckets - 1)  # a share of 1.0000001 would be one too many
    return torch.where(distance.abs() <= exact, distance, far * distance.sign())


# ---------------------------------------------------------------- known wrong answers

Share = Callable[[Tensor, int, int, int], Tensor]  # (|distance|, k, furthest, exact) -> float


def _share(d: Tensor, k: int, furthest: int, exact: int) -> Tensor:
    return (d.clamp(min=exact).double() / exact).log() / math.log((furthest - 1) / exact)


def _beyond(d: Tensor, k: int, furthest: int, exact: int) -> Tensor:
    return _share(d, k, furthest, exact) * (k - 1 - exact)


# (key, what is said, how many buckets beyond `exact`, before rounding)
CURVES: tuple[tuple[str, str, Share], ...] = (
    ("", "", _beyond),
    (
        "as many far as near",
        "Beyond `exact` you share out exact − 1 buckets. The source above has middle − 1 there "
        "because half of the buckets are near and half are far. Here k − 1 − exact are left.",
        lambda d, k, f, e: _share(d, k, f, e) * (e - 1),
    ),
    (
        "one bucket too many",
        "Beyond `exact` you share out k − exact buckets, one too many: the last is k − 1, so k − 1 "
        "− exact are left.",
        lambda d, k, f, e: _share(d, k, f, e) * (k - e),
    ),
    (
        "all buckets beyond",
        "Beyond `exact` you share out k − 1 buckets, as if the near ones took none: k − 1 − exact "
        "are left.",
        lambda d, k, f, e: _share(d, k, f, e) * (k - 1),
    ),
    (
        "half of the buckets",
        "Beyond `exact` you share out half of the buckets, less one. The near ones take `exact`, "
        "so k − 1 − exact are left.",
        lambda d, k, f, e: _share(d, k, f, e) * (k // 2 - 1),
    ),
    (
        "furthest, not furthest − 1",
        "The last bucket is reached at `furthest`. It is to be reached at furthest − 1.",
        lambda d, k, f, e: (d.clamp(min=e).double() / e).log() / math.log(f / e) * (k - 1 - e),
    ),
    (
        "logarithm from 1",
        "The logarithm is that of the distance itself, and begins at distance 1. The widening "
        "begins at `exact`: take log(distance / exact), which is 0 there.",
        lambda d, k, f, e: d.clamp(min=1).double().log() / math.log(f - 1) * (k - 1 - e),
    ),
    (
        "logarithm of the excess",
        "The logarithm is that of distance − exact. Buckets widen by a factor: take log(distance / "
        "exact), and likewise below the line.",
        lambda d, k, f, e: (d - e).clamp(min=1).double().log() / math.log(f - 1 - e) * (k - 1 - e),
    ),
    (
        "linear",
        "Beyond `exact` your buckets are all equally wide. They widen by a constant factor: the "
        "share is a quotient of logarithms.",
        lambda d, k, f, e: (d - e).clamp(min=0).double() / (f - 1 - e) * (k - 1 - e),
    ),
    (
        "no denominator",
        "log(distance / exact) is not divided by log((furthest − 1) / exact): the last bucket is "
        "reached too early or too late.",
        lambda d, k, f, e: (d.clamp(min=e).double() / e).log() * (k - 1 - e),
    ),
    (
        "two bases",
        "The two logarithms have different bases, 2 above the line and e below. Any base will do, "
        "the same for both.",
        lambda d, k, f, e: _beyond(d, k, f, e) / math.log(2),
    ),
    (
        "two bases",
        "The two logarithms have different bases, e above the line and 2 below. Any base will do, "
        "the same for both.",
        lambda d, k, f, e: _beyond(d, k, f, e) * math.log(2),
    ),
    (
        "two bases",
        "The two logarithms have different bases, 10 above the line and e below. Any base will do, "
        "the same for both.",
        lambda d, k, f, e: _beyond(d, k, f, e) / math.log(10),
    ),
)

# (key, what is said, float -> whole bucket beyond `exact`)
ROUNDINGS: tuple[tuple[str, str, Callable[[Tensor], Tensor]], ...] = (
    ("", "", torch.ceil),
    (
        "floor",
        "You round down. Then the first distances beyond `exact` share its bucket, and only "
        "furthest − 1 itself reaches the last one. Round up: ceil.",
        torch.floor,
    ),
    (
        "round",
        "You round to the nearest whole number. Round up: ceil, so that `exact` is alone in its "
        "bucket.",
        torch.round,
    ),
    (
        "floor and one",
        "You round down and add one. That is ceil everywhere but at whole numbers: there, at "
        "furthest − 1 above all, it is one too many.",
        lambda x: x.floor() + 1,
    ),
)

# (key, what is said, (distance, far bucket without sign, (k, furthest, exact)) -> buckets)
Join = Callable[[Tensor, Tensor, Sizes], Tensor]


def _join(d: Tensor, far: Tensor, sizes: Sizes) -> Tensor:
    k, _, exact = sizes
    return torch.where(d.abs() <= exact, d, far.clamp(max=k - 1) * d.sign())


JOINS: tuple[tuple[str, str, Join], ...] = (
    ("", "", _join),
    (
        "sign lost",
        "The sign is lost: what is to the right lands in the buckets of what is to the left. The "
        "bucket of −d is minus the bucket of d.",
        lambda d, far, sizes: _join(d.abs(), far, sizes),
    ),
    (
        "sign lost far away",
        "Beyond `exact` the sign is lost. The bucket of −d is minus the bucket of d: multiply by "
        "distance.sign().",
        lambda d, far, s: torch.where(d.abs() <= s[2], d, far.clamp(max=s[0] - 1)),
    ),
    (
        "negatives are all near",
        "Every negative distance keeps its own number: the comparison with `exact` forgets the "
        "sign. Compare distance.abs().",
        lambda d, far, s: torch.where(d <= s[2], d, _join(d, far, s)),
    ),
    (
        "near ones not their own",
        "Distances up to `exact` all land in bucket `exact`. Each of them has a bucket of its own: "
        "the distance itself.",
        lambda d, far, s: far.clamp(max=s[0] - 1) * d.sign(),
    ),
    (
        "no offset",
        "Beyond `exact` you count from zero: add `exact`, for the near buckets come first.",
        lambda d, far, s: _join(d, far - s[2], s),
    ),
    (
        "one too low",
        "Beyond `exact` every bucket is one too low: the first of them is exact + 1.",
        lambda d, far, s: _join(d, far - 1, s),
    ),
    (
        "does not end",
        "Distances beyond furthest − 1 get buckets beyond the last. They all stay in bucket k − 1.",
        lambda d, far, s: torch.where(d.abs() <= s[2], d, far * d.sign()),
    ),
    (
        "ends one late",
        "Your last bucket is k; with 0 to k − 1 there are k of them already.",
        lambda d, far, s: torch.where(d.abs() <= s[2], d, far.clamp(max=s[0]) * d.sign()),
    ),
    (
        "half is exact",
        "Distances up to half of the buckets keep their own number, as in the source above. Here "
        "it is up to `exact`.",
        lambda d, far, s: torch.where(d.abs() <= s[0] // 2, d, far.clamp(max=s[0] - 1) * d.sign()),
    ),
    (
        "row instead of bucket",
        "You have added k: that is the row of the table. Asked for is the bucket, from −(k − 1) to "
        "k − 1.",
        lambda d, far, s: _join(d, far, s) + s[0],
    ),
)


def _source(d: Tensor, k: int, f: int, e: int) -> Tensor:
    """The rule of the library, whatever `exact` is."""
    return log_bucket(d, k, f).clamp(1 - k, k - 1)


def _suspects() -> list[Suspect]:
    """One mistake first, then one of each kind together."""
    every = [_suspect(*parts) for parts in product(CURVES, ROUNDINGS, JOINS)]
    named = [suspect for suspect in every if suspect.key]
    copied = Suspect(
        "exact ignored",
        "`exact` has no effect: half of the buckets are near, as in the source above. How many "
        "buckets are left beyond `exact` if it is not half of them?",
        _source,
    )
    clipped = Suspect(
        "cut, not widened",
        "This cuts; it does not widen. It is the first generation's rule: all distances from k − 1 "
        "on share a bucket, and none before. Here buckets widen from `exact` on.",
        lambda d, k, f, e: d.clamp(1 - k, k - 1),
    )
    pairs = (s for s in named if s.key.count(" + ") < 2)
    return sorted([copied, clipped, *pairs], key=lambda suspect: " + " in suspect.key)


def _suspect(curve: Any, rounding: Any, join: Any) -> Suspect:
    parts = [part for part in (curve, rounding, join) if part[0]]

    def compute(d: Tensor, k: int, furthest: int, exact: int) -> Tensor:
        far = exact + rounding[2](curve[2](d.abs(), k, furthest, exact)).long()
        return join[2](d, far, (k, furthest, exact))

    return Suspect(" + ".join(p[0] for p in parts), " ".join(p[1] for p in parts), compute)


BUCKET_SUSPECTS = _suspects()


# ---------------------------------------------------------------- inputs


def _sizes(draw: Draw) -> Sizes:
    """`exact` is far from half of k, and far from 1."""
    buckets = draw.integer(14, 24)
    exact = draw.python.choice([draw.integer(3, 5), draw.integer(buckets - 5, buckets - 4)])
    return buckets, draw.integer(4, 7) * buckets, exact


def _case(draw: Draw, sizes: Sizes, low: int, high: int) -> Case:
    """The distances from low to high in drawn order, in two lines.

    Left out are those where single precision could fall on either side of a whole number."""
    d = torch.arange(low, high + 1)
    beyond = _beyond(d.abs(), *sizes)
    inner = (d.abs() > sizes[2]) & (d.abs() < sizes[1] - 1)
    d = d[~inner | ((beyond - beyond.round()).abs() > 1e-3)]
    d = d[torch.randperm(len(d), generator=draw.torch)]
    return d[: len(d) // 2 * 2].view(2, -1), *sizes


def _near(draw: Draw) -> list[Case]:
    cases = [_sizes(draw) for _ in range(2)]
    return [_case(draw, sizes, -sizes[2], sizes[2]) for sizes in cases]


def _left(draw: Draw) -> list[Case]:
    """Positive distances: j stands to the left of i."""
    cases = [_sizes(draw) for _ in range(2)]
    return [_case(draw, sizes, 0, sizes[1] - 1) for sizes in cases]


def _both(draw: Draw) -> list[Case]:
    cases = [_sizes(draw) for _ in range(2)]
    return [_case(draw, sizes, 1 - sizes[1], sizes[1] - 1) for sizes in cases]


def _everything(draw: Draw) -> list[Case]:
    cases = [_sizes(draw) for _ in range(4)]
    return [_case(draw, sizes, -2 * sizes[1], 2 * sizes[1]) for sizes in cases]


def _published(draw: Draw) -> list[Case]:
    return [_case(draw, (256, 512, exact), -600, 600) for exact in (128, draw.integer(40, 90))]


# ---------------------------------------------------------------- stages


def _ask_buckets(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case), case), bucket(*case)
            if torch.equal(given, right):
                continue
            _look_for_a_sign(case, given, right)
            pools = [_everything(draw), _both(draw), _left(draw), cases(draw)]
            found = name_suspect(answer, case, pools, BUCKET_SUSPECTS, _same)
            raise told(found, _example(case, given, right))

    return ask


def _look_for_a_sign(case: Case, given: Tensor, right: Tensor) -> None:
    """Raises Mistake where only far negative distances are wrong, and all of them are one number.

    Which number becomes of nan differs between processors, so no suspect can be asked."""
    d, k, furthest, exact = case
    beyond = d < -exact
    if not torch.equal(given[~beyond], right[~beyond]) or len(given[beyond].unique()) != 1:
        return
    at = int(d[beyond].max())
    raise Mistake(
        "sign in the logarithm",
        "The logarithm of a negative distance is nan: take distance.abs() first. (Raised to "
        "`exact` before the logarithm, all negative distances become one.) What is far to the "
        "right has one number for all in your result. With "
        f"k = {k}, furthest = {furthest} and exact = {exact}, distance {at} belongs to bucket "
        f"{int(right[d == at][0])}.",
    )


def _example(case: Case, given: Tensor, right: Tensor) -> str:
    d, k, furthest, exact = case
    wrong = (given != right).nonzero()
    at = tuple(min(wrong.tolist(), key=lambda at: abs(int(d[tuple(at)]))))
    return (
        f"With k = {k}, furthest = {furthest} and exact = {exact}, distance {int(d[at])}: you have "
        f"bucket {int(given[at])}; it is {int(right[at])}."
    )


def _read(x: Any, case: Case) -> Tensor:
    x = expect_tensor(x, tuple(case[0].shape), "a bucket for every distance")
    if x.is_floating_point() or x.dtype == torch.bool:
        raise Mistake(
            "not whole numbers",
            f"Your result has the type {x.dtype}; expected bucket numbers, whole numbers that can "
            "be looked up in a table: .long().",
        )
    return x.long()


def _same(mine: Any, theirs: Tensor, case: Case) -> bool:
    return torch.equal(_read(mine, case), theirs)


BUCKET = Exercise(
    id="08.3",
    title="Buckets that widen",
    purpose="near distances exactly, far ones roughly, and where the line runs",
    difficulty=3,
    minutes=15,
    signature="my_bucket(distance, buckets, furthest, exact)",
    statement=(
        "`log_bucket` gives half of the k buckets to near distances. Choose the line yourself: "
        "distances up to `exact` keep their own number as bucket. Then k − 1 − `exact` buckets are "
        "left (`buckets` is k), and what is further is spread over them:  \n"
        "bucket = `exact` + ceil(share · (how many are left)).  \n"
        "The share grows with the logarithm of the distance, from 0 at `exact` to 1 at `furthest` "
        "− 1. What is further than that stays in bucket k − 1. The bucket of −d is minus that of "
        "d. `distance` is a tensor of whole numbers of any shape; return whole numbers of that "
        "shape. A copy of `log_bucket` with one name changed will not do."
    ),
    hints=(
        "Work with distance.abs() and put the sign back at the end: distance.sign().",
        "The logarithm's share: log(size / exact) / log((furthest − 1) / exact) goes from 0 to 1. "
        "size must not be below exact: clamp.",
        "Buckets 1 to exact are taken by the near distances; buckets − 1 − exact are left, up to "
        "bucket k − 1.",
        "torch.where(distance.abs() <= exact, distance, …) keeps the near ones; "
        ".clamp(max=buckets − 1) ends the far ones.",
        "With k = 8, furthest = 65 and exact = 4, three buckets are left. 16 is half of the way "
        "from 4 to 64, by logarithm: 4 + ceil(1.5) = 6. 64 and 1,000 are in bucket 7.",
    ),
    solution=bucket,
    see="course_lib.kernels.positions.log_bucket: exact is half of the buckets, and nothing ends",
    when_raised=(
        (
            r"must be real number|only one element|expected Tensor|must be Tensor",
            "math functions take one number, torch functions a tensor: torch.log for the "
            "distances, math.log for the number below the line.",
        ),
        (
            r"ambiguous",
            "An if asks one question, and a tensor has many answers. torch.where(condition, a, b) "
            "chooses entry by entry.",
        ),
    ),
    stages=(
        Check("near distances keep their number", _ask_buckets(_near)),
        Check("far ones share buckets", _ask_buckets(_left)),
        Check("both sides", _ask_buckets(_both)),
        Check("further than furthest", _ask_buckets(_everything)),
        Check("the published 256 buckets", _ask_buckets(_published)),
    ),
)
