"""More texts from few: words replaced by what a masked-word model would say (Jiao et al. 2020,
Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.masking import as_uniform, random_bits
from course_lib.objectives.masked_lm import eligible_positions
from course_lib.objectives.sequences import PackedSequences, SpecialIds

from .tasks import LabelledSequences

COPIES, SHARE, CANDIDATES = 20, 0.4, 15  # N_a, p_t and K of section 4.2
REPLACE, WHICH = 4, 5  # what a random number is for, beside those of kernels/masking.py


def augment(
    task: LabelledSequences,
    model: Any,
    special: SpecialIds,
    *,
    copies: int = COPIES,
    share: float = SHARE,
    candidates: int = CANDIDATES,
    seed: int = 0,
) -> LabelledSequences:
    """The texts themselves, then `copies` variants of each, all with the label of their text.

    model: names words at [MASK], called as model(input_ids, attention_mask, token_type_ids,
    predict_at). Each word is hidden by itself and its `candidates` likeliest fillings are noted,
    which may hold the word itself, but no special token; a variant replaces each word with
    probability `share` by one of them. Here every word is one piece; the paper takes neighbours in
    GloVe for words of several. (The authors' program shows the model the original beside the masked
    text, passes over stop words and words with other than letters, and drops doubles.) A replaced
    word may change what the right answer is: the label is the old one, so it is the teacher that
    should label it. Raises ValueError for numbers that make no sense."""
    words = special.vocab_size - len(special_token_ids(special))
    whole = isinstance(copies, int) and isinstance(candidates, int)
    if not whole or copies < 0 or not 0 <= share <= 1 or not 1 <= candidates <= words:
        raise ValueError(
            f"copies={copies!r}, share={share!r}, candidates={candidates!r} were given; expected a "
            f"whole number of at least 0, a share from 0 to 1, and 1 to {words} candidates."
        )
    sequences = task.sequences
    at = eligible_positions(sequences, special).flatten().nonzero().squeeze(1)  # (W,) as n·T + t
    fillings = likeliest_words(
        model, sequences, at, special.mask, candidates, never=special_token_ids(special)
    )  # (W, candidates)
    example, index = (
        (at // sequences.input_ids.shape[1]).numpy(),
        (at % sequences.input_ids.shape[1]).numpy(),
    )
    made = [sequences.input_ids]
    for copy in range(1, copies + 1):
        moved = as_uniform(random_bits(seed, copy, example, REPLACE, index)) < share
        pick = as_uniform(random_bits(seed, copy, example, WHICH, index)) * candidates
        ids = sequences.input_ids.flatten().clone()
        where = torch.from_numpy(moved)
        ids[at[where]] = fillings[where, torch.from_numpy(pick).long()[where]]
        made.append(ids.view_as(sequences.input_ids))
    times = copies + 1
    grown = PackedSequences(
        torch.cat(made),
        sequences.attention_mask.repeat(times, 1),
        sequences.token_type_ids.repeat(times, 1),
    )
    return LabelledSequences(grown, task.labels.repeat(times), task.names)


def special_token_ids(special: SpecialIds) -> list[int]:
    """The ids that are no words: no text is made better by one."""
    return [*special.never_masked, special.unk, special.mask]


@torch.no_grad()
def likeliest_words(
    model: Any,
    sequences: PackedSequences,
    at: Tensor,
    mask_id: int,
    candidates: int,
    batch_size: int = 256,
    never: Sequence[int] = (),
) -> Tensor:
    """For each position the model's best words, without dropout, when this position alone is
    hidden.

    at (W,), positions as n·T + t; never: ids that do not count as words. Returns (W, candidates),
    best first. The model is left in the mode it was found in."""
    was_training = getattr(model, "training", False)
    if was_training:
        model.eval()
    tokens, result = sequences.input_ids.shape[1], []
    try:
        for part in at.split(batch_size):
            text, position = part // tokens, part % tokens
            here = sequences[text]
            longest = 1 + int(here.attention_mask.nonzero()[:, 1].max())
            ids = here.input_ids[:, :longest].clone()
            ids[torch.arange(len(part)), position] = mask_id
            inputs = (ids, here.attention_mask[:, :longest], here.token_type_ids[:, :longest])
            predict_at = torch.arange(len(part)) * longest + position
            logits = model(*inputs, predict_at=predict_at).prediction_logits.clone()
            logits[:, list(never)] = -torch.inf
            result.append(logits.topk(candidates, dim=-1).indices)
    finally:
        if was_training:
            model.train()
    return torch.cat(result)
