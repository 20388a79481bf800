"""Which stretch of a passage is the answer: the best spans, and what decides, in words.

One sequence of T tokens: [CLS] question [SEP] passage [SEP]. A span (i, j) has the score start
logit i + end logit j; no answer is the span of [CLS] alone (Devlin et al. 2018, sections 4.2 and
4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from course_lib.teaching.page import number
from course_lib.teaching.svg import shortened

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 30  # tokens of a span, as objectives.spans.best_spans has it
MOST_TOKENS = 384


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


# ---------------------------------------------------------------- in words


def slanted(tokens: Sequence[str]) -> float:
    """The height in pixels of the longest of these, slanted."""
    return 8 + 5.8 * max(len(shortened(token)) for token in tokens)


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def decision(row: ScoredRow, longest: int, threshold: float) -> list[str]:
    """The best span against the null answer."""
    best, null = row.best(longest)[0], row.null
    margin = best.score - null.score
    answers = margin > threshold
    lines = [
        f"The best span of at most {counted(longest, 'token')} is “{row.text(best)}” with "
        f"{number(best.start)} + {number(best.end)} = {number(best.score)}; no answer has "
        f"{number(null.score)}. The difference, {number(margin)}, is "
        f"{'above' if answers else 'not above'} τ = {number(threshold)}: the model "
        f"{'answers' if answers else 'says that the passage does not tell'}."
    ]
    loose = row.start.masked_fill(~row.allowed, -1e30).argmax()
    other = row.end.masked_fill(~row.allowed, -1e30).argmax()
    if other < loose or other - loose >= longest:
        why = "the end before the start" if other < loose else "too many tokens"
        lines.append(
            f"The best start, “{row.tokens[loose]}” ({loose}), and the best end, "
            f"“{row.tokens[other]}” ({other}), do not make a span: {why}."
        )
    return lines
