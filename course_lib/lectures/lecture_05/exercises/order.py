"""Exercise 05.2: segments in order or swapped. Every id of the drawn documents occurs once in all,
so that a segment tells where it comes from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

import torch

from course_lib.teaching.exercises.drawing import from_generator
from course_lib.teaching.exercises.form import (
    Answer,
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Exact, Items, Number, Wrong, kind_of

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
        pair = (second, first, 1) if swapped else (first, second, 0)
        pairs.append(pair)
    return pairs


# ---------------------------------------------------------------- cases, and what is looked at


def case(draw: Draw, lengths: Sequence[int]) -> Case:
    """Documents of so many sentences, each of two to four ids that occur nowhere else."""
    first_id, documents = 1_000, []
    for sentences in lengths:
        documents.append([list(range(first_id + 10 * s, first_id + 10 * s + draw.integer(2, 4)))
                          for s in range(sentences)])  # fmt: skip
        first_id += 10 * sentences
    return documents, random.Random(draw.integer(0, 2**31))


def long_ones(draw: Draw) -> list[Case]:
    return [case(draw, [draw.integer(3, 6) for _ in range(n)]) for n in (40, 50, 60)]


def single_ones(draw: Draw) -> list[Case]:
    return [case(draw, [1, 3, 1, *(draw.integer(1, 3) for _ in range(30)), 1]) for _ in range(3)]


def made_by(function: Answer, documents: list[Any], rng: random.Random) -> list[Pair]:
    """What the function returns, if it is a list of two lists of ids and a label."""
    made = function(documents, rng)
    if not isinstance(made, (list, tuple)):
        raise Wrong(f"Your function returned {kind_of(made)}; expected a list of (a, b, label).")
    for x in made:
        if not isinstance(x, (list, tuple)) or len(x) != 3 or x[2] not in (0, 1):
            raise Wrong(f"One of your pairs is {x!r}; expected (a, b, label), label 0 or 1.")
        for segment in x[:2]:
            if not isinstance(segment, (list, tuple)):
                raise Wrong(f"One of your segments is {kind_of(segment)}; expected a list of ids.")
            if any(isinstance(id, (list, tuple)) for id in segment):
                raise Wrong(f"One of your segments is {segment!r}; expected one list of ids, not "
                            "of sentences: join the sentences.")  # fmt: skip
    return [(list(a), list(b), int(label)) for a, b, label in made]


SIDES = "the two sides of a split"


def kind(pair: Pair, document: Document) -> str:
    """What the two segments are of their document."""
    a, b, _ = pair
    whole, sentences = list(chain(*document)), [list(sentence) for sentence in document]
    if not a or not b:
        return "one segment empty"
    if {*a, *b}.isdisjoint(whole):
        return "of another document than the pair's place says"
    if not {*a, *b} <= set(whole):
        return "from another document"
    if a in sentences and b in sentences and len(sentences) > 2:
        return "two single sentences"
    if len({*a, *b}) < len(a + b):
        return "overlapping"
    if len(a + b) < len(whole):
        return "without some of the sentences"
    if whole in (a + b, b + a):
        ends = [len(list(chain(*document[:n]))) for n in range(len(document))]
        first = a if a + b == whole else b
        return SIDES if len(first) in ends else "cut inside a sentence"
    turned = [(x, y) for x in (a, a[::-1]) for y in (b, b[::-1])]
    if any(whole in (x + y, y + x) for x, y in turned):
        return "with ids that run backwards"
    return "with sentences in another order"


def kinds(function: Answer, documents: list[Any], rng: random.Random) -> Any:
    made = made_by(function, documents, rng)
    if len(made) < len(documents):
        documents = [document for document in documents if len(document) > 1]
    pairs = zip(made, documents, strict=False)
    return len(made), sorted({kind(*pair) for pair in pairs} - {SIDES})


def swaps(made: Sequence[Pair], documents: Sequence[Document]) -> list[tuple[bool, int]]:
    """Whether each pair is swapped, and after which sentence its document is split."""
    ends = [{s[-1]: n + 1 for n, s in enumerate(document)} for document in documents]
    return [(b[-1] < a[0], end.get(b[-1] if b[-1] < a[0] else a[-1], 0))
            for (a, b, _), end in zip(made, ends, strict=False)]  # fmt: skip


def labels_of_swaps(function: Answer, documents: list[Any], rng: random.Random) -> list[str]:
    made = made_by(function, documents, rng)
    pairs = zip(swaps(made, documents), made, strict=True)
    orders = {True: "swapped", False: "in order"}
    return sorted({f"{orders[swapped]}: {label}" for (swapped, _), (_, _, label) in pairs})


def splits(function: Answer, documents: list[Any], rng: random.Random) -> Any:
    """After which sentences documents are split, and whether that tells the label."""
    swapped_at = swaps(made_by(function, documents, rng), documents)
    pairs = torch.tensor([[float(swapped), split] for swapped, split in swapped_at]).T
    return sorted({s for _, s in swapped_at}), abs(float(torch.corrcoef(pairs)[0, 1].nan_to_num()))


def labels(function: Answer, documents: list[Any], rng: random.Random) -> Any:
    """The fraction swapped, of neighbours with one label, of labels kept with another rng."""
    made, again = (made_by(function, documents, random.Random(rng.random())) for _ in range(2))
    same = [x[2] == y[2] for x, y in pairwise(made)]
    kept = [x[2] == y[2] for x, y in zip(made, again, strict=False)]
    return tuple(sum(x) / max(1, len(x)) for x in ([x[2] for x in made], same, kept))


KINDS = (
    Number("number of pairs", kind="int"),
    Items("segments other than the two sides of a split", of="kinds", ordered=False),
)
# 150 and 1,500 pairs: the standard deviations of the difference of two are 0.12 and 0.018
SPLITS = (
    Items("places of the splits (after which sentence)", of="numbers", ordered=False),
    Number("correlation of split and label, without its sign", tol=0.4),
)
LABELS = (
    Number("fraction of swapped pairs", tol=0.08),
    Number("fraction of neighbouring pairs with the same label", tol=0.08),
    Number("fraction of pairs that have the same label with another rng", tol=0.08),
)
PAIR, DRAWN = "(second, first, 1) if swapped else (first, second, 0)", "rng.random() < 0.5"
SPLIT, LOOP = "rng.randint(1, len(document) - 1)", "    for document in documents:"
HALVES = "first, second = list(chain(*document[:split])), list(chain(*document[split:]))"
SHORT, APPEND = "if len(document) < 2:\n            continue", "pairs.append(pair)"

ORDER = Exercise(
    **written("05.2"),
    solution=order_pairs,
    returns=Exact("pairs", what="a list of (a, b, label)"),
    see="course_lib.objectives.sentence_order.ordered_pairs_of_document (segments cut to length)",
    when_raised=(
        ("empty range",
         "There is no split: a document of one sentence cannot be split, so leave it out; one of "
         "two sentences can be split at 1 only."),
    ),
    stages=(
        Stage("two segments, all sentences", long_ones, kinds, KINDS),
        Stage("label 1 means swapped", long_ones, labels_of_swaps,
              Items("labels of the pairs", of="orders and labels")),
        Stage("a single sentence gives no pair", single_ones, kinds, KINDS),
        Stage("the split is drawn", each(case, *([[6] * 150] for _ in range(3))), splits, SPLITS),
        Stage("half are swapped, and each is drawn", each(case, [[2] * 1_500]), labels, LABELS),
        from_generator(long_ones, "rng"),
    ),
    mistakes=(
        Edit("return pairs", "return pairs[:-1]",
             "A pair is missing: each document of two or more sentences gives one."),
        Edit(APPEND, "other = list(chain(*rng.choice([d for d in documents if d is not document])))"
             "; pairs.append((first, other, 1) if swapped else pair)",
             "Your pairs with the label 1 have a segment from another document. That is "
             "next-sentence prediction: the topic gives the answer away. In SOP both segments come "
             "from one document."),
        Edit(APPEND, "pairs += [(first, second, 0), (second, first, 1)]",
             "Each document gives two pairs in your answer, one in order and one swapped; draw "
             "which of the two it gives."),
        Edit(APPEND, "pairs += [pair] * (len(document) - 1)",
             "Each document gives a pair for every possible split in your answer; draw one split."),
        Edit("return pairs", "return pairs[::-1]",
             "Your pairs are not in the order of the documents."),
        Edit("chain(*document[split:])", "chain(*document[split + 1 :])", "The sentence at the "
             "split is in neither segment. document[split:] begins where document[:split] ends."),
        Edit("document[:split])), list(chain(*document[split:]))",
             "document[split - 1 : split])), list(chain(*document[split : split + 1]))",
             "You take two single sentences. SOP works on segments: all sentences before the "
             "split, and all after it."),
        Edit("chain(*document[split:])", "chain(*document)",
             "Some ids occur in both segments, or twice: each sentence belongs to one side."),
        Edit(HALVES, "ids = list(chain(*document)); first, second = ids[:1], ids[1:]",
             "You cut the document inside a sentence; cut between sentences."),
        Edit("return pairs", "return [(a[:-1], b[:-1], z) for a, b, z in pairs]",
             "Some ids of the document are in neither segment: document[:split] and "
             "document[split:] together hold every sentence."),
        Edit(SPLIT, "rng.randint(0, len(document))",
             "A segment is empty. The split must leave at least one sentence on each side."),
        Edit(PAIR, "(second[::-1], first[::-1], 1) if swapped else (first, second, 0)",
             "The ids of swapped segments run backwards. Swap the two segments; each is read as it "
             "was written."),
        Edit("chain(*document[:split])", "chain(*document[:split][::-1])",
             "You reorder the sentences inside a segment. Only the two segments change places; "
             "inside each the order "
             "stays.", more=(("chain(*document[split:])", "chain(*document[split:][::-1])"),)),
        Edit(PAIR, "(second, first, 0) if swapped else (first, second, 1)",
             "Your labels are exchanged: 0 means in order, 1 swapped. (Weights trained elsewhere "
             "expect this convention.)"),
        Edit(PAIR, "(first, second, 1) if swapped else (first, second, 0)",
             "Some pairs have the label 1, but all segments are in the same order: the label "
             "changes and the text does not. Swap the segments where the label is 1."),
        Edit(PAIR, "(second, first, 0) if swapped else (first, second, 0)",
             "Some pairs are swapped, but every label is 0. Swapped pairs have the label 1."),
        Edit(DRAWN, "False", "All pairs are in order; half of them should be swapped, at random."),
        Edit(DRAWN, "True", "All pairs are swapped; half of them should be in order, at random."),
        Edit(PAIR, "(second, first, 1) if swapped else (first, second, 0)\n        pair = "
             "(*pair[:2], int(rng.random() < 0.5))", "You draw label and order separately, so they "
             "are unrelated: draw once, and let the label say what was drawn."),
        Edit(SHORT, "split = 1", "A document of one sentence gave a pair with an empty segment; "
             "leave it out.", more=((SPLIT, "rng.randint(1, max(1, len(document) - 1))"),)),
        Edit(SHORT, "split = 1", "A document of one sentence gave a pair as well, with a second "
             "segment from somewhere else. ALBERT's released generator does that, so topic solves "
             "a few of its pairs after all. Leave such documents out.",
             more=((SPLIT, "rng.randint(1, max(1, len(document) - 1))"),
                   ("list(chain(*document[split:]))", "list(chain(*document[split:])) or [7]"))),
        Edit("len(document) < 2", "len(document) < 3",
             "You left out documents of two sentences; split them after the first."),
        Edit(SPLIT, "len(document) // 2",
             "You split all documents of one length at the same place: draw the split."),
        Edit(SPLIT, "1", "You split every document after its first sentence: draw the split."),
        Edit(LOOP, "    u = rng.random()\n" + LOOP, "One draw decides the split of all documents: "
             "draw a split for each.", more=((SPLIT, "1 + int(u * (len(document) - 1))"),)),
        Edit(SPLIT, "rng.randrange(1, max(2, len(document) - 1))", "The last place is never drawn. "
             "rng.randint(1, n) includes both ends; range and randrange leave out the last."),
        Edit(SPLIT, "1 + int((u := rng.random()) * (len(document) - 1))",
             "One random number decides both the split and the label, so the split gives the label "
             "away: draw one number for each.", more=((DRAWN, "u < 0.5"),)),
        Edit("    pairs = []", "    rng, pairs = random.Random(0), []", "Your function draws from "
             "a generator of its own and a fixed seed: each call gives the same labels. Draw from "
             "`rng`."),
        Edit(DRAWN, "len(pairs) % 2", "Your labels alternate; draw each label at random."),
        Edit(LOOP, "    u = rng.random()\n" + LOOP, "One draw decides for all documents: draw the "
             "label of each.", more=((DRAWN, "u < 0.5"),)),
        Edit("< 0.5", "< 0.25", "A quarter of your pairs is swapped; half is expected."),
        Edit("< 0.5", "< 0.75", "Three quarters of your pairs are swapped; half is expected."),
    ),
)  # fmt: skip
