"""ERNIE of Tsinghua: text and entities side by side, fused in the upper layers (Zhang et al. 2019).
Not Baidu's ERNIE, which is another model of the same name: see ernie.py.

The lower blocks are BERT's. In a fusion block text attends to text, entities to entities; then
each token and the entity that is aligned with it meet in one hidden vector, from which both go on.
Residuals and LayerNorms stand where the released program has them; the paper's equations 3 to 5
leave them out. The entities' vectors come from TransE and stay fixed. B batch, T tokens, H hidden,
F feed-forward, K entities, E size of their vectors, N selected positions, M candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import BertConfig
from course_lib.encoder import (
    Block,
    Embeddings,
    Pooler,
    SelfAttention,
    activate,
    check_mask,
    initialise,
)
from course_lib.heads import MaskedLMHead, PairHead

KINDS = ("text", "mix", "fusion")  # BERT's block; fusion without and with attention among entities


@dataclass(frozen=True)
class FusionConfig(BertConfig):
    """The shape of Tsinghua's ERNIE; defaults are the paper's, section 4.1: six text blocks and six
    that fuse, together 114M parameters.

    cls_entity: position 0, [CLS], has an entity whose vector is zero, which all entities attend to,
    as in the program. The paper has none."""

    entity_size: int = 100
    entity_heads: int = 4
    layers: tuple[str, ...] = ("text",) * 6 + ("fusion",) * 6  # each of KINDS
    cls_entity: bool = False

    sizes: ClassVar[dict[str, int]] = {"entity_size": 1, "entity_heads": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.entity_size % self.entity_heads:
            raise ValueError(
                f"entity_size={self.entity_size} cannot be shared out to "
                f"entity_heads={self.entity_heads}; expected a multiple. Change one of the two."
            )
        if len(self.layers) != self.num_layers or not set(self.layers) <= set(KINDS):
            raise ValueError(
                f"layers={self.layers!r} was given for num_layers={self.num_layers}; expected as "
                f"many, each one of {', '.join(KINDS)}."
            )


@dataclass
class FusionOutput:
    """What the encoder returns."""

    last_hidden_state: Tensor  # (B, T, H)
    entity_state: Tensor  # (B, T, E), zeros where no entity is aligned
    pooler_output: Tensor | None = None  # (B, H)


class FusionBlock(nn.Module):
    """Attention in each stream by itself, then the aggregator (equations 3 to 5 of the paper)."""

    def __init__(self, config: FusionConfig, among_entities: bool = True) -> None:
        super().__init__()
        H, E, inner = config.hidden_size, config.entity_size, config.intermediate_size
        small = BertConfig(
            hidden_size=E,
            num_heads=config.entity_heads,
            attention_dropout=config.attention_dropout,
            kernels=config.kernels,
        )
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.entity_attention = SelfAttention(small) if among_entities else None
        self.entity_attention_norm = (
            nn.LayerNorm(E, eps=config.layer_norm_eps) if among_entities else None
        )
        self.text_in = nn.Linear(H, inner)
        self.entity_in = nn.Linear(E, inner, bias=False)  # the sum has one bias, the text's
        self.text_out = nn.Linear(inner, H)
        self.entity_out = nn.Linear(inner, E)
        self.text_norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.entity_norm = nn.LayerNorm(E, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.gelu_form = config.gelu_form

    def forward(
        self, x: Tensor, e: Tensor, mask: Tensor | None, aligned: Tensor
    ) -> tuple[Tensor, Tensor]:
        """x (B, T, H), e (B, T, E), mask (B, T) 1 at real tokens, aligned (B, T) 1 where an entity
        stands -> the same two after the block; e is zero where none stands."""
        attended, _, _ = self.attention(x, mask)
        x = self.attention_norm(x + self.dropout(attended))
        there = aligned[..., None].to(e.dtype)  # (B, T, 1)
        if self.entity_attention is not None and self.entity_attention_norm is not None:
            attended, _, _ = self.entity_attention(e, aligned)
            e = self.entity_attention_norm(e + self.dropout(attended)) * there
        h = activate(self.text_in(x) + self.entity_in(e), self.gelu_form)  # (B, T, F)
        x = self.text_norm(x + self.dropout(self.text_out(h)))
        e = self.entity_norm(e + self.dropout(self.entity_out(h))) * there
        return x, e


class FusionEncoder(nn.Module):
    """BERT's embeddings, then text and fusion blocks in the order of config.layers.

    entities (K, E): the fixed vectors, as `transe` gives them. Without them (None) the model reads
    text alone, and refuses entities."""

    entities: Tensor

    def __init__(
        self, config: FusionConfig, entities: Tensor | None = None, pooler: bool = False
    ) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = nn.ModuleList(
            Block(config) if kind == "text" else FusionBlock(config, kind == "fusion")
            for kind in config.layers
        )
        self.pooler = Pooler(config) if pooler else None
        self.apply(lambda module: initialise(module, config.initializer_range))
        vectors = torch.zeros(0, config.entity_size) if entities is None else entities.clone()
        if vectors.dim() != 2 or vectors.shape[1] != config.entity_size:
            raise ValueError(
                f"entity vectors of shape {tuple(vectors.shape)} were given; expected "
                f"(entities, {config.entity_size}). Set entity_size to the vectors' size."
            )
        self.register_buffer("entities", vectors)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        entity_ids: Tensor | None = None,
    ) -> FusionOutput:
        """As BERT's call; entity_ids (B, T): the entity of each position, −1 where none is, as
        `align` gives them. Raises ValueError for an entity that has no vector."""
        check_mask(input_ids, attention_mask)
        if entity_ids is None:
            entity_ids = torch.full_like(input_ids, -1)
        self._check_entities(input_ids, entity_ids)
        aligned = (entity_ids >= 0).long()  # (B, T)
        if self.config.cls_entity:
            aligned[:, 0] = 1
        x = self.embeddings(input_ids, token_type_ids)  # (B, T, H)
        e = x.new_zeros(*input_ids.shape, self.config.entity_size)  # (B, T, E)
        e[entity_ids >= 0] = self.entities[entity_ids[entity_ids >= 0]].to(e.dtype)
        for block in self.blocks:
            if isinstance(block, FusionBlock):
                x, e = block(x, e, attention_mask, aligned)
            else:
                x, _, _ = block(x, attention_mask)
        return FusionOutput(x, e, None if self.pooler is None else self.pooler(x))

    def _check_entities(self, input_ids: Tensor, entity_ids: Tensor) -> None:
        if entity_ids.shape != input_ids.shape:
            raise ValueError(
                f"entity_ids of shape {tuple(entity_ids.shape)} was given; expected that of "
                f"input_ids, {tuple(input_ids.shape)}: an entity a position, −1 for none."
            )
        low, high = (int(x) for x in entity_ids.aminmax())
        if low < -1 or high >= len(self.entities):
            raise ValueError(
                f"entity_ids from {low} to {high} were given; expected -1 for none, and entities "
                f"of the graph, below {len(self.entities)}. A mention whose entity the graph does "
                "not know gets -1."
            )


@dataclass
class FusionPreTrainingOutput:
    """Logits of the three tasks; the last two where they were wanted."""

    prediction_logits: Tensor  # (B, T, V), or (N, V)
    entity_logits: Tensor | None = None  # (number of align_at, M)
    seq_relationship_logits: Tensor | None = None  # (B, 2)


class EntityHead(nn.Module):
    """Dense, GELU, LayerNorm, then a dot product with each candidate's vector (equation 6)."""

    def __init__(self, config: FusionConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.entity_size)
        self.norm = nn.LayerNorm(config.entity_size, eps=config.layer_norm_eps)
        self.gelu_form = config.gelu_form
        initialise(self.dense, config.initializer_range)

    def forward(self, hidden: Tensor, candidates: Tensor) -> Tensor:
        """hidden (…, H), candidates (M, E) -> logits (…, M)."""
        x = self.norm(activate(self.dense(hidden), self.gelu_form))  # (…, E)
        return F.linear(x, candidates.to(x.dtype))


class FusionForPreTraining(nn.Module):
    """The encoder with the masked-word head, the entity head, and with a pooler the pair head."""

    def __init__(self, encoder: FusionEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = encoder.config
        self.mlm = MaskedLMHead(encoder.config, encoder.embeddings.token)
        self.dea = EntityHead(encoder.config)
        self.pair = PairHead(encoder.config) if encoder.pooler is not None else None

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        entity_ids: Tensor | None = None,
        predict_at: Tensor | None = None,
        align_at: Tensor | None = None,
        candidates: Tensor | None = None,
    ) -> FusionPreTrainingOutput:
        """predict_at, align_at: flat positions b·T + t of words to predict, and of tokens whose
        entity is to be predicted among `candidates` (M,), numbers of entities."""
        out = self.encoder(input_ids, attention_mask, token_type_ids, entity_ids)
        flat = out.last_hidden_state.flatten(0, 1)  # (B·T, H)
        words = out.last_hidden_state if predict_at is None else flat[predict_at]
        logits = None
        if align_at is not None and candidates is not None:
            logits = self.dea(flat[align_at], self.encoder.entities[candidates])
        pair = None if self.pair is None else self.pair(out.pooler_output)
        return FusionPreTrainingOutput(self.mlm(words), logits, pair)
