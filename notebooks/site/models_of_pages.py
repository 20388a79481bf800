"""The models that the site's pages run, by name: what the course ships, and what a page trains."""

from __future__ import annotations

from typing import Any

from course_lib import load_pretrained
from course_lib.teaching.shipped import micro_electra
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld


def model_of(name: str) -> tuple[Any, WordPiece]:
    """The model of this name and its tokenizer."""
    if name in ("electra-generator", "electra-discriminator"):
        return getattr(micro_electra(), name.removeprefix("electra-")), MicroWorld.load().tokenizer
    shipped = load_pretrained(name)
    assert isinstance(shipped.tokenizer, WordPiece)
    return shipped.model, shipped.tokenizer
