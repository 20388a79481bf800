"""What the two losses of ELECTRA ask of the token embeddings that its networks share, which is what
DeBERTa-v3's gradient-disentangled embedding sharing answers (He, Gao and Chen 2021).

The networks are lecture 07's: BERTs of two layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import torch
from torch import Tensor

from course_lib.family.electra import DisentangledEmbedding, Electra, ElectraConfig, electra_from
from course_lib.heads import BertForMaskedLM, BertForReplacedTokens
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.replaced_tokens import PAPER_MIX, replaced_token_loss
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.teaching.shipped import micro_electra
from course_lib.text.world import MicroWorld, story_sequences

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
