"""A teacher's answer at one masked word, made softer or harder by a temperature.

V vocabulary. The probabilities at temperature T are softmax(logits / T).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import playground, steps
from course_lib.teaching.style import ORANGE, hatch
from course_lib.teaching.svg import bar, line, picture, words

if TYPE_CHECKING:
    from torch import Tensor

TEMPERATURES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
IN_PRINT = (1.0, 2.0, 8.0)  # side by side where no slider can be moved
MOST_WORDS, LETTERS = 20, 14  # bars; characters of a word that are shown
REST = "all other words"
LEFT, TOP, ROW = 158, 34, 26  # pixels

TRUE = {"fill": hatch("#fff", ORANGE), "ink": "#8a5f00", "wide": 1.5}  # the look of its bar
OTHERS = {"fill": "#f4f4f4", "ink": "#555", "dash": "4 3"}


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

    def draw(*temperatures: float) -> Html:
        return temperature_picture(
            [soften(logits, words, T, top=top, truth=truth) for T in temperatures]
        )

    options = [(f"{T:g}", T) for T in TEMPERATURES]
    controls = {"temperature": steps("temperature T", 1.0, options)}
    return playground(lambda temperature: draw(temperature), controls, draw(*IN_PRINT))


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
    listed = z.topk(min(top, len(words))).indices.tolist()
    if truth is not None and (position := list(words).index(truth)) not in listed:
        listed.append(position)
    kept = [probabilities[i].item() for i in listed]
    return Softened(
        temperature,
        [words[i] for i in listed],
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


def _in_words(one: Softened) -> str:
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


def _table(columns: Sequence[Softened]) -> str:
    """A line a word, a column a temperature."""
    heads = [f"T = {one.temperature:g}" for one in columns]
    lines = [f"{'':<22}" + "".join(f"{head:>9}" for head in heads)]
    for i, word in enumerate(_rows(columns[0])):
        cells = "".join(f"{_percent([*one.probabilities, one.rest][i]):>9}" for one in columns)
        lines.append(f"{_named(word, columns[0].truth):<22}{cells}")
    return "\n".join(lines)


def _named(word: str, truth: str | None) -> str:
    short = word if len(word) <= LETTERS or word == REST else word[: LETTERS - 1] + "…"
    return f"{short} (true)" if word == truth else short


# ---------------------------------------------------------------- drawn


def temperature_picture(
    panels: Sequence[Softened], width: int = 740, titles: Sequence[str] = ()
) -> Html:
    """A panel of bars for each temperature, the words left of the first; titles: else "T = …"."""
    panel, parts, rows = (width - LEFT) // len(panels), [], _rows(panels[0])
    for k, one in enumerate(panels):
        x, title = LEFT + k * panel, titles[k] if titles else f"T = {one.temperature:g}"
        longest = panel - (62 if len(panels) > 1 else 82)
        parts += [
            words(x, 20, escape(title), 14, "start", bold=True),
            *(_bar(one, i, x, longest, named=not k) for i in range(len(rows))),
            line(x, TOP - 4, x, TOP + ROW * len(rows)),
        ]
    lines = [_in_words(one) for one in panels]
    height, text = TOP + ROW * len(rows) + 6, "\n".join([_table(panels), *lines])
    return picture("temperature", width, height, parts, lines, text=text)


def _rows(one: Softened) -> list[str]:
    """The words, and what is left of the vocabulary."""
    return [*one.words, REST] if one.size > len(one.words) else one.words


def _bar(one: Softened, i: int, x: float, longest: float, named: bool) -> str:
    """The bar of word i from x on; 100% is `longest` pixels. Shape says what colour says."""
    rest = i == len(one.words)
    probability = one.rest if rest else one.probabilities[i]
    true = not rest and one.words[i] == one.truth
    label = _percent(probability) if one.temperature else f"{probability:.0%}"  # 0: a label
    name = escape(_named(_rows(one)[i], one.truth)) if named else ""
    y, length = TOP + ROW * i + 2, max(longest * probability, 1)
    look = OTHERS if rest else TRUE if true else {}
    return words(x - 8, y + 13, name, 13, "end", ' font-style="italic"' * rest, mono=not rest,
                 bold=true, ink="#555" * rest) + bar(x, y, length, ROW - 8, "", escape(label),
                                                     **look)  # fmt: skip
