"""MobileBERT: BERT as deep as BERT-large and a quarter as wide inside its blocks, and the teacher
it learns from (Sun et al. 2020, section 3).

States are H wide between the blocks and N wide inside: a bottleneck leads in, another out. What
that takes from the feed-forward part, several of them in a row give back. The teacher, IB-BERT, is
the same with N above H: an inverted bottleneck. How it teaches, is in
objectives/knowledge_transfer.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import (
    Embeddings,
    Encoder,
    FeedForward,
    SelfAttention,
    Stack,
    gather_positions,
    pooler_for,
    select_queries,
)
from course_lib.heads import BertForMaskedLM, BertForPreTraining
from course_lib.kernels.attention import attention_reference
from course_lib.kernels.unpadding import Packing


@dataclass(frozen=True)
class MobileBertConfig(BertConfig):
    """The shape of a MobileBERT; defaults are the released one.

    normalization: "no_norm", γ·h + β, or "layer_norm". attention_input: what attention reads.
    "shared": query and key a bottleneck of their own, the values the wide states; "wide": all the
    wide states (the teacher); "bottleneck": all the block's bottleneck (the tiny one).
    classifier_activation: whether the pooler has BERT's dense layer and tanh, or is [CLS] as it is.
    masked_score: the score of a hidden key, −6 in the authors' program, which was made for eight
    bits; None: minus infinity, as in transformers.

    Raises ValueError for other values, and for sizes that do not fit together."""

    hidden_size: int = 512  # H, between blocks
    num_layers: int = 24
    num_heads: int = 4
    intermediate_size: int = 512
    hidden_act: str = "relu"
    hidden_dropout: float = 0.0
    embedding_size: int = 128  # E
    bottleneck_size: int = 128  # N, inside blocks
    num_feed_forwards: int = 4
    normalization: str = "no_norm"
    attention_input: str = "shared"
    classifier_activation: bool = False
    masked_score: float | None = None

    activations: ClassVar[tuple[str, ...]] = ("gelu", "gelu_new", "relu")
    widened_decoder: ClassVar[bool] = True

    @property
    def pooler(self) -> str:  # type: ignore[override]
        """BERT's, or none of its own."""
        return "tanh" if self.classifier_activation else "first"

    sizes: ClassVar[dict[str, int]] = {
        "embedding_size": 1, "bottleneck_size": 1, "num_feed_forwards": 1,
    }  # fmt: skip
    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "normalization": ("no_norm", "layer_norm"),
        "attention_input": ("shared", "wide", "bottleneck"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.embedding_size >= self.hidden_size:
            raise ValueError(
                f"embedding_size={self.embedding_size} was given; expected less than hidden_size="
                f"{self.hidden_size}: the decoder's columns beside the token table fill it up."
            )
        if self.bottleneck_size % self.num_heads:
            raise ValueError(
                f"bottleneck_size={self.bottleneck_size} cannot be shared out to num_heads="
                f"{self.num_heads}; expected a multiple of it."
            )

    @property
    def head_size(self) -> int:
        """D: the heads divide the bottleneck."""
        return self.bottleneck_size // self.num_heads


class NoNorm(nn.Module):
    """γ∘h + β: LayerNorm's learned scale and shift, without mean and variance (section 3.3)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.bias


def norm_of(config: MobileBertConfig, size: int) -> nn.Module:
    """The configuration's kind of normalisation, for vectors of this size."""
    if config.normalization == "no_norm":
        return NoNorm(size)
    return nn.LayerNorm(size, eps=config.layer_norm_eps)


class TrigramEmbeddings(Embeddings):
    """Each token's vector is made of three rows of the embedding matrix, E wide: the next token's,
    its own, the previous token's; zeros past the ends. Positions and segments have width H."""

    def __init__(self, config: MobileBertConfig) -> None:
        super().__init__(config)
        E, H = config.embedding_size, config.hidden_size
        self.token = nn.Embedding(config.vocab_size, E, padding_idx=config.pad_token_id)
        self.project = nn.Linear(3 * E, H)
        self.norm = norm_of(config, H)

    def token_embeddings(self, input_ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, H)."""
        own = self.token(input_ids)  # (B, T, E)
        edge = torch.zeros_like(own[:, :1])
        following = torch.cat([own[:, 1:], edge], dim=1)
        preceding = torch.cat([edge, own[:, :-1]], dim=1)
        return self.project(torch.cat([following, own, preceding], dim=-1))  # (B, T, 3E) -> H


class Bottleneck(nn.Module):
    """From H to N: dense, then the normalisation."""

    def __init__(self, config: MobileBertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.bottleneck_size)
        self.norm = norm_of(config, config.bottleneck_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.dense(x))  # (B, T, H) -> (B, T, N)


def inner_config(config: MobileBertConfig) -> BertConfig:
    """BERT's configuration for what stands inside the bottleneck, N wide."""
    return BertConfig(
        hidden_size=config.bottleneck_size, num_heads=config.num_heads, kernels=config.kernels,
        intermediate_size=config.intermediate_size, attention_dropout=config.attention_dropout,
    )  # fmt: skip


class BottleneckAttention(SelfAttention):
    """BERT's attention at width N; its inputs may be H wide (figure 1 of the paper)."""

    def __init__(self, config: MobileBertConfig) -> None:
        H, N = config.hidden_size, config.bottleneck_size
        super().__init__(inner_config(config))
        self.masked_score = config.masked_score
        if config.attention_input == "wide":
            self.query, self.key = nn.Linear(H, N), nn.Linear(H, N)
        if config.attention_input != "bottleneck":
            self.value = nn.Linear(H, N)

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
        *,
        value_states: Tensor,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """As SelfAttention's; value_states (B, T, …): what is gathered."""
        query_states, mask = select_queries(x, mask, output_positions)
        q, k, v = self.query(query_states), self.key(x), self.value(value_states)
        return self.multi_head(q, k, v, mask, output_attentions)

    def multi_head(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """As SelfAttention's. Raises ValueError for a Packing where hidden keys have a score."""
        if self.masked_score is None:
            return super().multi_head(query, key, value, mask, output_attentions)
        if isinstance(mask, Packing):
            raise ValueError(
                f"remove_padding=True was given with masked_score={self.masked_score}; expected "
                "masked_score=None: else padding has weight, and cannot be left out."
            )
        q, k, v = (self._heads(x) for x in (query, key, value))
        dropout = self.dropout if self.training else 0.0
        attended, weights, scores = attention_reference(q, k, v, mask, dropout, self.masked_score)
        output = self.output(attended.transpose(1, 2).flatten(2))
        return (output, weights, scores) if output_attentions else (output, None, None)


def inner_feed_forward(config: MobileBertConfig) -> FeedForward:
    """BERT's at width N, with the configuration's own activation."""
    part = FeedForward(inner_config(config))
    part.gelu_form = config.gelu_form
    return part


class StackedFeedForward(nn.Module):
    """One feed-forward part with its residual and normalisation, N wide."""

    def __init__(self, config: MobileBertConfig) -> None:
        super().__init__()
        self.feed_forward = inner_feed_forward(config)
        self.norm = norm_of(config, config.bottleneck_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.feed_forward(x))  # (B, T, N)


class MobileBlock(nn.Module):
    """A bottleneck, BERT's block with several feed-forward parts, and a second bottleneck.

    The residual after attention adds the first bottleneck's output; the outer one, the block's
    input. Dropout acts only on the second bottleneck."""

    def __init__(self, config: MobileBertConfig) -> None:
        super().__init__()
        H, N, count = config.hidden_size, config.bottleneck_size, config.num_feed_forwards
        self.reads = config.attention_input
        self.enter = Bottleneck(config)
        self.shared = Bottleneck(config) if self.reads == "shared" else None
        self.attention = BottleneckAttention(config)
        self.attention_norm = norm_of(config, N)
        self.stacked = nn.ModuleList(StackedFeedForward(config) for _ in range(count - 1))
        self.feed_forward = inner_feed_forward(config)
        self.feed_forward_norm = norm_of(config, N)
        self.leave = nn.Linear(N, H)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.output_norm = norm_of(config, H)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """As Block's."""
        inner = self.enter(x)  # (B, T, N)
        value_states = inner if self.reads == "bottleneck" else x
        read = value_states if self.shared is None else self.shared(x)
        attended, weights, scores = self.attention(
            read, mask, output_attentions, output_positions, value_states=value_states
        )
        if output_positions is not None:
            x, inner = (gather_positions(state, output_positions) for state in (x, inner))
        inner = self.attention_norm(inner + attended)
        for part in self.stacked:
            inner = part(inner)
        inner = self.feed_forward_norm(inner + self.feed_forward(inner))
        return self.output_norm(x + self.dropout(self.leave(inner))), weights, scores


def mobilebert_encoder(config: MobileBertConfig, pooler: bool = True) -> Encoder:
    """BERT's encoder out of MobileBERT's parts."""
    return Encoder(
        config,
        TrigramEmbeddings(config),
        Stack(config, block=MobileBlock),  # type: ignore[arg-type]
        pooler_for(config) if pooler else None,
    )


def mobilebert(size: str = "base", *, pooler: bool = True, **changes: Any) -> Encoder:
    """A MobileBERT encoder, randomly initialised; `changes` override settings of the published
    size, "base" or "tiny"."""
    return mobilebert_encoder(published("mobilebert", size, MobileBertConfig, **changes), pooler)


def mobilebert_for_masked_lm(size: str = "base", **changes: Any) -> BertForMaskedLM:
    """The encoder, without pooler, and the masked-word head, whose decoder joins columns of its own
    to the token table."""
    return BertForMaskedLM(mobilebert(size, pooler=False, **changes))


def mobilebert_for_pretraining(size: str = "base", **changes: Any) -> BertForPreTraining:
    """The encoder with both heads of BERT's pre-training."""
    return BertForPreTraining(mobilebert(size, **changes))


def ib_bert(size: str = "large", *, pooler: bool = True, **changes: Any) -> Encoder:
    """MobileBERT's teacher: inverted bottleneck, GELU, LayerNorm, one feed-forward part a block.
    transformers has no such model."""
    return mobilebert_encoder(published("ib-bert", size, MobileBertConfig, **changes), pooler)


def ib_bert_for_masked_lm(size: str = "large", **changes: Any) -> BertForMaskedLM:
    """The teacher, without pooler, and its masked-word head."""
    return BertForMaskedLM(ib_bert(size, pooler=False, **changes))


@torch.no_grad()
def copy_all_but_blocks(student: BertForMaskedLM, teacher: BertForMaskedLM) -> BertForMaskedLM:
    """The student with what of the teacher's weights has its names and shapes outside the blocks,
    embeddings and head; so the authors' program begins. A LayerNorm's γ and β are no NoNorm's: the
    embeddings' are copied only to their own kind.

    Raises ValueError where vocabularies or widths differ."""
    ours, theirs = student.config, teacher.config
    for name in ("vocab_size", "hidden_size", "embedding_size", "max_positions"):
        if getattr(ours, name) != getattr(theirs, name):
            raise ValueError(
                f"a student with {name}={getattr(ours, name)} and a teacher with "
                f"{getattr(theirs, name)} were given; expected the same: they share embeddings."
            )
    kept = [".stack."]
    if ours.normalization != theirs.normalization:  # type: ignore[attr-defined]
        kept.append("embeddings.norm.")
    state = teacher.state_dict()
    shared = {name: state[name] for name in state if not any(part in name for part in kept)}
    student.load_state_dict(shared, strict=False)
    return student
