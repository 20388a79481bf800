"""What is put on top of an encoder. B batch, T tokens, H hidden, V vocabulary, N selected
positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import BertConfig
from .encoder import Encoder, EncoderOutput, PredictionHead, activate, drop_biases, initialise


@dataclass
class PreTrainingOutput:
    """Logits under the names transformers uses, and what else was asked for."""

    prediction_logits: Tensor  # (B, T, V), or (N, V) when only selected positions are predicted
    seq_relationship_logits: Tensor  # (B, 2): IsNext, NotNext
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    attention_scores: tuple[Tensor, ...] | None = None

    @property
    def sop_logits(self) -> Tensor:
        """(B, 2): in order, swapped. The same two logits, under the name of ALBERT's task."""
        return self.seq_relationship_logits


@dataclass
class LogitsOutput:
    """A head's logits under transformers' name, and what was asked for."""

    logits: Tensor
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    attention_scores: tuple[Tensor, ...] | None = None


class MaskedLMOutput(LogitsOutput):
    """Logits of the words: (B, T, V), or (N, V) when only selected positions are predicted."""

    @property
    def prediction_logits(self) -> Tensor:
        """The same logits under the name that models with two heads give them."""
        return self.logits


@dataclass
class SpanPreTrainingOutput(MaskedLMOutput):
    """SpanBERT's logits: of the words from their own vectors, and from their span's boundary."""

    sbo_logits: Tensor | None = None  # (M, V), where boundaries were given


class ReplacedTokenOutput(LogitsOutput):
    """One logit a token, (B, T); above zero: replaced."""


class ClassifierOutput(LogitsOutput):
    """Logits of the classes, (B, classes)."""


class TokenClassifierOutput(LogitsOutput):
    """Logits of the labels of every token, (B, T, labels)."""


@dataclass
class SpanOutput:
    """Every token's logits as first and as last token of the answer, under transformers' names."""

    start_logits: Tensor  # (B, T)
    end_logits: Tensor  # (B, T)
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    attention_scores: tuple[Tensor, ...] | None = None


class MaskedLMHead(nn.Module):
    """Dense, GELU, LayerNorm, then the token table again as decoder, with a bias of its own.

    Where the configuration says `widened_decoder`, the dense layer stays H wide, and `extra` holds
    the decoder's columns that the token table, E wide, lacks: (H − E, V), not tied to anything."""

    def __init__(self, config: BertConfig, token_embedding: nn.Embedding) -> None:
        super().__init__()
        H, E = config.hidden_size, token_embedding.embedding_dim
        width = H if config.widened_decoder else E
        self.dense = nn.Linear(H, width)
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.extra = nn.Linear(config.vocab_size, H - E, bias=False) if width > E else None
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.gelu_form = config.gelu_form
        if not config.biases:
            drop_biases(self)  # the decoder keeps its own
        self.tie(token_embedding)
        self.apply(lambda module: initialise(module, config.initializer_range))

    def tie(self, token_embedding: nn.Embedding) -> None:
        """Use this table as decoder. Tied, not owned: in a tuple, so that it is registered once,
        by the embeddings."""
        self._tied = (token_embedding,)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (…, H) -> logits (…, V)."""
        x = self.norm(activate(self.dense(hidden), self.gelu_form))
        table = self._tied[0].weight  # (V, E)
        if self.extra is not None:
            table = torch.cat([table, self.extra.weight.T], dim=1)  # (V, H)
        return F.linear(x, table, self.bias)


class SpanBoundaryHead(nn.Module):
    """A masked span's tokens from the vectors before and behind it and each token's position in
    it (Joshi et al. 2019, section 3.2).

    Twice dense, GELU, LayerNorm, then the token table as decoder, with a bias of its own. The
    authors' position vectors are 200 wide, and the first 15 tokens of a span are predicted."""

    def __init__(
        self,
        config: BertConfig,
        token_embedding: nn.Embedding,
        position_size: int = 200,
        longest: int = 15,
    ) -> None:
        super().__init__()
        H, eps = config.hidden_size, config.layer_norm_eps
        self.position = nn.Embedding(longest, position_size)
        self.first = nn.Linear(2 * H + position_size, H)
        self.first_norm = nn.LayerNorm(H, eps=eps)
        self.second = nn.Linear(H, token_embedding.embedding_dim)
        self.second_norm = nn.LayerNorm(token_embedding.embedding_dim, eps=eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.gelu_form = config.gelu_form
        self._tied = (token_embedding,)  # in a tuple, as in MaskedLMHead
        self.apply(lambda module: initialise(module, config.initializer_range))

    def forward(self, before: Tensor, behind: Tensor, position: Tensor) -> Tensor:
        """before, behind (M, H); position (M,), 0 for a span's first token -> logits (M, V)."""
        x = torch.cat([before, behind, self.position(position)], dim=-1)
        x = self.first_norm(F.gelu(self.first(x), approximate=self.gelu_form))
        x = self.second_norm(F.gelu(self.second(x), approximate=self.gelu_form))
        return F.linear(x, self._tied[0].weight, self.bias)


class PairHead(nn.Module):
    """Two logits from the pooled vector: does B follow A (0) or not (1)?"""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, 2)
        initialise(self.dense, config.initializer_range)

    def forward(self, pooled: Tensor) -> Tensor:
        return self.dense(pooled)  # (B, H) -> (B, 2)


class ReplacedTokenHead(nn.Module):
    """Dense, GELU, then one logit: was this token replaced (Clark et al. 2020, section 2)?"""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.score = nn.Linear(config.hidden_size, 1)
        self.gelu_form = config.gelu_form
        self.apply(lambda module: initialise(module, config.initializer_range))

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (…, H) -> logits (…)."""
        x = activate(self.dense(hidden), self.gelu_form)
        return self.score(x).squeeze(-1)


class EncoderWithHead(nn.Module):
    """An encoder, to which each model below adds its head."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = encoder.config


class BertForPreTraining(EncoderWithHead):
    """An encoder with both heads of BERT's pre-training (Devlin et al. 2018, section 3.1)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        check_pooler(encoder)
        self.mlm = MaskedLMHead(encoder.config, encoder.embeddings.token)  # type: ignore[arg-type]
        self.pair = PairHead(encoder.config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        predict_at: Tensor | None = None,
        **output_flags: bool,
    ) -> PreTrainingOutput:
        """As the encoder's call; `predict_at` (N,) holds b·T + t of the positions to predict, all
        if None.

        Predicting only the selected positions leaves out most products with the V×H table, and
        most of the last block, whose other outputs nobody reads."""
        out, hidden = _encode(
            self.encoder, input_ids, attention_mask, token_type_ids, predict_at, **output_flags
        )
        return PreTrainingOutput(self.mlm(hidden), self.pair(out.pooler_output), *out.optional)


class BertForMaskedLM(EncoderWithHead):
    """An encoder with the masked-word head alone: pre-training without NSP."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.mlm = MaskedLMHead(encoder.config, encoder.embeddings.token)  # type: ignore[arg-type]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        predict_at: Tensor | None = None,
        **output_flags: bool,
    ) -> MaskedLMOutput:
        """As the encoder's call; `predict_at` (N,) as in BertForPreTraining."""
        out, hidden = _encode(
            self.encoder, input_ids, attention_mask, token_type_ids, predict_at, **output_flags
        )
        return MaskedLMOutput(self.mlm(hidden), *out.optional)


class BertForSpanPreTraining(nn.Module):
    """A masked-word model with the span-boundary head beside it: SpanBERT's pre-training. After it
    `masked_lm` is what is kept."""

    def __init__(self, encoder: Encoder, **sbo: int) -> None:
        super().__init__()
        self.masked_lm = BertForMaskedLM(encoder)
        self.config = encoder.config
        self.sbo = SpanBoundaryHead(encoder.config, encoder.embeddings.token, **sbo)  # type: ignore[arg-type]

    @property
    def encoder(self) -> Encoder:
        """The encoder, which both heads read."""
        return self.masked_lm.encoder

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        predict_at: Tensor | None = None,
        boundaries: Tensor | None = None,
        **output_flags: bool,
    ) -> SpanPreTrainingOutput:
        """As BertForMaskedLM's call; boundaries (M, 3): b·T + t of the position before the span and
        of the one behind it, and the token's position in the span, as `boundary_targets` gives
        them. Without them the span-boundary head is left out."""
        if boundaries is None:
            out = self.masked_lm(
                input_ids, attention_mask, token_type_ids, predict_at, **output_flags
            )
            return SpanPreTrainingOutput(**vars(out))
        own = torch.arange(input_ids.numel(), device=input_ids.device)
        own = own if predict_at is None else predict_at
        before, behind, position = boundaries.unbind(1)
        at, slot = torch.cat([own, before, behind]).unique(return_inverse=True)
        out, hidden = _encode(
            self.encoder, input_ids, attention_mask, token_type_ids, at, **output_flags
        )
        parts = hidden[slot].split([len(own), len(before), len(behind)])
        logits = self.masked_lm.mlm(parts[0])
        return SpanPreTrainingOutput(
            logits if predict_at is not None else logits.unflatten(0, input_ids.shape),
            *out.optional,
            self.sbo(*parts[1:], position),
        )  # fmt: skip


class BertForReplacedTokens(EncoderWithHead):
    """An encoder that tells for each token whether it was replaced: ELECTRA's discriminator."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.rtd = ReplacedTokenHead(encoder.config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **output_flags: bool,
    ) -> ReplacedTokenOutput:
        """As the encoder's call; a logit for every token."""
        out = self.encoder(input_ids, attention_mask, token_type_ids, **output_flags)
        logits = self.rtd(out.last_hidden_state)
        return ReplacedTokenOutput(logits, *out.optional)


class BertForClassification(EncoderWithHead):
    """An encoder with a pooler, and on the pooled vector one logit a class (Devlin et al. 2018,
    section 4.1).

    classes: their names, or how many there are. With one alone the logit is the answer itself: a
    number to be predicted (regression). plain: BERT's head where the member's own drops out the
    first token before the pooler, too."""

    def __init__(self, encoder: Encoder, classes: int | Sequence[str], plain: bool = False) -> None:
        super().__init__(encoder)
        check_pooler(encoder)
        self.dropout_before_pooler = encoder.config.dropout_before_pooler and not plain
        self.names = label_names(classes)
        self.dropout = nn.Dropout(encoder.config.hidden_dropout)
        self.classifier = nn.Linear(encoder.config.hidden_size, len(self.names))
        initialise(self.classifier, encoder.config.initializer_range)
        self.kept = meaning_of(self.names)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **output_flags: bool,
    ) -> ClassifierOutput:
        """As the encoder's call; (B, T) -> logits (B, classes)."""
        segments = segments_for(self.config, token_type_ids)
        late = self.training and self.dropout_before_pooler
        out = self.encoder(input_ids, attention_mask, segments, pooled=not late, **output_flags)
        pooled = out.pooler_output
        if late:
            pooled = self.encoder.pooler(self.dropout(out.last_hidden_state[:, :1]))  # type: ignore
        logits = self.classifier(self.dropout(pooled))
        return ClassifierOutput(logits, *out.optional)


class BertForTokenClassification(EncoderWithHead):
    """An encoder, and on every token's vector one logit a label (Devlin et al. 2018, section 5.3).

    labels: their names, or how many there are. plain: BERT's head in place of the member's own. No
    pooler is read: to_transformers wants none."""

    def __init__(self, encoder: Encoder, labels: int | Sequence[str], plain: bool = False) -> None:
        super().__init__(encoder)
        self.names = label_names(labels)
        self.transform = nn.Identity() if plain else transform_for(encoder.config)
        self.dropout = nn.Dropout(encoder.config.hidden_dropout)
        self.classifier = nn.Linear(encoder.config.hidden_size, len(self.names))
        initialise(self.classifier, encoder.config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **output_flags: bool,
    ) -> TokenClassifierOutput:
        """As the encoder's call; (B, T) -> logits (B, T, labels)."""
        segments = segments_for(self.config, token_type_ids)
        out = self.encoder(input_ids, attention_mask, segments, **output_flags)
        logits = self.classifier(self.dropout(self.transform(out.last_hidden_state)))
        return TokenClassifierOutput(logits, *out.optional)


class BertForQuestionAnswering(EncoderWithHead):
    """An encoder and two vectors: S·T_i says how well the answer starts at token i, E·T_i how well
    it ends there (Devlin et al. 2018, section 4.2). No pooler is read.

    The question is segment A, the passage segment B. The rows of `span` are S and E; its two biases
    (transformers has them) raise all starts, or all ends, alike: they change no answer. plain:
    BERT's head in place of the member's own."""

    def __init__(self, encoder: Encoder, plain: bool = False) -> None:
        super().__init__(encoder)
        self.transform = nn.Identity() if plain else transform_for(encoder.config)
        self.dropout = nn.Dropout(0.0)  # unless a file says more
        self.span = nn.Linear(encoder.config.hidden_size, 2)
        initialise(self.span, encoder.config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **output_flags: bool,
    ) -> SpanOutput:
        """As the encoder's call; (B, T) -> start logits (B, T) and end logits (B, T)."""
        segments = segments_for(self.config, token_type_ids)
        out = self.encoder(input_ids, attention_mask, segments, **output_flags)
        start, end = self.span(self.dropout(self.transform(out.last_hidden_state))).unbind(-1)
        return SpanOutput(start, end, *out.optional)


def meaning_of(names: Sequence[str]) -> dict[str, Any]:
    """What a new head's logits mean, as transformers' configurations say it; a checkpoint's may say
    something else, or nothing."""
    return {"problem_type": "single_label_classification" if len(names) > 1 else "regression"}


def transform_for(config: BertConfig) -> nn.Module:
    """What a member's heads do with every token's vector first: nothing, but in ModernBERT."""
    if config.pooler != "head":
        return nn.Identity()
    transform = PredictionHead(config)
    transform.apply(lambda module: initialise(module, config.initializer_range))
    return transform


def check_pooler(encoder: Encoder) -> None:
    """Raise ValueError for an encoder without the pooler that a head reads."""
    if encoder.pooler is None:
        raise ValueError(
            "An encoder without a pooler was given; expected one with: the head reads it. Build it "
            "with bert(...), or set encoder.pooler = pooler_for(encoder.config) first."
        )


def segments_for(config: BertConfig, token_type_ids: Tensor | None) -> Tensor | None:
    """What a fine-tuned encoder is told of a pair's two texts: `token_type_ids`, or nothing (None)
    where it was pre-trained without a second segment, as RoBERTa, DistilBERT and ModernBERT were.
    The separators alone then tell it which text is which."""
    return token_type_ids if config.type_vocab_size > 1 else None


def label_names(labels: int | Sequence[str]) -> tuple[str, ...]:
    """The labels' names; of a mere number LABEL_0, LABEL_1 …, as transformers calls them.

    Raises ValueError for no label, and for one name given twice."""
    names = [f"LABEL_{i}" for i in range(labels)] if isinstance(labels, int) else list(labels)
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"labels {labels!r} were given; expected at least one, each with a name of its own."
        )
    return tuple(names)


def _encode(
    encoder: Encoder,
    input_ids: Tensor,
    attention_mask: Tensor | None,
    token_type_ids: Tensor | None,
    predict_at: Tensor | None,
    **output_flags: bool,
) -> tuple[EncoderOutput, Tensor]:
    """The encoder's output, and the vectors to predict from: (B, T, H), or (N, H)."""
    # Removing the padding needs the whole of the last block.
    if predict_at is None or output_flags.get("remove_padding"):
        out = encoder(input_ids, attention_mask, token_type_ids, **output_flags)
        hidden = out.last_hidden_state
        return out, hidden if predict_at is None else hidden.flatten(0, 1)[predict_at]
    positions, slot = cls_and_selected(predict_at, *input_ids.shape)
    out = encoder(
        input_ids, attention_mask, token_type_ids, output_positions=positions, **output_flags
    )
    return out, out.last_hidden_state.flatten(0, 1)[slot]


def cls_and_selected(predict_at: Tensor, batch: int, tokens: int) -> tuple[Tensor, Tensor]:
    """Flat positions b·T + t (N,) as a table: for each sequence of the batch 0, [CLS], then its
    selected positions.

    Returns the table (B, K), filled up with 0, and where in it, flattened, each selected position
    stands (N,)."""
    row, column = predict_at // tokens, predict_at % tokens
    counts = torch.bincount(row, minlength=batch)
    first = counts.cumsum(0) - counts  # how many are selected in the sequences before
    slot = torch.arange(len(row), device=row.device) - first[row] + 1
    table = torch.zeros(batch, int(counts.max()) + 1, dtype=torch.long, device=row.device)
    table[row, slot] = column
    return table, row * table.shape[1] + slot
