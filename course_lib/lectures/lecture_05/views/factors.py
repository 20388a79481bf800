"""ALBERT's two savings as drawings: the factors true to scale, and one block in every layer."""

from __future__ import annotations

from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, GREEN, ORANGE
from course_lib.teaching.svg import area, drawing, picture, rect, words

TOKENS = 128  # of the text whose FLOPs are counted
LONG = 700  # pixels for the V rows of the embedding matrix
PALE = {BLUE: "#e3f0f8", ORANGE: "#fdf1d6", GREEN: "#e0f3ed"}


def factors_picture() -> Html:
    """The embedding matrix of base and its two factors, lying on their side, all to one scale."""
    from course_lib.config import published
    from course_lib.family.albert import AlbertConfig

    config = published("albert", "base", AlbertConfig)
    V, E, H = config.vocab_size, config.embedding_size, config.hidden_size
    scale = LONG / V
    captions = (
        f"BERT: V × H = {V:,} × {H} = {V * H:,} numbers",
        f"ALBERT: V × E = {V:,} × {E} = {V * E:,} numbers; and",
        f"E × H = {E} × {H} = {E * H:,} numbers",
    )
    shapes = ((V, H, ORANGE), (V, E, ORANGE), (H, E, GREEN))
    parts, y = [], 12.0
    for line, (width, height, colour) in zip(captions, shapes, strict=True):
        parts.append(area(14, y, scale * width, scale * height, colour))
        parts.append(words(14, y + scale * height + 17, line, 13, "start"))
        y += scale * height + 36
    return drawing(748, y, parts, ". ".join(captions))


def visits_picture() -> Html:
    """Twelve blocks, and one block visited twelve times; below, what is counted for each."""
    from course_lib.config import encoder_flops, published
    from course_lib.family.albert import AlbertConfig, parameter_breakdown

    counts = {}
    for name, config in (("BERT-base", published("bert", "base")),
                         ("ALBERT-base", published("albert", "base", AlbertConfig))):  # fmt: skip
        weights, flops = parameter_breakdown(config)["blocks"], encoder_flops(config, TOKENS)
        counts[name] = f"{weights:,} weights", f"{flops / 1e9:.2f} GFLOPs"
    layers = published("bert", "base").num_layers
    parts = _row(24, layers, "BERT-base", counts["BERT-base"], own=True)
    parts += _row(112, layers, "ALBERT-base", counts["ALBERT-base"], own=False)
    text = "\n".join(f"{name}: {layers} layers; {'; '.join(c)}" for name, c in counts.items())
    return picture("block-visits", 748, 188, parts, (), label=text, text=text)


def _row(y: float, layers: int, name: str, costs: tuple[str, str], own: bool) -> list[str]:
    """A model's layers from left to right; a dashed box works with the weights of the first."""
    parts = [words(6, y + 22, name, 13, "start", ' font-weight="700"')]
    colour = BLUE if own else GREEN
    for layer in range(layers):
        stored = own or layer == 0
        parts.append(
            rect(110 + 52 * layer, y, 48, 34, str(layer if own else 0), wide=2.5 if stored else 1.2,
                 size=13, dash="" if stored else "4 3", fill=PALE[colour], ink=colour)
        )  # fmt: skip
    kept = f"{layers} blocks stored" if own else "1 block stored"
    done = f"{layers} layers computed: {costs[1]}, activations of all {layers} kept"
    return [*parts, words(110, y + 54, f"{kept}: {costs[0]}; {done}", 12.5, "start")]
