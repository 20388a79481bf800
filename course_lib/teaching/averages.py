"""What "the average" of a benchmark means: six recipes, each with the papers that use it.

The same row of scores gives another number under each. Two averages can be compared only where
recipe, data set (test or development) and number of models agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

# How a task enters: "each" of its two numbers by itself, their "mean", the "first", the "second".
HOWS = ("each", "mean", "first", "second")
# What the two numbers of a task are, where a paper prints two.
PAIRS = {
    "MNLI": ("matched", "mismatched"),
    "QQP": ("F1", "accuracy"),
    "MRPC": ("F1", "accuracy"),
    "STS-B": ("Pearson", "Spearman"),
    "SQuAD 1.1": ("F1", "exact match"),
    "SQuAD 2.0": ("F1", "exact match"),
}

Score = float | Sequence[float]


@dataclass(frozen=True)
class Recipe:
    """Which tasks are averaged, how each of them enters, whose average it is, and of what: the data
    set, and one model or an ensemble a task."""

    tasks: Mapping[str, str]  # task -> one of HOWS
    used_by: str
    split: str


_SINGLE = dict.fromkeys(("CoLA", "SST-2", "QNLI", "RTE"), "first")
_DEV = {**_SINGLE, "MNLI": "first", "QQP": "first", "MRPC": "first", "STS-B": "first"}
_PAIRED = dict.fromkeys(("MNLI", "QQP", "MRPC", "STS-B"), "mean")
_LEADERBOARD = {**_SINGLE, "WNLI": "first", **_PAIRED}
TEST, DEV, ENSEMBLE = "test, one model", "development, one model", "test, ensemble"

AVERAGES: dict[str, Recipe] = {
    "test-9": Recipe(
        {**_SINGLE, "MNLI": "each", "QQP": "first", "MRPC": "first", "STS-B": "second"},
        "BERT, Table 1: nine numbers, MNLI counts twice; F1 for QQP and MRPC, Spearman for STS-B",
        TEST,
    ),
    "leaderboard": Recipe(
        _LEADERBOARD,
        "the GLUE leaderboard: nine tasks, two numbers of one task averaged",
        TEST,
    ),
    "ensembles": Recipe(
        _LEADERBOARD,
        "RoBERTa and ALBERT on the leaderboard: the same sum, but several models a task, some of "
        "them trained on another task first, QNLI ranked, WNLI asked in another form",
        ENSEMBLE,
    ),
    "dev-9": Recipe(
        {**_DEV, "WNLI": "first"},
        "DistilBERT, Table 1: nine development sets, WNLI among them, one number each",
        DEV,
    ),
    "dev-8": Recipe(
        _DEV,
        "ELECTRA, DeBERTa, and comparisons with RoBERTa: eight development sets, no WNLI",
        DEV,
    ),
    "ALBERT-5": Recipe(
        {**dict.fromkeys(("SQuAD 1.1", "SQuAD 2.0"), "mean")}
        | dict.fromkeys(("MNLI", "SST-2", "RACE"), "first"),
        "ALBERT, Tables 2 to 8 and 11 to 13: two SQuADs, MNLI, SST-2, RACE: not GLUE at all",
        DEV,
    ),
}


def glue_average(row: Mapping[str, Score], recipe: str) -> float:
    """The average of a row of scores by a recipe of AVERAGES.

    row: task -> its score, or its two in the order of PAIRS. Tasks that the recipe leaves out are
    passed over; where a paper prints one number of two, that one is taken.
    Raises ValueError for an unknown recipe, a task that is missing, or a pair that is not given.
    """
    if recipe not in AVERAGES:
        raise ValueError(f"recipe {recipe!r} was given; expected one of {', '.join(AVERAGES)}.")
    tasks = AVERAGES[recipe].tasks
    if missing := sorted(set(tasks) - set(row)):
        raise ValueError(
            f"a row without {', '.join(missing)} was given; recipe {recipe!r} averages "
            f"{', '.join(sorted(tasks))}. Add the scores, or choose another recipe."
        )
    return mean([number for task, how in tasks.items() for number in _taken(task, row[task], how)])


def _taken(task: str, score: Score, how: str) -> Sequence[float]:
    """What of a task goes into the average."""
    if isinstance(score, (int, float)):
        if how in ("each", "mean"):
            raise ValueError(
                f"one number was given for {task}; this recipe needs two, "
                f"{' and '.join(PAIRS[task])}."
            )
        return [score]
    if task not in PAIRS or len(score) != 2:
        raise ValueError(
            f"{len(score)} numbers were given for {task}; expected "
            f"{' and '.join(PAIRS[task]) if task in PAIRS else 'one'}."
        )
    return {"each": score, "mean": [mean(score)], "first": score[:1], "second": score[1:]}[how]
