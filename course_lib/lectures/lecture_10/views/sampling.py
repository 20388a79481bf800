"""How often each language is read: the data's fractions, and what p^α makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import choice, playground, slider
from course_lib.teaching.style import BLUE, INK, ORANGE
from course_lib.teaching.svg import area, picture, words
from course_lib.text.language_sampling import MBERT, smoothed, times_read

SIZES: dict[str, dict[str, float]] = {  # how much there is of each language, in any unit
    "by hand: 900 and 100": {"large": 900, "small": 100},
    "mBERT's README: 1,000 to 1": {"English": 1_000, "Icelandic": 1},
    "ten languages, each half of the one before": {f"no. {n + 1}": 2.0**-n for n in range(10)},
}
WIDTH, LEFT, STEP = 760, 150, 38  # pixels


def sampling_view(sizes: Mapping[str, Mapping[str, float]] = SIZES, alpha: float = MBERT) -> Live:
    """Fractions of the data and of what is read. Controls: languages, alpha."""
    controls = {
        "languages": choice("languages", next(iter(sizes)), sizes),
        "alpha": slider("α", alpha, 0, 1, 0.05),
    }
    return playground(lambda languages, alpha: sampling_picture(sizes[languages], alpha), controls)


def sampling_picture(sizes: Mapping[str, float], alpha: float = MBERT) -> Html:
    """Two bars a language, and how often each of its texts is read. Raises ValueError as
    `smoothed` does."""
    sentence = sampling_in_words(sizes, alpha)
    height, parts = STEP * len(sizes) + 30, sampling_parts(sizes, alpha)
    return picture("sampling", WIDTH, height, parts, sentence, card_width=800)


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
            area(LEFT, y, _end(amount / total) - LEFT, 13, "#fff", ink=BLUE, wide=1.5),
            area(LEFT, y + 15, _end(read[i]) - LEFT, 13, ORANGE, ink=INK, wide=1.5),
            words(_end(max(amount / total, read[i])) + 8, y + 21,
                  f"{_share(amount / total)} → {_share(read[i])}, each text ×{times[i]:.3g}",
                  size, "start"),
        ]  # fmt: skip
    return parts


def _end(fraction: float) -> float:
    return LEFT + max(1.0, fraction * (WIDTH - LEFT - 240))


def _share(fraction: float) -> str:
    return f"{100 * fraction:.3g}%"


def sampling_in_words(sizes: Mapping[str, float], alpha: float) -> str:
    """The largest against the smallest, in the data and as read."""
    read = dict(zip(sizes, smoothed(list(sizes.values()), alpha), strict=True))
    large, small = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    return (
        f"α = {alpha:.2f}: there is {sizes[large] / sizes[small]:,.4g} times as much {large} as "
        f"{small}; {large} is read {read[large] / read[small]:,.3g} times as often "
        f"({_share(read[large])} and {_share(read[small])} of the text)."
    )
