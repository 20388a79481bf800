"""Finding a sentence's translation by its vector: are two languages aligned in the model, and in
which layer (after Pires, Schlinger and Garrette 2019)? Nothing is trained."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.encoder import Encoder
from course_lib.objectives.sequences import PackedSequences, SpecialIds

from .probing import all_states


class Retrieval(NamedTuple):
    """Fraction of sentences whose nearest neighbour in the other language is their translation."""

    forward: float  # of the first language's sentences, among the second's
    backward: float

    @property
    def mean(self) -> float:
        """Of both directions."""
        return (self.forward + self.backward) / 2


@torch.no_grad()
def sentence_vectors(
    encoder: Encoder, sequences: PackedSequences, special: SpecialIds, batch_size: int = 256
) -> Tensor:
    """The mean of each sentence's word vectors in every layer, embeddings first: (L + 1, N, H).

    Special tokens are left out. The encoder is used as it is: call eval() first. Raises ValueError
    for a sentence without words."""
    words = sequences.attention_mask.bool()
    for id in special.never_masked:
        words = words & (sequences.input_ids != id)
    if not words.any(dim=1).all():
        number = int((~words.any(dim=1)).nonzero()[0])
        raise ValueError(f"Sentence {number} has no words; expected at least one. Leave it out.")
    means = []
    for start in range(0, len(sequences), batch_size):
        states = all_states(encoder, sequences[start : start + batch_size], batch_size)
        weight = words[start : start + batch_size, :, None].to(states.dtype)
        means.append((states * weight).sum(dim=1) / weight.sum(dim=1))  # (b, (L + 1)·H)
    return torch.cat(means).unflatten(1, (-1, encoder.config.hidden_size)).transpose(0, 1)


def retrieval(first: Tensor, second: Tensor, *, centred: bool = False) -> Retrieval:
    """Accuracy of the nearest neighbour by cosine, in both directions; chance is 1/N.

    first, second: (N, H), row n of one being the translation of row n of the other. Where several
    are equally near, the right one counts as found as often as a draw among them would find it, so
    vectors that are all alike are at chance. centred: each language's own mean, over these very
    sentences, is taken off first: what merely says the language is left out. Raises ValueError for
    other shapes."""
    if first.shape != second.shape or first.dim() != 2 or not len(first):
        raise ValueError(
            f"vectors of shapes {tuple(first.shape)} and {tuple(second.shape)} were given; "
            "expected (sentences, width) twice, with the translations in the same order."
        )
    if centred:
        first, second = first - first.mean(dim=0), second - second.mean(dim=0)
    near = F.normalize(first, dim=1) @ F.normalize(second, dim=1).T  # (N, N)
    return Retrieval(_found(near), _found(near.T))


def _found(near: Tensor) -> float:
    nearest = near == near.max(dim=1, keepdim=True).values  # (N, N)
    return (nearest.diagonal().double() / nearest.sum(dim=1)).mean().item()
