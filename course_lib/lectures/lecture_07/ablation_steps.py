"""From BERT to ELECTRA in five steps (Clark et al. 2020, Table 5): each changes one thing.

BERT            reads [MASK], says the word at 15% of positions
Replace MLM     reads the generator's words instead of [MASK], says the word at those 15%
ELECTRA 15%     reads the same, says "replaced or not" at those 15%
All-tokens MLM  reads the same, says the word at every position, and may copy what it reads
ELECTRA         reads the same, says "replaced or not" at every position

B batch, T tokens, N masked positions, V vocabulary. Losses are in nats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.encoder import Encoder, initialise
from course_lib.family.electra import Electra, ElectraConfig, electra_encoder, electra_from, fill_in
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.masked_loss import mean_cross_entropy
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.replaced_tokens import electra_loss
from course_lib.objectives.sequences import part_of_mean
from course_lib.train.loop import Objective

ABLATION_STEPS = ("BERT", "Replace MLM", "ELECTRA 15%", "All-tokens MLM", "ELECTRA")


@dataclass
class ReaderOutput:
    """What the generator said, and a reader that names words; N positions were masked."""

    prediction_logits: Tensor  # (N, V), the generator's
    reader_logits: Tensor  # (N, V), or (B, T, V) where a word is predicted at every token
    corrupted_ids: Tensor  # (B, T), what the reader read
    predict_at: Tensor  # (N,)
    attention_mask: Tensor  # (B, T)
    copy_logits: Tensor | None = None  # (B, T): is the word that stands there the right one?


class WordReader(nn.Module):
    """A generator, and a BERT that reads what it wrote and names words: at the masked positions, or
    with `every` at all, where it may also say "the word that stands here"."""

    def __init__(self, generator: BertForMaskedLM, reader: BertForMaskedLM, every: bool) -> None:
        super().__init__()
        self.generator = generator
        self.reader = reader
        self.copy = nn.Linear(reader.config.hidden_size, 1) if every else None
        if self.copy is not None:
            initialise(self.copy, reader.config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        predict_at: Tensor,
    ) -> ReaderOutput:
        """input_ids (B, T) with [MASK] at the positions `predict_at` (N,), given as b·T + t."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        guess = self.generator(input_ids, attention_mask, token_type_ids, predict_at).logits
        read = fill_in(input_ids, predict_at, guess)
        copies = None
        if self.copy is None:
            named = self.reader(read, attention_mask, token_type_ids, predict_at).logits
        else:
            states = self.reader.encoder(read, attention_mask, token_type_ids).last_hidden_state
            named, copies = self.reader.mlm(states), self.copy(states).squeeze(-1)
        return ReaderOutput(guess, named, read, predict_at, attention_mask, copies)


def replace_mlm_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The generator's loss plus the reader's, both at the masked positions, in nats."""
    mlm = masked_lm_loss(outputs, targets)["mlm"]
    reader = mean_cross_entropy(outputs.reader_logits, targets["labels"], targets.get("num_labels"))
    return {"total": mlm + reader, "mlm": mlm, "reader": reader}


def all_tokens_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The generator's loss plus the reader's at every real token, in nats. The reader's
    probability of a word is D · [it stands there] + (1 − D) · softmax, where D says "copy"."""
    mlm = masked_lm_loss(outputs, targets)["mlm"]
    true = outputs.corrupted_ids.flatten().clone()
    true[outputs.predict_at] = targets["labels"]
    real = outputs.attention_mask.flatten().bool()
    stands, true = outputs.corrupted_ids.flatten()[real], true[real]  # (tokens,)
    dtype = torch.promote_types(outputs.reader_logits.dtype, torch.float32)
    named = outputs.reader_logits.flatten(0, 1)[real].to(dtype)  # (tokens, V)
    copies = outputs.copy_logits.flatten()[real].to(dtype)
    word = named.log_softmax(-1).gather(1, true[:, None]).squeeze(1) + F.logsigmoid(-copies)
    both = torch.logaddexp(word, F.logsigmoid(copies))
    mean = -torch.where(stands == true, both, word).mean()
    reader = part_of_mean(mean, len(word), targets.get("num_tokens"))
    return {"total": mlm + reader, "mlm": mlm, "reader": reader}


def ablation_step(
    name: str, config: ElectraConfig, size: float = 1 / 4
) -> tuple[nn.Module, Objective]:
    """The model of one step, randomly initialised, and its loss; `kept_encoder` is what is tested.

    config: of the network that is kept; size: of its generator. Raises ValueError for another
    name."""
    if name not in ABLATION_STEPS:
        raise ValueError(f"step {name!r} was given; expected one of {', '.join(ABLATION_STEPS)}.")
    if name == "BERT":
        return BertForMaskedLM(electra_encoder(config)), masked_lm_loss
    both = electra_from(config, size)
    if name in ("ELECTRA", "ELECTRA 15%"):
        return both, electra_loss(only_masked=name == "ELECTRA 15%")
    every = name == "All-tokens MLM"
    reader = BertForMaskedLM(both.discriminator.encoder)
    return WordReader(both.generator, reader, every), all_tokens_loss if every else replace_mlm_loss


def kept_encoder(model: nn.Module) -> Encoder:
    """The encoder that is kept once pre-training is over, itself, not a copy.

    Raises ValueError for a model of none of these steps."""
    kept = model.discriminator if isinstance(model, Electra) else model
    kept = kept.reader if isinstance(kept, WordReader) else kept
    encoder = getattr(kept, "encoder", None)
    if not isinstance(encoder, Encoder):
        raise ValueError(
            f"A {type(model).__name__} was given; expected a model that ablation_step(…) made."
        )
    return encoder
