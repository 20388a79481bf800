"""How the claims of lecture 13 are settled; claims.toml tells them."""

from __future__ import annotations

from importlib.metadata import version
from statistics import fmean, median

from course_lib.config import encoder_flops, published
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import Settled, printed
from course_lib.teaching.results import in_words
from course_lib.teaching.verdicts import by_rule

from .interfaces import interfaces
from .looked_up import parameters_of
from .views import benchmark as shown


def column() -> Settled:
    row = printed("glue")["roberta_base_dev"]
    mean = glue_average(row["scores"], row["recipe"])
    return Settled(mean, f"RoBERTa-base, {row['recipe']}: {mean:.2f}")


def flops() -> Settled:
    table = printed("electra")["small"]
    ratio = table["electra_base"]["flops"] / table["bert_base"]["flops"]
    return Settled(ratio, f"{ratio:.2f} times BERT-base's")


def saved() -> Settled:
    weights = parameters_of("albert", "base") / parameters_of("bert", "base")
    albert, bert = (encoder_flops(published(name, "base"), 128) for name in ("albert", "bert"))
    detail = f"weights {weights:.0%} of BERT's, FLOPs {albert / bert:.0%}"
    return Settled((weights, albert / bert), detail)


def interfaces_settled() -> Settled:
    """Members, and how many of them read segment ids 0 and 1; how many ways a pair is written."""
    members = interfaces()
    both = sum(member.type_vocab_size == 2 for member in members)
    written = len({member.written for member in members})
    release = version("transformers").partition(".")[0]
    detail = (
        f"{both} of {len(members)} have two segments; transformers {release} writes a pair in "
        f"{written} ways"
    )
    return Settled((both == len(members), written == 1), detail)


def ranking() -> Settled:
    """The rule's word for each of three, beside BERT."""
    verdicts = tuple(shown.verdict(name) for name in ("RoBERTa", "ELECTRA", "DeBERTa"))
    return Settled(verdicts, "RoBERTa {}, ELECTRA {}, DeBERTa {}".format(*verdicts))


def places() -> Settled:
    """DeBERTa's place in the family with WNLI and without."""
    ranks = tuple(shown.place("DeBERTa", recipe) for recipe in ("leaderboard", "dev-8"))
    return Settled(ranks, "place {} with WNLI, {} without".format(*ranks))
