"""What lecture 05's experiments train: a small ALBERT, and the recipe that it begins from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from course_lib.encoder import Encoder
from course_lib.family.albert import AlbertConfig, albert_encoder, tables_of
from course_lib.heads import BertForPreTraining
from course_lib.text.world import MicroWorld


@dataclass(frozen=True)
class AlbertRecipe:
    """A small ALBERT on pairs of segments from a fixed finite set of stories."""

    steps: int
    num_layers: int
    embedding_size: int = 64
    sharing: str = "all"
    task: str = "SOP"  # of TASKS
    stories: int = 10_000
    heldout: int = 500
    length: int = 64
    batch_size: int = 32
    learning_rate: float = 2e-3
    initializer_range: float = 0.05


@dataclass(frozen=True)
class ScaledRecipe(AlbertRecipe):
    """One whose embedding tables and projection start this many times as large."""

    embedding_scale: float = 1.0


LIVE = AlbertRecipe(steps=1_000, num_layers=2)


def small_albert(recipe: AlbertRecipe, world: MicroWorld, seed: int) -> BertForPreTraining:
    """Random initialisation, 128 wide, no dropout."""
    torch.manual_seed(seed)
    config = AlbertConfig(
        vocab_size=world.special.vocab_size, max_positions=recipe.length, pad_token_id=0,
        num_layers=recipe.num_layers, hidden_size=128, num_heads=2, intermediate_size=512,
        embedding_size=recipe.embedding_size, sharing=recipe.sharing,
        initializer_range=recipe.initializer_range,
    )  # fmt: skip
    encoder = albert_encoder(config)
    if isinstance(recipe, ScaledRecipe):
        scale_embeddings(encoder, recipe.embedding_scale)
    return BertForPreTraining(encoder)


@torch.no_grad()
def scale_embeddings(encoder: Encoder, factor: float) -> None:
    """Multiply the tables and the projection, in place; the LayerNorm between them stays."""
    tables = tables_of(encoder)
    for part in (tables.token, tables.position, tables.segment, encoder.embeddings.project):
        assert isinstance(part, nn.Embedding | nn.Linear)
        part.weight.mul_(factor)
