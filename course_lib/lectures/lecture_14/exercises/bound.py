"""Exercise 14.1: the roof over a kernel, in seconds."""

from __future__ import annotations

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number

GIGA = 1e9


def least_seconds(flops: float, bytes_moved: float, peak: float, bandwidth: float) -> float:
    """Arithmetic and memory work at the same time: who takes longer decides."""
    computing = flops / (peak * GIGA)
    moving = bytes_moved / (bandwidth * GIGA)
    longer = max(computing, moving)
    return longer


# ---------------------------------------------------------------- cases


def kernel(draw: Draw, side: float) -> Case:
    """side: the arithmetic intensity as a multiple of the machine's ridge."""
    peak, bandwidth = draw.integer(50, 900) + 0.5, draw.integer(8, 90) + 0.25
    moved = draw.integer(10**7, 10**8)
    return round(side * moved * peak / bandwidth), moved, peak, bandwidth


def product_and_sum(draw: Draw) -> list[Case]:
    """Of n × n matrices in float32."""
    n, peak, bandwidth = 2 ** draw.integer(8, 10), draw.integer(100, 900), draw.integer(10, 90)
    return [(flops, 12 * n * n, peak, bandwidth) for flops in (2 * n**3, n * n)]


BOUND = Exercise(
    **written("14.1"),
    solution=least_seconds,
    returns=Number("time", "seconds", tol=2e-8),  # the times are from 10⁻⁵ to 0.2
    see="course_lib.bench.roofline.Placed.share compares a measured time with this one",
    when_raised=(
        (r"division by zero",
         "flops can be 0, so nothing may be divided by it: divide by peak and by bandwidth."),
    ),
    stages=(
        Stage("compute-bound: far above the ridge", each(kernel, [12.0], [7.0])),
        Stage("memory-bound: far below it", each(kernel, [0.02], [0.1])),
        Stage("near the ridge", each(kernel, [1.3], [0.8])),
        Stage("no FLOPs at all", each(kernel, [0.0], [0.0])),
        Stage("a product and a sum of matrices", product_and_sum),
    ),
    mistakes=(
        Edit("max(computing, moving)", "computing + moving",
             "You add the two times. Memory fetches the next numbers while arithmetic works on "
             "these: at best the shorter time hides behind the longer one."),
        Edit("max(computing, moving)", "min(computing, moving)", "You return the shorter of the "
             "two times. A kernel is done when *both* are done: the longer one is the bound."),
        Edit("max(computing, moving)", "(computing + moving) / 2",
             "You return the mean of the two times. The longer one is the bound."),
        Edit("max(computing, moving)", "computing", "Only arithmetic counts in your answer. A sum "
             "of two matrices is memory-bound: compare with the time that the bytes take."),
        Edit("max(computing, moving)", "moving", "Only memory counts in your answer. A large "
             "product is compute-bound: compare with the time that the FLOPs take."),
        Edit("max(computing, moving)", "min(peak, flops / bytes_moved * bandwidth)",
             "You return a rate, min(peak, intensity · bandwidth): the height of the roof in "
             "GFLOP/s. Asked for is the time under it, in seconds."),
        Edit("max(computing, moving)", "min(peak, flops / bytes_moved * bandwidth) * GIGA",
             "You return a rate in FLOPs a second. Asked for is the time, in seconds."),
        Edit("return longer", "return 1e3 * longer", "These are milliseconds; expected seconds."),
        Edit("return longer", "return 1e6 * longer", "These are microseconds; expected seconds."),
        Edit("return longer", "return GIGA * longer",
             "Your time is 10⁹ times too long: peak and bandwidth count *billions* a second."),
        Edit("(peak * GIGA)", "peak", "The bytes are divided by billions a second, the FLOPs are "
             "not. Peak is in GFLOP/s: 10⁹ FLOPs a second."),
        Edit("(bandwidth * GIGA)", "bandwidth", "The FLOPs are divided by billions a second, the "
             "bytes are not. The bandwidth is in GB/s: 10⁹ bytes a second."),
        Edit("return longer", "return longer * GIGA / 2**30",
             "You count a billion as 2³⁰. GFLOP/s and GB/s are decimal: 10⁹."),
        Edit("bytes_moved / (", "bytes_moved / 4 / (", "You divide the bytes by four, as if "
             "numbers had to be counted. `bytes_moved` is what the bandwidth counts: bytes."),
        Edit("bytes_moved / (", "bytes_moved * 4 / (", "You multiply the bytes by four, as if "
             "numbers of 4 bytes had been counted. `bytes_moved` is in bytes already."),
        Edit("flops / (", "flops / 2 / (", "You halve the FLOPs. `flops` counts them as the peak "
             "does: a multiply-add is two in both."),
        Edit("flops / (", "flops * 2 / (", "You double the FLOPs. `flops` counts them as the peak "
             "does: a multiply-add is two in both."),
        Edit("flops / (peak", "flops / (bandwidth",
             "The FLOPs are divided by the bandwidth and the bytes by the peak. It is the other "
             "way round.", more=(("bytes_moved / (bandwidth", "bytes_moved / (peak"),)),
        Edit("flops / (peak * GIGA)", "(peak * GIGA) / flops",
             "You divide the rate by the amount. Amount divided by rate is a time.",
             more=(("bytes_moved / (bandwidth * GIGA)", "(bandwidth * GIGA) / bytes_moved"),)),
    ),
)  # fmt: skip
