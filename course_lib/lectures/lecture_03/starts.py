"""What lecture 03's runs begin with: pre-trained encoders, and their shapes from random
initialisation."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import torch
from torch import nn

from course_lib.checkpoints import load_pretrained
from course_lib.encoder import Encoder, initialise
from course_lib.text.features import Tokenizer

COURSE, MINILM = "course's BERT", "MiniLM"
STARTS = (COURSE, f"{COURSE}, random init", MINILM, f"{MINILM}, random init")
NAMES = {COURSE: "course-bert", MINILM: "minilm"}


@cache
def pretrained(name: str) -> tuple[Encoder, Tokenizer]:
    """The encoder and the tokenizer of a start without its ", random init"."""
    loaded = load_pretrained(NAMES[name], instead="nothing: these runs are about it")
    assert loaded.tokenizer is not None
    return loaded.encoder, loaded.tokenizer


def encoder_of(start: str, seed: int = 0) -> Encoder:
    """The encoder a start begins with: pre-trained, or its shape from random initialisation."""
    encoder, _ = pretrained(start.removesuffix(", random init"))
    if not start.endswith(", random init"):
        return encoder
    return with_random_initialisation(deepcopy(encoder), seed)


def with_random_initialisation(encoder: Encoder, seed: int) -> Encoder:
    """The encoder given, all its weights drawn anew and its norms reset."""

    def draw(module: nn.Module) -> None:
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
        initialise(module, encoder.config.initializer_range)

    torch.manual_seed(seed)
    return encoder.apply(draw)


@cache
def weights_of(start: str) -> str:
    """The SHA-256 of a start's weights: a run belongs to them."""
    return load_pretrained(NAMES[start.removesuffix(", random init")]).sha256
