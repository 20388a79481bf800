"""The guide with a control for each question, and the same rules as a table to print."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from itertools import groupby

from course_lib.lectures.lecture_13.guide import (
    decide,
    first_rule,
    flips,
    guide,
    in_words,
    numbers_of,
    remarks,
)
from course_lib.teaching.page import Html, Live, card, inline
from course_lib.teaching.playgrounds import choice, playground
from course_lib.teaching.style import BLUE

from .pages import page_link
from .written import written_table

WIDTH = 820
HEAD = ("", "if", "take")
USUAL = {
    "language": "english", "domain": "general", "task": "classify", "latency": "free",
    "memory": "free", "labels": "thousands", "leave": "yes", "pretrain": "no",
}  # fmt: skip


def guide_view() -> Live:
    """A dropdown for each question; below them the choice, why, its numbers, where it is taught and
    what would change it. Where no kernel runs: the answer to the usual case."""
    controls = {
        name: choice(question.asks, USUAL[name],
                     [(label, value) for value, label in question.answers.items()])
        for name, question in guide().questions.items()
    }  # fmt: skip
    live = playground(lambda **answers: guide_picture(answers), controls, guide_picture(USUAL))
    for control in controls.values():
        control.style.description_width = "260px"
    return live


def guide_picture(answers: Mapping[str, str]) -> Html:
    """The answer to {question: answer}. Raises ValueError as `decide` does."""
    choice, questions = decide(answers), guide().questions
    case = in_words({name: (value,) for name, value in answers.items()})
    lecture = f"Taught in {page_link(choice.lecture)}." if choice.lecture else "Not taught here."
    parts = [
        f'<div style="color:#555">{escape(case)}</div>',
        f'<div style="border-left:4px solid {BLUE};padding:2px 10px;margin:8px 0">'
        f'<div style="font-size:17px"><b>▶ {inline(choice.name)}</b></div>'
        f"<div>{inline(choice.why)}</div></div>",
        _listed("Its numbers", [inline(line) for line in numbers_of(choice)]),
        f"<div>{lecture} Rule {first_rule(answers) + 1} of {len(guide().rules)}.</div>",
        _listed("Keep in mind", [inline(line) for line in remarks(answers)]),
        _listed("What would change it", [
            f"<b>{escape(questions[name].asks)}</b> {escape(' / '.join(values))} → {inline(then)}"
            for name, values, then in changes(answers)
        ]),
    ]  # fmt: skip
    inner = "".join(parts)
    return Html(card(inner, "guide", WIDTH), answer_text(answers), inner)


def _listed(title: str, lines: list[str]) -> str:
    """A titled list; nothing for no lines."""
    if not lines:
        return ""
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f'<div style="margin-top:6px"><b>{title}</b><ul style="margin:2px 0">{items}</ul></div>'


def changes(answers: Mapping[str, str]) -> list[tuple[str, list[str], str]]:
    """What would change the choice: (question, its answers in words, the choice then), answers of
    one question that lead to one choice together."""
    options = flips(answers)
    keyed = groupby(
        sorted(options, key=lambda f: (list(answers).index(f[0]), f[2].name)),
        key=lambda f: (f[0], f[2].name),
    )
    questions = guide().questions
    return [
        (name, [questions[name].answers[value] for _, value, _ in group], then)
        for (name, then), group in keyed
    ]


def answer_text(answers: Mapping[str, str]) -> str:
    """The answer for a terminal."""
    choice = decide(answers)
    lines = [choice.name, choice.why, *(f"  {line}" for line in numbers_of(choice))]
    lines += [f"Taught in lecture {choice.lecture}."] if choice.lecture else ["Not taught here."]
    lines += remarks(answers)
    lines += [
        f"  {guide().questions[name].asks} {' / '.join(values)} → {then}"
        for name, values, then in changes(answers)
    ]
    return "\n".join(lines)


def guide_table() -> Html:
    """Every rule in order, folded, to print: the first that fits is the answer. As text,
    Markdown."""
    choices = guide().choices
    rows = [
        (f"{place}", in_words(rule.when), choices[rule.choose].name)
        for place, rule in enumerate(guide().rules, start=1)
    ]
    table = written_table(HEAD, rows, "guide-table", WIDTH)
    title = f"The {len(rows)} rules as a table"
    folded = f"<details><summary>{title}</summary>{table.inner}</details>"
    return Html(card(folded, "guide-rules", WIDTH), table.text, folded)


def choices_table() -> Html:
    """Every choice: why, its numbers, its lecture."""
    rows = [
        (choice.name, choice.why, "; ".join(numbers_of(choice)), choice.lecture or "–")
        for choice in guide().choices.values()
    ]
    return written_table(("choice", "why", "numbers", "lecture"), rows, "guide-choices", WIDTH)
