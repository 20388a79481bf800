"""A pre-trained model moved to another vocabulary: rows of its token table kept, made of others, or
drawn anew.

A domain's text falls into many pieces under a general vocabulary. `extended` adds whole words of
the domain behind the old pieces; `train_wordpiece` learns a vocabulary of its own. Then
`with_vocabulary` carries a masked-word model over: a piece that both have keeps its row, a new one
begins as the mean of the rows it used to be written with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, check_choice
from course_lib.family.albert import tables_of
from course_lib.heads import BertForMaskedLM
from course_lib.text.vocabulary import check_texts
from course_lib.text.wordpiece import CONTINUES, WordPiece, fast_wordpiece

ROWS = ("mean", "random")


def extended(tokenizer: WordPiece, texts: Iterable[str], added: int) -> WordPiece:
    """The vocabulary with `added` whole words of the texts behind its pieces: those that save most
    pieces (a word's count times its number of pieces less one).

    Raises ValueError where fewer words come twice and are cut into pieces at all."""
    counts = Counter(word for text in check_texts(texts) for word in tokenizer.words(text))
    cut = {word: tokenizer.pieces(word) for word, count in counts.items() if count > 1}
    saved = {w: counts[w] * (len(p) - 1) for w, p in cut.items() if len(p) > 1}
    if not 0 < added <= len(saved):
        raise ValueError(
            f"added={added} was given; expected 1 to {len(saved)}: so many words of these texts "
            "come at least twice and are cut into pieces."
        )
    chosen = sorted(saved, key=lambda word: (-saved[word], word))[:added]
    return tokenizer.with_vocab([*tokenizer.vocab, *chosen])


def with_vocabulary(
    model: BertForMaskedLM, old: WordPiece, new: WordPiece, rows: str = "mean", seed: int = 0
) -> BertForMaskedLM:
    """A copy of the model for another vocabulary; all but the token table and the decoder's bias
    (and the columns that MobileBERT's decoder has besides) stays as it is.

    rows: what the pieces begin with that the old vocabulary lacks. "mean": the mean of the rows
    (and biases) of the old pieces they are written with, [UNK]s left out; "random": drawn as at
    random initialisation. Raises ValueError for another word, where the model does not belong to
    the old vocabulary, and for another number of [PAD] where positions are counted from it."""
    check_rows(rows)
    table: Tensor = model.encoder.embeddings.token.weight.detach()  # type: ignore
    if len(old) != len(table):
        raise ValueError(
            f"a vocabulary of {len(old):,} pieces was given for a model with {len(table):,} rows; "
            "expected the vocabulary the model was trained with."
        )
    pad, kept = new.special.pad, model.config.pad_token_id
    if pad != kept and model.config.longest_text < model.config.max_positions:
        raise ValueError(
            f"a vocabulary with [PAD] at {pad} was given for a model that counts positions from "
            f"its own, {kept}; expected [PAD] at {kept}. Put it there in the new vocabulary."
        )
    generator = torch.Generator().manual_seed(seed)
    config = replace(model.config, vocab_size=len(new), pad_token_id=pad)

    def moved(values: Tensor, sd: float = config.initializer_range) -> Tensor:
        """(old pieces, …) -> (new pieces, …), what no old piece tells drawn anew."""
        result = torch.empty(len(new), *values.shape[1:]).normal_(std=sd, generator=generator)
        for row, piece in enumerate(new.vocab):
            from_rows = old_rows(piece, old) if rows == "mean" or piece in old.ids else []
            if from_rows:
                result[row] = values[from_rows].mean(0)
        return result

    made, bias = moved(table), moved(model.mlm.bias.detach(), 0.0)
    extra = model.mlm.extra
    columns = None if extra is None else moved(extra.weight.detach().T)
    return _put(deepcopy(model), made, bias, columns, config)


def check_rows(rows: str) -> None:
    """Raise ValueError for another word than those of ROWS."""
    check_choice("rows", rows, ROWS)


def old_rows(piece: str, old: WordPiece) -> list[int]:
    """The rows of a piece's text in the old vocabulary: its own row, or those of its pieces. A
    continuation is split into continuing pieces; [] where only [UNK] would be left."""
    if piece in old.ids:
        return [old.ids[piece]]
    bare = piece.removeprefix(CONTINUES)
    result = old.pieces(bare)
    if bare != piece and result and CONTINUES + result[0] in old.ids:
        result = [CONTINUES + result[0], *result[1:]]
    return [old.ids[one] for one in result if old.ids[one] != old.special.unk]


def _put(
    model: BertForMaskedLM, rows: Tensor, bias: Tensor, columns: Tensor | None, config: BertConfig
) -> BertForMaskedLM:
    token = nn.Embedding(len(rows), rows.shape[1], padding_idx=config.pad_token_id)
    with torch.no_grad():
        token.weight.copy_(rows)
    tables_of(model.encoder).token = token
    model.mlm.bias = nn.Parameter(bias.to(model.mlm.bias))
    model.mlm.tie(token)
    if columns is not None:
        model.mlm.extra = nn.Linear(len(rows), columns.shape[1], bias=False)
        model.mlm.extra.weight = nn.Parameter(columns.T.contiguous())
    for part in model.modules():
        if isinstance(there := getattr(part, "config", None), BertConfig) and part is not model:
            same = {"vocab_size": config.vocab_size, "pad_token_id": config.pad_token_id}
            part.config = replace(there, **same)  # type: ignore[assignment, arg-type]
    model.config = config  # type: ignore[assignment]
    return model.to(bias.dtype)


def fertility(tokenizer: WordPiece, texts: Iterable[str]) -> float:
    """Pieces for each word of running text, punctuation apart. Raises ValueError for no text."""
    texts = check_texts(texts)
    words = sum(any(map(str.isalnum, word)) for text in texts for word in tokenizer.words(text))
    if not words:
        raise ValueError("no text was given; expected at least one word.")
    fast, vocab = fast_wordpiece(tokenizer), tokenizer.vocab
    pieces = sum(
        any(map(str.isalnum, vocab[id].removeprefix(CONTINUES))) or id == tokenizer.special.unk
        for one in fast.encode_batch(texts, add_special_tokens=False) for id in one.ids
    )  # fmt: skip
    return pieces / words
