"""Exercise 08.4: logarithmic buckets, with a free choice of how many distances keep their own. k
buckets to either side."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.kernels.positions import log_bucket
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Other, Stage, written
from course_lib.teaching.exercises.outputs import Numbers


def bucket(distance: Tensor, buckets: int, furthest: int, exact: int) -> Tensor:
    """Whole distances -> whole buckets, from −(k − 1) to k − 1, of the same shape."""
    size = distance.abs().clamp(min=exact)  # nearer ones are not used
    fraction = (size / exact).log() / math.log((furthest - 1) / exact)  # 0 at `exact`, 1 at the end
    rest = buckets - 1 - exact
    far = exact + (fraction * rest).ceil().long()
    far = far.clamp(max=buckets - 1)
    return torch.where(distance.abs() <= exact, distance, far * distance.sign())


Sizes = tuple[int, int, int]


def random_sizes(draw: Draw) -> Sizes:
    """k, furthest, exact; `exact` is far from half of k, and far from 1."""
    k = draw.integer(14, 24)
    exact = draw.python.choice([draw.integer(3, 5), draw.integer(k - 5, k - 4)])
    return k, draw.integer(4, 7) * k, exact


def cases(draw: Draw, lower: int, upper: int, *several: Sizes) -> list[Case]:
    """Distances from lower · furthest to upper · furthest; four at a time, to be shown to whoever
    fails them, then all. Left out are those so near to a whole number that rounding decides."""
    examples: list[Case] = []
    for k, furthest, exact in several:
        d = torch.arange(lower * furthest + 1, upper * furthest)
        far = (d.abs().clamp(min=exact).double() / exact).log()
        far = far / math.log((furthest - 1) / exact) * (k - 1 - exact)
        d = d[(d.abs() <= exact) | (d.abs() >= furthest) | ((far - far.round()).abs() > 1e-3)]
        d = d[torch.randperm(len(d), generator=draw.torch)]
        examples += [(x, k, furthest, exact) for x in (*d[:24].view(6, 2, 2), d.clone())]
    return examples


def near(draw: Draw) -> list[Case]:
    several = [random_sizes(draw) for _ in range(4)]
    return [(draw.ids(-size[2], size[2], 2, 4), *size) for size in several]


def spread(lower: int, upper: int, times: int) -> Callable[[Draw], list[Case]]:
    return lambda draw: cases(draw, lower, upper, *(random_sizes(draw) for _ in range(times)))


def published_sizes(draw: Draw) -> list[Case]:
    sizes = (256, 512, draw.integer(40, 90))
    return [*cases(draw, -1, 1, (256, 512, 128), sizes), (torch.tensor([511, -511]), *sizes)]


REST = "rest = buckets - 1 - exact"
CURVE = "(size / exact).log() / math.log((furthest - 1) / exact)"
CEIL = "(fraction * rest).ceil().long()"
CUT = "far.clamp(max=buckets - 1)"
WHERE = "torch.where(distance.abs() <= exact, distance, far * distance.sign())"

BUCKET = Exercise(
    **written("08.4"),
    solution=bucket,
    returns=Numbers("tensor of buckets", kind="int"),
    see="course_lib.kernels.positions.log_bucket: exact is half of the buckets, and nothing ends; "
        "position_rows(…, cut_at_furthest=True) is the rule of this exercise",
    when_raised=(
        (r"must be real number|only one element|expected Tensor|must be Tensor",
         "math functions take one number, torch functions a tensor: torch.log for the distances, "
         "math.log for the number below the line."),
        (r"ambiguous", "An if needs one True or False, and a tensor has many. "
         "torch.where(condition, a, b) chooses entry by entry."),
        (r"math domain error|expected a positive input",
         "There is no logarithm of 0 or of a negative distance: take distance.abs(), and leave the "
         "near distances out."),
    ),
    stages=(
        Stage("near distances keep their number", near),
        Stage("far ones share buckets", spread(0, 1, 2)),  # positive: j is left of i
        Stage("both sides", spread(-1, 1, 2)),
        Stage("further than furthest", spread(-2, 2, 3)),
        Stage("the published 256 buckets", published_sizes),
    ),
    mistakes=(
        Edit(REST, "rest = exact - 1", "Beyond `exact` you spread over exact − 1 buckets. The "
             "source above has middle − 1 because half of the buckets are near and half are far. "
             "Here k − 1 − exact are left."),
        Edit(REST, "rest = buckets - exact", "Beyond `exact` you spread over k − exact buckets, "
             "one too many: the last is k − 1, so k − 1 − exact are left."),
        Edit(REST, "rest = buckets - 1", "Beyond `exact` you spread over k − 1 buckets, as if the "
             "near ones took none: k − 1 − exact are left."),
        Edit(REST, "rest = buckets // 2 - 1", "Beyond `exact` you spread over half of the buckets, "
             "less one. The near ones take `exact`, so k − 1 − exact are left."),
        Edit(CURVE, "(size / exact).log() / math.log(furthest / exact)",
             "Your last bucket is reached at `furthest`. It should be reached at furthest − 1."),
        Edit(CURVE, "size.log() / math.log(furthest - 1)",
             "You take the logarithm of the distance itself, which is 0 at distance 1. Buckets "
             "start to widen at `exact`: take log(distance / exact), which is 0 there."),
        Edit(CURVE, "(size - exact).clamp(min=1).log() / math.log(furthest - 1 - exact)",
             "You take the logarithm of distance − exact. Buckets widen by a factor: take "
             "log(distance / exact), and the same in the denominator."),
        Edit(CURVE, "(size - exact) / (furthest - 1 - exact)",
             "Beyond `exact` your buckets are all equally wide. They widen by a constant factor: "
             "the fraction is a quotient of logarithms."),
        Edit(CURVE, "(size / exact).log()", "log(distance / exact) is not divided by log((furthest "
             "− 1) / exact): the last bucket is reached too early or too late."),
        *(Edit(CURVE, f"(size / exact).{above}() / math.{below}((furthest - 1) / exact)",
               f"The two logarithms have different bases, torch.{above} above the line and "
               f"math.{below} below. Any base will do, the same for both.")
          for above, below in (("log2", "log"), ("log", "log2"), ("log10", "log"))),
        Edit(CEIL, "(fraction * rest).floor().long()", "You round down, or every bucket beyond "
             "`exact` is one too low: the first distances beyond `exact` share its bucket. "
             "Their bucket is exact + 1, so round up: ceil."),
        Edit(CEIL, "(fraction * rest).round().long()", "You round to the nearest whole number. "
             "Round up: ceil, so that `exact` is alone in its bucket."),
        Edit(WHERE, WHERE.replace("distance", "distance.abs()"),
             "The sign is lost: keys to the right land in the buckets of keys to the left. The "
             "bucket of −d is minus the bucket of d."),
        Edit(WHERE, "torch.where(distance.abs() <= exact, distance, far)",
             "Beyond `exact` the sign is lost. The bucket of −d is minus the bucket of d: multiply "
             "by distance.sign()."),
        Edit(WHERE, "torch.where(distance <= exact, distance, far * distance.sign())",
             "Every negative distance keeps its own number: the comparison with `exact` forgets "
             "the sign. Compare distance.abs()."),
        Edit("distance.abs().clamp(min=exact)", "distance.clamp(min=exact)",
             "Far negative distances are raised to `exact` before the logarithm, so all keys to "
             "the right get one number. Take distance.abs() first."),
        Edit("distance.abs().clamp(min=exact)", "distance",
             "The logarithm of a negative distance is nan: take distance.abs() first. In your "
             "result all keys far to the right have the same meaningless number."),
        Edit(WHERE, "far * distance.sign()", "Distances up to `exact` all land in bucket `exact`. "
             "Each of them has a bucket of its own: the distance itself."),
        Edit("exact + (", "(", "Beyond `exact` you count from zero. Add `exact`, because the "
             "near buckets come first."),
        Edit(CUT, "far", "Distances beyond furthest − 1 get buckets beyond the last, as in "
             "transformers and in `log_bucket`, where the row is cut afterwards. Follow the "
             "authors' rule: they all stay in bucket k − 1."),
        Edit(CUT, "far.clamp(max=buckets - (distance > 0).long())",
             "That is the rule of transformers and of this library: from `furthest` on, keys to "
             "the right have bucket −k and so row 0 of the table, which no text of up to "
             "`furthest` tokens trains. Follow the authors' rule: bucket −(k − 1), as for "
             "furthest − 1."),
        Edit(CUT, "far.clamp(max=buckets)",
             "Your last bucket is k; with 0 to k − 1 there are k of them already."),
        Edit(WHERE, WHERE.replace("exact", "buckets // 2"), "Distances up to half of the buckets "
             "keep their own number, as in the source above. Here it is up to `exact`."),
        Edit(WHERE, f"{WHERE} + buckets", "You have added k: that is the row of the table. "
             "Expected is the bucket, from −(k − 1) to k − 1."),
        Other(lambda d, k, f, exact: log_bucket(d, k, f).clamp(1 - k, k - 1),
              "`exact` has no effect: half of the buckets are near, as in the source above. How "
              "many buckets are left beyond `exact` if it is not half of them?"),
        Edit(WHERE, "distance.clamp(1 - buckets, buckets - 1)",
             "This is the first generation's rule, which cuts: distances from k − 1 on share "
             "one bucket, and no others share any. Here buckets widen from `exact` on."),
    ),
)  # fmt: skip
