"""Exercise 13.2: two averages of one row, and none where the row lacks a number."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence

from course_lib.files import data_path
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Number

Score = float | Sequence[float]
SINGLE = ("CoLA", "SST-2", "QNLI", "RTE")
PAIRED = ("MNLI", "QQP", "MRPC", "STS-B")


def average(row: Mapping[str, Score], recipe: str) -> float:
    """GLUE's average of a row, by "test-9" or "leaderboard"; nan where it lacks a number."""
    official = recipe == "leaderboard"
    numbers: list[float] = []
    for task in (*SINGLE, *PAIRED, *(["WNLI"] if official else [])):
        score = row.get(task, [])
        scores = [score] if isinstance(score, (int, float)) else list(score)
        pair = task in (PAIRED if official else ("MNLI",))
        if len(scores) < 1 + pair:
            return math.nan
        if official:
            scores = [sum(scores) / len(scores)]
        elif task == "STS-B":
            scores = scores[-1:]
        elif task != "MNLI":
            scores = scores[:1]
        numbers += scores
    return sum(numbers) / len(numbers)


# ---------------------------------------------------------------- cases


def row(draw: Draw, pairs: Sequence[str], wnli: bool) -> dict[str, Score]:
    """Tasks in any order; those in `pairs` have two numbers."""
    tasks = [*SINGLE, *PAIRED, *(["WNLI"] if wnli else [])]
    draw.python.shuffle(tasks)
    scores = {task: tuple(draw.integer(400, 990) / 10 for _ in range(2)) for task in tasks}
    return {task: two if task in pairs else two[0] for task, two in scores.items()}


def whole(recipe: str) -> Callable[[Draw], list[Case]]:
    """Rows with all that the recipe needs, and more."""
    return lambda draw: [(row(draw, PAIRED, True), recipe) for _ in range(4)]


def single(draw: Draw) -> list[Case]:
    """Pairs of which one number is printed: enough for test-9 if MNLI has both."""
    printed = ((("MNLI",), True), (("MNLI", "STS-B"), False), (("MNLI",), False))
    return [(row(draw, *kind), "test-9") for kind in printed]


def lacking(draw: Draw) -> list[Case]:
    """Each recipe with a number missing, and the other one that can do without it."""
    half = [(row(draw, ("QQP", "MRPC", "STS-B"), True), recipe) for recipe in RECIPES]
    one = row(draw, [task for task in PAIRED if task != draw.python.choice(PAIRED[1:])], True)
    no_wnli, no_task = row(draw, PAIRED, False), row(draw, PAIRED, True)
    del no_task[draw.python.choice(SINGLE)]
    rows = [(r, recipe) for r in (one, no_wnli, no_task) for recipe in RECIPES]
    return [*half, *rows]


def printed(draw: Draw) -> list[Case]:
    """The rows that papers print, by both recipes; most of them lack something."""
    tables = tomllib.loads(data_path("papers", "glue.toml").read_text(encoding="utf-8"))
    rows = [table["scores"] for table in tables.values() if "scores" in table]
    return [(scores, recipe) for scores in rows for recipe in RECIPES]


RECIPES = ("test-9", "leaderboard")
TASKS = '(*SINGLE, *PAIRED, *(["WNLI"] if official else []))'
PAIR, NAN = 'PAIRED if official else ("MNLI",)', "return math.nan"
MEAN, LAST, FIRST = "[sum(scores) / len(scores)]", "scores[-1:]", "scores[:1]"
ADD, RETURN = "numbers += scores", "sum(numbers) / len(numbers)"
SPEARMAN, NOT_MNLI = 'elif task == "STS-B"', 'task != "MNLI"'

AVERAGES = Exercise(
    **written("13.2"),
    solution=average,
    returns=Number("average"),
    library=("course_lib.lectures.lecture_13.exercises.averages:average",
             "course_lib.teaching.averages:glue_average"),
    when_raised=(
        (rf"^'({'|'.join((*SINGLE, *PAIRED, 'WNLI'))})'", "The row lacks this task. Ask `if task "
         "in row` first, or use row.get(task); "
         "where the recipe needs it, return nan."),
        (r"^'.*'\n.*\[", "No task of a row has this name. They are CoLA, SST-2, MRPC, STS-B, QQP, "
         "MNLI, QNLI, RTE and WNLI."),
        (r"float.*(iterable|subscriptable)|len\(\)", "A task has one number or two: make a list "
         "of one number before you count or add."),
    ),
    stages=(
        Stage("leaderboard: a mean for each of nine tasks", whole("leaderboard")),
        Stage("test-9: nine numbers of eight tasks", whole("test-9")),
        Stage("test-9: one number where a task has two", single),
        Stage("a number is missing", lacking),
        Stage("rows as papers print them", printed),
    ),
    mistakes=(
        Edit("row.get(task, [])", "row.get(task, (0, 0))", "A task that the row lacks counts as 0 "
             "in your mean. Its score is unknown: return nan where the recipe needs it."),
        Edit(TASKS, "(*SINGLE, *PAIRED)", "WNLI is missing from the leaderboard's average. It "
             "counts there like any other task."),
        Edit(TASKS, '(*SINGLE, *PAIRED, "WNLI")', "You include WNLI in test-9, as a tenth "
             "number. BERT's Table 1 leaves it out; there are nine because MNLI has two."),
        Edit(TASKS, "row", "You average over the tasks that the row has. The recipe decides which "
             "tasks enter: a row without one of them has no average.",
             more=((ADD, 'numbers += [] if task == "WNLI" and not official else scores'),)),
        Edit(MEAN, "scores", "On the leaderboard you count both numbers of a task separately, so "
             "four tasks have double weight. Average each pair first."),
        Edit(MEAN, f'{MEAN} if task != "MNLI" else scores', "On the leaderboard you count MNLI "
             "twice. It is one task of nine there: average its halves. Only test-9 has both."),
        Edit(MEAN, FIRST, "On the leaderboard only the first number of a pair is taken. The mean "
             "of both counts."),
        Edit(MEAN, f'{MEAN} if task == "MNLI" else {FIRST}', "On the leaderboard MNLI's halves are "
             "averaged, but F1 is taken for QQP and MRPC, Pearson for STS-B. Average these "
             "pairs, too."),
        Edit(NOT_MNLI, "True", "In test-9 only the first half of MNLI is taken. Both enter: two of "
             "the nine numbers."),
        Edit(ADD, f'numbers += {MEAN} if task == "MNLI" else scores', "In test-9 the halves of "
             "MNLI are averaged: eight numbers. BERT's Table 1 counts each by itself: nine."),
        Edit(SPEARMAN, 'elif task == "no"', "In test-9 Pearson is taken for STS-B. BERT's Table 1 "
             "has Spearman, the second number."),
        Edit(SPEARMAN, "elif task in PAIRED[1:]", "In test-9 the second number of QQP and MRPC is "
             "taken, the accuracy. BERT's Table 1 has F1, the first."),
        Edit(FIRST, MEAN, "In test-9 the pairs of QQP and MRPC are averaged. BERT's Table 1 has F1 "
             "alone."),
        Edit(f"{FIRST}\n", f"{MEAN}\n", "In test-9 pairs are averaged. Only the leaderboard does "
             "that.", more=((LAST, MEAN),)),
        Edit('recipe == "leaderboard"', 'recipe == "test-9"', "You swapped the two recipes."),
        Edit('recipe == "leaderboard"', "False", "You compute test-9 whatever the recipe says."),
        Edit('recipe == "leaderboard"', "True", "You compute the leaderboard's average whatever "
             "the recipe says."),
        Edit(NAN, "continue", "A number is missing, and you average the rest. That is another "
             "average; return nan."),
        Edit(NAN, "scores = [0.0]", "A missing number counts as 0 in your answer. Nobody "
             "measured a 0: return nan."),
        Edit(PAIR, "()", "You take one number for the whole pair. Where the recipe needs both, "
             "one is not enough: return nan."),
        Edit(PAIR, "PAIRED", "test-9 needs two numbers for MNLI only. For QQP, MRPC and STS-B it "
             "takes one, and the row may have only that one."),
        Edit(PAIR, 'PAIRED if official else ()', "test-9 needs both halves of MNLI. Where the row "
             "has one of them, return nan."),
        Edit(PAIR, '("MNLI",)', "The leaderboard needs both numbers of QQP, MRPC and STS-B, too. "
             "Where the row has one, return nan."),
        Edit(RETURN, "sum(numbers) / 9", "The sum is divided by nine, whatever was added.",
             more=((NAN, "continue"),)),
        Edit(RETURN, "sorted(numbers)[len(numbers) // 2]", "This is the median. An average of "
             "GLUE is a mean."),
    ),
)  # fmt: skip
