"""Exercise 10.6: pieces a word."""

from __future__ import annotations

from itertools import pairwise

from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Other,
    Stage,
    each,
    written,
)
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
    sentences = []
    several = [word for word in WORDS if len(word) > 1]
    for length in lengths:
        words = [draw.python.choice(several if draw.python.random() < cut else WHOLE)
                 for _ in range(length)]  # fmt: skip
        words[0] = several[draw.integer(0, 1)] if cut else words[0]
        tokens = [piece for word in words for piece in word]
        if ends:
            tokens.insert(0 if draw.integer(0, 1) else len(tokens), "[UNK]")
            tokens = ["[CLS]", *tokens, "[SEP]", *["[PAD]"] * draw.integer(0, 4)]
        sentences.append(tokens)
    return (sentences,)


def repeated(draw: Draw) -> list[Case]:
    """Frequent words that are whole, rare words that are cut: types and tokens differ."""
    return [
        ([["the", "goat", "and", "the", "goat", "brol", "##m", "##en", "##ur"], ["the", "goat"]],),
        case(draw, (8, 3), 0.3), case(draw, (4, 9, 6), 0.2),
    ]  # fmt: skip


def of_types(sentences: Sentences) -> tuple[float, float]:
    """A known mistake: every word once."""
    words = {word for tokens in sentences for word in " ".join(tokens).replace(" ##", "##").split()}
    counts = [word.count("##") for word in words - {"[CLS]", "[SEP]", "[PAD]"}]
    return 1 + sum(counts) / len(counts), sum(map(bool, counts)) / len(counts)


def of_sentences(sentences: Sentences) -> tuple[float, float]:
    """A known mistake: the mean of the sentences' fertilities."""
    each = [fertility([tokens]) for tokens in sentences]
    return sum(x for x, _ in each) / len(each), sum(x for _, x in each) / len(each)


REAL = 'token not in ("[CLS]", "[SEP]", "[PAD]")'
CUT = "sum(on and not before for before, on in pairwise(goes_on))"

FERTILITY = Exercise(
    **written("10.6"),
    solution=fertility,
    returns=(Number("fertility", "pieces a word"), Number("fraction of words cut")),
    when_raised=(
        (r"startswith", "A token is a string, and a sentence is a list of them: use two loops."),
        (r"division by zero", "Words are the tokens *without* ##, and a sentence may have none "
         "with it. Divide once, after counting all sentences."),
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
        Edit(REAL, "True", "Special tokens are counted as words of one piece. They pull every "
             "language's fertility towards 1, padding most of all."),
        Edit(REAL, 'token != "[PAD]"', "[CLS] and [SEP] are counted as words. They are not part "
             "of the text."),
        Edit(REAL, 'token not in ("[CLS]", "[SEP]")', "Padding is counted as words of one "
             "piece, which makes the fertility of short sentences look low."),
        Edit(REAL, 'not token.startswith("[")', "[UNK] is left out. It stands for a word of the "
             "text that the vocabulary cannot write: a word of one piece. (So a low fertility may "
             "also mean many [UNK].)"),
        Edit(REAL, 'token not in ("[CLS]", "[SEP]", "[PAD]", ".")', "Full stops are left out. BERT "
             "splits them off: each is a word of one piece."),
        Edit("goes_on.count(False)", "len(set(t for t in real if t[:2] != '##'))", "You count "
             "each word only once per sentence, however often it occurs. Count every word of "
             "the running text."),
        Other(of_types, "You average over *different* words. A rare word then counts as much as "
              "`the`. Take the mean over running text."),
        Other(of_sentences, "You average over sentences. A short one then counts as much as a "
              "long one: add up first, divide once."),
        Edit("pieces += len(real)", "pieces += goes_on.count(True)", "Only the pieces with ## are "
             "counted. A word's first piece is one too."),
        Edit("words += goes_on.count(False)", "words += goes_on.count(False) - real.count('.')",
             "Full stops count as pieces in your answer, and not as words. Each is both."),
        Edit("pieces += len(real)", "pieces += sum(map(len, real))", "You count letters. Count "
             "pieces."),
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
