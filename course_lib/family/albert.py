"""ALBERT: BERT with factorised embeddings, and one block used L times (Lan et al. 2019).

The tables are E wide and one projection leads to H, so the vocabulary costs V·E + E·H instead of
V·H. Every layer runs the same block: the weights shrink L times, the FLOPs not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Block, Embeddings, Encoder, Layer, Pooler, Stack, count_parameters
from course_lib.heads import BertForPreTraining

SHARING = ("all", "attention", "feed_forward", "none")


@dataclass(frozen=True)
class AlbertConfig(BertConfig):
    """The shape of an ALBERT; defaults are ALBERT-base, version 2 (no dropout).

    sharing: which half of a block is shared; num_groups: among how many groups of neighbouring
    layers. Raises ValueError for other values, and for groups that do not divide the layers.
    """

    vocab_size: int = 30_000  # SentencePiece
    embedding_size: int = 128  # E
    sharing: str = "all"
    num_groups: int = 1
    hidden_act: str = "gelu_new"
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0

    sizes: ClassVar[dict[str, int]] = {"embedding_size": 1}
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"sharing": SHARING}

    def __post_init__(self) -> None:
        super().__post_init__()
        groups, layers = self.num_groups, self.num_layers
        if not 1 <= groups <= max(1, layers) or layers % groups:
            raise ValueError(
                f"num_groups={groups!r} was given for {layers} layers; expected a number that "
                "divides them: 1 for one block in all, num_layers for a block in each."
            )


class FactorisedEmbeddings(nn.Module):
    """BERT's embeddings at width E, LayerNorm included, then one projection to H (section 3.1)."""

    def __init__(self, config: BertConfig, size: int) -> None:
        super().__init__()
        self.tables = Embeddings(replace(config, hidden_size=size, num_heads=1))
        self.project = nn.Linear(size, config.hidden_size)

    @property
    def token(self) -> nn.Embedding:
        """The table V×E, which the MLM head uses again."""
        return self.tables.token

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        return self.project(self.tables(input_ids, token_type_ids))  # (B, T, E) -> (B, T, H)


def tables_of(encoder: Encoder) -> Embeddings:
    """The embedding tables themselves, with or without a projection behind them."""
    embeddings = encoder.embeddings
    tables = embeddings.tables if isinstance(embeddings, FactorisedEmbeddings) else embeddings
    assert isinstance(tables, Embeddings)
    return tables


def sharing_plan(config: AlbertConfig) -> list[tuple[int, int]]:
    """For each layer, the block whose attention it uses and the one whose feed-forward half."""
    size = config.num_layers // config.num_groups
    layers = range(config.num_layers)
    if config.sharing == "all":
        return [(layer // size, layer // size) for layer in layers]
    first = [layer - layer % size for layer in layers]  # of the layer's group
    return [
        (
            first[layer] if config.sharing == "attention" else layer,
            first[layer] if config.sharing == "feed_forward" else layer,
        )
        for layer in layers
    ]


class SharedStack(Stack):
    """L layers built from fewer blocks, as `sharing_plan` says; a half no layer uses is left out.

    plan: for each layer the numbers of the blocks whose attention and feed-forward half it uses."""

    def __init__(self, config: BertConfig, plan: Sequence[tuple[int, int]]) -> None:
        nn.Module.__init__(self)
        self.plan = list(plan)
        self.blocks = nn.ModuleList(
            Block(config) for _ in range(1 + max(map(max, plan), default=-1))
        )
        for number, block in enumerate(self.blocks):
            if number not in {attention for attention, _ in plan}:
                del block.attention, block.attention_norm
            if number not in {feed_forward for _, feed_forward in plan}:
                del block.feed_forward, block.output_norm

    def layers(self) -> list[Layer]:
        """What is applied, in order; a layer's halves may belong to two blocks."""
        return [partial(apply_halves, self.blocks[a], self.blocks[f]) for a, f in self.plan]


def apply_halves(attention: Any, feed_forward: Any, *inputs: Any) -> tuple[Tensor, Any, Any]:
    x, weights, scores = attention.attend(*inputs)
    return feed_forward.apply_feed_forward(x), weights, scores


def albert_encoder(config: AlbertConfig, pooler: bool = True) -> Encoder:
    """BERT's encoder built from ALBERT's two parts."""
    return Encoder(
        config,
        FactorisedEmbeddings(config, config.embedding_size),
        SharedStack(config, sharing_plan(config)),
        Pooler(config) if pooler else None,
    )


def albert(size: str = "base", *, pooler: bool = True, **changes: Any) -> Encoder:
    """An ALBERT encoder, randomly initialised; `changes` override settings of the published
    size."""
    return albert_encoder(published("albert", size, AlbertConfig, **changes), pooler)


def albert_for_pretraining(size: str = "base", **changes: Any) -> BertForPreTraining:
    """The encoder with the MLM head and the pair head, which answers SOP."""
    return BertForPreTraining(albert(size, **changes))


def parameter_breakdown(config: BertConfig) -> dict[str, int]:
    """The encoder's parameters by part: embeddings (tables and norm), projection (E to H; BERT has
    none), blocks, pooler. Counted on the modules themselves, whose weights are never made.

    config: an AlbertConfig gives an ALBERT, a plain BertConfig a BERT.
    """
    with torch.device("meta"):
        if isinstance(config, AlbertConfig):
            encoder = albert_encoder(config)
        else:
            encoder = Encoder(config, pooler=Pooler(config))
    embeddings, pooler = encoder.embeddings, encoder.pooler
    projection = 0
    if isinstance(embeddings, FactorisedEmbeddings):
        projection = count_parameters(embeddings.project)
    return {
        "embeddings": count_parameters(embeddings) - projection,
        "projection": projection,
        "blocks": count_parameters(encoder.stack),
        "pooler": 0 if pooler is None else count_parameters(pooler),
    }
