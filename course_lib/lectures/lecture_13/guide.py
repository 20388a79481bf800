"""Which model? The questions, rules and choices of guide.toml, and the answer that they give.

The first rule whose conditions all hold wins. Nothing is known of your texts here: the answer is
where to begin measuring."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from course_lib.teaching.rooms import room_file

from .looked_up import counted_size, with_numbers

Conditions = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Question:
    """short: its name in a line of conditions; answers: value -> as it is shown."""

    name: str
    short: str
    asks: str
    answers: Mapping[str, str]


@dataclass(frozen=True)
class Choice:
    """A model or a way, and why. size: a published size with changes; flops: whether its FLOPs are
    said too; numbers: templates, see guide.toml; lecture: which one teaches it, "" where none
    does."""

    name: str
    why: str
    lecture: str = ""
    size: Mapping[str, Any] = field(default_factory=dict)
    flops: bool = False
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """Where every question of `when` has one of its answers, the choice of that name."""

    choose: str
    when: Conditions = field(default_factory=dict)


@dataclass(frozen=True)
class Remark:
    """What is said besides, where the conditions hold."""

    says: str
    when: Conditions


@dataclass(frozen=True)
class Guide:
    """All of guide.toml: by name what has one, in order what has an order."""

    questions: Mapping[str, Question]
    rules: tuple[Rule, ...]
    choices: Mapping[str, Choice]
    remarks: tuple[Remark, ...]


@lru_cache(maxsize=1)
def guide() -> Guide:
    """guide.toml, read and checked. Raises ValueError for a rule that asks or chooses what is not
    there."""
    content = tomllib.loads(room_file("13", "guide.toml").read_text(encoding="utf-8"))
    questions = {entry["name"]: Question(**entry) for entry in content["question"]}
    choices = {
        name: Choice(**{**entry, "numbers": tuple(entry.get("numbers", ()))})
        for name, entry in content["choice"].items()
    }
    rules = tuple(Rule(e["choose"], _conditions(e, questions)) for e in content["rule"])
    remarks = tuple(Remark(e["says"], _conditions(e, questions)) for e in content["remark"])
    if missing := {rule.choose for rule in rules} - choices.keys():
        raise ValueError(
            f"guide.toml has rules that choose {', '.join(sorted(missing))}; expected one of "
            f"{', '.join(choices)}."
        )
    return Guide(questions, rules, choices, remarks)


def _conditions(entry: Mapping[str, Any], questions: Mapping[str, Question]) -> Conditions:
    when = entry.get("when", {})
    for question, fitting in when.items():
        _check_answers(question, fitting, questions)
    return {question: tuple(fitting) for question, fitting in when.items()}


def _check_answers(question: str, values: Any, questions: Mapping[str, Question]) -> None:
    if question not in questions:
        raise ValueError(
            f"question {question!r} was given; expected one of {', '.join(questions)}."
        )
    known = questions[question].answers
    for value in values:
        if value not in known:
            raise ValueError(f"{question}={value!r} was given; expected one of {', '.join(known)}.")


# ---------------------------------------------------------------- deciding


def checked(answers: Mapping[str, str]) -> dict[str, str]:
    """The answers, one for every question. Raises ValueError where a question or an answer is not
    one of the guide's, and where one is missing."""
    questions = guide().questions
    for question, value in answers.items():
        _check_answers(question, [value], questions)
    if missing := [name for name in questions if name not in answers]:
        raise ValueError(
            f"{', '.join(missing)} was not answered; expected an answer to each of "
            f"{', '.join(questions)}."
        )
    return dict(answers)


def first_rule(answers: Mapping[str, str]) -> int:
    """The place, from 0, of the first rule that holds. Raises ValueError as `checked` does."""
    known = checked(answers)
    return next(n for n, rule in enumerate(guide().rules) if _hold(rule.when, known))


def _hold(when: Conditions, answers: Mapping[str, str]) -> bool:
    return all(answers[question] in fitting for question, fitting in when.items())


def decide(answers: Mapping[str, str]) -> Choice:
    """The choice for {question: answer}, all questions answered: decide({"task": "tag", ...}).

    Raises ValueError as `checked` does."""
    return guide().choices[guide().rules[first_rule(answers)].choose]


def remarks(answers: Mapping[str, str]) -> list[str]:
    """What is said besides."""
    known = checked(answers)
    return [remark.says for remark in guide().remarks if _hold(remark.when, known)]


def flips(answers: Mapping[str, str]) -> list[tuple[str, str, Choice]]:
    """What would change the choice: (question, other answer, the choice then), one answer changed
    and all others kept."""
    now = decide(answers)
    others = [
        (name, value, decide({**answers, name: value}))
        for name, question in guide().questions.items()
        for value in question.answers
        if value != answers[name]
    ]
    return [other for other in others if other[2] != now]


def in_words(when: Conditions) -> str:
    """Conditions as a line of text."""
    questions = guide().questions
    parts = (
        f"{questions[name].short}: {' / '.join(map(questions[name].answers.__getitem__, fitting))}"
        for name, fitting in when.items()
    )
    return " · ".join(parts) or "in every other case"


def numbers_of(choice: Choice) -> list[str]:
    """Its numbers as lines: parameters, file and FLOPs counted here, then those of papers and of
    other lectures, each with where it stands."""
    counted = [counted_size(**choice.size, flops=choice.flops)] if choice.size else []
    return [*counted, *map(with_numbers, choice.numbers)]
