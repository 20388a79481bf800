"""The stored runs as charts and tables: words of the domains, the ways, the switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from course_lib.teaching import ablation_chart, curves_chart
from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import in_words, outcome, stored
from course_lib.teaching.verdicts import in_points

GENERAL, CONTINUED = "as it is", "continued"
MIXED = "continued, general text mixed in"
AFRESH, LONGER = "own vocabulary, afresh", "own vocabulary, afresh, longer"
READ_LONGER = "continued, longer"
ADDED, ADDED_RANDOM = "rows added, means", "rows added, random"
REPLACED, RANDOM = "rows replaced, means", "random initialisation"
ORDER = (
    RANDOM, GENERAL, CONTINUED, MIXED, READ_LONGER, AFRESH, LONGER, ADDED, ADDED_RANDOM, REPLACED,
)  # fmt: skip
SHORT = {  # names of rows that fit beside a chart
    MIXED: "continued, mixed", AFRESH: "afresh", LONGER: "afresh, 3 × FLOPs",
    READ_LONGER: "continued, 3 × FLOPs",
    REPLACED: "rows replaced",
}  # fmt: skip
FAMILIES = {  # a colour and a marker for every way to the domain
    RANDOM: "no pre-training", GENERAL: "general", CONTINUED: "read on", MIXED: "read on",
    AFRESH: "afresh", LONGER: "afresh", ADDED: "rows", ADDED_RANDOM: "rows", REPLACED: "rows",
    READ_LONGER: "read on",
}  # fmt: skip
FROM_NOTHING = ("no pre-training", "afresh")
COUNTED = "no encoder"  # counting words, or a rule for tags
COMPARED = (  # what the page says of two ways
    (CONTINUED, GENERAL), (MIXED, CONTINUED), (ADDED, GENERAL), (ADDED, CONTINUED),
    (REPLACED, CONTINUED), (ADDED, ADDED_RANDOM), (AFRESH, CONTINUED), (LONGER, READ_LONGER),
    (AFRESH, RANDOM), (GENERAL, RANDOM), (GENERAL, COUNTED), (CONTINUED, COUNTED),
    (LONGER, COUNTED),
)  # fmt: skip
MEASURES = {  # a measure's name in the file, and above its column
    "in domain": "words of diagnoses", "general": "general words", "chapters": "chapter",
    "added words": "added words",
}  # fmt: skip
SWITCHED = {  # what a row of the table is compared with
    "chapters": ("layer-wise rates", "gradual unfreezing", "both", "a third of the rate"),
    "natural chapters": ("weights",),
    "added words": ("loss over 32 positions", "loss over 128 positions"),
}


def ways(
    measure: str, file: str = "11_medicine", rows: Sequence[str] = ORDER
) -> dict[str, list[float]]:
    """What each way reached, a value a seed, in one order for all charts."""
    runs = outcome(stored(file), measure)
    return {name: runs[name] for name in rows if name in runs}


def words_table() -> Html:
    """The three numbers of each domain, and how much of its held-out text was read in training."""
    domains = stored("11_words")["domains"]
    head = ("", "words", "① course", "① bert-base", "① own", "② shared", "③ sentence",
            "read: family", "read: random")  # fmt: skip
    rows = []
    for name, of in domains.items():
        pieces = [f"{of['fertility'][which]:.2f}" for which in ("course", "bert-base", "own")]
        again = of.get("repeated", {})
        rows.append((
            name, f"{of['words']:,}", *pieces, f"{of['shared']:.0%}",
            f"{of['sentence']['mean']:.0f}",
            *(f"{again[by]:.0%}" if again else "" for by in ("by family", "at random")),
        ))  # fmt: skip
    return number_table(head, rows, "domains")


def hidden_words_chart(rows: Sequence[str] = ORDER) -> Any:
    """Hidden whole words found: in medicine, and in general documentation. rows: the ways."""
    return _rows_chart(
        {
            "of diagnoses": ways("in domain", rows=rows),
            "of general text": ways("general", rows=rows),
        },
        "Masked words: what is learned of the domain, what is left of general text",
        "masked-word accuracy",
    )  # fmt: skip


def tasks_chart(rows: Sequence[str] = ORDER) -> Any:
    """The two tasks of medicine, fine-tuned, and what is found without an encoder. rows: the
    ways."""
    without = stored("11_medicine")["without_encoder"]
    return _rows_chart(
        {
            "chapter, accuracy": ways("chapters", rows=rows),
            "added words, F1": ways("added words", rows=rows),
        },
        "Fine-tuned with few labels; dashed: without an encoder", "accuracy or F1",
        {
            "chapter, accuracy": {"counting words": mean(without["chapters"])},
            "added words, F1": {"a rule": mean(without["added words"])},
        },
    )  # fmt: skip


def law_chart() -> Any:
    """Licences: hidden words, and the category, with what counting words finds."""
    counted = mean(stored("11_law")["without_encoder"]["licences"])
    return _rows_chart(
        {
            "masked words of licences": ways("in domain", "11_law"),
            "category": ways("licences", "11_law"),
        },
        "Licences: masked words improve, the category does not", "accuracy",
        {"category": {"counting words": counted}},
    )  # fmt: skip


def _rows_chart(
    groups: Mapping[str, Mapping[str, Sequence[float]]], title: str, x_title: str,
    levels: Mapping[str, Mapping[str, float]] | None = None,
) -> Any:  # fmt: skip
    """Panels of the ways under their short names, a colour and a marker a family."""
    panels = {g: {SHORT.get(n, n): v for n, v in rows.items()} for g, rows in groups.items()}
    families = {SHORT.get(name, name): family for name, family in FAMILIES.items()}
    return ablation_chart(
        panels, title=title, x_title=x_title, percent=True, families=families, levels=levels
    )


def forgetting_chart() -> Any:
    """Hidden words of diagnoses and of general text against the steps on diagnoses."""
    runs = stored("11_medicine")["runs"]
    curves = {
        f"{name}{mixed}": [[(look["step"], look[field]) for look in run["curve"]] for run in of]
        for mixed, of in (("", runs[CONTINUED]), (", mixed", runs[MIXED]))
        for name, field in (("words of diagnoses", "medicine"), ("general words", "general"))
    }
    return curves_chart(
        curves, title="While reading diagnoses: what is learned, what is forgotten",
        x_title="step", y_title="masked-word accuracy", percent=True,
    )  # fmt: skip


def ways_table() -> Html:
    """The ways, a row each: the vocabulary, the steps, and what a step costs."""
    runs = stored("11_medicine")["runs"]
    head = ("", "starts with", "vocabulary", "steps", "GFLOPs per step")
    rows = [
        (SHORT.get(name, name), "random numbers" if FAMILIES[name] in FROM_NOTHING
         else "course-bert", f"{run['vocabulary']:,}", f"{run['steps']:,}",
         f"{run['flops_a_step'] / 1e9:.1f}" if run["steps"] else "–")
        for name, run in ((name, runs[name][0]) for name in ORDER)
    ]  # fmt: skip
    return number_table(head, rows, "ways")


def differences_table() -> Html:
    """One way less another, in points, with the word that the rule has for it."""
    head = ("", *MEASURES.values())
    rows = []
    for one, other in COMPARED:
        label = f"{SHORT.get(one, one)} − {SHORT.get(other, other)}"
        rows.append((label, *(_difference(one, other, measure) for measure in MEASURES)))
    return number_table(head, rows, "differences")


def _difference(one: str, other: str, measure: str) -> str:
    """The cell of two ways and a measure: "" where no encoder has no such measure."""
    values = [reached(name, measure) for name in (one, other)]
    return in_points(*values) if all(values) else ""


def reached(name: str, measure: str) -> list[float]:
    """What a way of medicine reached, a value a seed; of COUNTED, what counting or a rule did; []
    where that has no such measure."""
    if name == COUNTED:
        scores: list[float] = stored("11_medicine")["without_encoder"].get(measure, [])
        return scores
    return ways(measure)[name]


LABELS = {f"word order, {n}": f"word order, {n} labels" for n in (20, 100, 500)}
BAG, NEIGHBOURS = "bag of words", "words and neighbours"
TASK_TEXT = "task text"


FINE_TUNED_AT = (3e-4, 1e-3, 3e-3)


def labelled(task: str, rates: Sequence[float] = FINE_TUNED_AT) -> dict[str, list[float]]:
    """What each start of `11_labels` reached in a task, a value a seed, at the best of the rates
    that it was tried at; below, what counts words, and which of them stand side by side."""
    labels = stored("11_labels")
    by_rate = [outcome(labels, f"{task}, rate {rate:g}") for rate in rates]
    tried = {name: [of[name] for of in by_rate if name in of] for name in labels["runs"]}
    best = {name: max(values, key=mean) for name, values in tried.items() if values}
    counted = {BAG: "counting_words", NEIGHBOURS: "counting_neighbours"}
    return best | {name: [one[task] for one in labels[key]] for name, key in counted.items()}


def labels_table() -> Html:
    """Each start of `11_labels`, fine-tuned: the chapter, and the order of words by the labels."""
    columns = {"chapters": "chapter", **LABELS}
    scores = {task: labelled(task) for task in columns}
    rows = [
        (name, *(in_words(scores[task][name]) for task in columns)) for name in scores["chapters"]
    ]
    chance = ("guessing", f"{1 / 21:.1%}", *("50.0%" for _ in LABELS))
    return number_table(("", *columns.values()), [*rows, chance], "labels")


def labels_chart() -> Any:
    """Accuracy of the order of words against the number of labels, a curve for each of some
    starts."""
    sizes = [int(task.split()[-1]) for task in LABELS]
    scores = {n: labelled(task) for n, task in zip(sizes, LABELS, strict=True)}
    curves = {
        name: [list(zip(sizes, values, strict=True))
               for values in zip(*(scores[n][name] for n in sizes), strict=True)]
        for name in (CONTINUED, TASK_TEXT, GENERAL, RANDOM, NEIGHBOURS)
    }  # fmt: skip
    figure = curves_chart(
        curves, title="As written, or two words swapped?", x_title="labelled titles",
        y_title="accuracy", percent=True, log_x=True,
    )  # fmt: skip
    return figure.update_xaxes(tickvals=sizes, ticktext=[str(size) for size in sizes])


def rates_table() -> Html:
    """Masked words and bits a character, of diagnoses and of general text: as it is, and read on
    at three rates and for longer."""
    labels = stored("11_labels")
    head = ("", "words of diagnoses", "general words", "bits: diagnoses", "bits: general text")
    rows = [
        (
            f"{CONTINUED}, rate 1e-3" if name == CONTINUED else name,
            *(in_words(outcome(labels, measure)[name]) for measure in ("in domain", "general")),
            *(
                f"{mean(outcome(labels, f'{text}, bits')[name]):.2f}"
                for text in ("in domain", "general")
            ),
        )
        for name in labels["runs"]
    ]
    return number_table(head, rows, "rates")


def switch(name: str, measure: str = "score") -> list[float]:
    """What a switch's runs reached, a value a seed."""
    return outcome(stored("11_switches"), measure)[name]


def switches_table() -> Html:
    """Each switch beside plain fine-tuning on its task: every seed, the change, what the rule says
    of it, and, where it was measured, the general words that are kept."""
    head = ("", "score, by seed", "change, points", "by the rule", "general words kept")
    rows = []
    for task, names in SWITCHED.items():
        plain = switch(task)
        rows.append((f"{task}: plain fine-tuning", _each(plain), "", "", _kept(task)))
        for name in names:
            values = switch(f"{task}, {name}")
            points, word = in_points(values, plain).split(" ", maxsplit=1)
            rows.append((f"… {name}", _each(values), points, word, _kept(f"{task}, {name}")))
    return number_table(head, rows, "switches")


def _kept(name: str) -> str:
    """The general words that a switch's encoders still find; "" where they were not asked."""
    general = outcome(stored("11_switches"), "general")
    return f"{mean(general[name]):.0%}" if name in general else ""


def finance_rows(measure: str = "score") -> Mapping[str, list[float]]:
    """Good or bad news: what each start reached. measure: "score" of all sentences, of the "plain"
    or of the "hedged" ones."""
    names = ("finance, random initialisation", "finance", "finance, MiniLM's shape, random",
             "finance, MiniLM")  # fmt: skip
    labels = ("course-bert's shape, random", "course-bert", "MiniLM's shape, random", "MiniLM")
    counting = {"counting words": [stored("11_switches")["counting_words"][measure]]}
    return counting | {s: switch(n, measure) for s, n in zip(labels, names, strict=True)}


def _each(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.0%}" for value in values)
