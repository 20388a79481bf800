"""An answer as a stretch of the text: the loss, and how the best span is found (Devlin et al. 2018,
sections 4.2 and 4.3).

B questions, T tokens. A question without an answer has the span of [CLS] alone, (0, 0): the null
answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.kernels.masked_loss import mean_cross_entropy
from course_lib.kernels.upcast import upcast


def span_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Half of −log P(the true start) and half of −log P(the true end), mean over the questions, in
    nats: total, start, end.

    outputs.start_logits, .end_logits (B, T); targets["start"], ["end"] (B,): positions of the first
    and of the last token, (0, 0) for no answer. The paper adds the two (section 4.2); its released
    code, and transformers, take their mean. Raises ValueError for positions outside the sequence,
    which transformers leaves out without a word, and for a start behind its end."""
    start, end = targets["start"], targets["end"]
    _check_positions(start, end, *outputs.start_logits.shape)
    first = mean_cross_entropy(outputs.start_logits, start, targets.get("num_start"))
    last = mean_cross_entropy(outputs.end_logits, end, targets.get("num_end"))
    return {"total": (first + last) / 2, "start": first, "end": last}


@dataclass(frozen=True)
class Spans:
    """The best span of each question, and what saying nothing is worth; each field is (B,)."""

    start: Tensor  # position of its first token
    end: Tensor  # of its last
    score: Tensor  # S·T_start + E·T_end
    null_score: Tensor  # S·C + E·C, both ends at [CLS]

    @property
    def margin(self) -> Tensor:
        """(B,) float64: by how much the span beats the null answer."""
        return self.score.double() - self.null_score.double()

    def answered(self, threshold: float = 0.0) -> Tensor:
        """(B,) bool: is the span the answer? Where score > null_score + threshold (section 4.3).

        The released code turns the sign around: no answer where null − best is above its own."""
        return self.margin > threshold


def best_spans(
    start_logits: Tensor,
    end_logits: Tensor,
    allowed: Tensor,
    longest: int = 30,
    may_start: Tensor | None = None,
) -> Spans:
    """The span from i to j ≥ i, of at most `longest` tokens, with the greatest sum of start logit i
    and end logit j; among equals the first, then the shortest.

    start_logits, end_logits (B, T); allowed (B, T) bool, True at the passage's tokens: only there
    may an answer start and end. may_start (B, T) bool: where of these an answer may start, if not
    everywhere; a sequence without such a token gets the score minus infinity. Raises ValueError for
    other shapes, for a sequence without an allowed token, for an allowed [CLS], and for longest
    below 1."""
    _check_search(start_logits, end_logits, allowed, longest)
    tokens = start_logits.shape[1]
    longest = min(longest, tokens)
    starts = allowed if may_start is None else allowed & may_start
    start = upcast(start_logits).masked_fill(~starts, -torch.inf)
    end = upcast(end_logits).masked_fill(~allowed, -torch.inf)
    # ends[b, i, k] is the logit of an end k tokens behind i; beyond the sequence it is minus
    # infinity.
    ends = F.pad(end, (0, longest - 1), value=-torch.inf).unfold(1, longest, 1)  # (B, T, longest)
    score, at = (start[:, :, None] + ends).flatten(1).max(dim=1)  # of equal ones the first
    first = at // longest
    null = upcast(start_logits[:, 0]) + upcast(end_logits[:, 0])
    return Spans(first, first + at % longest, score, null)


def choose_threshold(margin: Tensor, answered: Tensor, silent: Tensor) -> float:
    """The threshold with the greatest mean score over the questions of a validation set; of equally
    good ones the highest, which answers least, as in SQuAD 2.0's official script.

    margin (N,): of each question's best span; answered (N,): what a question scores if the span is
    given as its answer (its F1, say, and 0 where there is none); silent (N,): what it scores if
    none is given (1 where there is none, else 0). Tried are thresholds halfway between any two
    neighbouring margins (the script's are the margins), and one beyond each end. Raises ValueError
    for no questions, for shapes that differ, and for a margin that is no number."""
    if margin.dim() != 1 or not len(margin) or not margin.shape == answered.shape == silent.shape:
        shapes = [tuple(x.shape) for x in (margin, answered, silent)]
        raise ValueError(
            f"margin, answered and silent of shapes {shapes} were given; expected (N,) for each, "
            "N questions, at least one."
        )
    levels, level = margin.double().unique(return_inverse=True)  # rising
    if not levels.isfinite().all():
        raise ValueError(
            f"margins {levels[~levels.isfinite()].tolist()} were given; expected numbers."
        )
    below = torch.cat([levels[:1] - levels[:1].abs().clamp(min=1), levels[:-1]])
    between = below / 2 + levels / 2
    tried = torch.cat([torch.where(between < levels, between, below), levels[-1:]])
    # What answering the questions of each level adds; at the last threshold none is answered.
    gain = torch.zeros_like(levels).index_add_(0, level, answered.double() - silent.double())
    gains = torch.cat([gain.flip(0).cumsum(0).flip(0), gain.new_zeros(1)])
    return tried[gains >= gains.max() - 1e-9][-1].item()  # sums of one value may differ in a bit


def _check_positions(start: Tensor, end: Tensor, batch: int, tokens: int) -> None:
    if start.shape != (batch,) or end.shape != (batch,):
        raise ValueError(
            f"start of shape {tuple(start.shape)} and end of shape {tuple(end.shape)} were given "
            f"for {batch} sequences; expected one position each a sequence, ({batch},)."
        )
    for name, positions in (("start", start), ("end", end)):
        outside = positions[(positions < 0) | (positions >= tokens)].tolist()
        if outside:
            raise ValueError(
                f"{name} positions {outside[:5]} were given for sequences of {tokens} tokens; "
                f"expected 0 to {tokens - 1}. Where an answer was cut off, give (0, 0): no answer."
            )
    if behind := torch.stack([start, end], dim=1)[start > end].tolist():
        raise ValueError(
            f"spans (start, end) {behind[:5]} were given that start behind their end; expected "
            "start ≤ end: the positions of the answer's first and last token."
        )


def _check_search(start: Tensor, end: Tensor, allowed: Tensor, longest: int) -> None:
    if not isinstance(longest, int) or longest < 1:
        raise ValueError(
            f"longest={longest!r} was given; expected a whole number of tokens, at least 1."
        )
    shapes = [tuple(x.shape) for x in (start, end, allowed)]
    if start.dim() != 2 or len(set(shapes)) > 1 or allowed.dtype != torch.bool:
        raise ValueError(
            f"start_logits, end_logits and allowed of shapes {shapes} were given, allowed of type "
            f"{allowed.dtype}; expected (B, T) for all three, allowed of type bool."
        )
    if allowed[:, 0].any():
        raise ValueError(
            "allowed is True at position 0, [CLS], which stands for no answer; expected True at "
            "the passage's tokens alone. Was attention_mask given?"
        )
    if empty := (~allowed.any(dim=1)).nonzero()[:, 0].tolist():
        raise ValueError(
            f"sequences {empty[:5]} allow no token; expected at least one of the passage in each."
        )
