"""Exercise 04.5: four averages that are all called "GLUE"."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence

from course_lib.files import data_path
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Number

Score = float | Sequence[float]
PAIRED = ("MNLI", "QQP", "MRPC", "STS-B")
SINGLE = ("CoLA", "SST-2", "QNLI", "RTE")
RECIPES = ("dev-9", "dev-8", "leaderboard", "test-9")


def average(row: Mapping[str, Score], recipe: str) -> float:
    """The average of a row of GLUE scores by one of the four RECIPES."""
    numbers: list[float] = []
    for task, score in row.items():
        two = [score] if isinstance(score, (int, float)) else list(score)
        if task == "WNLI" and recipe in ("test-9", "dev-8"):
            continue
        if recipe == "leaderboard":
            task_scores = [sum(two) / len(two)]
        elif recipe == "test-9" and task == "MNLI":  # both halves count
            task_scores = two
        elif recipe == "test-9" and task == "STS-B":
            task_scores = two[-1:]
        else:
            task_scores = two[:1]
        numbers += task_scores
    return sum(numbers) / len(numbers)


def row(draw: Draw, pairs: Sequence[str], wnli: bool) -> dict[str, Score]:
    """A row in any order of tasks; the tasks in `pairs` have two numbers."""
    tasks = [*PAIRED, *SINGLE, *(["WNLI"] if wnli else [])]
    draw.python.shuffle(tasks)
    scores = [tuple(draw.integer(400, 990) / 10 for _ in range(1 + (t in pairs))) for t in tasks]
    return {t: two if t in pairs else two[0] for t, two in zip(tasks, scores, strict=True)}


def cases(recipe: str, *rows: tuple[Sequence[str], bool]) -> Callable[[Draw], list[Case]]:
    return lambda draw: [(row(draw, *kind), recipe) for kind in [*rows] * 3]


def printed_rows() -> list[tuple[str, dict[str, Score], str, float | None]]:
    """(model, row, recipe, the average printed beside it if there is one), from data/papers."""
    tables = tomllib.loads(data_path("papers", "glue.toml").read_text(encoding="utf-8"))
    return [
        (entry["model"], entry["scores"], entry["recipe"], entry.get("printed"))
        for entry in tables.values()
        if entry.get("recipe") in RECIPES and not entry.get("incomplete")
    ]


def printed(draw: Draw) -> list[Case]:
    """The rows as papers print them; some cells hold one number where a task has two."""
    return [(scores, recipe) for _, scores, recipe, _ in printed_rows()]


WNLI = 'task == "WNLI" and recipe in ("test-9", "dev-8")'
PAIR, BOTH, LAST, FIRST = "[sum(two) / len(two)]", "task_scores = two\n", "two[-1:]", "two[:1]"
ADD, MEAN = "numbers += task_scores", "sum(numbers) / len(numbers)"

AVERAGE = Exercise(
    **written("04.5"),
    solution=average,
    returns=Number("average"),
    library=("course_lib.teaching.averages:glue_average", "course_lib.teaching.averages:_taken"),
    see="course_lib.teaching.averages (AVERAGES: which task enters how)",
    stages=(
        Stage("dev-9: nine tasks, one number each", cases("dev-9", ((), True))),
        Stage("dev-8: WNLI out, MNLI matched",
              cases("dev-8", ((), False), (("MNLI",), False), (("MNLI",), True))),
        Stage("leaderboard: pairs averaged first", cases("leaderboard", (PAIRED, True))),
        Stage("test-9: nine numbers of eight tasks",
              cases("test-9", (PAIRED, False), (PAIRED, True))),
        Stage("the printed rows", printed),
    ),
    mistakes=(
        Edit(WNLI, "False",
             "WNLI is in the average. test-9 and dev-8 leave it out, as BERT's authors did."),
        Edit(WNLI, 'task == "WNLI"',
             "WNLI is missing from the average. The leaderboard and dev-9 count it."),
        Edit(WNLI, 'task == "WNLI" and recipe in ("dev-9", "leaderboard")',
             "You count WNLI where it should be left out, and leave it out where it counts: the "
             "leaderboard and dev-9 count it, test-9 and dev-8 do not."),
        Edit(BOTH, f"task_scores = {FIRST}\n", "In test-9 MNLI enters with one number. BERT's "
             "Table 1 counts matched and mismatched each as a task of its own: two of the nine "
             "numbers."),
        Edit(BOTH, f"task_scores = {PAIR}\n", "In test-9 the two halves of MNLI are averaged into "
             "one number. BERT's Table 1 counts each of them: two of the nine numbers."),
        Edit(ADD, 'numbers += two if task == "MNLI" else task_scores', "MNLI enters with both "
             "halves as two numbers. Only test-9 does that: on the leaderboard they are averaged "
             "first, and in dev-8 only the matched half counts."),
        Edit(FIRST, f'{LAST} if recipe == "dev-8" and task == "MNLI" else {FIRST}',
             "In dev-8 you take the mismatched half of MNLI; take the matched one, the first."),
        Edit(PAIR, "two", "On the leaderboard you count both numbers of a task separately, so that "
             "MNLI, QQP, MRPC and STS-B count twice. Average the two numbers of a task first: nine "
             "tasks, nine numbers."),
        Edit(PAIR, FIRST, "On the leaderboard only the first number of MNLI, QQP, MRPC and STS-B "
             "is taken. Average the two numbers of a task first."),
        Edit(PAIR, f'{PAIR} if task == "MNLI" else {FIRST}',
             "On the leaderboard you average MNLI's halves, but take only the first number of QQP, "
             "MRPC and STS-B. Average their two numbers too."),
        Edit(FIRST, f'{LAST} if recipe == "test-9" and task in ("QQP", "MRPC") else {FIRST}',
             "In test-9 you take the accuracy of QQP and MRPC; BERT's Table 1 has their F1, the "
             "first number."),
        Edit(LAST, FIRST, "In test-9 you take the Pearson correlation of STS-B; BERT's Table 1 has "
             "Spearman, the second number."),
        Edit(ADD, f"numbers += {FIRST}",
             "You take the first number of every pair, whatever the recipe says."),
        Edit(ADD, f"numbers += {PAIR}", "The two numbers of a task are averaged in every recipe. "
             "Only the leaderboard does that."),
        Edit(ADD, "numbers += two", "You count every number of the row, both numbers of a pair and "
             "WNLI, whatever the recipe says.", more=((WNLI, "False"),)),
        Edit(ADD, "numbers += [round(x) for x in task_scores]", "You round the numbers before you "
             "average them. Round once, at the end, when you print."),
        Edit(ADD, "numbers += [round(x, 1) for x in task_scores]", "The mean of a pair is "
             "rounded to one decimal before the tasks are averaged. Round once, at the end, when "
             "you print."),
        Edit(MEAN, "sum(numbers)", "This is the sum; divide it by the number of scores that you "
                        "added."),
        Edit(MEAN, "sum(numbers) / 9", "You always divide the sum by nine. Divide by the number of "
             "scores that you added: eight in dev-8."),
        Edit(MEAN, "sum(numbers) / 8", "The sum is divided by eight, the number of tasks. In "
             "test-9 MNLI gives two numbers: divide by nine."),
        Edit(MEAN, "sorted(numbers)[len(numbers) // 2]",
             "This is the median, the number in the middle; the mean is expected."),
    ),
)  # fmt: skip
