"""What the experiments on masking have in common: the recipe of a BERT, its batches, and how masked
words are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.heads import BertForMaskedLM, BertForSpanPreTraining
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences
from course_lib.objectives.span_boundary import spanbert_loss
from course_lib.teaching.experiments import Trainer
from course_lib.text.world import MicroWorld
from course_lib.train.loop import History, Objective

PRECISION = "float32"  # on every machine, so that results can be compared
LENGTH = 64  # of a story in English words
LOOK_EVERY = 500  # steps
FACT_SLOTS = ("hero.job", "hero.city", "hero.friend", "guest.animal", "food.country")


@dataclass(frozen=True)
class MaskRecipe:
    """A BERT of four layers, 96 wide, on a fixed finite set of stories, one story a sequence.

    units: what is masked together, a key of TrainingText.word_of; "tokens", or "characters" in
    Chinese, are masked one by one. sbo: is the span-boundary loss added?"""

    units: str = "tokens"
    sbo: bool = False
    steps: int = 3_000
    num_layers: int = 4
    hidden_size: int = 96
    rate: float = 0.15
    batch_size: int = 16
    learning_rate: float = 1e-3
    initializer_range: float = 0.05


@dataclass(frozen=True)
class TrainingText:
    """What the models read: stories, and units -> the number of the unit at each position."""

    world: MicroWorld
    train: PackedSequences
    word_of: Mapping[str, Tensor]


def randomly_initialised(
    recipe: MaskRecipe, world: MicroWorld, seed: int, length: int = LENGTH
) -> tuple[nn.Module, Objective]:
    """The model of a recipe for sequences of `length`, randomly initialised, and its loss."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=world.special.vocab_size, max_positions=length, num_layers=recipe.num_layers,
        hidden_size=recipe.hidden_size, num_heads=2, intermediate_size=4 * recipe.hidden_size,
        hidden_dropout=0.0, attention_dropout=0.0, initializer_range=recipe.initializer_range,
    )  # fmt: skip
    if recipe.sbo:
        return BertForSpanPreTraining(Encoder(config)), spanbert_loss
    return BertForMaskedLM(Encoder(config)), masked_lm_loss


def batches_of(recipe: MaskRecipe, training: TrainingText, seed: int) -> Any:
    """Masked stories; span masking as in SpanBERT's published command."""
    return pretraining_batches(
        training.train, training.world.special, batch_size=recipe.batch_size, rate=recipe.rate,
        seed=seed + 100, word_of=training.word_of.get(recipe.units), boundaries=recipe.sbo,
        spans={} if recipe.units == "spans" else None,
    )  # fmt: skip


train_masks = Trainer(
    lambda recipe, training, seed: randomly_initialised(
        recipe, training.world, seed, training.train.input_ids.shape[1]
    ),
    batches_of,
)


def train_on_material(recipe: MaskRecipe, material: Any, **settings: Any) -> tuple[Any, History]:
    """`train_masks` on what a material tells."""
    return train_masks(recipe, material.training, **settings)


@torch.no_grad()
def right_at(model: BertForMaskedLM, sequences: PackedSequences, at: Tensor, mask: int) -> Tensor:
    """With all of these positions masked (K,), ascending, n·T + t: is the true word the likeliest?
    (K,) bool."""
    ids = sequences.input_ids.clone()
    true = ids.view(-1)[at]
    ids.view(-1)[at] = mask
    logits = model(ids, sequences.attention_mask, sequences.token_type_ids, at).logits
    return logits.argmax(-1) == true


def all_right(right: Tensor, of: Tensor) -> Tensor:
    """Which units are right in all their tokens: right (K,) bool and the number of each one's unit
    (K,) -> (units,) bool."""
    units = int(of.max()) + 1
    return torch.zeros(units).index_add(0, of, (~right).float()) == 0
