"""How exercises are checked: stages, simple to hard, on fresh inputs, until one names a mistake.

An exercise is a list of stages. A stage calls the answer on inputs it draws and raises `Mistake`
when the result cannot be right; where it returns, the stage is passed. To name a mistake, a stage
compares the result with what known wrong answers (`Suspect`) give on the same inputs.
"""

from __future__ import annotations

import copy
import dis
import math
import random
import re
import secrets
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from .report import Note, Report, Stage

Answer = Callable[..., Any]
SECONDS_A_STAGE = 10.0


class Mistake(Exception):
    """The answer is wrong, and this is how. key: a short name, empty where nobody foresaw it."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key
        self.message = message


class Unanswered(Exception):
    """The stub's `...` is still there."""


class AnswerRaised(Exception):
    """The student's function raised; the original exception is the cause."""


class TookTooLong(BaseException):
    """The stage's time is over. No Exception, so that no `except Exception` takes it for one."""


class Draw:
    """Every source of fresh inputs of one stage, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.python = random.Random(seed)
        self.torch = torch.Generator().manual_seed(seed)

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return self.python.randint(low, high)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.randn(*shape, generator=self.torch, dtype=dtype)

    def ids(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers from low to high, both included, as int64."""
        return torch.randint(low, high + 1, shape, generator=self.torch)

    def generator(self) -> torch.Generator:
        """A new torch generator for the answer to draw from."""
        return torch.Generator().manual_seed(self.integer(0, 2**31))


@dataclass(frozen=True)
class Suspect:
    """A known wrong answer: what it computes, and what to say to whoever computes the same."""

    key: str
    message: str
    compute: Answer


@dataclass(frozen=True)
class Check:
    """One stage: a name for the reader, and the question.

    ask raises where the answer is wrong; a text it returns is shown beside the passed stage."""

    name: str
    ask: Callable[[Answer, Draw], str | None]


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    solution: kept here, in the exercise's own signature. library: "module:name" of the functions
    that do the same in the library; reveal shows these. see: where the library does a larger job of
    which this is a part; reveal names it below the solution. when_raised: (pattern, advice) for
    what the answer raises; the pattern is sought in "message <newline> the line it came from".
    """

    id: str
    title: str
    statement: str
    purpose: str
    difficulty: int  # 1 to 5
    minutes: int
    signature: str
    stages: Sequence[Check]
    hints: Sequence[str]
    solution: Answer
    library: tuple[str, ...] = ()
    see: str = ""
    when_raised: Sequence[tuple[str, str]] = ()

    @property
    def heading(self) -> str:
        return f"{self.id} {self.title}"

    @property
    def stub(self) -> str:
        """The lines a notebook offers to fill in."""
        return f"def {self.signature}:\n    return ...\n"

    @property
    def card(self) -> str:
        """The exercise as Markdown, the way a notebook shows it."""
        dots = "●" * self.difficulty + "○" * (5 - self.difficulty)
        effort = f"difficulty {self.difficulty} of 5 {dots} · about {self.minutes} minutes"
        facts = f"{effort} · {self.purpose}"
        return f"**Exercise {self.heading}**  \n*{facts}*\n\n{self.statement}"


# ---------------------------------------------------------------- check, hint, reveal


def check_answer(
    exercise: Exercise,
    answer: Any,
    seed: int | None = None,
    *,
    seconds: float = SECONDS_A_STAGE,
) -> Report:
    """Run the stages in order until one is not passed. Never raises for anything an answer does.

    seconds: how long one stage may take, where this can be limited at all (see _time_limit).
    """
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    same = f'check("{exercise.id}", …, seed={seed})'
    again = f"The inputs were drawn with seed {seed}: {same} draws them again."
    if _is_empty(answer):
        return _unanswered(exercise)
    if not callable(answer):
        return _not_a_function(exercise, answer)
    stages: list[Stage] = []
    for i, stage in enumerate(exercise.stages):
        with _own_randomness(seed):
            draw = Draw(seed * 1_000 + i)
            result, trouble = _ask_in_time(stage, answer, draw, exercise, seconds)
        if trouble == "unanswered":
            return _unanswered(exercise)
        stages.append(result)
        if not result.passed:
            rest = [Stage(later.name, None) for later in exercise.stages[i + 1 :]]
            return Report(exercise.heading, stages + rest, trouble, again)  # type: ignore[arg-type]
    return Report(exercise.heading, stages, again=again)


def _ask_in_time(
    stage: Check, answer: Answer, draw: Draw, exercise: Exercise, seconds: float
) -> tuple[Stage, str]:
    _last_inputs.clear()
    try:
        with _time_limit(seconds):
            return _ask(stage, answer, draw, exercise)
    except TookTooLong:
        said = (
            f"Your function did not come back within {seconds:g} seconds: does a loop in it never "
            "end? Look whether every way through the loop brings it nearer to its end."
        )
        shown = ", ".join(_shown_input(x) for x in _last_inputs)
        if shown:
            said += f"\nIt was given: {shown}."
        return Stage(stage.name, False, said, "never ends"), ""


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the block after so long; the alarm found before is put back.

    Without effect where there are no interval timers (Windows) and outside the main thread.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not in_main_thread:
        yield
        return
    running = True

    def ring(_number: int, _frame: Any) -> None:
        if running:
            raise TookTooLong

    handler = signal.signal(signal.SIGALRM, ring)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        try:
            yield
        finally:
            running = False  # an alarm from here on is late, and no longer of interest
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if timer[0]:
            signal.setitimer(signal.ITIMER_REAL, *timer)


_last_inputs: list[Any] = []  # of the call that is running, for a report on a loop without end


def _shown_input(x: Any) -> str:
    if isinstance(x, Tensor):
        return str(x.tolist()) if x.numel() <= 40 else f"a tensor of shape {tuple(x.shape)}"
    plain = isinstance(x, (str, int, float, list, tuple, dict, set))
    return _short(x, 200) if plain else f"a {type(x).__name__}"


def _ask(stage: Check, answer: Answer, draw: Draw, exercise: Exercise) -> tuple[Stage, str]:
    try:
        said = stage.ask(answer, draw)
    except Unanswered:
        return Stage(stage.name, None), "unanswered"
    except Mistake as mistake:
        return Stage(stage.name, False, mistake.message, mistake.key or "unforeseen"), ""
    except AnswerRaised as error:
        return Stage(
            stage.name, False, _what_was_raised(error.__cause__, exercise), "raised"
        ), "error"
    except (Exception, SystemExit) as error:  # a result of a kind the stage could not even compare
        said = (
            "What your function returned could not be compared with the right result "
            f"({type(error).__name__}: {error}). Expected: {exercise.signature}."
        )
        return Stage(stage.name, False, said, "not comparable"), "error"
    return Stage(stage.name, True, said or ""), ""


def _unanswered(exercise: Exercise) -> Report:
    said = (
        f'Replace the `...` in your function, then run the cell again. Help: hint("{exercise.id}").'
    )
    first, *rest = exercise.stages
    stages = [Stage(first.name, None, said), *(Stage(s.name, None) for s in rest)]
    return Report(exercise.heading, stages, "unanswered")


def _not_a_function(exercise: Exercise, answer: Any) -> Report:
    said = (
        f"check was given {_kind(answer)}; expected your function itself, without parentheses or "
        f'arguments: check("{exercise.id}", {_name(exercise)}).'
    )
    first, *rest = exercise.stages
    stages = [
        Stage(first.name, False, said, "not a function"),
        *(Stage(s.name, None) for s in rest),
    ]
    return Report(exercise.heading, stages, "error")


def _what_was_raised(error: BaseException | None, exercise: Exercise) -> str:
    """The exception in one line, the student's own line it came from, and what was expected."""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    own = [f for f in frames if "course_lib" not in f.filename.replace("\\", "/") and f.line]
    place = f"\nIt came from line {own[0].lineno} of your code: {own[0].line}" if own else ""
    advice = ""
    if isinstance(error, TypeError) and "argument" in str(error):
        advice = f"\nYour function is called as {exercise.signature}."
    text = f"{error}\n{own[0].line if own else ''}"
    for pattern, said in (*exercise.when_raised, *WHEN_RAISED):
        if re.search(pattern, text):
            advice = f"\n{said}"
            break
    return f"Your function raised {type(error).__name__}: {error}{place}{advice}"


WHEN_RAISED = (
    (
        "__round__",
        "A tensor of one number is not a Python number: wrap it in int(...).",
    ),
)


def _name(exercise: Exercise) -> str:
    return exercise.signature.split("(")[0]


@contextmanager
def _own_randomness(seed: int) -> Iterator[None]:
    """Seed the global generators for one stage, and leave them as they were found."""
    before, numpy = random.getstate(), sys.modules.get("numpy")
    numpy_before = numpy.random.get_state() if numpy else None
    random.seed(seed)
    if numpy:
        numpy.random.seed(seed % 2**32)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        random.setstate(before)
        if numpy:
            numpy.random.set_state(numpy_before)


# ---------------------------------------------------------------- calling an answer


def call(answer: Answer, *inputs: Any) -> Any:
    """The answer's result on a private copy of the inputs.

    Raises Unanswered for the stub's `...`, Mistake for None, AnswerRaised when the answer raises.
    """
    _last_inputs[:] = inputs
    try:
        result = answer(*copy_of(inputs))
    except Exception as error:
        if "ellipsis" in str(error).lower():
            raise Unanswered from error
        raise AnswerRaised from error
    except SystemExit as error:
        raise AnswerRaised from error
    if result is ... or (isinstance(result, (tuple, list)) and any(x is ... for x in result)):
        raise Unanswered
    if result is None:
        raise Mistake(
            "returns None", "Your function returned None. Does its last line say `return`?"
        )
    return result


def writes_into(answer: Answer, *inputs: Any) -> int | None:
    """The place of the first tensor among the inputs that the answer changes, or None."""
    given = copy_of(inputs)
    _last_inputs[:] = inputs
    with suppress(Exception):
        answer(*given)
    for place, (before, after) in enumerate(zip(inputs, given, strict=True)):
        if isinstance(before, Tensor) and not torch.equal(before, after):
            return place
    return None


def copy_of(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies, so that an answer that writes into its inputs cannot disturb the comparison."""
    return tuple(_copy_one(x) for x in inputs)


def _copy_one(x: Any) -> Any:
    if isinstance(x, torch.Generator):
        return x.clone_state()
    if isinstance(x, Tensor):
        return x.detach().clone().requires_grad_(x.requires_grad)
    return copy.deepcopy(x)


def _is_empty(answer: Any) -> bool:
    """Whether this is `...`, or a function whose whole body is `...` or `pass`."""
    if answer is ...:
        return True
    code = getattr(answer, "__code__", None)
    if code is None:
        return False
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("RESUME", "NOP")]
    loaded = [s.argval for s in steps if s.opname in ("LOAD_CONST", "RETURN_CONST")]
    only_returns = all(s.opname in ("LOAD_CONST", "RETURN_CONST", "RETURN_VALUE") for s in steps)
    return only_returns and len(loaded) == 1 and (loaded[0] is None or loaded[0] is ...)


# ---------------------------------------------------------------- comparing


def expect_tensor(result: Any, shape: tuple[int, ...], what: str) -> Tensor:
    """The result as a tensor of this shape; Mistake otherwise, in words."""
    if not isinstance(result, Tensor):
        raise Mistake("wrong type", f"Your function returned {_kind(result)}; expected {what}.")
    if tuple(result.shape) != shape:
        raise Mistake(
            "wrong shape", f"Your result has shape {tuple(result.shape)}; expected {shape}: {what}."
        )
    return result


def close(a: Any, b: Any, tol: float = 1e-6) -> bool:
    """Whether two tensors or numbers agree within tol·max(1, max|b|); not-a-number never does."""
    a, b = (torch.as_tensor(x, dtype=torch.float64).detach() for x in (a, b))
    if a.shape != b.shape or not bool(torch.isfinite(a).all()):
        return False
    return float((a - b).abs().max() if a.numel() else 0) <= tol * max(1.0, float(b.abs().max()))


def find_suspect(
    answer: Answer,
    cases: Sequence[tuple[Any, ...]],
    suspects: Sequence[Suspect],
    same: Callable[[Any, Any, tuple[Any, ...]], bool] | None = None,
) -> Suspect | None:
    """The first suspect that gives what the answer gives in *every* case: no accident is named."""
    agree = same or (lambda mine, theirs, case: close(mine, theirs))
    given = [call(answer, *case) for case in cases]
    for suspect in suspects:
        pairs = zip(given, cases, strict=True)
        if all(_safely(agree, mine, suspect, case) for mine, case in pairs):
            return suspect
    return None


def _safely(agree: Callable[..., bool], mine: Any, suspect: Suspect, case: tuple[Any, ...]) -> bool:
    try:
        return bool(agree(mine, suspect.compute(*copy_of(case)), case))
    except Exception:  # a suspect that does not fit this case is not the culprit
        return False


def share_is(found: float, expected: float, n: int, deviations: float = 6.0) -> bool:
    """Whether a share among n draws lies within so many standard deviations of the expected one."""
    return abs(found - expected) <= deviations * math.sqrt(expected * (1 - expected) / n)


def _kind(x: Any) -> str:
    return f"{_short(x)} ({type(x).__name__})"


def _short(x: Any, width: int = 60) -> str:
    text = " ".join(repr(x).split())
    return text if len(text) <= width else text[: width - 1] + "…"


# ---------------------------------------------------------------- what reveal shows


def solution_note(exercise: Exercise) -> Note:
    """The library's own functions where there are any, else the solution kept with the exercise."""
    from course_lib.teaching.source import show

    if exercise.library:
        source = show(*(_find(place) for place in exercise.library))
        title = f"Solution of {exercise.heading}, as the library has it"
        return Note(title, source.text, source.html)
    source = show(exercise.solution)
    see = f"In the library: {exercise.see}." if exercise.see else ""
    return Note(f"Solution of {exercise.heading}", f"{source.text}\n{see}", source.html + see)


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))
