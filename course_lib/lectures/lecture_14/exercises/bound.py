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
             "You add the two times. Memory fetches the next numbers while the arithmetic units "
             "work on these: at best the longer time hides the shorter one."),
        Edit("max(computing, moving)", "min(computing, moving)", "You return the shorter of the "
             "two times. A kernel ends when *both* have ended: the longer one is the bound."),
        Edit("max(computing, moving)", "(computing + moving) / 2",
             "You return the mean of the two times. The longer one is the bound."),
        Edit("max(computing, moving)", "computing", "Only arithmetic counts in your answer. A sum "
             "of two matrices is memory-bound: compare with the time that the bytes take."),
        Edit("max(computing, moving)", "moving", "Only memory counts in your answer. A large "
             "product is compute-bound: compare with the time that the FLOPs take."),
        Edit("max(computing, moving)", "min(peak, flops / bytes_moved * bandwidth)",
             "You return a rate, min(peak, intensity · bandwidth): the height of the roof in "
             "GFLOP/s. Expected the time, in seconds."),
        Edit("max(computing, moving)", "min(peak, flops / bytes_moved * bandwidth) * GIGA",
             "You return a rate in FLOPs per second. Expected the time, in seconds."),
        Edit("return longer", "return 1e3 * longer", "These are milliseconds; expected seconds."),
        Edit("return longer", "return 1e6 * longer", "These are microseconds; expected seconds."),
        Edit("return longer", "return GIGA * longer",
             "Your time is 10⁹ times too long: peak and bandwidth count *billions* per second."),
        Edit("(peak * GIGA)", "peak", "You divide the bytes by billions per second, but not the "
             "FLOPs. Peak is in GFLOP/s: 10⁹ FLOPs per second."),
        Edit("(bandwidth * GIGA)", "bandwidth", "You divide the FLOPs by billions per second, but "
             "not the bytes. The bandwidth is in GB/s: 10⁹ bytes per second."),
        Edit("return longer", "return longer * GIGA / 2**30",
             "You count a billion as 2³⁰. GFLOP/s and GB/s are decimal: 10⁹."),
        Edit("bytes_moved / (", "bytes_moved / 4 / (", "You divide the bytes by four, as if to "
             "count numbers. The bandwidth counts bytes, as `bytes_moved` does."),
        Edit("bytes_moved / (", "bytes_moved * 4 / (", "You multiply the bytes by four, as if "
             "it counted numbers of 4 bytes. `bytes_moved` is already in bytes."),
        Edit("flops / (", "flops / 2 / (", "You halve the FLOPs. `flops` counts them as the peak "
             "does: a multiply-add is two in both."),
        Edit("flops / (", "flops * 2 / (", "You double the FLOPs. `flops` counts them as the peak "
             "does: a multiply-add is two in both."),
        Edit("flops / (peak", "flops / (bandwidth",
             "You divide the FLOPs by the bandwidth and the bytes by the peak. Exchange the two.",
             more=(("bytes_moved / (bandwidth", "bytes_moved / (peak"),)),
        Edit("flops / (peak * GIGA)", "(peak * GIGA) / flops",
             "You divide the rate by the amount. A time is the amount divided by the rate.",
             more=(("bytes_moved / (bandwidth * GIGA)", "(bandwidth * GIGA) / bytes_moved"),)),
    ),
)  # fmt: skip
