"""Exercise 13.5: three numbers from a list of times."""

from __future__ import annotations

import math
from collections.abc import Sequence

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def latency(seconds: Sequence[float], warm_up: int, batch_size: int) -> tuple[float, float, float]:
    """Median and 95th percentile (nearest rank) of a call's seconds, and texts per second, all
    without the first `warm_up` calls."""
    timed = seconds[warm_up:]
    ordered, n = sorted(timed), len(timed)
    median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    p95 = ordered[math.ceil(95 * n / 100) - 1]
    throughput = batch_size * n / sum(timed)
    return median, p95, throughput


# ---------------------------------------------------------------- cases


def case(draw: Draw, warm_up: int, calls: int, batch_size: int, slow: float = 4.0) -> Case:
    """Warm-up calls take `slow` times as long; now and then a call is held up."""
    seconds = [draw.python.uniform(0.020, 0.040) for _ in range(warm_up + calls)]
    seconds = [s * (slow if i < warm_up else 1.0) for i, s in enumerate(seconds)]
    late = warm_up + draw.integer(0, calls - 1)
    seconds[late] *= 5
    return seconds, warm_up, batch_size


def by_hand(draw: Draw) -> list[Case]:
    """The statement's times, in milliseconds there."""
    seconds = [0.090, 0.020, 0.030, 0.025, 0.045]
    return [(seconds, 1, 8), (seconds, 2, 4), case(draw, 1, 6, 2)]


def unhurried(draw: Draw, warm_up: int, calls: int, batch_size: int) -> Case:
    """Warm-up calls that are no slower than others, which are dropped all the same."""
    return case(draw, warm_up, calls, batch_size, 0.9)


def interpolated(ordered: Sequence[float]) -> float:
    """The 95th percentile as numpy's default has it, for a known mistake."""
    place = 0.95 * (len(ordered) - 1)
    low, rest = int(place), place % 1
    return ordered[low] + rest * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


TIMED = "seconds[warm_up:]"
MEDIAN = "(ordered[(n - 1) // 2] + ordered[n // 2]) / 2"
P95, RANK = "ordered[math.ceil(95 * n / 100) - 1]", "math.ceil(95 * n / 100) - 1"
THROUGHPUT = "batch_size * n / sum(timed)"

TIMING = Exercise(
    **written("13.5"),
    solution=latency,
    returns=(Number("median", "seconds", tol=1e-9), Number("95th percentile", "seconds", tol=1e-9),
             Number("throughput", "texts per second")),
    see="course_lib.bench.measuring.measure warms up, and lets the contenders take turns",
    when_raised=(
        (r"index out of range", "The ⌈0.95 · n⌉-th number of a sorted list has the index ⌈0.95 · "
         "n⌉ − 1."),
        (r"indices must be integers|slice indices", "math.ceil gives a whole number; n / 2 does "
         "not, n // 2 does."),
    ),
    stages=(
        Stage("five calls", by_hand),
        Stage("an even number of calls", each(case, (2, 8, 4), (1, 10, 16), (3, 12, 1))),
        Stage("an odd number of calls", each(case, (1, 7, 4), (3, 11, 32), (2, 25, 8))),
        Stage("twenty, forty, a hundred calls", each(case, (2, 20, 8), (4, 40, 16), (5, 100, 2))),
        Stage("warm-up calls that are not slow",
              each(unhurried, (3, 21, 8), (4, 20, 2), (0, 9, 4))),
    ),
    mistakes=(
        Edit(TIMED, "seconds", "The warm-up calls are in. They allocate memory and fill caches, "
             "which a server does once, before its first user."),
        Edit(TIMED, "seconds[warm_up + 1:]", "One call too many is dropped: [warm_up:] leaves the "
             "first `warm_up` out."),
        Edit(TIMED, "seconds[: len(seconds) - warm_up]", "You drop the last calls. The first ones "
             "are the warm-up."),
        Edit(TIMED, "sorted(seconds)[warm_up:]", "You sort first, and so drop the *fastest* "
             "calls. The warm-up calls are the first in time."),
        Edit(TIMED, "sorted(seconds)[: len(seconds) - warm_up]", "You drop the slowest calls, "
             "wherever they are. A slow call after the warm-up is what users see: it stays."),
        Edit(MEDIAN, "sum(timed) / n", "This is the mean, which one delayed call moves. Expected "
             "the median."),
        Edit(MEDIAN, "ordered[n // 2]", "Of an even number of calls you take the upper middle one. "
             "The median is the mean of the two in the middle."),
        Edit(MEDIAN, "ordered[(n - 1) // 2]", "Of an even number of calls you take the lower "
             "middle one. The median is the mean of the two in the middle."),
        Edit(MEDIAN, "(timed[(n - 1) // 2] + timed[n // 2]) / 2", "This is the call in the middle "
             "of the *list*. Sort the times first."),
        Edit(MEDIAN, "min(timed)", "This is the fastest call. A user waits for a typical one."),
        Edit(P95, "timed[math.ceil(95 * n / 100) - 1]", "You take the 95th percentile of the "
             "times as they came. Sort them first."),
        Edit(RANK, "95 * n // 100", "Your rank counts from 0: where 0.95 · n is whole, it is one "
             "too high. The ⌈0.95 · n⌉-th number has the index ⌈0.95 · n⌉ − 1."),
        Edit(RANK, "max(0, 95 * n // 100 - 1)", "You round 0.95 · n down. At least 95% of the "
             "calls must be no slower: round up."),
        Edit(RANK, "math.ceil(5 * n / 100) - 1", "This is the 5th percentile, among the fastest "
             "calls. 19 of 20 calls are no slower than the 95th."),
        Edit(P95, "max(timed)", "This is the slowest call. Among many calls one is always very "
             "slow; the 95th percentile leaves out one in twenty."),
        Edit(P95, "interpolated(ordered)", "You interpolate between two calls. Nearest rank takes "
             "a time that was measured."),
        Edit(P95, "sorted(seconds)[math.ceil(95 * len(seconds) / 100) - 1]", "The warm-up calls "
             "are in your 95th percentile."),
        Edit(THROUGHPUT, "n / sum(timed)", "These are calls per second. Each call answers a batch "
             "of texts."),
        Edit(THROUGHPUT, "batch_size / median", "You divide by the median. Slow calls count with "
             "all their time: divide all texts by the sum of the times."),
        Edit(THROUGHPUT, "batch_size / p95", "You divide by the 95th percentile. Divide all texts "
             "by all the time."),
        Edit(THROUGHPUT, "batch_size * n / sum(seconds)", "You count the warm-up's time, but not "
             "its texts."),
        Edit(THROUGHPUT, "batch_size * len(seconds) / sum(seconds)", "Your throughput includes "
             "the warm-up, both texts and time."),
        Edit(THROUGHPUT, "batch_size * len(seconds) / sum(timed)", "You count the warm-up's "
             "texts, but not its time."),
        Edit(THROUGHPUT, "batch_size / sum(timed)", "You count one batch, but the time of all."),
        Edit(THROUGHPUT, "sum(batch_size / s for s in timed) / n", "This is the mean of the "
             "calls' rates, in which a slow call hardly counts: divide all texts by all the time."),
        Edit(THROUGHPUT, "n / batch_size / sum(timed)", "You divide by the batch size. Each call "
             "answers that many texts: multiply."),
        Edit("return median, p95", "return 1000 * median, 1000 * p95", "These are milliseconds. "
             "Expected seconds."),
    ),
)  # fmt: skip
