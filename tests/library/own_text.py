"""A reader's text: paragraphs about a harbour, drawn from a small grammar."""

from __future__ import annotations

import random

WHO = ("The pilot", "A fisher", "The keeper", "Her brother", "An old sailor")
DOES = ("mends", "paints", "forgets", "counts", "sells")
WHAT = ("a net", "the blue boat", "seven ropes", "the lamp", "a crate of herring")
WHEN = ("before dawn", "at noon", "in the fog", "when the tide turns", "on market day")


def paragraphs(count: int, seed: int = 0) -> list[str]:
    """`count` paragraphs of six sentences, none twice."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        sentences = [" ".join(map(draw.choice, (WHO, DOES, WHAT, WHEN))) + "." for _ in range(6)]
        found[" ".join(sentences)] = None
    return list(found)
