"""Exercise 07.6: a quarter of whose compute?

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_lib.files import data_path
from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
)

Row = Mapping[str, float]  # "score", "compute" and, where known, "steps"
Rows = Mapping[str, Row]  # model -> its row
Case = tuple[str, Rows]
LEVEL = 0.25  # points: a smaller difference says nothing

# Names of the rows of data/papers/electra.toml, Tables 1 and 2 of the paper.
NAMES = {
    "bert_base": "BERT-base",
    "electra_base": "ELECTRA-base",
    "bert_large": "BERT-large",
    "roberta_100k": "RoBERTa-100K",
    "roberta_500k": "RoBERTa-500K",
    "xlnet": "XLNet",
    "own_bert": "BERT, ELECTRA's own run",
    "electra_400k": "ELECTRA-400K",
    "electra_1750k": "ELECTRA-1.75M",
}


def printed_rows() -> dict[str, dict[str, float]]:
    """The rows of ELECTRA's Tables 1 and 2: mean of eight GLUE development sets, operations.

    Where the course has only Table 2's multiple of ELECTRA-400K's operations, it is multiplied out.
    """
    tables = tomllib.loads(data_path("papers", "electra.toml").read_text(encoding="utf-8"))
    printed = {**tables["small"], **tables["large"]}
    unit = tables["large"]["electra_400k"]["flops"]
    rows = {}
    for key, name in NAMES.items():
        row = printed[key]
        compute = row["flops"] if "flops" in row else row["times"] * unit
        rows[name] = {"score": float(row["glue"]), "compute": float(compute)}
    return rows


def compute_shares(model: str, rows: Rows) -> dict[str, float]:
    """{other: the share of its compute that `model` used}, of all others that it reaches."""
    mine = rows[model]
    return {
        other: mine["compute"] / row["compute"]
        for other, row in rows.items()
        if other != model and mine["score"] >= row["score"] - LEVEL
    }


# ---------------------------------------------------------------- known wrong answers


def _of(
    value: Callable[[Row, Row], float] = lambda mine, row: mine["compute"] / row["compute"],
    reached: Callable[[float, float], bool] = lambda mine, score: mine >= score - LEVEL,
    itself: bool = False,
) -> Answer:
    """The answer with switches for going wrong: value(mine, other's row), reached(scores)."""

    def answer(model: str, rows: Rows) -> dict[str, float]:
        mine = rows[model]
        return {
            other: value(mine, row)
            for other, row in rows.items()
            if (itself or other != model) and reached(mine["score"], row["score"])
        }

    return answer


def _by_bert_large(model: str, rows: Rows) -> dict[str, float]:
    share = rows[model]["compute"] / rows["BERT-large"]["compute"]
    return dict.fromkeys(compute_shares(model, rows), share)


def _of_bert_large(model: str, rows: Rows) -> dict[str, float]:
    base = rows["BERT-large"]["compute"]
    return {other: rows[other]["compute"] / base for other in compute_shares(model, rows)}


COMPUTE_SUSPECTS = (
    Suspect(
        "the wrong way round",
        "The shares are upside down: other / model. 'A quarter of their compute' is the model's "
        "compute divided by theirs.",
        _of(lambda mine, row: row["compute"] / mine["compute"]),
    ),
    Suspect(
        "always by BERT-large",
        "Every share is the model's compute divided by BERT-large's. Each rival has a compute of "
        "its own: divide by that.",
        _by_bert_large,
    ),
    Suspect(
        "always by BERT-large",
        "Every rival's compute is divided by BERT-large's. Asked for is the model's compute, "
        "divided by the rival's.",
        _of_bert_large,
    ),
    Suspect(
        "steps",
        "Steps are divided, not operations. A step can be a batch of 128 short texts or of 8,000 "
        "long ones, of a small model or a large one: only the operations can be compared.",
        _of(lambda mine, row: mine["steps"] / row["steps"]),
    ),
    Suspect(
        "operations a step",
        "Operations are divided by steps first. That is the price of one step; the claim is about "
        "the whole training.",
        _of(lambda m, r: (m["compute"] / m["steps"]) / (r["compute"] / r["steps"])),
    ),
    Suspect(
        "scores",
        "The scores are divided, not the compute.",
        _of(lambda mine, row: mine["score"] / row["score"]),
    ),
    Suspect(
        "score for compute",
        "Points per operation are compared. The claim is simpler: with how much of their compute "
        "does the model reach them?",
        _of(lambda m, r: (m["score"] / m["compute"]) / (r["score"] / r["compute"])),
    ),
    Suspect(
        "difference",
        "This is the difference of the two amounts; a share is a quotient.",
        _of(lambda mine, row: mine["compute"] - row["compute"]),
    ),
    Suspect(
        "what was saved",
        "This is one minus the share: what was saved. Asked for is the share that was used.",
        _of(lambda mine, row: 1 - mine["compute"] / row["compute"]),
    ),
    Suspect(
        "percent",
        "The shares are in percent; expected numbers such as 0.22.",
        _of(lambda mine, row: 100 * mine["compute"] / row["compute"]),
    ),
    Suspect(
        "rounded",
        "The shares are rounded. Return them as they are; round when you print.",
        _of(lambda mine, row: round(mine["compute"] / row["compute"], 2)),
    ),
    Suspect(
        "itself",
        "The model is compared with itself as well. It reaches itself with all of its compute, "
        "which says nothing.",
        _of(itself=True),
    ),
    Suspect(
        "everyone",
        "All other models are in your result. 'The same quality for less' needs the same quality: "
        f"leave out whom the model does not reach to within {LEVEL} points.",
        _of(reached=lambda mine, score: True),
    ),
    Suspect(
        "everyone, itself too",
        "All models are in your result, the model itself among them. Leave it out, and those it "
        f"does not reach to within {LEVEL} points.",
        _of(reached=lambda mine, score: True, itself=True),
    ),
    Suspect(
        "no margin",
        f"A model that scores a little more is missing. Up to {LEVEL} points count as level.",
        _of(reached=lambda mine, score: mine >= score),
    ),
    Suspect(
        "only those level with it",
        "Only models with about the same score are in your result. Whom the model beats by more, "
        "it reaches as well.",
        _of(reached=lambda mine, score: abs(mine - score) <= LEVEL),
    ),
    Suspect(
        "margin on the wrong side",
        f"The {LEVEL} points are taken off the model instead of being granted to it: only clearly "
        "weaker models are in your result.",
        _of(reached=lambda mine, score: mine - LEVEL >= score),
    ),
    Suspect(
        "better models",
        "Your result has the models that score more, instead of those that the model reaches.",
        _of(reached=lambda mine, score: mine <= score + LEVEL),
    ),
    Suspect(
        "better models",
        "Your result has the models that score more, instead of those that the model reaches.",
        _of(reached=lambda mine, score: mine < score - LEVEL),
    ),
)


# ---------------------------------------------------------------- inputs


def _table(draw: Draw, gaps: Sequence[float], model: str = "ELECTRA-400K") -> Case:
    """The model, and a rival for each gap: how many points it scores more. BERT-large is there."""
    others = [name for name in NAMES.values() if name not in ("BERT-large", model)]
    names = ["BERT-large", *draw.python.sample(others, len(gaps) - 1)]
    gaps = draw.python.sample(gaps, len(gaps))
    score = draw.integer(850, 890) / 10
    rows = {name: _row(draw, score + gap) for name, gap in zip(names, gaps, strict=True)}
    rows[model] = _row(draw, score)
    order = draw.python.sample(list(rows), len(rows))
    return model, {name: rows[name] for name in order}


def _row(draw: Draw, score: float) -> dict[str, float]:
    compute = draw.integer(11, 99) * 10.0 ** draw.integer(17, 20)
    return {"score": round(score, 1), "compute": compute, "steps": draw.integer(100, 2_000) * 1e3}


CLEAR, SMALL, AHEAD = -2.1, -0.1, 1.9  # how far a rival is ahead; none near the margin


def _beaten(draw: Draw) -> list[Case]:
    return [_table(draw, (CLEAR,)), _table(draw, (CLEAR, -3.4)), _table(draw, (-1.2, SMALL, CLEAR))]


def _ahead(draw: Draw) -> list[Case]:
    return [_table(draw, (CLEAR, AHEAD, -3.4)), _table(draw, (AHEAD, 0.9, CLEAR, SMALL))]


def _level(draw: Draw) -> list[Case]:
    return [_table(draw, (0.1, 0.2, AHEAD, CLEAR)), _table(draw, (0.2, SMALL, -0.2, 0.6, CLEAR))]


def _everything(draw: Draw) -> list[Case]:
    return [_table(draw, (0.1, 0.2, SMALL, AHEAD, 0.7, CLEAR)) for _ in range(4)]


def _printed(_draw: Draw) -> list[Case]:
    models = ("ELECTRA-400K", "ELECTRA-base", "ELECTRA-1.75M")
    return [(model, printed_rows()) for model in models]


# ---------------------------------------------------------------- stages


def _ask_shares(cases: Callable[[Draw], list[Case]]) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case)), compute_shares(*case)
            if _agree(given, right):
                continue
            pools = [_everything(draw), cases(draw)]
            found = name_suspect(answer, case, pools, COMPUTE_SUSPECTS, _same)
            raise told(found, _example(case, given, right))

    return ask


def _example(case: Case, given: Mapping[str, float], right: Mapping[str, float]) -> str:
    model, rows = case
    score = rows[model]["score"]
    if surplus := [name for name in given if name not in right]:
        name = surplus[0]
        gap = f"scores {rows[name]['score']:g}" if name in rows else "is not in the table"
        return f"{model} scores {score:g} and {name} {gap}: {name} should not be in your result."
    if missing := [name for name in right if name not in given]:
        name = missing[0]
        other = rows[name]["score"]
        return f"{model} scores {score:g} and {name} {other:g}: {name} is missing in your result."
    name = next(name for name in right if not close(given[name], right[name]))
    mine, theirs = rows[model]["compute"], rows[name]["compute"]
    return (
        f"{model} used {mine:.2g} operations and {name} {theirs:.2g}: you have {given[name]:.4g}; "
        f"the share is {right[name]:.4g}."
    )


def _read(x: Any) -> dict[str, float]:
    if not isinstance(x, Mapping) or not all(isinstance(name, str) for name in x):
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r:.60} ({type(x).__name__}); expected a dictionary from "
            "the names of other models to shares.",
        )
    return {name: one_number(value, f"the share for {name}") for name, value in x.items()}


def _agree(mine: Mapping[str, float], theirs: Mapping[str, float]) -> bool:
    return set(mine) == set(theirs) and all(close(mine[name], theirs[name]) for name in theirs)


def _same(mine: Any, theirs: Mapping[str, float], _case: Case) -> bool:
    return _agree(_read(mine), theirs)


COMPUTE = Exercise(
    id="07.6",
    title="A quarter of whose compute?",
    purpose="to read a claim of efficiency with its denominator",
    difficulty=2,
    minutes=10,
    signature="my_shares(model, rows)",
    statement=(
        '"The same quality for a quarter of the compute" names no rival. `rows` maps a model to '
        'its row: `row["score"]` (GLUE, development sets), `row["compute"]` (operations in '
        'pre-training) and, in some tables, `row["steps"]`. Return a dictionary with every *other* '
        "model that `model` reaches, and the share of that model's compute that `model` used. To "
        f"reach means to score at least as much, or less by at most {LEVEL} points. All stages but "
        "the last draw their numbers at random; the last is ELECTRA's Tables 1 and 2. When it "
        "passes, import `printed_rows` from "
        '`course_lib.lectures.lecture_07.exercises.compute` and look at `my_shares("ELECTRA-400K", '
        "printed_rows())`: against whom is it a quarter, and what does it say about BERT-large?"
    ),
    hints=(
        'mine = rows[model] is the row of the model; mine["compute"] stands above the line.',
        "One loop over rows.items(), with two conditions: another model, and one that is reached.",
        f'It is reached if mine["score"] >= row["score"] - {LEVEL}.',
        "The tables: ELECTRA-400K scores 89.0 with 7.1e20 operations, RoBERTa-500K 88.9 with "
        "3.2e21: 0.22. BERT-large scores 84.0 with 1.9e20: reached too, with 3.7 times its "
        "compute.",
    ),
    solution=compute_shares,
    see="printed_rows of this exercise's file gives the rows of the last stage",
    stages=(
        Check("all rivals are beaten", _ask_shares(_beaten)),
        Check("some rivals are ahead", _ask_shares(_ahead)),
        Check("rivals a little ahead count as level", _ask_shares(_level)),
        Check("six drawn rivals", _ask_shares(_everything)),
        Check("ELECTRA's Tables 1 and 2", _ask_shares(_printed)),
    ),
)
