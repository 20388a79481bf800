"""Next-token prediction: from what stands before it, each token (Radford et al. 2018, section 3.1).

The same loss trains a decoder alone and the decoder of an encoder-decoder: there the encoder's text
is known besides. B batch, T positions, V vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.kernels.masked_loss import IGNORED, mean_cross_entropy


def next_token_labels(input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """(B, T) -> (B, T): at each position the id of the next, −100 at the end and before padding."""
    end = torch.full_like(input_ids[:, :1], IGNORED)
    labels = torch.cat((input_ids[:, 1:], end), 1)
    if attention_mask is not None:
        labels[:, :-1][attention_mask[:, 1:] == 0] = IGNORED
    return labels


def next_token_loss(
    logits: Tensor, input_ids: Tensor, attention_mask: Tensor | None = None
) -> Tensor:
    """Mean cross-entropy in nats: logits (B, T, V) at position t against the token at t + 1."""
    return mean_cross_entropy(logits, next_token_labels(input_ids, attention_mask))
