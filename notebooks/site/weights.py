"""A model as one script for a page: what the course ships, in small numbers, as text.

A page that is opened as a file may fetch nothing, but it may load a script. So a script calls
`courseModel(name, …)` with the weights in letters; models/models.js reads them again. Of a matrix,
each group of GROUP numbers of a row is whole numbers from −LARGEST to LARGEST and a scale, which is
rounded up to an eighth of an octave below the matrix's largest. Vectors stay float32."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.text.wordpiece import WordPiece

GROUP, LARGEST = 16, 127  # numbers with a common scale; the largest of both signs
LETTERS = [chr(n) for n in range(33, 127) if chr(n) not in '"\\']  # 92 that JSON writes as they are
STEPS = 8  # of the scale an octave


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
    parts = {key: _written(weight) for key, weight in weights.items()}
    tensors = [[key, list(weights[key].shape), top] for key, (top, _) in parts.items()]
    return {
        "tensors": tensors,
        "group": GROUP,
        **whole("".join(text for _, text in parts.values())),
    }


def whole(text: str) -> dict[str, Any]:
    """A text for a script, with what shows damage."""
    return {"data": text, "adler": zlib.adler32(text.encode("ascii"))}


def as_letters(digits: np.ndarray) -> str:
    """Whole numbers from 0 to 91, a letter each."""
    return "".join(np.array(LETTERS)[digits.ravel()])


def bytes_as_letters(numbers: np.ndarray) -> str:
    """Whole numbers from 0 to 254, four in five letters: of each its third, rounded down, and in
    the fifth letter what is left of all four."""
    groups = np.pad(numbers.ravel(), (0, -numbers.size % 4)).reshape(-1, 4)
    return as_letters(np.column_stack((groups // 3, groups % 3 @ (1, 3, 9, 27))))


def floats_as_letters(values: np.ndarray) -> str:
    """The bits of float32 numbers, five letters each, the lowest digit first."""
    bits = values.astype("<f4").view(np.uint32).astype(np.int64)
    return as_letters(np.column_stack([bits // len(LETTERS) ** n % len(LETTERS) for n in range(5)]))


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


def in_groups(
    weight: Tensor, group: int = GROUP, largest: int = LARGEST
) -> tuple[np.ndarray, np.ndarray, float]:
    """A matrix (R, C) as whole numbers (R, C), the steps of its groups' scales below the first one
    (R, ⌈C / group⌉), and that scale."""
    matrix = weight.detach().float().numpy()
    most = np.maximum.reduceat(np.abs(matrix), np.arange(0, matrix.shape[1], group), axis=1)
    top = float(most.max(initial=0.0)) / largest
    ratios = np.divide(most / largest, top, out=np.zeros_like(most), where=most > 0)
    steps = np.floor(-STEPS * np.log2(np.maximum(ratios, 1e-30)))
    steps = np.clip(steps, 0, len(LETTERS) - 1).astype(np.uint8)
    each = scales(steps, top, group, matrix.shape[1])
    numbers = np.divide(matrix, each, out=np.zeros_like(matrix), where=each > 0)
    return np.clip(np.rint(numbers), -largest, largest).astype(np.int8), steps, top


def scales(steps: np.ndarray, top: float, group: int, columns: int) -> np.ndarray:
    """The scale of every number, (R, C)."""
    return np.repeat((top * 0.5 ** (steps / STEPS)).astype(np.float32), group, axis=1)[:, :columns]


def _written(weight: Tensor) -> tuple[float, str]:
    """A matrix's first scale and its letters, scales and then numbers; a vector's bits."""
    if weight.dim() == 1:
        return 0.0, floats_as_letters(weight.detach().float().numpy())
    numbers, steps, top = in_groups(weight)
    return top, as_letters(steps) + bytes_as_letters(numbers.astype(int) + LARGEST)


def _read_again(weight: Tensor) -> Tensor:
    if weight.dim() == 1:
        return weight.float()
    numbers, steps, top = in_groups(weight)
    return torch.from_numpy(numbers * scales(steps, top, GROUP, numbers.shape[1]))
