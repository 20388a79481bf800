"""`04_formats`: RoBERTa's four input formats, at equal steps and equal tokens; and segment pairs
without the NSP loss, so that a format's effect can be told from its loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from course_lib.family.bert import bert_for_pretraining
from course_lib.heads import BertForPreTraining
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches, pretraining_loss
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching.experiments import Experiment, Run, Stories, Trainer, drawn
from course_lib.text.packing import INPUT_FORMATS, input_sequences
from course_lib.text.world import MicroWorld
from course_lib.train.loop import Batches, Objective
from course_lib.train.metrics import evaluate


@dataclass(frozen=True)
class FormatRecipe:
    """A BERT of two layers, 128 wide; each story is read some forty times."""

    format: str
    nsp: bool
    learning_rate: float
    steps: int = 4_000
    stories: int = 1_600
    tokens: int = 850  # a batch, padding not counted
    length: int = 64


FORMAT_RATES = (1e-3, 2e-3)
FORMATS = {
    f"{form}{', no NSP' * (pairs and not nsp)}, {rate:g}": FormatRecipe(form, nsp, rate)
    for form in INPUT_FORMATS
    for pairs in ["pair" in form]
    for nsp in ((True, False) if form == "segment-pair" else (pairs,))
    for rate in FORMAT_RATES
}
FORMAT_SEEDS = range(2)


@cache
def in_format(
    form: str, stories: int, length: int, world: MicroWorld, split: str
) -> PackedSequences:
    """The stories of a split as sequences of this format, drawn once."""
    documents = world.documents(drawn(world, stories, split=split))
    return input_sequences(form, documents, world.special, length)


def batch_size(recipe: FormatRecipe, sequences: PackedSequences) -> int:
    """How many sequences of this format hold the recipe's tokens."""
    return round(recipe.tokens * len(sequences) / int(sequences.attention_mask.sum()))


def _draw(recipe: FormatRecipe, material: Stories, seed: int) -> tuple[Any, Objective]:
    torch.manual_seed(seed)
    special = material.world.special
    model = bert_for_pretraining(
        vocab_size=special.vocab_size, pad_token_id=special.pad, max_positions=recipe.length,
        num_layers=2, hidden_size=128, num_heads=2, intermediate_size=512, initializer_range=0.05,
        hidden_dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    return model, pretraining_loss if recipe.nsp else masked_lm_loss


def _batches(recipe: FormatRecipe, material: Stories, seed: int) -> Batches:
    world = material.world
    read = in_format(recipe.format, recipe.stories, recipe.length, world, "train")
    return pretraining_batches(
        read, world.special, batch_size=batch_size(recipe, read), seed=seed + 100
    )


def reached(run: Run) -> dict[str, float]:
    """Accuracy on masked tokens of held-out stories: each whole in a sequence of its own, and as
    segment pairs, half of which are torn apart."""
    model: BertForPreTraining = run.model
    world, recipe = run.material.world, run.recipe
    pairs = in_format("segment-pair", 500, recipe.length, world, "heldout")
    on_pairs = evaluate(model, pairs, world.special, precision="float32")
    return {
        **run.material.masked_scores(model), "pairs_accuracy": on_pairs.masked_accuracy,
        "nsp_accuracy": on_pairs.pair_accuracy,
    }  # fmt: skip


FORMAT_RUNS = Experiment(
    "04_formats", FORMATS, FORMAT_SEEDS, lambda: Stories(1_600, 500), Trainer(_draw, _batches),
    reached, label="04-format-{format}-{nsp}-{learning_rate}-{seed}",
)  # fmt: skip
