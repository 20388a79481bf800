"""Lecture 08's experiment on the token table of ELECTRA's two networks: one for both, one each, or
DeBERTa-v3's gradient-disentangled sharing (He, Gao and Chen 2021).

`08_embedding_sharing`: the three at equal steps, and how the gradients of masked words and of
replaced tokens stand to each other on the table on the way. The networks are BERTs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import torch
from torch import Tensor

from course_lib.checkpoints import load
from course_lib.encoder import count_parameters
from course_lib.family.electra import (
    DISENTANGLED,
    DisentangledEmbedding,
    Electra,
    ElectraConfig,
    electra_from,
    fill_in,
    merged,
)
from course_lib.files import data_path
from course_lib.heads import BertForMaskedLM, BertForReplacedTokens
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.replaced_tokens import (
    PAPER_MIX,
    electra_loss,
    replaced_labels,
    replaced_token_loss,
)
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.teaching.results import REPLAYED, compared_runs, kept
from course_lib.text.tasks import LabelledSequences, SlotCategories, slot_categories, unstated_facts
from course_lib.text.world import MicroWorld, story_sequences
from course_lib.train.loop import Callback, History, Report, fit
from course_lib.train.metrics import evaluate, evaluation_mask
from course_lib.train.probing import slot_category_probe, text_probe

PRECISION = "float32"  # on every machine, so that results can be compared
STORIES, HELDOUT, LENGTH = 10_000, 300, 64
LABELLED, TASK_STORIES = 400, 3_000  # texts to train a probe on; stories whose silent fifth tests
LOOK_EVERY = 50
SEEDS = range(3)


@dataclass(frozen=True)
class SharingRecipe:
    """An ELECTRA of two layers, 128 wide, on a fixed finite set of stories.

    tied: as in `electra_from`; generator: its width, as a fraction of the discriminator's."""

    tied: str = "tokens"
    steps: int = 800
    generator: float = 1 / 2
    disc_weight: float = 50.0
    batch_size: int = 16
    learning_rate: float = 1e-3
    initializer_range: float = 0.05


SHARED = SharingRecipe()
RECIPES = {
    "shared": SHARED,
    "not shared": replace(SHARED, tied="none"),
    DISENTANGLED: replace(SHARED, tied=DISENTANGLED),
}


@dataclass(frozen=True)
class RtdTest:
    """The same replaced tokens for every discriminator, drawn by the shipped generator."""

    input_ids: Tensor  # (N, T), corrupted
    sequences: PackedSequences
    labels: Tensor  # (N, T), 1 replaced


@dataclass(frozen=True)
class SharingMaterial:
    """What the networks read, and what they are tested with."""

    world: MicroWorld
    train: PackedSequences
    heldout: PackedSequences
    replaced: RtdTest
    facts: LabelledSequences
    facts_heldout: LabelledSequences
    slots: SlotCategories


def prepare(world: MicroWorld | None = None) -> SharingMaterial:
    """Draw the stories (seed 0 of each split), pack them, and make the tests of them."""
    world = world or MicroWorld.load()
    told = world.stories(STORIES, seed=0)
    unseen = world.stories(TASK_STORIES, seed=0, split="heldout")
    heldout = story_sequences(world, unseen[:HELDOUT], LENGTH)
    return SharingMaterial(
        world,
        story_sequences(world, told, LENGTH),
        heldout,
        _replaced_by_the_shipped_generator(world, heldout),
        unstated_facts(world, told, LENGTH)[:LABELLED],
        unstated_facts(world, unseen, LENGTH),
        slot_categories(world, unseen[:HELDOUT], LENGTH),
    )


@torch.no_grad()
def _replaced_by_the_shipped_generator(world: MicroWorld, heldout: PackedSequences) -> RtdTest:
    generator = shipped("generator")
    masked = evaluation_mask(heldout, world.special)
    logits = generator(masked.input_ids, heldout.attention_mask, predict_at=masked.predict_at)
    uniforms = torch.rand(len(masked.predict_at), generator=torch.Generator().manual_seed(0))
    filled = fill_in(masked.input_ids, masked.predict_at, logits.logits, uniforms)
    labels = replaced_labels(filled, masked.predict_at, masked.original_ids)
    return RtdTest(filled, heldout, labels)


def shipped(network: str) -> Any:
    """The "generator" or the "discriminator" of the ELECTRA that the course ships."""
    return load(data_path("checkpoints", f"micro_electra_{network}.safetensors"))


def small_electra(recipe: SharingRecipe, world: MicroWorld, seed: int) -> Electra:
    """Both networks of a recipe, randomly initialised: no dropout, tables as wide as the kept
    network."""
    torch.manual_seed(seed)
    config = ElectraConfig(
        vocab_size=world.special.vocab_size, max_positions=LENGTH, num_layers=2, hidden_size=128,
        num_heads=2, intermediate_size=512, embedding_size=128, hidden_dropout=0.0,
        attention_dropout=0.0, initializer_range=recipe.initializer_range,
    )  # fmt: skip
    return electra_from(config, recipe.generator, recipe.tied)


def story_batches(
    sequences: PackedSequences, world: MicroWorld, batch_size: int, seed: int
) -> Callable[[int], Batch]:
    """Masked stories; every selected position becomes [MASK], as in ELECTRA's paper."""
    return pretraining_batches(
        sequences, world.special, batch_size=batch_size, seed=seed, mix=PAPER_MIX
    )


def train_sharing(
    recipe: SharingRecipe,
    material: SharingMaterial,
    *,
    seed: int = 0,
    steps: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> tuple[Electra, History]:
    """Train one recipe; all else is the same for all that differ in it."""
    model = small_electra(recipe, material.world, seed)
    batches = story_batches(material.train, material.world, recipe.batch_size, seed + 100)
    history = fit(
        model, electra_loss(recipe.disc_weight), batches, steps=steps or recipe.steps, seed=seed,
        learning_rate=recipe.learning_rate, precision=PRECISION, callbacks=callbacks,
    )  # fmt: skip
    return model, history


# ---------------------------------------------------------------- who pulls where


def table_gradients(model: Electra, batch: Batch) -> tuple[Tensor, Tensor]:
    """What masked words and what replaced tokens ask of the token table, (V, E) each, λ left out.

    The first is the gradient on the generator's table, the second that on what the discriminator
    looks words up in (its difference, where it has one)."""
    outputs = model(**batch.inputs)
    losses = (
        masked_lm_loss(outputs, batch.targets)["mlm"],
        replaced_token_loss(outputs, batch.targets)["rtd"],
    )
    networks = (model.generator, model.discriminator)
    weights = [looked_up_in(network) for network in networks]
    mlm, rtd = (
        torch.autograd.grad(loss, weight, retain_graph=True)[0]
        for loss, weight in zip(losses, weights, strict=True)
    )
    return mlm, rtd


def looked_up_in(network: BertForMaskedLM | BertForReplacedTokens) -> Tensor:
    """The parameter that takes the gradient of a network's token embeddings, (V, E)."""
    token: Any = getattr(network.encoder.embeddings, "token")  # noqa: B009
    return token.difference if isinstance(token, DisentangledEmbedding) else token.weight


def cosine(a: Tensor, b: Tensor) -> float:
    """Of two gradients of the same table, each taken as one long vector."""
    return float(torch.cosine_similarity(a.flatten(), b.flatten(), dim=0))


@dataclass(frozen=True)
class Pulls:
    """How the gradients of several batches stand to each other on a shared token table.

    cosines: of masked words (MLM) with masked words in another batch, of replaced tokens (RTD) with
    replaced tokens in another batch, and of the two in any two batches. The first two say how well
    a task agrees with itself: what the third is to be held against. longer: how many times as long
    RTD's gradient is, in the mean, with the λ that stands before its loss."""

    cosines: dict[str, list[float]]
    longer: float


def pulls(model: Electra, batches: Sequence[Batch], disc_weight: float = 50.0) -> Pulls:
    """Measured on an ELECTRA that is left as it is; at least two batches."""
    torch.manual_seed(0)
    mlm, rtd = zip(*(table_gradients(model, batch) for batch in batches), strict=True)
    cosines = {
        "MLM with MLM": [cosine(a, b) for a, b in combinations(mlm, 2)],
        "RTD with RTD": [cosine(a, b) for a, b in combinations(rtd, 2)],
        "MLM with RTD": [cosine(a, b) for a, b in product(mlm, rtd)],
    }
    ratios = [float(disc_weight * b.norm() / a.norm()) for a, b in zip(mlm, rtd, strict=True)]
    return Pulls(cosines, sum(ratios) / len(ratios))


BEGINNING, TRAINED = "random initialisation", "the shipped ELECTRA"


@lru_cache(maxsize=1)
def pulls_before_and_after() -> dict[str, Pulls]:
    """Of a randomly initialised ELECTRA and of the one that the course ships (lecture 07's, 4,000
    steps with one table for both), on the same held-out stories."""
    world = MicroWorld.load()
    heldout = story_sequences(world, world.stories(HELDOUT, seed=0, split="heldout"), LENGTH)
    batches = [story_batches(heldout, world, 32, seed=1)(step) for step in range(6)]
    models = {
        BEGINNING: small_electra(SHARED, world, seed=0).eval(),
        TRAINED: Electra(shipped("generator"), shipped("discriminator")),
    }
    return {name: pulls(model, batches) for name, model in models.items()}


# ---------------------------------------------------------------- what each reaches


@torch.no_grad()
def replaced_auc(discriminator: BertForReplacedTokens, test: RtdTest) -> float:
    """ROC-AUC on replaced tokens that are the same for all: 0.5 is chance level."""
    from sklearn.metrics import roc_auc_score

    logits = discriminator(test.input_ids, test.sequences.attention_mask).logits
    real = test.sequences.attention_mask.bool()
    return float(roc_auc_score(test.labels[real].numpy(), logits[real].float().numpy()))


def word_cosine(table: Tensor) -> float:
    """Mean cosine of the vectors of two different words, over all pairs of a table (V, E)."""
    units = torch.nn.functional.normalize(table.detach(), dim=-1)
    rows = len(units)
    return float((units.sum(0).square().sum() - rows) / (rows * (rows - 1)))


def look(model: Electra, material: SharingMaterial) -> dict[str, float]:
    """How well each network does its own work on held-out stories."""
    special = material.world.special
    scores = evaluate(model.generator, material.heldout, special, precision=PRECISION)
    return {
        "masked_accuracy": scores.masked_accuracy,
        "auc": replaced_auc(model.discriminator, material.replaced),
    }


def one_run(recipe: SharingRecipe, material: SharingMaterial, seed: int) -> dict[str, Any]:
    """One recipe, one seed: what it reached, and the way. Finished runs are read from the cache."""

    def run() -> dict[str, Any]:
        curve: list[dict[str, float]] = []
        test = story_batches(material.heldout, material.world, recipe.batch_size, 1)

        def looking(report: Report) -> None:
            if report.step % LOOK_EVERY:
                return
            model: Any = report.model
            mlm, rtd = table_gradients(model.eval(), test(report.step))
            norms = {"mlm_norm": float(mlm.norm()), "rtd_norm": float(rtd.norm())}
            found = {**look(model, material), "cosine": cosine(mlm, rtd), **norms}
            curve.append({"step": report.step, **found})
            model.train()

        model, history = train_sharing(recipe, material, seed=seed, callbacks=[looking])
        encoder = merged(model.discriminator).encoder
        tables = {
            "words_generator": word_cosine(model.generator.encoder.embeddings.token.weight),  # type: ignore[union-attr, arg-type]
            "words_discriminator": word_cosine(encoder.embeddings.token.weight),  # type: ignore[union-attr, arg-type]
        }
        return {
            "seed": seed, "parameters": count_parameters(model), **look(model, material),
            "slots": slot_category_probe(encoder, material.slots),
            "facts": text_probe(encoder, material.facts, material.facts_heldout),
            **tables, "curve": curve, "seconds": round(history.seconds, 1),
        }  # fmt: skip

    settings = {"seed": seed, **asdict(recipe)}
    return kept(f"08-sharing-{recipe.tied}", settings, material.world, run)


def replay(material: SharingMaterial) -> list[float]:
    """The first losses of gradient-disentangled sharing, seed 0."""
    return train_sharing(RECIPES[DISENTANGLED], material, steps=REPLAYED)[1].losses["total"]


def build_sharing() -> dict[str, Any]:
    """What data/results/08_embedding_sharing.json holds."""
    material = prepare()
    return compared_runs(
        RECIPES, SEEDS, material.world, lambda recipe, seed: one_run(recipe, material, seed),
        precision=PRECISION, replay=replay(material),
    )  # fmt: skip
