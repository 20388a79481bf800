"""Languages that share one model. `10_low_resource`: English and a little Norlish, read with p^α.
`10_curse`: more languages in one size, and a wider one. MLM alone, no translations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import torch

from course_lib.family.xlm import XlmForLanguageModel, xlm_for_language_model
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences, SpecialIds, pack, to_sequences
from course_lib.teaching.experiments import Experiment, Run, Trainer
from course_lib.teaching.results import last_losses
from course_lib.text.language_sampling import mixed_languages, smoothed
from course_lib.text.shared_words import with_shared_words
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld, Story
from course_lib.train.metrics import evaluate

from .pairs import RATE, joint_tokenizer

SEEDS, LENGTH, BATCH, UNSEEN = range(3), 16, 64, 200
ALONE = -1.0  # α of the recipe that reads the small language and no other


@dataclass(frozen=True)
class SharingRecipe:
    """stories: how many of each language, English first; alpha: how they are read."""

    stories: tuple[int, ...]
    alpha: float = 0.0
    hidden_size: int = 64
    steps: int = 6_000


LARGE, SMALL = 1_500, 50  # stories of English, of Norlish
LOW_RESOURCE = {
    **{f"α = {alpha:g}": SharingRecipe((LARGE, SMALL), alpha) for alpha in (1.0, 0.7, 0.3, 0.0)},
    "Norlish alone": SharingRecipe((0, SMALL), ALONE),
}
EACH, QUARTER = 1_000, 1_500  # stories of each language; steps that one of four gets
CURSE = {
    f"{count} language{'s' * (count > 1)}, {width} wide": SharingRecipe(
        (EACH,) * count, hidden_size=width
    )
    for width in (32, 96)
    for count in (1, 2, 4)
} | {
    f"1 language, {width} wide, a quarter of the steps": SharingRecipe(
        (EACH,), hidden_size=width, steps=QUARTER
    )
    for width in (32, 96)
}


@lru_cache(maxsize=1)
def worlds() -> tuple[MicroWorld, ...]:
    """English, then three that share no word with it, nor with one another."""
    norlish, sumorian = (MicroWorld.load(language=name) for name in ("norlish", "sumorian"))
    return MicroWorld.load(), norlish, sumorian, with_shared_words("english", 0.0)


class Material(NamedTuple):
    """What a recipe's model reads, the special ids, and unseen sentences by language."""

    train: PackedSequences
    special: SpecialIds
    unseen: list[PackedSequences]


@lru_cache(maxsize=8)
def prepare(recipe: SharingRecipe) -> Material:
    """Each language tells other stories: nothing is parallel."""
    read = worlds()[: len(recipe.stories)]
    tokenizer = joint_tokenizer(*read)
    parts = [
        packed(tokenizer, world, world.stories(count, seed=n), n) if count else None
        for n, (world, count) in enumerate(zip(read, recipe.stories, strict=True))
    ]
    there = [part for part in parts if part is not None]
    probabilities = smoothed([len(part) for part in there], max(recipe.alpha, 0.0))
    # So long a stream that no sentence of the large language is left out, whatever α is.
    train = mixed_languages(there, probabilities, 5 * sum(map(len, there)), seed=0)
    unseen = [
        packed(tokenizer, world, world.stories(UNSEEN, seed=9, split="heldout"), n)
        for n, world in enumerate(read)
    ]
    return Material(train, tokenizer.special, unseen)


def packed(
    tokenizer: WordPiece, world: MicroWorld, stories: Sequence[Story], language_id: int
) -> PackedSequences:
    """The stories' sentences, one a sequence, with the number of their language."""
    lines = [tokenizer.encode(line) for story in stories for line in story.sentences]
    sequences = to_sequences([pack(ids, None, tokenizer.special, LENGTH) for ids in lines])
    sequences.token_type_ids.fill_(language_id)
    return sequences


def model_of(recipe: SharingRecipe, special: SpecialIds, seed: int) -> XlmForLanguageModel:
    """Two layers; four language vectors for all, so that sizes differ in the vocabulary alone."""
    torch.manual_seed(seed)
    return xlm_for_language_model(
        vocab_size=special.vocab_size, hidden_size=recipe.hidden_size, num_layers=2, num_heads=2,
        intermediate_size=4 * recipe.hidden_size, max_positions=LENGTH, type_vocab_size=4,
        pad_token_id=special.pad, hidden_dropout=0.0, attention_dropout=0.0, initializer_range=0.05,
    )  # fmt: skip


def masked_right(run: Run) -> dict[str, float]:
    """Masked-token accuracy on unseen sentences, by language."""
    material = prepare(run.recipe)
    right = {
        f"masked {language_id}": evaluate(
            run.model, unseen, material.special, precision="float32"
        ).masked_accuracy
        for language_id, unseen in enumerate(material.unseen)
    }
    return {**last_losses(run.history), **right}


train_sharing = Trainer(
    lambda recipe, _, seed: (model_of(recipe, prepare(recipe).special, seed), masked_lm_loss),
    lambda recipe, _, seed: pretraining_batches(
        prepare(recipe).train, prepare(recipe).special, batch_size=BATCH, rate=RATE, seed=seed + 1
    ),
    settings={"learning_rate": 3e-3},
)
FEW_SENTENCES = Experiment(
    "10_low_resource", LOW_RESOURCE, SEEDS, train=train_sharing, measure=masked_right,
    label="10-sharing", more={"languages": lambda _: [world.hash for world in worlds()]},
)  # fmt: skip
MANY_LANGUAGES = replace(FEW_SENTENCES, name="10_curse", recipes=CURSE)
MEASURES = tuple(f"masked {language_id}" for language_id in range(4))
EXPERIMENTS = (FEW_SENTENCES, MANY_LANGUAGES)
