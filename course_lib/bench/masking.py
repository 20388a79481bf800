"""Masking a batch, short sequences and long: single tokens, whole words, runs of words, spans.

A corpus is tokenised once and masked at every visit, so where each token lies in its text is known
beforehand. Which tokens are special can be handed to the peer too; it is timed both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.span_masking import select_spans, select_spans_reference
from course_lib.objectives.masked_lm import mask_sequences, mask_whole_words
from course_lib.objectives.sequences import PackedSequences
from course_lib.objectives.span_boundary import mask_spans
from course_lib.text.wordpiece import word_numbers

from .inputs import SPECIAL, our_tokenizer, peer_collator, random_sequences
from .measuring import Contender, Step, Table, contenders_of

SHAPES = ((256, 128), (64, 512))  # sequences × tokens


def tables() -> list[Table]:
    """Plain, whole-word and span masking, at each shape."""
    made = []
    for count, tokens in SHAPES:
        sequences, size = random_sequences(count, tokens), f"{count}×{tokens} tokens"
        made += [
            Table(f"Masking single tokens, {size}", plain_contenders(sequences)),
            Table(f"Masking whole words, {size}", word_contenders(sequences)),
            Table(f"Masking spans, {size}", span_contenders(sequences)),
        ]
    return made


def plain_contenders(sequences: PackedSequences) -> list[Contender]:
    """transformers' collator, its masking alone, ours with all labels written out."""
    ids, known = sequences.input_ids, {"special_tokens_mask": special_tokens(sequences)}

    def alone() -> Step:
        collate = peer_collator()
        return lambda: collate.torch_mask_tokens(ids.clone(), **known)

    return contenders_of(
        {
            "transformers' masking collator": lambda: _collating(False, sequences, {}),
            "… given which tokens are special": lambda: _collating(False, sequences, known),
            "… and its masking function alone": alone,
            "ours: mask_sequences(...).labels": lambda: _visiting(
                lambda visit: mask_sequences(sequences, SPECIAL, epoch=visit).labels
            ),
        },
        ids.numel(),
    )


def word_contenders(sequences: PackedSequences) -> list[Contender]:
    """The same for whole words, where the peer writes [MASK] only; and ours with runs of words."""
    tokenizer, words = our_tokenizer(), numbers_of(sequences)
    ids, where = sequences.input_ids, {"offset_mapping": offsets(sequences)}
    known = {"special_tokens_mask": special_tokens(sequences), **where}

    def alone() -> Step:
        collate = peer_collator(whole_words=True)
        return lambda: collate.torch_mask_tokens(ids.clone(), **known)

    def ours(ready: bool = True, **settings: Any) -> Step:
        def mask(visit: int) -> Tensor:
            word_ids = words if ready else word_numbers(tokenizer, ids, sequences.attention_mask)
            return mask_whole_words(sequences, SPECIAL, word_ids, epoch=visit, **settings).labels

        return _visiting(mask)

    return contenders_of(
        {
            "transformers' whole-word collator ([MASK] only)": lambda: _collating(
                True, sequences, where
            ),
            "… given which tokens are special": lambda: _collating(True, sequences, known),
            "… and its masking function alone": alone,
            "ours, [MASK] only, word numbers found each time": lambda: ours(
                ready=False, mix=(1.0, 0.0, 0.0)
            ),
            "… word numbers ready": lambda: ours(mix=(1.0, 0.0, 0.0)),
            "… 80/10/10: mask_whole_words(...).labels": ours,
            "… runs of up to three words (ALBERT)": lambda: ours(max_words=3),
        },
        ids.numel(),
    )


def span_contenders(sequences: PackedSequences) -> list[Contender]:
    """SpanBERT's spans, selected text by text and all at once, and the whole masking. No installed
    package masks so: the readable version is the peer."""
    words, examples = numbers_of(sequences), torch.arange(len(sequences))

    def selecting(select: Callable[..., Any]) -> Step:
        return _visiting(lambda visit: select(words, examples, rate=0.15, seed=0, epoch=visit))

    return contenders_of(
        {
            "select_spans_reference, text by text": lambda: selecting(select_spans_reference),
            "select_spans, all at once": lambda: selecting(select_spans),
            "… and masked: mask_spans(...).labels": lambda: _visiting(
                lambda visit: mask_spans(sequences, SPECIAL, words, epoch=visit).labels
            ),
        },
        words.numel(),
    )


def special_tokens(sequences: PackedSequences) -> Tensor:
    """(N, T): 1 at [CLS] and [SEP], as the peer's tokenizer returns it."""
    ids = sequences.input_ids
    return ((ids == SPECIAL.cls) | (ids == SPECIAL.sep)).long()


def numbers_of(sequences: PackedSequences) -> Tensor:
    """(N, T): the word each token belongs to."""
    return word_numbers(our_tokenizer(), sequences.input_ids, sequences.attention_mask)


def offsets(sequences: PackedSequences) -> Tensor:
    """(N, T, 2): where each token would begin and end in a text of one letter a token, with a space
    before every word; 0 and 0 at special tokens, as the peer's tokenizer returns it."""
    numbers = numbers_of(sequences)
    begin = torch.arange(numbers.shape[1]) + numbers  # a letter a token, a space a word
    return torch.stack([begin, begin + 1], dim=2) * (numbers >= 0)[:, :, None]


def _collating(whole_words: bool, sequences: PackedSequences, known: dict[str, Tensor]) -> Step:
    """The peer's collator on a list of examples, as a data loader calls it."""
    collate = peer_collator(whole_words)
    columns = {"input_ids": sequences.input_ids, **known}
    examples = [
        {name: column[n] for name, column in columns.items()} for n in range(len(sequences))
    ]
    return lambda: collate(examples)


def _visiting(mask: Callable[[int], Any]) -> Step:
    """Another mask at every call."""
    visit = 0

    def step() -> None:
        nonlocal visit
        visit += 1
        mask(visit)

    return step
