"""The stored runs as charts: are two languages aligned, and what holds in the other language."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean, stdev
from typing import Any

from course_lib.teaching import ablation_chart
from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import outcome, stored

LANGUAGES = ("norlish", "sumorian")
ROWS = ("random initialisation", "MLM", "MLM, longer", "TLM", "TLM, longer", "MLM + TLM, longer")
OTHER = "slots other own centred"  # the zero-shot measure that sentences speak of


def by_pair() -> dict[str, list[dict[str, Any]]]:
    """The runs of English and one other language, in the order of ROWS: "norlish, MLM"."""
    result = stored("10_pairs")
    random = {f"{name}, {ROWS[0]}": runs for name, runs in result["untrained"].items()}
    runs = random | result["runs"]
    return {name: runs[name] for name in (f"{of}, {row}" for of in LANGUAGES for row in ROWS)}


def reached(measure: str, language: str) -> dict[str, list[float]]:
    """Of one language beside English: what each row of ROWS reached, a value a seed."""
    runs = by_pair()
    return {row: [run[measure] for run in runs[f"{language}, {row}"]] for row in ROWS}


def aligned_chart() -> Any:
    """How often an unseen sentence's nearest vector in the other language is its translation."""
    return ablation_chart(
        {
            "Norlish": reached("retrieval", "norlish"),
            "Norlish, mean-centred": reached("retrieval centred", "norlish"),
            "Sumorian, mean-centred": reached("retrieval centred", "sumorian"),
        },
        title="Translations found by the nearest vector", x_title="retrieval accuracy",
        percent=True,
    )  # fmt: skip


def transfer_chart() -> Any:
    """Words whose slot a probe tells that has learned from English words alone."""
    return ablation_chart(
        {
            "tested in English": reached("slots english", "norlish"),
            "in Norlish, mean-centred": reached(OTHER, "norlish"),
            "in Sumorian, mean-centred": reached(OTHER, "sumorian"),
        },
        title="The kind of a word, for words not spelled as in English", x_title="accuracy",
        percent=True,
    )  # fmt: skip


def by_spelling() -> dict[str, list[dict[str, Any]]]:
    """The runs of MLM on two languages, by the fraction of words that both spell alike; Norlish as
    it is among them."""
    runs: dict[str, list[dict[str, Any]]] = stored("10_spellings")["runs"]
    as_it_is = {AS_IT_IS: stored("10_pairs")["runs"]["norlish, MLM, longer"]}
    return runs | as_it_is | stored("10_order")["runs"]


AS_IT_IS = "norlish, as it is"


def by_model() -> dict[str, list[dict[str, Any]]]:
    """The runs of one model of four languages, and what it is compared with."""
    runs_of: dict[str, list[dict[str, Any]]] = stored("10_transfer")["runs"]
    return {ROWS[0] if name == "untrained" else name: runs for name, runs in runs_of.items()}


WORLD_PANELS = {
    "topic, in Sumorian": "topic sumorian",
    "topic, in Chinese": "topic chinese",
    "kind of word, in Norlish": "slots norlish",
}


def four_languages_chart() -> Any:
    """One model of four languages, fine-tuned in English: the two tasks, asked in the others."""
    return ablation_chart(
        {
            title: {name: [run[measure] for run in runs] for name, runs in by_model().items()}
            for title, measure in WORLD_PANELS.items()
        },
        title="Fine-tuned in English, asked in the others", x_title="accuracy", percent=True,
    )  # fmt: skip


def spelling_chart() -> Any:
    """The same without translations, by how many words are spelled as in English."""
    rows = [name for name in by_spelling() if "100%" not in name]
    panels = {"kind of a word": OTHER, "translation of a sentence": "retrieval centred"}
    return ablation_chart(
        {
            title: {_short(name): [run[key] for run in by_spelling()[name]] for name in rows}
            for title, key in panels.items()
        },
        title="English and one other language, MLM alone", x_title="accuracy", percent=True,
    )  # fmt: skip


def _short(name: str) -> str:
    short = name.removeprefix("english ").removesuffix(" shared").replace(", as", " as")
    return short[0].upper() + short[1:]


def low_resource_chart() -> Any:
    """Masked words right, by how the two languages are read."""
    result = stored("10_low_resource")
    return ablation_chart(
        {name: outcome(result, f"masked {n}") for n, name in enumerate(("English", "Norlish"))},
        title="Much English, little Norlish", x_title="masked-word accuracy", percent=True,
    )  # fmt: skip


def curse_table() -> Html:
    """Masked words right by language, a row a model: how many languages, how wide."""
    runs_of = stored("10_curse")["runs"]
    head = ("", "English", "Norlish", "Sumorian", "English respelled")
    rows = [
        (name, *(_mean(runs, f"masked {language_id}") for language_id in range(len(head) - 1)))
        for name, runs in runs_of.items()
    ]
    return number_table(head, rows, "curse", 760)


def _mean(runs: list[dict[str, Any]], measure: str) -> str:
    if measure not in runs[0]:
        return "–"
    values = [run[measure] for run in runs]
    return f"{mean(values):.1%} (sd {stdev(values):.1%})" if len(values) > 1 else f"{values[0]:.1%}"


def table_of(runs: Mapping[str, list[dict[str, Any]]], measures: Mapping[str, str]) -> str:
    """Means over the seeds as lines of text: a row a recipe, a column a measure."""
    width = max(17, *(len(title) + 2 for title in measures))
    lines = [f"{'':32}" + "".join(f"{title:>{width}}" for title in measures)]
    for name, of in runs.items():
        cells = [
            f"{mean(run[key] for run in of):{width}.1%}" if key in of[0] else f"{'–':>{width}}"
            for key in measures.values()
        ]
        lines.append(f"{name:32}{''.join(cells)}")
    return "\n".join(lines)
