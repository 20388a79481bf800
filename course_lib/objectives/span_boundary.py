"""SpanBERT: mask spans, and predict their tokens once more from the two tokens around them (Joshi
et al. 2019, section 3).

N sequences, T positions, K selected positions, M of them with a boundary on both sides, V
vocabulary. Settings are those of the released program; the paper's text differs where it is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.masked_loss import IGNORED, mean_cross_entropy
from course_lib.kernels.span_masking import length_probabilities, run_begins, select_spans

from .masked_lm import (
    BERT_MIX,
    Masked,
    check_mix,
    check_rate,
    check_words,
    eligible_positions,
    masked_at,
    masked_lm_loss,
    numbered,
)
from .sequences import PackedSequences, SpecialIds

LONGEST = 15  # tokens of a span that the span-boundary objective predicts


@dataclass(frozen=True)
class MaskedSpans(Masked):
    """Sequences after span masking."""

    begins: Tensor  # (K,), the first position of each selected position's span, as n·T + t

    @property
    def spans(self) -> Tensor:
        """(S, 2): first and last position of every span, as n·T + t."""
        first, lengths = self.begins.unique_consecutive(return_counts=True)
        return torch.stack([first, first + lengths - 1], dim=1)


def mask_spans(
    sequences: PackedSequences,
    special: SpecialIds,
    word_of: Tensor,
    *,
    rate: float = 0.15,
    mix: tuple[float, float, float] = BERT_MIX,
    seed: int = 0,
    epoch: int = 0,
    first_example: int = 0,
    examples: Tensor | None = None,
    p: float = 0.2,
    max_words: int = 10,
    whole_words: bool = False,
    merge: bool = True,
    one_draw: bool = True,
    frequencies: Tensor | None = None,
) -> MaskedSpans:
    """As `mask_sequences`, but spans of words are hidden, of lengths from a geometric distribution.

    word_of (N, T): as in `mask_whole_words`. p, max_words: a span of l words has a probability
    proportional to p · (1 − p)^(l − 1), l at most max_words (p=0.2 in the paper and the published
    command; the program's own default is 0.3). whole_words: the last span is not cut inside a word
    (the paper's text; the program cuts). merge: spans that meet or touch become one. one_draw:
    [MASK], random or kept is drawn once a span, else for each token. frequencies (V,): how often
    random ids are drawn (the program: as often as in its corpus), all alike if None. The exact rule
    is in kernels/span_masking.py.
    Raises ValueError as `mask_whole_words` does, for p and for frequencies that make no sense."""
    check_rate(rate)
    check_mix(mix)
    check_words(sequences, word_of)
    length_probabilities(p, max_words)  # complains about both
    _check_frequencies(frequencies, special.vocab_size)
    examples = numbered(sequences, first_example, examples)
    at, begins = select_spans(
        word_of.long().masked_fill(~eligible_positions(sequences, special), -1),
        examples,
        rate=rate,
        seed=seed,
        epoch=epoch,
        p=p,
        max_words=max_words,
        whole_words=whole_words,
        merge=merge,
    )
    masked = masked_at(
        sequences,
        special,
        at,
        examples,
        mix=mix,
        seed=seed,
        epoch=epoch,
        decided_at=begins if one_draw else None,
        frequencies=frequencies,
    )
    return MaskedSpans(**vars(masked), begins=begins)


def boundary_targets(
    masked: Masked, sequences: PackedSequences, special: SpecialIds, longest: int = LONGEST
) -> tuple[Tensor, Tensor]:
    """What the span-boundary objective asks: boundaries (M, 3), the positions before and behind the
    span as n·T + t and the token's position in it, and the original ids (M,).

    Left out are spans that touch [CLS], [SEP] or padding, and the tokens of a span behind the first
    `longest`. Where the masks are not spans, every run of selected positions is one."""
    at, T = masked.predict_at, sequences.input_ids.shape[1]
    begins = masked.begins if isinstance(masked, MaskedSpans) else run_begins(at, T)
    text = torch.nn.functional.pad(eligible_positions(sequences, special), (1, 1)).flatten()
    _, run, counts = begins.unique_consecutive(return_inverse=True, return_counts=True)
    before, behind = begins - 1, begins + counts[run]
    padded = at + 1 + 2 * (at // T)  # where at stands in `text`, which is two positions wider
    inside = text[padded + before - at] & text[padded + behind - at]
    selected = inside & (at - begins < longest)
    boundaries = torch.stack([before, behind, at - begins], dim=1)
    return boundaries[selected], masked.original_ids[selected]


def spanbert_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Masked-LM loss plus span-boundary loss, in nats: total, mlm, sbo.

    Each is a mean over its own targets, but the span-boundary sum over M targets is divided by
    M + 1, as in the released code; in the paper (section 3.2) both are summed token by token.
    outputs.sbo_logits (M, V); targets["sbo_labels"] (M,). Of a part of a batch,
    targets["num_sbo_labels"] is how many the whole has."""
    mlm = masked_lm_loss(outputs, targets)["mlm"]
    labels = targets["sbo_labels"]
    count = targets.get("num_sbo_labels", (labels != IGNORED).sum())
    sbo = mean_cross_entropy(outputs.sbo_logits, labels, count + 1)
    return {"total": mlm + sbo, "mlm": mlm, "sbo": sbo}


def _check_frequencies(frequencies: Tensor | None, vocab_size: int) -> None:
    if frequencies is None:
        return
    if frequencies.shape != (vocab_size,):
        raise ValueError(
            f"frequencies of shape {tuple(frequencies.shape)} were given; expected one number an "
            f"id, ({vocab_size},)."
        )
    if not bool((frequencies >= 0).all()) or not 0 < float(frequencies.sum()) < float("inf"):
        raise ValueError(
            "frequencies hold a negative number, or sum to nothing; expected counts or "
            "probabilities, at least one of them above 0."
        )
