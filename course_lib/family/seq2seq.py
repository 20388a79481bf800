"""An encoder and a decoder: one reads a text, the other writes another (Vaswani et al. 2017,
section 3.1), arranged as BART, whose blocks are BERT's (Lewis et al. 2019, section 2.1).

A block of the decoder has a third part between BERT's two: cross-attention, in which its own
vectors are the queries, and the encoder's the keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Block, Embeddings, Encoder, SelfAttention, check_mask, initialise
from course_lib.kernels.attention import causal_mask


@dataclass(frozen=True)
class BartConfig(BertConfig):
    """The shape of a BART; defaults are BART-base, as released.

    num_layers: of the encoder, and as many of the decoder."""

    vocab_size: int = 50_265
    num_layers: int = 6
    max_positions: int = 1_026  # 1,024 for text; the first two rows are never read
    type_vocab_size: int = 0
    pad_token_id: int = 1
    layer_norm_eps: float = 1e-5

    @property
    def longest_text(self) -> int:
        """Text begins at row 2 of the position table, whatever the padding's id is."""
        return self.max_positions - 2


@dataclass
class Seq2SeqOutput:
    """What the decoder says, under transformers' names; the last three when asked for."""

    logits: Tensor  # (B, U, V), U positions of the decoder's text
    encoder_last_hidden_state: Tensor  # (B, T, H)
    decoder_hidden_states: tuple[Tensor, ...] | None = None  # L + 1 of (B, U, H)
    decoder_attentions: tuple[Tensor, ...] | None = None  # L of (B, A, U, U)
    cross_attentions: tuple[Tensor, ...] | None = None  # L of (B, A, U, T)


class CrossBlock(Block):
    """BERT's block with cross-attention between its two halves."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.cross = SelfAttention(config)
        self.cross_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def read(
        self, x: Tensor, source: Tensor, mask: Tensor | None, output_attentions: bool
    ) -> tuple[Tensor, Tensor | None]:
        """x (B, U, H) gathers from source (B, T, H), mask (B, T): (B, U, H), weights (B, A, U,
        T)."""
        cross = self.cross
        q, k, v = cross.query(x), cross.key(source), cross.value(source)
        attended, weights, _ = cross.multi_head(q, k, v, mask, output_attentions)
        return self.cross_norm(x + self.dropout(attended)), weights


class BartEmbeddings(Embeddings):
    """BERT's, with positions counted from 2."""

    def make_position_ids(self, input_ids: Tensor) -> Tensor:
        return super().make_position_ids(input_ids) + 2


class Seq2Seq(nn.Module):
    """Encoder and decoder; one token table for both and for the decoder's answers."""

    def __init__(self, config: BartConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config, BartEmbeddings(config))
        self.embeddings = BartEmbeddings(config)
        self.blocks = nn.ModuleList(CrossBlock(config) for _ in range(config.num_layers))
        self.apply(lambda module: initialise(module, config.initializer_range))
        self.embeddings.token = self.encoder.embeddings.token  # type: ignore[assignment]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        decoder_input_ids: Tensor,
        decoder_attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> Seq2SeqOutput:
        """input_ids and its mask (B, T), decoder_input_ids and its mask (B, U): logits (B, U, V),
        at position u for the decoder's token at u + 1.

        Raises ValueError as the encoder does, and where the two batches differ in size."""
        if len(decoder_input_ids) != len(input_ids):
            raise ValueError(
                f"{len(input_ids)} texts to read and {len(decoder_input_ids)} to write were given; "
                "expected as many of one as of the other."
            )
        check_mask(decoder_input_ids, decoder_attention_mask)
        source = self.encoder(input_ids, attention_mask).last_hidden_state  # (B, T, H)
        if decoder_attention_mask is None:
            decoder_attention_mask = torch.ones_like(decoder_input_ids)
        back = causal_mask(decoder_attention_mask)  # (B, U, U)
        x = self.embeddings(decoder_input_ids)
        states, own, cross = [x], [], []
        for block in self.blocks:
            x, own_weights, _ = block.attend(x, back, output_attentions)  # type: ignore[operator]
            x, cross_weights = block.read(x, source, attention_mask, output_attentions)  # type: ignore
            x = block.apply_feed_forward(x)  # type: ignore[operator]
            states.append(x)
            own.append(own_weights)
            cross.append(cross_weights)
        return Seq2SeqOutput(
            logits=F.linear(x, self.embeddings.token.weight),
            encoder_last_hidden_state=source,
            decoder_hidden_states=tuple(states) if output_hidden_states else None,
            decoder_attentions=tuple(own) if output_attentions else None,
            cross_attentions=tuple(cross) if output_attentions else None,
        )


def bart(size: str = "base", **changes: Any) -> Seq2Seq:
    """A BART, randomly initialised; `changes` override settings of the published size."""
    return Seq2Seq(published("bart", size, BartConfig, **changes))
