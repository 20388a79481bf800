"""Nomic BERT (Nussbaum et al. 2024), an encoder made for search: BERT's block, norms behind its
halves, with rotary positions, SwiGLU, and no biases in a block's dense layers (norms and heads keep
theirs). Read in transformers' own program, `models/nomic_bert`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from course_lib.config import published
from course_lib.encoder import Block, Encoder
from course_lib.heads import BertForMaskedLM

from .eurobert import SwiGLU
from .modernbert import ModernBertConfig, modern_block, modernbert_encoder


@dataclass(frozen=True)
class NomicBertConfig(ModernBertConfig):
    """The shape of a Nomic BERT; defaults are nomic-embed-text-v1.5's in transformers."""

    vocab_size: int = 30_528
    num_layers: int = 12
    intermediate_size: int = 3_072
    max_positions: int = 2_048
    type_vocab_size: int = 2
    pad_token_id: int = 0
    hidden_act: str = "silu"
    layer_norm_eps: float = 1e-12
    biases: bool = True  # of norms and heads
    pre_norm: bool = False
    final_norm: bool = False
    global_base: float = 1_000.0
    global_every: int = 1
    depth_scaled_init: bool = False

    pooler: ClassVar[str] = "tanh"
    activations: ClassVar[tuple[str, ...]] = ("silu", "gelu", "gelu_new")


def nomicbert_block(config: NomicBertConfig, layer: int) -> Block:
    """ModernBERT's with SwiGLU, and dense layers without biases."""
    block = modern_block(config, layer)
    block.feed_forward = SwiGLU(config)
    for part in filter(lambda part: isinstance(part, nn.Linear), block.modules()):
        part.register_parameter("bias", None)
    return block


def nomicbert_encoder(config: NomicBertConfig, pooler: bool = False) -> Encoder:
    """ModernBERT's encoder out of these blocks; a pooler only where one is wanted."""
    return modernbert_encoder(config, pooler, block=nomicbert_block)


def nomicbert(size: str = "base", **changes: Any) -> Encoder:
    """A Nomic BERT encoder, randomly initialised; `changes` override settings of the size."""
    return nomicbert_encoder(published("nomicbert", size, NomicBertConfig, **changes))


def nomicbert_for_masked_lm(size: str = "base", **changes: Any) -> BertForMaskedLM:
    """The encoder and BERT's masked-word head."""
    return BertForMaskedLM(nomicbert(size, **changes))
