"""keras-hub: the backbone that it makes of a folder of transformers', on torch."""

from __future__ import annotations

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
        given: Any = inputs["pixel_values"].transpose(0, 2, 3, 1)
    else:
        given = {
            "token_ids": inputs["input_ids"],
            "padding_mask": inputs["attention_mask"],
            "segment_ids": inputs.get("token_type_ids", np.zeros_like(inputs["input_ids"])),
        }
        given = {tensor.name: given[tensor.name] for tensor in backbone.inputs}
    outputs = backbone.predict(given, verbose=0)
    states = outputs["sequence_output"] if isinstance(outputs, dict) else outputs
    return {"difference": difference(folder, "last_hidden_state", states), "lost": "the head"}


read.pictures = True  # type: ignore[attr-defined]
