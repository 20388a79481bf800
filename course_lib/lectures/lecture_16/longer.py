"""`16_longer`: a model that read 64 tokens at a time learns to read 512, in a hundred steps.

The ladder's RMSNorm rung goes on training, in each step as many tokens as before: with texts of 64
(the control), with texts of 512, and with texts of 512 and a larger base of the global layers'
angles. Five learning rates, of which seed 0 chooses by other stories than those that are reported.
Tested at 64 and 512 tokens, and at 2,048, four times what the extension itself read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from course_lib.checkpoints import load
from course_lib.family.eurobert import eurobert_encoder
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import kept
from course_lib.text.world import story_sequences
from course_lib.train.loop import fit

from .ladder import (
    LENGTH,
    LONGEST,
    PRECISION,
    RUNGS_2026,
    SEEDS,
    STORIES,
    accuracy,
    one_after_another,
    path_of,
    prepare,
    rung_run,
)

TOP = "RMSNorm"
TOKENS = 2_048  # a step, as on the ladder
BASES = {"kept": 10_000.0, "larger": 160_000.0}
LENGTHS = (LENGTH, LONGEST, 2_048)
RATES = (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)


@dataclass(frozen=True)
class Recipe:
    """How the top goes on. steps=0: not at all, but with this base."""

    length: int = LONGEST
    base: float = BASES["kept"]
    steps: int = 100
    warmup: float = 0.1


WAYS = {
    "as it is": Recipe(steps=0),
    "larger base alone": Recipe(steps=0, base=BASES["larger"]),
    "100 steps of 64 tokens": Recipe(length=LENGTH),
    "100 steps of 512, base kept": Recipe(),
    "100 steps of 512, larger base": Recipe(base=BASES["larger"]),
}


@lru_cache(maxsize=2)
def to_read(length: int) -> PackedSequences:
    """The ladder's training stories, one a text of 64 or as many as have room."""
    world = prepare().world
    stories = world.stories(STORIES)
    if length == LENGTH:
        return story_sequences(world, stories, length)
    return one_after_another(world, stories, length)


@lru_cache(maxsize=1)
def to_test() -> Mapping[int, PackedSequences]:
    """Held-out stories by length, and under 0 others of 512 tokens, which choose the rate."""
    world = prepare().world
    unseen, others = (world.stories(500, seed=seed, split="heldout") for seed in (0, 1))
    tested = {n: one_after_another(world, unseen, n) for n in LENGTHS[1:]}
    return {LENGTH: prepare().heldout, **tested, 0: one_after_another(world, others, LONGEST)}


def with_base(seed: int, base: float) -> BertForMaskedLM:
    """The ladder's top with this base, and without a longest text."""
    rung = RUNGS_2026[TOP]
    rung_run(TOP, rung, seed)  # from the cache, if it is there
    trained: Any = load(path_of(TOP, rung, seed))
    config = replace(trained.config, global_base=base, max_positions=max(LENGTHS))
    model = BertForMaskedLM(eurobert_encoder(config))
    model.load_state_dict(trained.state_dict())
    return model


def trained(recipe: Recipe, seed: int, rate: float) -> BertForMaskedLM:
    """The top after its further steps, if any."""
    model, special = with_base(seed, recipe.base), prepare().world.special
    if recipe.steps:
        batches = pretraining_batches(
            to_read(recipe.length), special, batch_size=TOKENS // recipe.length,
            rate=0.3, seed=seed + 300,
        )  # fmt: skip
        fit(
            model, masked_lm_loss, batches, steps=recipe.steps, seed=seed,
            learning_rate=rate, warmup=recipe.warmup, precision=PRECISION,
        )  # fmt: skip
    return model.eval()


def tried(recipe: Recipe, seed: int, rate: float) -> dict[str, float]:
    """What is found at every length, and in the stories that choose the rate ("0")."""

    def run() -> dict[str, float]:
        model = trained(recipe, seed, rate)
        return {str(n): accuracy(model, texts) for n, texts in to_test().items()}

    name = f"16-longer-{recipe.length}-{recipe.base:g}-{recipe.steps}-{rate:g}-{seed}"
    settings = {"seed": seed, "rate": rate, **asdict(recipe)}
    return kept(name, settings, prepare().world, run)


def longer_run(recipe: Recipe, seed: int) -> dict[str, Any]:
    """One way to go on, at the rate that is best for seed 0."""
    rates = {rate: tried(recipe, 0, rate)["0"] for rate in (RATES if recipe.steps else (0.0,))}
    best = max(rates, key=rates.__getitem__)
    by = {n: value for n, value in tried(recipe, seed, best).items() if n != "0"}
    rated = {f"{rate:g}": value for rate, value in rates.items()}
    return {
        "seed": seed,
        "rate": best,
        "rated": rated,
        "accuracy": by[str(LONGEST)],
        "by": by,
    }


EXPERIMENTS = (
    Experiment("16_longer", WAYS, SEEDS, prepare, run=lambda way, _, seed: longer_run(way, seed)),
)
