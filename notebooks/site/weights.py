"""A model as one script for a page: what the course ships, in small numbers, as text.

A page that is opened as a file may fetch nothing, but it may load a script. So the weights are
base64 inside a script that calls `courseModel(name, …)`; models/models.js reads them again.
Matrices are int8, each group of GROUP numbers of a row with a scale of its own (float16); vectors
stay float32."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.text.wordpiece import WordPiece

GROUP = 16  # numbers with a common scale


def write_model(name: str, model: nn.Module, tokenizer: WordPiece, folder: Path) -> Path:
    """Write folder/name.js, which courseModels.open(name) reads, and return its path.

    model: an encoder or a model with a head, whose parts are those of models/encoder.js. Raises
    ValueError for a tokenizer with tokens that are looked for in normalised text."""
    what = {
        "config": config_of(model),
        "tokenizer": settings_of(tokenizer),
        "vocab": tokenizer.vocab,
        **numbers_of(named(model.state_dict())),
    }
    return write_script(name, what, folder)


def write_script(name: str, what: dict[str, Any], folder: Path) -> Path:
    """Write folder/name.js, which gives the page `what`, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.js"
    text = json.dumps(what, separators=(",", ":"))
    path.write_text(f"courseModel({json.dumps(name)}, {text});\n", encoding="utf-8")
    return path


def named(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights under the names that models/encoder.js has for them."""
    return {key.removeprefix("encoder."): weight for key, weight in state.items()}


def numbers_of(weights: dict[str, Tensor]) -> dict[str, Any]:
    """Weights by name as what the script needs of them."""
    tensors = [[key, list(weight.shape)] for key, weight in weights.items()]
    data = b"".join(_written(weight) for weight in weights.values())
    return {"tensors": tensors, "group": GROUP, **as_text(data)}


def as_text(data: bytes) -> dict[str, Any]:
    """Bytes as a script can hold them, with what shows damage."""
    text = base64.b64encode(data).decode("ascii")
    return {"bytes": len(data), "adler": zlib.adler32(data), "data": text}


def as_written(model: nn.Module) -> dict[str, Tensor]:
    """The model's state_dict with the weights that `write_model` writes, as float32 again."""
    return {key: _read_again(weight) for key, weight in model.state_dict().items()}


def config_of(model: Any) -> dict[str, Any]:
    """What the script needs of a configuration, by the names that course_lib has for it."""
    return {**asdict(model.config), "gelu_form": model.config.gelu_form}


def settings_of(tokenizer: WordPiece) -> dict[str, Any]:
    """What the script needs of a tokenizer beside its vocabulary."""
    if normalised := [token for token, normal in tokenizer.added_tokens.items() if normal]:
        raise ValueError(
            f"a tokenizer that looks for {', '.join(normalised)} in normalised text was given; "
            "expected added tokens that are taken as they are written. The page knows no others."
        )
    longest = sorted(tokenizer.added_tokens, key=len, reverse=True)
    settings = {**tokenizer.normalisation, "strip_accents": tokenizer.strip_accents}
    return {**settings, "max_chars": tokenizer.max_chars, "added_tokens": longest}


def in_groups(weight: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """A matrix (R, C) as int8 (R, C), and the scales of its groups, float16 (R, ⌈C / GROUP⌉)."""
    matrix = weight.detach().float().numpy()
    starts = np.arange(0, matrix.shape[1], GROUP)
    largest = np.maximum.reduceat(np.abs(matrix), starts, axis=1)
    scales = (largest / 127).astype(np.float16)
    each = _each_column(scales, matrix.shape[1])
    whole = np.divide(matrix, each, out=np.zeros_like(matrix), where=each > 0)
    return np.clip(np.rint(whole), -127, 127).astype(np.int8), scales


def _each_column(scales: np.ndarray, columns: int) -> np.ndarray:
    return np.repeat(scales.astype(np.float32), GROUP, axis=1)[:, :columns]


def _written(weight: Tensor) -> bytes:
    """A vector as float32, a matrix as its scales and then its int8, all little-endian."""
    if weight.dim() == 1:
        return weight.detach().float().numpy().astype("<f4").tobytes()
    numbers, scales = in_groups(weight)
    return scales.astype("<f2").tobytes() + numbers.tobytes()


def _read_again(weight: Tensor) -> Tensor:
    if weight.dim() == 1:
        return weight.float()
    numbers, scales = in_groups(weight)
    return torch.from_numpy(numbers * _each_column(scales, numbers.shape[1]))
