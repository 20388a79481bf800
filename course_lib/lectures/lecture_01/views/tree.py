"""The family tree: who came from whom, with a link where a page of this course builds it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import Any

from course_lib.teaching.page import Html, Live, card, svg_drawing, svg_image
from course_lib.teaching.playgrounds import choice, playground
from course_lib.teaching.rooms import lectures_with, room_file
from course_lib.teaching.style import BLUE, GREEN, GREY, INK, ORANGE
from course_lib.teaching.svg import line, rect, words

HERE = "01_words_in_context"
WIDE, HIGH, LEFT, TOP = 1104, 34, 4, 34  # pixels of a column's picture, a row, the first box
STEP, BOX = (138, 40), (122, 30)
LOOKS: dict[str, dict[str, Any]] = {  # colour, and a frame that says the same
    "encoder": {"fill": "#e3eef8", "ink": BLUE},
    "decoder": {"fill": "#e0f3ed", "ink": GREEN, "dash": "7 3"},
    "encoder-decoder": {"fill": "#fdf1d6", "ink": ORANGE, "dash": "2 3"},
    "recurrent": {"fill": "#f2f2f2", "ink": GREY},
    "static": {"fill": "#f2f2f2", "ink": GREY},
}


@dataclass(frozen=True)
class Member:
    """A model of the tree; what is not known to this course is empty."""

    name: str
    kind: str
    when: str  # year and month
    idea: str
    source: str
    column: int
    row: int
    parent: str = ""
    who: str = ""
    parameters: str = ""
    page: str = ""
    groups: tuple[str, ...] = field(default_factory=tuple)

    @property
    def link(self) -> str:
        """The notebook that builds it, if that page exists."""
        there = self.page and self.page[:2] in lectures_with("claims")
        return f"{self.page}.ipynb" if there else ""


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    return tomllib.loads(room_file("01", "tree.toml").read_text(encoding="utf-8"))


def members() -> dict[str, Member]:
    """Every model of tree.toml by its name."""
    entries = (Member(**{**e, "groups": tuple(e.get("groups", ()))}) for e in _file()["member"])
    return {member.name: member for member in entries}


def groups() -> dict[str, str]:
    """What can be marked: name -> words."""
    return dict(_file()["groups"])


def ancestors(name: str) -> list[str]:
    """The model itself, where it came from, and so on to the first."""
    tree, line = members(), [name]
    while parent := tree[line[-1]].parent:
        line.append(parent)
    return line


def tree_view(member: str = "BERT") -> Live:
    """Choose a model: its line is drawn thick and its facts stand below; mark a group of them.

    Boxes and names link to the pages that exist. Raises ValueError for a model not in the tree."""
    if member not in members():
        raise ValueError(f"{member!r} was given; the tree has {', '.join(members())}.")
    marks = [("nothing", ""), *((text, name) for name, text in groups().items())]
    controls = {
        "member": choice("model", member, members()),
        "group": choice("mark", "", marks),
    }

    def draw(member: str, group: str) -> str:
        return card(tree_svg(member, group) + facts(member), "family-tree", 1130)

    text = "\n".join(in_words(one) for one in members().values())
    label = "the family tree; below it, every model in words"
    every = "".join(_unfolding(one) for one in members().values())
    static = card(svg_image(tree_svg(member), label) + _all(every), "family-tree", 1130)
    return playground(draw, controls, Html(static, text))


def _all(every: str) -> str:
    head = "<summary>every model: who, when, idea, parameters, source, page</summary>"
    return f"<details>{head}{every}</details>"


# ---------------------------------------------------------------- in words


def in_words(member: Member) -> str:
    """One model in a line."""
    parts = [f"{member.name} ({member.when}, {member.kind})", member.who, member.idea]
    parts += [f"Parameters: {member.parameters}"] if member.parameters else []
    parts += [f"Comes from {member.parent}"] if member.parent else []
    sentence = ". ".join(part.rstrip(".") for part in parts if part)
    return f"{sentence}. Source: {member.source}."


def facts(name: str) -> str:
    """HTML: one model in words, and the link to its page."""
    member = members()[name]
    line = " ← ".join(ancestors(name))
    link = f' <a href="{member.link}">The page that builds it</a>.' if _elsewhere(member) else (
        " Built on this page." if member.page == HERE else ""
    )  # fmt: skip
    style = "margin:6px 0 0"
    return (
        f'<p style="{style}">{escape(in_words(member))}{link}</p>'
        f'<p style="{style}">Its line: {escape(line)}.</p>'
    )


def _elsewhere(member: Member) -> bool:
    return bool(member.link) and member.page != HERE


def _unfolding(member: Member) -> str:
    return f'<div style="margin:4px 0 0 12px">{facts(member.name)}</div>'


# ---------------------------------------------------------------- drawn


def tree_svg(chosen: str = "", group: str = "") -> str:
    """The tree as SVG; chosen: whose line is thick; group: who is marked by a star."""
    label = "the family tree" + (
        f", {chosen}: {' from '.join(ancestors(chosen))}" if chosen else ""
    )
    rows = 1 + max(member.row for member in members().values())
    height = TOP + STEP[1] * rows + 34
    return svg_drawing(WIDE, height, "".join(tree_parts(chosen, group)), label, role="group")


def tree_parts(chosen: str = "", group: str = "", links: bool = True) -> list[str]:
    """What the picture consists of, for the deck too; there without links, as no page is near."""
    tree, line = members(), set(ancestors(chosen)) if chosen else set()
    parts = [
        words(LEFT + STEP[0] * i + BOX[0] / 2, 18, name, 14)
        for i, name in enumerate(_file()["columns"]["names"])
    ]
    joined = sorted(tree.values(), key=lambda m: m.name in line)  # the thick ones above the others
    parts += [_branch(tree[m.parent], m, m.name in line) for m in joined if m.parent]
    parts += [_box(m, m.name in line, group in m.groups, links) for m in tree.values()]
    return parts + _legend(TOP + STEP[1] * (1 + max(m.row for m in tree.values())) + 6, group)


def _corner(member: Member) -> tuple[float, float]:
    return LEFT + STEP[0] * member.column, TOP + STEP[1] * member.row


def _branch(parent: Member, member: Member, thick: bool) -> str:
    """A line from one box to the next; where boxes stand between, it runs above their row."""
    (x1, y1), (x2, y2) = _corner(parent), _corner(member)
    middle, trunk = y2 + BOX[1] / 2, x1 + BOX[0] + 8
    between = range(parent.column + 1, member.column)
    points: tuple[float, ...] = (x1 + BOX[0], y1 + BOX[1] / 2, trunk, y1 + BOX[1] / 2)
    if parent.column == member.column:  # below each other
        points = (x1 + 12, y1 + BOX[1], x1 + 12, y2)
    elif any(m.row == member.row and m.column in between for m in members().values()):
        points += (trunk, y2 - 5, x2 + 12, y2 - 5, x2 + 12, y2)
    else:
        points += (trunk, middle, x2, middle)
    return line(*points, ink=INK if thick else "#9a9a9a", wide=3 if thick else 1.2, kind="branch")


def _box(member: Member, thick: bool, marked: bool, links: bool) -> str:
    x, y = _corner(member)
    look = LOOKS[member.kind] | {"wide": 3 if thick else 1.6}
    label = f"★ {escape(member.name)}" if marked else escape(member.name)
    size = 13 if len(member.name) < 15 else 12
    box = rect(x, y, *BOX, label, size=size, kind="member", **look)
    if not _elsewhere(member):
        return box
    under = line(x + 12, y + 24.5, x + BOX[0] - 12, y + 24.5, ink=BLUE)
    if not links:
        return box + under
    return f'<a href="{member.link}" aria-label="{escape(member.name)}: its page">{box}{under}</a>'


def _legend(y: float, group: str) -> list[str]:
    """A box of each kind, and what the signs mean."""
    parts, x = [], LEFT
    for kind in ("encoder", "decoder", "encoder-decoder", "recurrent"):
        label = "static or recurrent" if kind == "recurrent" else kind
        parts += [rect(x, y, 26, 18, "", **LOOKS[kind]), words(x + 34, y + 14, label, 13, "start")]
        x += 62 + 8 * len(label)
    rest = "underlined: another page builds it" + (f" · ★ {groups()[group]}" if group else "")
    return [*parts, words(x, y + 14, rest, 13, "start")]
