"""EuroBERT: Llama's block, read in both directions (Boizard et al. 2025, section 2), as its
difference from ModernBERT: a norm that subtracts no mean, a gate with SiLU instead of GELU, heads
that share keys and values, no norm on the embeddings, every layer global, and a decoder of its own
instead of the token table. Biases: none at all.

Each change is a setting, as in modernbert.py: with `norm="layer_norm"`, `hidden_act="gelu"`,
`num_key_value_heads=0` and `embedding_norm=True` an encoder computes what ModernBERT's does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Block, Encoder, FeedForward, activate, initialise
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.unpadding import Packing
from course_lib.kernels.upcast import upcast

from .modernbert import ModernAttention, ModernBertConfig, modern_block, modernbert_encoder


@dataclass(frozen=True)
class EuroBertConfig(ModernBertConfig):
    """The shape of a EuroBERT; defaults are EuroBERT-210m as released.

    norm: "rms_norm" or "layer_norm"; embedding_norm: whether there is one on the embeddings.
    num_key_value_heads: G, of which each serves A/G heads; 0: one a head, as elsewhere.
    classifier_pooling: "cls", "mean", or "late", where each token goes through the pooler and the
    mean is taken of what comes out. Raises ValueError where G does not divide A."""

    vocab_size: int = 128_256
    num_layers: int = 12
    intermediate_size: int = 3_072
    pad_token_id: int = 128_001
    hidden_act: str = "silu"
    first_norm: bool = True
    global_base: float = 250_000.0
    global_every: int = 1
    depth_scaled_init: bool = False
    classifier_pooling: str = "late"
    norm: str = "rms_norm"
    embedding_norm: bool = False
    num_key_value_heads: int = 0

    pooler: ClassVar[str] = "gelu"
    activations: ClassVar[tuple[str, ...]] = ("silu", "gelu", "gelu_new")
    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "classifier_pooling": ("cls", "mean", "late"),
        "norm": ("rms_norm", "layer_norm"),
    }
    sizes: ClassVar[dict[str, int]] = {**ModernBertConfig.sizes, "num_key_value_heads": 0}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.num_key_value_heads:
            object.__setattr__(self, "num_key_value_heads", self.num_heads)
        if self.num_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_key_value_heads={self.num_key_value_heads} was given for {self.num_heads} "
                "heads; expected a number that divides it: each serves as many heads."
            )

    @property
    def pools_late(self) -> bool:
        """Whether the pooler reads every token, and the mean comes after it."""
        return self.classifier_pooling == "late"


class RMSNorm(nn.Module):
    """A vector over the root of its mean square, times a weight (Zhang and Sennrich 2019): of
    LayerNorm's two steps the first, taking off the mean, is left out, and so is the bias."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """(…, H) -> (…, H). Squares are added up in float32 or better."""
        exact = upcast(x)
        scale = (exact.square().mean(dim=-1, keepdim=True) + self.eps).rsqrt()  # (…, 1)
        return (self.weight * (exact * scale)).to(x.dtype)


class GroupedAttention(ModernAttention):
    """Fewer keys and values than queries (Ainslie et al. 2023): G heads of them, each for A/G heads
    of queries. Only the two projections get smaller: scores are as many as before."""

    def __init__(self, config: EuroBertConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.shared_by = config.num_heads // config.num_key_value_heads  # A/G
        self.head_size = config.head_size
        width = config.num_key_value_heads * config.head_size
        self.key = nn.Linear(config.hidden_size, width)
        self.value = nn.Linear(config.hidden_size, width)

    def multi_head(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """As SelfAttention's, of keys and values (…, G·D)."""
        key, value = self.repeat_heads(key), self.repeat_heads(value)
        return super().multi_head(query, key, value, mask, output_attentions)

    def repeat_heads(self, x: Tensor) -> Tensor:
        """Each head repeated once for every query head that shares it: (…, G·D) -> (…, A·D)."""
        heads = x.unflatten(-1, (-1, self.head_size))  # (…, G, D)
        return heads.repeat_interleave(self.shared_by, dim=-2).flatten(-2)


class SwiGLU(FeedForward):
    """ModernBERT's gated part, its two first layers apart (Shazeer 2020): the one goes through
    SiLU, x · sigmoid(x), or through GELU, and times the other into the last."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.gate = nn.Linear(config.hidden_size, config.intermediate_size)

    def forward(self, x: Tensor) -> Tensor:
        inner = activate(self.expand(x), self.gelu_form)  # (B, T, H) -> (B, T, F)
        return self.contract(inner * self.gate(x))  # (B, T, H)


def eurobert_block(config: EuroBertConfig, layer: int) -> Block:
    """ModernBERT's block with EuroBERT's halves."""
    block = modern_block(config, layer)
    block.attention = GroupedAttention(config, layer)
    if config.gated:
        block.feed_forward = SwiGLU(config)
    return block


def with_rms_norms(module: nn.Module) -> None:
    """Put an RMSNorm in the place of every LayerNorm inside."""
    for name, part in module.named_children():
        if isinstance(part, nn.LayerNorm):
            setattr(module, name, RMSNorm(part.normalized_shape[0], part.eps))
        else:
            with_rms_norms(part)


def eurobert_encoder(config: EuroBertConfig, pooler: bool = False) -> Encoder:
    """ModernBERT's encoder out of these parts; a pooler only where one is wanted."""
    encoder = modernbert_encoder(config, pooler, block=eurobert_block)
    if not config.embedding_norm:
        encoder.embeddings.norm = nn.Identity()
    if config.norm == "rms_norm":
        with_rms_norms(encoder)
    return encoder


class DecoderHead(nn.Module):
    """One logit a word from a matrix of its own, without a bias, and nothing before it."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, H) -> logits (…, V)."""
        return self.decoder(hidden)


class EuroBertForMaskedLM(BertForMaskedLM):
    """The encoder and a decoder that is not the token table."""

    head: ClassVar[type[nn.Module]] = DecoderHead

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.mlm = self.head(encoder.config)  # type: ignore[assignment]
        self.mlm.apply(lambda module: initialise(module, encoder.config.initializer_range))


def eurobert(size: str = "210m", **changes: Any) -> Encoder:
    """A EuroBERT encoder, randomly initialised; `changes` override settings of the published
    size, "210m" or "2.1b"."""
    return eurobert_encoder(published("eurobert", size, EuroBertConfig, **changes))


def eurobert_for_masked_lm(size: str = "210m", **changes: Any) -> EuroBertForMaskedLM:
    """The encoder and its decoder."""
    return EuroBertForMaskedLM(eurobert(size, **changes))
