"""Exercise 03.7: how many weights fine-tuning adds.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_lib.config import BertConfig, published
from course_lib.lectures.lecture_02.exercises.count import parameter_count
from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import Answer, Check, Draw, Exercise, Suspect, call

from .slips import slip_suspects

Case = tuple[str, int, int | None]  # task, H, n
Cases = Callable[[Draw], list[Case]]
TASKS = ("classify", "pair", "rate", "tag", "answer")


def new_weights(task: str, H: int, n: int | None) -> int:
    """Weights and biases of the layer on top, H numbers a token to its scores (section 4)."""
    scores = {
        "classify": n,
        "pair": n,  # read from the same vector of [CLS]
        "rate": 1,  # a number
        "tag": 2 * (n or 0) + 1,  # B- and I- of each kind, and O; one layer for all tokens
        "answer": 2,  # start and end
    }[task]
    return (scores or 0) * (H + 1)


# ---------------------------------------------------------------- known wrong answers


def _with(
    *,
    classes: Callable[[int], int] = lambda n: n,
    pair: Callable[[int], int] = lambda n: n,
    tags: Callable[[int], int] = lambda n: 2 * n + 1,
    numbers: Callable[[int], int] = lambda n: 1,
    ends: Callable[[int], int] = lambda H: 2,
    width: Callable[[int], int] = lambda H: H,
    biases: Callable[[int, int], int] = lambda scores, H: scores,
    read: Callable[[str], int] = lambda task: 1,
    plus: Callable[[str, int], int] = lambda task, H: 0,
    times: float = 1,
) -> Answer:
    """The answer with switches for going wrong: how many scores each kind of task has; read: how
    many vectors of width H enter the layer; plus: what else is counted."""

    def answer(task: str, H: int, n: int | None) -> float:
        known = n or 0
        scores = {
            "classify": classes(known), "pair": pair(known), "rate": numbers(known),
            "tag": tags(known), "answer": ends(H),
        }[task]  # fmt: skip
        H = width(H)
        return times * (scores * read(task) * H + biases(scores, H) + plus(task, H))

    return answer


POOLED = ("classify", "pair", "rate")

SLIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "no biases": (
        "The biases are missing, one for each score. (The paper writes a K × H matrix; the "
        "released code, and this course, have biases.)",
        {"biases": lambda scores, H: 0},
    ),
    "bias a weight": (
        "H biases a score were counted; a score has one.",
        {"biases": lambda scores, H: scores * H},
    ),
    "one bias": (
        "One bias was counted for the whole layer; each score has its own.",
        {"biases": lambda scores, H: 1},
    ),
    "H biases": (
        "H biases were counted. The layer adds a bias to what it gives, one for each score, not to "
        "what it reads.",
        {"biases": lambda scores, H: H},
    ),
    "768 for H": (
        "H has no effect: you count with 768. The width is given.",
        {"width": lambda H: 768},
    ),
    "pooler counted": (
        "The pooler was counted, H² + H. It is not new: next-sentence prediction trained it.",
        {"plus": lambda task, H: (H * H + H) * (task in POOLED)},
    ),
    "pooler counted everywhere": (
        "The pooler was counted, H² + H. It is not new, since next-sentence prediction trained "
        "it; and taggers and answer finders do not even read it.",
        {"plus": lambda task, H: H * H + H},
    ),
    "pooler's matrix counted": (
        "An H × H matrix was counted besides. The pooler is not new: next-sentence prediction "
        "trained it.",
        {"plus": lambda task, H: H * H * (task in POOLED)},
    ),
    "two vectors for a pair": (
        "A pair was counted with two vectors of width H. Both texts go through BERT in one row, "
        "and only the vector of [CLS] is read: as for one text.",
        {"read": lambda task: 2 if task == "pair" else 1},
    ),
    "two vectors for two texts": (
        "Two texts were counted with two vectors of width H. Both go through BERT in one row, and "
        "only the vector of [CLS] is read: as for one text.",
        {"read": lambda task: 2 if task in ("pair", "rate") else 1},
    ),
    "two scores for a pair": (
        "A pair was counted with two scores, as next-sentence prediction has. Here there are n "
        "classes.",
        {"pair": lambda n: 2},
    ),
    "a score a kind": (
        "Tags were counted with one score a kind. A tag says more: B- or I- of each kind, or O, "
        "which makes 2n + 1.",
        {"tags": lambda n: n},
    ),
    "B- and I- not told apart": (
        "Tags were counted with n + 1 scores. B- and I- are different tags: 2n + 1.",
        {"tags": lambda n: n + 1},
    ),
    "O forgotten": (
        "O is a tag, too: 2n + 1 scores, not 2n.",
        {"tags": lambda n: 2 * n},
    ),
    "E- and S- too": (
        "Four tags a kind were counted. BIO has two, B- and I-, and one O: 2n + 1.",
        {"tags": lambda n: 4 * n + 1},
    ),
    "a tag for special tokens": (
        "One tag too many. Special tokens and padding have none: their label is −100, and they "
        "are not asked. 2n + 1.",
        {"tags": lambda n: 2 * n + 2},
    ),
    "two scores for a tag": (
        "Tags were counted with two scores. A score for each tag: 2n + 1.",
        {"tags": lambda n: 2},
    ),
    "a score a grade": (
        "A grade was counted with a score for each possible value. It is a number on a line: one "
        "score, which may fall between two grades.",
        {"numbers": lambda n: n},
    ),
    "two scores for a grade": (
        "A grade was counted with two scores. It is a number on a line: one.",
        {"numbers": lambda n: 2},
    ),
    "one class less": (
        "One score less than classes was counted. One could do with n − 1, but BERT has a score "
        "for each class, also where there are two.",
        {"classes": lambda n: n - 1, "pair": lambda n: n - 1},
    ),
    "one vector for an answer": (
        "An answer was counted with one vector. It has two ends, and a vector for each: S and E.",
        {"ends": lambda H: 1},
    ),
    "null answer counted": (
        "An answer was counted with three vectors. No answer needs none of its own: it is scored "
        "by S and E at [CLS].",
        {"ends": lambda H: 3},
    ),
    "matrices for an answer": (
        "An answer was counted with two H × H matrices. Start and end have a *vector* each, "
        "multiplied with each token's.",
        {"ends": lambda H: 2 * H},
    ),
    "bytes": ("Bytes were counted, four a weight; asked for are weights.", {"times": 4}),
    "twelve layers": (
        "A layer on top of each of twelve blocks was counted. Only the last one's output is read.",
        {"times": 12},
    ),
    "millions": ("The number is in millions; give all its digits.", {"times": 1e-6}),
}

HEADS_SUSPECTS: tuple[Suspect, ...] = slip_suspects(_with, SLIPS)


# ---------------------------------------------------------------- stages


def _case(draw: Draw, task: str) -> Case:
    n = None if task == "answer" else draw.integer(3, 9)
    return task, draw.integer(21, 99), n


def _cases(*tasks: str) -> Cases:
    return lambda draw: [_case(draw, task) for task in tasks for _ in range(2)]


def _everything(draw: Draw) -> list[Case]:
    return [_case(draw, task) for task in TASKS for _ in range(4)]


BERT_BASE: tuple[tuple[str, str, int | None], ...] = (
    ("three classes of a pair", "pair", 3),
    ("four kinds of entities", "tag", 4),
    ("both ends of an answer", "answer", None),
)


def _base(_draw: Draw) -> list[Case]:
    H = published("bert", "base", BertConfig).hidden_size
    return [(task, H, n) for _, task, n in BERT_BASE]


def _ask(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        asked = cases(draw)
        tasks = {task for task, *_ in asked}
        for case in asked:
            given, right = _read(call(answer, *case)), new_weights(*case)
            if _alike(given, right):
                continue
            alike = [one for one in _everything(draw) if one[0] in tasks]
            pools = [_everything(draw), alike]
            found = name_suspect(answer, case, pools, HEADS_SUSPECTS, _same)
            task, H, n = case
            raise told(
                found, f"task={task!r}, H={H}, n={n}: you have {given:,.12g}; it is {right:,}."
            )

    return ask


def _ask_base(answer: Answer, draw: Draw) -> str:
    """As any stage, and the answer to the question that the text ends with."""
    _ask(_base)(answer, draw)
    config = published("bert", "base", BertConfig)
    whole = parameter_count(config)
    parts = [
        f"{name} {new_weights(*case):,} ({new_weights(*case) / whole:.4%})"
        for (name, *_), case in zip(BERT_BASE, _base(draw), strict=True)
    ]
    pooler = config.hidden_size * (config.hidden_size + 1)
    return (
        f"On top of BERT-base's {whole:,}: {', '.join(parts)}. All else is there before the first "
        f"labelled example. Taggers and answer finders even lay {pooler:,} aside, the pooler."
    )


def _read(x: Any) -> float:
    return one_number(x, "the number of new weights")


def _alike(mine: float, theirs: float) -> bool:
    return abs(mine - theirs) <= 1e-9 * max(1.0, abs(theirs))


def _same(mine: Any, theirs: float, _case: Case) -> bool:
    return _alike(_read(mine), theirs)


HEADS = Exercise(
    id="03.7",
    title="How little is new",
    purpose="what fine-tuning adds to a pre-trained model, in weights",
    difficulty=2,
    minutes=10,
    signature="my_new_weights(task, H, n)",
    statement=(
        "A pre-trained BERT, pooler included, gives H numbers for each token. Fine-tuning puts one "
        "linear layer on top, with a bias for each score. Return how many weights and biases are "
        'new. `task` is one of five:  \n`"classify"`: a text into n classes;  \n`"pair"`: two '
        'texts into n classes;  \n`"rate"`: how alike two texts are, on a scale of n grades, '
        'learnt as a number (regression);  \n`"tag"`: n kinds of entities in BIO tags, for every '
        'token;  \n`"answer"`: the start and the end of an answer in a passage (n is None).  \n'
        "Predict before you check: what share of BERT-base (109,482,240 weights) is it? The last "
        "stage tells you."
    ),
    hints=(
        "How many scores does the layer give at a time? Each needs H weights and a bias.",
        "A pair goes through BERT in one row, and [CLS] is read: as for one text.",
        "BIO tags: B- and I- of each kind, and O. The same layer serves every token.",
        "An answer has two scores a token, start and end; a number is one score.",
        "With H = 10: three classes 3 · 11 = 33, two kinds of entities 5 · 11 = 55, an answer 22.",
    ),
    solution=new_weights,
    see=(
        "course_lib.heads.BertForClassification, BertForTokenClassification and "
        "BertForQuestionAnswering: what they have besides the encoder"
    ),
    when_raised=(
        (
            r"NoneType",
            'For "answer" n is None: whatever the passage, an answer has two ends. (A dictionary '
            "computes all of its values, also those of tasks that are not asked for.)",
        ),
    ),
    stages=(
        Check("classes of a text", _ask(_cases("classify"))),
        Check("a pair, and a number", _ask(_cases("pair", "rate"))),
        Check("tags", _ask(_cases("tag"))),
        Check("the ends of an answer", _ask(_cases("answer"))),
        Check("all five", _ask(_everything)),
        Check("BERT-base", _ask_base),
    ),
)
