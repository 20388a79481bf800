"""Exercise 14.1: the roof over a kernel, in seconds.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isclose
from typing import Any, NamedTuple

from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import Answer, Check, Draw, Exercise, Suspect, call


class Kernel(NamedTuple):
    """What it does and moves, and what the machine can: GFLOP/s and GB/s."""

    flops: float
    bytes_moved: float
    peak: float
    bandwidth: float


Cases = Callable[[Draw], list[Kernel]]
GIGA = 1e9


def least_seconds(flops: float, bytes_moved: float, peak: float, bandwidth: float) -> float:
    """Arithmetic and memory work at the same time: who takes longer decides."""
    return max(flops / (peak * GIGA), bytes_moved / (bandwidth * GIGA))


# ---------------------------------------------------------------- known wrong answers


def _of(join: Callable[[float, float], float], scale: float = 1.0) -> Answer:
    """join(seconds of arithmetic, seconds of memory)."""

    def answer(flops: float, bytes_moved: float, peak: float, bandwidth: float) -> float:
        return scale * join(flops / (peak * GIGA), bytes_moved / (bandwidth * GIGA))

    return answer


def _rate(flops: float, bytes_moved: float, peak: float, bandwidth: float) -> float:
    return min(peak, flops / bytes_moved * bandwidth)


BOUND_SUSPECTS = (
    Suspect(
        "sum",
        "You add the two times. Memory fetches the next numbers while arithmetic works on these: "
        "at best the shorter time hides behind the longer one.",
        _of(lambda a, m: a + m),
    ),
    Suspect(
        "smaller",
        "You return the shorter of the two times. A kernel is done when *both* are done: the "
        "longer one is the bound.",
        _of(min),
    ),
    Suspect(
        "mean",
        "You return the mean of the two times. The longer one is the bound.",
        _of(lambda a, m: (a + m) / 2),
    ),
    Suspect(
        "arithmetic alone",
        "Only arithmetic counts in your answer. A sum of two matrices is held up by memory: "
        "compare with the time that the bytes take.",
        _of(lambda a, m: a),
    ),
    Suspect(
        "memory alone",
        "Only memory counts in your answer. A large product is held up by arithmetic: compare "
        "with the time that the operations take.",
        _of(lambda a, m: m),
    ),
    Suspect(
        "rate",
        "You return a rate, min(peak, intensity · bandwidth): the height of the roof in GFLOP/s. "
        "Asked for is the time under it, in seconds.",
        _rate,
    ),
    Suspect(
        "rate",
        "You return a rate in operations a second. Asked for is the time, in seconds.",
        lambda *given: _rate(*given) * GIGA,
    ),
    Suspect(
        "milliseconds",
        "These are milliseconds; expected seconds.",
        _of(max, 1e3),
    ),
    Suspect(
        "giga forgotten",
        "Your time is 10⁹ times too long: peak and bandwidth count *billions* a second.",
        _of(max, GIGA),
    ),
    Suspect(
        "giga on one side",
        "The bytes are divided by billions a second, the operations are not. Peak is in GFLOP/s: "
        "10⁹ operations a second.",
        _of(lambda a, m: max(a * GIGA, m)),
    ),
    Suspect(
        "giga on one side",
        "The operations are divided by billions a second, the bytes are not. The bandwidth is in "
        "GB/s: 10⁹ bytes a second.",
        _of(lambda a, m: max(a, m * GIGA)),
    ),
    Suspect(
        "binary giga",
        "You count a billion as 2³⁰. GFLOP/s and GB/s are decimal: 10⁹.",
        _of(max, GIGA / 2**30),
    ),
    Suspect(
        "numbers for bytes",
        "You divide or multiply the bytes by four, as if numbers of 4 bytes had been counted. "
        "`bytes_moved` is in bytes already.",
        _of(lambda a, m: max(a, m / 4)),
    ),
    Suspect(
        "numbers for bytes",
        "You divide or multiply the bytes by four, as if numbers of 4 bytes had been counted. "
        "`bytes_moved` is in bytes already.",
        _of(lambda a, m: max(a, m * 4)),
    ),
    Suspect(
        "multiply-adds",
        "You halve or double the operations. `flops` counts them as the peak does: a multiply-add "
        "is two in both.",
        _of(lambda a, m: max(a / 2, m)),
    ),
    Suspect(
        "multiply-adds",
        "You halve or double the operations. `flops` counts them as the peak does: a multiply-add "
        "is two in both.",
        _of(lambda a, m: max(a * 2, m)),
    ),
    Suspect(
        "rates exchanged",
        "The operations are divided by the bandwidth and the bytes by the peak. It is the other "
        "way round.",
        lambda f, b, peak, bandwidth: max(f / bandwidth, b / peak) / GIGA,
    ),
    Suspect(
        "upside down",
        "You divide the rate by the amount. Amount divided by rate is a time.",
        lambda f, b, peak, bandwidth: max(peak * GIGA / f, bandwidth * GIGA / b),
    ),
)


# ---------------------------------------------------------------- inputs


def _kernel(draw: Draw, side: float) -> Kernel:
    """side: the intensity as a multiple of the machine's ridge."""
    peak, bandwidth = draw.integer(50, 900) + 0.5, draw.integer(8, 90) + 0.25
    moved = draw.integer(10**6, 10**9)
    return Kernel(round(side * moved * peak / bandwidth), moved, peak, bandwidth)


def _sides(*sides: float) -> Cases:
    return lambda draw: [_kernel(draw, side) for side in sides]


def _page(draw: Draw) -> list[Kernel]:
    """A product and a sum of n × n matrices in float32."""
    n, peak, bandwidth = 2 ** draw.integer(8, 12), draw.integer(100, 900), draw.integer(10, 90)
    return [Kernel(flops, 12 * n * n, peak, bandwidth) for flops in (2 * n**3, n * n)]


RICH, POOR = (12.0, 7.0), (0.02, 0.1)
everything = _sides(6.0, 0.15, 1.4, 0.7)


# ---------------------------------------------------------------- stages


def _ask_bound(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case)), least_seconds(*case)
            if _agree(given, right):
                continue
            pools = [everything(draw), cases(draw)]
            raise told(
                name_suspect(answer, case, pools, BOUND_SUSPECTS, _same),
                f"{case.flops:.3g} operations and {case.bytes_moved:.3g} bytes at "
                f"{case.peak:g} GFLOP/s and {case.bandwidth:g} GB/s: you have {given:.4g}; it is "
                f"{right:.4g} seconds.",
            )

    return ask


def _read(x: Any) -> float:
    return one_number(x, "seconds")


def _agree(mine: float, theirs: float) -> bool:
    return isclose(mine, theirs, rel_tol=1e-6)


def _same(mine: Any, theirs: float, _case: Any) -> bool:
    return _agree(_read(mine), theirs)


BOUND = Exercise(
    id="14.1",
    title="The roof, in seconds",
    purpose="two numbers that say how fast a kernel can get",
    difficulty=1,
    minutes=5,
    signature="my_bound(flops, bytes_moved, peak, bandwidth)",
    statement=(
        "A kernel does `flops` operations and must move `bytes_moved` bytes. The machine does "
        "`peak` GFLOP/s and moves `bandwidth` GB/s, both at the same time. Return the least number "
        "of seconds that the kernel takes. A copy has no operations at all: `flops` can be 0."
    ),
    hints=(
        "How long would it take if memory were infinitely fast? If arithmetic were?",
        "flops / (peak · 10⁹) and bytes_moved / (bandwidth · 10⁹), both in seconds.",
        "Both go on at once, so the longer one decides: max.",
        "2·10⁹ operations and 10⁹ bytes at 100 GFLOP/s and 20 GB/s: 0.02 and 0.05 seconds, so "
        "0.05.",
    ),
    solution=least_seconds,
    see="course_lib.bench.roofline.Placed.share compares a measured time with this one",
    when_raised=(
        (
            r"division by zero",
            "flops can be 0, so nothing may be divided by it: divide by peak and by bandwidth.",
        ),
    ),
    stages=(
        Check("rich: far above the ridge", _ask_bound(_sides(*RICH))),
        Check("poor: far below it", _ask_bound(_sides(*POOR))),
        Check("near the ridge", _ask_bound(_sides(1.3, 0.8))),
        Check("no operations at all", _ask_bound(_sides(0.0))),
        Check("a product and a sum of matrices", _ask_bound(_page)),
    ),
)
