"""Four texts as a padded batch, and as one list of real tokens with cumulative lengths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, GREEN, ORANGE, PURPLE
from course_lib.teaching.svg import drawing, rect, words

LENGTHS = (6, 2, 4, 3)
LOOKS = ((BLUE, "#d9ebf7"), (ORANGE, "#fdf1d6"), (GREEN, "#d6f0e7"), (PURPLE, "#f7e6ef"))
CELL, HIGH, LEFT = 44, 36, 8


def packing_drawing(lengths: Sequence[int] = LENGTHS) -> Html:
    """Above: rows as long as the longest text. Below: the list, and where each text begins.

    Raises ValueError for no text, for more than four, and for an empty one."""
    if not 1 <= len(lengths) <= len(LOOKS) or min(lengths) < 1:
        raise ValueError(
            f"lengths {list(lengths)} were given; expected one to four texts of at least one token."
        )
    longest, ends = max(lengths), [0, *accumulate(lengths)]
    parts = [words(LEFT, 20, "padded", 18, "start")]
    for row, length in enumerate(lengths):
        for at in range(longest):
            parts.append(_token(LEFT + CELL * at, 30 + (HIGH + 4) * row, row, at, at < length))
    below = 30 + (HIGH + 4) * len(lengths) + 40
    parts.append(words(LEFT, below - 10, "unpadded", 18, "start"))
    for row, length in enumerate(lengths):
        for at in range(length):
            parts.append(_token(LEFT + CELL * (ends[row] + at), below, row, at, True))
    for end in ends:
        parts.append(words(LEFT + CELL * end, below + HIGH + 24, str(end), 18))
    says = (
        f"{len(lengths)} texts of {', '.join(map(str, lengths))} tokens. Padded: "
        f"{len(lengths)} × {longest} = {len(lengths) * longest} positions. Unpadded: {ends[-1]}, "
        f"cumulative lengths {', '.join(map(str, ends))}."
    )
    width, height = LEFT + CELL * ends[-1] + 30, below + HIGH + 34
    return drawing(width, height, parts, says, margin=2)


def _token(x: float, y: float, row: int, at: int, real: bool) -> str:
    ink, fill = LOOKS[row]
    if not real:
        return rect(x, y, CELL - 4, HIGH, "·", ink="#bbb", dash="4 3", size=16)
    return rect(x, y, CELL - 4, HIGH, f"{'abcd'[row]}{at}", fill=fill, ink=ink, size=16)
