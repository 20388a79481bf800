"""Four kinds of task and what each adds to the same encoder (Devlin et al. 2018, section 4).

H hidden size, K classes.
"""

from __future__ import annotations

from html import escape

from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, hatch
from course_lib.teaching.svg import arrow, picture, rect, words

WIDE, PANEL, HIGH, GAP = 1150, 556, 222, 36  # pixels of the deck; the page shows it smaller
HEAD, VECTORS, ENCODER, TOKENS = 50, 88, 118, 164  # from the top of a panel to each, pixels
BOLD, MUTED = ' font-weight="650"', ' fill="#5a5a5a"'

UNREAD = hatch("#b0b0b0", size=9, stripe=1.8)
PANELS = (  # title, tokens, the head's weights, what it says at which token
    ("a text → a class", "[CLS] the soup was cold [SEP]", "K × H", {0: "negative"}),
    ("a pair → a class", "[CLS] all slept [SEP] one woke [SEP]", "K × H", {0: "contradiction"}),
    ("every word → a tag", "[CLS] Ines moved to Turin [SEP]", "K × H, at every word",
     {1: "B-PER", 2: "O", 3: "O", 4: "B-LOC"}),
    ("two vectors → start and end", "[CLS] when ? [SEP] it opens at noon [SEP]",
     "2 × H: S and E", {0: "no answer, or", 4: "", 5: "", 6: "start", 7: "end"}),
)  # fmt: skip
SAID = (
    "The encoder is the same four times; only the head on top is new: K × H weights for K "
    "classes or tags, 2 × H for an answer. A text and a pair are classified by the vector of "
    "[CLS] alone, tags by that of every word. For an answer, two vectors S and E give every "
    "token of the passage a start and an end logit, and [CLS] those of no answer. Hatched "
    "vectors are not read."
)


def task_shapes() -> Html:
    """One encoder, four heads: a class of a text, of a pair, a tag a word, the ends of an answer.

    The vectors that a head reads are filled, those nobody reads are hatched."""
    panels = (
        f'<g transform="translate({1 + k % 2 * (PANEL + GAP)},{k // 2 * (HIGH + 14)})">'
        f"{_panel(*panel)}</g>"
        for k, panel in enumerate(PANELS)
    )
    return picture("task-shapes", WIDE, 2 * HIGH + 14, panels, SAID)


def _panel(title: str, text: str, head: str, answers: dict[int, str]) -> str:
    """Tokens go in below, vectors come out, the head reads those that have an answer."""
    tokens = text.split()
    widths = [14 + 9.7 * len(token) for token in tokens]
    space = (PANEL - sum(widths)) / (len(tokens) - 1)
    lefts = [sum(widths[:k]) + k * space for k in range(len(tokens))]
    middles = [left + w / 2 for left, w in zip(lefts, widths, strict=True)]
    left = max(1.0, min(middles[k] for k in answers) - 44)
    right = max(max(middles[k] for k in answers) + 44, left + 22 + 9.5 * len(head))
    parts = [
        words(0, 16, title, 21, "start", BOLD),
        rect(left, HEAD, right - left, 26, head, fill="#fdeecb", ink="#1a1a1a", size=17),
        rect(0, ENCODER, PANEL, 34, "the same pre-trained encoder", size=18, fill="#e3f0f8",
             ink=BLUE, wide=2),
    ]  # fmt: skip
    second = tokens.index("[SEP]") + 1  # where the second segment begins, if there is one
    for k, (token, middle) in enumerate(zip(tokens, middles, strict=True)):
        read = k in answers
        parts += [
            rect(lefts[k], TOKENS, widths[k], 30, escape(token), size=16, mono=True),
            rect(middle - 7, VECTORS, 14, 26, ink="#1a1a1a", kind="read" if read else "unread",
                 fill=BLUE if read else UNREAD),
            arrow(middle, TOKENS - 2, middle, ENCODER + 36, tip=False),
        ]  # fmt: skip
        if read:
            parts.append(arrow(middle, VECTORS, middle, HEAD + 26, tip=False))
        if second < len(tokens):
            parts.append(words(middle, TOKENS + 48, str(int(k >= second)), 15, style=MUTED))
        if answers.get(k):
            x, anchor = (0.0, "start") if k == 0 else (middle, "middle")
            parts.append(words(x, HEAD - 8, answers[k], 18, anchor, BOLD, kind="answer"))
    return "".join(parts)
