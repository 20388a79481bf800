"""What an exercise is: data and its solution. The known mistakes are edits of the solution."""

from __future__ import annotations
import __future__

import copy
import inspect
import marshal
import random
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.rooms import room_file

from .outputs import Out

Answer = Callable[..., Any]
Case = tuple[Any, ...]


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


def each(case: Callable[..., Case], *arguments: Sequence[Any]) -> Callable[[Draw], list[Case]]:
    """A stage's cases: case(draw, *x) for each x of `arguments`."""
    return lambda draw: [case(draw, *x) for x in arguments]


@dataclass(frozen=True)
class Stage:
    """One question: a name for the reader, and the cases it is asked on, simple ones first.

    Without `observe`, what the function returns is compared with what the solution returns.
    observe(function, *case): looks at something else, such as how often a word was drawn, how many
    rows a layer was given, or a gradient; `returns` declares what it gives, one Out or several.
    ask(function, *case): raises Wrong itself, for what no comparison can say.
    only: names of the outputs that this stage looks at, where it is not all of them.
    remark: said beside the stage when it is passed."""

    name: str
    cases: Callable[[Draw], Iterable[Case]]
    observe: Callable[..., Any] | None = None
    returns: Out | Sequence[Out] = ()
    ask: Callable[..., None] | None = None
    only: Sequence[str] = ()
    remark: str | Callable[[], str] = ""


@dataclass(frozen=True)
class Edit:
    """A known mistake: in the solution's text `old`, which stands there once, becomes `new`.

    more: further replacements of the same mistake. endless: the edited solution never ends."""

    old: str
    new: str
    say: str
    more: tuple[tuple[str, str], ...] = ()
    endless: bool = False

    def replacements(self) -> tuple[tuple[str, str], ...]:
        return ((self.old, self.new), *self.more)


@dataclass(frozen=True)
class Other:
    """A known mistake that is another way to compute altogether, not an edit."""

    function: Answer
    say: str
    endless: bool = False


Known = Edit | Other


def omitted(term: str, what: str, instead: str = "0") -> Edit:
    """The mistake of leaving out one term of a sum: omitted("V * H", "the word embeddings")."""
    return Edit(term, instead, f"You left out {what}.")


def written(id: str) -> dict[str, Any]:
    """What a student reads, as fields of the Exercise, from exercises.toml in the lecture's room.

    Raises ValueError where the file has no such exercise."""
    texts = _texts(id[:2])
    if id not in texts:
        known = ", ".join(texts)
        raise ValueError(
            f"exercise {id!r} was asked for; its lecture's exercises.toml has {known}."
        )
    return {"id": id, **texts[id]}


@lru_cache
def _texts(lecture: str) -> dict[str, dict[str, Any]]:
    """The file of a lecture, read once for all of its exercises."""
    return tomllib.loads(room_file(lecture, "exercises.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class Exercise:
    """One exercise.

    title to hints: what a student reads; `written` gives them.

    solution: kept here, in the exercise's own signature; helpers: functions of the same file that
    it calls and that edits may change too. returns: what comes out, one Out or several.
    stages: from the simplest up. library: "module:name" of the functions that do the same in the
    library; reveal shows these. see: where the library does a larger job of which this is a part.
    when_raised: (pattern, advice) for what the answer raises; the pattern is sought in "message
    <newline> the line it came from". forbidden: patterns of the names of functions that may not be
    called, and what to say. infinite: what to say where the result is not finite and the right one
    is.
    gradient: names of inputs through which a gradient must flow as through the solution's, checked
    by a last stage; what flows into other inputs must be nothing. Of an input that is a dataclass
    the field is named, "student.logits". may_write: inputs may be changed.
    axes, terms: how messages that are made from the solution (shared_mistakes.py) name an axis,
    {"-1": "the keys"}, and an expression, {"counts.sum(1)": "the row's total"}.
    """

    id: str
    title: str
    purpose: str
    difficulty: int  # 1 to 5
    minutes: int
    signature: str
    statement: str
    hints: Sequence[str]
    solution: Answer
    returns: Out | Sequence[Out]
    stages: Sequence[Stage]
    mistakes: Sequence[Known]
    helpers: Sequence[Answer] = ()
    library: tuple[str, ...] = ()
    see: str = ""
    when_raised: Sequence[tuple[str, str]] = ()
    forbidden: Mapping[str, str] = field(default_factory=dict)
    infinite: str = ""
    gradient: tuple[str, ...] = ()
    may_write: bool = False
    axes: Mapping[str, str] = field(default_factory=dict)
    terms: Mapping[str, str] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        return f"{self.id} {self.title}"

    @property
    def name(self) -> str:
        return self.signature.split("(")[0]

    @property
    def parameters(self) -> list[str]:
        """Names of the inputs, as the signature has them."""
        return [name.split("=")[0].strip() for name in self.signature[:-1].split("(")[1].split(",")]

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

    def outs(self, stage: Stage) -> tuple[Out, ...]:
        """What is declared of a stage's observations."""
        returns = stage.returns or self.returns
        return (returns,) if isinstance(returns, Out) else tuple(returns)

    def source(self) -> str:
        """The text that edits change: helpers, then the solution."""
        return "\n\n".join(source_of(function) for function in (*self.helpers, self.solution))

    def with_mistakes(self, *known: Known) -> Answer:
        """The solution with these mistakes; ValueError where an edit does not fit its text once."""
        if len(known) == 1 and isinstance(known[0], Other):
            return known[0].function
        text = self.source()
        for edit in known:
            for old, new in edit.replacements() if isinstance(edit, Edit) else ():
                if text.count(old) != 1:
                    raise ValueError(
                        f"exercise {self.id}: {old!r} stands {text.count(old)} times in the "
                        f"solution; an edit must change exactly one place: {edit.say}"
                    )
                text = text.replace(old, new)
        return compiled(text, self.solution)


@lru_cache(maxsize=512)
def source_of(function: Answer) -> str:
    return textwrap.dedent(inspect.getsource(function))


@lru_cache(maxsize=4096)
def compiled(text: str, solution: Answer) -> Answer:
    """The function of the solution's name that this text defines, among its own globals."""
    space = dict(inspect.unwrap(solution).__globals__)
    flags = __future__.annotations.compiler_flag
    exec(compile(text, f"<edited {solution.__name__}>", "exec", flags, True), space)
    made: Answer = space[solution.__name__]
    return made


def copy_of(inputs: Case) -> Case:
    """Copies, so that an answer that writes into its inputs cannot disturb the comparison."""
    return tuple(_copy_one(x) for x in inputs)


def _copy_one(x: Any) -> Any:
    if isinstance(x, torch.Generator):
        return x.clone_state()
    if isinstance(x, Tensor):
        return x.detach().clone().requires_grad_(x.requires_grad)
    try:
        return marshal.loads(marshal.dumps(x))  # lists of plain values: quicker than deepcopy
    except ValueError:
        return copy.deepcopy(x)
