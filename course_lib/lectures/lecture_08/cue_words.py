"""What each position term is for: a task that one of them solves and the other does not.

A text is words drawn at random, with one gap. The answer is the word that stands 1 to 4 positions
to the left of the gap. Either the *query* says how many (in the gap stands a cue word), or the
*keys* do: every word carries a number, and just one of them the number of positions from it to the
gap. Trained in seconds, on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.deberta import TERMS, DebertaConfig, deberta_encoder, deberta_masked_lm
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.sequences import Batch
from course_lib.train.loop import Callback, fit

WORDS, DISTANCES = 20, 4
TOKENS, LONGER = 20, 40  # of a text in training; of one at the test
CUE = WORDS * (DISTANCES + 1) + 1  # ids: 0 padding, then words, words with each number, cue words
STEPS = 200
MODELS: dict[str, tuple[tuple[str, ...] | None, int]] = {  # position terms (None: BERT), steps
    "c2p and p2c": (TERMS, STEPS),
    "c2p alone": (("c2p",), STEPS),
    "p2c alone": (("p2c",), STEPS),
    "no positions": ((), STEPS),
    "BERT's absolute positions": (None, STEPS),
    "BERT, three times the steps": (None, 3 * STEPS),
}


def cue_batch(says: str, count: int, seed: int, tokens: int = TOKENS) -> Batch:
    """`count` texts of `tokens` tokens. says: what says the distance, "query" or "key".

    Raises ValueError for another word, and for texts too short for a distance."""
    if says not in ("query", "key") or tokens <= DISTANCES:
        raise ValueError(
            f"says={says!r} and tokens={tokens} were given; expected 'query' or 'key', and more "
            f"than {DISTANCES} tokens."
        )
    draw = torch.Generator().manual_seed(seed)
    rows = torch.arange(count)
    words = torch.randint(1, WORDS + 1, (count, tokens), generator=draw)
    at = torch.randint(DISTANCES, tokens, (count,), generator=draw)
    distance = torch.randint(1, DISTANCES + 1, (count,), generator=draw)
    labels = words[rows, at - distance]
    ids = words.clone()
    if says == "key":
        number = (torch.randint(0, DISTANCES, (count, tokens), generator=draw)) + 1
        left = at[:, None] - torch.arange(tokens)  # positions to the left of the question
        number = torch.where(number == left, number % DISTANCES + 1, number)  # none fits …
        number[rows, at - distance] = distance  # … but one
        ids = words + WORDS * number
    ids[rows, at] = CUE + (distance if says == "query" else 0)
    inputs = {
        "input_ids": ids, "attention_mask": torch.ones_like(ids),
        "predict_at": rows * tokens + at,
    }  # fmt: skip
    return Batch(inputs, {"labels": labels})


def cue_model(terms: Sequence[str] | None, seed: int = 0) -> nn.Module:
    """One block, 64 wide, randomly initialised: DeBERTa with these position terms and no decoder;
    None: BERT."""
    torch.manual_seed(seed)
    shape: dict[str, Any] = dict(
        vocab_size=CUE + DISTANCES + 1, max_positions=LONGER, num_layers=1, hidden_size=64,
        num_heads=2, intermediate_size=128, hidden_dropout=0.0, attention_dropout=0.0,
        initializer_range=0.1, type_vocab_size=0,
    )  # fmt: skip
    if terms is None:
        return BertForMaskedLM(Encoder(BertConfig(**shape)))
    config = DebertaConfig(**shape, span=TOKENS, terms=tuple(terms))
    return deberta_masked_lm(deberta_encoder(config), decoder=False)


def train_cue(
    model: nn.Module,
    says: str,
    *,
    steps: int = STEPS,
    learning_rate: float = 4e-3,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> nn.Module:
    """Train on texts that are drawn anew at every step; returns the model."""
    fit(
        model, masked_lm_loss, lambda step: cue_batch(says, 64, 1_000 * (seed + 1) + step),
        steps=steps, learning_rate=learning_rate, precision="float32", seed=seed,
        callbacks=callbacks,
    )  # fmt: skip
    return model


@torch.no_grad()
def cue_accuracy(model: nn.Module, says: str, tokens: int = TOKENS, count: int = 1_000) -> float:
    """The fraction of held-out texts whose word is predicted right."""
    batch = cue_batch(says, count, seed=0, tokens=tokens)
    guessed = model.eval()(**batch.inputs).logits.argmax(-1)
    return float((guessed == batch.targets["labels"]).float().mean())
