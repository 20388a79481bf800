"""Which stretch of a passage is the answer: start and end probabilities as bars, the best spans.

One sequence of T tokens: [CLS] question [SEP] passage [SEP]. A span (i, j) has the score start
logit i + end logit j; no answer is the span of [CLS] alone (Devlin et al. 2018, sections 4.2 and
4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from course_lib.teaching.page import Html, card, number, svg_drawing, svg_image, table_row
from course_lib.teaching.style import BLUE, VERMILION
from course_lib.teaching.svg import words as text_at

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 30  # tokens of a span, as objectives.spans.best_spans has it
BEST = 5  # spans in the table
MOST_TOKENS = 384
WIDE, LEFT, A_LINE = 740, 44, 46  # pixels, pixels, tokens
BARS = 96  # pixels: the height of a line's bars
MONO = "ui-monospace,Menlo,Consolas,monospace"

_FILLS = (
    '<defs><pattern id="course-span-end" width="5" height="5" patternUnits="userSpaceOnUse" '
    f'patternTransform="rotate(45)"><rect width="5" height="5" fill="{VERMILION}"/>'
    '<rect width="2" height="5" fill="#fff"/></pattern></defs>'
)


class Span(NamedTuple):
    """From token i to token j, j included, and the logits of its two ends."""

    i: int
    j: int
    start: float
    end: float

    @property
    def score(self) -> float:
        return self.start + self.end


@dataclass(frozen=True)
class ScoredRow:
    """The logits of one sequence; those of a span's two ends may be at `allowed` tokens alone."""

    tokens: list[str]
    start: Tensor  # (T,)
    end: Tensor  # (T,)
    allowed: Tensor  # (T,) bool

    @property
    def null(self) -> Span:
        return self._span(0, 0)

    def best(self, longest: int, count: int = 1) -> list[Span]:
        """The spans with the highest scores, best first."""
        import torch

        scores = self.pairs().masked_fill(~self.possible(longest), -torch.inf)
        many = min(count, int(scores.isfinite().sum()))
        flat = scores.flatten().sort(descending=True, stable=True).indices[:many]
        return [self._span(*divmod(at, len(self.tokens))) for at in flat.tolist()]

    def pairs(self) -> Tensor:
        """(T, T): start i + end j."""
        return self.start[:, None] + self.end[None, :]

    def possible(self, longest: int) -> Tensor:
        """(T, T) bool: both ends allowed, j ≥ i, at most `longest` tokens."""
        import torch

        both = self.allowed[:, None] & self.allowed[None, :]
        ahead = torch.ones_like(both).triu() & ~torch.ones_like(both).triu(longest)
        return both & ahead

    def text(self, span: Span) -> str:
        """The span's tokens, word pieces joined."""
        pieces = self.tokens[span.i : span.j + 1]
        if any(token.startswith("Ġ") for token in self.tokens):  # byte-level: Ġ is the space
            return "".join(pieces).replace("Ġ", " ").strip()
        return " ".join(pieces).replace(" ##", "")

    def _span(self, i: int, j: int) -> Span:
        return Span(i, j, self.start[i].item(), self.end[j].item())


def scored_row(
    tokens: Sequence[str], start_logits: Any, end_logits: Any, allowed: Any, longest: int
) -> ScoredRow:
    """Checked, as tensors of one dimension; a batch of one sequence may be given."""
    import torch

    start, end = (torch.as_tensor(x).detach().float().cpu() for x in (start_logits, end_logits))
    start, end, free = (x.reshape(-1) for x in (start, end, torch.as_tensor(allowed).cpu().bool()))
    if not len(tokens) == len(start) == len(end) == len(free) <= MOST_TOKENS or not len(tokens):
        raise ValueError(
            f"{len(tokens)} tokens, {len(start)} start logits, {len(end)} end logits and "
            f"{len(free)} marks were given; expected one of each a token, of one sequence of 1 to "
            f"{MOST_TOKENS} tokens."
        )
    if not free.any() or free[0] or longest < 1:
        raise ValueError(
            f"{int(free.sum())} allowed tokens ([CLS]: {bool(free[0])}) and longest={longest!r} "
            "were given; expected some tokens of the passage, [CLS] not among them, and a length "
            "of at least 1."
        )
    if not (start.isfinite().all() and end.isfinite().all()):
        raise ValueError("Logits that are no numbers were given; the model may have diverged.")
    return ScoredRow(list(tokens), start, end, free)


# ---------------------------------------------------------------- bars over the tokens


def span_chart(
    tokens: Sequence[str],
    start_logits: Tensor,
    end_logits: Tensor,
    allowed: Tensor,
    answer: tuple[int, int] | None = None,
    *,
    longest: int = LONGEST,
    threshold: float = 0.0,
) -> Html:
    """The probability of every token to be the start and to be the end, and the best spans below.

    start_logits, end_logits, allowed: (T,) or (1, T), as objectives.spans.best_spans takes them;
    answer: first and last token of the true one, (0, 0) for none. The softmax runs over the whole
    row, as in training. Raises ValueError for other shapes, no allowed token, an answer outside the
    sequence, and more than 384 tokens.
    """
    found = scored_row(tokens, start_logits, end_logits, allowed, longest)
    _check_answer(answer, len(tokens))
    said = decision(found, longest, threshold, answer)
    label = " ".join(said)
    content, height = _FILLS + _key(answer is not None), 34.0
    start, end = (logits.softmax(-1).tolist() for logits in (found.start, found.end))
    top = max(*start, *end)
    best = found.best(longest)[0]
    for first in range(0, len(tokens), A_LINE):
        positions = range(first, min(first + A_LINE, len(tokens)))
        content += _line(found, start, end, positions, height, top, best, answer)
        height += BARS + 28 + slanted(tokens)
    drawing = svg_image(svg_drawing(WIDE, height - 4, content, label), label)
    rows = _cells(found, longest)
    words = "".join(f'<p style="margin:6px 0 0">{escape(line)}</p>' for line in said)
    text = "\n".join([*("  ".join(row) for row in rows), *said])
    return Html(card(drawing + _table(rows) + words, "span-chart", 780), text)


def _check_answer(answer: tuple[int, int] | None, T: int) -> None:
    if answer is not None and not 0 <= answer[0] <= answer[1] < T:
        raise ValueError(
            f"answer={answer!r} was given; expected its first and last token, 0 to {T - 1}, the "
            "last not before the first, or (0, 0) for no answer."
        )


def _line(
    found: ScoredRow, start: list[float], end: list[float], positions: range, y: float, top: float,
    best: Span, answer: tuple[int, int] | None,
) -> str:  # fmt: skip
    """The bars of up to 46 tokens, and the tokens slanted below."""
    slot = min(34, (WIDE - LEFT - 26) / min(A_LINE, len(found.tokens)))
    bottom, wide = y + BARS, max(4, min(9, slot / 2 - 1.5))
    parts = [_scale(y, top, LEFT + slot * len(positions))]
    for k, position in enumerate(positions):
        x = LEFT + slot * (k + 0.5)
        for probability, left, fill, kind in (
            (start[position], x - wide - 0.5, BLUE, "start"),
            (end[position], x + 0.5, "url(#course-span-end)", "end"),
        ):
            high = BARS * probability / top
            if high >= 0.4:
                parts.append(
                    f'<rect class="{kind}" x="{left:.1f}" y="{bottom - high:.1f}" '
                    f'width="{wide:.1f}" height="{high:.1f}" fill="{fill}"/>'
                )
        here = best.i <= position <= best.j
        look = (
            ' font-weight="700"' if here else "" if found.allowed[position] else ' fill="#767676"'
        )
        mark = "▸" if here else ""
        parts.append(
            f'<text transform="translate({x + 4:.1f},{bottom + 22}) rotate(-60)" font-size="11" '
            f'text-anchor="end" font-family="{MONO}"{look}>'
            f"{mark}{short_token(found.tokens[position])}"
            "</text>"
        )
    parts.append(_under(positions, (best.i, best.j), slot, bottom + 5, "#1a1a1a", ""))
    if answer is not None:
        parts.append(_under(positions, answer, slot, bottom + 11, "#1a1a1a", "3 3"))
    return "".join(parts)


def _scale(y: float, top: float, right: float) -> str:
    """Lines at 0, the half and the highest probability of the sequence."""
    parts = []
    for probability in (0.0, 0.5, 1.0):
        at = y + BARS * (1 - probability)
        ink = "#e4e4e4" if probability else "#1a1a1a"
        parts.append(f'<path d="M{LEFT} {at:.1f}H{right:.1f}" stroke="{ink}"/>')
        parts.append(text_at(LEFT - 6, at + 4, f"{100 * probability * top:.0f}%", 11, "end"))
    return "".join(parts)


def _under(
    positions: range, span: tuple[int, int], slot: float, y: float, ink: str, dashes: str
) -> str:
    """A bar below the tokens of a span, as far as this line has them."""
    first, last = max(span[0], positions.start), min(span[1], positions.stop - 1)
    if first > last:
        return ""
    a, b = (LEFT + slot * (k - positions.start) for k in (first, last + 1))
    look = f' stroke-dasharray="{dashes}"' if dashes else ""
    kind = "true" if dashes else "best"
    return (
        f'<path class="{kind}" d="M{a + 1:.1f} {y}H{b - 1:.1f}" stroke="{ink}" '
        f'stroke-width="3"{look}/>'
    )


def _key(true: bool) -> str:
    """What the bars and the lines below them mean."""
    box = '<rect x="{x}" y="6" width="14" height="12" fill="FILL"/>'
    line = '<path d="M{x} 12h20" stroke="#1a1a1a" stroke-width="3"/>'
    kinds = [
        (box.replace("FILL", BLUE), "probability of the start"),
        (box.replace("FILL", "url(#course-span-end)"), "of the end"),
        (line, "▸ best span"),
        *[(line.replace("/>", ' stroke-dasharray="3 3"/>'), "true answer")] * true,
    ]
    parts, x = [], LEFT
    for shape, words in kinds:
        parts.append(shape.format(x=x) + text_at(x + 26, 16, words, 12, "start"))
        x += 44 + round(6.3 * len(words))
    return "".join([*parts, text_at(x, 16, "grey: not allowed", 12, "start", ' fill="#666"')])


def slanted(tokens: Sequence[str]) -> float:
    """The height in pixels of the longest of these, slanted."""
    return 8 + 5.8 * max(len(short_token(token)) for token in tokens)


def short_token(token: str, most: int = 12) -> str:
    return escape(token if len(token) <= most else token[: most - 1] + "…")


# ---------------------------------------------------------------- in words and numbers


def _cells(found: ScoredRow, longest: int) -> list[list[str]]:
    """The best spans and the null answer, a row each."""
    rows = [["", "span", "tokens", "start logit", "end logit", "sum", "sum − null"]]
    null = found.null
    spans = [(f"{n}", found.text(s), s) for n, s in enumerate(found.best(longest, BEST), start=1)]
    for name, text, span in [*spans, ("null", "no answer: [CLS]", null)]:
        where = f"{span.i}–{span.j}" if span.j > span.i else f"{span.i}"
        values = (span.start, span.end, span.score, span.score - null.score)
        rows.append([name, text, where, *map(number, values)])
    return rows


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _table(rows: list[list[str]]) -> str:
    sides = ["right", "left", *["right"] * 5]
    head, *lines = [[*row[:1], row[1] if len(row[1]) < 40 else row[1][:38] + "…", *row[2:]]
                    for row in rows]  # fmt: skip
    body = table_row("th", head, sides) + "".join(table_row("td", row, sides) for row in lines)
    return (
        '<table style="border-collapse:collapse;margin:6px 0 0;background:#fff">'
        + body
        + "</table>"
    )


def decision(
    found: ScoredRow, longest: int, threshold: float, answer: tuple[int, int] | None
) -> list[str]:
    """The best span against the null answer, and both against the truth."""
    best, null = found.best(longest)[0], found.null
    margin = best.score - null.score
    answers = margin > threshold
    lines = [
        f"The best span of at most {counted(longest, 'token')} is “{found.text(best)}” with "
        f"{number(best.start)} + {number(best.end)} = {number(best.score)}; no answer has "
        f"{number(null.score)}. The difference, {number(margin)}, is "
        f"{'above' if answers else 'not above'} τ = {number(threshold)}: the model "
        f"{'answers' if answers else 'says that the passage does not tell'}."
    ]
    loose = found.start.masked_fill(~found.allowed, -1e30).argmax()
    other = found.end.masked_fill(~found.allowed, -1e30).argmax()
    if other < loose or other - loose >= longest:
        why = "the end before the start" if other < loose else "too many tokens"
        lines.append(
            f"The best start, “{found.tokens[loose]}” ({loose}), and the best end, "
            f"“{found.tokens[other]}” ({other}), do not make a span: {why}."
        )
    if answer is not None:
        lines.append(_verdict(found, answer, best if answers else null))
    return lines


def _verdict(found: ScoredRow, answer: tuple[int, int], given: Span) -> str:
    true = found._span(*answer)
    name = "that there is none" if answer == (0, 0) else f"“{found.text(true)}”"
    if (given.i, given.j) == answer:
        return f"✓ The right answer is {name}: found."
    part = answer != (0, 0) and given.i <= answer[1] and given.j >= max(answer[0], 1)
    return f"✗ The right answer is {name}: {'found in part' if part else 'not found'}."
