"""A measure that every vocabulary can be asked: hidden whole words, found with all their
pieces."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from course_lib.heads import BertForMaskedLM
from course_lib.objectives.sequences import pack, to_sequences
from course_lib.text.wordpiece import WordPiece, word_numbers

LENGTH, RATE = 64, 0.15


@torch.no_grad()
def words_right(
    model: BertForMaskedLM, tokenizer: WordPiece, sentences: Sequence[str], seed: int = 1
) -> float:
    """The fraction of hidden words all of whose pieces get the highest logit.

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
    right = torch.cat([
        model(masked_ids[n : n + 50], sequences.attention_mask[n : n + 50]).logits.argmax(-1)
        == sequences.input_ids[n : n + 50] for n in range(0, len(ids), 50)
    ])  # fmt: skip
    model.train(was_training)
    of = torch.arange(len(ids))[:, None].expand_as(word_of) * LENGTH + word_of
    masked_words = of[hidden].unique()
    missed = of[hidden & ~right].unique()
    return 1 - len(missed) / len(masked_words)
