"""How the claims of lecture 15 are settled; claims.toml tells them."""

from __future__ import annotations

from statistics import fmean

import torch

from course_lib.config import published
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.bert import bert
from course_lib.family.vit import VitConfig, vit, vit_for_classification
from course_lib.teaching.claims import Settled, combined, compared, printed, result, verdict
from course_lib.teaching.results import in_words

from .clip_runs import CANDIDATES, FILE
from .views.results import LARGER, MASKED, PICTURES, POSITIONS, at_best, reached


def shared() -> Settled:
    """What ViT has of BERT, and what it has not: parameters of the blocks, the kind of block,
    segments."""
    with torch.device("meta"):
        models: list[Encoder] = [bert("base"), vit("B/16")]
    blocks = [count_parameters(model.stack) for model in models]
    block_types = [type(model.stack.blocks[0]).__name__ for model in models]  # type: ignore[union-attr, index]
    segments = [model.config.type_vocab_size for model in models]
    detail = (
        f"blocks of {blocks[0]:,} and {blocks[1]:,} parameters; {' and '.join(block_types)}; "
        f"{segments[0]} segments and {segments[1]}"
    )
    return Settled((blocks[0] == blocks[1], block_types[1], segments[1]), detail)


def sizes() -> Settled:
    """Millions of parameters without pooler and classifier; and with a classifier of 1,000."""
    names = ("B/16", "L/16", "H/14")
    with torch.device("meta"):
        plain = [count_parameters(vit(name, pooler=False)) / 1e6 for name in names]
        whole = [count_parameters(vit_for_classification(name)) / 1e6 for name in names]
    paper = [printed("vit")["sizes"][name] for name in names]
    detail = ", ".join(
        f"{name} {a:.1f}, with classifier {b:.1f} (paper {c})"
        for name, a, b, c in zip(names, plain, whole, paper, strict=True)
    )
    return Settled(tuple(whole), detail)


def tokens() -> Settled:
    config = published("vit", "B/16", VitConfig)
    count = (224 // 16) ** 2 + 1
    return Settled((count, config.num_layers), f"14 · 14 + 1 = {count} tokens, as long as a text")


def positions() -> Settled:
    """1-D positions less none: digits, and a question about a place and one that is none."""
    return combined([
        compared(POSITIONS, "accuracy", [one], other, called)
        for one, other, called in (
            ("1-D positions", "no positions", "digits"),
            ("which row, 1-D", "which row, none", "which row"),
            ("a circle, 1-D", "a circle, none", "a circle"),
        )
    ])  # fmt: skip


def bias() -> Settled:
    """One permutation less patches where they are: a ViT, a CNN, a CNN on moved pictures."""
    moved = "CNN shifted, all"
    return combined([
        compared(file, "accuracy", [one], other, called)
        for file, one, other, called in (
            (POSITIONS, "ViT, one permutation", "1-D positions", "ViT"),
            (POSITIONS, "CNN, one permutation", "CNN", "CNN"),
            (PICTURES, f"{moved}, one permutation", moved, "CNN, moved pictures"),
        )
    ])  # fmt: skip


def trails() -> Settled:
    """ViT less CNN, at the fewest pictures and with all; and with all at each one's best rate."""
    pairs = {size: (f"ViT, {size}", f"CNN, {size}") for size in ("50", "200", "800", "all")}
    vit, cnn = pairs["all"]
    pairs["all, best rates"] = at_best(vit), at_best(cnn)
    gaps = {
        size: [a - b for a, b in zip(*(reached(PICTURES, name) for name in pair), strict=True)]
        for size, pair in pairs.items()
    }
    detail = "ViT less CNN, in points: " + "; ".join(
        f"{size} {verdict(gap)}" for size, gap in gaps.items()
    )
    return Settled(tuple(fmean(gap) for gap in gaps.values()), detail)


def masked() -> Settled:
    """After masked patches less random: equal steps; and less equal FLOPs on labels; with 50."""
    return combined([
        compared(MASKED, "accuracy", ["masked patches, 50"], against, "50 labels")
        for against in ("random, 50", "equal FLOPs, 50")
    ])  # fmt: skip


def retrieval() -> Settled:
    """CLIP in small: the right sentence of a picture first, among the candidates; the least seed's,
    and that of the picture of a sentence."""
    runs = result(FILE)["runs"]["CLIP"]
    least = tuple(min(run[what] for run in runs) for what in ("accuracy", "picture_accuracy"))
    detail = (
        f"of {CANDIDATES} unseen sentences the right one first for "
        f"{in_words([run['accuracy'] for run in runs])} of the pictures; chance level "
        f"{1 / CANDIDATES:.1%}"
    )
    return Settled(least, detail)


def larger() -> Settled:
    """16×16: positions interpolated less drawn anew, before any step and after all of them."""
    return combined([
        compared(LARGER, what, ["bicubic"], "new positions", called)
        for what, called in (("at_once", "before any step"), ("accuracy", "after all"))
    ])  # fmt: skip
