"""BERT: a stack of Transformer encoder blocks, pre-trained on MLM and NSP (Devlin et al. 2018)."""

from __future__ import annotations

from typing import Any

from course_lib.config import published
from course_lib.encoder import Encoder, Pooler
from course_lib.heads import BertForPreTraining


def bert(size: str = "base", **changes: Any) -> Encoder:
    """A BERT encoder, randomly initialised; `changes` override settings of the published size."""
    config = published("bert", size, **changes)
    return Encoder(config, pooler=Pooler(config))


def bert_for_pretraining(size: str = "base", **changes: Any) -> BertForPreTraining:
    """The same encoder with the masked-word head and the sentence-pair head on top."""
    return BertForPreTraining(bert(size, **changes))
