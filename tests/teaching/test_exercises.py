"""What every exercise must do, asked of all in one place; and the machinery, on a toy exercise.

An exercise's known mistakes are edits of its solution, so their test is one loop. What other hands
might write, right and wrong, stands in tests/lectures/lecture_NN/answers_NN.py:
RIGHT = {"06.1": [function, …]}, WRONG = {"06.1": [(function, "words that must be said"), …]}."""

from __future__ import annotations

import random
import re
import signal
import threading
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import load

from course_lib.config import BertConfig
from course_lib.teaching.exercises import all_exercises, check, exercise, hint, reveal
from course_lib.teaching.exercises.calling import _unchanged, shown_input
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Other, Stage, copy_of
from course_lib.teaching.exercises.machinery import all_stages, check_answer, drawn, observed
from course_lib.teaching.exercises.naming import (
    ANY_LIST,
    ANY_NUMBER,
    ANY_TENSOR,
    _is,
    in_sentences,
)
from course_lib.teaching.exercises.outputs import Exact, Items, Number, Numbers, Table, Wrong, alike
from course_lib.teaching.exercises.report import Report, Verdict
from course_lib.teaching.exercises.shared_mistakes import shared_mistakes

EXERCISES = all_exercises()
KNOWN = [(id, n) for id, exercise in EXERCISES.items() for n in range(len(exercise.mistakes))]
SEEDS = (0, 1, 2)
# Inputs that do not change the result: that they do not is what the exercise shows.
NO_MATTER = ("05.6 sharing", "14.5 chunk")
torch.set_num_threads(1)  # the tensors are tiny
NAN = float("nan")

BY_HAND = [
    load(file) for file in sorted(Path(__file__).parent.parent.glob("lectures/*/answers_*.py"))
]
RIGHT = [(id, f) for m in BY_HAND for id, answers in m.RIGHT.items() for f in answers]
WRONG = [
    (id, f, message) for m in BY_HAND for id, answers in m.WRONG.items() for f, message in answers
]


# ---------------------------------------------------------------- what every exercise must do


@pytest.fixture(autouse=True)
def _time_for_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is named must not depend on how quick or busy a machine is."""
    monkeypatch.setattr("course_lib.teaching.exercises.naming.PAIRS_SECONDS", 60.0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("id", EXERCISES)
def test_the_solution_passes(id: str, seed: int) -> None:
    assert check_answer(EXERCISES[id], EXERCISES[id].solution, seed).status == "passed"


@pytest.mark.parametrize(("id", "n"), KNOWN)
def test_each_known_mistake_is_found_and_named(id: str, n: int) -> None:
    exercise, known = EXERCISES[id], EXERCISES[id].mistakes[n]
    seconds = 0.5 if known.endless else 10.0
    seed = SEEDS[list(EXERCISES).index(id) % 3]  # one an exercise: what is played once is kept
    report = check_answer(exercise, exercise.with_mistakes(known), seed, seconds=seconds)
    assert report.status != "passed"
    assert report.mistake == "never ends" if known.endless else known.say in report.message


@pytest.mark.parametrize("id", EXERCISES)
def test_every_exercise_knows_mistakes_and_has_hints(id: str) -> None:
    exercise = EXERCISES[id]
    assert len(exercise.mistakes) >= 4 and len(exercise.hints) >= 2
    assert all(a.say != b.say for a, b in combinations(exercise.mistakes, 2))
    assert 1 <= exercise.difficulty <= 5 and exercise.minutes > 0 and exercise.purpose
    assert len({stage.name for stage in all_stages(exercise)}) == len(all_stages(exercise))


@pytest.mark.parametrize("id", [id for id, found in EXERCISES.items() if found.gradient])
def test_what_a_gradient_must_reach_is_said(id: str) -> None:
    text = EXERCISES[id].statement
    said = r"[Gg]radients? (must|can|may|reach)|with its gradient|carries a gradient"
    assert re.search(said, text), text


@pytest.mark.parametrize("id", EXERCISES)
def test_an_answer_that_is_always_the_same_gets_no_clever_name(id: str) -> None:
    exercise = EXERCISES[id]
    stage = exercise.stages[0]
    case = drawn(exercise.stages, 0, 0)[-1]
    result = observed(Stage("", stage.cases), exercise.solution, case)
    for constant in (lambda *inputs: result, lambda *inputs: 0, lambda *inputs: []):
        report = check_answer(exercise, constant, 1)
        assert report.status != "passed"
        assert report.mistake != "universal"
        if report.mistake == "known":  # only where the mistake itself is always the same
            assert any(k.say in report.message for k in exercise.mistakes)


@pytest.mark.parametrize(
    ("id", "message", "stage"),
    [
        ("08.1", "Your highest row is 2k", 1), ("08.2", "equation 4", 2),
        ("08.4", "over exact − 1 buckets", 1), ("08.5", "to key and value as well", 1),
        ("08.7", "`shared` has no effect", 2), ("09.1", "without an end", 0),
        ("09.2", "counted in pieces", 2), ("09.3", "always are text", 2),
        ("09.4", "names have no effect", 2), ("09.5", "lowers your loss. It should add nothing", 3),
        ("09.6", "raises no error", 1), ("10.1", "do not add up to one", 0),
        ("10.2", "run on, as in BERT", 0), ("10.2", "BERT's segments", 3),
        ("10.3", "dot products", 0), ("10.3", "is then mostly padding", 3),
        ("10.4", "has seen the test", 2), ("10.5", "You count the token table twice", 0),
        ("10.6", "*different* words", 0),
    ],
)  # fmt: skip
def test_a_mistake_is_named_where_it_first_shows(id: str, message: str, stage: int) -> None:
    (known,) = (k for k in EXERCISES[id].mistakes if message in k.say)
    report = check_answer(EXERCISES[id], EXERCISES[id].with_mistakes(known), 0)
    assert [verdict.passed for verdict in report.stages].index(False) == stage


@pytest.mark.parametrize("id", [id for id in EXERCISES if id[:2] in ("12", "13", "15", "16", "17")])
def test_the_first_hint_is_a_question_and_no_code(id: str) -> None:
    hint = EXERCISES[id].hints[0]
    assert "?" in hint and not re.search(r"\w\.\w+\(|torch|dim=|\[", hint)


def writing(function: Any) -> Any:
    """The function, but for a change of the first input that can be changed."""

    def answer(*inputs: Any) -> Any:
        result = function(*copy_of(inputs))
        for x in inputs:
            if isinstance(x, torch.Tensor) and x.numel() and not x.requires_grad:
                x.copy_(~x if x.dtype is torch.bool else x + 1)
                return result
            if isinstance(x, list) and x:
                x.append(x[0])
                return result
        return result

    return answer


@pytest.mark.parametrize("id", EXERCISES)
def test_an_answer_that_reads_a_constant_for_an_input_is_found(id: str) -> None:
    """Each plain input in turn is what it is most often: cases must bring other values as well."""
    exercise = EXERCISES[id]
    cases = [case for i in range(len(exercise.stages)) for case in drawn(exercise.stages, i, 0)]
    for place, name in enumerate(exercise.parameters):
        values = [case[place] for case in cases if len(case) > place]
        plain = [x for x in values if isinstance(x, (bool, int, float, str))]
        if not plain or f"{id} {name}" in NO_MATTER:
            continue
        usual = max(plain, key=plain.count)

        def planted(*inputs: Any, place: int = place, usual: Any = usual, **named: Any) -> Any:
            before, after = inputs[:place], inputs[place + 1 :]
            return exercise.solution(
                *(*before, usual, *after) if place < len(inputs) else inputs, **named
            )

        assert check_answer(exercise, planted, 0).status != "passed", f"{name} = {usual!r}"


@pytest.mark.parametrize("id", EXERCISES)
def test_writing_into_the_inputs_is_found(id: str) -> None:
    exercise = EXERCISES[id]
    case = drawn(exercise.stages, 0, 0)[0]
    if exercise.may_write or not any(isinstance(x, (torch.Tensor, list)) for x in case):
        pytest.skip("nothing can be written into, or it may be")
    assert check_answer(exercise, writing(exercise.solution), 0).mistake == "writes"


@pytest.mark.parametrize(("id", "answer"), RIGHT)
def test_other_right_answers_pass(id: str, answer: Any) -> None:
    for seed in SEEDS[:2]:
        report = check_answer(EXERCISES[id], answer, seed)
        assert report.status == "passed", report


@pytest.mark.parametrize(("id", "answer", "message"), WRONG)
def test_other_wrong_answers_are_told_what_is_wrong(id: str, answer: Any, message: str) -> None:
    report = check_answer(EXERCISES[id], answer, SEEDS[len(message) % 3], seconds=2.0)
    assert report.status != "passed"
    assert message in report.message, report


def raises(*inputs: Any) -> Any:
    raise IndexError("row 3 is missing")


STRANGE = {
    "raises": raises, "arguments": lambda: 1, "text": lambda *inputs: "text",
    "dict": lambda *inputs: {1: 2}, "number": 5, "object": object(),
    "empty": lambda *inputs: torch.tensor([]), "list": lambda *inputs: [(1,)],
    "nan": lambda *inputs: float("nan"), "none": lambda *inputs: print(end=""),
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("id", EXERCISES)
def test_check_never_raises(id: str, name: str, capsys: Any) -> None:
    report = check(id, STRANGE[name], seed=0)
    assert report.status in ("wrong", "error")
    assert report.message


@pytest.mark.parametrize("id", EXERCISES)
def test_a_stub_is_unanswered(id: str) -> None:
    space: dict[str, Any] = {}
    exec(EXERCISES[id].stub, space)
    assert check_answer(EXERCISES[id], space[EXERCISES[id].name], 0).status == "unanswered"
    assert check_answer(EXERCISES[id], ..., 0).status == "unanswered"


@pytest.mark.parametrize("id", EXERCISES)
def test_hints_come_one_rung_at_a_time(id: str, capsys: Any) -> None:
    rungs = EXERCISES[id].hints
    hints = [hint(id, restart=True).text, *(hint(id).text for _ in rungs[1:])]
    assert hints == list(rungs)
    assert "reveal" in hint(id).text
    assert hint(id, restart=True).text == rungs[0]


@pytest.mark.parametrize("id", EXERCISES)
def test_reveal_shows_a_function(id: str, capsys: Any) -> None:
    note = reveal(id)
    assert "def " in note.text
    for place in EXERCISES[id].library:
        assert f"def {place.replace(':', '.').split('.')[-1]}(" in note.text
    if not EXERCISES[id].library:
        assert f"def {EXERCISES[id].solution.__name__}(" in note.text


@pytest.mark.parametrize("ask", [lambda id: check(id, len), hint, reveal])
@pytest.mark.parametrize("id", ["02.99", "2.99", "", 2.99, 2, True, None])
def test_an_unknown_number_lists_those_that_exist(ask: Any, id: Any, capsys: Any) -> None:
    text = repr(ask(id))
    assert repr(id) in text and "02.1" in text and "02.7" in text


@pytest.mark.parametrize("id", ["2.1", 2.1, " 02.1"])
def test_a_number_may_be_written_short(id: Any) -> None:
    assert exercise(id).id == "02.1"


# ---------------------------------------------------------------- the machinery, on a toy


@pytest.mark.parametrize(
    ("old", "new", "alike"),
    [
        ([2, 1], [1, 2], False),
        ([[1, "a"], [2, "b"]], [[1, "a"], [2, "c"]], False),
        ({"a": [1.0]}, {"a": [2.0]}, False),
        ([torch.ones(2), 1], [torch.ones(2), 2], False),
        ([torch.ones(2), 1], [torch.zeros(2), 1], False),
        ([torch.ones(1)], [torch.ones(1, dtype=torch.long)], False),
        ([torch.ones(1)], [torch.ones(1, 1)], False),
        ([1, 0], [True, 0], False),
        ([torch.tensor([NAN, 1.0]), NAN, None], [torch.tensor([NAN, 1.0]), -NAN, None], True),
        ((1, "a", {3}), (1, "a", {3}), True),
    ],
    ids=str,
)
def test_a_change_anywhere_in_an_input_is_seen(old: Any, new: Any, alike: bool) -> None:
    assert _unchanged(old, new) is alike
    assert _unchanged(old, *copy_of((old,)))


def toy(x: torch.Tensor, factor: float) -> torch.Tensor:
    scaled = x * factor
    shifted = scaled + 1
    return shifted - shifted.mean(-1, keepdim=True) * 0.5


def toy_cases(draw: Draw) -> list[Case]:
    return [(draw.normal(2, n), draw.integer(2, 9) + 0.5) for n in (2, 3, 4)]


TOY = Exercise(
    id="99.1", title="A toy", purpose="to test", difficulty=1, minutes=1,
    signature="my_toy(x, factor)", statement="Return it.", hints=("a", "b"),
    solution=toy, returns=Numbers("result", shape="N T"), stages=(Stage("cases", toy_cases),),
    mistakes=(
        Edit("x * factor", "x / factor", "Divided."),
        Edit("scaled + 1", "scaled - 1", "One taken off."),
        Edit("* 0.5", "", "The whole mean."),
        Edit("scaled + 1", "scaled + 2 - 3", "One less is too little."),
    ),
    gradient=("x",),
)  # fmt: skip


def missing_key(x: torch.Tensor, f: float) -> Any:
    return {"a": 1}["b"]


def toy_with(function: Any, **changes: Any) -> Report:
    return check_answer(replace(TOY, **changes), function, 0)


EITHER = (
    "Your function has one of these mistakes:\n(1) One taken off.\n(2) One less is too little.\n"
)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([("A.",)], "A."),
        ([("A.",), ("B.",)], "Your function has one of these mistakes:\n(1) A.\n(2) B."),
        ([("A.", "B.")], "Your function has two mistakes:\n(1) A.\n(2) B."),
        ([("A.", "B."), ("C.", "A.")],
         "A.\nYour function has a second mistake, one of these:\n(1) B.\n(2) C."),
        ([("A.", "B."), ("C.", "D.")],
         "Your function has two mistakes, one of these pairs:\n(1) A. B.\n(2) C. D."),
    ],
)  # fmt: skip
def test_several_mistakes_are_whole_sentences(names: Any, text: str) -> None:
    assert in_sentences(names) == text


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("loss", "loss is"), ("bias", "bias is"), ("list of spans", "list of spans is"),
        ("ids at positions", "ids at positions are"), ("total weights", "total weights are"),
        ("BERT's FLOPs", "BERT's FLOPs are"), ("number of rows", "number of rows is"),
    ],
)  # fmt: skip
def test_a_name_has_its_verb(name: str, sentence: str) -> None:
    assert _is(name) == sentence


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x, f: -toy(x, f), "is of the opposite sign"),
        (lambda x, f: 100 * toy(x, f), "in percent"),
        (lambda x, f: toy(x, f).flip(0), "reverse order"),
        (lambda x, f: toy(x, f).round(decimals=2), "rounded to two decimals"),
        (lambda x, f: toy(x, f).T, "rows and columns are exchanged"),
        (lambda x, f: toy(x, f)[None], "one axis too many"),
        (lambda x, f: toy(x, f)[..., None].expand(-1, -1, 3), "the mean over axis -1"),
        (lambda x, f: toy(x, 1 / f), "Divided."),
        (lambda x, f: x / f - 1 - (x / f - 1).mean(-1, keepdim=True) / 2, "a second mistake"),
        (lambda x, f: list(toy(x, 1 / f)), "Divided."),
        (lambda x, f: torch.ones(2, 2), "the same for all inputs"),
        (lambda x, f: "text", "expected a tensor of shape (2, 2), that is (N, T)"),
        (lambda x, f: toy(x, f).detach(), "carries no gradient"),
        # Right values, a wrong slope: the last stage sees it.
        (lambda x, f: toy(x, f) + (x - x.detach()), "Gradient of `x`"),
        (lambda x, f: toy(x, f) + 1e-5 * x, "you have"),
        (TOY.with_mistakes(TOY.mistakes[1]), EITHER),
        (lambda x: x, "my_toy(x, factor)"),
        (3.5, "without parentheses"),
        (missing_key, "A dictionary has no entry 'b': `.get('b')` gives None"),
        (lambda x, f: print(end=""), "returned None for [["),
    ],
)  # fmt: skip
def test_what_any_number_can_suffer(answer: Any, message: str) -> None:
    assert message in toy_with(answer).message


def positive(x: torch.Tensor, factor: float) -> torch.Tensor:
    return (x.abs() + 0.3) * factor


ANY = [pair for pair in (*ANY_NUMBER, *ANY_TENSOR) if "True" not in pair[0]]


@pytest.mark.parametrize(("message", "change"), ANY, ids=[name for name, _ in ANY])
def test_each_of_these_has_its_name(message: str, change: Any) -> None:
    stages = (Stage("square", lambda draw: [(draw.normal(n, n), 1.5 + n) for n in (3, 4, 5)]),)
    changes = {"solution": positive, "stages": stages, "mistakes": (), "gradient": ()}
    assert message in toy_with(lambda x, f: change(positive(x, f)), **changes).message


@pytest.mark.parametrize(("message", "change"), ANY_LIST, ids=[name for name, _ in ANY_LIST])
def test_each_of_these_has_its_name_in_a_list(message: str, change: Any) -> None:
    numbers = ([4, 4, 1, 7], [9, 2, 5, 2], [3, 8, 8, 6, 1])
    stages = (Stage("lists", lambda draw: [(x, 1.0) for x in numbers]),)
    changes = {"solution": lambda x, f: list(x), "stages": stages, "returns": Items("list")}
    changes |= {"mistakes": (), "gradient": ()}
    assert message in toy_with(lambda x, f: change(x), **changes).message


def bigger_twice(x: torch.Tensor, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
    bigger = x + 1
    return bigger * factor, bigger.sum(-1)


def first_and_one_more(x: torch.Tensor, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
    first = x * factor
    return first, first + 1


def scaled_sum(x: torch.Tensor, factor: float) -> float:
    scale = 3.0 if factor > 100 else 1.0
    return float(x.sum() * scale)


@torch.no_grad()
def decorated(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * float(factor)


def all_small(function: Any, *case: Any) -> bool:
    return bool((function(*case) < 1e3).all())


BIGGER = {
    "solution": bigger_twice,
    "returns": (Numbers("product", shape="N T"), Numbers("sum", shape="N")),
    "mistakes": (
        Edit("x + 1", "x - 1", "Both."),
        Edit("bigger * factor", "(x - 1) * factor", "One."),
    ),
}
IN_ALL_OR_ONE = {
    "solution": first_and_one_more,
    "returns": (Numbers("first"), Numbers("second")),
    "mistakes": (
        Edit("x * factor", "x * factor + 1", "One too many in both."),
        Edit("first + 1", "first + 2", "One too many in the second."),
    ),
}
IN_TWO_STAGES = {
    "solution": scaled_sum,
    "returns": Number("sum"),
    "stages": (
        Stage("small", toy_cases, lambda f, x, factor: float(f(x, factor)), Number("small")),
        Stage("large", lambda draw: [(draw.normal(2, 3), 200.0)]),
    ),
    "mistakes": (
        Edit("3.0", "1.0", "Always one."),
        Edit("3.0 if factor > 100 else 1.0", "factor / 200", "A fraction."),
    ),
}
LATER_ALONE = IN_TWO_STAGES | {
    "stages": (
        Stage("small", toy_cases),
        Stage("large", lambda draw: [(draw.normal(2, 3), 200.0)]),
    ),
    "mistakes": (Edit("3.0 if factor > 100 else 1.0", "factor / 200", "A fraction."),),
}  # its mistake fails "small", which the answer passes


def one_number(draw: Draw) -> list[Case]:
    return [(draw.normal(2, 3), float(draw.integer(2, 10**6)))]


ONCE = one_number(Draw(0))[0][1]  # of the seed that `toy_with` gives
FIRST_DRAW = {
    "solution": lambda x, factor: x * factor,
    "stages": (Stage("cases", one_number),),
    "mistakes": (Other(lambda x, factor: x + factor, "Added."),),
}
IN_THE_LAST_STAGE = {
    "stages": (
        *TOY.stages,
        Stage("size", lambda draw: [(draw.normal(2, n), 100.0) for n in (2, 3)], all_small,
              Exact("all small")),
    ),
    "mistakes": (
        Edit("x * factor", "x * factor + 1e4", "Always."),
        Edit("x * factor", "x * factor + 1e4 * (factor > 50)", "Above 50."),
    ),
}  # fmt: skip
NOT_ALONE = {
    "mistakes": (
        Edit("scaled = x * factor", "x = scaled = x * factor", "Not seen alone."),
        Edit("scaled + 1", "x * factor + 1", "Nor is this."),
    ),
}
DECORATED = {"solution": decorated, "mistakes": (Edit("x * float", "x / float", "Divided."),)}
YES = {
    "stages": (
        Stage("yes", toy_cases, lambda function, *case: bool(function(*case).sum() > -1e9),
              Exact("positive sum")),
    ),
}  # fmt: skip
ZERO = {
    "stages": (Stage("zero", lambda draw: [(torch.zeros(2, 3), 2.0)]),),
    "solution": lambda x, f: x * f,
    "mistakes": (),
}
FUNCTIONS = {
    "stages": (Stage("cases", lambda draw: [([abs, abs], 2.0), ([abs], 3.0)]),),
    "solution": lambda fs, f: f,
    "returns": Number("x"),
    "mistakes": (),
}
ADDED = {"mistakes": (Other(lambda x, factor: x + factor, "Added."),)}


@pytest.mark.parametrize(
    ("changes", "answer", "named", "unnamed"),
    [
        # Of mistakes that fit one output, the one that fits the others; in all, or in one.
        (BIGGER, lambda x, f: ((x - 1) * f, (x - 1).sum(-1)), "Both.", "One."),
        (BIGGER, lambda x, f: ((x - 1) * f, (x + 1).sum(-1)), "One.", "Both."),
        (IN_ALL_OR_ONE, lambda x, f: (x * f, x * f + 2), "in the second.", "in both."),
        # None that an earlier stage, which was passed, would have found.
        (IN_TWO_STAGES, lambda x, f: x.sum(), "Always one.", "A fraction."),
        (IN_THE_LAST_STAGE, lambda x, f: toy(x, f) + 1e5 * (f > 50), "Above 50.", "Always."),
        # Nor where it is the only one that fits the last, nor of what any number can suffer.
        (LATER_ALONE, lambda x, f: x.sum(), "you have", "A fraction."),
        (LATER_ALONE, lambda x, f: x.sum() * (6.0 if f > 100 else 1.0), "you have", "doubled"),
        # None that fits the cases drawn first, and not those drawn again.
        (FIRST_DRAW, lambda x, f: x + f + (f != ONCE), "you have", "Added."),
        (FIRST_DRAW, lambda x, f: x * f * (1 + (f == ONCE)), "you have", "doubled"),
        (FIRST_DRAW, lambda x, f: x + f, "Added.", "one of these"),
        # A pair only where each of the two shows alone.
        (NOT_ALONE, lambda x, f: toy(x * f, f), "you have", "alone"),
        (DECORATED, lambda x, f: x / f, "Divided.", "one of these"),
        (ADDED, lambda x, f: f + x, "Added.", "one of these"),
        # Nothing is named of yes and no, nor where all is zero; functions are not shown.
        (YES, lambda x, f: toy(x, f) - 1e10, "Positive sum: you have False; expected True.", "too"),
        (ZERO, lambda x, f: x * f + 1, "you have", "one too large"),
        (FUNCTIONS, lambda fs, f: f + 0.123, "For factor = 3.0000: X: you have", "built-in"),
    ],
)
def test_the_mistake_that_explains_everything_is_named(
    changes: dict, answer: Any, named: str, unnamed: str
) -> None:
    message = toy_with(answer, **{"gradient": (), **changes}).message
    assert named in message and unnamed not in message, message


def test_a_difference_in_the_seventh_digit_is_shown() -> None:
    message = toy_with(lambda x, f: toy(x, f) * (1 + 3e-6)).message
    actual, right = message.split("you have ")[1].split("; expected ")
    assert actual.strip() != right.strip(". ")


def test_the_difference_of_two_whole_numbers_is_told() -> None:
    assert Number("n", kind="int").difference(7, 5) == "you have 7; expected 5 (2 too many)."


@dataclass
class Said:
    """What a network said: the last of its states is there under two names."""

    last: torch.Tensor
    states: tuple[torch.Tensor, ...]


def apart(student: Said, teacher: Said) -> tuple[torch.Tensor, torch.Tensor]:
    return student.last.square().sum(), (student.states[0] * teacher.last.detach()).sum()


def changed_too_early(x: torch.Tensor) -> torch.Tensor:
    copy = x.clone()
    result = copy.square().sum()
    copy += 1
    return result


def two_that_said(draw: Draw) -> list[Case]:
    states = [(draw.normal(3), draw.normal(3)) for _ in range(2)]
    return [tuple(Said(x[-1], x) for x in states)]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda s, t: (s.states[-1].pow(2).sum(), apart(s, t)[1]), ""),
        (lambda s, t: (apart(s, t)[0], apart(s, t)[1].item()), "Your second carries no gradient"),
        (lambda s, t: (apart(s, t)[0], (s.states[0] * t.last).sum()),
         "flows into `teacher.states`, but none should"),
        (lambda s, t: (apart(s, t)[0] + (s.states[0] - s.states[0].detach()).sum(),
                       apart(s, t)[1]), "gradient of `student.states`:"),
        (lambda s, t: s.last.zero_(), "writes into `student`"),
        (lambda s, t: (t.last.detach_(), apart(s, t))[1], "changes `teacher.states` in place"),
        (lambda s, t: (s.last.requires_grad_(False), apart(s, t))[1], "`student.states` in place"),
        (lambda s, t: (changed_too_early(s.last), apart(s, t)[1]), "changed in place ("),
        (lambda s, t: (apart(s, t)[0], 7.0), "Second: you have"),
    ],
)  # fmt: skip
def test_gradients_are_followed_into_the_fields_of_an_input(answer: Any, message: str) -> None:
    report = toy_with(
        answer, signature="my_toy(student, teacher)", solution=apart, mistakes=(),
        returns=(Number("first"), Number("second")), stages=(Stage("cases", two_that_said),),
        gradient=("student.states",),
    )  # fmt: skip
    assert report.status == "passed" if not message else message.lower() in report.message.lower()


def test_a_stage_can_look_at_some_of_the_outputs_only() -> None:
    stages = (Stage("one", two_that_said, only=("first",)), Stage("all", two_that_said))
    report = toy_with(
        lambda s, t: (apart(s, t)[0], 0.5), signature="my_toy(student, teacher)", solution=apart,
        mistakes=(), returns=(Number("first"), Number("second")), stages=stages, gradient=(),
    )  # fmt: skip
    assert [stage.passed for stage in report.stages] == [True, False]


def square(draw: Draw) -> list[Case]:
    return [(draw.normal(2, 2), 3.5)]


@pytest.mark.parametrize("rows", [1, 2])
def test_one_tensor_is_several_results_only_row_by_row(rows: int) -> None:
    outs = tuple(Numbers(name) for name in ("product", "same")[:rows] + ("sum",)[rows - 1 :])
    both = [lambda x, f: (x * f, x.sum(-1)), lambda x, f: (x * f, x * f)][rows - 1]
    answer = [lambda x, f: x * f, lambda x, f: torch.stack([x * f, x * f])][rows - 1]
    report = toy_with(answer, solution=both, returns=outs, stages=(Stage("square", square),),
                      mistakes=(), gradient=())  # fmt: skip
    assert report.status == "passed" if rows == 2 else "expected 2: product, sum" in report.message


def test_too_few_results_can_have_a_name() -> None:
    both = {"solution": bigger_twice, "returns": BIGGER["returns"], "gradient": ()}
    alone = Edit(", bigger.sum(-1)", "", "The product alone.")
    report = toy_with(lambda x, f: (x + 1) * f, **both, mistakes=(alone,))
    assert "The product alone.\nYour function returned" in report.message
    assert "alone" not in toy_with(lambda x, f: x * f, **both, mistakes=(alone,)).message


def test_a_table_that_differs_is_told_where() -> None:
    table = Table("table")
    assert "at 'b' you have 3.0000; expected 2.0000" in table.difference(
        {"a": 1.0, "b": 3.0}, {"a": 1.0, "b": 2.0}
    )
    assert "'c' should not be in it; 'b' is missing" in table.difference({"c": 1.0}, {"b": 2.0})


def weighed(x: torch.Tensor, mask: torch.Tensor, scale: float, start: int) -> torch.Tensor:
    weights = (x.abs() / scale).masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return start + (weights * x).sum(dim=1)


def weighed_cases(draw: Draw) -> list[Case]:
    masks = [torch.tensor([[1, 1, 0], [0, 1, 1]]).bool(), torch.tensor([[1, 0, 1, 1]] * 3).bool()]
    numbers = [(draw.integer(2, 4) + 0.5, draw.integer(2, 5)) for _ in masks]
    return [(draw.normal(*mask.shape), mask, *n) for mask, n in zip(masks, numbers, strict=True)]


def by_parts(
    x: torch.Tensor, mask: torch.Tensor, scale: float, start: int, *, dim: int = -1,
    magnitude: Any = lambda x: x.abs(), reduced: Any = lambda x: x.sum(1), hidden: Any = None,
) -> torch.Tensor:  # fmt: skip
    """`weighed` as another hand writes it, with places for mistakes."""
    scores = torch.where(mask if hidden is None else hidden(mask), magnitude(x) / scale, -torch.inf)
    return reduced(scores.softmax(dim) * x) + start


WEIGHED = {
    "solution": weighed, "signature": "my_toy(scores, mask, temperature, start)", "gradient": (),
    "returns": Numbers("output", shape="N"), "stages": (Stage("cases", weighed_cases),),
    "mistakes": (), "axes": {"-1": "the keys", "0": "the queries"},
    "terms": {"weights * scores": "the weighted values"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 0}, "runs over the queries (dim=0); expected over the keys (dim=-1)."),
        ({"reduced": lambda x: x.mean(1)}, "the mean of the weighted values; expected the sum."),
        ({"magnitude": lambda x: x}, "`scores` has kept its sign: take its absolute value."),
        ({"hidden": lambda m: ~m}, "True and False of `mask` are exchanged."),
        ({"hidden": torch.ones_like}, "`mask` has no effect. `scores.abs() / temperature` is not"),
        ({"scale": lambda s: 1}, "`temperature` has no effect. `scores.abs()` is not divided by"),
        ({"scale": lambda s: 1 / s}, "`scores.abs()` is multiplied by `temperature`; divide."),
        ({"scale": lambda s: s * s}, "is divided by the square of `temperature`."),
        ({"start": lambda s: 0}, "`start` has no effect. You left out `start`."),
        ({"magnitude": lambda x: x.abs().floor()}, "Output: at [] you have"),  # no name at all
    ],
)
def test_mistakes_that_any_exercise_can_have_are_made_from_its_solution(
    change: dict[str, Any], message: str
) -> None:
    def answer(x: Any, mask: Any, scale: float, start: int) -> Any:
        scale, start = change.get("scale", float)(scale), change.get("start", int)(start)
        more = {k: v for k, v in change.items() if k not in ("scale", "start")}
        return by_parts(x, mask, scale, start, **more)

    assert message.removeprefix("Output: at [] ") in toy_with(answer, **WEIGHED).message


def test_a_mistake_of_the_exercises_own_comes_before_a_shared_one() -> None:
    own = Edit("/ scale", "* scale", "In the exercise's own words.")
    answer = Exercise.with_mistakes(replace(TOY, **WEIGHED), own)
    message = toy_with(answer, **(WEIGHED | {"mistakes": (own,)})).message
    assert own.say in message and "divide." not in message


@pytest.mark.parametrize("id", EXERCISES)
def test_shared_mistakes_are_edits_of_the_solution(id: str) -> None:
    shared = shared_mistakes(EXERCISES[id])
    assert all(EXERCISES[id].with_mistakes(edit) for edit in shared)
    assert not any("while" in edit.old and edit.new.count("while") == 0 for edit in shared)
    assert not shared or len({edit.say for edit in shared}) > len(shared) / 3


def test_a_stale_edit_is_an_error() -> None:
    with pytest.raises(ValueError, match="stands 0 times"):
        TOY.with_mistakes(Edit("not there", "", "Stale."))


def test_a_forbidden_function_is_found_under_any_name() -> None:
    hidden = torch.nn.functional.scaled_dot_product_attention

    def answer(x: torch.Tensor, f: float) -> torch.Tensor:
        hidden(x[None], x[None], x[None])
        return toy(x, f)

    report = toy_with(answer, forbidden={"scaled_dot_product_attention": "Write it out."})
    assert report.mistake == "forbidden" and "Write it out." in report.message


ONES = torch.ones
FAMILIES = {
    "15.2": (
        lambda: torch.nn.functional.conv1d(ONES(1, 2, 4), ONES(1, 2, 2)),
        lambda: torch.nn.functional.conv3d(ONES(1, 1, 2, 4, 4), ONES(1, 1, 2, 2, 2)),
        lambda: torch.nn.Conv1d(2, 1, 2)(ONES(1, 2, 4)),
        lambda: torch.conv_transpose2d(ONES(1, 1, 4, 4), ONES(1, 1, 2, 2)),
    ),
    "01.5": (
        lambda: torch.nn.MultiheadAttention(2, 1)(*[ONES(3, 1, 2)] * 3),
        lambda: torch.nn.functional.scaled_dot_product_attention(*[ONES(1, 3, 2)] * 3),
    ),
    "11.4": (
        lambda: torch.nn.CrossEntropyLoss()(ONES(4, 2), ONES(4).long()),
        lambda: torch.nn.NLLLoss()(ONES(4, 2), ONES(4).long()),
    ),
    "13.3": (
        lambda: torch.randn(2), lambda: ONES(3).random_(2), lambda: random.choices([1, 2]),
        lambda: torch.randperm(2), lambda: random.sample([1, 2], 1),
        lambda: torch.bernoulli(ONES(2)), lambda: ONES(2).multinomial(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("id", "call"), [(id, call) for id in FAMILIES for call in FAMILIES[id]])
def test_the_whole_family_of_a_forbidden_function_is_found(id: str, call: Any) -> None:
    exercise = EXERCISES[id]

    def answer(*inputs: Any) -> Any:
        call()
        return exercise.solution(*inputs)

    assert check_answer(exercise, answer, 0).mistake == "forbidden"
    assert check_answer(exercise, exercise.solution, 0).status == "passed"


@pytest.mark.parametrize(
    ("out", "right", "good", "bad"),
    [
        (Numbers("x", shape="N"), torch.tensor([1.0, 2.0]), [[1.0, 2.0], (1, 2)], ["ab", None, 3]),
        (Numbers("x", kind="int"), torch.tensor([1, 2]), [[1, 2]], [[1.0, 2.0], {1, 2}]),
        (Numbers("x", kind="bool"), torch.tensor([True, False]), [[1, 0]], [[2, 3], [0.5, 1]]),
        (Numbers("x", grad=True), torch.tensor([1.0]), [torch.ones(1, requires_grad=True)],
         [[1.0], torch.ones(1)]),
        (Numbers("x", shape="N"), torch.tensor([0.5, 2.0]),
         [[Fraction(1, 2), 2], [np.float64(0.5), torch.tensor(2)], (Decimal("0.5"), 2.0)], []),
        (Number("x"), 2.5, [2.5, torch.tensor([2.5]), torch.tensor(2.5), np.float32(2.5),
                            np.array([2.5]), Fraction(5, 2), Decimal("2.5")],
         [True, np.bool_(True), "2.5", [2.5], 2.5j]),
        (Number("x", kind="int"), 3, [3, torch.tensor(3), np.int16(3), 3.0, np.float64(3),
                                      torch.tensor([3.0]), Fraction(3)],
         [3.5, Fraction(7, 2), NAN, True, "3"]),
        (Items("x", of="positions"), [1, 2], [[1, 2], (1, 2), torch.tensor([1, 2])],
         [[1.0, 2.0], {1, 2}, "12", 5]),
        (Items("x", of="counts"), [1, 2], [[np.int64(1), Fraction(2)]], [[Fraction(1, 2), 2]]),
        (Items("x", ordered=False), [(1, 2)], [{(1, 2)}, [[1, 2]]], ["12"]),
        (Items("x", groups=True), [[1, 2]], [[[2, 1]], ({2, 1},), torch.tensor([[2, 1]])], [[1]]),
        (Table("x"), {"a": 1.0}, [{"a": torch.tensor(1.0)}, {"a": Fraction(1)}], [[("a", 1)], 3]),
    ],
)  # fmt: skip
def test_what_is_as_good_is_taken_and_nothing_else(
    out: Any, right: Any, good: Any, bad: Any
) -> None:
    for x in good:
        assert out.same(out.read(x, right), right)
    for x in bad:
        with pytest.raises(Wrong, match=r"expected|gradient"):
            out.read(x, right)


def test_a_count_is_right_or_wrong_however_large() -> None:
    assert not Number("n", kind="int").same(85_798_657, 85_798_656)


def test_the_numbers_of_a_list_keep_their_digits() -> None:
    x = torch.tensor([[1 / 3, 0.1]], dtype=torch.float64)
    assert torch.equal(Numbers("x").read(x.tolist(), x), x)


def test_values_agree_within_the_tolerance_and_not_beyond() -> None:
    assert alike(torch.tensor([1.0, torch.inf]), torch.tensor([1.0, torch.inf]))
    assert alike(1.0 + 5e-7, 1.0) and not alike(1.0 + 5e-6, 1.0)
    assert alike(3e11 + 1, 3e11 + 1, 1e-12) and not alike(3e11 + 1, 3e11, 1e-12)
    assert not alike(float("nan"), 1.0) and not alike([1, 2], [1, 2, 3])
    assert not alike(torch.zeros(0), torch.zeros(1)) and alike({"a": [1]}, {"a": (1.0,)})
    assert Exact("x").same("a", "a") and not Exact("x").same(None, "a")


def test_two_results_in_the_wrong_order_are_told_so() -> None:
    def both(x: torch.Tensor, factor: float) -> tuple[float, torch.Tensor]:
        return float(x.sum()), x * factor

    outs = (Number("sum"), Numbers("product", shape="N T"))
    changes = {"solution": both, "returns": outs, "mistakes": (), "gradient": ()}
    report = toy_with(lambda x, f: both(x, f)[::-1], **changes)
    assert "exchanged: return sum first, then product" in report.message
    assert "expected 2: sum, product" in toy_with(lambda x, f: 1.0, **changes).message

    def coarse(x: torch.Tensor, factor: float) -> tuple[torch.Tensor, float]:
        return x * factor + 1e-5, float(x.sum()) + 1e-5

    changes["returns"] = (Number("sum", tol=1e-3), Numbers("product", shape="N T", tol=1e-3))
    assert "exchanged" in toy_with(coarse, **changes).message


def test_an_exception_is_reported_with_the_students_own_line() -> None:
    report = toy_with(raises)
    assert report.status == "error"
    assert "IndexError: row 3 is missing" in report.message
    assert 'raise IndexError("row 3 is missing")' in report.message
    assert "factor = " in report.message


def test_a_configuration_is_shown_by_what_it_sets() -> None:
    config = BertConfig(hidden_size=8, num_heads=2)
    assert shown_input(config) == "BertConfig(hidden_size=8, num_heads=2)"


def test_the_seed_in_a_report_draws_the_same_inputs() -> None:
    def wrong(x: torch.Tensor, f: float) -> torch.Tensor:
        return x * 0.123

    report = check_answer(TOY, wrong)
    seed = int(report.again.split("seed=")[1].split(")")[0])
    assert check_answer(TOY, wrong, seed).message == report.message
    assert check_answer(TOY, wrong, seed + 1).message != report.message
    assert len({check_answer(TOY, wrong).message for _ in range(4)}) > 1


def test_the_readers_own_random_numbers_are_left_alone() -> None:
    random.seed(5), torch.manual_seed(5)
    expected = random.random(), torch.rand(1).item()
    random.seed(5), torch.manual_seed(5)
    toy_with(lambda x, f: torch.rand(2, 2))
    assert (random.random(), torch.rand(1).item()) == expected


# ---------------------------------------------------------------- loops without end

needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers")


def endless(x: Any, factor: float) -> Any:
    try:
        while True:
            pass
    except Exception:
        return 1


@needs_timers
def test_a_loop_without_end_is_stopped_and_its_input_shown() -> None:
    report = check_answer(TOY, endless, 0, seconds=0.2)
    assert report.status == "wrong" and report.mistake == "never ends"
    assert "within 0.2 seconds of computing" in report.message
    assert "It was given: [[" in report.message


@needs_timers
def test_the_alarms_found_before_are_put_back() -> None:
    def handler(number: int, frame: Any) -> None:
        raise AssertionError("too early")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 500)
        for answer in (endless, toy, raises):
            check_answer(TOY, answer, 0, seconds=0.5)
            assert signal.getsignal(signal.SIGALRM) is handler
            assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 500
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_outside_the_main_thread_there_is_no_limit() -> None:
    reports = []
    thread = threading.Thread(
        target=lambda: reports.append(check_answer(TOY, toy, 0, seconds=1e-9))
    )
    thread.start()
    thread.join()
    assert reports[0].status == "passed"


# ---------------------------------------------------------------- reports


def test_a_report_says_in_words_what_colour_says() -> None:
    stages = [Verdict("shape", True), Verdict("values", False, "1 < 2 & so on"), Verdict("z", None)]
    report = Report("02.9 x", stages, again="seed 5")
    for text in (repr(report), report._repr_html_()):
        for word in ("not yet", "passed", "stopped here", "not reached", "seed 5"):
            assert word in text
    assert "1 &lt; 2 &amp; so on" in report._repr_html_()


def test_check_shows_and_returns(capsys: Any) -> None:
    report = check("06.1", EXERCISES["06.1"].solution, seed=0)
    assert report.status == "passed"
    assert "06.1 A softer answer: passed" in capsys.readouterr().out
