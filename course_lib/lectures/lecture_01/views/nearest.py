"""Nearest words: of one static table and another, and of one occurrence in every layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.page import Html, Live, card, paragraphs, table_row
from course_lib.teaching.playgrounds import choice, playground, slider, text_field
from course_lib.text.characters import words_of

from ..senses import Mention, Vectors, first_mentions

if TYPE_CHECKING:
    from course_lib.text.static_vectors import StaticVectors
    from course_lib.text.world import MicroWorld

AROUND = 5  # words shown on either side of an occurrence


# ---------------------------------------------------------------- static vectors


def neighbours_view(tables: Mapping[str, StaticVectors], word: str, k: int = 8) -> Live:
    """The nearest words of a word in each table, side by side. Controls: word, and how many.

    A word that a table does not know is answered in the view."""
    controls = {
        "word": text_field("word", word, continuous_update=False),
        "k": slider("how many", k, 3, 15),
    }
    return playground(partial(neighbours_picture, tables), controls)


def neighbours_picture(tables: Mapping[str, StaticVectors], word: str, k: int) -> Html:
    """A row a neighbour, a pair of columns a table."""
    word = word.strip().lower()
    neighbours = {name: table.neighbours(word, k) for name, table in tables.items()}
    lines = [
        f"{name}, nearest to “{word}”: " + ", ".join(f"{other} {c:.2f}" for other, c in near)
        for name, near in neighbours.items()
    ]
    return Html(card(side_by_side(neighbours, "cosine", ".2f"), "neighbours"), "\n".join(lines))


def side_by_side(
    columns: Mapping[str, Sequence[tuple[str, float]]], called: str, written: str
) -> str:
    """HTML: a table with two columns for each list of words and their numbers; called: the heading
    of the numbers, written: their format."""
    heads = [part for name in columns for part in (name, called)]
    sides = ("left", "right") * len(columns)
    body = "".join(
        table_row("td", [part for word, x in row for part in (word, format(x, written))], sides)
        for row in zip(*columns.values(), strict=True)
    )
    head = table_row("th", heads, sides)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


# ---------------------------------------------------------------- an occurrence, layer by layer


@dataclass(frozen=True)
class Occurrences:
    """N mentions of words, their senses in words, and their vectors in every layer of a model."""

    mentions: list[Mention]
    senses: list[str]
    layers: dict[str, Tensor]  # layer -> (N, H), each row of length one
    vectors: Vectors

    def nearest(
        self, words: Sequence[str], position: int, layer: str, k: int
    ) -> list[tuple[int, float]]:
        """The k mentions of the word at `position` whose vectors in this layer have the greatest
        cosine with its own: (number, cosine). Raises ValueError where it is not mentioned."""
        word = words[position]
        among = [n for n, m in enumerate(self.mentions) if m.words[m.at] == word]
        if not among:
            known = ", ".join(sorted({m.words[m.at] for m in self.mentions}))
            raise ValueError(f"“{word}” was picked; expected a word with two senses: {known}.")
        query = self.vectors([Mention(tuple(words), position, 0, "")])[layer][0]  # (H,)
        cosines = self.layers[layer][among] @ F.normalize(query, dim=0)
        best = cosines.topk(min(k, len(among)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(among[n], cosine) for n, cosine in pairs]


def index_occurrences(
    mentions: Sequence[Mention], senses: Mapping[str, Sequence[str]], vectors: Vectors
) -> Occurrences:
    """The layers of all these mentions; senses: word -> what its senses 0 and 1 are called."""
    names = [senses[m.words[m.at]][m.sense] for m in mentions]
    whole = {name: v for name, v in vectors(mentions).items() if name.isdecimal()}
    layers = {name: F.normalize(states, dim=-1) for name, states in whole.items()}
    return Occurrences(list(mentions), names, layers, vectors)


def some_mentions(world: MicroWorld, each: int = 12, stories: int = 4_000) -> list[Mention]:
    """The first mention of a two-sense word in training stories, up to `each` of every sense."""
    seen, mentions = Counter[tuple[str, int]](), []
    for mention in first_mentions(world, world.stories(stories, seed=7), whole=True):
        word_sense = mention.words[mention.at], mention.sense
        seen[word_sense] += 1
        mentions += [mention] * (seen[word_sense] <= each)
    return mentions


def layers_view(
    indexes: Mapping[str, Occurrences], texts: Mapping[str, tuple[str, int]], k: int = 6
) -> Live:
    """A text of the reader's own: the mentions nearest to one of its words, in one layer.

    indexes: model -> its occurrences; texts: model -> a text to begin with, and which of its words
    (from 1). Controls: model, text, word, layer. What cannot be read is answered in the view."""
    most = max(len(index.layers) for index in indexes.values()) - 1
    first = next(iter(indexes))
    text, word = texts[first]
    controls = {
        "model": choice("model", first, indexes),
        "text": text_field("text", text, continuous_update=False),
        "word": slider("word, counted from 1", word, 1, 24),
        "layer": slider("layer", most, 0, most),
    }

    def begin_anew(change: Any) -> None:
        controls["text"].value, controls["word"].value = texts[change["new"]]

    controls["model"].observe(begin_anew, names="value")

    def draw(model: str, text: str, word: int, layer: int) -> Html:
        words = words_of(text)
        if not words:
            raise ValueError("The text is empty; expected at least one word.")
        layer = min(layer, len(indexes[model].layers) - 1)
        return occurrences_picture(indexes[model], model, words, word, layer, k)

    examples = [(first, 0), *((name, len(index.layers) - 1) for name, index in indexes.items())]
    pictures = [
        occurrences_picture(indexes[name], name, words_of(texts[name][0]), texts[name][1], layer, k)
        for name, layer in examples
    ]
    html, text_twin = "".join(one.html for one in pictures), "\n".join(one.text for one in pictures)
    return playground(draw, controls, Html(html, text_twin))


def occurrences_picture(
    index: Occurrences, name: str, words: Sequence[str], word: int, layer: int, k: int
) -> Html:
    """The nearest mentions, one below the other, each in its sentence. word: from 1; beyond the
    text, its last."""
    position = min(word, len(words)) - 1
    near = index.nearest(words, position, str(layer), k)
    rows, lines = "", []
    for row, cosine in near:
        m, sense = index.mentions[row], index.senses[row]
        before = " ".join(m.words[max(0, m.at - AROUND) : m.at])
        after = " ".join(m.words[m.at + 1 : m.at + 1 + AROUND])
        lines.append(f"{cosine:.2f} {before} «{m.words[m.at]}» {after} [{sense}]")
        rows += _row(cosine, before, m.words[m.at], after, sense)
    title = f"{name}, layer {layer}: nearest to “{words[position]}” in “{' '.join(words)}”"
    html = f'<table style="border-collapse:collapse;background:#fff"><tbody>{rows}</tbody></table>'
    counts = Counter(index.senses[row] for row, _ in near).most_common()
    listed = ", ".join(f"{n} {sense}" for sense, n in counts)
    summary = f"Of the {len(near)} nearest: {listed}."
    return Html(
        card(f"<strong>{escape(title)}</strong>{html}{paragraphs([summary])}", "occurrences", 800),
        "\n".join([title, *lines, summary]),
    )


def _row(cosine: float, before: str, word: str, after: str, sense: str) -> str:
    style = "padding:1px 6px;white-space:nowrap;color:#1a1a1a;background:#fff;font-size:13px"
    bold = "font-weight:650;text-decoration:underline"
    cells = (
        (f"{cosine:.2f}", "right"), (escape(before), "right"),
        (f'<span style="{bold}">{escape(word)}</span>', "center"), (escape(after), "left"),
        (f"<em>{escape(sense)}</em>", "left"),
    )  # fmt: skip
    inside = "".join(f'<td style="{style};text-align:{side}">{cell}</td>' for cell, side in cells)
    return f'<tr style="background:#fff">{inside}</tr>'
