"""ctranslate2: its converter for transformers' models, then the states of its encoder."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from each import difference, inputs_of

PACKAGES = ("ctranslate2", "transformers", "torch")


def read(folder: Path) -> dict[str, Any]:
    import ctranslate2

    with TemporaryDirectory() as out:
        ctranslate2.converters.TransformersConverter(str(folder)).convert(out, force=True)
        encoder = ctranslate2.Encoder(out, device="cpu", compute_type="float32")
        inputs = inputs_of(folder)
        lengths = inputs["attention_mask"].sum(axis=1)
        more = {}
        if "token_type_ids" in inputs:
            more["token_type_ids"] = [
                row[:n].tolist() for row, n in zip(inputs["token_type_ids"], lengths, strict=True)
            ]
        rows = [row[:n].tolist() for row, n in zip(inputs["input_ids"], lengths, strict=True)]
        states = np.array(encoder.forward_batch(rows, **more).last_hidden_state)
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    shifted = "roberta" in settings["model_type"] and settings["pad_token_id"] == 0
    lost = "the head" + ", a RoBERTa's positions (off by one) where pad_token_id is 0" * shifted
    return {"difference": difference(folder, "last_hidden_state", states), "lost": lost}
