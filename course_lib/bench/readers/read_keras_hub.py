"""keras-hub: the backbone that it makes of a folder of transformers', on torch."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from each import difference, inputs_of

PACKAGES = ("keras-hub", "keras", "tensorflow", "torch")
os.environ.update(KERAS_BACKEND="torch", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")


def read(folder: Path) -> dict[str, Any]:
    import keras_hub

    backbone = keras_hub.models.Backbone.from_preset(str(folder))
    inputs = inputs_of(folder)
    if "pixel_values" in inputs:
        features: Any = inputs["pixel_values"].transpose(0, 2, 3, 1)
    else:
        features = {
            "token_ids": inputs["input_ids"],
            "padding_mask": inputs["attention_mask"],
            "segment_ids": inputs.get("token_type_ids", np.zeros_like(inputs["input_ids"])),
        }
        features = {tensor.name: features[tensor.name] for tensor in backbone.inputs}
    outputs = backbone.predict(features, verbose=0)
    states = outputs["sequence_output"] if isinstance(outputs, dict) else outputs
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    lost = {
        "bert": ", BERT's GELU (its tanh form is taken)",
        "roberta": ", RoBERTa's vector of token type 0",
        "xlm-roberta": ", XLM-R's positions (off by one) where pad_token_id is not 1",
    }.get(settings["model_type"], "")
    return {
        "difference": difference(folder, "last_hidden_state", states),
        "lost": "the head" + lost,
    }


read.pictures = True  # type: ignore[attr-defined]
