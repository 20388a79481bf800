"""Exercise 10.5: pieces a word."""

from __future__ import annotations

from itertools import pairwise

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number

Sentences = list[list[str]]


def fertility(sentences: Sentences) -> tuple[float, float]:
    """Pieces a word of running text, and the fraction of words of several pieces."""
    pieces = words = cut = 0
    for tokens in sentences:
        real = [token for token in tokens if token not in ("[CLS]", "[SEP]", "[PAD]")]
        goes_on = [token.startswith("##") for token in real]
        pieces += len(real)
        words += goes_on.count(False)
        cut += sum(on and not before for before, on in pairwise(goes_on))
    return pieces / words, cut / words


# ---------------------------------------------------------------- cases

WORDS = (
    ("the",), ("goat",), ("and",), ("play", "##ing"), ("un", "##tie", "##s"), ("."), ("lan",
    "##tern"), ("skrub", "##it"), ("brol", "##m", "##en", "##ur"), ("bank",), ("to",), ("see",),
)  # fmt: skip
WHOLE = tuple(word for word in WORDS if len(word) == 1)


def case(draw: Draw, lengths: tuple[int, ...], cut: float, ends: bool = False) -> Case:
    """Sentences of so many words, drawn with repetition. cut: how often a word of several pieces
    is taken; ends: special tokens, [UNK] and padding."""
    found = []
    several = [word for word in WORDS if len(word) > 1]
    for length in lengths:
        words = [draw.python.choice(several if draw.python.random() < cut else WHOLE)
                 for _ in range(length)]  # fmt: skip
        words[0] = several[draw.integer(0, 1)] if cut else words[0]
        tokens = [piece for word in words for piece in word]
        if ends:
            tokens.insert(0 if draw.integer(0, 1) else len(tokens), "[UNK]")
            tokens = ["[CLS]", *tokens, "[SEP]", *["[PAD]"] * draw.integer(0, 4)]
        found.append(tokens)
    return (found,)


def repeated(draw: Draw) -> list[Case]:
    """Frequent words that are whole, rare words that are cut: types and tokens differ."""
    return [
        ([["the", "goat", "and", "the", "goat", "brol", "##m", "##en", "##ur"], ["the", "goat"]],),
        case(draw, (8, 3), 0.3), case(draw, (4, 9, 6), 0.2),
    ]  # fmt: skip


REAL = 'token not in ("[CLS]", "[SEP]", "[PAD]")'
RETURN = "return pieces / words, cut / words"
CUT = "sum(on and not before for before, on in pairwise(goes_on))"

FERTILITY = Exercise(
    **written("10.5"),
    solution=fertility,
    returns=(Number("fertility", "pieces a word"), Number("fraction of words cut")),
    when_raised=(
        (r"startswith", "A token is a text, a sentence a list of them: two loops."),
        (r"division by zero", "Words are the tokens *without* ##: a sentence may hold none "
         "with it. Divide once, when all sentences are counted."),
    ),
    stages=(
        Stage("words of one piece, and of two or more", each(case, ((4,), 0.0), ((5,), 0.5),
                                                             ((6,), 0.9))),
        Stage("several sentences, of unequal length",
              each(case, ((2, 9), 0.4), ((7, 3, 5), 0.6), ((1, 12), 0.5))),
        Stage("words that come again", repeated),
        Stage("[CLS], [SEP], [PAD] and [UNK]",
              each(case, ((4,), 0.5, True), ((3, 8), 0.4, True), ((6, 2, 5), 0.7, True))),
    ),
    mistakes=(
        Edit(REAL, "True", "Special tokens are counted as words of one piece. They draw every "
             "language's fertility towards 1, and padding more than anything."),
        Edit(REAL, 'token != "[PAD]"', "[CLS] and [SEP] are counted as words. They are in no "
             "text."),
        Edit(REAL, 'token not in ("[CLS]", "[SEP]")', "Padding is counted as words of one piece: "
             "short sentences would look well cut."),
        Edit(REAL, 'not token.startswith("[")', "[UNK] is left out. It stands for a word of the "
             "text that the vocabulary cannot write: a word of one piece. (So a low fertility may "
             "also mean many [UNK].)"),
        Edit("goes_on.count(False)", "len(set(t for t in real if t[:2] != '##'))", "Words are "
             "counted once in each sentence, however often they come. Expected every word of the "
             "running text."),
        Edit(RETURN, "seen = {w for s in sentences for w in ' '.join(t for t in s if t not in "
             "('[CLS]', '[SEP]', '[PAD]')).replace(' ##', '##').split()}\n"
             "    return sum(1 + w.count('##') for w in seen) / len(seen), "
             "sum('##' in w for w in seen) / len(seen)",
             "You average over *different* words. A rare word then weighs as much as `the`; "
             "expected the mean over running text."),
        Edit(RETURN, "return sum(fertility([s])[0] for s in sentences) / len(sentences), "
             "sum(fertility([s])[1] for s in sentences) / len(sentences)",
             "You average over sentences. A short one then weighs as much as a long one: add up "
             "first, divide once.", more=(("pieces = words = cut = 0", "pieces = words = cut = 0\n"
             "    if len(sentences) == 1:\n        only = [t for t in sentences[0] if t not in "
             "('[CLS]', '[SEP]', '[PAD]')]\n        on = [t[:2] == '##' for t in only]\n        "
             "n = on.count(False)\n        m = sum(b and not a for a, b in zip(on, on[1:]))\n"
             "        return len(only) / n, m / n"),)),
        Edit("pieces += len(real)", "pieces += goes_on.count(True)", "Only the pieces with ## are "
             "counted. A word's first piece is one too."),
        Edit("words += goes_on.count(False)", "words += goes_on.count(False) - real.count('.')",
             "Full stops are no words in your answer. BERT splits them off: words of one piece."),
        Edit("pieces += len(real)", "pieces += sum(map(len, real))", "You count letters. Expected "
             "pieces."),
        Edit("pieces / words", "words / pieces", "Turned upside down: these are words a piece."),
        Edit(CUT, "sum(goes_on)", "A word cut into four counts three times as cut. Count words, "
             "not their ## pieces."),
        Edit(CUT, "sum(not on and not after for on, after in zip(goes_on, [*goes_on[1:], False]))",
             "This is the fraction of words that are whole."),
        Edit(CUT, "sum(a and not b and not before for before, a, b in zip(goes_on, goes_on[1:], "
             "[*goes_on[2:], False]))", "Only words of exactly two pieces are counted as cut."),
        Edit("cut / words", "cut / pieces", "The words that are cut are divided by all *pieces*. "
             "Divide by words."),
    ),
)  # fmt: skip
