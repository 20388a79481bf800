"""Micro-world models that the course ships and more than one lecture looks at."""

from __future__ import annotations

from functools import lru_cache

from course_lib.checkpoints import load
from course_lib.checkpoints.elmo import load_elmo
from course_lib.family.electra import Electra
from course_lib.family.elmo import ElmoForBiLM
from course_lib.files import data_path, sha256_of
from course_lib.heads import BertForMaskedLM, BertForReplacedTokens
from course_lib.text.characters import WordVocabulary

CHECKPOINTS, NETWORKS = ("checkpoints",), ("micro_electra_generator", "micro_electra_discriminator")
TEACHER = ("checkpoints", "micro_teacher.safetensors")
ELMO = ("checkpoints", "micro_elmo.safetensors")


def micro_teacher() -> BertForMaskedLM:
    """The BERT of the micro-world that the course ships, frozen: four layers, lecture 06's
    teacher."""
    model = load(data_path(*TEACHER))
    assert isinstance(model, BertForMaskedLM)
    return model.requires_grad_(False).eval()


@lru_cache
def teacher_hash() -> str:
    """SHA-256 of its file: what it teaches depends on it."""
    return sha256_of(data_path(*TEACHER))


def micro_electra() -> Electra:
    """The ELECTRA that the course ships, frozen: both networks, sharing their embeddings."""
    generator, discriminator = (load(data_path(*CHECKPOINTS, f"{n}.safetensors")) for n in NETWORKS)
    assert isinstance(generator, BertForMaskedLM)
    assert isinstance(discriminator, BertForReplacedTokens)
    return Electra(generator, discriminator).requires_grad_(False).eval()


def micro_elmo() -> tuple[ElmoForBiLM, WordVocabulary]:
    """The ELMo of the micro-world that the course ships, frozen, and the words that it predicts:
    two LSTM layers of 128 cells in each direction."""
    model, words = load_elmo(data_path(*ELMO))
    return model.requires_grad_(False).eval(), words
