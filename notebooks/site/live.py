"""What the live views of a page show without a kernel, recorded while there is one.

    python notebooks/site/live.py NOTEBOOK FILE    the views of that page as JSON

A widget with its own script (quiz, attention) is its script and its state. Controls above a picture
(a playground) are the pictures at the values of the controls: at all of them together where these
are few enough, else with one control moved at a time.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nbformat
from needed import needed_on_page
from site_links import to_pages

from course_lib.files import write_atomic
from course_lib.teaching.exercises import quiz
from course_lib.teaching.page import Live

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "build" / "live"  # a page is run again only when it has changed
QUIZ = re.compile(r'^quiz\("(\d\d)"\)', re.MULTILINE)
PART = re.compile(r"<[^>]*>|[^<]+|<")
MOST_TOGETHER, MOST_OF_ONE, FEWEST_OF_ONE = 200, 21, 5  # states
LARGEST = 1_500_000  # characters of a view's states


@dataclass(frozen=True)
class Recorded:
    """A live view: `what` is handed to site.js. module, script, css: of a widget with its own."""

    name: str
    what: dict[str, Any]
    module: str = ""
    script: str = ""
    css: str = ""

    def write(self, folder: Path) -> None:
        """As a script that a page can load from a file."""
        folder.mkdir(parents=True, exist_ok=True)
        what = self.what
        if "html" in what:
            what = {**what, **in_parts([to_pages(html) for html in what["html"]])}
        said = f"courseLive({json.dumps(self.name)}, {json.dumps(what, ensure_ascii=False)});"
        (folder / f"{self.name}.js").write_text(said + "\n", encoding="utf-8")

    def plain_script(self) -> str:
        """The widget's module as an expression, since a file's page may load no modules."""
        exports = re.compile(r"^export default (\{.*\});?$", re.MULTILINE)
        body, times = exports.subn(r"return \1;", self.script)
        if times != 1:
            raise ValueError(
                f"view {self.name}: {self.module} has {times} lines `export default`; expected one."
            )
        return f"(() => {{\n{body}\n}})()"


def in_parts(pictures: Sequence[str]) -> dict[str, Any]:
    """Pictures of a view, which are alike in most of their tags: each tag and text once, and a
    picture as the numbers of its parts."""
    parts: dict[str, int] = {}
    html = [[parts.setdefault(p, len(parts)) for p in PART.findall(one)] for one in pictures]
    return {"parts": list(parts), "html": html}


def recorded_on(path: Path, *, run: bool = False) -> dict[str, Recorded]:
    """A notebook's live views by cell id: quizzes, and where it may be run, all the others."""
    found = {}
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type == "code" and (asked := QUIZ.search(cell.source)):
            found[cell.id] = of_widget(f"{path.stem[:2]}-{number}", quiz(asked[1]).widget)
    return (_from_a_run(path) if run else {}) | found


def _from_a_run(path: Path) -> dict[str, Recorded]:
    """What the page's live views showed in a process of its own, kept until the page changes."""
    stamp = hashlib.sha256(path.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:16]
    kept = KEPT / f"{path.stem}-{stamp}.json"
    if not kept.exists():
        print(f"{path.name}: recording its controls", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            call = [sys.executable, __file__, str(path.resolve()), str(Path(folder, "live.json"))]
            done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{path.name} did not run:\n{done.stdout[-2000:]}{done.stderr}")
            KEPT.mkdir(parents=True, exist_ok=True)
            write_atomic(kept, Path(folder, "live.json").read_text(encoding="utf-8"))
    views = json.loads(kept.read_text(encoding="utf-8"))
    return {cell: Recorded(**view) for cell, view in views.items()}


# --- in the process that runs a page ----------------------------------------------------------


def run_page(path: Path) -> dict[str, Recorded]:
    """Run the cells that a page's controls need, and record each live view. By cell id."""
    from IPython.core.interactiveshell import InteractiveShell

    shell, found = InteractiveShell.instance(), {}
    cells = nbformat.read(path, as_version=4).cells
    for place in needed_on_page(path):
        done = shell.run_cell(cells[place].source)
        done.raise_error()
        if isinstance(done.result, Live):
            found[cells[place].id] = record(f"{path.stem[:2]}-{place}", done.result)
    return found


def record(name: str, live: Live) -> Recorded:
    """A live view of any of the two kinds."""
    if hasattr(live.widget, "_esm"):
        return of_widget(name, live.widget)
    return Recorded(name, of_controls(live))


def of_widget(name: str, widget: Any) -> Recorded:
    """A widget with its own script: its state, by its own traits."""
    own = (key for key in widget.keys if key[0] != "_" and key not in ("layout", "tooltip"))
    state = {key: getattr(widget, key) for key in own if key != "tabbable"}
    module = type(widget).__name__
    what = {"module": module, "state": state}
    return Recorded(name, what, module, widget._esm, getattr(widget, "_css", ""))


@dataclass(frozen=True)
class Control:
    """A control's values, as they are and in words; `start`: the place of the one it stands at."""

    label: str
    kind: str  # slider or choice
    values: list[Any]
    options: list[str]
    start: int

    def thinned(self, most: int) -> Control:
        """At most about so many values of a slider, its ends and its start among them."""
        if self.kind == "choice" or len(self.values) <= most:
            return self
        last = len(self.values) - 1
        places = sorted({round(k * last / (most - 1)) for k in range(most)} | {self.start})
        values, options = [self.values[k] for k in places], [self.options[k] for k in places]
        return Control(self.label, self.kind, values, options, places.index(self.start))


def control_of(name: str, widget: Any) -> Control:
    """A control of ipywidgets. What has no list of values (a text) stays as it is."""
    label = widget.description or name
    if hasattr(widget, "options") and not isinstance(widget.value, tuple):
        values, options = [value for _, value in widget._options_full], [*widget._options_labels]
        kind = "slider" if "Slider" in type(widget).__name__ else "choice"
    elif isinstance(widget.value, bool):
        values, options, kind = [False, True], ["no", "yes"], "choice"
    elif "Slider" in type(widget).__name__ and not isinstance(widget.value, tuple):
        steps = round((widget.max - widget.min) / widget.step)
        values = [round(widget.min + k * widget.step, 9) for k in range(steps + 1)]
        options = [format(value, widget.readout_format) for value in values]
        kind = "slider"
    else:
        values, options, kind = [widget.value], [str(widget.value)], "choice"
    start = min(range(len(values)), key=lambda k: values[k] != widget.value)
    return Control(label, kind, values, options, start)


def of_controls(live: Live) -> dict[str, Any]:
    """The pictures of a playground by the places of its controls' values."""
    widgets = {name: w for name, w in live.controls.items() if hasattr(w, "value")}  # no buttons
    full = [control_of(name, widget) for name, widget in widgets.items()]
    controls, together = _few_enough(full)
    pictures = _pictures(live, [*widgets.values()], controls, together)
    if together and sum(map(len, pictures["html"])) > LARGEST:
        controls, together = [control.thinned(MOST_OF_ONE) for control in full], False
        pictures = _pictures(live, [*widgets.values()], controls, together)
    shown = [{k: v for k, v in asdict(control).items() if k != "values"} for control in controls]
    note = _note(full, controls, together)
    return {"controls": shown, "grid": together, "note": note, **pictures}


def _few_enough(full: Sequence[Control]) -> tuple[list[Control], bool]:
    """The controls with as many values as can be shown, and whether all of them together."""
    for most in (math.inf, *range(MOST_OF_ONE, FEWEST_OF_ONE - 1, -4)):
        controls = [c if most == math.inf else c.thinned(int(most)) for c in full]
        if math.prod(len(control.values) for control in controls) <= MOST_TOGETHER:
            return controls, True
    return [control.thinned(MOST_OF_ONE) for control in full], False


def _pictures(
    live: Live, widgets: Sequence[Any], controls: Sequence[Control], together: bool
) -> dict[str, Any]:
    """html: the different pictures; at: which of them belongs to which places of the controls;
    also: what other controls showed then, where one moves the others (a preset its sliders)."""
    html: dict[str, int] = {}
    at: dict[str, int] = {}
    also: dict[str, dict[int, tuple[int, str]]] = {}
    start = tuple(control.start for control in controls)
    for place in _places(controls, start, together):
        name = ",".join(map(str, place))
        for goal in (start, place):  # what is moved is moved last, so that others follow it
            for widget, control, k, before in zip(widgets, controls, goal, start, strict=True):
                if goal is start or k != before:
                    widget.value = control.values[k]
        at[name] = html.setdefault(live.widget.children[-1].value, len(html))
        if followed := _followed(widgets, controls, place):
            also[name] = followed
    return {"html": list(html), "at": at, "also": also}


def _places(
    controls: Sequence[Control], start: tuple[int, ...], together: bool
) -> list[tuple[int, ...]]:
    """Where the controls can stand: everywhere, or with all but one at their start."""
    if together:
        return list(itertools.product(*(range(len(c.values)) for c in controls)))
    moved = {
        (*start[:n], k, *start[n + 1 :])
        for n, control in enumerate(controls)
        for k in range(len(control.values))
    }
    return sorted(moved)


def _followed(
    widgets: Sequence[Any], controls: Sequence[Control], place: tuple[int, ...]
) -> dict[int, tuple[int, str]]:
    """Which controls do not stand where they were put: the place nearest to it, and in words."""
    found = {}
    for n, (widget, control, k) in enumerate(zip(widgets, controls, place, strict=True)):
        if widget.value != control.values[k]:
            now = control_of("", widget)
            nearest = _nearest(control.values, widget.value, k)
            found[n] = (nearest, now.options[now.start])
    return found


def _nearest(values: list[Any], value: Any, otherwise: int) -> int:
    if value in values:
        return values.index(value)
    if isinstance(value, int | float):
        return min(range(len(values)), key=lambda k: abs(values[k] - value))
    return otherwise


def _note(full: Sequence[Control], controls: Sequence[Control], together: bool) -> str:
    """What the notebook does that the page does not."""
    parts = ["Computed beforehand."]
    if not together:
        parts.append("Moving one control sets the others back; in the notebook they combine.")
    if any(len(a.values) > len(b.values) for a, b in zip(full, controls, strict=True)):
        parts.append("The notebook's sliders have finer steps.")
    if any(len(control.values) < 2 for control in full):
        parts.append("What stands in bold can be changed in the notebook only.")
    return " ".join(parts)


if __name__ == "__main__":
    views = run_page(Path(sys.argv[1]))
    written = json.dumps({cell: asdict(view) for cell, view in views.items()}, ensure_ascii=False)
    Path(sys.argv[2]).write_text(written, encoding="utf-8")
    os._exit(0)  # what a page has started need not be waited for
