"""DistilBERT as drawings: where its layers come from, and which tokens its three losses look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course_lib.config import published
from course_lib.family.distilbert import spread_layers
from course_lib.objectives.distillation import PUBLISHED_WEIGHTS
from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, INK, ORANGE
from course_lib.teaching.svg import arrow, drawing, rect, words

BOLD = ' font-weight="650"'
PALE, FAINT = "#e3f0f8", "#8a8a8a"
WIDE, HALF_HIGH, POSITIONS_HIGH = 1150, 226, 192
HALF = (
    "DistilBERT's embeddings, head and six layers are copied from BERT-base: from its layers 0, 2, "
    "4, 7, 9 and 11. The other six, the segments and the pooler are left out."
)
POSITIONS = (
    "Soft targets and cosine look at all real tokens, the MLM loss at the masked one only; padding "
    "is in none."
)
TEXT = ("[CLS]", "the", "[MASK]", "steers", "the", "boat", "[SEP]", "[PAD]", "[PAD]")


def half_drawing() -> Html:
    """What of BERT-base a DistilBERT is initialised from."""
    whole, half = published("bert", "base"), published("distilbert", "base")
    N, M = whole.num_layers, half.num_layers
    layers = spread_layers(N, M)
    teacher = ["emb.", *map(str, range(N)), "head"]
    student = ["emb.", *map(str, range(M)), "head"]
    pairs = {0: 0, M + 1: N + 1} | {m + 1: n + 1 for m, n in enumerate(layers)}
    gone = [
        rect(124, 0, 104, 32, "segments", size=18, dash="4 4"), words(240, 23, "✕", 20),
        rect(1040, 0, 104, 32, "pooler", size=18, dash="4 4"), words(1028, 23, "✕", 20),
        words(634, 23, "solid: copied; dashed: left out; layers counted from 0", 18),
    ]  # fmt: skip
    names = ("BERT-base", "DistilBERT")
    parts = [*gone, *two_rows(teacher, student, pairs, names, top=46, low=132)]
    return drawing(WIDE, HALF_HIGH, parts, HALF, margin=2)


def two_rows(
    teacher: Sequence[str],
    student: Sequence[str],
    pairs: Mapping[int, int],
    names: tuple[str, str] = ("teacher", "student"),
    dashes: Mapping[int, str] | None = None,
    top: int = 0,
    low: int = 150,
) -> list[str]:
    """Teacher above, student below, an arrow for each pair student -> teacher."""
    step, left, used = 1020 / len(teacher), 124, set(pairs.values())
    width, spread = step - 9, 1020 / len(student)

    def above(k: int) -> float:
        return left + step * (k + 0.5)

    def below(k: int) -> float:
        return left + spread * (k + 0.5)

    parts = [
        words(106, top + 28, names[0], 20, "end"),
        words(106, top + low + 28, names[1], 20, "end"),
    ]
    for ours, theirs in pairs.items():
        dash = (dashes or {}).get(ours, "")
        parts.append(arrow(above(theirs), top + 46, below(ours), top + low - 3, dash=dash))
    for k, name in enumerate(teacher):
        look: dict[str, Any] = (
            {"fill": PALE, "ink": BLUE, "wide": 2} if k in used else {"dash": "4 4"}
        )
        parts.append(rect(above(k) - width / 2, top, width, 44, name, size=18, **look))
    own: dict[str, Any] = {"fill": "#dff1fb", "ink": INK, "wide": 2}
    for k, name in enumerate(student):
        parts.append(rect(below(k) - width / 2, top + low, width, 44, name, size=18, **own))
    return parts


def positions_drawing() -> Html:
    """A row of tokens, and for each of the three losses those that it looks at."""
    step, left = 98, 236
    losses = (
        ("soft", "soft targets", BLUE, "#cfe5f3", lambda token: token != "[PAD]"),
        ("mlm", "MLM", "#8a5f00", "#fdf1d6", lambda token: token == "[MASK]"),
        ("cosine", "cosine", "#00745a", "#e0f3ed", lambda token: token != "[PAD]"),
    )
    parts = [
        rect(left + step * k, 0, step - 8, 40, token, size=18, mono=True,
             wide=3 if token == "[MASK]" else 1.5, ink=ORANGE if token == "[MASK]" else FAINT,
             dash="4 4" if token == "[PAD]" else "")
        for k, token in enumerate(TEXT)
    ]  # fmt: skip
    for row, (name, caption, ink, fill, sees) in enumerate(losses):
        y = 56 + 46 * row
        parts += [words(0, y + 26, f"{PUBLISHED_WEIGHTS[name]:g} ×", 22, "start", BOLD),
                  words(62, y + 26, caption, 22, "start")]  # fmt: skip
        parts += [
            rect(left + step * k, y, step - 8, 36, "✓", fill=fill, ink=ink, wide=2)
            if sees(token) else words(left + step * (k + 0.5) - 4, y + 25, "–", 20)
            for k, token in enumerate(TEXT)
        ]  # fmt: skip
    return drawing(WIDE, POSITIONS_HIGH, parts, POSITIONS, margin=2)
