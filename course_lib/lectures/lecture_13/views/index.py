"""Where everything is settled: claims and questions of all lectures, read from their rooms."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple

from course_lib.teaching.claims import SIGNS, counted, headed
from course_lib.teaching.page import Html, Live, card, inline, note
from course_lib.teaching.playgrounds import choice, playground, text_field
from course_lib.teaching.quizzes import read_review
from course_lib.teaching.rooms import lectures_with, room_file

from .pages import page_link, pages

WIDTH, MOST = 820, 40  # claims that are listed at once
CLAIMS, QUESTIONS = "What they claim, what you measured", "Questions for review"
ALL, SOURCES, OTHERS = "all", "source lectures", "papers, habits, this course"
ERRATUM = re.compile(r"E\d+")


class Entry(NamedTuple):
    """A claim of a room, in words: nothing is run for the index."""

    lecture: str
    id: str
    they_say: str
    who: str
    it_is: str
    verdict: str
    how: str

    @property
    def makers(self) -> list[str]:
        """Who makes it: the source lectures, or the others."""
        return [SOURCES if SOURCES in self.who else OTHERS]


@lru_cache(maxsize=1)
def entries() -> tuple[Entry, ...]:
    """Every claim of every room: errata in the order of their numbers, then the others by
    lecture."""
    result = [
        Entry(lecture, id, **{name: entry[name] for name in Entry._fields[2:]})
        for lecture in lectures_with("claims")
        for id, entry in _claims(lecture).items()
    ]
    return tuple(sorted(result, key=_place))


def _claims(lecture: str) -> dict[str, Any]:
    return tomllib.loads(room_file(lecture, "claims.toml").read_text(encoding="utf-8"))


def _place(entry: Entry) -> tuple[int, str]:
    number = int(entry.id[1:]) if ERRATUM.fullmatch(entry.id) else 10**6
    return number, entry.lecture


def errata() -> tuple[Entry, ...]:
    """Those with a number, E01 and so on."""
    return tuple(entry for entry in entries() if ERRATUM.fullmatch(entry.id))


def unsettled() -> list[str]:
    """Numbers below the highest that no room settles."""
    numbers = {int(entry.id[1:]) for entry in errata()}
    return [f"E{n:02}" for n in range(1, max(numbers) + 1) if n not in numbers]


def matching(
    who: str = ALL, verdict: str = ALL, lecture: str = ALL, words: str = ""
) -> tuple[Entry, ...]:
    """The entries that fit all of it; words: all of them occur, whatever their case.

    Raises ValueError for what no entry has."""
    for name, value, known in (
        ("who", who, makers()), ("verdict", verdict, list(SIGNS)),
        ("lecture", lecture, lectures_with("claims")),
    ):  # fmt: skip
        if value not in (ALL, *known):
            raise ValueError(
                f"{name}={value!r} was given; expected {ALL!r} or one of {', '.join(known)}."
            )
    terms = words.lower().split()
    return tuple(
        entry
        for entry in entries()
        if who in (ALL, *entry.makers)
        and verdict in (ALL, entry.verdict)
        and lecture in (ALL, entry.lecture)
        and all(word in " ".join(entry).lower() for word in terms)
    )


def makers() -> list[str]:
    return sorted({maker for entry in entries() for maker in entry.makers}, key=_others_last)


def _others_last(maker: str) -> tuple[bool, str]:
    return maker == OTHERS, maker


# ---------------------------------------------------------------- shown


def index_view() -> Live:
    """All claims, with filters: who makes them, the verdict, the lecture, words. Where no kernel
    runs: the errata by number."""
    controls = {
        "who": choice("who says it", ALL, [ALL, *makers()]),
        "verdict": choice("verdict", ALL, [ALL, *SIGNS]),
        "lecture": choice("lecture", ALL, [ALL, *lectures_with("claims")]),
        "words": text_field("words", ""),
    }
    return playground(lambda **chosen: index_picture(matching(**chosen)), controls, errata_index())


def index_picture(chosen: Sequence[Entry]) -> Html:
    """Claims as lines, at most MOST of them; each with its verdict and a link."""
    if not chosen:
        return Html(card(note("No claim fits all of this."), "index", WIDTH), "No claim fits.")
    listed = chosen[:MOST]
    rest = f" The first {MOST} of {len(chosen)}." if len(chosen) > MOST else ""
    head = counted(SIGNS, (entry.verdict for entry in chosen)) + rest
    lines = "".join(map(_line, listed))
    return Html(card(headed(head) + lines, "index", WIDTH), "\n".join([head, *map(_text, listed)]))


def _line(entry: Entry) -> str:
    sign, colour = SIGNS[entry.verdict]  # type: ignore[index]
    return (
        f'<div style="margin:0 0 6px"><b style="color:{colour}">{sign} {entry.verdict}</b> '
        f"{escape(entry.id)} · {page_link(entry.lecture, CLAIMS)} · “{inline(entry.they_say)}” "
        f'<span style="color:#555">{inline(entry.who)}</span></div>'
    )


def _text(entry: Entry) -> str:
    sign = SIGNS[entry.verdict][0]  # type: ignore[index]
    return f"{sign} {entry.id}, lecture {entry.lecture}: {entry.they_say} ({entry.who})"


def errata_index() -> Html:
    """Every erratum by its number, folded: what was said, what became of it, and on which page."""
    head = counted(SIGNS, (entry.verdict for entry in errata()))
    missing = f"Not settled yet: {', '.join(unsettled())}." if unsettled() else ""
    lines = "".join(
        f"<li>{escape(e.id)} {SIGNS[e.verdict][0]} {page_link(e.lecture)}: “{inline(e.they_say)}”"  # type: ignore[index]
        "</li>"
        for e in errata()
    )
    listed = f'<ul style="list-style:none;padding:0;margin:0">{lines}</ul>'
    body = f"{headed(head)}<details><summary>Each by its number</summary>{listed}</details>"
    text = "\n".join([head, *map(_text, errata()), *filter(None, [missing])])
    return Html(card(f"{body}<p>{missing}</p>" if missing else body, "index", WIDTH), text)


def questions_index() -> Html:
    """The questions for review of every lecture, folded by lecture, with a link to the answers."""
    parts, text = [], []
    for lecture in lectures_with("claims"):
        questions = [entry.question for entry in read_review(lecture)]
        title = pages().get(lecture, ("", ""))[1]
        items = "".join(f"<li>{inline(question)}</li>" for question in questions)
        parts.append(
            f"<details><summary>lecture {lecture}: {escape(title)} ({len(questions)})</summary>"
            f"<ol>{items}</ol>Answers: {page_link(lecture, QUESTIONS)}</details>"
        )
        text.append(f"lecture {lecture}: {title}")
        text += [f"  {n}. {q}" for n, q in enumerate(questions, 1)]
    return Html(card("".join(parts), "questions-index", WIDTH), "\n".join(text))
