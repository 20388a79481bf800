"""ERNIE of Baidu: BERT with other masks (Sun et al. 2019). Not Tsinghua's ERNIE, which is another
model of the same name: see ernie_tsinghua.py.

The model differs in little: ReLU for GELU, 513 positions, 18,000 tokens (Chinese characters), and
from version 2.0 on a fourth embedding, the task's. Knowledge enters by what is masked: that is in
objectives/knowledge_masking.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Embeddings, Encoder, Pooler
from course_lib.heads import BertForPreTraining


@dataclass(frozen=True)
class ErnieConfig(BertConfig):
    """The shape of an ERNIE; defaults are ERNIE 1.0 as released. (transformers' defaults differ:
    GELU, 512 positions and BERT's vocabulary.)"""

    vocab_size: int = 18_000
    max_positions: int = 513
    hidden_act: str = "relu"
    task_types: int = 0  # rows of the task embedding; 3 in ERNIE 2.0 and 3.0, none in 1.0

    activations: ClassVar[tuple[str, ...]] = (*BertConfig.activations, "relu")
    sizes: ClassVar[dict[str, int]] = {"task_types": 0}


class TaskEmbeddings(Embeddings):
    """BERT's sum with a fourth summand: the vector of the task, the same at every token.

    task_id: the task's row. It stays until it is set anew: a batch has one task."""

    def __init__(self, config: ErnieConfig) -> None:
        super().__init__(config)
        self.task = nn.Embedding(config.task_types, config.hidden_size)
        self.task_id = 0

    def summands(self, input_ids: Tensor, token_type_ids: Tensor) -> dict[str, Tensor]:
        task_ids = torch.full_like(input_ids, self.task_id)
        return {**super().summands(input_ids, token_type_ids), "task": self.task(task_ids)}


def ernie_encoder(config: ErnieConfig, pooler: bool = True) -> Encoder:
    """BERT's encoder with these settings, and task embeddings where there are tasks."""
    embeddings = TaskEmbeddings(config) if config.task_types else None
    return Encoder(config, embeddings, pooler=Pooler(config) if pooler else None)


def ernie(size: str = "base", *, pooler: bool = True, **changes: Any) -> Encoder:
    """An ERNIE encoder, randomly initialised; `changes` override settings of the published size."""
    return ernie_encoder(published("ernie", size, ErnieConfig, **changes), pooler)


def ernie_for_pretraining(size: str = "base", **changes: Any) -> BertForPreTraining:
    """The encoder with the masked-word head and the pair head."""
    return BertForPreTraining(ernie(size, **changes))
