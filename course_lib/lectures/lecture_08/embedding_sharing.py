"""What the two losses of ELECTRA ask of the token embeddings that its networks share, which is what
DeBERTa-v3's gradient-disentangled embedding sharing answers (He, Gao and Chen 2021); and what that
is worth: `08_embedding_sharing` trains with one table, with two, and with v3's.

The networks are lecture 07's: BERTs of two layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.encoder import Encoder, count_parameters
from course_lib.family.electra import (
    DISENTANGLED,
    DisentangledEmbedding,
    Electra,
    ElectraConfig,
    electra_from,
    merged,
)
from course_lib.heads import BertForMaskedLM, BertForReplacedTokens
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.replaced_tokens import (
    PAPER_MIX,
    electra_loss,
    replaced_token_loss,
)
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.teaching.experiments import Experiment, Run, Stories, Trainer
from course_lib.teaching.replaced_tokens import replaced_token_scores
from course_lib.teaching.results import kept
from course_lib.teaching.shipped import micro_electra
from course_lib.text.world import MicroWorld, story_sequences
from course_lib.train.probing import text_probe, word_probe

HELDOUT, LENGTH = 300, 64
BATCHES, BATCH_SIZE = 6, 32


def small_electra(world: MicroWorld, tied: str = "tokens", seed: int = 0) -> Electra:
    """Both networks, randomly initialised: no dropout, tables as wide as the kept network.

    tied: as in `electra_from`; the generator is half as wide as the discriminator."""
    torch.manual_seed(seed)
    config = ElectraConfig(
        vocab_size=world.special.vocab_size, max_positions=LENGTH, num_layers=2, hidden_size=128,
        num_heads=2, intermediate_size=512, embedding_size=128, hidden_dropout=0.0,
        attention_dropout=0.0, initializer_range=0.05,
    )  # fmt: skip
    return electra_from(config, 1 / 2, tied)


def story_batches(
    sequences: PackedSequences, world: MicroWorld, batch_size: int, seed: int
) -> Callable[[int], Batch]:
    """Masked stories; every selected position becomes [MASK], as in ELECTRA's paper."""
    return pretraining_batches(
        sequences, world.special, batch_size=batch_size, seed=seed, mix=PAPER_MIX
    )


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
    replaced tokens in another batch, and of masked words with replaced tokens in another batch. The
    first two, how well a task agrees with itself, are there to compare the third with. longer: how
    many times as long RTD's gradient is, in the mean, with the λ that stands before its loss."""

    cosines: dict[str, list[float]]
    longer: float


def pulls(model: Electra, batches: Sequence[Batch], disc_weight: float = 50.0) -> Pulls:
    """Measured on an ELECTRA that is left as it is; at least two batches."""
    torch.manual_seed(0)
    mlm, rtd = zip(*(table_gradients(model, batch) for batch in batches), strict=True)
    two_batches = permutations(range(len(batches)), 2)  # never a batch with itself
    cosines = {
        "MLM with MLM": [cosine(a, b) for a, b in combinations(mlm, 2)],
        "RTD with RTD": [cosine(a, b) for a, b in combinations(rtd, 2)],
        "MLM with RTD": [cosine(mlm[i], rtd[j]) for i, j in two_batches],
    }
    ratios = [float(disc_weight * b.norm() / a.norm()) for a, b in zip(mlm, rtd, strict=True)]
    return Pulls(cosines, sum(ratios) / len(ratios))


BEGINNING, TRAINED = "random initialisation", "the shipped ELECTRA"


@lru_cache(maxsize=1)
def pulls_before_and_after() -> dict[str, Pulls]:
    """Of a randomly initialised ELECTRA and of the shipped one, on the same held-out stories."""
    world = MicroWorld.load()
    heldout = story_sequences(world, world.stories(HELDOUT, seed=0, split="heldout"), LENGTH)
    draw = story_batches(heldout, world, BATCH_SIZE, seed=1)
    batches = [draw(step) for step in range(BATCHES)]
    models = {BEGINNING: small_electra(world).eval(), TRAINED: micro_electra().requires_grad_()}
    return {name: pulls(model, batches) for name, model in models.items()}


# ---------------------------------------------------------------- what sharing is worth

STORIES, TASK_STORIES, LABELLED = 10_000, 3_000, 400  # to train on; to test probes; to train one
SHARING_SEEDS = range(2)
LOOK_EVERY = 250  # steps
FIRST_WORD = 5  # the special tokens come before


@dataclass(frozen=True)
class SharingRecipe:
    """An ELECTRA of two layers; tied: as in `electra_from`."""

    tied: str = "tokens"
    steps: int = 3_000
    batch_size: int = 16
    learning_rate: float = 1e-3
    disc_weight: float = 50.0


ONE, TWO, V3 = "one table", "two tables", "gradient-disentangled"
SHARING = {
    ONE: SharingRecipe(),
    TWO: SharingRecipe("none"),
    V3: SharingRecipe(DISENTANGLED),
}


PROBES = ("slots", "unstated", "swapped_repeated", "swapped_fact")


def probes(encoder: Encoder, stories: Stories) -> dict[str, float]:
    """Accuracy of linear probes on the frozen vectors: two cloze-shaped (which slot does this word
    fill; which fact is unstated), two RTD-shaped (was this word swapped)."""
    swapped = {f"swapped_{kind}": words for kind, words in stories.swapped.items()}
    accuracies = {
        name: word_probe(encoder, w) for name, w in {"slots": stories.slots, **swapped}.items()
    }
    return accuracies | {"unstated": text_probe(encoder, stories.facts, stories.facts_heldout)}


def prepare_sharing() -> Stories:
    """The stories to learn from, held-out ones, and the four probes of the kept network."""
    return Stories(STORIES, HELDOUT, TASK_STORIES, LABELLED, LENGTH)


train_sharing = Trainer(
    lambda recipe, material, seed: (
        small_electra(material.world, recipe.tied, seed), electra_loss(recipe.disc_weight)
    ),
    lambda recipe, material, seed: material.batches(recipe, seed + 100, mix=PAPER_MIX),
)  # fmt: skip


def both_networks(run: Run) -> dict[str, float]:
    """On held-out stories: the generator's masked-token accuracy, the discriminator's ROC-AUC over
    real tokens, and the fraction of them that was replaced."""
    material = run.material
    draw = story_batches(material.heldout, material.world, 50, seed=1)
    batches = [draw(step) for step in range(HELDOUT // 50)]
    accuracy = material.masked_scores(run.model.generator)["masked_accuracy"]
    return {"masked_accuracy": accuracy, **replaced_token_scores(run.model, batches, run.seed)}


def mean_cosine(table: Tensor) -> float:
    """Of every two rows of a table (V, E): how alike the vectors of words are, in the mean."""
    rows = F.normalize(table.detach(), dim=-1)
    V = len(rows)
    return float((rows.sum(0).square().sum() - V) / (V * (V - 1)))


def tables_of(model: Electra) -> dict[str, float]:
    """How alike the words of each network's token table are; and the length of the discriminator's
    table less the generator's, the generator's being 1."""
    used = slice(FIRST_WORD, None)
    generator, discriminator = (
        getattr(network.encoder.embeddings, "token").weight.detach()[used]  # noqa: B009
        for network in (model.generator, model.discriminator)
    )
    apart = (discriminator - generator).norm() / generator.norm()
    return {
        "alike_generator": mean_cosine(generator),
        "alike_discriminator": mean_cosine(discriminator),
        "tables_apart": float(apart),
    }


def reached(run: Run) -> dict[str, Any]:
    """Both networks at the end, and what the kept one's vectors hold."""
    return {
        "parameters": count_parameters(run.model),
        **both_networks(run),
        **probes(merged(run.model.discriminator).encoder, run.material), **tables_of(run.model),
    }  # fmt: skip


def untrained_sharing(material: Stories, seed: int) -> dict[str, Any]:
    """The probes at random initialisation: what any training must beat."""

    def run() -> dict[str, Any]:
        model = small_electra(material.world, seed=seed).eval()
        return {"seed": seed, **probes(model.discriminator.encoder, material)}

    return kept("08-sharing-untrained", {"seed": seed}, material.world, run)


SHARED_EMBEDDINGS = Experiment(
    "08_embedding_sharing",
    SHARING,
    SHARING_SEEDS,
    prepare_sharing,
    train_sharing,
    reached,
    label="08-sharing-{tied}",
    curve=(LOOK_EVERY, both_networks),
    replayed=SHARING[V3],
    more={"untrained": lambda material: [untrained_sharing(material, s) for s in SHARING_SEEDS]},
)
