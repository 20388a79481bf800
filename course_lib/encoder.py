"""The BERT encoder (Devlin et al. 2018, section 3; attention from Vaswani et al. 2017, section 3).

Dimensions, everywhere in this file: B batch, T tokens, H hidden, A heads, D = H/A head size, F
feed-forward, V vocabulary, L layers. The Encoder takes its parts as arguments: other family members
bring other parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import BertConfig
from .kernels.attention import attention, attention_reference
from .kernels.unpadding import Packing, packed_attention


@dataclass
class EncoderOutput:
    """What an encoder returns; the fields after the first are there when asked for."""

    last_hidden_state: Tensor  # (B, T, H)
    pooler_output: Tensor | None = None  # (B, H)
    hidden_states: tuple[Tensor, ...] | None = None  # L + 1 of (B, T, H), embeddings first
    attentions: tuple[Tensor, ...] | None = None  # L of (B, A, T, T), each row sums to one
    attention_scores: tuple[Tensor, ...] | None = None  # L of (B, A, T, T), before the softmax

    @property
    def optional(self) -> tuple[Any, Any, Any]:
        """Hidden states, attentions and scores, in the order in which every output has them."""
        return self.hidden_states, self.attentions, self.attention_scores


class Embeddings(nn.Module):
    """Token + segment + position, then LayerNorm and dropout (Figure 2 of the paper).

    With type_vocab_size=0 there are no segments; with positions=False no position table."""

    def __init__(self, config: BertConfig, positions: bool = True) -> None:
        super().__init__()
        H = config.hidden_size
        self.config = config
        self.token = nn.Embedding(config.vocab_size, H, padding_idx=config.pad_token_id)
        self.position = nn.Embedding(config.max_positions, H) if positions else None
        self.segment = nn.Embedding(config.type_vocab_size, H) if config.type_vocab_size else None
        self.norm: nn.Module = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def make_position_ids(self, input_ids: Tensor) -> Tensor:
        """BERT's: 0 to T − 1, the same in every sequence, (B, T) -> (T,)."""
        return torch.arange(input_ids.shape[1], device=input_ids.device)

    def parts(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Every stage by name, each (B, T, H): token, segment and position (if any), sum,
        normed."""
        check_input(input_ids, token_type_ids, self.config)
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        stages = self.summands(input_ids, token_type_ids)
        if position_ids is not None:
            stages["position"] = self.position(position_ids)  # type: ignore[misc]
        total = reduce(torch.add, stages.values())
        return {**stages, "sum": total, "normed": self.norm(total)}

    def summands(self, input_ids: Tensor, token_type_ids: Tensor) -> dict[str, Tensor]:
        """What is added up, by name, each (B, T, H)."""
        stages = {"token": self.token_embeddings(input_ids)}  # (B, T, H)
        if self.segment is not None:
            stages["segment"] = self.segment(token_type_ids)  # (B, T, H)
        if self.position is not None:
            position = self.position(self.make_position_ids(input_ids))  # (T, H) or (B, T, H)
            stages["position"] = position.expand_as(stages["token"])  # (B, T, H)
        return stages

    def token_embeddings(self, input_ids: Tensor) -> Tensor:
        """The tokens' own vectors: (B, T) -> (B, T, H)."""
        return self.token(input_ids)

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        return self.dropout(self.parts(input_ids, token_type_ids, position_ids)["normed"])


class SelfAttention(nn.Module):
    """Every token gathers from every other, A times side by side, then one projection."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        H = config.hidden_size
        self.num_heads = config.num_heads
        self.dropout = config.attention_dropout
        self.path = config.kernels
        self.query = nn.Linear(H, H)
        self.key = nn.Linear(H, H)
        self.value = nn.Linear(H, H)
        self.output = nn.Linear(H, H)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """x (B, T, H), mask (B, T) or (B, T, T) -> output (B, T, H), and on request attention
        weights and scores (B, A, T, T).

        output_positions (B, K): only the tokens there gather, and T is K in all three results.
        Where mask is a Packing, x and the output are (N, H), the real tokens alone."""
        query_states, mask = select_queries(x, mask, output_positions)
        q, k, v = self.query(query_states), self.key(x), self.value(x)
        return self.multi_head(q, k, v, mask, output_attentions)

    def multi_head(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Split into heads, attend, join, project; as `forward` from the projections on."""
        dropout = self.dropout if self.training else 0.0
        if isinstance(mask, Packing):
            packed = query, key, value, mask, self.num_heads, dropout, self.path
            return self.output(packed_attention(*packed, attend=self.attend)), None, None
        q, k, v = self._heads(query), self._heads(key), self._heads(value)
        weights = scores = None
        if output_attentions:
            attended, weights, scores = attention_reference(q, k, v, mask, dropout)
        else:
            attended = self.attend(q, k, v, mask, dropout, self.path)
        return self.output(attended.transpose(1, 2).flatten(2)), weights, scores

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        dropout: float = 0.0,
        path: str = "auto",
    ) -> Tensor:
        """The output (B, A, T, D) without weights, as kernels.attention.attention."""
        return attention(query, key, value, mask, dropout, path)

    def _heads(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        split = x.view(batch, tokens, self.num_heads, -1)  # (B, T, H) -> (B, T, A, D)
        return split.transpose(1, 2)  # (B, A, T, D)


class FeedForward(nn.Module):
    """Two dense layers with a GELU (or ReLU) between them, applied to each token by itself."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.expand = nn.Linear(config.hidden_size, config.intermediate_size)
        self.contract = nn.Linear(config.intermediate_size, config.hidden_size)
        self.gelu_form = config.gelu_form

    def forward(self, x: Tensor) -> Tensor:
        inner = activate(self.expand(x), self.gelu_form)  # (B, T, H) -> (B, T, F)
        return self.contract(inner)  # (B, T, H)


def activate(x: Tensor, form: str) -> Tensor:
    """GELU, in the `form` that torch calls "none" or "tanh", or "relu" or "silu"."""
    others = {"relu": F.relu, "silu": F.silu}
    return others[form](x) if form in others else F.gelu(x, approximate=form)


class Block(nn.Module):
    """Attention, then feed-forward; after each: dropout, add the input, LayerNorm (post-LN).

    attention: another kind of attention than BERT's, called as SelfAttention is."""

    def __init__(self, config: BertConfig, attention: nn.Module | None = None) -> None:
        super().__init__()
        H, eps = config.hidden_size, config.layer_norm_eps
        self.attention = attention or SelfAttention(config)
        self.attention_norm = nn.LayerNorm(H, eps=eps)
        self.feed_forward = FeedForward(config)
        self.output_norm = nn.LayerNorm(H, eps=eps)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """x (B, T, H) -> (B, T, H), and on request attention weights and scores; only (B, K, H)
        where output_positions (B, K) says which are read."""
        x, weights, scores = self.attend(x, mask, output_attentions, output_positions)
        return self.apply_feed_forward(x), weights, scores

    def attend(
        self,
        x: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The first half of the block."""
        attended, weights, scores = self.attention(x, mask, output_attentions, output_positions)
        residual = x if output_positions is None else gather_positions(x, output_positions)
        return self.attention_norm(residual + self.dropout(attended)), weights, scores

    def apply_feed_forward(self, x: Tensor) -> Tensor:
        """The second half."""
        return self.output_norm(x + self.dropout(self.feed_forward(x)))


def gather_positions(x: Tensor, positions: Tensor) -> Tensor:
    """The vectors of x (B, T, H) at positions (B, K), as (B, K, H)."""
    batch, tokens, _ = x.shape
    # Where each sequence begins, once the batch is flattened: (B, 1).
    first = torch.arange(batch, device=x.device)[:, None] * tokens
    return F.embedding(positions + first, x.flatten(0, 1))  # its backward adds in a fixed order


def select_queries(
    x: Tensor, mask: Tensor | Packing | None, positions: Tensor | None
) -> tuple[Tensor, Tensor | Packing | None]:
    """The vectors that queries at positions (B, K) are computed from, (B, K, H), and their mask. A
    mask with a row for each query, (B, T, T), becomes (B, K, T); a mask of keys, (B, T), stays as
    it is. Where positions is None, x and mask are returned unchanged."""
    if positions is None:
        return x, mask
    if isinstance(mask, Tensor) and mask.dim() == 3:
        mask = mask.gather(1, positions[..., None].expand(-1, -1, mask.shape[2]))
    return gather_positions(x, positions), mask


Layer = Callable[..., tuple[Tensor, Tensor | None, Tensor | None]]  # called as a Block is


class Stack(nn.Module):
    """L blocks, one after the other, each with its own weights.

    block: makes one from the configuration, if it is another than BERT's."""

    def __init__(
        self, config: BertConfig, block: Callable[[BertConfig], nn.Module] = Block
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block(config) for _ in range(config.num_layers))

    def layers(self) -> list[Layer]:
        """What is applied, in order."""
        return list(self.blocks)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | Packing | None = None,
        output_attentions: bool = False,
        output_positions: Tensor | None = None,
    ) -> tuple[list[Tensor], list[Tensor | None], list[Tensor | None]]:
        """x (B, T, H) -> the states before and after every layer, and each layer's attention
        weights and scores.

        output_positions (B, K): of the last layer's output only these positions are read."""
        states, weights, scores = [x], [], []
        layers = self.layers()
        for number, layer in enumerate(layers, start=1):
            positions = output_positions if number == len(layers) else None
            x, layer_weights, layer_scores = layer(x, mask, output_attentions, positions)
            states.append(x)
            weights.append(layer_weights)
            scores.append(layer_scores)
        return states, weights, scores


class Pooler(nn.Module):
    """tanh(W h + b) of the first token, [CLS]: one vector for the whole input."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.tanh(self.dense(hidden[:, 0]))  # (B, T, H) -> (B, H)


class FirstToken(nn.Module):
    """[CLS] as it is: a pooler that learns nothing."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden[:, 0]  # (B, T, H) -> (B, H)


class ActivatedPooler(Pooler):
    """GELU or ReLU in place of the tanh."""

    def __init__(self, config: BertConfig, activation: str) -> None:
        super().__init__(config)
        self.activation = activation

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, H) -> (B, H)."""
        return activate(self.dense(hidden[:, 0]), self.activation)


class PredictionHead(nn.Module):
    """Dense, GELU, LayerNorm: what every head of ModernBERT begins with."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.gelu_form = config.gelu_form
        if not config.biases:
            drop_biases(self)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, H) -> (…, H)."""
        return self.norm(activate(self.dense(hidden), self.gelu_form))


class HeadPooler(PredictionHead):
    """The same of the first token alone."""

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, H) -> (B, H)."""
        return super().forward(hidden[:, 0])


POOLERS: dict[str, Callable[[BertConfig], nn.Module]] = {
    "tanh": Pooler,
    "gelu": lambda config: ActivatedPooler(config, "none"),
    "relu": lambda config: ActivatedPooler(config, "relu"),
    "head": HeadPooler,
    "first": lambda config: FirstToken(),
}


def pooler_for(config: BertConfig) -> nn.Module:
    """The kind of pooler that models of this configuration have. In transformers' classes for
    classification it is BERT's in BERT, RoBERTa, ALBERT, ERNIE and MobileBERT, has a GELU in
    ELECTRA and DeBERTa and a ReLU in DistilBERT, is a PredictionHead in ModernBERT, and [CLS] as it
    is in XLM and in a MobileBERT without `classifier_activation`."""
    return POOLERS[config.pooler](config)


def pooler_name(pooler: nn.Module) -> str:
    """Its name in POOLERS."""
    if isinstance(pooler, ActivatedPooler):
        return "relu" if pooler.activation == "relu" else "gelu"
    names = {FirstToken: "first", HeadPooler: "head"}
    return names.get(type(pooler), "tanh")


def mean_state(hidden: Tensor, mask: Tensor | None) -> Tensor:
    """The mean of each text's states at real tokens: (B, T, H) -> (B, 1, H)."""
    if mask is None:
        return hidden.mean(dim=1, keepdim=True)
    real = (mask != 0)[..., None]
    return hidden.where(real, 0).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)


class Encoder(nn.Module):
    """Embeddings, a stack of blocks and, if given, a pooler. Without parts, it is BERT's
    encoder. unread: settings of its file that nothing here computes with, to be written back."""

    def __init__(
        self,
        config: BertConfig,
        embeddings: nn.Module | None = None,
        stack: nn.Module | None = None,
        pooler: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.embeddings = embeddings or Embeddings(config)
        self.stack = stack or Stack(config)
        self.pooler = pooler
        self.unread: dict[str, Any] = {}
        self.apply(lambda module: initialise(module, config.initializer_range))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        position_ids: Tensor | None = None,
        output_positions: Tensor | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        output_attention_scores: bool = False,
        remove_padding: bool = False,
        pooled: bool = True,
    ) -> EncoderOutput:
        """input_ids, attention_mask (1 real, 0 padding), token_type_ids: each (B, T) whole numbers.

        `position_ids` (B, T): rows of the position table, where they do not just follow the text.
        `output_positions` (B, K), [CLS] first: the last layer is computed there only, and T is K
        in its output. `remove_padding`: the blocks work on the real tokens alone, and states at the
        padding are zeros. `pooled`: False leaves out the pooler. Raises ValueError for empty or too
        long texts, for ids outside their tables, and for what padding cannot be removed from."""
        check_mask(input_ids, attention_mask)
        position_kwargs = {}
        if position_ids is not None:
            check_positions(position_ids, input_ids, getattr(self.embeddings, "position", None))
            position_kwargs["position_ids"] = position_ids
        x = to_autocast_dtype(self.embeddings(input_ids, token_type_ids, **position_kwargs))
        keep_weights = output_attentions or output_attention_scores
        mask: Tensor | Packing | None = attention_mask
        if remove_padding:
            check_removable(self.stack, keep_weights, output_positions)
            if attention_mask is not None:
                mask = Packing(attention_mask)
                x = mask.unpad(x)  # (B, T, H) -> (N, H)
        states, weights, scores = self.stack(x, mask, keep_weights, output_positions)
        if isinstance(mask, Packing):
            kept_states = states if output_hidden_states else states[-1:]
            states = [mask.pad(state) for state in kept_states]  # each (B, T, H) again
        return EncoderOutput(
            last_hidden_state=states[-1],
            pooler_output=self.pool(states[-1], attention_mask) if pooled and self.pooler else None,
            hidden_states=tuple(states) if output_hidden_states else None,
            attentions=tuple(weights) if output_attentions else None,
            attention_scores=tuple(scores) if output_attention_scores else None,
        )

    def pool(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """The pooler's vector of each text: (B, T, H) -> (B, H)."""
        pooler: Any = self.pooler
        if self.config.pools_late:  # every token as if it were the first one
            hidden = pooler(hidden.flatten(0, 1)[:, None]).unflatten(0, hidden.shape[:2])
            return mean_state(hidden, mask)[:, 0]
        return pooler(mean_state(hidden, mask) if self.config.pools_mean else hidden)


def to_autocast_dtype(x: Tensor) -> Tensor:
    """Under autocast, x in its short format: else every block would cast to it and back."""
    kind = x.device.type
    if kind == "meta" or not torch.is_autocast_enabled(kind):
        return x
    return x.to(torch.get_autocast_dtype(kind))


def initialise(module: nn.Module, sd: float) -> None:
    """BERT's random initialisation: normal with standard deviation `sd`, cut at two of them; biases
    zero."""
    if isinstance(module, (nn.Linear, nn.Embedding)) and not module.weight.is_meta:
        if sd:
            nn.init.trunc_normal_(module.weight, std=sd, a=-2 * sd, b=2 * sd)
        else:
            nn.init.zeros_(module.weight)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])


def drop_biases(module: nn.Module) -> None:
    """Take the biases out of every dense layer and LayerNorm inside."""
    for part in module.modules():
        if isinstance(part, (nn.Linear, nn.LayerNorm)):
            part.register_parameter("bias", None)


def count_parameters(module: nn.Module) -> int:
    """Number of trained numbers in a model; a tied matrix counts once."""
    return sum(p.numel() for p in module.parameters())


def check_input(input_ids: Tensor, token_type_ids: Tensor | None, config: BertConfig) -> None:
    """Raise ValueError, in words, for what would otherwise be an index error deep inside a
    table."""
    if input_ids.dim() != 2 or 0 in input_ids.shape:
        raise ValueError(
            f"input_ids of shape {tuple(input_ids.shape)} was given; expected (batch, tokens) "
            "with at "
            "least one of each. An empty text still has [CLS] and [SEP]: tokenise it first."
        )
    tokens = input_ids.shape[1]
    if tokens > config.longest_text:
        more = config.max_positions - config.longest_text
        raise ValueError(
            f"A text of {tokens} tokens was given; this model has positions for at most "
            f"{config.longest_text}. Cut it, split it, or build the model with "
            f"max_positions={tokens + more}."
        )
    _check_ids("input_ids", input_ids, config.vocab_size, "the tokenizer belongs to another model?")
    if token_type_ids is not None:
        if token_type_ids.shape != input_ids.shape:
            raise ValueError(
                f"token_type_ids of shape {tuple(token_type_ids.shape)} was given; expected that "
                "of "
                f"input_ids, {tuple(input_ids.shape)}: one segment number a token."
            )
        segments = config.type_vocab_size
        advice = (
            "segments count from 0." if segments else "this model has no segments: leave it out."
        )
        _check_ids("token_type_ids", token_type_ids, max(1, segments), advice)


def check_positions(position_ids: Tensor, input_ids: Tensor, table: nn.Embedding | None) -> None:
    """Raise ValueError where there is no position table, or no row of it for each token."""
    if table is None or position_ids.shape != input_ids.shape:
        raise ValueError(
            f"position_ids of shape {tuple(position_ids.shape)} was given; expected that of "
            f"input_ids, {tuple(input_ids.shape)}, and a model whose embeddings are BERT's, with a "
            "position table. Leave it out where positions just follow the text."
        )
    _check_ids("position_ids", position_ids, table.num_embeddings, "the position table's rows.")


def _check_ids(name: str, ids: Tensor, rows: int, advice: str) -> None:
    if ids.is_meta or torch.compiler.is_compiling():
        return
    low, high = (int(x) for x in torch.aminmax(ids))
    if low < 0 or high >= rows:
        raise ValueError(
            f"{name} from {low} to {high} were given; expected numbers from 0 to {rows - 1}: "
            f"{advice}"
        )


def check_mask(input_ids: Tensor, attention_mask: Tensor | None) -> None:
    """Raise ValueError when the padding mask has another shape than the text, or other values."""
    if attention_mask is None:
        return
    if attention_mask.shape != input_ids.shape:
        raise ValueError(
            f"attention_mask of shape {tuple(attention_mask.shape)} was given; expected that of "
            f"input_ids, {tuple(input_ids.shape)}: 1 at real tokens, 0 at padding."
        )
    check_zero_or_one(attention_mask)


def check_zero_or_one(attention_mask: Tensor) -> None:
    """Raise ValueError for a mask of other numbers, such as one that is added to scores."""
    if attention_mask.is_meta or torch.compiler.is_compiling():
        return
    if not bool(((attention_mask == 0) | (attention_mask == 1)).all()):
        raise ValueError(
            f"attention_mask with numbers from {attention_mask.min().item():g} to "
            f"{attention_mask.max().item():g} was given; expected 1 at real tokens, 0 at padding. "
            "A mask to be added to the scores is another thing: (added == 0) makes this one of it."
        )


def check_removable(stack: nn.Module, output_attentions: bool, positions: Tensor | None) -> None:
    """Raise ValueError where padding cannot be removed."""
    if output_attentions or positions is not None:
        other = "output_attentions or output_attention_scores"
        other = other if positions is None else "output_positions"
        raise ValueError(
            f"remove_padding=True was given with {other}; expected it alone: these need the whole "
            "(B, T). Leave one of the two out."
        )
    attentions = (getattr(part, "attention", None) for part in stack.modules())
    others = {type(x).__name__ for x in attentions if x and not isinstance(x, SelfAttention)}
    if others:
        raise ValueError(
            f"remove_padding=True was given to a model with {', '.join(sorted(others))}; expected "
            "SelfAttention, to which a token's position does not matter. Leave it out."
        )
