"""What the two losses of ELECTRA ask of the token embeddings that its networks share, which is what
DeBERTa-v3's gradient-disentangled embedding sharing answers (He, Gao and Chen 2021); and what that
is worth: `08_embedding_sharing` trains with one table, with two, and with v3's.

The networks are lecture 07's: BERTs of two layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import combinations, product
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
    replaced_labels,
    replaced_token_loss,
)
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.teaching.results import REPLAYED, compared_runs, kept
from course_lib.teaching.shipped import micro_electra
from course_lib.text.tasks import (
    LabelledSequences,
    LabelledWords,
    slot_categories,
    swapped_words,
    unstated_facts,
)
from course_lib.text.world import MicroWorld, story_sequences
from course_lib.train.loop import Callback, History, Report, fit
from course_lib.train.metrics import evaluate
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


@dataclass(frozen=True)
class SharingMaterial:
    """The stories to learn from, held-out ones, and the four probes of the kept network."""

    world: MicroWorld
    train: PackedSequences
    heldout: PackedSequences
    words: dict[str, LabelledWords]
    facts: tuple[LabelledSequences, LabelledSequences]

    def probes(self, encoder: Encoder) -> dict[str, float]:
        """Accuracy of linear probes on the frozen vectors: two cloze-shaped (which slot does this
        word fill; which fact is unstated), two RTD-shaped (was this word swapped)."""
        found = {name: word_probe(encoder, words) for name, words in self.words.items()}
        return found | {"unstated": text_probe(encoder, *self.facts)}


PROBES = ("slots", "unstated", "swapped_repeated", "swapped_fact")


def prepare_sharing(world: MicroWorld | None = None) -> SharingMaterial:
    """Draw the stories (seed 0 of each split), pack them, and make the probes' tasks of them."""
    world = world or MicroWorld.load()
    told = world.stories(STORIES, seed=0)
    unseen = world.stories(TASK_STORIES, seed=0, split="heldout")
    words = {f"swapped_{kind}": swapped_words(world, unseen, kind, LENGTH)
             for kind in ("repeated", "fact")}  # fmt: skip
    return SharingMaterial(
        world,
        story_sequences(world, told, LENGTH),
        story_sequences(world, unseen[:HELDOUT], LENGTH),
        {"slots": slot_categories(world, unseen[:HELDOUT], LENGTH), **words},
        (unstated_facts(world, told, LENGTH)[:LABELLED], unstated_facts(world, unseen, LENGTH)),
    )


def train_sharing(
    recipe: SharingRecipe,
    material: SharingMaterial,
    *,
    seed: int = 0,
    steps: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> tuple[Electra, History]:
    """Train one recipe; all that differ in it read the same stories under the same masks."""
    model = small_electra(material.world, recipe.tied, seed)
    history = fit(
        model, electra_loss(recipe.disc_weight),
        story_batches(material.train, material.world, recipe.batch_size, seed + 100),
        steps=steps or recipe.steps, seed=seed, learning_rate=recipe.learning_rate,
        precision="float32", callbacks=callbacks,
    )  # fmt: skip
    return model, history


@torch.no_grad()
def both_networks(model: Electra, material: SharingMaterial, seed: int) -> dict[str, float]:
    """On held-out stories: the generator's masked-token accuracy, the discriminator's ROC-AUC over
    real tokens, and the fraction of them that was replaced."""
    from sklearn.metrics import roc_auc_score

    world = material.world
    scored = evaluate(model.generator, material.heldout, world.special, precision="float32")
    draw = story_batches(material.heldout, world, 50, seed=1)
    torch.manual_seed(seed)
    logits, labels = [], []
    for step in range(HELDOUT // 50):
        batch = draw(step)
        out = model(**batch.inputs)
        real = out.attention_mask.bool()
        true = replaced_labels(out.corrupted_ids, out.predict_at, batch.targets["labels"])
        logits.append(out.logits[real])
        labels.append(true[real])
    said, true = torch.cat(logits), torch.cat(labels)
    return {
        "masked_accuracy": scored.masked_accuracy,
        "auc": float(roc_auc_score(true.numpy(), said.numpy())),
        "replaced": true.float().mean().item(),
    }


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


def one_sharing(recipe: SharingRecipe, material: SharingMaterial, seed: int) -> dict[str, Any]:
    """One recipe, one seed: both networks on the way, and what the kept one's vectors hold at the
    end. Finished runs are read from the cache."""

    def run() -> dict[str, Any]:
        curve: list[dict[str, float]] = []

        def look(report: Report) -> None:
            if report.step % LOOK_EVERY == 0:
                model = report.model.eval()
                assert isinstance(model, Electra)
                curve.append({"step": report.step, **both_networks(model, material, seed)})
                model.train()

        model, history = train_sharing(recipe, material, seed=seed, callbacks=[look])
        kept_encoder = merged(model.discriminator).encoder
        reached = {name: value for name, value in curve[-1].items() if name != "step"}
        return {
            "seed": seed, "parameters": count_parameters(model), **reached,
            **material.probes(kept_encoder), **tables_of(model), "curve": curve,
            "seconds": round(history.seconds, 1),
        }  # fmt: skip

    settings = {"seed": seed, **asdict(recipe)}
    return kept(f"08-sharing-{recipe.tied}", settings, material.world, run)


def untrained_sharing(material: SharingMaterial, seed: int) -> dict[str, Any]:
    """The probes at random initialisation: what any training must beat."""

    def run() -> dict[str, Any]:
        model = small_electra(material.world, seed=seed).eval()
        return {"seed": seed, **material.probes(model.discriminator.encoder)}

    return kept("08-sharing-untrained", {"seed": seed}, material.world, run)


def replay_sharing(material: SharingMaterial) -> list[float]:
    """The first losses of v3's way, seed 0, in float32."""
    return train_sharing(SHARING[V3], material, steps=REPLAYED)[1].losses["total"]


def build_sharing() -> dict[str, Any]:
    """What data/results/08_embedding_sharing.json holds."""
    material = prepare_sharing()
    return compared_runs(
        SHARING, SHARING_SEEDS, material.world,
        lambda recipe, seed: one_sharing(recipe, material, seed),
        precision="float32", extends="08_embedding_sharing",
        replay=lambda: replay_sharing(material),
        untrained=lambda: [untrained_sharing(material, seed) for seed in SHARING_SEEDS],
    )  # fmt: skip
