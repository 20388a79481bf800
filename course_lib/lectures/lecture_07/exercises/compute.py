"""Exercise 07.6: a quarter of whose compute?"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

from course_lib.files import data_path
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Table

Row = Mapping[str, float]  # "score", "compute" and, where known, "steps"
Rows = Mapping[str, Row]  # model -> its row
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
    """The rows of ELECTRA's Tables 1 and 2: mean of eight GLUE development sets, FLOPs.

    Where the course has only Table 2's multiple of ELECTRA-400K's FLOPs, it is multiplied out.
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
    """{other: the fraction of its compute that `model` used}, of all others that it reaches."""
    own = rows[model]
    return {
        other: own["compute"] / row["compute"]
        for other, row in rows.items()
        if other != model and own["score"] >= row["score"] - LEVEL
    }


# ---------------------------------------------------------------- cases


def table(draw: Draw, *gaps: float) -> Case:
    """ELECTRA-400K, and a rival for each gap: the points it scores more. BERT-large is there."""
    model = "ELECTRA-400K"
    others = [name for name in NAMES.values() if name not in ("BERT-large", model)]
    names = ["BERT-large", *draw.python.sample(others, len(gaps) - 1)]
    shuffled = draw.python.sample(gaps, len(gaps))
    score = draw.integer(850, 890) / 10
    rows = {name: a_row(draw, score + gap) for name, gap in zip(names, shuffled, strict=True)}
    rows[model] = a_row(draw, score)
    order = draw.python.sample(list(rows), len(rows))
    return model, {name: rows[name] for name in order}


def a_row(draw: Draw, score: float) -> dict[str, float]:
    compute = draw.integer(11, 99) * 10.0 ** draw.integer(17, 20)
    return {"score": round(score, 1), "compute": compute, "steps": draw.integer(100, 2_000) * 1e3}


CLEAR, SMALL, AHEAD = -2.1, -0.1, 1.9  # how far a rival is ahead; none near the margin


def as_printed(_draw: Draw) -> list[Case]:
    models = ("ELECTRA-400K", "ELECTRA-base", "ELECTRA-1.75M")
    return [(model, printed_rows()) for model in models]


VALUE = 'own["compute"] / row["compute"]'
REACHED = 'own["score"] >= row["score"] - LEVEL'

COMPUTE = Exercise(
    **written("07.6"),
    solution=compute_shares,
    returns=Table("dictionary"),
    see="printed_rows of this exercise's file gives the rows of the last stage",
    stages=(
        Stage("all rivals are beaten", each(table, (CLEAR,), (CLEAR, -3.4), (-1.2, SMALL, CLEAR))),
        Stage("some rivals are ahead",
              each(table, (CLEAR, AHEAD, -3.4), (AHEAD, 0.9, CLEAR, SMALL))),
        Stage("rivals a little ahead count as level",
              each(table, (0.1, 0.2, AHEAD, CLEAR), (0.2, SMALL, -0.2, 0.6, CLEAR))),
        Stage("six drawn rivals", each(table, *[(0.1, 0.2, SMALL, AHEAD, 0.7, CLEAR)] * 4)),
        Stage("ELECTRA's Tables 1 and 2", as_printed),
    ),
    mistakes=(
        Edit(VALUE, 'row["compute"] / own["compute"]', "The fractions are upside down: other / "
             "model. 'A quarter of their compute' is the model's compute divided by theirs."),
        Edit(VALUE, 'own["compute"] / rows["BERT-large"]["compute"]',
             "You always divide the model's compute by BERT-large's. Each rival has its own "
             "compute: divide by that."),
        Edit(VALUE, 'row["compute"] / rows["BERT-large"]["compute"]',
             "You divide every rival's compute by BERT-large's. Divide the model's compute by the "
             "rival's."),
        Edit(VALUE, 'own["steps"] / row["steps"]', "You divide steps, not FLOPs. A step can be a "
             "batch of 128 short texts or of 8,000 long ones, of a small model or a large one: "
             "compare only FLOPs."),
        Edit(VALUE, '(own["compute"] / own["steps"]) / (row["compute"] / row["steps"])',
             "You divide FLOPs by steps first. That is the cost of one step; the claim is about "
             "the whole training."),
        Edit(VALUE, 'own["score"] / row["score"]', "You divide the scores, not the compute."),
        Edit(VALUE, '(own["score"] / own["compute"]) / (row["score"] / row["compute"])',
             "You compare points per FLOP. The claim is simpler: with which fraction of their "
             "compute does the model reach them?"),
        Edit(VALUE, 'own["compute"] - row["compute"]',
             "This is the difference of the two amounts; divide them instead."),
        Edit(VALUE, f"1 - {VALUE}", "This is one minus the fraction, what was saved. Return the "
             "fraction that was used."),
        Edit(VALUE, f"100 * {VALUE}", "Your fractions are in percent; return numbers such as "
             "0.22."),
        Edit(VALUE, f"round({VALUE}, 2)",
             "You round the fractions. Return them unrounded; round when you print."),
        Edit("other != model and ", "", "You also compare the model with itself. It reaches itself "
             "with all of its compute, which says nothing."),
        Edit(REACHED, "True", "All other models are in your result. 'The same quality for less' "
             "needs the same quality: leave out models that it does not reach to within "
             f"{LEVEL} points."),
        Edit(f"other != model and {REACHED}", "True", "All models are in your result, the model "
             "itself among them. Leave it out, and those it does not reach to within "
             f"{LEVEL} points."),
        Edit(REACHED, f'{REACHED} and own["compute"] < row["compute"]',
             "Only models that took more compute are in your result. A model that was reached with "
             "more compute belongs to it too: its fraction is above 1, which the claim does not "
             "mention."),
        Edit(REACHED, 'own["score"] >= row["score"]', "A model that scores slightly more is "
             f"missing. Up to {LEVEL} points count as level."),
        Edit(REACHED, 'abs(own["score"] - row["score"]) <= LEVEL',
             "Only models with about the same score are in your result. The model also reaches "
             "those that it beats by more."),
        Edit(REACHED, 'own["score"] - LEVEL >= row["score"]', f"You subtract the {LEVEL} points "
             "from the model's score instead of adding them: only clearly weaker models are in "
             "your result."),
        Edit(REACHED, 'own["score"] <= row["score"] + LEVEL', "Your result has the models that "
             "score more, instead of those that the model reaches."),
        Edit(REACHED, 'own["score"] < row["score"] - LEVEL', "Your result has the models that "
             f"score more by over {LEVEL} points: those that the model does not reach."),
    ),
)  # fmt: skip
