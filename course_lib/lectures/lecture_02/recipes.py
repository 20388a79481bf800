"""The pre-training runs of the lectures: which stories, which model, how many steps. A recipe fixes
steps, never seconds, so every machine gets the same result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from course_lib.family.bert import bert_for_pretraining
from course_lib.heads import BertForPreTraining
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.pretraining import pretraining_batches, pretraining_loss
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.teaching.experiments import Trainer
from course_lib.text.world import MicroWorld, StorySequences
from course_lib.train.loop import Report
from course_lib.train.metrics import evaluate


@dataclass(frozen=True)
class Recipe:
    """A BERT pre-trained on MLM and NSP over a fixed, finite set of stories of the micro-world."""

    steps: int
    size: str = "tiny"
    stories: int = 40_000
    heldout: int = 500
    length: int = 64
    batch_size: int = 32
    learning_rate: float = 2e-3
    warmup: float = 0.1
    initializer_range: float = 0.05  # BERT's 0.02 is for 768 units; at 128 it starts too flat


LIVE = Recipe(steps=2_400)  # what lecture 02 trains in front of the reader
# The curve behind it, a result: it reads about seventeen times as much.
LONG = replace(LIVE, steps=20_000, batch_size=64)


@dataclass(frozen=True)
class Material:
    """What a recipe reads: pairs to train on, whole stories and pairs to be measured on."""

    world: MicroWorld
    documents: list[list[list[int]]]  # the training stories
    train: PackedSequences
    heldout_stories: StorySequences
    heldout_pairs: PackedSequences

    @property
    def special(self) -> SpecialIds:
        return self.world.special


def prepare(recipe: Recipe, world: MicroWorld | None = None) -> Material:
    """Draw the stories (seed 0 of each split) and pack them."""
    world = world or MicroWorld.load()
    documents = world.documents(world.stories(recipe.stories, seed=0))
    heldout = world.stories(recipe.heldout, seed=0, split="heldout")
    train, pairs = (
        make_pairs(texts, world.special, length=recipe.length)
        for texts in (documents, world.documents(heldout))
    )
    return Material(world, documents, train, world.sequences(heldout, recipe.length), pairs)


def randomly_initialised(recipe: Recipe, vocab_size: int, seed: int) -> BertForPreTraining:
    """Random initialisation; no dropout, because so short a training never sees a story often
    enough to need it."""
    torch.manual_seed(seed)
    return bert_for_pretraining(
        recipe.size,
        vocab_size=vocab_size,
        max_positions=recipe.length,
        initializer_range=recipe.initializer_range,
        hidden_dropout=0.0,
        attention_dropout=0.0,
    )


@dataclass
class AccuracyCurve:
    """A callback that measures held-out accuracy at `evaluations` steps, the early ones closer
    together."""

    material: Material
    steps: int
    evaluations: int = 12
    precision: str = "auto"
    points: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        fractions = [(i / self.evaluations) ** 1.5 for i in range(1, self.evaluations + 1)]
        self._due = {max(1, round(fraction * self.steps)) for fraction in fractions}

    def __call__(self, report: Report) -> None:
        if report.step in self._due:
            self.points.append({"step": report.step, **self.measure(report.model)})

    def measure(self, model: Any) -> dict[str, float]:
        """Masked-token accuracy on whole stories, and NSP accuracy on pairs."""
        special, stories = self.material.special, self.material.heldout_stories
        words = evaluate(model, stories.sequences, special, precision=self.precision)
        pairs = evaluate(model, self.material.heldout_pairs, special, precision=self.precision)
        return {
            "masked_accuracy": words.masked_accuracy,
            "mlm_loss": words.mlm_loss,
            "pair_accuracy": pairs.pair_accuracy,
        }


pretrain = Trainer(
    lambda recipe, material, seed: (
        randomly_initialised(recipe, material.special.vocab_size, seed), pretraining_loss
    ),
    lambda recipe, material, seed: pretraining_batches(
        material.train, material.special, batch_size=recipe.batch_size, seed=seed
    ),
    precision="auto",
)  # fmt: skip
