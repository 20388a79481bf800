"""`05_lengths`: what the lengths of two segments say of their order, and how soon a model finds it.

A pair is made in one of WAYS. On the documentation of what is installed, a classifier sees nothing
but the two lengths. Then the same sentences get random words, so that nothing else is left, and a
small BERT is trained on their order. Beside it, what words tell of NSP's pairs and of SOP's in the
same documentation: the zero lines of both tasks on real text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from course_lib.objectives.next_sentence import (
    SPECIALS_IN_A_PAIR,
    Document,
    Pair,
    PairsOfDocument,
    join,
    make_pairs,
    pack_pairs,
    take_sentences,
    truncate_pair,
)
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sentence_order import (
    IN_ORDER,
    SWAPPED,
    make_ordered_pairs,
    ordered_pairs_of_document,
    sentence_order_loss,
)
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.teaching.results import kept, made_with
from course_lib.text.world import MicroWorld
from course_lib.train.baselines import PAIR_FEATURES, bag_of_words_accuracy
from course_lib.train.loop import fit
from course_lib.train.metrics import evaluate
from course_lib.train.pretrain_recipe import TextPart
from course_lib.train.pretrain_text import Reading, read_text

from .recipes import LIVE, AlbertRecipe, small_albert

LENGTHS, SEEDS, DOCUMENTS = (32, 64, 128), range(3), 2_000
# Every block with weights of its own: sharing plays no part in this.
READER = replace(LIVE, steps=300, length=32, sharing="none", embedding_size=128)


def forward_pairs(
    documents: Sequence[Document],
    index: int,
    draw: random.Random,
    length: int,
    short_share: float = 0.0,
    *,
    swap_first: bool,
) -> list[Pair]:
    """The pairs of a document cut from its start; swap_first: before they are shortened, as in
    ALBERT's program (whose pairs with a B from elsewhere are left out), or after."""
    document, room, pairs, start = documents[index], length - SPECIALS_IN_A_PAIR, [], 0
    while start < len(document):
        chunk = take_sentences(document, start, room)
        start += len(chunk)
        if len(chunk) > 1:
            split = draw.randint(1, len(chunk) - 1)
            a, b, label = join(chunk[:split]), join(chunk[split:]), IN_ORDER
            if not swap_first:
                a, b = truncate_pair(a, b, room, draw)
            if draw.random() < 0.5:
                a, b, label = b, a, SWAPPED
            pairs.append((*truncate_pair(a, b, room, draw), label))
    return pairs


WAYS: dict[str, PairsOfDocument] = {
    "shortened, then swapped": partial(forward_pairs, swap_first=False),
    "swapped, then shortened": partial(forward_pairs, swap_first=True),
    "cut from either end as well": ordered_pairs_of_document,
}


def pairs_made(
    way: str, documents: Sequence[Document], special: SpecialIds, length: int
) -> PackedSequences:
    """The pairs of all documents, none made short on purpose."""
    return pack_pairs(documents, special, WAYS[way], length, 0, short_share=0.0, fewest=1)


def guessed_by_length(reading: Reading) -> dict[str, dict[str, float]]:
    """For each length and way: accuracy on held-out pairs of a classifier that sees lengths."""

    def accuracy(way: str, length: int) -> float:
        train, heldout = (
            pairs_made(way, split[:DOCUMENTS], reading.tokenizer.special, length)
            for split in reading.documents
        )
        return bag_of_words_accuracy(train, heldout, reading.tokenizer.special, kind="lengths")

    return {str(length): {way: accuracy(way, length) for way in WAYS} for length in LENGTHS}


def without_transformer(
    train: PackedSequences, heldout: PackedSequences, special: SpecialIds
) -> dict[str, float]:
    """What needs no Transformer: the majority class; a bag of the words both segments
    share; one that keeps apart which words stand in which segment; and the lengths alone."""
    label = heldout.next_sentence_label
    assert label is not None
    ones = label.float().mean().item()
    bags = {
        kind: bag_of_words_accuracy(train, heldout, special, kind=kind) for kind in PAIR_FEATURES
    }
    return {"commoner label": max(ones, 1 - ones), **bags, "pairs": len(heldout)}


def guessed_by_words(reading: Reading) -> dict[str, dict[str, dict[str, float]]]:
    """For each length and task: `without_transformer` on the documentation's pairs."""
    special = reading.tokenizer.special
    levels: dict[str, dict[str, dict[str, float]]] = {}
    for length in LENGTHS[1:]:
        of_task = levels[str(length)] = {}
        for task, make in (("NSP", make_pairs), ("SOP", make_ordered_pairs)):
            train, heldout = (
                make(split[:DOCUMENTS], special, length=length) for split in reading.documents
            )
            of_task[task] = without_transformer(train, heldout, special)
    return levels


def without_meaning(documents: Sequence[Document], vocab_size: int, seed: int) -> list[Document]:
    """The same sentences, as long as they were, of words drawn at random."""
    draw = random.Random(seed)
    return [
        [[draw.randrange(5, vocab_size) for _ in sentence] for sentence in document]
        for document in documents
    ]


def learned_from_lengths(
    way: str, reading: Reading, world: MicroWorld, recipe: AlbertRecipe, seed: int
) -> dict[str, Any]:
    """A small BERT trained on the order of sentences without meaning: its accuracy on others."""

    def run() -> dict[str, Any]:
        train, heldout = (
            pairs_made(way, without_meaning(split[:DOCUMENTS], world.special.vocab_size, index),
                       world.special, recipe.length)
            for index, split in enumerate(reading.documents)
        )  # fmt: skip
        model = small_albert(recipe, world, seed)
        fit(
            model, sentence_order_loss,
            pretraining_batches(
                train, world.special, batch_size=recipe.batch_size, rate=0.0, seed=seed
            ),
            steps=recipe.steps, seed=seed, learning_rate=recipe.learning_rate, precision="float32",
        )  # fmt: skip
        scores = evaluate(model, heldout, world.special, precision="float32")
        return {"seed": seed, "SOP": scores.pair_accuracy}

    settings = {"way": way, "seed": seed, "read": reading.about["hash"], **asdict(recipe)}
    return kept(f"05-lengths-{way}-{seed}".replace(" ", "-"), settings, world, run)


def build() -> dict[str, Any]:
    """What data/results/05_lengths.json holds."""
    world, reading = (
        MicroWorld.load(),
        read_text(TextPart("documentation", vocabulary="course-bert")),
    )
    return {
        "recipes": dict.fromkeys(WAYS, asdict(READER)),
        **made_with(world, "float32"),
        "read": reading.about,
        "guessed": guessed_by_length(reading),
        "words": guessed_by_words(reading),
        "runs": {
            way: [learned_from_lengths(way, reading, world, READER, seed) for seed in SEEDS]
            for way in WAYS
        },
    }
