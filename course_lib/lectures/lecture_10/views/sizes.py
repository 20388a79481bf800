"""What the multilingual models hold, counted: how much of each is the table of its words."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch

from course_lib.encoder import Encoder, count_parameters
from course_lib.family.bert import bert
from course_lib.family.xlm import xlm
from course_lib.family.xlm_roberta import xlm_roberta
from course_lib.teaching.page import Html, number_table

MODELS: dict[str, tuple[Callable[..., Encoder], str, int]] = {  # how it is built, its languages
    "BERT-base (uncased)": (bert, "base", 1),
    "mBERT, uncased": (bert, "multilingual-uncased", 102),
    "mBERT, cased": (bert, "multilingual-cased", 104),
    "XLM, 15 languages": (xlm, "xnli15", 15),
    "XLM, English": (xlm, "en", 1),
    "XLM, 17 or 100 languages": (xlm, "100", 100),
    "XLM-R base": (xlm_roberta, "base", 100),
    "XLM-R large": (xlm_roberta, "large", 100),
}


class Size(NamedTuple):
    """A model counted on the meta device."""

    languages: int
    vocabulary: int
    layers: int
    width: int
    parameters: int
    embeddings: int  # of the embedding matrix of the vocabulary

    @property
    def embedding_fraction(self) -> float:
        """The fraction of all parameters that is the embedding matrix."""
        return self.embeddings / self.parameters


@cache
def size_of(name: str) -> Size:
    """A model of MODELS, with its pooler where the released one has one."""
    build, size, languages = MODELS[name]
    with torch.device("meta"):
        encoder = build(size)
    config = encoder.config
    return Size(
        languages, config.vocab_size, config.num_layers, config.hidden_size,
        count_parameters(encoder), config.vocab_size * config.hidden_size,
    )  # fmt: skip


def sizes_table() -> Html:
    """All of MODELS, counted now."""
    head = ("", "languages", "vocabulary", "L", "H", "parameters", "of these: words", "rest")
    return number_table(head, [_row(name, size_of(name)) for name in MODELS], "sizes")


def _row(name: str, size: Size) -> tuple[str, ...]:
    return (
        name, str(size.languages), f"{size.vocabulary:,}", str(size.layers), str(size.width),
        f"{size.parameters:,}", f"{size.embedding_fraction:.0%}",
        f"{size.parameters - size.embeddings:,}",
    )  # fmt: skip
