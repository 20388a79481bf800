"""GPT: BERT's blocks, but a token sees only itself and what stands before it (Radford et al. 2018,
section 3.1), arranged as GPT-2 (Radford et al. 2019, section 2.3): LayerNorm before each half of a
block and once at the end, no segments, no LayerNorm on the embeddings.

Because no position sees its own answer, all positions are predicted at once, and nothing is masked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Block, Embeddings, Encoder, Stack, gather_positions
from course_lib.heads import MaskedLMOutput
from course_lib.kernels.attention import causal_mask
from course_lib.kernels.unpadding import Packing


@dataclass(frozen=True)
class GptConfig(BertConfig):
    """The shape of a GPT; defaults are GPT-2 small."""

    vocab_size: int = 50_257  # byte-level BPE
    max_positions: int = 1_024
    type_vocab_size: int = 0  # no segments
    hidden_act: str = "gelu_new"
    layer_norm_eps: float = 1e-5


class PreNormBlock(Block):
    """BERT's block with each LayerNorm before its half instead of after the sum (pre-LN)."""

    def attend(
        self,
        x: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The first half; as Block's."""
        attended, weights, scores = self.attention(
            self.attention_norm(x), mask, output_attentions, output_positions
        )
        residual = x if output_positions is None else gather_positions(x, output_positions)
        return residual + self.dropout(attended), weights, scores

    def apply_feed_forward(self, x: Tensor) -> Tensor:
        """The second half."""
        return x + self.dropout(self.feed_forward(self.output_norm(x)))


class CausalStack(Stack):
    """Blocks in which each token sees itself and what stands before it; a LayerNorm at the end."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config, block=PreNormBlock)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(
        self, x: Tensor, mask: Tensor | Packing | None = None, *others: Any
    ) -> tuple[list[Tensor], list[Tensor | None], list[Tensor | None]]:
        """As Stack's; mask (B, T) is the padding's, or None. Raises ValueError for a Packing."""
        if isinstance(mask, Packing):
            raise ValueError(
                "remove_padding=True was given to a decoder; expected texts with their padding: "
                "who stands before whom is read from the positions. Leave it out."
            )
        if mask is None:
            mask = x.new_ones(x.shape[:2], dtype=torch.long)
        states, weights, scores = super().forward(x, causal_mask(mask), *others)
        return [*states[:-1], self.norm(states[-1])], weights, scores


def gpt_decoder(config: GptConfig) -> Encoder:
    """BERT's embeddings without their LayerNorm, and the causal stack."""
    embeddings = Embeddings(config)
    embeddings.norm = nn.Identity()
    embeddings.token.padding_idx = None  # here padding is a token like others
    return Encoder(config, embeddings, CausalStack(config))


class GptForNextToken(nn.Module):
    """The decoder, and as its head the token table again, without a bias."""

    def __init__(self, decoder: Encoder) -> None:
        super().__init__()
        self.decoder = decoder
        self.config = decoder.config

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **output_flags: bool
    ) -> MaskedLMOutput:
        """As the encoder's call; logits (B, T, V) at position t are for the token at t + 1."""
        out = self.decoder(input_ids, attention_mask, **output_flags)
        table: Any = self.decoder.embeddings.token
        logits = F.linear(out.last_hidden_state, table.weight)
        return MaskedLMOutput(logits, *out.optional)


def gpt(size: str = "small", **changes: Any) -> GptForNextToken:
    """A GPT-2, randomly initialised; `changes` override settings of the published size."""
    return GptForNextToken(gpt_decoder(published("gpt2", size, GptConfig, **changes)))
