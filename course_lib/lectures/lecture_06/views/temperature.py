"""A teacher's answer at one masked word, made softer or harder by a temperature.

V vocabulary. The probabilities at temperature T are softmax(logits / T).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from course_lib.teaching.page import Html, Live, card, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE

if TYPE_CHECKING:
    from torch import Tensor

TEMPERATURES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
IN_PRINT = (1.0, 2.0, 8.0)  # side by side where no slider can be moved
MOST_WORDS, LETTERS = 20, 14  # bars; characters of a word that are shown
REST = "all other words"
LEFT, TOP, ROW = 158, 34, 26  # pixels

_HATCH = (
    '<defs><pattern id="course-truth" width="8" height="8" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="8" height="8" fill="#E69F00"/>'
    '<rect width="3" height="8" fill="#fff"/></pattern></defs>'
)


class Softened(NamedTuple):
    """The same logits at one temperature."""

    temperature: float
    words: list[str]  # the first ones, and the true one where it is given
    probabilities: list[float]  # their probabilities
    rest: float  # the probability of all other words together
    entropy: float  # nats
    size: int  # V
    truth: str | None


def temperature_view(
    logits: Tensor | Sequence[float],
    words: Sequence[str],
    *,
    top: int = 8,
    truth: str | None = None,
) -> Live:
    """A slider for the temperature above bars of the likeliest words' probabilities.

    logits (V,): the teacher's logits at one masked position; words: V strings; truth: the hidden
    word, its bar hatched. Control: temperature (0.5 to 8).
    Raises ValueError for logits of another length or that are no numbers, for a truth that is none
    of the words, and for a top outside 1 to 20.
    """
    import ipywidgets as w

    start = [soften(logits, words, T, top=top, truth=truth) for T in IN_PRINT]
    options = [(f"{T:g}", T) for T in TEMPERATURES]
    controls = {
        "temperature": w.SelectionSlider(options=options, value=1.0, description="temperature T")
    }

    def draw(temperature: float) -> str:
        return temperature_picture(soften(logits, words, temperature, top=top, truth=truth)).html

    return playground(draw, controls, temperature_print(start))


def soften(
    logits: Tensor | Sequence[float],
    words: Sequence[str],
    temperature: float,
    *,
    top: int = 8,
    truth: str | None = None,
) -> Softened:
    """softmax(logits / temperature) of the `top` likeliest words, the rest summed.

    logits (V,), words: V strings. The order of the words is the same at every temperature.
    Raises ValueError as temperature_view does, and for a temperature not above zero.
    """
    import torch

    z = torch.as_tensor(logits).detach().double().cpu()
    _check(z, words, temperature, top, truth)
    logs = (z / temperature).log_softmax(dim=-1)  # (V,)
    probabilities = logs.exp()
    shown = z.topk(min(top, len(words))).indices.tolist()
    if truth is not None and (position := list(words).index(truth)) not in shown:
        shown.append(position)
    kept = [probabilities[i].item() for i in shown]
    return Softened(
        temperature,
        [words[i] for i in shown],
        kept,
        max(0.0, 1 - sum(kept)),
        -(probabilities * logs).sum().item(),
        len(words),
        truth,
    )


def _check(
    z: Tensor, words: Sequence[str], temperature: float, top: int, truth: str | None
) -> None:
    if z.shape != (len(words),) or not len(words):
        raise ValueError(
            f"logits of shape {tuple(z.shape)} and {len(words)} words were given; expected "
            "one logit a word, (V,): the row of one masked position."
        )
    if not z.isfinite().all():
        raise ValueError("The logits hold what is no number; expected a finite logit a word.")
    if not temperature > 0:
        raise ValueError(f"temperature={temperature!r} was given; expected a number above 0.")
    if not 1 <= top <= MOST_WORDS:
        raise ValueError(f"top={top!r} was given; expected a number of bars, 1 to {MOST_WORDS}.")
    if truth is not None and truth not in words:
        raise ValueError(f"truth={truth!r} was given; expected one of the {len(words)} words.")


# ---------------------------------------------------------------- in words


def _said(one: Softened) -> str:
    """Temperature, first word, true word and entropy in a few sentences."""
    first = f"the first word, “{one.words[0]}”, has {_percent(one.probabilities[0])}"
    true = ""
    if one.truth == one.words[0]:
        first += " (it is the true one)"
    elif one.truth is not None:
        probability = one.probabilities[one.words.index(one.truth)]
        true = f" and the true one, “{one.truth}”, {_percent(probability)}"
    return (
        f"T = {one.temperature:g}: {first}{true}. Entropy {one.entropy:.2f} nats, of at most "
        f"{math.log(one.size):.2f} (all {one.size:,} words alike)."
    )


def _percent(probability: float) -> str:
    """One decimal; what is small, but not zero, does not become zero."""
    if probability < 0.0005:
        return "<0.1%"
    return ">99.9%" if probability > 0.9995 else f"{100 * probability:.1f}%"


def _table(shown: Sequence[Softened]) -> str:
    """A line a word, a column a temperature."""
    heads = [f"T = {one.temperature:g}" for one in shown]
    lines = [f"{'':<22}" + "".join(f"{head:>9}" for head in heads)]
    for i, word in enumerate(_rows(shown[0])):
        cells = "".join(f"{_percent([*one.probabilities, one.rest][i]):>9}" for one in shown)
        lines.append(f"{_named(word, shown[0].truth):<22}{cells}")
    return "\n".join(lines)


def _named(word: str, truth: str | None) -> str:
    short = word if len(word) <= LETTERS or word == REST else word[: LETTERS - 1] + "…"
    return f"{short} (true)" if word == truth else short


# ---------------------------------------------------------------- drawn


def temperature_picture(one: Softened) -> Html:
    """The bars at one temperature, and a sentence below."""
    said = _said(one)
    words = f'<p style="margin:6px 0 0">{escape(said)}</p>'
    return Html(
        card(temperature_panels([one], 720) + words, "temperature"), f"{_table([one])}\n{said}"
    )


def temperature_print(shown: Sequence[Softened]) -> Html:
    """Several temperatures side by side, for a page without a kernel."""
    said = [_said(one) for one in shown]
    words = "".join(f'<p style="margin:4px 0 0">{escape(line)}</p>' for line in said)
    drawing = svg_image(temperature_panels(shown), " ".join(said))
    return Html(card(drawing + words, "temperature", 780), "\n".join([_table(shown), *said]))


def temperature_panels(
    shown: Sequence[Softened], wide: int = 740, titles: Sequence[str] = ()
) -> str:
    """SVG: a panel of bars for each, the words to the left of the first; titles: else "T = …"."""
    panel = (wide - LEFT) // len(shown)
    parts = [_HATCH, _names(shown[0])]
    for k, one in enumerate(shown):
        x, title = LEFT + k * panel, titles[k] if titles else f"T = {one.temperature:g}"
        parts.append(
            f'<text x="{x}" y="20" font-weight="700" font-size="14">{escape(title)}</text>'
        )
        parts.append(_bars(one, x, panel - (62 if len(shown) > 1 else 82)))
    return svg_drawing(wide, _height(shown[0]), "".join(parts), " ".join(map(_said, shown)))


def _height(one: Softened) -> int:
    return TOP + ROW * len(_rows(one)) + 6


def _rows(one: Softened) -> list[str]:
    """The words, and what is left of the vocabulary."""
    return [*one.words, REST] if one.size > len(one.words) else one.words


def _names(one: Softened) -> str:
    """The words, to the left of the bars; the true one says so."""
    parts = []
    for i, word in enumerate(_rows(one)):
        rest = i == len(one.words)
        look = 'fill="#555" font-style="italic"' if rest else 'font-family="ui-monospace,monospace"'
        bold = ' font-weight="700"' if not rest and word == one.truth else ""
        said = _named(word, one.truth)
        parts.append(
            f'<text x="{LEFT - 8}" y="{TOP + ROW * i + 15}" text-anchor="end" {look}{bold}>'
            f"{escape(said)}</text>"
        )
    return "".join(parts)


def _bars(one: Softened, x: float, longest: float) -> str:
    """A bar a word from x on; 100% is `longest` pixels. Shape says what colour says."""
    parts = []
    for i, probability in enumerate([*one.probabilities, one.rest][: len(_rows(one))]):
        if i == len(one.words):
            look = 'fill="#f4f4f4" stroke="#555" stroke-dasharray="4 3"'
        elif one.words[i] == one.truth:
            look = 'fill="url(#course-truth)" stroke="#8a5f00" stroke-width="1.5"'
        else:
            look = f'fill="{BLUE}"'
        y, wide = TOP + ROW * i, max(longest * probability, 1)
        said = _percent(probability) if one.temperature else f"{probability:.0%}"  # 0: a label
        parts.append(
            f'<rect x="{x}" y="{y + 2}" width="{wide:.1f}" height="{ROW - 8}" {look}/>'
            f'<text x="{x + wide + 6:.1f}" y="{y + 15}">{escape(said)}</text>'
        )
    axis = f'<path d="M{x} {TOP - 4}V{_height(one) - 6}" stroke="#1a1a1a"/>'
    return "".join(parts) + axis
