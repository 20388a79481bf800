"""Exercise 03.7: how many weights fine-tuning adds. H: width, n: classes, kinds or grades."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from course_lib.config import BertConfig, published
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Number


def new_weights(task: str, H: int, n: int | None) -> int:
    """Weights and biases of the layer on top, H numbers a token to its logits (section 4)."""
    classes = n or 0  # of a text, or of a pair, read from the same vector of [CLS]
    logits = {
        "classify": classes,
        "pair": classes,
        "rate": 1,  # a number
        "tag": 2 * (n or 0) + 1,  # B- and I- of each kind, and O; one layer for all tokens
        "answer": 2,  # start and end
    }[task]
    return logits * (H + 1)


def cases(*tasks: str) -> Callable[[Draw], list[Case]]:
    """Two classes, grades or kinds are among them: no case of its own."""

    def cases_of(draw: Draw) -> list[Case]:
        made: list[Case] = []
        for task in tasks:
            for n in (2, draw.integer(3, 5), draw.integer(6, 9)):
                made.append((task, draw.integer(21, 99), None if task == "answer" else n))
        return made

    return cases_of


def tags(draw: Draw) -> list[Case]:
    return [*cases("tag")(draw), ("tag", draw.integer(21, 99), 1)]


BASE = published("bert", "base", BertConfig)
BERT_BASE: dict[str, Case] = {
    "three classes of a pair": ("pair", BASE.hidden_size, 3),
    "four kinds of entities": ("tag", BASE.hidden_size, 4),
    "both ends of an answer": ("answer", BASE.hidden_size, None),
}


def how_little() -> str:
    """The answer to the question in the statement."""
    with torch.device("meta"):
        whole = count_parameters(bert("base"))
    pooler = BASE.hidden_size * (BASE.hidden_size + 1)
    counts = {name: new_weights(*case) for name, case in BERT_BASE.items()}
    parts = [f"{name} {count:,} ({count / whole:.4%})" for name, count in counts.items()]
    return (
        f"On top of BERT-base's {whole:,}: {', '.join(parts)}. All else is there before the first "
        f"labelled example. Taggers and answer finders do not even use the pooler's {pooler:,}."
    )


tag, layer = partial(Edit, "2 * (n or 0) + 1"), partial(Edit, "logits * (H + 1)")
POOLED = 'task in ("classify", "pair", "rate")'


HEADS = Exercise(
    **written("03.7"),
    solution=new_weights,
    returns=Number("number of new weights"),
    see="course_lib.heads.BertForClassification, BertForTokenClassification and "
    "BertForQuestionAnswering: what they have besides the encoder",
    when_raised=(
        (r"NoneType",
         'For "answer" n is None: whatever the passage, an answer has two ends. (A dictionary '
         "computes all of its values, also those of tasks that are not asked for.)"),
    ),
    stages=(
        Stage("classes of a text", cases("classify")),
        Stage("a pair, and a number", cases("pair", "rate")),
        Stage("tags", tags),
        Stage("the ends of an answer", cases("answer")),
        Stage("all five", cases("classify", "pair", "rate", "tag", "answer")),
        Stage("BERT-base", lambda draw: list(BERT_BASE.values()), remark=how_little),
    ),
    mistakes=(
        layer("logits * H", "The biases are missing, one for each logit. (The paper writes a K × H "
              "matrix; the released code, and this course, have biases.)"),
        layer("logits * 2 * H", "H biases a logit were counted; a logit has one."),
        layer("logits * H + 1", "One bias was counted for the whole layer; each logit has its "
              "own."),
        layer("logits * H + H", "H biases were counted. The layer adds a bias to what it gives, "
              "one for each logit, not to what it reads."),
        layer("logits", "Only the logits were counted; each has H weights and a bias."),
        layer("logits * 769", "H has no effect: you count with 768. The width is given."),
        layer(f"logits * (H + 1) + (H * H + H) * ({POOLED})", "The pooler was counted, H² + H. It "
              "is not new: next-sentence prediction trained it."),
        layer("logits * (H + 1) + H * H + H",
              "The pooler was counted, H² + H. It is not new, since next-sentence prediction "
              "trained it; and taggers and answer finders do not even read it."),
        layer(f"logits * (H + 1) + H * H * ({POOLED})", "An H × H matrix was counted besides. The "
              "pooler is not new: next-sentence prediction trained it."),
        layer('logits * ((1 + (task == "pair")) * H + 1)',
              "A pair was counted with two vectors of width H. Both texts go through BERT in one "
              "sequence, and only the vector of [CLS] is read: as for one text."),
        layer('logits * ((1 + (task in ("pair", "rate"))) * H + 1)',
              "Two texts were counted with two vectors of width H. Both go through BERT in one "
              "sequence, and only the vector of [CLS] is read: as for one text."),
        layer("4 * logits * (H + 1)", "You counted bytes, four a weight; count weights."),
        layer("12 * logits * (H + 1)", "A layer on top of each of twelve blocks was counted. Only "
              "the last one's output is read."),
        Edit("classes = n or 0", "classes = (n or 0) - 1", "One logit less than classes was "
             "counted. n − 1 would be enough, but BERT has a logit for each class, even where "
             "there are two."),
        Edit("classes = n or 0", "classes = 1 if n == 2 else n or 0", "Two classes were "
             "counted with one logit (for a sigmoid). BERT has a logit for each class, also where "
             "there are two."),
        Edit("classes = n or 0", "classes = 1", "A class was counted with a single logit. Each "
             "of the n classes has its own."),
        Edit('"pair": classes', '"pair": 2', "A pair was counted with two logits, as next-sentence "
             "prediction has. Here there are n classes."),
        Edit('"rate": 1', '"rate": n or 0', "A grade was counted with a logit for each possible "
             "value. It is a number on a line: one output, which may fall between two grades."),
        Edit('"rate": 1', '"rate": 2',
             "A grade was counted with two outputs. It is a number on a line: one."),
        tag("n or 0", "Tags were counted with one logit a kind. A tag says more: B- or I- of each "
            "kind, or O, which makes 2n + 1."),
        tag("(n or 0) + 1",
            "Tags were counted with n + 1 logits. B- and I- are different tags: 2n + 1."),
        tag("2 * (n or 0)", "O is a tag, too: 2n + 1 logits, not 2n."),
        tag("3 * (n or 0)", "Three tags a kind were counted. O belongs to no kind: there is one, "
            "which makes 2n + 1."),
        tag("4 * (n or 0) + 1", "Four tags a kind were counted. BIO has two, B- and I-, and one O: "
            "2n + 1."),
        tag("2 * (n or 0) + 2", "You have one tag too many. Special tokens and padding have none: "
            "their label is −100, and the loss leaves them out. 2n + 1."),
        tag("2", "Tags were counted with two logits. Each has one logit: 2n + 1."),
        Edit('"answer": 2', '"answer": 1', "An answer was counted with one vector. It has two "
             "ends, with a vector for each: S and E."),
        Edit('"answer": 2', '"answer": 3', "An answer was counted with three vectors. No answer "
             "needs none of its own: it is scored by S and E at [CLS]."),
        Edit('"answer": 2', '"answer": 2 * H', "An answer was counted with two H × H matrices. "
             "Start and end have a *vector* each, multiplied with each token's."),
    ),
)  # fmt: skip
