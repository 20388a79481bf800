"""The pairs of NSP and SOP as rows of numbered sentences, for the page and for the deck."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, VERMILION
from course_lib.teaching.svg import drawing, rect, words

STEP = 42  # from one sentence's box to the next
RIGHT, SWAPPED, OTHER = (
    "both: label 0, in order",
    "SOP: label 1, swapped",
    "NSP: label 1, other story",
)
OPENINGS = (
    "NSP, NotNext: B is from another story, here its beginning",
    "SOP, swapped: B is the beginning of the same story",
)


def three_pairs() -> list[str]:
    """What the two tasks make of a story, 548 wide and 148 high."""
    first, rest, parts = [1, 2, 3], [4, 5], []
    pairs = (
        (first, rest, False, RIGHT),
        (rest, first, False, SWAPPED),
        (first, [2, 3], True, OTHER),
    )
    for k, (a, b, other, caption) in enumerate(pairs):
        y = 2 + 50 * k
        parts += [*_pair(y, a, b, other)[0], words(292, y + 26, caption, 20, "start")]
    return parts


def two_openings() -> list[str]:
    """A wrong pair of NSP and a swapped one of SOP, both with an opening in B; 1150 × 134."""
    parts = []
    for y, other, caption in zip((12, 78), (True, False), OPENINGS, strict=True):
        pair, start = _pair(y, [3, 4, 5], [1, 2], other)
        around = rect(start - 6, y - 6, 50, 50, fill="none", ink=VERMILION, wide=4, rounding=8)
        parts += [*pair, around, words(start + 110, y + 27, caption, 22, "start")]
    return parts


def pairs_picture() -> Html:
    """The three pairs for a page."""
    text = (
        f"A: sentences 1 to 3, B: 4 and 5: {RIGHT}. A: 4 and 5, B: 1 to 3: {SWAPPED}. "
        f"A: 1 to 3, B: two sentences of another story: {OTHER}."
    )
    return _picture(three_pairs(), 560, 112, 0.72, text)


def openings_picture() -> Html:
    """The two wrong pairs for a page."""
    return _picture(two_openings(), 748, 88, 0.65, ". ".join(OPENINGS) + ".")


def _picture(parts: list[str], width: int, height: int, scale: float, text: str) -> Html:
    return drawing(width, height, [f'<g transform="scale({scale})">{"".join(parts)}</g>'], text)


def _pair(
    y: float, a: Sequence[int], b: Sequence[int], other: bool = False
) -> tuple[list[str], int]:
    """Two segments side by side, and where the second begins."""
    start = 24 + STEP * len(a) + 32
    named = [words(0, y + 26, "A", 20, "start"), words(start - 18, y + 26, "B")]
    return [*named, *_cells(24, y, a), *_cells(start, y, b, other)], start


def _cells(x: float, y: float, numbers: Sequence[int], other: bool = False) -> list[str]:
    """Sentences of a story as numbered boxes; another story's are dashed."""
    fill, ink, dash = ("#fdf1d6", "#8a5f00", "6 3") if other else ("#e3f0f8", BLUE, "")
    return [
        rect(x + STEP * i, y, 38, 38, f"{n}′" if other else str(n), wide=2, fill=fill, ink=ink,
             dash=dash)
        for i, n in enumerate(numbers)
    ]  # fmt: skip
