"""Other hands' answers to the exercises of lecture 14, right and wrong, asked in test_exercises.py."""

from __future__ import annotations

import torch


def seconds(join, scale=1.0, f=1e9, b=1e9):
    return lambda flops, moved, peak, rate: scale * join(flops / (peak * f), moved / (rate * b))


def by_the_ridge(flops, moved, peak, rate):
    bound_by_memory = flops / moved < peak / rate
    return moved / rate / 1e9 if bound_by_memory else flops / peak / 1e9


RIGHT = {
    "14.1": [
        seconds(max),
        by_the_ridge,
        lambda f, b, p, w: torch.tensor([f / p, b / w]).max() / 1e9,
    ],
}
WRONG = {
    "14.1": [
        (seconds(lambda a, m: a + m), "You add the two times."),
        (seconds(min), "the shorter of the two"),
        (seconds(lambda a, m: (a + m) / 2), "the mean of the two"),
        (seconds(lambda a, m: a), "Only arithmetic counts"),
        (seconds(lambda a, m: m), "Only memory counts"),
        (lambda f, b, p, w: min(p, w * f / b), "the height of the roof"),
        (lambda f, b, p, w: 1e9 * min(p, w * f / b), "a rate in FLOPs a second"),
        (seconds(max, 1_000), "milliseconds"),
        (lambda f, b, p, w: max(f / p, b / w), "10⁹ times too long"),
        (lambda f, b, p, w: max(f / p, b / w / 1e9), "Peak is in GFLOP/s"),
        (lambda f, b, p, w: max(f / p / 1e9, b / w), "The bandwidth is in GB/s"),
        (seconds(max, f=2**30, b=2**30), "a billion as 2³⁰"),
        (seconds(lambda a, m: max(a, 4 * m)), "multiply the bytes by four"),
        (seconds(lambda a, m: max(a / 2, m)), "You halve the FLOPs"),
        (lambda f, b, p, w: max(f / w, b / p) / 1e9, "the other way round"),
        (lambda f, b, p, w: 1e9 * max(p / f, w / b), "the rate by the amount"),
        (lambda f, b, p, w: f / min(p, f / b * w) / 1e9, "flops can be 0"),
        (lambda f, b, p, w: f"{max(f / p, b / w) / 1e9} s", "expected one number in seconds"),
        (seconds(lambda a, m: max(a, m) + 1), "you have 1."),
        (seconds(lambda a, m: 1e3 * (a + m)), "You add the two times."),
        (seconds(lambda a, m: round(max(a, m), 3)), "rounded to three decimals"),
    ],
}  # fmt: skip
