"""Numbers that texts of this room name and do not type: counted, printed in a paper, or measured in
another lecture."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import torch
from torch import nn

from course_lib.encoder import count_parameters
from course_lib.family.albert import albert
from course_lib.family.bert import bert
from course_lib.family.deberta import deberta, deberta_v3
from course_lib.family.distilbert import distilbert
from course_lib.family.electra import electra_discriminator
from course_lib.family.ernie import ernie
from course_lib.family.mobilebert import mobilebert
from course_lib.family.modernbert import modernbert
from course_lib.family.roberta import roberta
from course_lib.family.seq2seq import bart
from course_lib.family.tinybert import tinybert
from course_lib.family.xlm import xlm
from course_lib.family.xlm_roberta import xlm_roberta
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import millions, number
from course_lib.train.flops import forward_flops

TOKENS = 128  # of the text whose FLOPs are said
BUILDERS: dict[str, Callable[..., nn.Module]] = {
    "albert": albert, "bart": bart, "bert": bert, "deberta": deberta, "deberta-v3": deberta_v3,
    "distilbert": distilbert, "electra": lambda size, **c: electra_discriminator(size, **c).encoder,
    "ernie": ernie, "mobilebert": mobilebert, "modernbert": modernbert, "roberta": roberta,
    "tinybert": tinybert, "xlm": xlm, "xlm-roberta": xlm_roberta,
}  # fmt: skip
REFERENCE = re.compile(r"\{([\w-]+)([.:])([^}]+)\}")


@cache
def parameters_of(family: str, size: str, **changes: int) -> int:
    """Counted on shapes; nothing is allocated."""
    with torch.device("meta"):
        return count_parameters(BUILDERS[family](size, **changes))


@cache
def flops_of(family: str, size: str, **changes: int) -> int:
    """Of one text of TOKENS tokens; for encoders that count on shapes (not DeBERTa)."""
    return forward_flops(partial(BUILDERS[family], size, **changes), TOKENS)


@cache
def counted_size(family: str, size: str, flops: bool = False, **changes: int) -> str:
    """Parameters, megabytes and, asked for, FLOPs of a published size, in words."""
    count = parameters_of(family, size, **changes)
    sentence = f"{millions(count)} parameters, {4 * count / 1e6:,.0f} MB in float32"
    if flops:
        sentence += f"; {flops_of(family, size, **changes) / 1e9:.1f} GFLOPs for {TOKENS} tokens"
    return f"{sentence} (counted, {family} {size}{', other sizes' if changes else ''})"


def with_numbers(template: str) -> str:
    """The template with its numbers in place of its references, and their sources behind it.

    {bert.sizes.base} is read from data/papers/bert.toml, {average:distilbert_dev} is the mean of
    that row of glue.toml by its own recipe, {12:mobile_ms} a number of lecture 12, {fewer:albert
    base, bert base} by how much the first has fewer parameters. Raises ValueError for what is not
    there."""
    places: dict[str, list[str]] = {}  # who is cited -> where in it

    def value(match: re.Match[str]) -> str:
        digits, who, where = _looked_up(*match.groups())
        known = places.setdefault(who, [])
        known.extend({where} - {"", *known})
        return digits

    text = REFERENCE.sub(value, template)
    sources = (", ".join(filter(None, [who, "; ".join(at)])) for who, at in places.items())
    return f"{text} ({'; '.join(sources)})" if places else text


def average(row: str, recipe: str = "") -> float:
    """The mean of a row of glue.toml by a recipe, left out: its own; one decimal."""
    entry = printed("glue")[row]
    mean = glue_average(entry["scores"], recipe or entry["recipe"])
    return round(mean + 1e-9, 1)  # 86.35 is 86.4, however it is stored


def _looked_up(name: str, sign: str, rest: str) -> tuple[str, str, str]:
    """A number in words, who is cited for it, and where in that it stands."""
    if name == "average":
        return f"{average(rest)}", "", str(printed("glue")[rest]["where"])
    if name == "fewer":
        one, other = (parameters_of(*of.split()) for of in rest.split(", "))
        return f"{1 - one / other:.0%}", "", "counted"
    if sign == ":":
        return number(name, rest), f"lecture {name}", ""
    value, where = printed_at(name, keys_of(rest))
    return f"{value:,}" if isinstance(value, int) else f"{value}", cited(name), where


def keys_of(path: str) -> list[str]:
    """The keys of a path with dots; a key that has one itself writes a comma: speedup.0,1.0."""
    return [key.replace(",", ".") for key in path.split(".")]


def printed_at(paper: str, keys: list[str]) -> tuple[Any, str]:
    """What data/papers has under these keys, and the innermost `where` on the way.

    Raises ValueError for keys that lead nowhere."""
    at: Any = printed(paper)
    where = ""
    for key in keys:
        try:
            at = at[int(key)] if isinstance(at, list) else at[key]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"{paper}.toml was asked for {'.'.join(keys)}; it has nothing at {key!r}."
            ) from error
        where = at.get("where", where) if isinstance(at, dict) else where
    return at, where


def cited(paper: str) -> str:
    """Who, when and where to find it; empty for a file of several papers."""
    source: Mapping[str, Any] | None = printed(paper).get("paper")
    if source is None:
        return ""
    first, *others = str(source["authors"]).split(", ")
    named = f"{first} et al." if len(others) > 1 else " and ".join([first, *others])
    code = "" if source["arxiv"] == "none" else f", arXiv {source['arxiv']}"
    return f"{named} {source['year']}{code}"
