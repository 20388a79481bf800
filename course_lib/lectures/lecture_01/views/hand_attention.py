"""Attention among four words, every number in sight: scores, weights, output of one word."""

from __future__ import annotations

from typing import Any

from course_lib.teaching.page import Html, Live, card, number, paragraphs, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, ORANGE
from course_lib.teaching.svg import MONO, rect, words

from ..by_hand import FEATURES, OTHER_WORDS, WORDS, attention_by_hand, vectors_of

WIDE, ROW, TOP, STEP = 780, 42, 50, 50  # pixels; STEP: from one number of a vector to the next
SENTENCES = {" ".join(said): said for said in (WORDS, OTHER_WORDS)}
COLUMNS = {"word": 8, "vector": 124, "score": 336, "weight": 396, "value": 598}


def hand_attention_view(gathers: int = 3) -> Live:
    """One word gathers from all four. Controls: sentence, which word gathers (1 to 4), and whether
    it sees only what stands before it."""
    import ipywidgets as w

    controls = {
        "sentence": w.Dropdown(options=list(SENTENCES), description="sentence"),
        "gathers": w.IntSlider(value=gathers, min=1, max=4, description="word that gathers"),
        "only_before": w.Checkbox(value=False, description="sees only itself and what is before"),
    }

    def draw(**values: Any) -> str:
        return hand_attention_picture(**values).html

    first = next(iter(SENTENCES))
    return playground(draw, controls, hand_attention_picture(first, gathers, image=True))


def hand_attention_picture(
    sentence: str, gathers: int, only_before: bool = False, *, image: bool = False
) -> Html:
    """A line a word: its vector, its score, its weight as a bar; below the output in words.

    image: as an image, which stays where inline SVG is taken out."""
    said = SENTENCES[sentence]
    x = vectors_of(said)
    scores, weights, outputs = (
        part[..., gathers - 1, :].squeeze(0)
        for part in attention_by_hand(x, only_before=only_before)
    )
    lines = _in_words(said, gathers, weights.tolist(), x[gathers - 1].tolist(), outputs.tolist())
    parts = _head()
    for i, word in enumerate(said):
        hidden = only_before and i >= gathers
        parts += _line(i, word, x[i].tolist(), float(scores[i]), float(weights[i]), hidden,
                       gathers == i + 1)  # fmt: skip
    parts += _below(len(said), outputs.tolist())
    label = " ".join(lines)
    svg = svg_drawing(WIDE, TOP + ROW * (len(said) + 1), "".join(parts), label)
    return Html(
        card((svg_image(svg, label) if image else svg) + paragraphs(lines), "hand-attention", 790),
        "\n".join(lines),
    )


def _head() -> list[str]:
    heads = {"score": "score", "weight": "attention weight"}
    features = [
        words(COLUMNS[name] + STEP * i, 40, feature, 12.5)
        for name in ("vector", "value")
        for i, feature in enumerate(FEATURES)
    ]
    over = {"vector": "vector", "value": "weight · vector"}
    return [
        *features,
        *(words(COLUMNS[name], 40, said, 12.5, "start") for name, said in heads.items()),
        *(words(COLUMNS[n] + 1.5 * STEP, 18, said, 12.5) for n, said in over.items()),
    ]


def _numbers(column: str, y: float, values: list[float], written: str, style: str) -> list[str]:
    """A vector, a number under each feature."""
    return [
        words(COLUMNS[column] + STEP * i, y, format(value, written).replace("-", "−"), 14.5,
              style=style)
        for i, value in enumerate(values)
    ]  # fmt: skip


def _line(
    i: int, word: str, vector: list[float], score: float, weight: float, hidden: bool, own: bool
) -> list[str]:
    """One word of the sentence: a row of the picture."""
    y = TOP + ROW * i
    mono = f' style="{MONO}"'
    parts = [
        rect(COLUMNS["word"], y, 86, 30, word, mono=True, size=15, wide=3 if own else 1.2,
             ink=ORANGE if own else "#8a8a8a"),
        *_numbers("vector", y + 20, vector, "g", mono),
    ]  # fmt: skip
    if hidden:
        grey = ' fill="#666"'
        return [*parts, words(COLUMNS["score"], y + 20, "not seen: comes after", 14, "start", grey)]
    return [
        *parts,
        words(COLUMNS["score"] + 8, y + 20, f"{score:g}", 14.5, "start", mono),
        f'<rect x="{COLUMNS["weight"]}" y="{y + 5}" width="{max(1, 100 * weight):.1f}" height="20" '
        f'fill="{BLUE}"/>',
        words(COLUMNS["weight"] + 100 * weight + 6, y + 20, f"{weight:.2f}", 14.5, "start", mono),
        *_numbers("value", y + 20, [weight * v for v in vector], ".2f", mono),
    ]


def _below(rows: int, output: list[float]) -> list[str]:
    y = TOP + ROW * rows
    return [
        f'<path d="M{COLUMNS["value"] - 20} {y}H{WIDE - 8}" stroke="#1a1a1a"/>',
        words(COLUMNS["value"] - 32, y + 24, "sum: the output", 14, "end"),
        *_numbers("value", y + 24, output, ".2f", f' style="{MONO}" font-weight="650"'),
    ]


def _in_words(
    said: tuple[str, ...], gathers: int, weights: list[float], before: list[float],
    after: list[float],
) -> list[str]:  # fmt: skip
    listed = ", ".join(f"{word} {w:.2f}" for word, w in zip(said, weights, strict=True))
    word = said[gathers - 1]
    changed = "; ".join(
        f"{name} {a:g} → {number(b)}" for name, a, b in zip(FEATURES, before, after, strict=True)
    )
    return [f"“{word}” gathers with weights {listed}.", f"Its vector, before → after: {changed}."]
