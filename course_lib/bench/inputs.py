"""What the contenders work on: random sequences, and the peer's tokenizer and collator to match."""

from __future__ import annotations

from typing import Any

import torch

from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.text.wordpiece import CONTINUES, SPECIAL_TOKENS, WordPiece

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=8_192)
FIRST_PIECE = 6_000  # ids from here on go on with a word
PIECES = 0.2  # fraction of the tokens that do, about that of English in BERT's vocabulary


def shape(layers: int, width: int) -> dict[str, int]:
    """A BERT with heads of 64 and a feed-forward part four times as wide, as published ones."""
    heads = {"num_layers": layers, "hidden_size": width, "num_heads": max(1, width // 64)}
    return {**heads, "intermediate_size": 4 * width}


def peer_v3(layers: int, width: int, heads: int, intermediate: int, **changes: Any) -> Any:
    """transformers' settings of a DeBERTa as deberta-v3 is; dropout is off."""
    from transformers import DebertaV2Config

    v3: dict[str, Any] = dict(
        vocab_size=SPECIAL.vocab_size, type_vocab_size=0, max_relative_positions=-1,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, relative_attention=True,
        position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True,
        pos_att_type=["c2p", "p2c"], position_biased_input=False,
    )  # fmt: skip
    return DebertaV2Config(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=intermediate,
        **(v3 | changes),
    )


def random_sequences(count: int, tokens: int) -> PackedSequences:
    """Full sequences of words and pieces of words: what is in them does not change the time."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, FIRST_PIECE, (count, tokens), generator=generator)
    pieces = torch.randint(FIRST_PIECE, SPECIAL.vocab_size, (count, tokens), generator=generator)
    goes_on = torch.rand((count, tokens), generator=generator) < PIECES
    goes_on[:, :2] = False  # [CLS], and the first word's beginning
    ids = torch.where(goes_on, pieces, ids)
    ids[:, 0], ids[:, -1] = SPECIAL.cls, SPECIAL.sep
    return PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))


def our_tokenizer() -> WordPiece:
    """A vocabulary for these ids; no text is ever given to it."""
    words = [f"w{i}" for i in range(len(SPECIAL_TOKENS), FIRST_PIECE)]
    pieces = [f"{CONTINUES}p{i}" for i in range(FIRST_PIECE, SPECIAL.vocab_size)]
    return WordPiece([*SPECIAL_TOKENS, *words, *pieces])


def peer_collator(whole_words: bool = False) -> Any:
    """transformers' masking collator over the same vocabulary.

    With whole words it knows no random ids: every token it selects becomes [MASK]."""
    from tokenizers import Tokenizer, models
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    ids = our_tokenizer().ids
    core = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL_TOKENS, strict=True))
    settings = {f"{name}_token": token for name, token in names.items()}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, **settings)
    if not whole_words:
        return DataCollatorForLanguageModeling(tokenizer)
    return DataCollatorForLanguageModeling(
        tokenizer, whole_word_mask=True, mask_replace_prob=1.0, random_replace_prob=0.0
    )
