"""What an exercise answers: reports and notes that show themselves in notebooks and terminals."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from course_lib.teaching.page import card, inline

Status = Literal["unanswered", "wrong", "passed", "error"]

HEADLINE = {
    "passed": "passed",
    "wrong": "not yet",
    "unanswered": "not answered yet",
    "error": "could not be checked",
}
COLOUR = {"passed": "#00664a", "wrong": "#a03c00", "unanswered": "#00558a", "error": "#a03c00"}
SIGN = {True: "✓ passed", False: "✗ stopped here", None: "– not reached"}


class Shown:
    """Something that is shown where it is made, and not a second time as the value of its cell."""

    _shown_in: Any = None

    def _repr_html_(self) -> str:
        raise NotImplementedError

    def show(self) -> None:
        """Display in a notebook, print elsewhere."""
        shell = _notebook()
        if shell is None:
            _say(str(self))
            return
        from IPython.display import display

        display({"text/html": self._repr_html_(), "text/plain": str(self)}, raw=True)
        self.__dict__["_shown_in"] = shell.execution_count

    def _ipython_display_(self) -> None:
        shell = _notebook()
        if shell is None or self._shown_in != shell.execution_count:
            self.show()


def _say(text: str) -> None:
    """Print; where the output knows fewer letters (a file on Windows), with "?" for the others, and
    where it is closed or gone, as errors are. The report itself is returned in any case."""
    try:
        print(text)
    except UnicodeEncodeError:
        code = sys.stdout.encoding
        print(text.encode(code, "replace").decode(code))
    except (OSError, ValueError, AttributeError):
        with suppress(OSError, ValueError, AttributeError):
            print(text, file=sys.stderr)


def _notebook() -> Any:
    """The running notebook's shell, or None in a terminal, a script or a test."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


@dataclass(frozen=True)
class Verdict:
    """What came of one stage. passed is None where an earlier stage stopped the check."""

    name: str
    passed: bool | None
    message: str = ""
    mistake: str = ""  # how it was found: "known", "universal", "constant", "writes", "raised", …


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """What `check` found: the stages in order, and how to draw the same inputs again.

    trouble: "unanswered" or "error" where the stages alone do not say it.
    """

    title: str
    stages: list[Verdict] = field(default_factory=list)
    trouble: Literal["", "unanswered", "error"] = ""
    again: str = ""

    @property
    def status(self) -> Status:
        if self.trouble:
            return self.trouble
        return "passed" if self.stages and all(s.passed for s in self.stages) else "wrong"

    @property
    def mistake(self) -> str:
        """How the mistake was found, or an empty string."""
        return next((s.mistake for s in self.stages if s.mistake), "")

    @property
    def message(self) -> str:
        """What was said about the stage that stopped the check, or an empty string."""
        return next((s.message for s in self.stages if s.passed is not True and s.message), "")

    def __repr__(self) -> str:
        lines = [f"{self.title}: {HEADLINE[self.status]}"]
        for stage in self.stages:
            sign = SIGN[stage.passed] if self.trouble != "unanswered" else SIGN[None]
            lines.append(f"  {sign:<16} {stage.name}")
            lines += [f"      {line}" for line in stage.message.splitlines()]
        return "\n".join(lines + ([f"  {self.again}"] if self.again else []))

    def _repr_html_(self) -> str:
        head = f"<b>{escape(self.title)}</b>: "
        head += f'<b style="color:{COLOUR[self.status]}">{HEADLINE[self.status]}</b>'
        rows = "".join(self._row(stage) for stage in self.stages)
        table = f'<table style="margin:.3em 0;border-collapse:collapse">{rows}</table>'
        again = f'<div style="font-size:90%">{inline(self.again)}</div>' if self.again else ""
        return _framed(f"<div>{head}</div>{table}{again}", COLOUR[self.status])

    def _row(self, stage: Verdict) -> str:
        cell = '<td style="text-align:left;vertical-align:top;padding:.1em .8em .1em 0;'
        message = inline(stage.message).replace("\n", "<br>")
        message = f'<div style="margin:.2em 0 .3em">{message}</div>' if message else ""
        return (
            f'<tr>{cell}white-space:nowrap">{SIGN[stage.passed]}</td>'
            f'{cell}">{inline(stage.name)}{message}</td></tr>'
        )


@dataclass(frozen=True, repr=False)
class Note(Shown):
    """A few lines of text with a heading: a hint, a solution, an answer to a misspelt number.

    html: how the text looks in a notebook, where it is more than paragraphs.
    """

    title: str
    text: str
    html: str = ""

    def __repr__(self) -> str:
        return f"{self.title}\n{self.text}"

    def _repr_html_(self) -> str:
        parts = (f'<p style="margin:.3em 0">{inline(part)}</p>' for part in self.text.split("\n"))
        return _framed(f"<b>{escape(self.title)}</b>{self.html or ''.join(parts)}", "#00558a")


def _framed(content: str, colour: str) -> str:
    frame = f"border-left:4px solid {colour};padding-left:.8em"
    return card(f'<div role="status" style="{frame}">{content}</div>', "course-exercise")
