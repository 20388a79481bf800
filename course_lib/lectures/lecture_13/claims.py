"""How the claims of lecture 13 are settled; claims.toml tells them."""

from __future__ import annotations

from importlib.metadata import version
from statistics import fmean, median

from course_lib.config import encoder_flops, published
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import Check, Settled, all_near, entries, is_, near, printed
from course_lib.teaching.results import in_words
from course_lib.teaching.verdicts import BETTER, OPEN, WORSE, by_rule

from .interfaces import interfaces
from .looked_up import parameters_of
from .views import benchmark as shown


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
    release = version("transformers").partition(".")[0]
    said = (
        f"{both} of {len(found)} have two segments; transformers {release} writes a pair in "
        f"{written} ways"
    )
    return Settled((both == len(found), written == 1), said)


def _timed() -> Settled:
    calls = [900.0, *[10.0] * 9]
    return Settled(fmean(calls) / median(calls), f"mean {fmean(calls):g} ms, median 10 ms")


def _ranking() -> Settled:
    """The rule's word for each of three, beside BERT."""
    words = tuple(shown.verdict(name) for name in ("RoBERTa", "ELECTRA", "DeBERTa"))
    return Settled(words, "RoBERTa {}, ELECTRA {}, DeBERTa {}".format(*words))


def _places() -> Settled:
    """DeBERTa's place in the family with WNLI and without."""
    found = tuple(shown.place("DeBERTa", recipe) for recipe in ("leaderboard", "dev-8"))
    return Settled(found, "place {} with WNLI, {} without".format(*found))


def _plain() -> Settled:
    plain, taught = (shown.values_of(n) for n in ("plain, two layers", "DistilBERT"))
    said = f"two plain layers {in_words(plain)}, DistilBERT {in_words(taught)}"
    return Settled((min(plain) > max(taught), by_rule(plain, taught)), said)


CLAIMS = entries(
    "13",
    {
        "E45": Check(_column, near(86.35, 0.01), 82.2),
        "E46": Check(_flops, near(1.0, 0.01), 0.25),
        "E62": Check(_saved, all_near((0.107, 1.0), 0.01), (0.107, 0.107)),
        "E64": Check(_interfaces, is_((False, False)), (True, True)),
        "E65": Check(_timed, near(9.9, 0.01), 1.0),
        "ranking": Check(_ranking, is_((OPEN, WORSE, OPEN)), (BETTER, BETTER, BETTER)),
        "first place": Check(_places, is_((8, 3)), (3, 3)),
        "plain": Check(_plain, is_((True, BETTER)), (False, WORSE)),
    },
)
