"""Four kinds of task and what each adds to the same encoder (Devlin et al. 2018, section 4).

H hidden size, K classes.
"""

from __future__ import annotations

from html import escape

from course_lib.teaching.page import Html, card, svg_drawing, svg_image
from course_lib.teaching.style import BLUE
from course_lib.teaching.tokens import SPECIAL

WIDE, PANEL, HIGH, GAP = 740, 358, 216, 24  # pixels
MONO = "ui-monospace,Menlo,Consolas,monospace"
ENCODER, VECTORS, HEAD, ANSWERS = 128, 100, 62, 36  # from the top of a panel to each, pixels

_HATCH = (
    '<defs><pattern id="course-unread" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff"/>'
    '<rect width="1.2" height="6" fill="#b0b0b0"/></pattern></defs>'
)


def task_shapes() -> Html:
    """One encoder, four heads: a class of a text, of a pair, a tag a word, the ends of an answer.

    The vectors that a head reads are filled, those nobody reads are hatched."""
    panels = [
        _panel(0, 0, "a text → a class", "[CLS] the soup was cold [SEP]", "K × H", {0: "negative"}),
        _panel(
            1, 0, "a pair → a class", "[CLS] all slept [SEP] one woke [SEP]", "K × H",
            {0: "contradiction"},
        ),
        _panel(
            0, 1, "every word → a tag", "[CLS] Ines moved to Turin [SEP]", "K × H, at every word",
            {1: "B-PER", 2: "O", 3: "O", 4: "B-LOC"},
        ),
        _panel(
            1, 1, "two vectors → start and end", "[CLS] when ? [SEP] it opens at noon [SEP]",
            "2 × H: S and E", {0: "no answer, or", 4: "", 5: "", 6: "start", 7: "end"},
        ),
    ]  # fmt: skip
    said = (
        "The encoder is the same four times; only the head on top is new: K × H weights for K "
        "classes or tags, 2 × H for an answer. A text and a pair are classified by the vector of "
        "[CLS] alone, tags by that of every word. For an answer, two vectors S and E give every "
        "token of the passage a start and an end logit, and [CLS] those of no answer. Hatched "
        "vectors are not read."
    )
    drawing = svg_drawing(WIDE, 2 * HIGH + GAP, _HATCH + "".join(panels), said)
    words = f'<p style="margin:6px 0 0">{escape(said)}</p>'
    return Html(card(svg_image(drawing, said) + words, "task-shapes", 780), said)


def _panel(column: int, row: int, title: str, text: str, head: str, answers: dict[int, str]) -> str:
    """Tokens go in below, vectors come out, the head reads those that have an answer."""
    x0, y0 = column * (PANEL + GAP), row * (HIGH + GAP)
    tokens = text.split()
    boxes = _places(tokens)
    middles = [left + wide / 2 for left, wide in boxes]
    parts = [
        f'<text x="0" y="14" font-weight="700">{title}</text>'
        f'<rect x="1" y="{ENCODER}" width="{PANEL - 2}" height="34" rx="4" fill="#e8f1f8" '
        f'stroke="#1a1a1a"/><text x="{PANEL / 2}" y="{ENCODER + 22}" text-anchor="middle" '
        'font-weight="600">the same pre-trained encoder</text>'
    ]
    read = [middles[k] for k in answers]
    left, right = min(read) - 30, max(read) + 30
    left, right = max(1.0, left), max(right, left + 15 + 7.2 * len(head))
    parts.append(
        f'<rect x="{left:.0f}" y="{HEAD}" width="{right - left:.0f}" height="22" rx="4" '
        'fill="#fdeecb" stroke="#1a1a1a" stroke-width="1.6"/>'
        f'<text x="{(left + right) / 2:.0f}" y="{HEAD + 16}" text-anchor="middle" font-size="12">'
        f"{head}</text>"
    )
    for k, (token, (x, wide), middle) in enumerate(zip(tokens, boxes, middles, strict=True)):
        parts += [_token(token, x, wide), _vector(middle, k in answers)]
        if answers.get(k):
            parts.append(_answer(answers[k], middle))
    if "[SEP]" in tokens[:-1]:
        parts.append(_segments(tokens, middles))
    return f'<g transform="translate({x0},{y0})">{"".join(parts)}</g>'


def _places(tokens: list[str]) -> list[tuple[float, float]]:
    """Left edge and width of each token's box; together as wide as the panel."""
    wide = [11 + 6.8 * len(token) for token in tokens]
    space = (PANEL - 2 - sum(wide)) / (len(tokens) - 1)
    return [(sum(wide[:k]) + k * space, one) for k, one in enumerate(wide)]


def _token(token: str, x: float, wide: float) -> str:
    """A box as views.tokens draws it: special tokens rounded."""
    look = 'rx="11" fill="#efefef"' if token in SPECIAL else 'rx="3" fill="#fff"'
    middle = x + wide / 2
    return (
        f'<path d="M{middle:.1f} {ENCODER + 46}V{ENCODER + 35}" stroke="#767676"/>'
        f'<rect x="{x:.1f}" y="{ENCODER + 46}" width="{wide:.1f}" height="23" {look} '
        f'stroke="#9a9a9a"/><text x="{middle:.1f}" y="{ENCODER + 62}" text-anchor="middle" '
        f'font-size="11.5" font-family="{MONO}">{escape(token)}</text>'
    )


def _vector(middle: float, read: bool) -> str:
    """The encoder's last vector of one token, and a line to the head that reads it."""
    fill = BLUE if read else "url(#course-unread)"
    line = f'<path d="M{middle:.1f} {VECTORS}V{HEAD + 22}" stroke="{BLUE}" stroke-width="2"/>'
    return (
        f'<rect class="{"read" if read else "unread"}" x="{middle - 5:.1f}" y="{VECTORS}" '
        f'width="10" height="24" fill="{fill}" stroke="#1a1a1a" stroke-width="0.8"/>' + line * read
    )


def _answer(said: str, middle: float) -> str:
    """What the head says, above it; words at the edge stay inside the panel."""
    half = 3.6 * len(said)
    x, anchor = (0.0, "start") if middle < half else (middle, "middle")
    return (
        f'<path d="M{middle:.1f} {HEAD}V{ANSWERS + 8}" stroke="#1a1a1a"/>'
        f'<text class="answer" x="{x:.1f}" y="{ANSWERS + 3}" text-anchor="{anchor}" '
        f'font-weight="700">{said}</text>'
    )


def _segments(tokens: list[str], middles: list[float]) -> str:
    """0 or 1 under each token: the segment it belongs to."""
    first = tokens.index("[SEP]")
    parts = [
        f'<text x="{middle:.1f}" y="{ENCODER + 84}" text-anchor="middle" font-size="11" '
        f'fill="#555">{int(k > first)}</text>'
        for k, middle in enumerate(middles)
    ]
    return "".join(parts)
