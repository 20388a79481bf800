"""The readers that run where the course is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .each import difference, inputs_of

Row = dict[str, Any]


def read_transformers(folder: Path) -> Row:
    """The Auto classes: the ids of texts, and all outputs."""
    import transformers

    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = getattr(transformers, settings["architectures"][0])
    theirs = kind.from_pretrained(folder).eval()
    assert theirs.dtype == torch.float32
    if (folder / "expected.json").is_file():
        answers = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        ids = transformers.AutoTokenizer.from_pretrained(folder)(answers["texts"])["input_ids"]
        assert ids == answers["ids"], "AutoTokenizer gives other ids"
    inputs = {name: torch.from_numpy(x) for name, x in inputs_of(folder).items()}
    if settings["model_type"] == "xlm":
        inputs["langs"] = inputs.pop("token_type_ids")
    with torch.no_grad():
        outputs = theirs(**inputs)
    return {"difference": difference(folder, "logits", outputs.logits.numpy()), "lost": ""}


def read_sentence_transformers(folder: Path) -> Row:
    """A bare encoder with the mean over tokens."""
    from sentence_transformers import SentenceTransformer

    answers = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    vectors = SentenceTransformer(str(folder), device="cpu").encode(answers["texts"])
    lost = "the head" + ", XLM's language" * (folder.name == "XLM")
    return {"difference": difference(folder, "means", np.asarray(vectors)), "lost": lost}


def read_onnxruntime(folder: Path) -> Row:
    """The exported file, at another batch and length than it was traced with."""
    import onnxruntime

    session = onnxruntime.InferenceSession(
        folder / "onnx" / "model.onnx", providers=["CPUExecutionProvider"]
    )
    logits = session.run(["logits"], inputs_of(folder))[0]
    return {"difference": difference(folder, "logits", logits), "lost": "training"}


read_transformers.pictures = read_onnxruntime.pictures = True  # type: ignore[attr-defined]
LIGHT: dict[str, tuple[Callable[[Path], Row], tuple[str, ...]]] = {  # and the packages they are
    "transformers": (read_transformers, ("transformers", "torch")),
    "sentence-transformers": (read_sentence_transformers, ("sentence-transformers",)),
    "onnxruntime": (read_onnxruntime, ("onnxruntime", "onnx", "onnxscript")),
}


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    return {name: version(name) for name in packages}
