"""model2vec: a static vector for each token, the mean of its states between the special tokens.

Compared with our own model's, for the words of the texts; its reduction and weights switched off.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("model2vec", "skeletoken", "transformers", "torch")


def read(folder: Path) -> dict[str, Any]:
    from model2vec.distill import distill

    answers = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    static = distill(
        str(folder), pca_dims=None, sif_coefficient=None, quantize_to="float32", device="cpu"
    )
    vocabulary = static.tokenizer.get_vocab()
    pairs = [
        (static.embedding[vocabulary[token]], answers["static"][token])
        for token in answers["static"]
        if token in vocabulary
    ]
    if len(pairs) < len(answers["static"]) / 2:
        raise ValueError(f"only {len(pairs)} of {len(answers['static'])} tokens have a vector")
    ours = np.array([right for _, right in pairs])
    apart = np.abs(np.array([vector for vector, _ in pairs]) - ours).max()
    gone = [token for token in answers["special"] if token not in vocabulary]
    lost = "context, the head" + (f", {' '.join(gone)}" if gone else "")
    lost += ", XLM's language" * (folder.name == "XLM")
    return {"difference": float(apart / max(1, np.abs(ours).max())), "lost": lost}
