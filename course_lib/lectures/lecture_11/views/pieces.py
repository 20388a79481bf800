"""One text under several vocabularies: into how many pieces does each cut it?"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from course_lib.teaching.page import Html, Live, card, paragraphs
from course_lib.teaching.playgrounds import choice, playground, text_field
from course_lib.text.wordpiece import WordPiece

TEXTS = {
    "medicine": "diabetic retinopathy with macular edema, bilateral",
    "law": "the licensee shall indemnify and hold harmless the licensor",
    "finance": "the amortization schedule and the volatility of returns",
    "general": "the function returns a sorted copy of the list",
}
BOX = "border:1px solid #0072B2;border-radius:3px;padding:1px 6px;margin:2px;font:14px monospace;"


def pieces_view(
    vocabularies: Mapping[str, WordPiece], texts: Mapping[str, str] | None = None
) -> Live:
    """A text as each vocabulary cuts it. Controls: text. Raises ValueError for no vocabulary."""
    texts = texts or TEXTS
    controls = {
        "example": choice("example", next(iter(texts)), texts),
        "text": text_field("text", "", placeholder="or your own words"),
    }

    def draw(example: str, text: str) -> Html:
        return pieces_picture(vocabularies, text.strip() or texts[example])

    return playground(draw, controls)


def pieces_picture(vocabularies: Mapping[str, WordPiece], text: str) -> Html:
    """A row a vocabulary: the pieces as boxes, and pieces a word, punctuation apart."""
    if not vocabularies:
        raise ValueError("no vocabulary was given; expected a name and a WordPiece for each row.")
    rows, lines = [], []
    for name, vocabulary in vocabularies.items():
        pieces = vocabulary.tokenize(text)
        words = sum(any(map(str.isalnum, word)) for word in vocabulary.words(text))
        boxes = "".join(
            f'<span style="{BOX}{"border-style:dashed" if p.startswith("##") else ""}">'
            f"{escape(p)}</span>"
            for p in pieces
        )
        counted = len(pieces) - sum(not any(map(str.isalnum, p)) for p in pieces)
        count = f"{counted} pieces, {counted / max(words, 1):.2f} per word"
        rows.append(
            f'<div style="margin:6px 0"><b>{escape(name)}</b>: {count}'
            f'<div style="display:flex;flex-wrap:wrap">{boxes}</div></div>'
        )
        lines.append(f"{name}: {count}: {' '.join(pieces)}")
    note = paragraphs(["Solid: a word starts. Dashed: it continues."])
    return Html(card("".join(rows) + note, "pieces", 760), "\n".join(lines))
