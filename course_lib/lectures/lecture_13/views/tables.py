"""The short tables of page 13, shown."""

from __future__ import annotations

from course_lib.lectures.lecture_13 import interfaces as asked
from course_lib.lectures.lecture_13 import tables
from course_lib.teaching.page import Html

from .written import written_table

GLUE_HEAD = ("model", "printed", "what it is", *tables.SINGLE, "cost, printed", "FLOPs")


def variants_table() -> Html:
    """The members: what is new, gains, costs, best for, parameters, lecture."""
    head = ("member", "new", "gains", "costs", "best for", "parameters", "lecture")
    rows = [
        (v.name, v.new, v.gains, v.costs, v.best_for, v.parameters or "–", v.lecture)
        for v in tables.variants()
    ]
    return written_table(head, rows, "variants", 980)


def reading_table() -> Html:
    """The papers, ★ before the five essential ones."""
    rows = [
        (
            f"{'★ ' if p.essential else ''}{p.authors} ({p.year})", f"*{p.title}*", p.published,
            p.read, p.lecture,
        )
        for p in tables.reading()
    ]  # fmt: skip
    return written_table(("who", "title", "where", "read", "lecture"), rows, "reading", 900)


def reasons_table() -> Html:
    """Five reasons for variants, and what the course found of each."""
    return _texts(
        "reason", {"name": "reason", "says": "they say", "found": "what the course found"}
    )


def card_table() -> Html:
    """How to read a model card."""
    return _texts("card", {"look": "look for", "why": "because", "ask": "ask"})


def leaderboard_table() -> Html:
    """How to read a leaderboard."""
    return _texts("board", {"look": "look for", "why": "because", "ask": "ask"})


def guidelines_table() -> Html:
    """A source lecture's guidelines, brought up to date."""
    return _texts("guideline", {"they_say": "they say", "it_is": "it is"})


def measures_table() -> Html:
    """A source lecture's lists of speed and memory, corrected."""
    return _texts("measure", {"they_say": "they say", "it_is": "it is"})


def _texts(name: str, head: dict[str, str]) -> Html:
    rows = [[row[key] for key in head] for row in tables.rows(name)]
    return written_table(list(head.values()), rows, f"table-{name}")


def glue_comparison() -> Html:
    """A source lecture's GLUE table beside what published rows give, a recipe a column. A dash: no
    paper prints what the recipe needs. Compare within a column alone."""
    rows = [
        (
            c.model, f"{c.printed:.1f}", c.what,
            *(" / ".join(f"{mean:.1f}" for mean in c.by_recipe.get(recipe, ())) or "–"
              for recipe in tables.SINGLE),
            c.cost, "–" if c.flops is None else f"{c.flops:.1f}×",
        )
        for c in tables.compared()
    ]  # fmt: skip
    return written_table(GLUE_HEAD, rows, "glue-compared", 900)


def rankings_table() -> Html:
    """Rankings, each by one number."""
    rows = [
        (ranked.by, " > ".join(f"{name} {value}" for name, value in ranked.order), ranked.source)
        for ranked in tables.rankings()
    ]
    return written_table(("by", "best first", "source"), rows, "rankings", 900)


def interfaces_table() -> Html:
    """What the Auto classes make of each member's checkpoint, as installed here."""
    head = (
        "member", "a pair is", "segment ids", "rows for them", "ids 0 and 1",
        "pooler", "output", "classifier: layers missing",
    )  # fmt: skip
    rows = [
        (
            one.member, one.written.replace(" ", "\u00a0"), _ids(one),
            f"{one.type_vocab_size}", one.segment_use, one.pooler,
            ", ".join(f"`{name}`" for name in one.outputs),
            ", ".join(f"`{name}`" for name in _layers(one)),
        )
        for one in asked.interfaces()
    ]  # fmt: skip
    return written_table(head, rows, "interfaces", 1000)


def _layers(one: asked.Interface) -> list[str]:
    """The missing weights' layers, each once."""
    return list(dict.fromkeys(name.rpartition(".")[0] for name in one.missing))


def _ids(one: asked.Interface) -> str:
    """What the tokenizer gives unasked, and otherwise."""
    if one.types:
        return "0 and 1" if 1 in one.types else "all 0"
    return "none; 0 and 1 if asked" if 1 in one.requested else "none; all 0 if asked"
