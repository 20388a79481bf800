"""Exercise 06.6: find the misprint in a table by its own mean.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from course_lib.files import data_path
from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    call,
    close,
)

from .shared import Slips, suspects_of

Row = Mapping[str, float]
Case = tuple[dict[str, float], float, dict[str, float]]  # row, printed mean, printed again
Found = tuple[str | None, float]

TASKS = ("CoLA", "MNLI", "MRPC", "QNLI", "QQP", "RTE", "SST-2", "STS-B", "WNLI")


def misprint(row: Row, printed: float, again: Row) -> Found:
    """(task, shift): the cell whose other value gives the row its printed mean; how far the wrong
    value moves the mean. (None, 0.0) where the row has its printed mean already."""
    mean = sum(row.values()) / len(row)
    if round(mean, 1) == printed:
        return None, 0.0
    for task in row:
        mended = {**row, task: again[task]}
        right = sum(mended.values()) / len(mended)
        if round(right, 1) == printed:
            return task, mean - right
    return None, 0.0


# ---------------------------------------------------------------- known wrong answers


def _differing(row: Row, again: Row) -> list[str]:
    return [task for task in row if row[task] != again[task]]


def _search(
    row: Row,
    printed: float,
    again: Row,
    *,
    tasks: Callable[[Row], list[str]] = list,
    mean: Callable[[Sequence[float]], float] = fmean,
    near: float = 0.05,
    blame: Callable[..., str | None] | None = None,
    shift: Callable[[Row, str, Row, float], float] | None = None,
    digits: int | None = None,
) -> Found:
    """The search with switches for going wrong."""

    def of(scores: Row) -> float:
        return mean([scores[task] for task in tasks(scores)])

    def fits(scores: Row) -> bool:
        return abs(of(scores) - printed) < near + 1e-9

    if fits(row):
        return None, 0.0
    found = next((t for t in row if fits({**row, t: again[t]})), None)
    if blame is not None:
        found = blame(row, printed, again)
    if found is None:
        return None, 0.0
    moved = of(row) - of({**row, found: again[found]})
    if shift is not None:
        moved = shift(row, found, again, printed)
    return found, moved if digits is None else round(moved, digits)


def _mean(row: Row) -> float:
    return fmean(row.values())


SLIPS: Slips = {
    "WNLI left out": (
        "The mean is taken without WNLI. Other papers leave it out; this table's mean has all nine "
        "tasks.",
        {"tasks": lambda row: [task for task in row if task != "WNLI"]},
    ),
    "median": (
        "The number in the middle is compared with the printed mean. (The *cells* are medians of "
        "five runs; the score beside them is the cells' mean.)",
        {"mean": median},
    ),
    "not rounded": (
        "The mean is expected to be exactly the printed one, so that nearly every row has a "
        "misprint. The table prints one decimal: compare after rounding.",
        {"near": 0.0},
    ),
    "rounded to whole points": (
        "The mean is compared too coarsely, to half a point. The table prints one decimal.",
        {"near": 0.5},
    ),
    "farthest from the mean": (
        "The cell farthest from the row's mean is blamed. Tasks differ by tens of points, so an "
        "odd value proves nothing. Put in the value of the second print, and see whether the mean "
        "comes out.",
        {"blame": lambda row, p, again: max(row, key=lambda t: abs(row[t] - _mean(row)))},
    ),
    "largest cell": (
        "The largest cell is blamed. Put in the value of the second print, and see whether the "
        "mean comes out.",
        {"blame": lambda row, p, again: max(row, key=lambda t: row[t])},
    ),
    "smallest cell": (
        "The smallest cell is blamed. Put in the value of the second print, and see whether the "
        "mean comes out.",
        {"blame": lambda row, p, again: min(row, key=lambda t: row[t])},
    ),
    "first difference": (
        "The first cell in which the two prints differ is blamed. The second print may have slips "
        "of its own: the cell is the one that gives the row its printed mean.",
        {"blame": lambda row, p, again: next(iter(_differing(row, again)), None)},
    ),
    "largest difference": (
        "The cell in which the two prints differ most is blamed. The second print may have slips "
        "of its own: the cell is the one that gives the row its printed mean.",
        {"blame": lambda row, p, again: max(row, key=lambda t: abs(row[t] - again[t]))},
    ),
    "shift of the cell": (
        "This is by how much the *cell* is wrong. The mean moves by a ninth of it: nine tasks.",
        {"shift": lambda row, task, again, p: row[task] - again[task]},
    ),
    "shift against the printed mean": (
        "The printed mean is subtracted. It is rounded; subtract the mean of the mended row "
        "itself.",
        {"shift": lambda row, task, again, p: _mean(row) - p},
    ),
    "sign of the shift": (
        "The sign is wrong: the shift is the mean as printed minus the mean with the cell mended, "
        "so above zero where the misprint is too high.",
        {"shift": lambda row, task, again, p: (again[task] - row[task]) / len(row)},
    ),
    "shift without its sign": (
        "The shift has lost its sign: below zero means that the misprint is too low.",
        {"shift": lambda row, task, again, p: abs(row[task] - again[task]) / len(row)},
    ),
    "shift divided by eight": (
        "The cell's error is divided by eight; nine tasks are averaged.",
        {"shift": lambda row, task, again, p: (row[task] - again[task]) / 8},
    ),
    "mended mean": (
        "The second number is the mean of the mended row; expected by how much the misprint moves "
        "it.",
        {"shift": lambda row, task, again, p: _mean({**row, task: again[task]})},
    ),
    "mended value": (
        "The second number is the right value of the cell; expected by how much the misprint "
        "moves the mean.",
        {"shift": lambda row, task, again, p: again[task]},
    ),
    "rounded shift": (
        "The shift is rounded. Return it as it is, and round when you print.",
        {"digits": 1},
    ),
    "shift to two decimals": (
        "The shift is rounded to two decimals. Return it as it is, and round when you print.",
        {"digits": 2},
    ),
}


MISPRINT_SUSPECTS = suspects_of(SLIPS, _search)


# ---------------------------------------------------------------- inputs

Cases = Callable[[Draw], list[Case]]


def _row(draw: Draw) -> dict[str, float]:
    """Nine scores of one decimal; nine of them never average to the middle of two tenths."""
    tasks = list(TASKS)
    draw.python.shuffle(tasks)
    return {task: draw.integer(500, 950) / 10 for task in tasks}


def _rounded_mean(row: Row) -> float:
    return round(_mean(row), 1)


def _sound(draw: Draw) -> list[Case]:
    """Rows that have their printed mean. The second print tempts whoever takes another mean."""
    plain = _row(draw)
    tempting = [_tempting(draw, how) for how in (_exactly, _without_wnli, _by_the_median) * 2]
    return [(plain, _rounded_mean(plain), dict(plain)), *tempting]


def _tempting(draw: Draw, how: Callable[[Row, float, str], float | None]) -> Case:
    """how: the value of a cell that mends the row for somebody who is wrong, None if there is
    none."""
    while True:
        row = _row(draw)
        printed = _rounded_mean(row)
        for task in row:
            value = how(row, printed, task)
            if value is not None and 20 <= value <= 100 and value != row[task]:
                return row, printed, {**row, task: value}


def _exactly(row: Row, printed: float, task: str) -> float | None:
    gap = round(len(row) * printed - sum(row.values()), 1)
    return round(row[task] + gap, 1)


def _without_wnli(row: Row, printed: float, task: str) -> float | None:
    eight = [score for name, score in row.items() if name != "WNLI"]
    if task == "WNLI" or abs(fmean(eight) - printed) < 0.1:
        return None
    return round(row[task] + len(eight) * printed - sum(eight), 1)


def _by_the_median(row: Row, printed: float, task: str) -> float | None:
    lower, middle, upper = sorted(row.values())[3:6]
    fits = row[task] == middle and lower <= printed <= upper and abs(middle - printed) > 0.1
    return printed if fits else None


def _wrong(draw: Draw, others: int, by: Sequence[int]) -> list[Case]:
    """Rows with one misprint; the second print has that cell right, and `others` cells wrong.

    by: how many tenths the misprint is off. None of the second print's own slips would give the
    row its mean.
    """
    cases = []
    for tenths in by:
        right = _row(draw)
        task, *rest = draw.python.sample(list(TASKS), 1 + others)
        row = {**right, task: round(right[task] + tenths / 10, 1)}
        # A slip on the misprint's own side leads away from the mean; it may also be the larger one.
        sign = 1 if tenths > 0 else -1
        slips = {other: round(right[other] + sign * draw.integer(3, 90) / 10, 1) for other in rest}
        cases.append((row, _rounded_mean(right), {**right, **slips}))
    return cases


def _too_high(draw: Draw) -> list[Case]:
    return _wrong(draw, 0, [20, 30, draw.integer(12, 80)])


def _either_way(draw: Draw) -> list[Case]:
    return _wrong(draw, 0, [20, -20, draw.integer(12, 80), -draw.integer(12, 80)])


def _two_prints(draw: Draw) -> list[Case]:
    return _wrong(draw, 3, [20, -30, *(draw.integer(12, 80) for _ in range(3)), -25])


def _everything(draw: Draw) -> list[Case]:
    return [*_two_prints(draw), *_either_way(draw), *_sound(draw)]


def printed_row() -> Case:
    """BERT-base in DistilBERT's Table 1, with its misprint; its mean; the row in the authors'
    README."""
    entry = _paper("glue")["bert_base_dev_distilbert"]  # as in the README
    cell = _paper("distilbert")["glue"]["bert_base_mnli"]  # as in the paper
    return {**entry["scores"], "MNLI": cell}, entry["printed"], dict(entry["scores"])


def _paper(name: str) -> dict[str, Any]:
    return tomllib.loads(data_path("papers", f"{name}.toml").read_text(encoding="utf-8"))


# ---------------------------------------------------------------- stages


def _ask_misprint(cases: Cases, *, shift: bool = True) -> Callable[[Answer, Draw], None]:
    """shift: whether the second number is looked at as well."""

    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            _expect_misprint(answer, case, [_everything(draw), cases(draw)], shift)

    return ask


def _expect_misprint(
    answer: Answer, case: Case, pools: Sequence[Sequence[Case]], shift: bool
) -> None:
    given, right = _pair(call(answer, *case)), misprint(*case)
    if given[0] == right[0] and (not shift or close(given[1], right[1])):
        return
    row, printed, again = case
    cells = ", ".join(f"{task} {score:g}" for task, score in row.items())
    other = ", ".join(f"{task} {again[task]:g}" for task in _differing(row, again)) or "the same"
    said = (
        f"The row {cells} with the mean {printed:g} (it averages {_mean(row):.4f}); printed again: "
        f"{other}. You have {_told(given)}; it is {_told(right)}."
    )

    def same(mine: Any, theirs: Found, _case: Case) -> bool:
        found = _pair(mine)
        return found[0] == theirs[0] and close(found[1], theirs[1])

    raise told(name_suspect(answer, case, pools, MISPRINT_SUSPECTS, same), said)


def _told(found: Found) -> str:
    return f"({found[0]!r}, {found[1]:+.4f})" if found[0] else "(None, 0.0)"


def _pair(result: Any) -> Found:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Mistake(
            "wrong type",
            f"Your function returned {result!r:.60} ({type(result).__name__}); expected two "
            "things: the name of the task, or None, and the shift of the mean.",
        )
    task, shift = result
    if task is not None and not isinstance(task, str):
        raise Mistake(
            "wrong type",
            f"The first thing in your result is {task!r:.60}; expected the name of a task, or "
            "None.",
        )
    return task or None, one_number(shift, "the shift of the mean")


def _ask_printed(answer: Answer, draw: Draw) -> None:
    _expect_misprint(answer, printed_row(), [_everything(draw), []], shift=True)


MISPRINT = Exercise(
    id="06.6",
    title="A table that contradicts itself",
    purpose="to check a printed number with nothing but the page it stands on",
    difficulty=2,
    minutes=12,
    signature="my_misprint(row, printed, again)",
    statement=(
        "`row` maps nine tasks to the scores that a table prints, one decimal each; `printed` is "
        "the mean beside them, rounded to one decimal. If the row does not have that mean, one "
        "cell is misprinted. The mean alone cannot say which. `again` is the same row printed "
        "elsewhere, where this cell is right (and others may be wrong): find the one cell whose "
        "value from `again` gives the row its printed mean. Return `(task, shift)`: the task, and "
        "by how much the misprint moves the mean (mean as printed minus mean mended, not rounded). "
        "Return `(None, 0.0)` where nothing is wrong. The last stage is a row of DistilBERT's "
        "Table 1, and the one in its authors' README."
    ),
    hints=(
        "Average all nine values and round to one decimal: is it `printed`? Then (None, 0.0).",
        "Otherwise try each task: {**row, task: again[task]} is the row with this one cell from "
        "the second print. Which gives the printed mean, after rounding?",
        "The shift is the difference of two means, neither of them rounded.",
        "A cell that is 1.8 too high among nine moves the mean by 1.8 / 9 = 0.2.",
    ),
    solution=misprint,
    see="course_lib.teaching.averages.glue_average (means of printed rows by several recipes)",
    when_raised=(
        (
            "must be real number|unsupported operand",
            "row is a mapping: its numbers are row.values(), its tasks are row.keys().",
        ),
    ),
    stages=(
        Check("nothing is wrong", _ask_misprint(_sound)),
        Check("one cell is too high: which?", _ask_misprint(_too_high, shift=False)),
        Check("by how much the mean moves", _ask_misprint(_either_way)),
        Check("the second print has slips too", _ask_misprint(_two_prints)),
        Check("BERT-base in DistilBERT's Table 1", _ask_printed),
    ),
)
