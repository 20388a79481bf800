"""ALBERT's parameters for a shape of the reader's choice, beside a BERT of the same shape.

V vocabulary, E width of the embeddings, H hidden size, L layers, F feed-forward width.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from course_lib.teaching.page import Html, Live, card, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, GREEN

if TYPE_CHECKING:
    from course_lib.config import BertConfig
    from course_lib.family.albert import AlbertConfig

VOCABULARIES = (1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 30_522, 50_265, 64_000, 100_000,
                128_000, 250_000, 256_000)  # fmt: skip
WIDTHS = (16, 32, 64, 128, 256, 512, 768, 1_024, 2_048, 4_096)
HIDDEN = (64, 128, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072, 4_096)
TOKENS = 128  # of the text whose FLOPs are counted
OWN = "own"
SHARED = {"all": "all of the block", "attention": "the attention half",
          "feed_forward": "the feed-forward half", "none": "nothing"}  # fmt: skip
PARTS = {"embeddings": "embeddings", "projection": "projection E → H", "blocks": "blocks",
         "pooler": "pooler", "total": "total"}  # fmt: skip

_STRIPES = (
    '<defs><pattern id="course-stripes" width="7" height="7" patternUnits="userSpaceOnUse" '
    f'patternTransform="rotate(45)"><rect width="7" height="7" fill="{GREEN}"/>'
    '<rect width="1.6" height="7" fill="#fff"/></pattern></defs>'
)


def parameter_calculator(size: str = "base") -> Live:
    """Sliders for V, E, H, L and F, menus for what is shared: where the parameters go.

    size: the published ALBERT to begin with: base, large, xlarge or xxlarge. Controls: preset,
    vocab_size, embedding_size, hidden_size, num_layers, feed_forward (F as a multiple of H),
    sharing, num_groups. Raises ValueError for another size.
    """
    import ipywidgets as w

    from course_lib.family.albert import SHARING

    start = _preset(size)
    presets = [(f"ALBERT-{name}", name) for name in _sizes()] + [("a shape of your own", OWN)]
    controls: dict[str, Any] = {
        "preset": w.Dropdown(options=presets, value=size, description="start from"),
        "vocab_size": _steps(w, VOCABULARIES, start["vocab_size"], "V: vocabulary"),
        "embedding_size": _steps(w, WIDTHS, start["embedding_size"], "E: embedding width"),
        "hidden_size": _steps(w, HIDDEN, start["hidden_size"], "H: hidden size"),
        "num_layers": w.IntSlider(start["num_layers"], 1, 48, description="L: layers"),
        "feed_forward": w.IntSlider(4, 1, 8, description="F: feed-forward, times H"),
        "sharing": w.Dropdown(
            options=[(SHARED[name], name) for name in SHARING],
            value="all",
            description="shared by the layers",
        ),
        "num_groups": w.IntSlider(1, 1, 12, description="groups of layers"),
    }
    _follow(controls)

    def draw(preset: str, **values: Any) -> str:
        return parameter_picture(**values).html

    return playground(draw, controls, parameter_picture(**start, as_image=True))


def _steps(w: Any, values: tuple[int, ...], value: int, name: str) -> Any:
    options = [(f"{number:,}", number) for number in values]
    return w.SelectionSlider(options=options, value=value, description=name)


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
    *,
    as_image: bool = False,
) -> Html:
    """The parameters of such an ALBERT and of a BERT of the same V, H, L and F, part by part.

    Both have 512 positions, 2 segments and a pooler. as_image: for a page without a kernel (see
    page.svg_image). Raises ValueError for groups that do not divide the layers.
    """
    ours, theirs = _configurations(
        vocab_size, embedding_size, hidden_size, num_layers, feed_forward, sharing, num_groups
    )
    counts = [_with_total(config) for config in (ours, theirs)]
    said = _said(counts, ours)
    table = "\n".join(
        f"{name:<17}{counts[0][part]:>14,}{counts[1][part]:>14,}" for part, name in PARTS.items()
    )
    drawing = _bars(counts, " ".join(said))
    drawing = svg_image(drawing, " ".join(said)) if as_image else drawing
    words = "".join(f'<p style="margin:6px 0 0">{escape(line)}</p>' for line in said)
    text = f"{'':<17}{'your choice':>14}{'BERT':>14}\n{table}\n" + "\n".join(said)
    return Html(card(drawing + words, "parameter-calculator", 780), text)


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


def _said(counts: list[Mapping[str, int]], config: AlbertConfig) -> list[str]:
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


def _bars(counts: list[Mapping[str, int]], label: str) -> str:
    """Two panels of bars, to one scale, with the numbers."""
    left, panel, longest, row, top = 118, 314, 190, 27, 40
    scale = longest / max(one["total"] for one in counts)
    heads = ("your choice", "BERT of the same V, H, L and F")
    inks = ("url(#course-stripes)", BLUE)
    names = "".join(
        f'<text x="{left - 10}" y="{top + row * i + 15}" text-anchor="end" '
        f"{_weight(part)}>{name}</text>"
        for i, (part, name) in enumerate(PARTS.items())
    )
    panels = ""
    for k, (one, head, ink) in enumerate(zip(counts, heads, inks, strict=True)):
        x = left + k * panel
        panels += f'<text x="{x}" y="22" font-weight="700" font-size="14">{head}</text>'
        for i, part in enumerate(PARTS):
            panels += _bar(x, top + row * i, one[part], scale, ink, part)
    line = f'<path d="M{left} {top + 4 * row - 2}H{left + 2 * panel - 12}" stroke="#1a1a1a"/>'
    height = top + row * len(PARTS) + 6
    return svg_drawing(748, height, _STRIPES + names + panels + line, label)


def _bar(x: float, y: float, count: int, scale: float, ink: str, part: str) -> str:
    wide = count * scale
    return (
        f'<rect x="{x}" y="{y + 3}" width="{max(wide, 1 if count else 0):.1f}" height="16" '
        f'fill="{ink}"/><text x="{x + wide + 6:.1f}" y="{y + 15}" {_weight(part)}>'
        f"{count:,}</text>"
    )


def _weight(part: str) -> str:
    return 'font-weight="700"' if part == "total" else ""
