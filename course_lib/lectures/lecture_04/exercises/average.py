"""Exercise 04.5: four averages that are all called "GLUE".

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from course_lib.files import data_path
from course_lib.teaching.averages import glue_average
from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Suspect,
    call,
    close,
)

Score = float | Sequence[float]
Row = Mapping[str, Score]
Case = tuple[dict[str, Score], str]  # a row of scores, a recipe
Cases = Callable[[Draw], list[Case]]

PAIRED = ("MNLI", "QQP", "MRPC", "STS-B")
SINGLE = ("CoLA", "SST-2", "QNLI", "RTE")
RECIPES = ("dev-9", "dev-8", "leaderboard", "test-9")


def average(row: Row, recipe: str) -> float:
    """The average of a row of GLUE scores by one of the four RECIPES."""
    numbers: list[float] = []
    for task, score in row.items():
        two = [score] if isinstance(score, (int, float)) else list(score)
        if task == "WNLI" and recipe in ("test-9", "dev-8"):
            continue
        if recipe == "leaderboard":
            two = [sum(two) / len(two)]
        elif not (recipe == "test-9" and task == "MNLI"):  # there both halves count
            two = two[-1:] if recipe == "test-9" and task == "STS-B" else two[:1]
        numbers += two
    return sum(numbers) / len(numbers)


# ---------------------------------------------------------------- known wrong answers

FIRST, SECOND, EACH, MEAN = "first", "second", "each", "mean"
How = Callable[[str], str]  # recipe -> one of these


def _of(
    *,
    wnli: Callable[[str], bool] = lambda recipe: recipe in ("dev-9", "leaderboard"),
    combine: Callable[[list[float]], float] = fmean,
    digits: int | None = None,
    how: Mapping[str, How] | None = None,
) -> Answer:
    """The average with switches for going wrong.

    how: task -> recipe -> how its two numbers enter; tasks not named there enter rightly.
    """

    rules = {**RIGHT_HOW, **(how or {})}

    def answer(row: Row, recipe: str) -> float:
        numbers: list[float] = []
        for task, score in row.items():
            if task == "WNLI" and not wnli(recipe):
                continue
            two = [score] if isinstance(score, (int, float)) else list(score)
            rule = rules[task](recipe) if task in rules else FIRST
            taken = {FIRST: two[:1], SECOND: two[-1:], EACH: two, MEAN: [fmean(two)]}[rule]
            numbers += taken if digits is None else [round(x, digits) for x in taken]
        return combine(numbers)

    return answer


def _how(test: str) -> How:
    """How a pair enters: averaged on the leaderboard, `test` in test-9, the first otherwise."""
    return lambda recipe: {"leaderboard": MEAN, "test-9": test}.get(recipe, FIRST)


RIGHT_HOW: dict[str, How] = {
    "MNLI": _how(EACH), "QQP": _how(FIRST), "MRPC": _how(FIRST), "STS-B": _how(SECOND),
}  # fmt: skip


def _always(rule: str) -> dict[str, How]:
    return dict.fromkeys(PAIRED, lambda recipe: rule)


def _in(recipe: str, rule: str, *tasks: str) -> dict[str, How]:
    """Another rule for some tasks in one recipe; rightly in the others."""
    return {task: _instead(RIGHT_HOW[task], recipe, rule) for task in tasks}


def _instead(right: How, recipe: str, rule: str) -> How:
    return lambda given: rule if given == recipe else right(given)


AVERAGE_SUSPECTS = (
    Suspect(
        "WNLI included",
        "WNLI is in the average. test-9 and dev-8 leave it out, as BERT's authors did.",
        _of(wnli=lambda recipe: True),
    ),
    Suspect(
        "WNLI left out",
        "WNLI is missing from the average. The leaderboard and dev-9 count it.",
        _of(wnli=lambda recipe: False),
    ),
    Suspect(
        "WNLI exchanged",
        "WNLI is in where it should be out, and the other way round: the leaderboard and dev-9 "
        "count it, test-9 and dev-8 do not.",
        _of(wnli=lambda recipe: recipe in ("test-9", "dev-8")),
    ),
    Suspect(
        "MNLI counted once",
        "In test-9 MNLI enters with one number. BERT's Table 1 counts matched and mismatched each "
        "as a task of its own: two of the nine numbers.",
        _of(how=_in("test-9", FIRST, "MNLI")),
    ),
    Suspect(
        "MNLI averaged",
        "In test-9 the two halves of MNLI are averaged into one number. BERT's Table 1 counts each "
        "of them: two of the nine numbers.",
        _of(how=_in("test-9", MEAN, "MNLI")),
    ),
    Suspect(
        "MNLI counted twice",
        "MNLI enters with both halves as two numbers. Only test-9 does that: on the leaderboard "
        "they are averaged first, and in dev-8 only the matched half counts.",
        _of(how={"MNLI": lambda recipe: EACH}),
    ),
    Suspect(
        "mismatched half",
        "In dev-8 the mismatched half of MNLI is taken; it is the matched one, the first.",
        _of(how=_in("dev-8", SECOND, "MNLI")),
    ),
    Suspect(
        "pairs not averaged",
        "On the leaderboard both numbers of a task enter by themselves, so that MNLI, QQP, MRPC "
        "and STS-B count twice. Average the two numbers of a task first: nine tasks, nine numbers.",
        _of(how=_in("leaderboard", EACH, *PAIRED)),
    ),
    Suspect(
        "one metric of two",
        "On the leaderboard only the first number of MNLI, QQP, MRPC and STS-B is taken. Average "
        "the two numbers of a task first.",
        _of(how=_in("leaderboard", FIRST, *PAIRED)),
    ),
    Suspect(
        "metrics not averaged",
        "On the leaderboard MNLI's halves are averaged, but of QQP, MRPC and STS-B only the first "
        "number is taken. Their two numbers are averaged too.",
        _of(how=_in("leaderboard", FIRST, *PAIRED[1:])),
    ),
    Suspect(
        "accuracy instead of F1",
        "In test-9 the accuracy of QQP and MRPC is taken; BERT's Table 1 has their F1, the first "
        "number.",
        _of(how=_in("test-9", SECOND, "QQP", "MRPC")),
    ),
    Suspect(
        "Pearson instead of Spearman",
        "In test-9 the Pearson correlation of STS-B is taken; BERT's Table 1 has Spearman, the "
        "second number.",
        _of(how=_in("test-9", FIRST, "STS-B")),
    ),
    Suspect(
        "always the first",
        "Of every pair the first number is taken, whatever the recipe says.",
        _of(how=_always(FIRST)),
    ),
    Suspect(
        "always averaged",
        "The two numbers of a task are averaged in every recipe. Only the leaderboard does that.",
        _of(how=_always(MEAN)),
    ),
    Suspect(
        "every number",
        "Every number of the row enters, both of a pair and WNLI, whatever the recipe says.",
        _of(wnli=lambda recipe: True, how=_always(EACH)),
    ),
    Suspect(
        "rounded on the way",
        "Numbers are rounded before they are averaged. Round once, at the end, when you print.",
        _of(digits=0),
    ),
    Suspect(
        "pairs rounded",
        "The mean of a pair is rounded to one decimal before the tasks are averaged. Round once, "
        "at the end, when you print.",
        _of(digits=1),
    ),
    Suspect(
        "rounded result",
        "The average is rounded to one decimal. Return it as it is: 84.05 and 84.1 should not look "
        "the same before they are printed.",
        _of(combine=lambda numbers: round(fmean(numbers), 1)),
    ),
    Suspect(
        "rounded to a whole",
        "The average is rounded to a whole number. Return it as it is.",
        _of(combine=lambda numbers: round(fmean(numbers))),
    ),
    Suspect(
        "sum",
        "This is the sum; divide it by how many numbers were added.",
        _of(combine=sum),
    ),
    Suspect(
        "divided by nine",
        "The sum is divided by nine whatever was added. Divide by how many numbers there are: "
        "eight in dev-8.",
        _of(combine=lambda numbers: sum(numbers) / 9),
    ),
    Suspect(
        "divided by the tasks",
        "In test-9 the sum of nine numbers is divided by eight, the number of tasks. MNLI gave two "
        "numbers: divide by nine.",
        _of(combine=lambda numbers: sum(numbers) / 8),
    ),
    Suspect(
        "median",
        "This is the median, the number in the middle; expected the mean.",
        _of(combine=lambda numbers: sorted(numbers)[len(numbers) // 2]),
    ),
)


# ---------------------------------------------------------------- inputs


def _number_drawn(draw: Draw) -> float:
    return draw.integer(400, 990) / 10


def _drawn_row(draw: Draw, pairs: Sequence[str], wnli: bool) -> dict[str, Score]:
    """A row in any order of tasks; the tasks in `pairs` have two numbers."""
    tasks = [*PAIRED, *SINGLE, *(["WNLI"] if wnli else [])]
    draw.python.shuffle(tasks)
    return {
        task: (_number_drawn(draw), _number_drawn(draw)) if task in pairs else _number_drawn(draw)
        for task in tasks
    }


def _drawn(recipe: str, rows: Sequence[tuple[Sequence[str], bool]]) -> Cases:
    return lambda draw: [(_drawn_row(draw, pairs, wnli), recipe) for pairs, wnli in [*rows] * 3]


def _everything(draw: Draw) -> list[Case]:
    """Every recipe, on rows that have all that its recipe may ask about."""
    rows = {"dev-9": (), "dev-8": ("MNLI",), "leaderboard": PAIRED, "test-9": PAIRED}
    return [(_drawn_row(draw, pairs, True), recipe) for recipe, pairs in rows.items()] * 2


def printed_rows() -> list[tuple[str, dict[str, Score], str, float | None]]:
    """(model, row, recipe, the average printed beside it if there is one), from data/papers."""
    tables = tomllib.loads(data_path("papers", "glue.toml").read_text(encoding="utf-8"))
    return [
        (entry["model"], entry["scores"], entry["recipe"], entry.get("printed"))
        for entry in tables.values()
        if entry.get("recipe") in RECIPES and not entry.get("incomplete")
    ]


# ---------------------------------------------------------------- stages


def _ask_average(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            _expect_average(answer, case, [_everything(draw), cases(draw)])

    return ask


def _expect_average(
    answer: Answer, case: Case, pools: Sequence[Sequence[Case]], name: str = "the row"
) -> None:
    given, right = _number(call(answer, *case)), glue_average(*case)
    if close(given, right):
        return
    row, recipe = case
    found = name_suspect(answer, case, pools, AVERAGE_SUSPECTS, _same_average)
    cells = ", ".join(f"{task} {_cell(score)}" for task, score in row.items())
    raise told(
        found, f"By {recipe!r}, {name} ({cells}) averages {right:.4f}; you have {given:.4f}."
    )


def _cell(score: Score) -> str:
    return f"{score:g}" if isinstance(score, (int, float)) else "/".join(f"{x:g}" for x in score)


def _same_average(mine: Any, theirs: float, _case: Any) -> bool:
    return close(_number(mine), theirs)


def _number(x: Any) -> float:
    return one_number(x, "the average")


def _ask_printed(answer: Answer, draw: Draw) -> None:
    """The rows as papers print them; some cells hold one number where a task has two."""
    for model, row, recipe, _ in printed_rows():
        _expect_average(answer, (row, recipe), [_everything(draw), []], f"the row of {model}")


AVERAGE = Exercise(
    id="04.5",
    title="Four averages called GLUE",
    purpose="to know which numbers may stand side by side",
    difficulty=2,
    minutes=15,
    signature="my_average(row, recipe)",
    statement=(
        "`row` maps a task of GLUE to its score, or to two (a tuple or a list): MNLI (matched, "
        "mismatched), QQP and MRPC (F1, accuracy), STS-B (Pearson, Spearman); where a paper prints "
        "one of the two, the row has that one. Return the mean, not rounded, by one of four "
        "recipes.  \n"
        '`"dev-9"` (DistilBERT): the nine tasks, one number each.  \n'
        '`"dev-8"` (ELECTRA, DeBERTa): the same without WNLI; of MNLI the matched half.  \n'
        '`"leaderboard"`: nine tasks with WNLI; the two numbers of a task are averaged first.  \n'
        '`"test-9"` (BERT, Table 1): nine numbers: MNLI enters with both halves, QQP and MRPC with '
        "F1, STS-B with Spearman; no WNLI.  \n"
        "The last stage is rows that papers print: 79.6, 82.1, 80.5, 84.05, 88.9, 79.5 and 77.0 "
        "come out, among others."
    ),
    hints=(
        "Collect the numbers that count in one list; divide its sum by its length at the very end.",
        "Make every score a list first: [score] if isinstance(score, float) else list(score). "
        "Then score[:1] is the first number and score[-1:] the second, or the only one.",
        "Skip WNLI for test-9 and dev-8. For the leaderboard add the mean of the list.",
        "Otherwise: both of MNLI and the last of STS-B in test-9, the first of everything else.",
    ),
    solution=average,
    library=("course_lib.teaching.averages:glue_average", "course_lib.teaching.averages:_taken"),
    see="course_lib.teaching.averages (AVERAGES: which task enters how)",
    stages=(
        Check("dev-9: nine tasks, one number each", _ask_average(_drawn("dev-9", [((), True)]))),
        Check(
            "dev-8: WNLI out, MNLI matched",
            _ask_average(_drawn("dev-8", [((), False), (("MNLI",), False), (("MNLI",), True)])),
        ),
        Check(
            "leaderboard: pairs averaged first",
            _ask_average(_drawn("leaderboard", [(PAIRED, True)])),
        ),
        Check(
            "test-9: nine numbers of eight tasks",
            _ask_average(_drawn("test-9", [(PAIRED, False), (PAIRED, True)])),
        ),
        Check("the printed rows", _ask_printed),
    ),
)
