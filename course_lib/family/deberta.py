"""DeBERTa: what a token says and where it stands are kept apart, and meet in the attention scores
(He et al. 2020, section 3; second generation as in its code).

Nothing is added to the word vectors. Every layer compares words with words, words with distances,
and distances with words; the table of distances is shared by all layers. Absolute positions enter
only at the end, in the enhanced mask decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Block, Embeddings, Encoder, Layer, Stack, gather_positions
from course_lib.heads import (
    BertForMaskedLM,
    EncoderWithHead,
    MaskedLMHead,
    MaskedLMOutput,
    cls_and_selected,
)
from course_lib.kernels.choosing import DISENTANGLED_PATHS
from course_lib.kernels.disentangled import disentangled_attention, disentangled_attention_reference
from course_lib.kernels.positions import position_rows
from course_lib.kernels.upcast import upcast

TERMS = ("c2p", "p2c")  # content-to-position, position-to-content
EMPTY_CACHE = ((None, ()), (None, None))  # (number formats, weights' fingerprint), (keys, queries)


@dataclass(frozen=True)
class DebertaConfig(BertConfig):
    """The shape of a DeBERTa of the first generation; defaults are deberta-base.

    Raises ValueError for a term that does not exist, and a span below 1."""

    vocab_size: int = 50_265
    type_vocab_size: int = 0  # no segments
    layer_norm_eps: float = 1e-7
    span: int = 512  # k, half the rows of the table of distances
    terms: tuple[str, ...] = TERMS

    paths: ClassVar[tuple[str, ...]] = DISENTANGLED_PATHS
    pooler: ClassVar[str] = "gelu"
    sizes: ClassVar[dict[str, int]] = {"span": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        terms = tuple(self.terms) if isinstance(self.terms, list) else self.terms  # of a file
        known = isinstance(terms, tuple) and all(term in TERMS for term in terms)
        if not known or len(set(terms)) < len(terms):
            raise ValueError(
                f"terms={terms!r} was given; expected some of {', '.join(TERMS)}, each once."
            )
        object.__setattr__(self, "terms", terms)


@dataclass(frozen=True)
class DebertaV2Config(DebertaConfig):
    """The shape of the second generation, and of v3, its descendant; defaults are deberta-v3-base.

    Raises ValueError for an even or negative convolution, or an unknown conv_act."""

    vocab_size: int = 128_100
    span: int = 256  # k: buckets of distances, and half the rows of the table
    furthest: int = 512  # distances this long share the last bucket
    cut_at_furthest: bool = False  # beyond it the authors' rule, not transformers'; same up to it
    shared_projections: bool = True  # positions pass through the words' own projections
    normed_positions: bool = True
    convolution: int = 0  # neighbours that a convolution beside the first block reads, 0: none
    conv_act: str = "tanh"  # or "gelu"

    choices: ClassVar[dict[str, tuple[str, ...]]] = {"conv_act": ("tanh", "gelu")}

    def __post_init__(self) -> None:
        super().__post_init__()
        position_rows(1, self.span, self.furthest)  # raises for a span that does not fit
        if self.convolution < 0 or (self.convolution and self.convolution % 2 == 0):
            raise ValueError(
                f"convolution={self.convolution!r} was given; expected 0, or an odd number of "
                "neighbours, the token itself among them."
            )


class RelativePositions(nn.Module):
    """P, one vector for each row of distances, shared by all layers."""

    def __init__(self, config: DebertaConfig) -> None:
        super().__init__()
        H = config.hidden_size
        self.config = config
        self.table = nn.Embedding(2 * config.span, H)
        normed = isinstance(config, DebertaV2Config) and config.normed_positions
        self.norm = nn.LayerNorm(H, config.layer_norm_eps) if normed else None

    def forward(self) -> Tensor:
        """(2k, H)"""
        vectors = self.table.weight
        return vectors if self.norm is None else self.norm(vectors)

    def rows(self, tokens: int) -> Tensor:
        """δ for a text of T tokens: the row of each distance, (2T − 1,), on the CPU, where it can
        be read without waiting for a GPU."""
        c = self.config
        buckets = (c.furthest, c.cut_at_furthest) if isinstance(c, DebertaV2Config) else ()
        # While a model is exported, tokens is a symbol, of which nothing can be kept.
        make = position_rows if torch.compiler.is_exporting() else _rows
        return make(tokens, c.span, *buckets)


@lru_cache(maxsize=64)
def _rows(*sizes: Any) -> Tensor:
    with torch.inference_mode(False), torch.device("cpu"):  # kept, perhaps for training next
        return position_rows(*sizes)


class FusedProjections(nn.Module):
    """The first generation's: one matrix for query, key and value, and separate ones for positions.

    Its rows go head by head: D of the query, D of the key, D of the value. Keys have no bias."""

    def __init__(self, config: DebertaConfig) -> None:
        super().__init__()
        H = config.hidden_size
        self.num_heads = config.num_heads
        self.fused = nn.Linear(H, 3 * H, bias=False)
        self.query_bias = nn.Parameter(torch.zeros(H))
        self.value_bias = nn.Parameter(torch.zeros(H))
        self.position_key = nn.Linear(H, H, bias=False) if "c2p" in config.terms else None
        self.position_query = nn.Linear(H, H) if "p2c" in config.terms else None

    def forward(self, x: Tensor, query_states: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """x (B, T, H), query_states (B, K, H) if not x -> query (B, A, K, D), key and value
        (B, A, T, D)."""
        parts = self.fused(x).unflatten(-1, (self.num_heads, 3, -1))  # (B, T, A, 3, D)
        q, k, v = parts.transpose(1, 2).unbind(3)  # each (B, A, T, D)
        if query_states is not None:
            weight = self.fused.weight.unflatten(0, (self.num_heads, 3, -1))[:, 0]  # (A, D, H)
            q = split_heads(F.linear(query_states, weight.flatten(0, 1)), self.num_heads)
        query_bias, value_bias = (
            bias.view(self.num_heads, 1, -1).to(q.dtype)
            for bias in (self.query_bias, self.value_bias)
        )
        return q + query_bias, k, v + value_bias

    def for_positions(self) -> tuple[nn.Linear | None, nn.Linear | None]:
        """What makes the positions' keys and their queries; None for a term left out."""
        return self.position_key, self.position_query


class SeparateProjections(nn.Module):
    """The second generation's: BERT's three, and for positions the same three or separate ones."""

    def __init__(self, config: DebertaV2Config) -> None:
        super().__init__()
        H = config.hidden_size
        self.num_heads, self.terms = config.num_heads, config.terms
        self.query, self.key, self.value = (nn.Linear(H, H) for _ in range(3))
        own = not config.shared_projections
        self.position_key = nn.Linear(H, H) if own and "c2p" in config.terms else None
        self.position_query = nn.Linear(H, H) if own and "p2c" in config.terms else None

    def forward(self, x: Tensor, query_states: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """As FusedProjections."""
        q = self.query(x if query_states is None else query_states)
        projected = (q, self.key(x), self.value(x))
        q, k, v = (split_heads(y, self.num_heads) for y in projected)
        return q, k, v

    def for_positions(self) -> tuple[nn.Linear | None, nn.Linear | None]:
        """As FusedProjections."""
        key = (self.position_key or self.key) if "c2p" in self.terms else None
        query = (self.position_query or self.query) if "p2c" in self.terms else None
        return key, query


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(…, T, H) -> (…, A, T, D)"""
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)


def fingerprint(parameters: Iterable[Tensor]) -> list[Tensor]:
    """One product of each parameter (…, n) with fixed numbers: other weights give others.

    torch counts edits of a tensor, but not those through `.data`, and not those of a tensor made
    in inference mode. Reading all weights costs little beside multiplying by them."""
    with torch.autocast("cpu", enabled=False):
        return [x @ _numbers(x.shape[-1], x.dtype) for x in map(upcast, parameters)]


@lru_cache(maxsize=16)
def _numbers(count: int, dtype: torch.dtype) -> Tensor:
    with torch.inference_mode(False):
        return torch.randn(count, generator=torch.Generator().manual_seed(0)).to(dtype)


class DisentangledAttention(nn.Module):
    """Disentangled attention, three scores a pair: content with content, with position, and back.

    Called as the encoder's SelfAttention is. The positions belong to the stack."""

    def __init__(self, config: DebertaConfig, positions: RelativePositions) -> None:
        super().__init__()
        self.config = config
        self._shared = (positions,)  # in a tuple: registered once, by the stack
        self.projections: FusedProjections | SeparateProjections = (
            SeparateProjections(config)
            if isinstance(config, DebertaV2Config)
            else FusedProjections(config)
        )
        self.output = nn.Linear(config.hidden_size, config.hidden_size)
        self.position_dropout = nn.Dropout(config.hidden_dropout)
        self._cache: tuple[Any, Any] = EMPTY_CACHE

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
        query_states: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """x (B, T, H), mask (B, T) -> output (B, K, H), and on request attention weights and scores
        (B, A, K, T). output_positions (B, K): where the queries stand, all if None; query_states
        (B, K, H): what they are made from, if not x there."""
        if query_states is None and output_positions is not None:
            query_states = gather_positions(x, output_positions)
        q, k, v = self.projections(x, query_states)
        position_key, position_query, rows = self.project_positions(x)
        dropout = self.config.attention_dropout if self.training else 0.0
        inputs = q, k, v, position_key, position_query, rows, mask, dropout, output_positions
        weights = scores = None
        if output_attentions:
            attended, weights, scores = disentangled_attention_reference(*inputs)
        else:
            attended = disentangled_attention(*inputs, path=self.config.kernels)
        return self.output(attended.transpose(1, 2).flatten(2)), weights, scores

    def project_positions(self, x: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor]:
        """Keys and queries of the positions, (A, R, D), in the number format that x's get, and the
        row of each distance in them, (2T − 1,).

        While it learns, only the rows that a text of this length can reach. They do not depend on
        the text: where nothing is learned all rows are computed once and kept, on a CPU. (A GPU
        would have to be waited for, to know that the weights are the same.)"""
        shared, rows = self._shared[0], self._shared[0].rows(x.shape[1])
        if torch.compiler.is_exporting():
            return (*self.project(shared()), rows)
        if torch.is_grad_enabled() or self.training or x.device.type != "cpu":
            first, last = int(rows[0]), int(rows[-1])
            vectors = self.position_dropout(shared()[first : last + 1])
            return (*self.project(vectors), rows - first)
        layers = (layer for layer in self.projections.for_positions() if layer is not None)
        weights = [p for module in (shared, *layers) for p in module.parameters()]
        formats = torch.is_autocast_enabled("cpu"), x.dtype, [p.dtype for p in weights]
        current = fingerprint(weights)
        cached_formats, cached = self._cache[0]
        if formats != cached_formats or not all(map(torch.equal, current, cached)):
            self._cache = (formats, current), self.project(shared())
        return (*self._cache[1], rows)

    def project(self, vectors: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """P (R, H) -> keys and queries of positions, (A, R, D), or None for a term left out."""
        key, query = (
            None if layer is None else split_heads(layer(vectors), self.config.num_heads)
            for layer in self.projections.for_positions()
        )
        return key, query


class Convolution(nn.Module):
    """A second way to the neighbours beside the first block: H channels over a few tokens."""

    def __init__(self, config: DebertaV2Config) -> None:
        super().__init__()
        H, width = config.hidden_size, config.convolution
        self.mix = nn.Conv1d(H, H, width, padding=width // 2)
        self.norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.act: Callable[[Tensor], Tensor] = torch.tanh if config.conv_act == "tanh" else F.gelu

    def forward(
        self, before: Tensor, after: Tensor, mask: Tensor | None, positions: Tensor | None
    ) -> Tensor:
        """The block's input (B, T, H) and output (B, K, H) -> (B, K, H); padding counts as zero."""
        real = 1 if mask is None else mask[..., None].to(before.dtype)  # (B, T, 1)
        mixed = self.mix((before * real).transpose(1, 2)).transpose(1, 2) * real  # (B, T, H)
        mixed = self.act(self.dropout(mixed))
        return self.norm(
            after + (mixed if positions is None else gather_positions(mixed, positions))
        )


class DebertaBlock(Block):
    """BERT's block; its queries may be made from other vectors than its keys and values."""

    def attend(
        self,
        x: Tensor,
        mask: Any = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
        query_states: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The first half. query_states (B, K, H): what attends to x, and what the output is added
        to, if not x itself at output_positions."""
        if query_states is None:
            return super().attend(x, mask, output_attentions, output_positions)
        attended, weights, scores = self.attention(
            x, mask, output_attentions, output_positions, query_states=query_states
        )
        return self.attention_norm(query_states + self.dropout(attended)), weights, scores


class DebertaStack(Stack):
    """BERT's blocks with disentangled attention, and the table of distances they share."""

    def __init__(self, config: DebertaConfig) -> None:
        nn.Module.__init__(self)
        self.positions = RelativePositions(config)
        self.blocks = nn.ModuleList(
            DebertaBlock(config, DisentangledAttention(config, self.positions))
            for _ in range(config.num_layers)
        )
        convolves = isinstance(config, DebertaV2Config) and config.convolution
        self.convolution = Convolution(config) if convolves else None  # type: ignore[arg-type]

    def layers(self) -> list[Layer]:
        """What is applied, in order; the convolution belongs to the first."""
        if self.convolution is None:
            return list(self.blocks)
        return [self.first_layer, *self.blocks[1:]]

    def first_layer(
        self, x: Tensor, mask: Tensor | None, output_attentions: bool, positions: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Called as a Block is."""
        after, weights, scores = self.blocks[0](x, mask, output_attentions, positions)
        return self.convolution(x, after, mask, positions), weights, scores  # type: ignore[misc]


class EnhancedMaskDecoder(nn.Module):
    """Absolute positions, just before the prediction (section 3.2 and appendix A.8).

    The last block is visited twice more. The first queries are made from the last block's input
    plus the absolute position embedding; keys and values come from that input at both visits."""

    def __init__(self, config: DebertaConfig, visits: int = 2) -> None:
        super().__init__()
        self.position = nn.Embedding(config.max_positions, config.hidden_size)
        self.visits = visits

    def forward(
        self,
        x: Tensor,
        block: DebertaBlock,
        mask: Tensor | None = None,
        output_positions: Tensor | None = None,
    ) -> Tensor:
        """x (B, T, H), the last block's input -> (B, T, H); (B, K, H) at output_positions alone."""
        query_states = x + self.position.weight[: x.shape[1]]  # (B, T, H)
        if output_positions is not None:
            query_states = gather_positions(query_states, output_positions)
        for _ in range(self.visits):
            attended, _, _ = block.attend(x, mask, False, output_positions, query_states)
            query_states = block.apply_feed_forward(attended)
        return query_states


class DebertaForMaskedLM(EncoderWithHead):
    """An encoder, the enhanced mask decoder and the MLM head: as DeBERTa is pre-trained.

    Without the decoder it is a BertForMaskedLM."""

    def __init__(self, encoder: Encoder, decoder: EnhancedMaskDecoder) -> None:
        super().__init__(encoder)
        self.decoder = decoder
        self.mlm = MaskedLMHead(encoder.config, encoder.embeddings.token)  # type: ignore[arg-type]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        predict_at: Tensor | None = None,
        **output_flags: bool,
    ) -> MaskedLMOutput:
        """As the encoder's call; `predict_at` (N,) holds b·T + t of the positions to predict."""
        positions = slot = None
        if predict_at is not None:
            positions, slot = cls_and_selected(predict_at, *input_ids.shape)
        output_flags["output_hidden_states"] = True
        out = self.encoder(
            input_ids, attention_mask, token_type_ids, output_positions=positions, **output_flags
        )
        last: DebertaBlock = self.encoder.stack.blocks[-1]  # type: ignore[union-attr, index, assignment]
        x = self.decoder(out.hidden_states[-2], last, attention_mask, positions)
        hidden = x if slot is None else x.flatten(0, 1)[slot]
        return MaskedLMOutput(self.mlm(hidden), *out.optional)


def deberta_encoder(config: DebertaConfig) -> Encoder:
    """BERT's encoder without positions in its embeddings, on a stack that knows distances."""
    return Encoder(config, Embeddings(config, positions=False), DebertaStack(config))


def deberta(size: str = "base", **changes: Any) -> Encoder:
    """A first-generation DeBERTa encoder, randomly initialised; `changes` override settings."""
    return deberta_encoder(published("deberta", size, DebertaConfig, **changes))


def deberta_v3(size: str = "base", **changes: Any) -> Encoder:
    """A DeBERTa-v3 encoder, randomly initialised: the second generation's attention."""
    return deberta_encoder(published("deberta-v3", size, DebertaV2Config, **changes))


def deberta_masked_lm(
    encoder: Encoder | str = "base", decoder: bool = True, **changes: Any
) -> DebertaForMaskedLM | BertForMaskedLM:
    """An encoder, or one of this size with `changes` to its settings, made ready for pre-training,
    with the enhanced mask decoder or without. Raises TypeError for changes to an encoder that is
    there."""
    if isinstance(encoder, str):
        encoder = deberta(encoder, **changes)
    elif changes:
        raise TypeError(
            f"{', '.join(changes)} was given beside an encoder; expected settings beside a size "
            'alone, as in deberta_masked_lm("base", vocab_size=8_192).'
        )
    if not decoder:
        return BertForMaskedLM(encoder)
    config = encoder.config
    assert isinstance(config, DebertaConfig)
    mask_decoder = EnhancedMaskDecoder(config)
    nn.init.normal_(mask_decoder.position.weight, std=config.initializer_range)
    return DebertaForMaskedLM(encoder, mask_decoder)
