"""ELECTRA: a small BERT fills the gaps, a second one says of every token whether it was replaced
(Clark et al. 2020, section 2).

The second network, the discriminator, is kept; the first, the generator, is thrown away. Both read
through the same embedding tables, or, in DeBERTa-v3, the second through the first's and a
difference of its own. The loss is in objectives/replaced_tokens.py.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import BertConfig, check_choice, published
from course_lib.encoder import Embeddings, Encoder, pooler_for
from course_lib.heads import BertForMaskedLM, BertForReplacedTokens
from course_lib.kernels.sampling import sample_tokens

from .albert import FactorisedEmbeddings, tables_of

GENERATOR_SIZE = {"small": 1 / 4, "base": 1 / 3, "large": 1 / 4}  # of the discriminator's width
DISENTANGLED = "gradient-disentangled"
TIED = ("all", "tokens", DISENTANGLED, "none")


@dataclass(frozen=True)
class ElectraConfig(BertConfig):
    """The shape of one of ELECTRA's two networks; defaults are those of the small discriminator.

    embedding_size: width of the tables, E; the generator has the discriminator's. Raises ValueError
    unless it is a whole number of at least 1."""

    hidden_size: int = 256
    num_heads: int = 4
    intermediate_size: int = 1_024
    embedding_size: int = 128

    sizes: ClassVar[dict[str, int]] = {"embedding_size": 1}
    pooler: ClassVar[str] = "gelu"
    dropout_before_pooler: ClassVar[bool] = True


@dataclass
class ElectraOutput:
    """What both networks said; N positions were masked."""

    prediction_logits: Tensor  # (N, V), the generator's
    logits: Tensor  # (B, T), the discriminator's; above zero: replaced
    corrupted_ids: Tensor  # (B, T), what the discriminator read
    predict_at: Tensor  # (N,), the masked positions as b·T + t
    attention_mask: Tensor  # (B, T), 1 real, 0 padding


class DisentangledEmbedding(nn.Module):
    """E_D = stop_gradient(E_G) + Δ: another network's token table, which is read and never trained
    from here, plus a difference that begins at zero and takes all of the gradient (He, Gao and Chen
    2021, gradient-disentangled embedding sharing).

    table: E_G, (V, E); looked up, not owned."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self._table = (table,)  # in a tuple, so that it is registered once, by the generator
        self.difference = nn.Parameter(torch.zeros_like(table.weight))

    @property
    def weight(self) -> Tensor:
        """E_D as it is now, (V, E)."""
        return self._table[0].weight.detach() + self.difference

    def forward(self, input_ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, E)"""
        table = self._table[0]
        fixed = F.embedding(input_ids, table.weight.detach())
        return fixed + F.embedding(input_ids, self.difference, table.padding_idx)

    def merged(self) -> nn.Embedding:
        """The sum as one plain table."""
        padding = self._table[0].padding_idx
        return nn.Embedding.from_pretrained(self.weight.detach(), freeze=False, padding_idx=padding)


class Electra(nn.Module):
    """Both networks as one model to train; `discriminator.encoder` is what is kept.

    tied: which tables the generator takes from the discriminator: "all" (token, position, segment),
    "tokens", or "none"; "gradient-disentangled": the discriminator reads the generator's token
    table, held fixed, plus a difference (DisentangledEmbedding). Raises ValueError for another
    word, and for tables of unequal width."""

    def __init__(
        self, generator: BertForMaskedLM, discriminator: BertForReplacedTokens, tied: str = "all"
    ) -> None:
        super().__init__()
        _tie(generator, discriminator, tied)
        self.generator = generator
        self.discriminator = discriminator
        self.config = discriminator.config

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        predict_at: Tensor,
    ) -> ElectraOutput:
        """input_ids (B, T) with [MASK] at the positions `predict_at` (N,), given as b·T + t."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        guess = self.generator(input_ids, attention_mask, token_type_ids, predict_at)
        corrupted = fill_in(input_ids, predict_at, guess.logits)
        judged = self.discriminator(corrupted, attention_mask, token_type_ids)
        return ElectraOutput(guess.logits, judged.logits, corrupted, predict_at, attention_mask)


@torch.no_grad()
def fill_in(
    input_ids: Tensor, predict_at: Tensor, logits: Tensor, uniforms: Tensor | None = None
) -> Tensor:
    """The text with a word drawn from the generator's distribution at each masked position.

    input_ids (B, T), predict_at (N,) as b·T + t, logits (N, V). uniforms (N,): random numbers, 0
    to 1, drawn anew if None. Sampling is not differentiable: the generator never learns from
    the discriminator. Returns new ids (B, T)."""
    if uniforms is None:
        uniforms = torch.rand(len(predict_at), device=logits.device)
    filled = input_ids.flatten().clone()
    filled[predict_at] = sample_tokens(logits, uniforms)
    return filled.view_as(input_ids)


def electra_encoder(config: ElectraConfig, pooler: bool = False) -> Encoder:
    """BERT's encoder; its tables are E wide, and a projection to H follows where E is not H."""
    if config.embedding_size == config.hidden_size:
        embeddings: nn.Module = Embeddings(config)
    else:
        embeddings = FactorisedEmbeddings(config, config.embedding_size)
    return Encoder(config, embeddings, pooler=pooler_for(config) if pooler else None)


def generator_config(config: ElectraConfig, size: float) -> ElectraConfig:
    """The generator that goes with a discriminator: equally deep, `size` times as wide, with
    embedding tables of the same width. Heads keep their width where that is possible.

    Raises ValueError unless size is above 0 and leaves a whole number of heads."""
    hidden = round(config.hidden_size * size)
    if not size > 0 or hidden < 1:
        raise ValueError(
            f"size={size!r} was given; expected a fraction of the discriminator's width above 0, "
            "such as 1/4."
        )
    return replace(
        config,
        hidden_size=hidden,
        num_heads=max(1, hidden // config.head_size),
        intermediate_size=hidden * config.intermediate_size // config.hidden_size,
    )


def electra_from(config: ElectraConfig, size: float = 1 / 4, tied: str = "all") -> Electra:
    """Both networks, randomly initialised; config is the discriminator's, size the generator's."""
    return Electra(
        BertForMaskedLM(electra_encoder(generator_config(config, size))),
        BertForReplacedTokens(electra_encoder(config)),
        tied,
    )


def electra(size: str = "small", *, tied: str = "all", **changes: Any) -> Electra:
    """Both networks of a published size, randomly initialised; `changes` override settings."""
    config = published("electra", size, ElectraConfig, **changes)
    return electra_from(config, GENERATOR_SIZE[size], tied)


def merged(discriminator: BertForReplacedTokens) -> BertForReplacedTokens:
    """A copy that needs no generator any more: E_G and Δ are added into one table. This is what is
    saved and fine-tuned. Of a discriminator with a table of its own, a plain copy."""
    alone = deepcopy(discriminator)
    tables = tables_of(alone.encoder)
    if isinstance(tables.token, DisentangledEmbedding):
        tables.token = tables.token.merged()
    return alone


def electra_discriminator(size: str = "small", **changes: Any) -> BertForReplacedTokens:
    """The network that is kept, with its head, randomly initialised."""
    config = published("electra", size, ElectraConfig, **changes)
    return BertForReplacedTokens(electra_encoder(config))


def _tie(generator: BertForMaskedLM, discriminator: BertForReplacedTokens, tied: str) -> None:
    """Let the generator read, and its head write, through the discriminator's tables; or the
    discriminator read through the generator's."""
    check_choice("tied", tied, TIED)
    if tied == "none":
        return
    ours, theirs = tables_of(generator.encoder), tables_of(discriminator.encoder)
    names = ("token", "position", "segment") if tied == "all" else ("token",)
    for name in names:
        own, other = (getattr(tables, name) for tables in (ours, theirs))
        shapes = [None if x is None else tuple(x.weight.shape) for x in (own, other)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{name} tables of shapes {shapes[0]} (generator) and {shapes[1]} (discriminator) "
                "were given to be tied; expected the same: give both networks the same vocab_size, "
                "embedding_size, max_positions and type_vocab_size, or tie less."
            )
    if tied == DISENTANGLED:
        theirs.token = DisentangledEmbedding(ours.token)  # type: ignore[assignment]
        return
    ours.token = theirs.token
    if tied == "all":
        ours.position, ours.segment, ours.norm = theirs.position, theirs.segment, theirs.norm
    generator.mlm.tie(theirs.token)
