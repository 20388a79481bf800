"""ELMo as a drawing; and ELMo, GPT and BERT side by side: what each position is made from."""

from __future__ import annotations

from typing import Any

from course_lib.family.elmo import FILTERS, ElmoConfig
from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, INK, ORANGE, VERMILION
from course_lib.teaching.svg import arrow, dot, drawing, line, rect, words

CHARS: dict[str, Any] = {"fill": "#fdf1d6", "ink": "#8a5f00"}
AHEAD: dict[str, Any] = {"fill": "#e3eef8", "ink": BLUE}
BACK: dict[str, Any] = {"fill": "#fbe6da", "ink": VERMILION}
MIXED: dict[str, Any] = {"fill": "#e0f3ed", "ink": "#00745a"}
BOLD = ' font-weight="650"'

ELMO_SAYS = (
    "From left to right. A word is read as characters; seven groups of filters, one to seven "
    "characters wide, slide over it; of each filter the largest value is kept, then ReLU; two "
    "highway layers and a projection give one vector. Two LSTM layers read the sentence from the "
    "left, two others from the right, each projected to half of the final width. A task takes a "
    "weighted sum of three layers, times γ: the word's vector doubled, and both directions of each "
    "LSTM layer side by side."
)


def elmo_drawing() -> Html:
    """A word's way through ELMo, with the sizes of the released one."""
    config = ElmoConfig()
    parts = [*_characters(config), *_layers(config), *_mixed(config)]
    return drawing(1150, 560, parts, ELMO_SAYS, margin=2)


def _characters(config: ElmoConfig) -> list[str]:
    """The character encoder: letters, filters, highway, projection."""
    parts = [words(150, 26, "a word from its characters", 20, style=BOLD)]
    for i, letter in enumerate("⟨bank⟩"):
        parts.append(rect(24 + 44 * i, 48, 40, 40, letter, mono=True, size=19, **CHARS))
    parts.append(words(156, 112, f"each character {config.character_size} numbers", 15))
    most = max(count for _, count in FILTERS)
    for i, (width, count) in enumerate(FILTERS):
        y = 136 + 30 * i
        parts += [
            words(60, y + 18, f"{width} wide", 15, "end"),
            rect(70, y, 30 + 150 * count / most, 22, "", **CHARS, wide=1.2),
            words(108 + 150 * count / most, y + 17, f"{count}", 15, "start"),
        ]
    total = sum(count for _, count in FILTERS)
    parts += [
        words(155, 366, f"{total:,} largest values, then ReLU", 15),
        rect(30, 384, 250, 42, f"{config.num_highways} highway layers", **CHARS, size=18),
        arrow(155, 428, 155, 450),
        rect(30, 454, 250, 42, f"projection to {config.projection_size}", **CHARS, size=18),
        words(155, 520, "layer 0: the same in every sentence", 15),
        arrow(284, 475, 330, 475),
    ]
    return parts


def _layers(config: ElmoConfig) -> list[str]:
    """Words above each other's states: two layers a direction."""
    sentence = ("the", "bank", "flooded")
    parts = [words(580, 26, "the sentence, twice", 20, style=BOLD)]
    for which, (look, name, y0) in enumerate(((AHEAD, "forward →", 66), (BACK, "← backward", 250))):
        parts.append(words(544, y0 - 8, name, 17))
        for layer in (1, 2):
            y = y0 + 92 - 84 * (layer - 1)
            for i in range(3):
                x = 340 + 172 * i
                parts.append(rect(x, y, 120, 54, f"LSTM {layer}", **look, size=17))
                if i < 2:
                    ends = (x + 122, x + 168) if which == 0 else (x + 168, x + 122)
                    parts.append(arrow(ends[0], y + 27, ends[1], y + 27))
                if layer == 2:
                    parts.append(arrow(x + 60, y + 82, x + 60, y + 58))
    for i, word in enumerate(sentence):
        x = 340 + 172 * i
        parts += [
            rect(x, 454, 120, 42, word, mono=True, size=18, **CHARS),
            arrow(x + 60, 452, x + 60, 400),  # into both first layers
            arrow(
                x + 100, 452, x + 100, 426, x + 136, 426, x + 136, 228, x + 100, 228, x + 100, 216
            ),
        ]
    parts += [
        words(572, 520, f"{config.cell_size:,} cells a layer, projected to "
              f"{config.projection_size}; layer 2 adds its input", 15),
    ]  # fmt: skip
    return parts


def _mixed(config: ElmoConfig) -> list[str]:
    """The scalar mix of what stands at one word."""
    parts = [words(990, 26, "what a task takes", 20, style=BOLD)]
    rows = (
        ("layer 2", 86, AHEAD, BACK),
        ("layer 1", 186, AHEAD, BACK),
        ("layer 0", 286, CHARS, CHARS),
    )
    for j, (name, y, left, right) in enumerate(rows):
        parts += [
            words(862, y + 32, f"s{'₂₁₀'[j]} ·", 20, "end"),
            rect(872, y, 118, 50, "→" if j < 2 else "", **left, size=20),
            rect(992, y, 118, 50, "←" if j < 2 else "", **right, size=20),
            words(991, y + 68, f"{name}: {config.hidden_size:,} numbers", 15),
        ]
    parts += [
        words(991, 384, "+", 22),
        rect(872, 400, 238, 54, "γ · weighted sum", **MIXED, wide=2.5, size=20),
        words(991, 478, "s: a softmax; s and γ are learned", 15),
        words(991, 499, "by the task, the rest stays frozen", 15),
    ]
    return parts


# ---------------------------------------------------------------- ELMo, GPT, BERT

THREE_SAYS = (
    "Left, ELMo: two chains that read in one direction each, side by side only at the top. Middle, "
    "GPT: every position is made from itself and those before it, in every layer. Right, BERT: "
    "every position from all, in every layer."
)
_ACROSS, _RISE, _FLOOR = 82, 92, 252  # pixels


def three_drawing() -> Html:
    """Three networks of two layers over four words: which positions feed which."""
    parts = _elmo_chains()
    for x, name, caption, seen in (
        (420, "GPT", "left to right, in every layer", lambda i, j: j <= i),
        (800, "BERT", "both sides, in every layer", lambda i, j: True),
    ):
        lines = [
            _way(x + 40 + _ACROSS * j, _FLOOR - _RISE * layer, x + 40 + _ACROSS * i,
                  _FLOOR - _RISE * (layer + 1), BLUE)
            for layer in (0, 1) for i in range(4) for j in range(4) if seen(i, j)
        ]  # fmt: skip
        dots = [
            _dot(x + 40 + _ACROSS * i, _FLOOR - _RISE * layer, BLUE)
            for layer in (1, 2) for i in range(4)
        ]  # fmt: skip
        parts += [*lines, *dots, *_words_below(x), *_title(x + 160, name, caption)]
    return drawing(1150, 330, parts, THREE_SAYS, margin=2)


def _elmo_chains() -> list[str]:
    """Two chains a layer, next to each other at every word; joined at the top only."""
    parts = [*_words_below(0), *_title(163, "ELMo", "two directions, joined at the top")]
    for i in range(4):
        x = 40 + _ACROSS * i
        for way, colour in ((-1, BLUE), (1, VERMILION)):  # forward, backward
            for layer in (1, 2):
                at, y = x + 15 * way, _FLOOR - _RISE * layer + 11 * way
                below = (x, _FLOOR) if layer == 1 else (at, y + _RISE)
                parts.append(_way(*below, at, y, colour))
                if 0 <= i - way < 4:
                    parts.append(_way(at, y, at - way * (_ACROSS - 10), y, colour, tip=True))
        for way, colour in ((-1, BLUE), (1, VERMILION)):
            parts += [
                _dot(x + 15 * way, _FLOOR - _RISE * layer + 11 * way, colour) for layer in (1, 2)
            ]
        parts.append(rect(x - 29, _FLOOR - 2 * _RISE - 26, 58, 52, fill="none", ink=INK, wide=1.8,
                          rounding=7))  # fmt: skip
    return parts


def _way(x1: float, y1: float, x2: float, y2: float, colour: str, tip: bool = False) -> str:
    return line(x1, y1, x2, y2, ink=colour, wide=1.8, tip=tip, opacity=0.75)


def _dot(x: float, y: float, colour: str) -> str:
    return dot(x, y, 8, colour, ink="#fff", wide=1.5)


def _words_below(x: float) -> list[str]:
    sentence = ("the", "bank", "was", "steep")
    return [
        part
        for i, word in enumerate(sentence)
        for part in (
            dot(x + 40 + _ACROSS * i, _FLOOR, 6, ORANGE),
            words(x + 40 + _ACROSS * i, _FLOOR + 30, word, 17, mono=True),
        )
    ]


def _title(x: float, name: str, caption: str) -> list[str]:
    return [words(x, 22, name, 21, style=BOLD), words(x, _FLOOR + 62, caption, 17)]
