"""Translation language modelling (TLM): a sentence and its translation side by side, words masked
in both (Lample and Conneau 2019, and the authors' program).

A masked word can be told from its own sentence or from the other language's, so it pays to align
the two. Each side is packed as a text alone would be, with its own language, and with positions
that begin again at 0; one sequence holds both. The loss is that of masked words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from course_lib.kernels.masking import CHOICE, as_uniform, random_bits

from .masked_lm import BERT_MIX, Masked, check_mix, check_rate, masked_at, numbered
from .sequences import PackedSequences, SpecialIds, to_sequences

Sentences = Sequence[Sequence[int]]


def translation_sequences(
    first: Sentences,
    second: Sentences,
    special: SpecialIds,
    *,
    length: int,
    languages: tuple[int, int] = (0, 1),
    start_again: bool = True,
) -> PackedSequences:
    """</s> x </s> </s> y </s> and padding for each pair of translations, ready for
    `pretraining_batches`: (N, length).

    first, second: ids without special ones, sentence n of one being sentence n of the other. A side
    begins with special.cls and ends with special.sep; XLM has one token </s> for both: give a
    `special` whose cls and sep are the same id. token_type_ids are the languages of the two sides
    (0 at the padding), position_ids count each side from 0; start_again=False lets them run on.
    Raises ValueError for lists of unequal length, an empty sentence, a pair that does not fit, one
    language given twice, and no pairs."""
    if len(first) != len(second):
        raise ValueError(
            f"{len(first)} and {len(second)} sentences were given; expected as many translations "
            "as sentences, in the same order."
        )
    if len(set(languages)) != 2 or min(languages) < 0:
        raise ValueError(
            f"languages={languages!r} was given; expected two different numbers of languages, from "
            "0 on."
        )
    packed, positions = [], []
    for number, (x, y) in enumerate(zip(first, second, strict=True)):
        sides = [[special.cls, *side, special.sep] for side in (x, y)]
        lengths = [len(side) for side in sides]
        if not x or not y or sum(lengths) > length:
            raise ValueError(
                f"pair {number} has {len(x)} and {len(y)} tokens; expected at least one in each, "
                f"and with four special tokens at most length={length}. Leave it out, or choose a "
                "greater length."
            )
        used = sum(lengths)
        pad = length - used
        packed.append(
            (
                [*sides[0], *sides[1], *[special.pad] * pad],
                [languages[0]] * lengths[0] + [languages[1]] * lengths[1] + [0] * pad,
                [1] * used + [0] * pad,
            )
        )
        begins = lengths[0] if start_again else 0
        positions.append([*range(lengths[0]), *range(lengths[0] - begins, length - begins)])
    result = to_sequences(packed)
    return PackedSequences(**result.inputs, position_ids=torch.tensor(positions))


def mask_anywhere(
    sequences: PackedSequences,
    special: SpecialIds,
    *,
    rate: float = 0.15,
    mix: tuple[float, float, float] = BERT_MIX,
    seed: int = 0,
    epoch: int = 0,
    first_example: int = 0,
    examples: Tensor | None = None,
) -> Masked:
    """The masking of XLM's program, in MLM and TLM alike; arguments as of `mask_sequences`.

    Every real token is selected by itself with probability `rate`, so the number varies, and
    separators are masked like words; only position 0 is exempt. (`pretraining_batches` masks as
    BERT: a fixed number, never a special token.) Raises ValueError for a rate or mix that is no
    probability."""
    check_rate(rate)
    check_mix(mix)
    examples = numbered(sequences, first_example, examples)
    positions = np.arange(1, sequences.input_ids.shape[1])
    draw = as_uniform(random_bits(seed, epoch, examples.numpy()[:, None], CHOICE, positions))
    selected = sequences.attention_mask.bool()
    selected[:, 0] = False
    selected[:, 1:] &= torch.from_numpy(draw < rate)
    at = selected.flatten().nonzero()[:, 0]  # (K,)
    return masked_at(sequences, special, at, examples, mix=mix, seed=seed, epoch=epoch)


def mix_of(word_mask_keep_rand: str) -> tuple[float, float, float]:
    """The setting of XLM's program, "0.8,0.1,0.1", as a `mix`. It names [MASK], kept and random in
    this order; a mix has random before kept. Raises ValueError for what is not three
    probabilities."""
    try:
        masked, kept, random = map(float, word_mask_keep_rand.split(","))
    except ValueError as error:
        raise ValueError(
            f"word_mask_keep_rand={word_mask_keep_rand!r} was given; expected three numbers with "
            'commas between them, such as "0.8,0.1,0.1".'
        ) from error
    check_mix((masked, random, kept))
    return masked, random, kept
