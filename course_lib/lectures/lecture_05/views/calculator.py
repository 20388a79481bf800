"""ALBERT's parameters for a shape of the reader's choice, beside a BERT of the same shape.

V vocabulary, E width of the embeddings, H hidden size, L layers, F feed-forward width.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import choice, playground, slider, steps
from course_lib.teaching.style import BLUE, GREEN, hatch
from course_lib.teaching.svg import bar, line, picture, words

if TYPE_CHECKING:
    from course_lib.config import BertConfig
    from course_lib.family.albert import AlbertConfig

VOCABULARIES = (1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 30_522, 50_265, 64_000, 100_000,
                128_000, 250_000, 256_000)  # fmt: skip
WIDTHS = (16, 32, 64, 128, 256, 512, 768, 1_024, 2_048, 4_096)
HIDDEN = (64, 128, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072, 4_096)
TOKENS = 128  # of the text whose FLOPs are counted
OWN = "own"
LEFT, PANEL, LONGEST, ROW, TOP = 118, 314, 190, 27, 40  # pixels
SHARED = {"all": "all of the block", "attention": "the attention half",
          "feed_forward": "the feed-forward half", "none": "nothing"}  # fmt: skip
PARTS = {"embeddings": "embeddings", "projection": "projection E → H", "blocks": "blocks",
         "pooler": "pooler", "total": "total"}  # fmt: skip


def parameter_calculator(size: str = "base") -> Live:
    """Sliders for V, E, H, L and F, menus for what is shared: where the parameters go.

    size: the published ALBERT to begin with: base, large, xlarge or xxlarge. Controls: preset,
    vocab_size, embedding_size, hidden_size, num_layers, feed_forward (F as a multiple of H),
    sharing, num_groups. Raises ValueError for another size.
    """
    from course_lib.family.albert import SHARING

    start = _preset(size)
    presets = [(f"ALBERT-{name}", name) for name in _sizes()] + [("a shape of your own", OWN)]
    controls: dict[str, Any] = {
        "preset": choice("start from", size, presets),
        "vocab_size": steps("V: vocabulary", start["vocab_size"], VOCABULARIES),
        "embedding_size": steps("E: embedding width", start["embedding_size"], WIDTHS),
        "hidden_size": steps("H: hidden size", start["hidden_size"], HIDDEN),
        "num_layers": slider("L: layers", start["num_layers"], 1, 48),
        "feed_forward": slider("F: feed-forward, times H", 4, 1, 8),
        "sharing": choice("shared by the layers", "all", [(SHARED[n], n) for n in SHARING]),
        "num_groups": slider("groups of layers", 1, 1, 12),
    }
    _follow(controls)
    return playground(lambda preset, **shape: parameter_picture(**shape), controls)


def _follow(controls: Mapping[str, Any]) -> None:
    """A preset moves the sliders; whoever moves a slider has a shape of her own."""
    moving = [False]

    def choose(change: Any) -> None:
        if change["new"] == OWN:
            return
        moving[0] = True
        for name, value in _preset(change["new"]).items():
            controls[name].value = value
        moving[0] = False

    def own(_: Any) -> None:
        if not moving[0]:
            controls["preset"].value = OWN

    controls["preset"].observe(choose, names="value")
    for name, control in controls.items():
        if name != "preset":
            control.observe(own, names="value")


def _sizes() -> list[str]:
    from course_lib.config import PUBLISHED

    return list(PUBLISHED["albert"])


def _preset(size: str) -> dict[str, Any]:
    """The settings of a published size, as parameter_picture takes them."""
    from course_lib.config import published
    from course_lib.family.albert import AlbertConfig

    config = published("albert", size, AlbertConfig)
    names = ("vocab_size", "embedding_size", "hidden_size", "num_layers", "sharing", "num_groups")
    shape = {name: getattr(config, name) for name in names}
    return shape | {"feed_forward": config.intermediate_size // config.hidden_size}


def parameter_picture(
    vocab_size: int = 30_000,
    embedding_size: int = 128,
    hidden_size: int = 768,
    num_layers: int = 12,
    feed_forward: int = 4,
    sharing: str = "all",
    num_groups: int = 1,
) -> Html:
    """The parameters of such an ALBERT and of a BERT of the same V, H, L and F, part by part.

    Both have 512 positions, 2 segments and a pooler. Raises ValueError for groups that do not
    divide the layers.
    """
    ours, theirs = _configurations(
        vocab_size, embedding_size, hidden_size, num_layers, feed_forward, sharing, num_groups
    )
    counts = [_with_total(config) for config in (ours, theirs)]
    lines = _in_words(counts, ours)
    table = "\n".join(
        f"{name:<17}{counts[0][part]:>14,}{counts[1][part]:>14,}" for part, name in PARTS.items()
    )
    text = f"{'':<17}{'your choice':>14}{'BERT':>14}\n{table}\n" + "\n".join(lines)
    height = TOP + ROW * len(PARTS) + 6
    return picture("parameter-calculator", 748, height, _bars(counts), lines, text=text)


def _configurations(
    V: int, E: int, H: int, L: int, times: int, sharing: str, groups: int
) -> tuple[AlbertConfig, BertConfig]:
    """The ALBERT of the reader's choice, and the BERT beside it."""
    from course_lib.config import BertConfig
    from course_lib.family.albert import AlbertConfig

    heads = max(1, H // 64)  # the number of heads changes neither count
    albert = AlbertConfig(
        vocab_size=V, hidden_size=H, num_layers=L, num_heads=heads, intermediate_size=times * H,
        embedding_size=E, sharing=sharing, num_groups=groups,
    )  # fmt: skip
    names = ("vocab_size", "hidden_size", "num_layers", "num_heads", "intermediate_size")
    return albert, BertConfig(**{name: getattr(albert, name) for name in names})


@lru_cache(maxsize=256)
def _with_total(config: BertConfig) -> Mapping[str, int]:
    from course_lib.family.albert import parameter_breakdown

    counts = parameter_breakdown(config)
    return counts | {"total": sum(counts.values())}


def _in_words(counts: list[Mapping[str, int]], config: AlbertConfig) -> list[str]:
    """The choice, what the bars say of it, and what sharing does not change."""
    from course_lib.config import encoder_flops

    ours, theirs = (one["total"] for one in counts)
    V, E, H, L = (config.vocab_size, config.embedding_size, config.hidden_size, config.num_layers)
    groups = f" within each of {config.num_groups} groups" if config.num_groups > 1 else ""
    times = f"BERT has {theirs / ours:.1f} times as many" if ours < theirs else "it saves nothing"
    flops = encoder_flops(config, TOKENS) / 1e9
    return [
        f"V = {V:,}, E = {E:,}, H = {H:,}, L = {L}, F = {config.intermediate_size:,}; the layers "
        f"share {SHARED[config.sharing]}{groups}.",
        f"Your choice has {ours:,} parameters, {ours / theirs:.1%} of BERT's {theirs:,}: {times}.",
        f"The embedding matrix costs V·E + E·H = {V * E + E * H:,} instead of V·H = {V * H:,}.",
        f"FLOPs in the blocks for one text of {TOKENS} tokens: {flops:,.1f} billion in "
        "both. A shared block is stored once and computed in every layer.",
    ]


# ---------------------------------------------------------------- drawn


def _bars(counts: list[Mapping[str, int]]) -> list[str]:
    """Two panels of bars, to one scale, with the numbers."""
    scale = LONGEST / max(one["total"] for one in counts)
    panels = (
        ("your choice", hatch("#fff", GREEN, 7, 1.6)),
        ("BERT of the same V, H, L and F", BLUE),
    )
    parts = [line(LEFT, TOP + 4 * ROW - 2, LEFT + 2 * PANEL - 12, TOP + 4 * ROW - 2)]
    for k, (one, (head, fill)) in enumerate(zip(counts, panels, strict=True)):
        x = LEFT + k * PANEL
        parts.append(words(x, 22, head, 14, "start", bold=True))
        for i, (part, name) in enumerate(PARTS.items()):
            length = max(one[part] * scale, 1 if one[part] else 0)
            parts.append(bar(x, TOP + 3 + ROW * i, length, 16, "" if k else name, f"{one[part]:,}",
                             fill=fill, bold=part == "total"))  # fmt: skip
    return parts
