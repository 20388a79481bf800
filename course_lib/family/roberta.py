"""RoBERTa: BERT's blocks as they are, pre-trained on masked words alone (Liu et al. 2019).

The model differs in three small things: another vocabulary, one segment type instead of two, and
position numbers that begin after the padding's. The rest of the paper is about training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Embeddings, Encoder, Pooler
from course_lib.heads import BertForMaskedLM


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """The shape of a RoBERTa; defaults are RoBERTa-base as released."""

    vocab_size: int = 50_265  # byte-level BPE
    max_positions: int = 514  # 512 for text, after the row of padding and the rows before it
    type_vocab_size: int = 1
    pad_token_id: int = 1
    layer_norm_eps: float = 1e-5

    dropout_before_pooler: ClassVar[bool] = True  # of a classifier; in BERT's, only after it

    @property
    def longest_text(self) -> int:
        """Text begins at row pad_token_id + 1 of the position table."""
        return self.max_positions - self.pad_token_id - 1


def position_ids_after_padding(input_ids: Tensor, pad_token_id: int) -> Tensor:
    """RoBERTa's position ids: the k-th real token (from 1) has pad_token_id + k; padding has
    pad_token_id. (B, T) -> (B, T)."""
    real = (input_ids != pad_token_id).long()
    return pad_token_id + real.cumsum(dim=1) * real


class RobertaEmbeddings(Embeddings):
    """BERT's with RoBERTa's position ids; the row of padding stays zero, as in the released
    weights."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__(config)
        self.position = nn.Embedding(
            config.max_positions, config.hidden_size, padding_idx=config.pad_token_id
        )

    def make_position_ids(self, input_ids: Tensor) -> Tensor:
        return position_ids_after_padding(input_ids, self.config.pad_token_id)


def roberta_encoder(config: RobertaConfig, pooler: bool = True) -> Encoder:
    """BERT's encoder with RoBERTa's position ids."""
    return Encoder(config, RobertaEmbeddings(config), pooler=Pooler(config) if pooler else None)


def roberta(size: str = "base", *, pooler: bool = True, **changes: Any) -> Encoder:
    """A RoBERTa encoder, randomly initialised; `changes` override settings of the published
    size."""
    return roberta_encoder(published("roberta", size, RobertaConfig, **changes), pooler)


def roberta_for_masked_lm(size: str = "base", **changes: Any) -> BertForMaskedLM:
    """The encoder, without the pooler that no loss would train, and the masked-word head."""
    return BertForMaskedLM(roberta(size, pooler=False, **changes))
