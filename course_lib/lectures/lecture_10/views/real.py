"""What page 10 shows of real text: what was read, vocabularies of seven languages, retrieval."""

from __future__ import annotations

from statistics import mean
from typing import Any

from course_lib.teaching import ablation_chart
from course_lib.teaching.results import outcome, stored

NAMES = {
    "en": "English", "fr": "French", "zh": "Chinese", "ru": "Russian", "ko": "Korean",
    "pl": "Polish", "ja": "Japanese",
}  # fmt: skip
SHOWN = ("en", "fr", "ko")  # panels of the vocabulary chart


def real_counts() -> str:
    """Sentences of each package and language; versions and licences; how many are aligned."""
    read = stored("10_vocabulary")["text"]
    lines = [f"{'':12}" + "".join(f"{name:>10}" for name in NAMES.values())]
    for package, of in read["counts"].items():
        lines.append(f"{package:12}" + "".join(f"{of.get(name, 0):10}" for name in NAMES))
    for said, splits in read["aligned"].items():
        lines.append(f"aligned, {said}: {splits['train']} to train, {splits['heldout']} held out")
    versions = (f"{p} {v} ({read['licences'][p]})" for p, v in read["versions"].items())
    return "\n".join([*lines, *versions])


def vocabulary_chart() -> Any:
    """Pieces a word of a language's messages, by kind of vocabulary and α."""
    found = stored("10_vocabulary")
    return ablation_chart(
        {NAMES[name]: outcome(found, f"words {name}") for name in SHOWN},
        title="Into how many pieces a word is cut", x_title="pieces a word",
    )  # fmt: skip


def retrieval_chart() -> Any:
    """Unseen messages whose nearest vector in another language is their translation."""
    found = stored("10_retrieval")
    panels = {
        "French": "retrieval fr centred",
        "Chinese": "retrieval zh centred",
        "French and Chinese": "retrieval without English centred",
    }
    return ablation_chart(
        {said: outcome(found, measure) for said, measure in panels.items()},
        title="The nearest message is the translation", x_title="found", percent=True,
    )  # fmt: skip


def layers_table() -> str:
    """Pairs with English: found by each layer's mean vectors, means off; and without a network."""
    found = stored("10_retrieval")
    measure = "layers with English centred"
    layers = len(next(iter(found["runs"].values()))[0][measure])
    head = ("embeddings", *(f"layer {n}" for n in range(1, layers)))
    lines = [f"{'':24}" + "".join(f"{said:>12}" for said in head)]
    for name, runs in found["runs"].items():
        values = (mean(run[measure][n] for run in runs) for n in range(layers))
        lines.append(f"{name:24}" + "".join(f"{value:12.1%}" for value in values))
    for said in ("by_spelling", "by_counts"):
        value = found[said]["retrieval with English"]
        lines.append(f"{said.replace('_', ' '):24}{value:12.1%}")
    return "\n".join(lines)
