"""What page 10 shows of real text: what was read, vocabularies of seven languages, retrieval."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from course_lib.teaching import ablation_chart
from course_lib.teaching.results import outcome, stored

NAMES = {
    "en": "English", "fr": "French", "zh": "Chinese", "ru": "Russian", "ko": "Korean",
    "pl": "Polish", "ja": "Japanese",
}  # fmt: skip
PANEL_LANGUAGES = ("en", "fr", "ko")  # panels of the vocabulary chart


def real_counts() -> str:
    """Sentences of each package and language; versions and licences; how many are aligned."""
    read = stored("10_vocabulary")["text"]
    lines = [f"{'':12}" + "".join(f"{name:>10}" for name in NAMES.values())]
    for package, of in read["counts"].items():
        lines.append(f"{package:12}" + "".join(f"{of.get(name, 0):10}" for name in NAMES))
    for names, splits in read["aligned"].items():
        lines.append(f"aligned, {names}: {splits['train']} to train, {splits['heldout']} held out")
    versions = (f"{p} {v} ({read['licences'][p]})" for p, v in read["versions"].items())
    return "\n".join([*lines, *versions])


def vocabulary_chart() -> Any:
    """Pieces a word of a language's messages, by kind of vocabulary and α."""
    result = stored("10_vocabulary")
    panels = {NAMES[name]: outcome(result, f"words {name}") for name in PANEL_LANGUAGES}
    figure = ablation_chart(
        {panel: {name.replace("bpe", "BPE"): of for name, of in rows.items()}
         for panel, rows in panels.items()},
        title="Into how many pieces a word is cut", x_title="pieces a word",
    )  # fmt: skip
    return figure.for_each_annotation(lambda a: a.update(text=_two_decimals(a.text)))


def _two_decimals(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", lambda match: f"{float(match[0]):.2f}", text)


FILES = {"three": "10_retrieval", "seven": "10_retrieval_seven"}  # languages, English among them
PANELS = {
    "three": {
        "French": "retrieval fr centred",
        "Chinese": "retrieval zh centred",
        "French and Chinese": "retrieval without English centred",
    },
    "seven": {
        "English and another": "retrieval with English centred",
        "two others": "retrieval without English centred",
    },
}


def retrieval_chart(languages: str = "three") -> Any:
    """Unseen messages whose nearest vector in another language is their translation. languages:
    "three" or "seven"."""
    result = stored(FILES[languages])
    return ablation_chart(
        {title: outcome(result, measure) for title, measure in PANELS[languages].items()},
        title="The nearest message is the translation", x_title="retrieval accuracy", percent=True,
    )  # fmt: skip


def layers_table(languages: str = "three") -> str:
    """Pairs with English: what each layer's mean-centred vectors find; and without a network."""
    result = stored(FILES[languages])
    measure = "layers with English centred"
    layers = len(next(iter(result["runs"].values()))[0][measure])
    rows = {
        name: [mean(run[measure][n] for run in runs) for n in range(layers)]
        for name, runs in result["runs"].items()
    }
    rows |= {name: [result[by]["retrieval with English"]] for name, by in WITHOUT.items()}
    return _table(("embeddings", *(f"layer {n}" for n in range(1, layers))), rows)


WITHOUT = {"spelling alone": "by_spelling", "counts of pieces": "by_counts"}


def languages_table() -> str:
    """Each of six languages with English: found by the last layer, mean-centred; and without a
    network."""
    result = stored(FILES["seven"])
    others = [name for name in NAMES if name != "en"]
    rows = {
        name: [mean(run[f"retrieval {other} centred"] for run in runs) for other in others]
        for name, runs in result["runs"].items()
    }
    rows |= {
        name: [result[by][f"retrieval {other}"] for other in others] for name, by in WITHOUT.items()
    }
    return _table([NAMES[other] for other in others], rows)


def _table(head: Sequence[str], rows: Mapping[str, Sequence[float]]) -> str:
    lines = [f"{'':24}" + "".join(f"{title:>12}" for title in head)]
    lines += [
        f"{name:24}" + "".join(f"{value:12.1%}" for value in values)
        for name, values in rows.items()
    ]
    return "\n".join(lines)
