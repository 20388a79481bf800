"""Mentions found in a text of the reader's own, and dEA's noise on them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from course_lib.objectives.entity_alignment import DEA_MIX, spoil_alignments
from course_lib.teaching.page import Html, Live, card, note, paragraphs
from course_lib.teaching.playgrounds import (
    check_words,
    one_row,
    percent_slider,
    playground,
    slider,
    text_field,
)
from course_lib.teaching.tokens import KEPT, MASKED, PLAIN, REPLACED, boxes_legend, tokens_row
from course_lib.text.knowledge_graph import align, find_mentions

if TYPE_CHECKING:
    from course_lib.text.knowledge_graph import KnowledgeGraph
    from course_lib.text.wordpiece import WordPiece

MOST_TOKENS = 64
LOOKS = {"kept": KEPT, "another": REPLACED, "taken away": MASKED}
KINDS = (("word", KEPT, "entity kept"), ("word", REPLACED, "another entity"),
         ("word", MASKED, "entity taken away"))  # fmt: skip


def linked_view(graph: KnowledgeGraph, tokenizer: WordPiece, text: str, seed: int = 0) -> Live:
    """An own text, the entities it names, and what dEA makes of them. Controls: text, another and
    removed (probabilities of the noise), seed."""
    controls = {
        "text": text_field("text", text),
        "another": percent_slider("another entity", DEA_MIX[0], 0.5),
        "removed": percent_slider("entity taken away", DEA_MIX[1], 0.5),
        "seed": slider("seed", seed, 0, 50),
    }
    return playground(partial(linked_picture, graph, tokenizer), controls)


def linked_picture(
    graph: KnowledgeGraph,
    tokenizer: WordPiece,
    text: str,
    another: float = DEA_MIX[0],
    removed: float = DEA_MIX[1],
    seed: int = 0,
) -> Html:
    """The text with the entity of each token under it, and after the noise. Raises ValueError for
    a text without words, with unknown ones or too long."""
    check_words(tokenizer, text, MOST_TOKENS)
    sequences = one_row(tokenizer, text)
    mentions = find_mentions(graph, tokenizer, sequences)
    entity_ids = align(mentions, tuple(sequences.input_ids.shape), len(graph.entities))  # type: ignore[arg-type]
    spoilt = spoil_alignments(
        entity_ids, len(graph.entities), torch.Generator().manual_seed(seed),
        (another, removed, round(1 - another - removed, 9)),
    )  # fmt: skip
    tokens = [tokenizer.token(i) for i in sequences.input_ids[0].tolist()]
    before, after = entity_ids[0].tolist(), spoilt[0].tolist()
    fates = [_fate(*pair) for pair in zip(before, after, strict=True)]
    labels = [_label(graph, *pair) for pair in zip(before, after, strict=True)]
    row = tokens_row(tokens, [LOOKS.get(fate, PLAIN) for fate in fates], labels)
    lines = linked_in_words(graph, mentions, fates)
    html = row.inner + boxes_legend(KINDS) + (paragraphs(lines) if mentions else note(lines[0]))
    return Html(card(html, "linked", 800), "\n".join([row.text, *lines]))


def linked_in_words(graph: KnowledgeGraph, mentions: list[Any], fates: list[str]) -> list[str]:
    """How many mentions there are, and what became of each."""
    if not mentions:
        return ["No entity of the graph is named here; the fusion blocks then work as BERT's do."]
    fates_text = "; ".join(f"{graph.entities[m.entity]}: {fates[m.start]}" for m in mentions)
    return [f"{len(mentions)} mentions. {fates_text}.",
            "At each of their tokens the model must say which entity belongs there."]  # fmt: skip


def _fate(before: int, after: int) -> str:
    if before < 0:
        return ""
    return "kept" if after == before else "taken away" if after < 0 else "another"


def _label(graph: KnowledgeGraph, before: int, after: int) -> str:
    if before < 0:
        return ""
    return "none" if after < 0 else graph.entities[after]
