"""The world's facts as a graph one can read, and TransE's steps in it."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import torch

from course_lib.objectives.transe import distances
from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import choice, playground, text_field
from course_lib.teaching.style import BLUE, FAINT, VERMILION
from course_lib.teaching.svg import TIP, arrow, bar, dot, drawing, line, picture, rect, words

if TYPE_CHECKING:
    from course_lib.objectives.transe import Translations
    from course_lib.text.knowledge_graph import KnowledgeGraph

Fact = tuple[str, str, str]
FILLS = {  # what an entity is -> ground and ink of its box
    "people": ("#e1eef7", BLUE), "guests": ("#e1eef7", BLUE), "cities": ("#e0f3ed", "#00745a"),
    "country": ("#fdf1d6", "#8a5f00"), "job": ("#fbe6da", VERMILION),
    "animal": ("#fbe6da", VERMILION), "foods": ("#f4f4f4", "#666666"),
    "sites": ("#f7e6f0", "#9c4a78"),
}  # fmt: skip
OTHERS = 3  # facts that lead to an entity, and that are drawn
NEAREST = 6  # entities listed behind a step

# ---------------------------------------------------------------- the graph


def graph_view(graph: KnowledgeGraph, entity: str) -> Live:
    """What the graph says of an entity, and of what those facts lead to. Control: entity, a text.

    An entity that is not in the graph is answered in the view."""
    control = text_field("entity", entity, continuous_update=False)
    return playground(partial(graph_picture, graph), {"entity": control})


def graph_picture(graph: KnowledgeGraph, entity: str) -> Html:
    """The entity in the middle; right of it what its facts name, and what those lead to; left some
    of those whose facts name it. Raises ValueError for an entity that is not in the graph."""
    entity = entity.strip().lower()
    here = graph.about(entity)
    out = [fact for fact in here if fact[0] == entity]
    into = [fact for fact in here if fact[2] == entity]
    height = max(80 * max(len(out), min(len(into), OTHERS), 1), 120)
    facts = [f"{h} —{r}→ {t}" for h, r, t in [*out, *into[:OTHERS]]]
    more = len(into) - OTHERS
    facts += [f"and {more} more that lead to {entity}"] * (more > 0)
    parts = [TIP, *graph_parts(graph, entity, out, into[:OTHERS], height)]
    return picture("graph", 960, height, parts, "; ".join(facts) + ".", card_width=960)


def graph_parts(
    graph: KnowledgeGraph, entity: str, out: list[Fact], into: list[Fact], height: float
) -> list[str]:
    """What the picture consists of, 960 pixels wide."""
    parts, middle = [], height / 2
    for n, (head, relation, _) in enumerate(into):
        y = height * (n + 0.5) / len(into)
        parts += [*_edge(170, y, 278, middle, relation), _node(graph, head, 4, y)]
    for n, (_, relation, tail) in enumerate(out):
        y = height * (n + 0.5) / len(out)
        parts += [*_edge(448, middle, 546, y, relation), _node(graph, tail, 548, y)]
        further = [fact for fact in graph.about(tail) if fact[0] == tail][:1]
        for _, relation, last in further:
            parts += [*_edge(714, y, 788, y, relation), _node(graph, last, 790, y)]
    return [*parts, _node(graph, entity, 280, middle, stroke=3.5)]


def _node(graph: KnowledgeGraph, name: str, x: float, y: float, stroke: float = 1.8) -> str:
    fill, ink = FILLS.get(graph.kinds[graph.number(name)], ("#fff", "#666"))
    size = 17 if len(name) < 17 else 14
    return rect(x, y - 19, 166, 38, escape(name), fill=fill, ink=ink, wide=stroke, size=size)


def _edge(x: float, y: float, to_x: float, to_y: float, relation: str) -> list[str]:
    label = (x + to_x) / 2, (y + to_y) / 2 - 6, escape(relation), 15
    ground = words(*label, style=' stroke="#fff" stroke-width="5"')
    return [arrow(round(x), round(y), round(to_x), round(to_y)), ground, words(*label)]


# ---------------------------------------------------------------- a step by hand

TOWNS = {"aldham": (1.0, 1.0), "bering": (1.0, 3.0), "north": (4.0, 1.5), "south": (4.0, 3.5)}
STEP = (3.0, 0.5)  # the relation "country"


def step_drawing() -> Html:
    """Two towns, two countries and one relation as points and steps in a plane."""
    sentence = (
        "In a plane, two towns at the left and two countries at the right. The same arrow, the "
        "relation “country”, leads from each town to its own country."
    )
    return drawing(560, 300, step_parts(), sentence)


def step_parts(scale: float = 1.0) -> list[str]:
    """What the drawing consists of, for the deck too; the axes are numbered."""

    def place(at: tuple[float, float]) -> tuple[float, float]:
        return scale * (40 + 100 * at[0]), scale * (280 - 66 * at[1])

    parts, size = [], 17 * scale
    for n in range(6):
        (x, low), (left, y) = place((n, 0)), place((0, n * 0.8))
        parts.append(line(x, low, x, scale * 16, ink=FAINT))
        parts.append(line(left, y, scale * 545, y, ink=FAINT))
        parts.append(words(x, low + 18 * scale, str(n), 0.8 * size))
        if n:
            parts.append(words(left - 10 * scale, y + 5 * scale, f"{0.8 * n:g}", 0.8 * size, "end"))
    for town in list(TOWNS)[:2]:
        x, y = place(TOWNS[town])
        to_x, to_y = place((TOWNS[town][0] + STEP[0], TOWNS[town][1] + STEP[1]))
        parts.append(arrow(round(x), round(y), round(to_x - 9 * scale), round(to_y + 2)))
        parts.append(words((x + to_x) / 2, (y + to_y) / 2 - 10, "country", 0.9 * size))
    for name, at in TOWNS.items():
        (x, y), left_one = place(at), at[0] < 2
        ink = "#00745a" if left_one else "#8a5f00"
        parts.append(dot(x, y, 7 * scale, ink))
        dx, dy, side = (-2, 28, "middle") if left_one else (14, 6, "start")
        parts.append(words(x + dx * scale, y + dy * scale, name, size, side))
    return parts


# ---------------------------------------------------------------- learned steps


def steps_view(graph: KnowledgeGraph, vectors: Translations, entity: str, relation: str) -> Live:
    """Take a step from an entity: which entities lie nearest to head + relation? Controls: entity,
    relation."""
    controls = {
        "entity": text_field("head", entity, continuous_update=False),
        "relation": choice("relation", relation, graph.relations),
    }
    return playground(partial(step_picture, graph, vectors), controls)


def nearest_tails(
    graph: KnowledgeGraph, vectors: Translations, entity: str, relation: str
) -> list[tuple[str, float]]:
    """All entities with their distances from head + relation, the nearest first."""
    head, r = graph.number(entity), graph.relations.index(relation)
    K = len(graph.entities)
    rows = torch.tensor([[head, r, t] for t in range(K)])
    d = distances(vectors, rows).tolist()
    return [(graph.entities[t], d[t]) for t in sorted(range(K), key=d.__getitem__)]


def step_picture(graph: KnowledgeGraph, vectors: Translations, entity: str, relation: str) -> Html:
    """The nearest entities as bars of their distances; what the graph says is marked."""
    entity = entity.strip().lower()
    order = nearest_tails(graph, vectors, entity, relation)
    right = {t for h, r, t in graph.about(entity) if (h, r) == (entity, relation)}
    rows, longest = [], order[NEAREST - 1][1]
    for n, (name, d) in enumerate(order[:NEAREST]):
        fact = name in right
        look: dict[str, Any] = {"fill": "#fff", "ink": "#8a8a8a", "wide": 1.5}
        look |= {"fill": "#e0f3ed", "ink": "#00745a", "wide": 3} if fact else {}
        label = f"{d:.2f}" + " ✓ a fact" * fact
        rows.append(bar(260, 30 * n + 4, max(300 * d / longest, 2), 22, escape(name), label,
                        size=16, **look))  # fmt: skip
    sentence = f"Nearest to {entity} + {relation}: {order[0][0]}. {_verdict(order, right)}"
    return picture("steps", 680, 30 * NEAREST, rows, sentence, card_width=800)


def _verdict(order: list[tuple[str, float]], right: set[str]) -> str:
    places = {name: n for n, (name, _) in enumerate(order, 1)}
    if not right:
        return "The graph has no such fact. The step still leads somewhere."
    return " ".join(
        f"The fact's tail, {name}, ranks {places[name]} of {len(order)}." for name in sorted(right)
    )
