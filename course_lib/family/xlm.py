"""XLM: BERT that is told the language of every token (Lample and Conneau 2019).

The model differs in little: where BERT adds the vector of a segment, XLM adds the vector of a
language; states at padding are set to zero; words are predicted by the token table alone, without
a layer before it; and a causal mask makes the same network a model of the next token (CLM). What
is new is in the objectives: objectives/translation_lm.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Encoder, Stack, gather_positions, pooler_for
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.attention import causal_mask
from course_lib.kernels.unpadding import Packing


@dataclass(frozen=True)
class XlmConfig(BertConfig):
    """The shape of an XLM; defaults are the released model of 15 languages.

    type_vocab_size: how many languages; 0 for none to be told, as in the released models of 1, 17
    and 100. Raises ValueError for 1: one language needs no vector, and transformers gives it none.
    """

    vocab_size: int = 95_000  # BPE, 80,000 merges shared by the languages
    hidden_size: int = 1_024
    num_heads: int = 8
    intermediate_size: int = 4_096
    type_vocab_size: int = 15
    pad_token_id: int = 2
    causal: bool = False  # a token sees only itself and what stands before it
    sinusoidal: bool = False  # positions begin as sines and cosines

    activations: ClassVar[tuple[str, ...]] = ("gelu", "relu")
    pooler: ClassVar[str] = "first"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.type_vocab_size == 1:
            raise ValueError(
                "type_vocab_size=1 was given; expected 2 or more languages, or 0: a single "
                "language needs no vector."
            )


class XlmStack(Stack):
    """BERT's blocks; states at padding are zero; with `causal`, no token attends to later ones."""

    def __init__(self, config: XlmConfig) -> None:
        super().__init__(config)
        self.causal = config.causal

    def forward(
        self,
        x: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
    ) -> tuple[list[Tensor], list[Tensor | None], list[Tensor | None]]:
        """As Stack's. Raises ValueError for a Packing where the model is causal."""
        if isinstance(mask, Packing):
            if self.causal:
                raise ValueError(
                    "remove_padding=True was given to a causal XLM; expected texts with their "
                    "padding: who stands before whom is read from the positions. Leave it out."
                )
            return super().forward(x, mask, output_attentions, output_positions)
        if mask is None:
            mask = x.new_ones(x.shape[:2], dtype=torch.long)
        seen = causal_mask(mask) if self.causal else mask
        states, weights, scores = super().forward(x, seen, output_attentions, output_positions)
        # Nobody looks at padding, so zeros behind the last layer are zeros after each.
        real = mask[..., None].to(x.dtype)  # (B, T, 1)
        at_last = real if output_positions is None else gather_positions(real, output_positions)
        return [*(state * real for state in states[:-1]), states[-1] * at_last], weights, scores


class TiedOutput(nn.Module):
    """The token table as decoder, with a bias of its own: XLM's whole output layer."""

    def __init__(self, config: BertConfig, token_embedding: nn.Embedding) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self._tied = (token_embedding,)  # in a tuple, as in MaskedLMHead

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (…, H) -> logits (…, V)."""
        return F.linear(hidden, self._tied[0].weight, self.bias)


class XlmForLanguageModel(BertForMaskedLM):
    """The encoder and its output layer, for all three objectives: MLM, TLM, and CLM if it is
    causal; then the logits at position t are for the token at t + 1."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.mlm = TiedOutput(encoder.config, encoder.embeddings.token)  # type: ignore


def sines_and_cosines(positions: int, width: int) -> Tensor:
    """(positions, width) float64: sin(p / 10000^(j/width)) in the even columns j, the cosine of the
    same angle beside it (Vaswani et al. 2017, section 3.5)."""
    column = torch.arange(width)
    frequency = 10_000 ** (-(column - column % 2).double() / width)
    angle = torch.arange(positions)[:, None] * frequency  # (positions, width)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def xlm_encoder(config: XlmConfig, pooler: bool = False) -> Encoder:
    """BERT's encoder out of XLM's parts; `token_type_ids` are each token's language (`langs` in the
    authors' program), language 0 if left out. A pooler only where one is wanted.

    Sines and cosines are where positions begin, and they are trained on, as in transformers 5; the
    authors' program holds them fixed: `encoder.embeddings.position.requires_grad_(False)`."""
    encoder = Encoder(config, stack=XlmStack(config), pooler=pooler_for(config) if pooler else None)
    table: Any = encoder.embeddings.position
    if config.sinusoidal and not table.weight.is_meta:
        with torch.no_grad():
            table.weight.copy_(sines_and_cosines(config.max_positions, config.hidden_size))
    return encoder


def xlm(size: str = "xnli15", *, pooler: bool = False, **changes: Any) -> Encoder:
    """An XLM encoder, randomly initialised; `changes` override settings of the published size:
    "xnli15" (15 languages), "en", "17", "100"."""
    return xlm_encoder(published("xlm", size, XlmConfig, **changes), pooler)


def xlm_for_language_model(size: str = "xnli15", **changes: Any) -> XlmForLanguageModel:
    """The encoder and its output layer; causal=True for CLM."""
    return XlmForLanguageModel(xlm(size, **changes))
