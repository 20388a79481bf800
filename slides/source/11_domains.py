"""What deck 11 shows: read from data/results and data/papers; never trained."""

from __future__ import annotations

from typing import Any

import drawing
from drawing import body_of, code, for_a_hall, table

from course_lib.lectures.lecture_11.views import results
from course_lib.teaching.results import stored
from course_lib.teaching.verdicts import by_rule
from course_lib.train.new_vocabulary import with_vocabulary

FEW = (results.GENERAL, results.CONTINUED, results.AFRESH, results.LONGER, results.ADDED)


def four_models() -> str:
    own = "<em>or</em> its own"
    rows = [
        ("text", "PubMed abstracts", "laws, cases, contracts", "Reuters news", "filings, calls"),
        ("starts from", "BERT", "BERT <em>or</em> random", "BERT", "BERT <em>or</em> random"),
        ("vocabulary", "BERT's", f"BERT's {own}", "BERT's", f"BERT's {own}"),
    ]
    rows = [(f"<strong>{row[0]}</strong>", *row[1:]) for row in rows]
    head = ("", "BioBERT", "LEGAL-BERT", "FinBERT (Araci)", "FinBERT (Yang et al.)")
    return table(head, rows, numbers=False, size=22)


def four_ways() -> str:
    rows = [
        ("continued", "all", "all", "BioBERT"),
        ("rows added", "all, and means of them", "all", "adding words"),
        ("rows replaced", "those that both have; means", "all", "–"),
        ("afresh", "none", "none", "LEGAL-BERT-SC, SciBERT, PubMedBERT"),
    ]
    return table(
        ("way", "embedding rows kept", "blocks kept", "known from"), rows, numbers=False, size=24
    )


def words_measured() -> str:
    rows = [
        (name, *(f"{of['fertility'][which]:.2f}" for which in ("course", "bert-base", "own")),
         "–" if name == "general" else f"{of['shared']:.0%}", f"{of['sentence']['mean']:.0f}")
        for name, of in stored("11_words")["domains"].items()
    ]  # fmt: skip
    head = ("pieces per word", "course-bert", "bert-base", "own", "words shared",
            "words per sentence")  # fmt: skip
    return table(head, rows, size=24)


def code_rows() -> str:
    return code(body_of(with_vocabulary, "def moved"))


def hidden_words() -> Any:
    return for_a_hall(results.hidden_words_chart(FEW), 1140, 450)


def tasks() -> Any:
    figure = for_a_hall(results.tasks_chart(FEW), 1140, 440)
    return figure.update_layout(xaxis_title_text="accuracy", xaxis2_title_text="F1")


def labels() -> Any:
    return drawing.on_one_line(for_a_hall(results.labels_chart(), 1140, 440, 330))


def switches() -> str:
    rows = []
    for task, names in results.SWITCHED.items():
        plain = results.switch(task)
        rows.append((f"{task}, plain", drawing.spread(plain), ""))
        for said in names:
            values = results.switch(f"{task}, {said}")
            rows.append((f"… {said}", drawing.spread(values), by_rule(values, plain)))
    return table(("", "mean and spread of three seeds", "by the rule"), rows, size=21)
