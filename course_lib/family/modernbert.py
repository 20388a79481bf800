"""ModernBERT: BERT with what was learnt since (Warner et al. 2024, section 2): no biases, norms
before the halves of a block, rotary positions, gated feed-forward parts, and attention that is
local in two layers of three.

Each change is a setting of its own, and with none of them the model is BERT: see AS_BERT. Three
need none: embeddings with a norm and a tied decoder behind a dense layer are BERT's already, and
logits at the masked positions alone ("sparse prediction" in transformers) are what `predict_at`
gives from every model here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import (
    Block,
    Embeddings,
    Encoder,
    FeedForward,
    SelfAttention,
    Stack,
    activate,
    drop_biases,
    pooler_for,
    select_queries,
)
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.rotary import frequencies, rotary
from course_lib.kernels.sliding_window import sliding_window_attention, window_mask_and_self
from course_lib.kernels.unpadding import Packing

from .gpt import PreNormBlock

# Settings that turn every change off; one left out of them is a model with that change alone.
AS_BERT: dict[str, Any] = {
    "biases": True,
    "pre_norm": False,
    "final_norm": False,
    "rotary": False,
    "gated": False,
    "global_every": 1,
    "depth_scaled_init": False,
    "type_vocab_size": 2,
}


@dataclass(frozen=True)
class ModernBertConfig(BertConfig):
    """The shape of a ModernBERT; defaults are ModernBERT-base as released.

    biases: of dense layers and norms; the decoder has one in any case. pre_norm: norms before the
    halves of a block instead of after them; first_norm: also before the first block's attention,
    where the embeddings' norm has just been; final_norm: one after the last block. rotary: queries
    and keys turned by position, and no position table; global_base and local_base are the base of
    the angles in global and in local layers. gated: GeGLU. global_every: layers 0, n, 2n … see the
    whole text, the others `window` // 2 tokens on either side; 1: all see the whole.
    depth_scaled_init: matrices whose output is added to the states begin smaller by √(2L).
    classifier_pooling: what a pooler reads, "cls", the first token, or "mean", of all real ones.

    Raises ValueError for sizes below 1, a base that is not above 0, and rotary in odd heads."""

    vocab_size: int = 50_368
    num_layers: int = 22
    intermediate_size: int = 1_152  # F; with a gate the first dense layer is 2F wide
    max_positions: int = 8_192
    type_vocab_size: int = 0  # no segments
    pad_token_id: int = 50_283
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    layer_norm_eps: float = 1e-5
    biases: bool = False
    pre_norm: bool = True
    first_norm: bool = False
    final_norm: bool = True
    rotary: bool = True
    global_base: float = 160_000.0
    local_base: float = 10_000.0
    gated: bool = True
    global_every: int = 3
    window: int = 128
    depth_scaled_init: bool = True
    classifier_pooling: str = "cls"

    pooler: ClassVar[str] = "head"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"classifier_pooling": ("cls", "mean")}
    sizes: ClassVar[dict[str, int]] = {"global_every": 1, "window": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("global_base", "local_base"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)!r} was given; expected above 0.")
        if self.rotary:
            frequencies(self.head_size, self.global_base)  # raises for an odd head size

    @property
    def pools_mean(self) -> bool:
        """Whether a pooler reads the mean of a text's states."""
        return self.classifier_pooling == "mean"

    def is_global(self, layer: int) -> bool:
        """Whether a layer, counted from 0, sees the whole text."""
        return layer % self.global_every == 0


class ModernAttention(SelfAttention):
    """BERT's, with queries and keys turned by their positions, in a local layer within a window."""

    def __init__(self, config: ModernBertConfig, layer: int) -> None:
        super().__init__(config)
        whole = config.is_global(layer)
        self.window = None if whole else config.window
        base = config.global_base if whole else config.local_base
        self.base = base if config.rotary else None

    def forward(
        self,
        x: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """As SelfAttention's."""
        if self.window is not None and isinstance(mask, Packing):
            if not mask.contiguous:  # in the list tokens stand nearer than they do in the text
                return mask.unpad(self(mask.pad(x), mask.mask)[0]), None, None
        elif self.window is not None and (output_attentions or output_positions is not None):
            mask = window_mask_and_self(x, self.window, mask)  # type: ignore[arg-type]
        if self.base is None:
            return super().forward(x, mask, output_attentions, output_positions)
        query_states, mask = select_queries(x, mask, output_positions)
        q, k = self.query(query_states), self.key(x)
        q, k = self.apply_rotary(q, k, self.base, mask, output_positions)
        return self.multi_head(q, k, self.value(x), mask, output_attentions)

    def apply_rotary(
        self,
        query: Tensor,
        key: Tensor,
        base: float,
        mask: Tensor | Packing | None,
        query_positions: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Query and key turned; of a list of real tokens, each text's positions begin anew."""
        tokens, key_positions = key.shape[1], None
        if isinstance(mask, Packing):
            tokens = mask.shape[1]
            query_positions = key_positions = mask.positions % tokens  # (N,)
        heads = (-1, query.shape[-1] // self.num_heads)  # (…, T, H) -> (…, T, A, D)
        q, k = query.unflatten(-1, heads), key.unflatten(-1, heads)
        q, k = rotary(q, k, base, tokens, query_positions, key_positions)
        return q.flatten(-2), k.flatten(-2)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        dropout: float = 0.0,
        path: str = "auto",
    ) -> Tensor:
        """As SelfAttention's; a mask (B, T, T) has the window in it."""
        if self.window is None or (mask is not None and mask.dim() == 3):
            return super().attend(query, key, value, mask, dropout, path)
        return sliding_window_attention(query, key, value, self.window, mask, dropout, path)


class GatedFeedForward(FeedForward):
    """GeGLU (Shazeer 2020): half of the first dense layer goes through GELU, and times the other
    half into the second."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.expand = nn.Linear(config.hidden_size, 2 * config.intermediate_size)

    def forward(self, x: Tensor) -> Tensor:
        inner, gate = self.expand(x).chunk(2, dim=-1)  # (B, T, H) -> twice (B, T, F)
        return self.contract(activate(inner, self.gelu_form) * gate)  # (B, T, H)


def modern_block(config: ModernBertConfig, layer: int) -> Block:
    """A block of BERT's, or GPT's with its norms before the halves, with ModernBERT's parts."""
    kind = PreNormBlock if config.pre_norm else Block
    block = kind(config, ModernAttention(config, layer))
    if config.gated:
        block.feed_forward = GatedFeedForward(config)
    if config.pre_norm and layer == 0 and not config.first_norm:
        block.attention_norm = nn.Identity()  # type: ignore[assignment]
    return block


class ModernStack(Stack):
    """L of these blocks, and a norm at the end. block: makes one for a layer's number."""

    def __init__(
        self, config: ModernBertConfig, block: Callable[[Any, int], Block] = modern_block
    ) -> None:
        layer = count()
        super().__init__(config, block=lambda _: block(config, next(layer)))
        H, eps = config.hidden_size, config.layer_norm_eps
        self.norm = nn.LayerNorm(H, eps=eps) if config.final_norm else nn.Identity()

    def forward(
        self, x: Tensor, *others: Any
    ) -> tuple[list[Tensor], list[Tensor | None], list[Tensor | None]]:
        """As Stack's; the last states are normed."""
        states, weights, scores = super().forward(x, *others)
        return [*states[:-1], self.norm(states[-1])], weights, scores


def modernbert_encoder(
    config: ModernBertConfig,
    pooler: bool = False,
    block: Callable[[Any, int], Block] = modern_block,
) -> Encoder:
    """BERT's encoder out of ModernBERT's parts; a pooler only where one is wanted."""
    embeddings = Embeddings(config, positions=not config.rotary)
    stack = ModernStack(config, block)
    if not config.biases:
        drop_biases(embeddings)
        drop_biases(stack)
    encoder = Encoder(config, embeddings, stack, pooler_for(config) if pooler else None)
    if config.depth_scaled_init:
        shrink_outputs(stack)
    return encoder


@torch.no_grad()
def shrink_outputs(stack: Stack) -> None:
    """Divide by √(2L) the matrices that write into the states, 2L in all, so that the variance of
    what they add up to does not grow with depth."""
    for block in stack.blocks:
        for dense in (block.attention.output, block.feed_forward.contract):  # type: ignore
            dense.weight.div_(math.sqrt(2 * len(stack.blocks)))  # type: ignore


def modernbert(size: str = "base", **changes: Any) -> Encoder:
    """A ModernBERT encoder, randomly initialised; `changes` override settings of the published
    size, "base" or "large"."""
    return modernbert_encoder(published("modernbert", size, ModernBertConfig, **changes))


def modernbert_for_masked_lm(size: str = "base", **changes: Any) -> BertForMaskedLM:
    """The encoder and the masked-word head, whose dense layer and norm have no biases either."""
    return BertForMaskedLM(modernbert(size, **changes))
