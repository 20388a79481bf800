"""Exercise 06.6: find the misprint in a table by its own mean."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from course_lib.files import data_path
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Exact, Number

Row = Mapping[str, float]
TASKS = ("CoLA", "MNLI", "MRPC", "QNLI", "QQP", "RTE", "SST-2", "STS-B", "WNLI")


def mean_of(row: Row) -> float:
    return sum(row.values()) / len(row)


def fits(row: Row, printed: float) -> bool:
    """Whether this row has the printed mean."""
    return round(mean_of(row), 1) == printed


def misprint(row: Row, printed: float, again: Row) -> tuple[str | None, float]:
    """(task, shift): the cell whose other value gives the row its printed mean; how far the wrong
    value moves the mean. (None, 0.0) where the row has its printed mean already."""
    if fits(row, printed):
        return None, 0.0
    for task in row:
        mended = {**row, task: again[task]}
        if fits(mended, printed):
            return task, mean_of(row) - mean_of(mended)
    return None, 0.0


# ---------------------------------------------------------------- cases


def a_row(draw: Draw) -> dict[str, float]:
    """Nine scores of one decimal; nine of them never average to the middle of two tenths."""
    tasks = draw.python.sample(TASKS, len(TASKS))
    return {task: draw.integer(500, 950) / 10 for task in tasks}


def sound(draw: Draw) -> list[Case]:
    """Rows that have their printed mean. The second print tempts whoever takes another mean."""
    row = a_row(draw)
    ways = (exactly, without_wnli, by_the_median) * 2
    return [(row, round(mean_of(row), 1), dict(row)), *(tempting(draw, how) for how in ways)]


def tempting(draw: Draw, how: Callable[[Row, float, str], float | None]) -> Case:
    """how: the value of a cell that mends the row for somebody who is wrong, None if there is
    none."""
    while True:
        row = a_row(draw)
        printed = round(mean_of(row), 1)
        for task in row:
            value = how(row, printed, task)
            if value is not None and 20 <= value <= 100 and value != row[task]:
                return row, printed, {**row, task: value}


def exactly(row: Row, printed: float, task: str) -> float | None:
    return round(row[task] + round(len(row) * printed - sum(row.values()), 1), 1)


def without_wnli(row: Row, printed: float, task: str) -> float | None:
    eight = [score for name, score in row.items() if name != "WNLI"]
    if task == "WNLI" or abs(fmean(eight) - printed) < 0.1:
        return None
    return round(row[task] + len(eight) * printed - sum(eight), 1)


def by_the_median(row: Row, printed: float, task: str) -> float | None:
    lower, middle, upper = sorted(row.values())[3:6]
    fit = row[task] == middle and lower <= printed <= upper and abs(middle - printed) > 0.1
    return printed if fit else None


def wrong(draw: Draw, others: int, by: Sequence[int]) -> list[Case]:
    """Rows with one misprint, `by` tenths off; the second print has that cell right, and `others`
    cells wrong, none of which would give the row its mean."""
    cases: list[Case] = []
    for tenths in by:
        right = a_row(draw)
        task, *rest = draw.python.sample(TASKS, 1 + others)
        row = {**right, task: round(right[task] + tenths / 10, 1)}
        # A slip on the misprint's own side leads away from the mean; it may also be the larger one.
        sign = 1 if tenths > 0 else -1
        slips = {other: round(right[other] + sign * draw.integer(3, 90) / 10, 1) for other in rest}
        cases.append((row, round(mean_of(right), 1), {**right, **slips}))
    return cases


def two_prints(draw: Draw) -> list[Case]:
    return wrong(draw, 3, [20, -30, *(draw.integer(12, 80) for _ in range(3)), -25])


def printed_row(_draw: Draw | None = None) -> Case:
    """BERT-base in DistilBERT's Table 1, with its misprint; its mean; the row in the authors'
    README."""
    entry = paper("glue")["bert_base_dev_distilbert"]  # as in the README
    cell = paper("distilbert")["glue"]["bert_base_mnli"]  # as in the paper
    return {**entry["scores"], "MNLI": cell}, entry["printed"], dict(entry["scores"])


def paper(name: str) -> dict[str, Any]:
    return tomllib.loads(data_path("papers", f"{name}.toml").read_text(encoding="utf-8"))


SHIFT = "mean_of(row) - mean_of(mended)"


def blamed(rule: str, say: str) -> Edit:
    """Another cell is blamed, whether it gives the row its mean or not."""
    return Edit("for task in row:", f"for task in [{rule}]:", say, more=(
        ("if fits(mended, printed):", "if True:"),))  # fmt: skip


MISPRINT = Exercise(
    **written("06.6"),
    solution=misprint,
    helpers=(mean_of, fits),
    returns=(Exact("task", what="the name of a task, or None"), Number("shift")),
    see="course_lib.teaching.averages.glue_average (means of printed rows by several recipes)",
    when_raised=(
        ("must be real number|unsupported operand|can't convert type",
         "row is a mapping: its numbers are row.values(), its tasks are row.keys()."),
    ),
    stages=(
        Stage("nothing is wrong", sound),
        Stage("one cell is too high: which?",
              lambda draw: wrong(draw, 0, [20, 30, draw.integer(12, 80)]), only=("task",)),
        Stage("by how much the mean moves", lambda draw: wrong(
            draw, 0, [20, -20, draw.integer(12, 80), -draw.integer(12, 80)])),
        Stage("the second print has errors too", two_prints),
        Stage("BERT-base in DistilBERT's Table 1", lambda draw: [printed_row()]),
    ),
    mistakes=(
        Edit("sum(row.values()) / len(row)",
             "fmean(x for task, x in row.items() if task != 'WNLI')",
             "You take the mean without WNLI. Other papers leave it out; this table's mean has all "
             "nine tasks."),
        Edit("sum(row.values()) / len(row)", "sorted(row.values())[4]",
             "You compare the median with the printed mean. (The *cells* are medians of five runs; "
             "the score beside them is the cells' mean.)"),
        Edit("round(mean_of(row), 1) == printed", "abs(mean_of(row) - printed) < 1e-9",
             "You require the mean to equal the printed one exactly, so nearly every row has a "
             "misprint. The table prints one decimal: compare after rounding."),
        Edit("round(mean_of(row), 1) == printed", "abs(mean_of(row) - printed) < 0.5",
             "You compare the mean too coarsely, to half a point. The table prints one decimal."),
        blamed("max(row, key=lambda t: abs(row[t] - mean_of(row)))",
               "You blame the cell farthest from the row's mean. Tasks differ by tens of points, "
               "so an odd value proves nothing. Put in the value of the second print, and see "
               "whether you get the printed mean."),
        blamed("max(row, key=row.get)", "You blame the largest cell. Put in the value of the "
               "second print, and see whether you get the printed mean."),
        blamed("min(row, key=row.get)", "You blame the smallest cell. Put in the value of the "
               "second print, and see whether you get the printed mean."),
        blamed("*[t for t in row if row[t] != again[t]][:1]",
               "You blame the first cell in which the two prints differ. The second print may have "
               "errors of its own: find the cell that gives the row its printed mean."),
        blamed("max(row, key=lambda t: abs(row[t] - again[t]))",
               "You blame the cell in which the two prints differ most. The second print may have "
               "errors of its own: find the cell that gives the row its printed mean."),
        Edit("if fits(row, printed):", "if row == again:", "You blame a cell because the two "
             "prints differ there. This row has its printed mean, so nothing is wrong: compare the "
             "mean first.",
             more=(("if fits(mended, printed):", "if row[task] != again[task]:"),)),
        Edit(SHIFT, "row[task] - again[task]", "This is by how much the *cell* is wrong. The mean "
             "moves by a ninth of it: nine tasks."),
        Edit(SHIFT, "mean_of(row) - printed", "You subtract the printed mean, which is rounded; "
             "subtract the mean of the corrected row itself."),
        Edit(SHIFT, "mean_of(mended) - mean_of(row)", "The sign is wrong: the shift is the mean of "
             "the row as printed minus the mean with the cell corrected, so it is above zero where "
             "the misprint is too high."),
        Edit(SHIFT, f"abs({SHIFT})", "The shift has lost its sign: below zero means that the "
             "misprint is too low."),
        Edit(SHIFT, "(row[task] - again[task]) / 8", "You divide the cell's error by eight; nine "
             "tasks are averaged."),
        Edit(SHIFT, "mean_of(mended)", "Your second number is the mean of the corrected row; "
             "return by how much the misprint moves it."),
        Edit(SHIFT, "again[task]", "Your second number is the correct value of the cell; return by "
             "how much the misprint moves the mean."),
        Edit(SHIFT, f"round({SHIFT}, 1)",
             "You round the shift. Return it unrounded, and round when you print."),
        Edit(SHIFT, "round(mean_of(row), 1) - round(mean_of(mended), 1)",
             "You round the two means before you subtract them; round neither."),
    ),
)  # fmt: skip
