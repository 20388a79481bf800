"""Nearest words: of one static table and another, and of one occurrence in every layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from course_lib.teaching.page import Html, Live, card, paragraphs, table_row
from course_lib.teaching.playgrounds import playground

if TYPE_CHECKING:
    from torch import Tensor

    from course_lib.text.static_vectors import StaticVectors

Sentence = Sequence[str]
Read = Callable[[Sequence[Sentence]], "list[Tensor]"]  # sentences -> of each (L + 1, T, H)
AROUND = 5  # words shown on either side of an occurrence


# ---------------------------------------------------------------- static vectors


def neighbours_view(tables: Mapping[str, StaticVectors], word: str, k: int = 8) -> Live:
    """The nearest words of a word in each table, side by side. Controls: word, and how many.

    A word that a table does not know is answered in the view."""
    import ipywidgets as w

    controls = {
        "word": w.Text(value=word, description="word", continuous_update=False),
        "k": w.IntSlider(value=k, min=3, max=15, description="how many"),
    }

    def draw(word: str, k: int) -> str:
        return neighbours_picture(tables, word.strip().lower(), k).html

    return playground(draw, controls, neighbours_picture(tables, word, k))


def neighbours_picture(tables: Mapping[str, StaticVectors], word: str, k: int) -> Html:
    """A row a neighbour, a pair of columns a table."""
    found = {name: table.neighbours(word, k) for name, table in tables.items()}
    said = [
        f"{name}, nearest to “{word}”: " + ", ".join(f"{other} {c:.2f}" for other, c in near)
        for name, near in found.items()
    ]
    heads = [part for name in found for part in (name, "cosine")]
    rows = zip(*found.values(), strict=True)
    body = "".join(
        table_row("td", [part for other, c in row for part in (other, f"{c:.2f}")],
                  ("left", "right") * len(found))
        for row in rows
    )  # fmt: skip
    head = table_row("th", heads, ("left", "right") * len(found))
    return Html(
        card(f"<table><thead>{head}</thead><tbody>{body}</tbody></table>", "neighbours"),
        "\n".join(said),
    )


# ---------------------------------------------------------------- an occurrence, layer by layer


@dataclass(frozen=True)
class Occurrences:
    """N words where they stand: of each its sentence, its position, and a label (its topic)."""

    sentences: list[Sentence]
    labels: list[str]
    at: list[tuple[int, int]]  # (sentence, position), N of them
    vectors: Tensor  # (L + 1, N, H), each of length one
    read: Read

    def nearest(
        self, sentence: Sentence, position: int, layer: int, k: int
    ) -> list[tuple[int, float]]:
        """The k occurrences whose vectors in this layer have the greatest cosine with the word at
        `position` of the sentence: (number, cosine). Raises ValueError for a position or a layer
        that is none."""
        layers = len(self.vectors)
        if not 0 <= position < len(sentence) or not 0 <= layer < layers:
            raise ValueError(
                f"word {position + 1} of {len(sentence)} and layer {layer} of 0 to {layers - 1} "
                "were asked for; expected a word of the sentence and a layer of the model."
            )
        query = self.read([sentence])[0][layer, position]
        cosines = self.vectors[layer] @ (query / query.norm().clamp(min=1e-12))  # (N,)
        best = cosines.topk(min(k, len(self.at)))
        return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))

    def around(self, number: int) -> tuple[str, str, str]:
        """An occurrence: what stands before it, the word, what stands after it."""
        sentence, position = self.at[number]
        words = self.sentences[sentence]
        before, after = words[max(0, position - AROUND) : position], words[position + 1 :]
        return " ".join(before), words[position], " ".join(after[:AROUND])


def index_occurrences(
    sentences: Sequence[Sentence], labels: Sequence[str], read: Read, shortest: int = 3
) -> Occurrences:
    """Every word of `shortest` letters or more, with its vector in every layer of the model."""
    import torch
    import torch.nn.functional as F

    states = read(sentences)  # of each (L + 1, T, H)
    at = [
        (s, t)
        for s, words in enumerate(sentences)
        for t, word in enumerate(words)
        if len(word) >= shortest
    ]
    first = [0]
    for words in sentences:
        first.append(first[-1] + len(words))
    chosen = torch.tensor([first[s] + t for s, t in at])
    vectors = torch.cat(states, dim=1)[:, chosen]  # (L + 1, N, H)
    kept = [list(words) for words in sentences]
    return Occurrences(kept, list(labels), at, F.normalize(vectors, dim=-1), read)


def layers_view(
    indexes: Mapping[str, Occurrences], sentence: str, word: int, layer: int = 0, k: int = 8
) -> Live:
    """A sentence of the reader's own: the occurrences nearest to one of its words, in one layer.

    indexes: model -> its occurrences. word: counted from 1. Controls: model, sentence, word, layer.
    What cannot be read is answered in the view."""
    import ipywidgets as w

    most = max(len(index.vectors) for index in indexes.values()) - 1
    first = next(iter(indexes))
    controls = {
        "model": w.Dropdown(options=list(indexes), description="model"),
        "sentence": w.Text(value=sentence, description="sentence", continuous_update=False),
        "word": w.IntSlider(value=word, min=1, max=12, description="word, counted from 1"),
        "layer": w.IntSlider(value=layer, min=0, max=most, description="layer"),
    }

    def draw(model: str, sentence: str, word: int, layer: int) -> str:
        words = sentence.lower().split()
        if not words:
            raise ValueError("The sentence is empty; expected at least one word.")
        index = indexes[model]
        word, layer = min(word, len(words)), min(layer, len(index.vectors) - 1)
        return occurrences_picture(index, model, words, word - 1, layer, k).html

    words = sentence.split()
    last = len(indexes[first].vectors) - 1
    both = [occurrences_picture(indexes[first], first, words, word - 1, at, k) for at in (0, last)]
    static = Html("".join(one.html for one in both), "\n".join(one.text for one in both))
    return playground(draw, controls, static)


def occurrences_picture(
    index: Occurrences, name: str, sentence: Sentence, position: int, layer: int, k: int
) -> Html:
    """The nearest occurrences, one below the other, each in its sentence."""
    near = index.nearest(sentence, position, layer, k)
    word = sentence[position]
    rows, lines = "", []
    for number, cosine in near:
        before, there, after = index.around(number)
        label = index.labels[index.at[number][0]]
        lines.append(f"{cosine:.2f} {before} «{there}» {after} [{label}]")
        rows += _row(cosine, before, there, after, label)
    title = f"{name}, layer {layer}: nearest to “{word}” in “{' '.join(sentence)}”"
    style = "border-collapse:collapse;background:#fff"
    html = f'<table style="{style}"><tbody>{rows}</tbody></table>'
    said = _counted(index, near, word)
    return Html(
        card(f"<strong>{escape(title)}</strong>{html}{paragraphs([said])}", "occurrences", 800),
        "\n".join([title, *lines, said]),
    )


def _row(cosine: float, before: str, word: str, after: str, label: str) -> str:
    style = "padding:1px 6px;white-space:nowrap;color:#1a1a1a;background:#fff;font-size:13px"
    bold = "font-weight:650;text-decoration:underline"
    cells = (
        (f"{cosine:.2f}", "right"), (escape(before), "right"),
        (f'<span style="{bold}">{escape(word)}</span>', "center"), (escape(after), "left"),
        (f"<em>{escape(label)}</em>", "left"),
    )  # fmt: skip
    inside = "".join(f'<td style="{style};text-align:{side}">{cell}</td>' for cell, side in cells)
    return f'<tr style="background:#fff">{inside}</tr>'


def _counted(index: Occurrences, near: Sequence[tuple[int, float]], word: str) -> str:
    """How many are the same word, and from which topics."""
    same = sum(index.around(number)[1] == word for number, _ in near)
    topics: dict[str, int] = {}
    for number, _ in near:
        label = index.labels[index.at[number][0]]
        topics[label] = topics.get(label, 0) + 1
    listed = ", ".join(f"{n} {label}" for label, n in sorted(topics.items(), key=lambda i: -i[1]))
    return f"Of the {len(near)} nearest, {same} are the word “{word}” itself. From: {listed}."
