"""The same story in several languages: sentence under sentence, a meaning marked in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from course_lib.teaching.page import Html, Live, card, check_one_of, paragraphs
from course_lib.teaching.playgrounds import choice, playground, slider

if TYPE_CHECKING:
    from course_lib.text.world import MicroWorld, Story, Trace

CODES = {"chinese": "zh-Hans"}  # of the languages that exist
MEANINGS = {  # what is marked: name -> the beginning of its slots
    "the hero": "hero", "the hero's job": "hero.job", "the guest": "guest", "the thing": "thing",
    "its look": "look", "the place": "site", "what is done": "act", "nothing": "-",
}  # fmt: skip


def parallel_view(worlds: Mapping[str, MicroWorld], stories: Sequence[Story]) -> Live:
    """A story in all languages. Controls: meaning (what is marked), story.

    worlds: the other languages, by name; stories: in English."""
    controls = {
        "meaning": choice("marked", "its look", MEANINGS),
        "story": slider("story", 0, 0, len(stories) - 1),
    }
    return playground(
        lambda meaning, story: parallel_picture(worlds, stories[story], meaning), controls
    )


def parallel_picture(worlds: Mapping[str, MicroWorld], story: Story, meaning: str) -> Html:
    """Each sentence in each language; words of the meaning framed, with their place in the line.
    Raises ValueError for a meaning that is none of MEANINGS."""
    check_one_of(MEANINGS, meaning=meaning)
    versions = {"english": story, **{name: story.told_in(world) for name, world in worlds.items()}}
    blocks, lines = [], []
    for index in range(len(story.sentences)):
        rows = [
            _line(name, one.trace[index], MEANINGS[meaning], one.world.grammar.between)
            for name, one in versions.items()
        ]
        blocks.append(f'<div style="border-top:1px solid #ddd;padding:4px 0">{"".join(rows)}</div>')
        lines += [
            f"{name}: {_plain(one.trace[index], MEANINGS[meaning])}"
            for name, one in versions.items()
        ]
    note = f"Framed: {meaning}. The number is the word's place in its sentence."
    html = card("".join(blocks) + paragraphs([note]), "parallel", 860)
    return Html(html, "\n".join([*lines, note]))


def _marked(trace: Trace, slots: str) -> bool:
    """Whether a word says this: slots of the meaning, but of a person only the name itself."""
    if slots == "act":
        return trace.slot.startswith("act")
    return trace.slot == slots


def _line(name: str, line: Sequence[Trace], slots: str, between: str) -> str:
    """HTML: one sentence in one language."""
    words = []
    for place, trace in enumerate(line, start=1):
        if _marked(trace, slots):
            words.append(
                '<span style="border:2px solid #0072B2;border-radius:4px;padding:0 3px;'
                f'font-weight:650">{escape(trace.word)}<sup style="font-size:70%;'
                f'vertical-align:super">{place}</sup></span>'
            )
        else:
            words.append(f"<span>{escape(trace.word)}</span>")
    language = f' lang="{CODES[name]}"' if name in CODES else ""
    gap = between or "<wbr>"
    return (
        '<div style="display:flex;gap:10px;padding:2px 0">'
        f'<span style="flex:0 0 86px;color:#555;font-size:12px;padding-top:2px">{name}</span>'
        f"<span{language}>{gap.join(words)}</span></div>"
    )


def _plain(line: Sequence[Trace], slots: str) -> str:
    return " ".join(f"[{t.word}]" if _marked(t, slots) else t.word for t in line)
