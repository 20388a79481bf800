"""Each task's result, success or failure, and a possible reason, which no run has tested."""

from __future__ import annotations

from html import escape
from statistics import mean

from course_lib.lectures.lecture_03.numbers import SCORED, best_rule, outcome, scores
from course_lib.lectures.lecture_03.starts import COURSE, STARTS
from course_lib.teaching.page import Html, card

from .glue_tables import row

REASONS = {
    "pos": "much gained: a tag shows in the neighbours, and masked words teach neighbours",
    "ner": "a gain: the same, but there are no capitals, and the corpus has few people in it",
    "spam": "no clear gain: words typical of spam may be enough, and either start may learn them",
    "sentiment": "no clear gain: few labels, and perhaps few opinions in the corpus",
    "nli": "not learned: perhaps too few pairs, or too little read, to learn what *follows* means",
    "qa": "not learned: perhaps too few answers to learn to point at one",
}
RULES = {"words": "bag of words", "word list": "a word's usual tag", "no answer": "“no answer”"}
HEAD = ("task", "possible reason (not tested)", "best baseline", "random init", "course's BERT",
        "result")  # fmt: skip


def task_outcomes() -> Html:
    """A row for each task: a possible reason, the best baseline, both starts of our shape, and the
    result: ✓ a clear gain from pre-training and above the baseline, ◐ one of the two, ✗ neither."""
    lines, rows = [], []
    for task, reason in REASONS.items():
        rule, level = best_rule(task)
        percentages = [f"{mean(scores(task, start)):.0%}" for start in (STARTS[1], COURSE)]
        cells = (SCORED[task][0].removesuffix(", F1"), reason.replace("*", ""),
                 f"{RULES.get(rule, rule)} {level:.0%}", *percentages, outcome(task))  # fmt: skip
        rows.append(row("td", tuple(escape(cell) for cell in cells)))
        lines.append(" · ".join(f"{h}: {cell}" for h, cell in zip(HEAD, cells, strict=True)))
    table = f'<table style="border-collapse:collapse;font-size:13px">{row("th", HEAD)}'
    return Html(card(f"{table}{''.join(rows)}</table>", "task-outcomes", 860), "\n".join(lines))
