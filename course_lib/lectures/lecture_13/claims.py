"""How the claims of lecture 13 are settled; claims.toml tells them."""

from __future__ import annotations

from statistics import fmean, median

from course_lib.config import encoder_flops, published
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import Check, Settled, all_near, entries, is_, near, printed

from .interfaces import interfaces
from .looked_up import parameters_of


def _column() -> Settled:
    row = printed("glue")["roberta_base_dev"]
    mean = glue_average(row["scores"], row["recipe"])
    return Settled(mean, f"RoBERTa-base, {row['recipe']}: {mean:.2f}")


def _flops() -> Settled:
    table = printed("electra")["small"]
    ratio = table["electra_base"]["flops"] / table["bert_base"]["flops"]
    return Settled(ratio, f"{ratio:.2f} times BERT-base's")


def _saved() -> Settled:
    weights = parameters_of("albert", "base") / parameters_of("bert", "base")
    albert, bert = (encoder_flops(published(name, "base"), 128) for name in ("albert", "bert"))
    said = f"weights {weights:.0%} of BERT's, FLOPs {albert / bert:.0%}"
    return Settled((weights, albert / bert), said)


def _interfaces() -> Settled:
    """Members, and how many of them read segment ids 0 and 1; how many ways a pair is written."""
    found = interfaces()
    both = sum(one.rows == 2 for one in found)
    written = len({one.written for one in found})
    said = f"{both} of {len(found)} have two segments; a pair is written in {written} ways"
    return Settled((both == len(found), written == 1), said)


def _timed() -> Settled:
    calls = [900.0, *[10.0] * 9]
    return Settled(fmean(calls) / median(calls), f"mean {fmean(calls):g} ms, median 10 ms")


CLAIMS = entries(
    "13",
    {
        "E45": Check(_column, near(86.35, 0.01), 82.2),
        "E46": Check(_flops, near(1.0, 0.01), 0.25),
        "E62": Check(_saved, all_near((0.107, 1.0), 0.01), (0.107, 0.107)),
        "E64": Check(_interfaces, is_((False, False)), (True, True)),
        "E65": Check(_timed, near(9.9, 0.01), 1.0),
    },
)
