"""Exercise 05.4: segments in order or swapped.

The solution first, then the stages. Every id of a drawn document occurs once in all documents, so
that a segment tells where it comes from.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    call,
    share_is,
)

Document = Sequence[Sequence[int]]  # sentences of ids
Pair = tuple[list[int], list[int], int]


def order_pairs(documents: Sequence[Document], rng: random.Random) -> list[Pair]:
    """One (a, b, label) for each document that can be split; label 0 in order, 1 swapped."""
    pairs = []
    for document in documents:
        if len(document) < 2:
            continue  # a single sentence has nothing to be swapped with
        split = rng.randint(1, len(document) - 1)
        first, second = list(chain(*document[:split])), list(chain(*document[split:]))
        swapped = rng.random() < 0.5
        pairs.append((second, first, 1) if swapped else (first, second, 0))
    return pairs


def _documents(draw: Draw, lengths: Sequence[int]) -> list[list[list[int]]]:
    """Documents of so many sentences, each of two to four ids that occur nowhere else."""
    number = 1_000
    documents = []
    for sentences in lengths:
        document = []
        for _ in range(sentences):
            size = draw.integer(2, 4)
            document.append(list(range(number, number + size)))
            number += size
        documents.append(document)
    return documents


def _call_pairs(answer: Answer, documents: list[Any], rng: random.Random) -> list[Pair]:
    given = call(answer, documents, rng)
    if not isinstance(given, (list, tuple)):
        raise Mistake(
            "wrong type",
            f"Your function returned a {type(given).__name__}; expected a list of (a, b, label).",
        )
    return [_checked(pair) for pair in given]


def _checked(pair: Any) -> Pair:
    if not isinstance(pair, (list, tuple)) or len(pair) != 3 or pair[2] not in (0, 1):
        raise Mistake(
            "wrong pair",
            f"One of your pairs is {pair!r}; expected (a, b, label) with label 0 or 1.",
        )
    for segment in pair[:2]:
        if not isinstance(segment, (list, tuple)):
            raise Mistake(
                "wrong pair",
                f"One of your segments is {segment!r}; expected a list of ids.",
            )
        if any(isinstance(id, (list, tuple)) for id in segment):
            raise Mistake(
                "not joined",
                f"One of your segments is {segment!r}, a list of sentences; expected one list of "
                "ids: join the sentences.",
            )
    return list(pair[0]), list(pair[1]), int(pair[2])


# ---------------------------------------------------------------- one pair


def _kind(pair: Pair, document: Document, documents: Sequence[Document]) -> tuple[bool, int]:
    """Whether the pair is swapped and where it was split; Mistake where it is neither of both."""
    a, b = pair[:2]
    whole = list(chain(*document))
    if not a or not b:
        raise Mistake(
            "empty segment",
            f"One of your pairs is {a!r}, {b!r}: a segment is empty. The split must leave at least "
            "one sentence on each side.",
        )
    if Counter(a + b) != Counter(whole):
        _name_elsewhere(pair, document, documents)
        _name_lost(pair, document)
    swapped = b + a == whole
    if not swapped and a + b != whole:
        _name_disorder(pair, document)
    first = b if swapped else a
    ends = [sum(map(len, document[:n])) for n in range(len(document) + 1)]
    if len(first) not in ends:
        raise Mistake(
            "cut inside a sentence",
            f"The document {document} was cut after {len(first)} ids, inside a sentence; cut "
            "between sentences.",
        )
    return swapped, ends.index(len(first))


def _name_elsewhere(pair: Pair, document: Document, documents: Sequence[Document]) -> None:
    home = {id: number for number, d in enumerate(documents) for id in chain(*d)}
    own = documents.index(document)
    places = [{home.get(id, -1) for id in segment} for segment in pair[:2]]
    if -1 in places[0] | places[1]:
        raise Mistake("wrong pair", "Some of your ids stand in no document.")
    if places[0] == places[1] == {own}:
        return
    if len(places[0]) == len(places[1]) == 1 and own in places[0] | places[1]:
        raise Mistake(
            "another document",
            f"A pair labelled {pair[2]} has a from document {min(places[0])} and b from document "
            f"{min(places[1])}. That is next sentence prediction: the topic gives it away. In SOP "
            "both segments come from one document.",
        )
    raise Mistake("", f"Pair {own} holds ids of the documents {sorted(places[0] | places[1])}.")


def _name_lost(pair: Pair, document: Document) -> None:
    a, b, _ = pair
    if list(a) in map(list, document) and list(b) in map(list, document):
        raise Mistake(
            "single sentences",
            f"From a document of {len(document)} sentences you took two, {a} and {b}. SOP works on "
            "segments: all sentences before the split, and all after it.",
        )
    if twice := [id for id, n in Counter(a + b).items() if n > 1]:
        raise Mistake(
            "overlap",
            f"Ids stand in both segments, or twice, for instance {twice[0]}: each sentence belongs "
            "to one side of the split.",
        )
    missing = [id for id in chain(*document) if id not in {*a, *b}]
    raise Mistake(
        "sentences lost",
        f"The ids {missing} of the document are in neither segment: document[:split] and "
        "document[split:] together hold every sentence.",
    )


def _name_disorder(pair: Pair, document: Document) -> None:
    a, b, label = pair
    whole = list(chain(*document))
    back = (a[::-1], b[::-1])
    parts = [(x, y) for x in (a, back[0]) for y in (b, back[1])]
    if any(whole in (x + y, y + x) for x, y in parts):
        raise Mistake(
            "tokens reversed",
            f"In the pair {a}, {b} (label {label}) the ids of a segment run backwards. Swap the "
            "two segments; each is read as it was written.",
        )
    first = {sentence[0]: list(sentence) for sentence in document}
    if all(list(chain(*(first.get(id, []) for id in segment))) == segment for segment in (a, b)):
        raise Mistake(
            "sentences reordered",
            f"In the pair {a}, {b} (label {label}) the sentences of a segment changed places. Only "
            "the two segments change places; inside each the order stays.",
        )
    raise Mistake("", f"The document {document} gave the pair {a}, {b} (label {label}).")


# ---------------------------------------------------------------- stages


def _one_each(given: list[Pair], documents: Sequence[Document]) -> list[tuple[bool, int, int]]:
    """(swapped, split, label) of each pair, one a document; Mistake where they do not line up."""
    if len(given) != len(documents):
        raise Mistake(
            "one pair a document",
            f"{len(documents)} documents of two and more sentences gave {len(given)} pairs; "
            "expected one for each.",
        )
    both = zip(given, documents, strict=True)
    return [(*_kind(pair, document, documents), pair[2]) for pair, document in both]


def _ask_segments(answer: Answer, draw: Draw) -> None:
    for lengths in ([2, 2], [3, 5, 4], [draw.integer(2, 6) for _ in range(12)]):
        documents = _documents(draw, lengths)
        _one_each(_call_pairs(answer, documents, draw.python), documents)


def _ask_labels(answer: Answer, draw: Draw) -> None:
    documents = _documents(draw, [draw.integer(2, 6) for _ in range(60)])
    found = _one_each(_call_pairs(answer, documents, draw.python), documents)
    swaps, labels = [s for s, _, _ in found], [bool(label) for _, _, label in found]
    if swaps == labels and any(swaps) and not all(swaps):
        return
    always = len(set(swaps)) == 1
    if always and len(set(labels)) > 1:
        raise Mistake(
            "only labels swapped",
            "Some pairs are labelled 1, but all segments stand in the same order: the label "
            "changes and the text does not. Swap the segments where the label is 1.",
        )
    if always:
        which = "swapped" if swaps[0] else "in order"
        raise Mistake(
            f"always {which}",
            f"All {len(found)} pairs are {which}; half of them should be, at random.",
        )
    if len(set(labels)) == 1:
        raise Mistake(
            "label never changes",
            f"Some pairs are swapped, but every label is {int(labels[0])}. Swapped pairs have the "
            "label 1.",
        )
    if swaps == [not label for label in labels]:
        raise Mistake(
            "labels reversed",
            "The labels are reversed: 0 is in order and 1 is swapped. (Natural or not: weights "
            "trained elsewhere expect it.)",
        )
    place = next(i for i, pair in enumerate(zip(swaps, labels, strict=True)) if pair[0] != pair[1])
    raise Mistake(
        "",
        f"Pair {place} is {'swapped' if swaps[place] else 'in order'} and has the label "
        f"{int(labels[place])}; 0 is in order, 1 is swapped.",
    )


def _ask_single(answer: Answer, draw: Draw) -> None:
    lengths = [1, 3, 1, 2, *(draw.integer(1, 3) for _ in range(8)), 1]
    documents = _documents(draw, lengths)
    given = _call_pairs(answer, documents, draw.python)
    long = [document for document in documents if len(document) > 1]
    if len(given) == len(documents):
        b_of_first = given[0][:2]
        if [] in b_of_first:
            raise Mistake(
                "single sentence kept",
                "A document of one sentence gave a pair with an empty segment; leave it out.",
            )
        raise Mistake(
            "as released",
            "A document of one sentence gave a pair as well, with a second segment from somewhere "
            "else. ALBERT's released generator does that, so that a few of its pairs ask for the "
            "topic after all. Leave such documents out.",
        )
    _one_each(given, long)


def _ask_split(answer: Answer, draw: Draw) -> None:
    sentences, number = 6, 300
    documents = _documents(draw, [sentences] * number)
    found = _one_each(_call_pairs(answer, documents, draw.python), documents)
    cuts = Counter(split for _, split, _ in found)
    if len(cuts) == 1:
        raise Mistake(
            "split not drawn",
            f"All {number} documents of {sentences} sentences were split before sentence "
            f"{min(cuts) + 1}. Draw the split: each of the {sentences - 1} places is possible.",
        )
    if never := sorted(set(range(1, sentences)) - set(cuts)):
        raise Mistake(
            "some splits never",
            f"None of {number} documents of {sentences} sentences was split after sentence "
            f"{never[0]}. rng.randint(1, n) includes both ends; range and randrange leave out the "
            "last.",
        )


def _ask_half(answer: Answer, draw: Draw) -> None:
    documents = _documents(draw, [2] * 1_500)
    seeds = [draw.integer(0, 2**31) for _ in range(2)]
    labels = [
        [label for *_, label in _call_pairs(answer, documents, random.Random(seed))]
        for seed in seeds
    ]
    if labels[0] == labels[1]:
        raise Mistake(
            "labels not drawn",
            "The labels are the same with another rng (do they alternate?). Draw each label.",
        )
    n, share = len(labels[0]), sum(labels[0]) / len(labels[0])
    if not share_is(share, 0.5, n):
        raise Mistake("not half", f"{share:.1%} of {n:,} pairs are swapped; expected half.")


def _ask_rng(answer: Answer, draw: Draw) -> None:
    documents, seed = _documents(draw, [5] * 60), draw.integer(0, 2**31)
    first, again = (_call_pairs(answer, documents, random.Random(seed)) for _ in range(2))
    if first != again:
        raise Mistake(
            "ignores the generator",
            "The same state of rng gave two different lists of pairs. Draw with rng.randint and "
            "rng.random, not from the module random, so that an experiment can be repeated.",
        )


ORDER = Exercise(
    id="05.4",
    title="In order, or swapped?",
    purpose="pairs that the topic cannot give away",
    difficulty=2,
    minutes=12,
    signature="my_order_pairs(documents, rng)",
    statement=(
        "`documents` is a list of documents, each a list of sentences, each a list of ids. Make "
        "one triple `(a, b, label)` of each document, in order of the documents: draw a split with "
        "at least one sentence on each side, join the sentences before it to one list of ids and "
        "those after it to another. With probability one half these are `a` and `b`, in order, "
        "label 0; otherwise the two change places, label 1. A document of one sentence gives "
        "nothing. Draw from `rng`, a `random.Random`."
    ),
    hints=(
        "Skip documents of one sentence; then split = rng.randint(1, len(document) - 1). Both ends "
        "are included.",
        "first = document[:split] and second = document[split:] are lists of sentences. One loop, "
        "or sum(first, []), joins them.",
        "Toss the coin once: rng.random() < 0.5. Heads: (second, first, 1). Tails: (first, second, "
        "0).",
    ),
    solution=order_pairs,
    see="course_lib.objectives.sentence_order.ordered_pairs_of_document (segments cut to length)",
    when_raised=(
        (
            "empty range",
            "There is no split: a document of one sentence cannot be split, so leave it out; one "
            "of two sentences can be split at 1 only.",
        ),
    ),
    stages=(
        Check("two segments, all sentences", _ask_segments),
        Check("label 1 means swapped", _ask_labels),
        Check("a single sentence gives no pair", _ask_single),
        Check("the split is drawn", _ask_split),
        Check("about half are swapped, and drawn", _ask_half),
        Check("the draws come from rng", _ask_rng),
    ),
)
