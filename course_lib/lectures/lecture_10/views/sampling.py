"""How often each language is read: the data's fractions, and what p^α makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from course_lib.teaching.page import Html, Live, card, paragraphs, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, INK, ORANGE
from course_lib.teaching.svg import words
from course_lib.text.language_sampling import MBERT, smoothed, times_read

SIZES: dict[str, dict[str, float]] = {  # how much there is of each language, in any unit
    "by hand: 900 and 100": {"large": 900, "small": 100},
    "mBERT's README: 1,000 to 1": {"English": 1_000, "Icelandic": 1},
    "ten languages, each half of the one before": {f"no. {n + 1}": 2.0**-n for n in range(10)},
}
WIDE, LEFT, STEP = 760, 150, 38  # pixels


def sampling_view(sizes: Mapping[str, Mapping[str, float]] = SIZES, alpha: float = MBERT) -> Live:
    """Fractions of the data and of what is read. Controls: languages, alpha."""
    import ipywidgets as w

    first = next(iter(sizes))
    controls = {
        "languages": w.Dropdown(options=list(sizes), value=first, description="languages"),
        "alpha": w.FloatSlider(value=alpha, min=0, max=1, step=0.05, description="α"),
    }

    def draw(languages: str, alpha: float) -> str:
        return sampling_picture(sizes[languages], alpha).html

    return playground(draw, controls, sampling_picture(sizes[first], alpha))


def sampling_picture(sizes: Mapping[str, float], alpha: float = MBERT) -> Html:
    """Two bars a language, and how often each of its texts is read. Raises ValueError as
    `smoothed` does."""
    said = sampling_in_words(sizes, alpha)
    high = STEP * len(sizes) + 30
    image = svg_image(svg_drawing(WIDE, high, "".join(sampling_parts(sizes, alpha)), said), said)
    return Html(card(image + paragraphs([said]), "sampling", 800), said)


def sampling_parts(sizes: Mapping[str, float], alpha: float, size: float = 15) -> list[str]:
    """What the drawing consists of, for the deck too: above the data, below what is read."""
    total = sum(sizes.values())
    read = smoothed(list(sizes.values()), alpha)
    times = times_read(list(sizes.values()), read)
    parts = [words(LEFT, 18, "□ fraction of the data   ■ fraction of what is read", size, "start")]
    for i, (name, amount) in enumerate(sizes.items()):
        y = 30 + STEP * i
        parts += [
            words(LEFT - 10, y + 21, name, size, "end"),
            _bar(y, amount / total, "#fff", BLUE),
            _bar(y + 15, read[i], ORANGE, INK),
            words(_end(max(amount / total, read[i])) + 8, y + 21,
                  f"{_share(amount / total)} → {_share(read[i])}, each text ×{times[i]:.3g}",
                  size, "start"),
        ]  # fmt: skip
    return parts


def _bar(y: float, fraction: float, fill: str, ink: str) -> str:
    return (
        f'<rect x="{LEFT}" y="{y:g}" width="{_end(fraction) - LEFT:.1f}" height="13" '
        f'fill="{fill}" stroke="{ink}" stroke-width="1.5"/>'
    )


def _end(fraction: float) -> float:
    return LEFT + max(1.0, fraction * (WIDE - LEFT - 240))


def _share(fraction: float) -> str:
    return f"{100 * fraction:.3g}%"


def sampling_in_words(sizes: Mapping[str, float], alpha: float) -> str:
    """The largest against the smallest, in the data and as read."""
    read = dict(zip(sizes, smoothed(list(sizes.values()), alpha), strict=True))
    large, small = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    return (
        f"α = {alpha:.2f}: there is {sizes[large] / sizes[small]:,.4g} times as much of {large} as "
        f"of {small}; it is read {read[large] / read[small]:,.3g} times as often "
        f"({_share(read[large])} and {_share(read[small])} of the text)."
    )
