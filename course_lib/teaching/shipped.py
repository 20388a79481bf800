"""Micro-world models that the course ships and more than one lecture looks at."""

from __future__ import annotations

from course_lib.checkpoints import load
from course_lib.family.electra import Electra
from course_lib.files import data_path
from course_lib.heads import BertForMaskedLM, BertForReplacedTokens

CHECKPOINTS, NETWORKS = ("checkpoints",), ("micro_electra_generator", "micro_electra_discriminator")


def micro_electra() -> Electra:
    """The ELECTRA that the course ships, frozen: both networks, sharing their embeddings."""
    generator, discriminator = (load(data_path(*CHECKPOINTS, f"{n}.safetensors")) for n in NETWORKS)
    assert isinstance(generator, BertForMaskedLM)
    assert isinstance(discriminator, BertForReplacedTokens)
    return Electra(generator, discriminator).requires_grad_(False).eval()
