"""XLM-R: RoBERTa with one vocabulary for a hundred languages (Conneau et al. 2019).

Nothing in the model differs: no language is told, and there is no parallel text. What differs is
the text, and how often each language is read: text/language_sampling.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from course_lib.config import published
from course_lib.encoder import Encoder
from course_lib.heads import BertForMaskedLM

from .roberta import RobertaConfig, roberta_encoder


@dataclass(frozen=True)
class XlmRobertaConfig(RobertaConfig):
    """The shape of an XLM-R; defaults are XLM-R base as released. (transformers' defaults differ:
    BERT's vocabulary and 512 positions.)"""

    vocab_size: int = 250_002  # SentencePiece, on raw text


def xlm_roberta(size: str = "base", *, pooler: bool = True, **changes: Any) -> Encoder:
    """An XLM-R encoder, randomly initialised; `changes` override settings of the published size."""
    return roberta_encoder(published("xlm-roberta", size, XlmRobertaConfig, **changes), pooler)


def xlm_roberta_for_masked_lm(size: str = "base", **changes: Any) -> BertForMaskedLM:
    """The encoder, without the pooler that no loss would train, and the masked-word head."""
    return BertForMaskedLM(xlm_roberta(size, pooler=False, **changes))
