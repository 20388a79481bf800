"""Attention among four words, every number in sight: scores, weights, output of one word."""

from __future__ import annotations

from course_lib.teaching.page import Html, Live, number
from course_lib.teaching.playgrounds import checkbox, choice, playground, slider
from course_lib.teaching.style import BLUE, INK, ORANGE
from course_lib.teaching.svg import area, line, picture, rect, with_sign, words

from ..by_hand import FEATURES, OTHER_WORDS, WORDS, attention_by_hand, vectors_of

WIDTH, ROW, TOP, STEP = 780, 42, 50, 50  # pixels; STEP: from one number of a vector to the next
SENTENCES = {" ".join(sentence): sentence for sentence in (WORDS, OTHER_WORDS)}
COLUMNS = {"word": 8, "vector": 124, "score": 336, "weight": 396, "value": 598}


def hand_attention_view(gathers: int = 3) -> Live:
    """One word gathers from all four. Controls: sentence, which word gathers (1 to 4), and whether
    it sees only what stands before it."""
    controls = {
        "sentence": choice("sentence", next(iter(SENTENCES)), SENTENCES),
        "gathers": slider("word that gathers", gathers, 1, 4),
        "only_before": checkbox("sees only itself and what is before", False),
    }
    return playground(hand_attention_picture, controls)


def hand_attention_picture(sentence: str, gathers: int, only_before: bool = False) -> Html:
    """A line a word: its vector, its score, its weight as a bar; below the output in words."""
    sentence_words = SENTENCES[sentence]
    x = vectors_of(sentence_words)
    scores, weights, outputs = (
        part[..., gathers - 1, :].squeeze(0)
        for part in attention_by_hand(x, only_before=only_before)
    )
    before, after = x[gathers - 1].tolist(), outputs.tolist()
    lines = _in_words(sentence_words, gathers, weights.tolist(), before, after)
    parts = _head()
    for i, word in enumerate(sentence_words):
        hidden = only_before and i >= gathers
        parts += _line(i, word, x[i].tolist(), float(scores[i]), float(weights[i]), hidden,
                       gathers == i + 1)  # fmt: skip
    parts += _below(len(sentence_words), after)
    return picture(
        "hand-attention", WIDTH, TOP + ROW * (len(sentence_words) + 1), parts, lines, card_width=790
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
        *(words(COLUMNS[name], 40, title, 12.5, "start") for name, title in heads.items()),
        *(words(COLUMNS[n] + 1.5 * STEP, 18, title, 12.5) for n, title in over.items()),
    ]


def _numbers(
    column: str, y: float, values: list[float], written: str, bold: bool = False
) -> list[str]:  # fmt: skip
    """A vector, a number under each feature."""
    return [
        words(COLUMNS[column] + STEP * i, y, with_sign(value, written), 14.5, mono=True, bold=bold)
        for i, value in enumerate(values)
    ]


def _line(
    i: int, word: str, vector: list[float], score: float, weight: float, hidden: bool, own: bool
) -> list[str]:
    """One word of the sentence: a row of the picture."""
    y, bar_x = TOP + ROW * i, COLUMNS["weight"]
    parts = [
        rect(COLUMNS["word"], y, 86, 30, word, mono=True, size=15, wide=3 if own else 1.2,
             ink=ORANGE if own else "#8a8a8a"),
        *_numbers("vector", y + 20, vector, "g"),
    ]  # fmt: skip
    if hidden:
        message = "not seen: comes after"
        return [*parts, words(COLUMNS["score"], y + 20, message, 14, "start", ink="#666")]
    return [
        *parts,
        words(COLUMNS["score"] + 8, y + 20, f"{score:g}", 14.5, "start", mono=True),
        area(bar_x, y + 5, max(1, 100 * weight), 20, BLUE),
        words(bar_x + 100 * weight + 6, y + 20, f"{weight:.2f}", 14.5, "start", mono=True),
        *_numbers("value", y + 20, [weight * v for v in vector], ".2f"),
    ]


def _below(rows: int, output: list[float]) -> list[str]:
    y = TOP + ROW * rows
    return [
        line(COLUMNS["value"] - 20, y, WIDTH - 8, y, ink=INK),
        words(COLUMNS["value"] - 32, y + 24, "sum: the output", 14, "end"),
        *_numbers("value", y + 24, output, ".2f", bold=True),
    ]


def _in_words(
    sentence: tuple[str, ...], gathers: int, weights: list[float], before: list[float],
    after: list[float],
) -> list[str]:  # fmt: skip
    listed = ", ".join(f"{word} {w:.2f}" for word, w in zip(sentence, weights, strict=True))
    word = sentence[gathers - 1]
    changed = "; ".join(
        f"{name} {a:g} → {number(b)}" for name, a, b in zip(FEATURES, before, after, strict=True)
    )
    return [f"“{word}” gathers with weights {listed}.", f"Its vector, before → after: {changed}."]
