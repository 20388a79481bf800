"""A measure that every vocabulary can be asked: hidden whole words, found with all their
pieces."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from course_lib.heads import BertForMaskedLM
from course_lib.objectives.sequences import pack, to_sequences
from course_lib.text.wordpiece import CONTINUES, WordPiece, word_numbers

LENGTH, RATE = 64, 0.15


class HiddenPieces(NamedTuple):
    """Every hidden piece of some sentences: whether it has the highest logit (M,), its log
    probability in bits (M,), its id (M,), and the number of its word (M,)."""

    right: Tensor
    bits: Tensor
    ids: Tensor
    words: Tensor


@torch.no_grad()
def hidden_pieces(
    model: BertForMaskedLM, tokenizer: WordPiece, sentences: Sequence[str], seed: int = 1
) -> HiddenPieces:
    """What a model predicts where whole words are hidden.

    Which words are hidden depends on the sentences and the seed alone: 15% of the words of each,
    punctuation counted, every piece of one replaced by [MASK]. How many pieces a word has can then
    be seen. Raises ValueError for a sentence of more than 62 pieces."""
    ids = [tokenizer.encode(sentence) for sentence in sentences]
    if (longest := max(map(len, ids))) > LENGTH - 2:
        raise ValueError(
            f"a sentence of {longest} pieces was given; expected at most {LENGTH - 2}: cut it, so "
            "that every vocabulary reads all of it."
        )
    sequences = to_sequences([pack(one, None, tokenizer.special, LENGTH) for one in ids])
    word_of = word_numbers(tokenizer, sequences.input_ids, sequences.attention_mask)
    draw = torch.rand(len(ids), LENGTH, generator=torch.Generator().manual_seed(seed)) < RATE
    hidden = (word_of >= 0) & draw.gather(1, word_of.clamp(min=0))
    masked_ids = sequences.input_ids.masked_fill(hidden, tokenizer.special.mask)
    was_training = model.training
    model.eval()
    logits = torch.cat([
        model(masked_ids[part], sequences.attention_mask[part]).logits[hidden[part]]
        for part in (slice(n, n + 50) for n in range(0, len(ids), 50))
    ])  # fmt: skip
    model.train(was_training)
    answers = sequences.input_ids[hidden]
    bits = logits.float().log_softmax(-1).gather(1, answers[:, None])[:, 0] / log(2)
    of = torch.arange(len(ids))[:, None].expand_as(word_of) * LENGTH + word_of
    return HiddenPieces(logits.argmax(-1) == answers, bits, answers, of[hidden])


def words_right(
    model: BertForMaskedLM, tokenizer: WordPiece, sentences: Sequence[str], seed: int = 1
) -> float:
    """The fraction of hidden words all of whose pieces get the highest logit; the words, and the
    errors, are those of `hidden_pieces`."""
    pieces = hidden_pieces(model, tokenizer, sentences, seed)
    hidden, missed = pieces.words.unique(), pieces.words[~pieces.right].unique()
    return 1 - len(missed) / len(hidden)


def bits_a_character(
    model: BertForMaskedLM, tokenizer: WordPiece, sentences: Sequence[str], seed: int = 1
) -> float:
    """What the hidden words cost, −log2 of their pieces' probabilities, by the characters that they
    have: alike for all vocabularies. (The pieces of a word are taken as independent.)"""
    pieces = hidden_pieces(model, tokenizer, sentences, seed)
    texts = [tokenizer.vocab[n].removeprefix(CONTINUES) for n in pieces.ids.tolist()]
    return -float(pieces.bits.sum()) / sum(map(len, texts))
