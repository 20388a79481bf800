"""ELMo's weights and the words that it predicts, in a file of our own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch

from course_lib.family.elmo import ElmoConfig, ElmoForBiLM
from course_lib.files import one_error
from course_lib.text.characters import WordVocabulary

from .convert import check_sizes
from .reading import CheckpointError, MissingCheckpoint
from .saved import read_own, write_own

KIND = "ElmoForBiLM"


def save_elmo(model: ElmoForBiLM, vocabulary: WordVocabulary, path: str | Path) -> str:
    """Write weights, configuration and the predicted words to one safetensors file; returns its
    SHA-256. The same model gives the same bytes."""
    about = {"model": KIND, "config": asdict(model.config)}
    return write_own(model, path, {**about, "words": vocabulary.vocab[4 : vocabulary.predicted]})


def load_elmo(path: str | Path, sha256: str | None = None) -> tuple[ElmoForBiLM, WordVocabulary]:
    """The model that `save_elmo` wrote, in evaluation mode, and the words that it predicts.

    Raises MissingCheckpoint, or CheckpointError for a wrong hash, a file cut short or damaged, a
    pickle, or another model's file."""
    path = Path(path)
    with one_error(path, CheckpointError, MissingCheckpoint):
        about, state = read_own(path, sha256, [KIND])
        if about is None:
            raise CheckpointError(
                f"{path} holds no ELMo of this version of the course; expected a file that "
                "save_elmo or the pre-training command wrote."
            )
        config = ElmoConfig(**about["config"])
        check_sizes(config, state, str(path))
        with torch.device("meta"):
            model = ElmoForBiLM(config)
        model.load_state_dict(state, assign=True)
        return model.eval(), WordVocabulary(about["words"])
