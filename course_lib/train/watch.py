"""A run is watched: three numbers that tell one that learns from one that has collapsed.

A collapsed model says the same whatever it reads. Its loss alone does not show that: it stands
still where the base rate is (`base_rate_loss`), as it does for a while in every run. Its vectors
show it (`likeness`), and so do its answers (`commonest_share`)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from course_lib.encoder import Encoder
from course_lib.objectives.sequences import PackedSequences

ALIKE = 0.99  # likeness from which an encoder counts as collapsed
ONE_ANSWER = 0.99  # share of the commonest answer from which a classifier does


def likeness(vectors: Tensor, attention_mask: Tensor) -> float:
    """Mean cosine between the vectors that different texts have at the same position: 1 where the
    text makes no difference, near 0 where all of it does.

    vectors: (B, T, H); attention_mask: (B, T), 1 at tokens that count. Every pair of texts that
    both have a position counts alike. Raises ValueError where no position has two texts."""
    real = attention_mask.bool()
    units = torch.nn.functional.normalize(vectors.double(), dim=-1) * real[..., None]
    texts = real.sum(0).double()  # (T,)
    pairs = (texts * (texts - 1)).sum()
    if not pairs:
        raise ValueError(
            f"likeness was given {len(vectors)} text(s) that share no position; expected two texts "
            "or more, with attention_mask 1 at their tokens."
        )
    own = units.square().sum(-1).sum(0)  # a vector beside itself: 1, or 0 where it is zero
    return float((units.sum(0).square().sum(-1) - own).sum() / pairs)


@torch.no_grad()
def encoder_likeness(encoder: Encoder, sequences: PackedSequences, most: int = 256) -> float:
    """`likeness` of an encoder's last vectors on the first `most` sequences. The encoder is left as
    it was found."""
    was_training, part = encoder.training, sequences[:most]
    encoder.eval()
    states = encoder(**part.inputs).last_hidden_state
    encoder.train(was_training)
    return likeness(states, part.attention_mask)


def base_rate_loss(labels: Sequence[Hashable] | Tensor) -> float:
    """Nats a label of the best answer that does not read: the entropy of the labels' own
    frequencies. A training loss that stays here has learnt which labels are common, and no more."""
    counts = Counter(labels.tolist() if isinstance(labels, Tensor) else labels)
    if not counts:
        raise ValueError("No labels were given; expected at least one.")
    total = counts.total()
    return -sum(n / total * math.log(n / total) for n in counts.values())


def commonest_share(answers: Sequence[Hashable]) -> float:
    """The share of the commonest among a model's answers: 1 where it says one thing to all texts.
    Numbers are compared to a tenth."""
    if not len(answers):
        raise ValueError("No answers were given; expected at least one.")
    coarse = [round(answer, 1) if isinstance(answer, float) else answer for answer in answers]
    return Counter(coarse).most_common(1)[0][1] / len(answers)
