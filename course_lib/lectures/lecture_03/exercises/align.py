"""Exercise 03.1: one label a word, several pieces a word."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Items
from course_lib.text.english import ENTITY_TAGS


def align_labels(labels: Sequence[int], word_ids: Sequence[int | None]) -> list[int]:
    """A label for each position: the word's at its first piece, −100 at all other positions."""
    aligned, before = [], None
    for word in word_ids:
        if word is not None and word != before:
            aligned.append(labels[word])
        else:
            aligned.append(-100)
        before = word
    return aligned


def case(draw: Draw, pieces: Sequence[int], padding: int = 0, cut: int = 0) -> Case:
    """pieces: of each word; cut: how many words at the end found no place in the sequence."""
    fit = pieces[: len(pieces) - cut]
    while True:
        labels = draw.python.choices((0, 0, *range(1, len(ENTITY_TAGS))), k=len(pieces))
        if len(set(labels[: len(fit)])) > 1 and any(labels[: len(fit)]):
            break
    words = [word for word, count in enumerate(fit) for _ in range(count)]
    return labels, [None, *words, None, *[None] * padding]


def equal_neighbours(draw: Draw) -> list[Case]:
    """Neighbours with one label, of several pieces too; B- first, so that an I- shows."""
    a, b = draw.python.sample((1, 3, 5), 2)
    return [
        ([a, a, 0, b], [None, 0, 1, 1, 2, 3, 3, None]),
        ([0, b, b, b], [None, 0, 0, 1, 2, 2, 2, 3, None, None]),
    ]


def anything(draw: Draw) -> list[Case]:
    pieces = [draw.python.choices((1, 1, 1, 2, 3), k=draw.integer(5, 9)) for _ in range(30)]
    return [case(draw, counts, draw.integer(0, 4), draw.integer(0, 2)) for counts in pieces]


rest = partial(Edit, "-100")  # what the solution gives all other positions
FIRST = "word is not None and word != before"

ALIGN = Exercise(
    **written("03.1"),
    solution=align_labels,
    returns=Items("labels", of="whole numbers, one for each position"),
    see="course_lib.text.features.tagged_sequences (it finds the first pieces by their offsets in "
    "the text, and cuts what is too long)",
    when_raised=(
        (r"NoneType", "None is not a number, so it cannot index a list: test `word is None` before "
         "you look up labels[word]."),
        (r"list index out of range|index out of range",
         "A position beyond the end was read. labels has one entry a word, word_ids one a "
         "position: labels[word], not labels[position]."),
    ),
    stages=(
        Stage("every word is one piece", each(case, *(([1] * n,) for n in (2, 4, 6)))),
        Stage("words of several pieces",
              each(case, ([1, 3, 1],), ([2, 1, 1, 4, 1],), ([3, 2, 1, 2],))),
        Stage("padding", each(case, ([1, 2, 1], 3), ([2, 1, 3, 1, 1], 5))),
        Stage("neighbours with the same label", equal_neighbours),
        Stage("a sequence that ends before the sentence",
              each(case, ([1, 2, 1, 2], 0, 2), ([2, 1, 1, 3, 1], 0, 1))),
        Stage("thirty drawn sentences", anything),
    ),
    mistakes=(
        Edit(FIRST, "word is not None",
             "Every piece of a word carries its label. Then a long word counts several times, in "
             "the loss and in the score: only the first piece has a label, the others −100."),
        rest("-100 if word is None else labels[word] + labels[word] % 2",
             "The further pieces of a word carry the I- of its label. They get −100. (Labelling "
             "them is another convention; scores of the two cannot be compared.)"),
        rest("-100 if word is None else labels[word] + 1",
             "The further pieces of a word carry its label + 1, whatever it is: O becomes B-PER, "
             "and an I- the next kind's B-. They get −100."),
        rest("-100 if word is None else 0", "The further pieces of a word carry 0, which is O. "
             "That teaches that a name ends after its first piece. They get −100."),
        rest("0 if word is None else -100", "Special tokens and padding carry 0, which is O. They "
             "would be trained on and counted as words: they get −100."),
        rest("0 if aligned and word is None and before is None else -100", "The padding carries 0, "
             "which is O. It would be trained on and counted as words: it gets −100."),
        rest("-1", "−1 is used instead of −100. The loss leaves out −100, which is torch's "
             "default (ignore_index); any other number is taken for a label."),
        rest("100", "100 is used instead of −100: the sign is missing."),
        rest("None", "Your result has None. Positions without a label get −100: labels become a "
             "tensor, and a tensor cannot hold None."),
        Edit("for word in word_ids:", "for word, before in zip(word_ids, [*word_ids[1:], None]):",
             "The last piece of a word carries its label; BERT's rule takes the first.",
             more=(("before = word", "pass"),)),
        Edit("word != before", "word == before",
             "The first pieces get −100 and the others the label; it is the other way round."),
        Edit("word != before", "list(word_ids).count(word) == 1",
             "Words of several pieces carry no label at all. Their first piece carries it."),
        Edit("word != before", "labels[word] != before",
             "A word whose label is that of the word before gets −100: you compare labels. Two "
             "words may well have the same label. Compare word numbers.",
             more=(("before = word", "before = None if word is None else labels[word]"),)),
        Edit("word != before", "labels[word] not in aligned", "Each label appears only once in "
             "your result: you remember labels that were seen. Remember word numbers."),
        Edit("word is not None and", "word and", "The first word gets no label. Its number is 0, "
             "which `if word:` takes for False. Test `word is not None`."),
        Edit(FIRST, "word != before", "The [SEP] behind the words carries 0, which is O: None "
             "differs from the word before it, too. Test `word is not None` as well; it gets −100.",
             more=(("labels[word]", "0 if word is None else labels[word]"),)),
        Edit("labels[word]", "labels[word - 1]", "Each word carries the label of the word before "
             "it. Words are counted from 0 here: labels[word]."),
        Edit("labels[word]", "word", "The first pieces carry the number of their word; it should "
             "be its label, labels[word]."),
        Edit("labels[word]", "labels[word] or -100",
             "Words with label 0 got −100. 0 is O, a label like any other: without it a model "
             "never learns that most words are not names. Does a condition take 0 for False?"),
        Edit("labels[word]", "ENTITY_TAGS[labels[word]]",
             "Your result holds the names of the tags. Expected numbers, as in `labels`."),
        Edit("return aligned", "return [*aligned[1:], -100]",
             "All labels are one position too far to the left. Position 0 is [CLS]; it has no "
             "word, and keeps its position with −100."),
        Edit("return aligned", "return [-100, *aligned[:-1]]", "All labels are one position too "
             "far to the right. `word_ids` counts [CLS] already."),
        Edit("return aligned", "real = sum(word is not None for word in word_ids)\n"
             "    return [-100, *labels[:real], *[-100] * len(word_ids)][:len(word_ids)]",
             "The labels follow [CLS] one by one, as if every word were one piece. "
             "`word_ids` says which word each position belongs to."),
        Edit("return aligned",
             "return [x for x, word in zip(aligned, word_ids) if word is not None]", "There is one "
             "label for each piece; special tokens and padding have positions too, and get −100."),
        Edit("return aligned", "return list(labels)",
             "There is one label for each word; a model has one output for each position."),
        Edit("return aligned", "return [x for x in aligned if x != -100]",
             "Only the labels of the first pieces are in your list. Every entry of `word_ids` "
             "gets one number, so all other positions get −100."),
    ),
)  # fmt: skip
