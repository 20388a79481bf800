"""What an exercise answers: reports and notes that show themselves in notebooks and terminals."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

Status = Literal["unanswered", "wrong", "passed", "error"]

HEADLINE = {
    "passed": "passed",
    "wrong": "not yet",
    "unanswered": "not answered yet",
    "error": "could not be checked",
}
COLOUR = {"passed": "#009E73", "wrong": "#D55E00", "unanswered": "#0072B2", "error": "#D55E00"}
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
            print(self)
            return
        from IPython.display import display

        display({"text/html": self._repr_html_(), "text/plain": str(self)}, raw=True)
        self.__dict__["_shown_in"] = shell.execution_count

    def _ipython_display_(self) -> None:
        shell = _notebook()
        if shell is None or self._shown_in != shell.execution_count:
            self.show()


def _notebook() -> Any:
    """The running notebook's shell, or None in a terminal, a script or a test."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


@dataclass(frozen=True)
class Stage:
    """One question put to an answer. passed is None where an earlier stage stopped the check."""

    name: str
    passed: bool | None
    message: str = ""
    mistake: str = ""  # a short key for the mistake, where it was recognised


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """What `check` found: the stages in order, and how to draw the same inputs again.

    trouble: "unanswered" or "error" where the stages alone do not say it.
    """

    title: str
    stages: list[Stage] = field(default_factory=list)
    trouble: Literal["", "unanswered", "error"] = ""
    again: str = ""

    @property
    def status(self) -> Status:
        if self.trouble:
            return self.trouble
        return "passed" if self.stages and all(s.passed for s in self.stages) else "wrong"

    @property
    def mistake(self) -> str:
        """The key of the mistake that was named, or an empty string."""
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
        colour = COLOUR[self.status]
        rows = "".join(self._row(stage) for stage in self.stages)
        frame = f"border-left:4px solid {colour};padding:.3em .8em;margin:.4em 0"
        head = f"<b>{escape(self.title)}</b>: "
        head += f'<b style="color:{colour}">{HEADLINE[self.status]}</b>'
        again = f'<div style="font-size:90%">{escape(self.again)}</div>' if self.again else ""
        table = f'<table style="margin:.3em 0;border-collapse:collapse">{rows}</table>'
        return f'<div role="status" style="{frame}"><div>{head}</div>{table}{again}</div>'

    def _row(self, stage: Stage) -> str:
        cell = '<td style="text-align:left;vertical-align:top;padding:.1em .8em .1em 0;'
        said = escape(stage.message).replace("\n", "<br>")
        said = f'<div style="margin:.2em 0 .3em">{said}</div>' if said else ""
        return (
            f'<tr>{cell}white-space:nowrap">{SIGN[stage.passed]}</td>'
            f'{cell}">{escape(stage.name)}{said}</td></tr>'
        )


@dataclass(frozen=True, repr=False)
class Note(Shown):
    """A few lines of text with a heading: a hint, a solution, an answer to a misspelt number."""

    title: str
    text: str
    code: bool = False

    def __repr__(self) -> str:
        return f"{self.title}\n{self.text}"

    def _repr_html_(self) -> str:
        body = _code(self.text) if self.code else _prose(self.text)
        style = "border-left:4px solid #0072B2;padding:.3em .8em;margin:.4em 0"
        return f'<div role="note" style="{style}"><b>{escape(self.title)}</b>{body}</div>'


def _prose(text: str) -> str:
    return "".join(f'<p style="margin:.3em 0">{escape(part)}</p>' for part in text.split("\n"))


def _code(text: str) -> str:
    """Highlighted by Pygments where it is installed (every notebook has it), plain otherwise."""
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        return f"<pre>{escape(text)}</pre>"
    return str(highlight(text, PythonLexer(), HtmlFormatter(noclasses=True, nobackground=True)))
