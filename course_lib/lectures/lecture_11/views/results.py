"""The stored runs as charts and tables: words of the domains, the ways, the switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from course_lib.teaching import ablation_chart, curves_chart
from course_lib.teaching.page import Html, card, table_row
from course_lib.teaching.results import outcome, stored

GENERAL, CONTINUED = "as it is", "continued"
MIXED = "continued, general text mixed in"
AFRESH, LONGER = "own vocabulary, afresh", "own vocabulary, afresh, longer"
ADDED, ADDED_RANDOM = "rows added, means", "rows added, random"
REPLACED, RANDOM = "rows replaced, means", "random initialisation"
ORDER = (RANDOM, GENERAL, CONTINUED, MIXED, AFRESH, LONGER, ADDED, ADDED_RANDOM, REPLACED)
SWITCHED = {  # what a row of the table is compared with
    "chapters": ("layer-wise rates", "gradual unfreezing", "both", "a third of the rate"),
    "natural chapters": ("weights",),
    "added words": ("loss over 32 positions", "loss over 128 positions"),
}


def ways(
    measure: str, file: str = "11_medicine", rows: Sequence[str] = ORDER
) -> dict[str, list[float]]:
    """What each way reached, a value a seed, in one order for all charts."""
    found = outcome(stored(file), measure)
    return {name: found[name] for name in rows if name in found}


def table(head: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> Html:
    """A table: the first column at the left, the others at the right."""
    sides = ("left", *["right"] * (len(head) - 1))
    body = table_row("th", head, sides) + "".join(table_row("td", row, sides) for row in rows)
    html = f'<table style="border-collapse:collapse;margin:0;background:#fff">{body}</table>'
    return Html(card(html, name, 820), "\n".join("  ".join(row) for row in (head, *rows)))


def words_table() -> Html:
    """Pieces a word under three vocabularies, frequent words shared, sentences, repetitions."""
    found = stored("11_words")["domains"]
    head = ("", "words", "course", "bert-base", "own", "shared", "sentence", "read, by family",
            "read, at random")  # fmt: skip
    rows = []
    for name, of in found.items():
        pieces = [f"{of['fertility'][which]:.2f}" for which in ("course", "bert-base", "own")]
        again = of.get("repeated", {})
        rows.append((
            name, f"{of['words']:,}", *pieces, "" if name == "general" else f"{of['shared']:.0%}",
            f"{of['sentence']['mean']:.0f}",
            *(f"{again[by]:.0%}" if again else "" for by in ("by family", "at random")),
        ))  # fmt: skip
    return table(head, rows, "domains")


def hidden_words_chart(rows: Sequence[str] = ORDER) -> Any:
    """Hidden whole words found: in medicine, and in general documentation. rows: the ways."""
    return ablation_chart(
        {
            "of diagnoses": ways("in domain", rows=rows),
            "of general text": ways("general", rows=rows),
        },
        title="Hidden words found, by the way to the domain", x_title="found", percent=True,
    )  # fmt: skip


def tasks_chart(rows: Sequence[str] = ORDER) -> Any:
    """The two tasks of medicine, fine-tuned. rows: the ways."""
    return ablation_chart(
        {
            "chapter, accuracy": ways("chapters", rows=rows),
            "added words, F1": ways("added words", rows=rows),
        },
        title="Fine-tuned with few labels", x_title="right", percent=True,
    )  # fmt: skip


def law_chart() -> Any:
    """Licences: hidden words, and the category."""
    file = "11_law"
    return ablation_chart(
        {"hidden words of licences": ways("in domain", file), "category": ways("licences", file)},
        title="Licences", x_title="right", percent=True,
    )  # fmt: skip


def forgetting_chart() -> Any:
    """Hidden words of general text against the steps on diagnoses."""
    runs = stored("11_medicine")["runs"]
    return curves_chart(
        {
            said: [[(look["step"], look["general"]) for look in run["curve"]] for run in runs[name]]
            for said, name in (("diagnoses only", CONTINUED), ("one batch in four general", MIXED))
        },
        title="What is forgotten while a domain is read", x_title="steps on the domain",
        y_title="hidden words of general text", percent=True,
    )  # fmt: skip


def decision_table() -> Html:
    """The ways, a row each: means over the seeds, and what a step costs."""
    found = stored("11_medicine")["runs"]
    head = ("", "steps", "pieces known", "words of diagnoses", "general words", "chapter",
            "added words")  # fmt: skip
    rows = [
        (name, f"{runs[0]['steps']:,}", f"{runs[0]['vocabulary']:,}",
         *(f"{mean(run[m] for run in runs):.0%}"
           for m in ("in domain", "general", "chapters", "added words")))
        for name, runs in ((name, found[name]) for name in ORDER)
    ]  # fmt: skip
    return table(head, rows, "ways")


def switch(name: str, measure: str = "score") -> list[float]:
    """What a switch's runs reached, a value a seed."""
    return outcome(stored("11_switches"), measure)[name]


def switches_table() -> Html:
    """Each switch beside its task without it: every seed, and the mean of the differences."""
    head = ("", "a value a seed", "less the first of its group")
    rows = []
    for task, names in SWITCHED.items():
        plain = switch(task)
        rows.append((task, _each(plain), ""))
        for said in names:
            reached = switch(f"{task}, {said}")
            gained = mean(a - b for a, b in zip(reached, plain, strict=True))
            rows.append((f"… {said}", _each(reached), f"{100 * gained:+.1f} points"))
    return table(head, rows, "switches")


def finance_rows(measure: str = "score") -> Mapping[str, list[float]]:
    """Good or bad news: what each start reached. measure: "score" of all sentences, of the "plain"
    or of the "hedged" ones."""
    names = ("finance, random initialisation", "finance", "finance, MiniLM's shape, random",
             "finance, MiniLM")  # fmt: skip
    said = ("course-bert's shape, random", "course-bert", "MiniLM's shape, random", "MiniLM")
    counting = {"counting words": [stored("11_switches")["counting_words"][measure]]}
    return counting | {s: switch(n, measure) for s, n in zip(said, names, strict=True)}


def _each(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.0%}" for value in values)
