"""Exercise 02.7: WordPiece for one word."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from course_lib.teaching.exercises.form import (
    Answer,
    Case,
    Draw,
    Edit,
    Exercise,
    Other,
    Stage,
    written,
)
from course_lib.teaching.exercises.outputs import Items


def wordpiece(word: str, vocab: set[str], max_chars: int) -> list[str]:
    """Greedy, longest piece first; the whole word is [UNK] where no piece fits."""
    if len(word) > max_chars:
        return ["[UNK]"]
    pieces: list[str] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        lengths = range(len(word) - start, 0, -1)  # longest first
        fitting = (n for n in lengths if prefix + word[start : start + n] in vocab)
        length = next(fitting, None)
        if length is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start : start + length])
        start += length
    return pieces


def all_splits(word: str, vocab: set[str], start: int = 0) -> list[list[str]]:
    """Every way to spell the word in pieces, long first pieces first."""
    if start == len(word):
        return [[]]
    starts = {end: "##" * (start > 0) + word[start:end] for end in range(len(word), start, -1)}
    fitting = [(piece, end) for end, piece in starts.items() if piece in vocab]
    return [[piece, *rest] for piece, end in fitting for rest in all_splits(word, vocab, end)]


def best_of_all(key: Callable[[list[str]], int]) -> Answer:
    """The first of the splits with the smallest key."""

    def answer(word: str, vocab: set[str], max_chars: int) -> list[str]:
        splits = all_splits(word, vocab) if len(word) <= max_chars else []
        return min(splits, key=key, default=["[UNK]"])

    return answer


def from_the_end(word: str, vocab: set[str], max_chars: int) -> list[str]:
    pieces: list[str] = []
    end = len(word) if len(word) <= max_chars else 0
    while end:
        starts = [s for s in range(end) if ("##" if s else "") + word[s:end] in vocab]
        if not starts:
            return ["[UNK]"]
        pieces.insert(0, ("##" if starts[0] else "") + word[starts[0] : end])
        end = starts[0]
    return pieces or ["[UNK]"]


def spelled(
    draw: Draw,
    count: int,
    always: bool = False,
    longest: int = 9,
    limits: tuple[int, int] = (9, 12),
) -> list[Case]:
    """Drawn words over three letters; the vocabulary holds short strings over them, some to begin
    a word, some to continue one. always: single letters too, so that something always fits."""
    cases: list[Case] = []
    for _ in range(count):
        lengths = [draw.python.choice((1, 1, 2, 2, 3, 4)) for _ in range(30)]
        strings = sorted({"".join(draw.python.choices("abc", k=k)) for k in lengths})
        letters = {*"abc", "##a", "##b", "##c"} if always else set()
        begin = {s for s in strings if draw.python.random() < 0.6}
        within = {"##" + s for s in strings if draw.python.random() < 0.6}
        word = "".join(draw.python.choices("abc", k=draw.integer(1, longest)))
        cases.append((word, begin | within | letters | {"[UNK]"}, draw.integer(*limits)))
    return cases


def known_words(draw: Draw) -> list[Case]:
    vocab = {"river", "lamp", "clouds", "##s"}
    return [(word, vocab, 100) for word in ("lamp", "river", "clouds")]


def longest_wins(draw: Draw) -> list[Case]:
    """In the first two no piece stands both with and without ##, so that leaving it out shows."""
    within = {"##" + piece for piece in ("light", "s", "m", "p", "l", "i", "g", "h", "t")}
    vocab = {"la", "lam", "lamp", *within}
    return [("lamps", vocab, 100), ("lamplight", vocab, 100), *spelled(draw, 40, always=True)]


def nothing_fits(draw: Draw) -> list[Case]:
    """Going back would find abc ##c ##ba; the fewest pieces are ab ##ccba."""
    vocab = {"ri", "##v", "##er", "river", "##bed", "[UNK]"}
    ahead = ("abccba", {"abc", "##c", "##ba", "ab", "##ccba"}, 9)
    words = ("riverbank", "rivet", "zebra")
    return [*((word, vocab, 100) for word in words), ahead, *spelled(draw, 120)]


def too_long(draw: Draw) -> list[Case]:
    limit = draw.integer(5, 12)
    return [("a" * n, {"a", "##a"}, limit) for n in (limit - 1, limit, limit + 1)]


def stuck(then: str, say: str, endless: bool = False) -> Edit:
    """Something else happens where nothing fits."""
    old = 'if length is None:\n            return ["[UNK]"]'
    return Edit(old, f"if length is None:\n            {then}", say, endless=endless)


PIECE = "pieces.append(prefix + word[start : start + length])"
LOOK = "if prefix + word[start : start + n] in vocab"

WORDS = Exercise(
    **written("02.7"),
    solution=wordpiece,
    returns=Items("pieces", of="pieces (strings)"),
    library=(
        "course_lib.text.wordpiece:longest_match",
        "course_lib.text.wordpiece:WordPiece.cut_word",
    ),
    stages=(
        Stage("a word that is in the vocabulary", known_words),
        Stage("the longest piece wins", longest_wins),
        Stage("nothing fits: one [UNK]", nothing_fits),
        Stage("too long: [UNK]", too_long),
        Stage("drawn words", partial(spelled, count=150, limits=(5, 9))),
    ),
    mistakes=(
        Edit("range(len(word) - start, 0, -1)", "range(1, len(word) - start + 1)",
             "The shortest piece that fits is taken; it must be the longest."),
        Edit(LOOK, "if word[start : start + n] in vocab", "Continuing pieces are looked up without "
             "their ##: inside a word only pieces that begin with ## may be used."),
        Edit('prefix = "##" if start else ""', 'prefix = ""', "The ## is missing: pieces after the "
             "first are looked up and written with ## in front."),
        Edit(PIECE, "pieces.append(word[start : start + length])",
             "The pieces are right, but pieces after the first must keep their ##."),
        Edit('prefix = "##" if start else ""', 'prefix = "##"',
             "The first piece is looked up with ## too; it has none."),
        stuck('return [*pieces, "[UNK]"]', "Where nothing fits, the pieces found so far are kept "
              "and [UNK] follows. The whole word becomes one [UNK]."),
        stuck("return pieces", "Where nothing fits, the pieces found so far are returned and the "
              "rest of the word is lost. The whole word becomes [UNK]."),
        stuck("return [*pieces, prefix + word[start:]]",
              "Where nothing fits, the rest of the word is kept as a piece of its own, though it "
              "is not in the vocabulary. The whole word becomes [UNK]."),
        stuck('pieces.append("[UNK]"); start += 1; continue',
              "Letters that fit nowhere become [UNK] one by one; the whole word must."),
        stuck("start += 1; continue",
              "Letters that fit nowhere are left out; the whole word becomes [UNK]."),
        stuck("return []", "Where nothing fits the list is empty; it is one [UNK]."),
        stuck("length = 0", "The loop never ends where nothing fits.", endless=True),
        Edit("len(word) > max_chars", "False",
             "max_chars has no effect: a word with more characters becomes [UNK]."),
        Edit("len(word) > max_chars", "len(word) >= max_chars", "A word of exactly max_chars "
             "characters is still allowed; only longer ones become [UNK]."),
        Edit("pieces: list[str] = []", 'return [word] if word in vocab else ["[UNK]"]',
             "Words that are not in the vocabulary become [UNK] without being split."),
        Other(from_the_end, "The pieces are matched from the end of the word; begin at its start."),
        Other(best_of_all(len), "You look for the split with the fewest pieces. WordPiece does not "
              "look ahead: it always takes the longest piece, whatever follows."),
        Other(best_of_all(lambda split: 0), "Where nothing fits you go back and try a shorter "
              "piece before. WordPiece never goes back: the word becomes [UNK]."),
    ),
)  # fmt: skip
