"""Exercise 03.1: one label a word, several pieces a word.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
)
from course_lib.text.english import ENTITY_TAGS
from course_lib.text.features import IGNORED

from .slips import pools, slip_suspects

WordIds = list[int | None]
Case = tuple[list[int], WordIds]  # labels of the words, the word of each position
Cases = Callable[[Draw], list[Case]]


def align_labels(labels: Sequence[int], word_ids: Sequence[int | None]) -> list[int]:
    """A label for each position: the word's at its first piece, −100 at all other positions."""
    aligned, before = [], None
    for word in word_ids:
        if word is None or word == before:
            aligned.append(IGNORED)
        else:
            aligned.append(labels[word])
        before = word
    return aligned


# ---------------------------------------------------------------- known wrong answers


def inside(label: int) -> int:
    """The I- of a B-: in ENTITY_TAGS it stands right behind it."""
    return label + 1 if ENTITY_TAGS[label].startswith("B-") else label


def _with(
    *,
    keep: str = "first",
    others: Callable[[int], int] = lambda label: IGNORED,
    special: int = IGNORED,
    word_of: Callable[[int], int] = lambda word: word,
    outside: int = 0,
    shift: int = 0,
    falsy: bool = False,
) -> Answer:
    """The answer with switches for going wrong.

    keep: which piece of a word is labelled; others: what the other pieces get, given its label;
    outside: what stands for O; shift: by how many positions all is moved; falsy: word 0 counts as
    no word."""

    def answer(labels: Sequence[int], word_ids: Sequence[int | None]) -> list[int]:
        words = [None if falsy and not word else word for word in word_ids]
        label = [special if w is None else labels[word_of(w)] or outside for w in words]
        out = [
            label[t] if w is None or _kept(keep, t, words, label) else others(label[t])
            for t, w in enumerate(words)
        ]
        fill = [IGNORED] * abs(shift)
        return [*fill, *out][: len(out)] if shift >= 0 else [*out, *fill][-shift:]

    return answer


def _kept(keep: str, t: int, words: Sequence[int | None], label: Sequence[int]) -> bool:
    first = t == 0 or words[t - 1] != words[t]
    last = t == len(words) - 1 or words[t + 1] != words[t]
    other_label = t == 0 or words[t - 1] is None or label[t - 1] != label[t]
    return {
        "first": first, "last": last, "whole words": first and last, "label": other_label,
        "all but the first": not first,
    }[keep]  # fmt: skip


SLIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "every piece": (
        "Every piece of a word carries its label. Then a long word counts several times, in the "
        "loss and in the score: only the first piece is asked, the others are −100.",
        {"others": lambda label: label},
    ),
    "continuing pieces get I-": (
        "The further pieces of a word carry the I- of its label. They are asked nothing: −100. (To "
        "label them so is another convention; the scores of both cannot be compared.)",
        {"others": inside},
    ),
    "continuing pieces get label + 1": (
        "The further pieces of a word carry its label + 1, whatever it is: O becomes B-PER, and an "
        "I- the next kind's B-. They are asked nothing: −100.",
        {"others": lambda label: label + 1},
    ),
    "continuing pieces get O": (
        "The further pieces of a word carry 0, which is O. That teaches that a name ends after its "
        "first piece. They are asked nothing: −100.",
        {"others": lambda label: 0},
    ),
    "special tokens get O": (
        "Special tokens and padding carry 0, which is O. They would be learnt and counted as "
        "words, mostly right and for nothing: −100.",
        {"special": 0},
    ),
    "last piece": (
        "The last piece of a word carries its label; BERT's rule takes the first.",
        {"keep": "last"},
    ),
    "first pieces left out": (
        "The first pieces get −100 and the others the label; it is the other way round.",
        {"keep": "all but the first"},
    ),
    "split words left out": (
        "Words of several pieces carry no label at all. Their first piece carries it.",
        {"keep": "whole words"},
    ),
    "same label, same word": (
        "A word whose label is that of the word before gets −100: you compare labels. Two words "
        "may well have the same label. Compare word numbers.",
        {"keep": "label"},
    ),
    "word 0 taken for none": (
        "The first word gets no label. Its number is 0, which `if word:` takes for nothing. Ask "
        "`word is not None`.",
        {"falsy": True},
    ),
    "words counted from 1": (
        "Each word carries the label of the word before it. Words are counted from 0 here: "
        "labels[word].",
        {"word_of": lambda word: word - 1},
    ),
    "one position early": (
        "All labels stand one position too far to the left. Position 0 is [CLS]; it has no word, "
        "and keeps its place with −100.",
        {"shift": -1},
    ),
    "one position late": (
        "All labels stand one position too far to the right. `word_ids` counts [CLS] already.",
        {"shift": 1},
    ),
    "O is not asked": (
        "Words with label 0 got −100. 0 is O, a label like any other: without it a model never "
        "learns that most words are no name. Does a condition take 0 for nothing?",
        {"outside": IGNORED},
    ),
}


def _by_place(labels: Sequence[int], word_ids: Sequence[int | None]) -> list[int]:
    """Label number n at position n + 1, whatever stands there."""
    real = sum(word is not None for word in word_ids)
    out = [IGNORED, *labels[:real]]
    return (out + [IGNORED] * len(word_ids))[: len(word_ids)]


def _each_label_once(labels: Sequence[int], word_ids: Sequence[int | None]) -> list[int]:
    out: list[int] = []
    for word in word_ids:
        new = word is not None and labels[word] not in out
        out.append(labels[word] if new else IGNORED)  # type: ignore[index]
    return out


def _padding_is_o(labels: Sequence[int], word_ids: Sequence[int | None]) -> list[int]:
    """Right for the sentence; what follows its [SEP] gets 0."""
    out = align_labels(labels, word_ids)
    end = max(t for t, word in enumerate(word_ids) if word is not None) + 2
    return out[:end] + [0] * (len(out) - end)


def _numbers_of_words(labels: Sequence[int], word_ids: Sequence[int | None]) -> list[int]:
    return align_labels(range(len(labels)), word_ids)


ALIGN_SUSPECTS = slip_suspects(
    _with,
    SLIPS,
    Suspect(
        "pieces not counted",
        "The labels stand side by side after [CLS], as if every word were one piece. `word_ids` "
        "says which word each position belongs to.",
        _by_place,
    ),
    Suspect(
        "padding gets O",
        "The padding carries 0, which is O. It would be learnt and counted as words: −100.",
        _padding_is_o,
    ),
    Suspect(
        "numbers of words",
        "The first pieces carry the number of their word; asked for is its label, labels[word].",
        _numbers_of_words,
    ),
    Suspect(
        "each label once",
        "Each label appears only once in your row: you remember labels that were seen. Remember "
        "word numbers.",
        _each_label_once,
    ),
)


# ---------------------------------------------------------------- inputs


def _case(draw: Draw, pieces: Sequence[int], padding: int = 0, cut: int = 0) -> Case:
    """pieces: of each word; cut: how many words at the end found no place in the row."""
    while True:
        labels = [draw.python.choice((0, 0, 1, 2, 3, 4, 5, 6)) for _ in pieces]
        if len(set(labels[: len(pieces) - cut])) > 1:
            break
    fit = pieces[: len(pieces) - cut]
    words = [word for word, number in enumerate(fit) for _ in range(number)]
    return labels, [None, *words, None, *[None] * padding]


def _single(draw: Draw) -> list[Case]:
    return [_case(draw, [1] * n) for n in (2, 4, 6)]


def _split(draw: Draw) -> list[Case]:
    return [_case(draw, [1, 3, 1]), _case(draw, [2, 1, 1, 4, 1]), _case(draw, [3, 2, 1, 2])]


def _padded(draw: Draw) -> list[Case]:
    return [_case(draw, [1, 2, 1], 3), _case(draw, [2, 1, 3, 1, 1], 5)]


def _equal(draw: Draw) -> list[Case]:
    """Neighbours with one label, of several pieces too; B- first, so that an I- shows."""
    a, b = draw.python.sample((1, 3, 5), 2)
    words: list[WordIds] = [[None, 0, 1, 1, 2, 3, 3, None], [None, 0, 0, 1, 2, 2, 2, 3, None, None]]
    return [([a, a, 0, b], words[0]), ([0, b, b, b], words[1])]


def _cut(draw: Draw) -> list[Case]:
    return [_case(draw, [1, 2, 1, 2], cut=2), _case(draw, [2, 1, 1, 3, 1], cut=1)]


def _everything(draw: Draw) -> list[Case]:
    return [
        _case(
            draw,
            [draw.python.choice((1, 1, 1, 2, 3)) for _ in range(draw.integer(5, 9))],
            draw.integer(0, 4),
            draw.integer(0, 2),
        )
        for _ in range(40)
    ]


def _nothing_cut(draw: Draw) -> list[Case]:
    return [*_split(draw), *_padded(draw), *_equal(draw), *_split(draw)]


# ---------------------------------------------------------------- stages


def _ask_labels(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case), case), align_labels(*case)
            if given == right:
                continue
            _look_for_another_number(given, right)
            asked = pools(cases, draw, _everything, _nothing_cut)
            found = name_suspect(answer, case, asked, ALIGN_SUSPECTS, _same)
            labels, word_ids = case
            raise told(
                found,
                f"labels {labels}, word_ids {word_ids}: you have {given}; it is {right}.",
            )

    return ask


def _look_for_another_number(given: Sequence[int], right: Sequence[int]) -> None:
    """Raises Mistake where everything is right but the number for 'not asked'."""
    pairs = list(zip(given, right, strict=True))
    numbers = {mine for mine, theirs in pairs if theirs == IGNORED}
    others = all(mine == theirs for mine, theirs in pairs if theirs != IGNORED)
    if others and len(numbers) == 1 and not 0 <= (number := numbers.pop()) < len(ENTITY_TAGS):
        raise Mistake(
            "another number for not asked",
            f"The right positions carry labels, but the others carry {number}. The loss leaves "
            "out −100, which is torch's default (ignore_index); any other number is taken for a "
            "label.",
        )


def _read(x: Any, case: Case) -> list[int]:
    if hasattr(x, "tolist"):  # a tensor, or numpy's array
        x = x.tolist()
    if not isinstance(x, (list, tuple)) or any(isinstance(y, (list, tuple)) for y in x):
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r:.60} ({type(x).__name__}); expected a list of whole "
            "numbers, one for each position.",
        )
    if None in x:
        raise Mistake(
            "None for not asked",
            f"Your result holds None: {list(x)}. What is not asked gets the number −100: labels "
            "become a tensor, and a tensor has no None.",
        )
    labels, word_ids = case
    real = sum(word is not None for word in word_ids)
    if len(x) != len(word_ids):
        said = {
            len(labels): "That is one for each word; a model has one output for each position.",
            real: "That is one for each piece; special tokens and padding have positions too, and "
            "get −100.",
        }.get(len(x), "Go through `word_ids`: each of its entries gets one number.")
        raise Mistake(
            "wrong length",
            f"Your result has {len(x)} labels; expected {len(word_ids)}, one for each position. "
            f"{said}",
        )
    if any(isinstance(label, str) for label in x):
        raise Mistake(
            "names instead of numbers",
            f"Your result holds text: {list(x)}. Expected numbers, as in `labels`, and −100.",
        )
    numbers = [one_number(label, "a label") for label in x]
    return [int(n) if n == n and n == int(n) else IGNORED - 1 for n in numbers]


def _same(mine: Any, theirs: list[int], case: Case) -> bool:
    return _read(mine, case) == theirs


ALIGN = Exercise(
    id="03.1",
    title="Labels for pieces",
    purpose="to train a tagger on words with a model that reads pieces",
    difficulty=1,
    minutes=8,
    signature="my_align(labels, word_ids)",
    statement=(
        "A sentence has a label for each word; a model has an output for each position. `labels` "
        "are the words' labels as numbers (0 is O, 1 is B-PER, 2 is I-PER, and so on). `word_ids` "
        "says of each position which word it belongs to: `[None, 0, 1, 1, None]` is [CLS], a word "
        "of one piece, a word of two, [SEP]. `None` is a special token or padding. Words are "
        "counted from 0. Return a list with a number for each position: the first piece of a word "
        "carries the word's label, everything else −100, the number that the loss leaves out. "
        "Words at the end that found no place in the row are simply not there."
    ),
    hints=(
        "Go through `word_ids` once, and append one number each time.",
        "A piece is the first of its word if the position before it belongs to another word, or to "
        "none.",
        "Keep the word number of the position before. 0 is a word: ask `word is not None`, not "
        "`if word`.",
        "labels [3, 0] and word_ids [None, 0, 0, 1, None] give [-100, 3, -100, 0, -100].",
    ),
    solution=align_labels,
    see=(
        "course_lib.text.features.tagged_rows (it finds the first pieces by their offsets in the "
        "text, and cuts what is too long)"
    ),
    when_raised=(
        (
            r"NoneType",
            "None has no number and is no place in a list: ask `word is None` before you look "
            "labels[word] up.",
        ),
        (
            r"list index out of range|index out of range",
            "A place beyond the end was asked for. labels has one entry a word, word_ids one a "
            "position: labels[word], not labels[position].",
        ),
    ),
    stages=(
        Check("every word is one piece", _ask_labels(_single)),
        Check("words of several pieces", _ask_labels(_split)),
        Check("padding", _ask_labels(_padded)),
        Check("neighbours with the same label", _ask_labels(_equal)),
        Check("a row that ends before the sentence", _ask_labels(_cut)),
        Check("forty drawn sentences", _ask_labels(_everything)),
    ),
)
