"""Exercise 02.7: WordPiece for one word.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    find_suspect,
)

Case = tuple[str, set[str], int]  # word, vocabulary, max_chars
Cases = Callable[[Draw], list[Case]]


def wordpiece(word: str, vocab: set[str], max_chars: int) -> list[str]:
    """Greedy, longest piece first; the whole word is [UNK] where no piece fits."""
    if len(word) > max_chars:
        return ["[UNK]"]
    pieces: list[str] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)  # longest first
        end = next((end for end in ends if prefix + word[start:end] in vocab), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def _split(
    word: str,
    vocab: set[str],
    max_chars: int = 10**9,
    *,
    longest: bool = True,
    look: str = "##",
    write: str = "##",
    stuck: Callable[[list[str], str], list[str]] = lambda pieces, rest: ["[UNK]"],
) -> list[str]:
    """WordPiece with switches for going wrong; `look` stands before pieces that are looked up."""
    pieces: list[str] = []
    start = 0
    while start < len(word) and len(word) <= max_chars:
        ends = list(range(len(word), start, -1))
        fit = [e for e in ends if (look if start else "") + word[start:e] in vocab]
        if not fit:
            return stuck(pieces, word[start:])
        end = fit[0] if longest else fit[-1]
        pieces.append((write if start else "") + word[start:end])
        start = end
    return pieces or ["[UNK]"]


def _all_splits(word: str, vocab: set[str], start: int = 0) -> list[list[str]]:
    if start == len(word):
        return [[]]
    prefix = "##" if start else ""
    return [
        [prefix + word[start:end], *rest]
        for end in range(len(word), start, -1)
        if prefix + word[start:end] in vocab
        for rest in _all_splits(word, vocab, end)
    ]


def _fewest(word: str, vocab: set[str], max_chars: int) -> list[str]:
    splits = _all_splits(word, vocab) if len(word) <= max_chars else []
    return min(splits, key=len) if splits else ["[UNK]"]


def _first_split(word: str, vocab: set[str], max_chars: int) -> list[str]:
    splits = _all_splits(word, vocab) if len(word) <= max_chars else []
    return splits[0] if splits else ["[UNK]"]


def _from_the_end(word: str, vocab: set[str], max_chars: int) -> list[str]:
    pieces: list[str] = []
    end = len(word)
    while end > 0 and len(word) <= max_chars:
        starts = [s for s in range(end) if ("##" if s else "") + word[s:end] in vocab]
        if not starts:
            return ["[UNK]"]
        pieces.insert(0, ("##" if starts[0] else "") + word[starts[0] : end])
        end = starts[0]
    return pieces or ["[UNK]"]


WORDPIECE_SUSPECTS = (
    Suspect(
        "shortest first",
        "The shortest piece that fits is taken; it must be the longest.",
        lambda w, v, m: _split(w, v, m, longest=False),
    ),
    Suspect(
        "looked up without ##",
        "Continuing pieces are looked up without their ##: inside a word only pieces that begin "
        "with ## may be used.",
        lambda w, v, m: _split(w, v, m, look=""),
    ),
    Suspect(
        "without ## throughout",
        "The ## is missing: pieces after the first are looked up and written with ## in front.",
        lambda w, v, m: _split(w, v, m, look="", write=""),
    ),
    Suspect(
        "written without ##",
        "The right pieces, written without ##: pieces after the first keep theirs.",
        lambda w, v, m: _split(w, v, m, write=""),
    ),
    Suspect(
        "pieces before [UNK]",
        "Where nothing fits, the pieces found so far are kept and [UNK] follows. The whole word "
        "becomes one [UNK].",
        lambda w, v, m: _split(w, v, m, stuck=lambda pieces, rest: [*pieces, "[UNK]"]),
    ),
    Suspect(
        "stops where stuck",
        "Where nothing fits, the pieces found so far are returned and the rest of the word is "
        "lost. The whole word becomes [UNK].",
        lambda w, v, m: _split(w, v, m, stuck=lambda pieces, rest: pieces),
    ),
    Suspect(
        "no length limit",
        "max_chars has no effect: a word with more characters becomes [UNK].",
        lambda w, v, m: wordpiece(w, v, 10**9),
    ),
    Suspect(
        "limit one too early",
        "A word of exactly max_chars characters is still allowed; only longer ones become [UNK].",
        lambda w, v, m: wordpiece(w, v, m - 1),
    ),
    Suspect(
        "from the end",
        "The pieces are matched from the end of the word; begin at its start.",
        _from_the_end,
    ),
    Suspect(
        "fewest pieces",
        "You look for the split with the fewest pieces. WordPiece does not look ahead: it takes "
        "the longest piece and lives with the consequences.",
        _fewest,
    ),
    Suspect(
        "goes back",
        "Where nothing fits you go back and try a shorter piece before. WordPiece never goes "
        "back: the word becomes [UNK].",
        _first_split,
    ),
    Suspect(
        "[UNK] for letters",
        "Letters that fit nowhere become [UNK] one by one; the whole word does.",
        lambda w, v, m: _with_unknown_letters(w, v, m),
    ),
    Suspect(
        "whole words only",
        "Words that are not in the vocabulary become [UNK] without being split.",
        lambda w, v, m: [w] if w in v and len(w) <= m else ["[UNK]"],
    ),
)


def _with_unknown_letters(word: str, vocab: set[str], max_chars: int) -> list[str]:
    pieces, start = [], 0
    if len(word) > max_chars:
        return ["[UNK]"]
    while start < len(word):
        prefix = "##" if start else ""
        ends = [e for e in range(len(word), start, -1) if prefix + word[start:e] in vocab]
        pieces.append(prefix + word[start : ends[0]] if ends else "[UNK]")
        start = ends[0] if ends else start + 1
    return pieces


def _drawn_vocabulary(draw: Draw) -> set[str]:
    """Short strings over three letters, some to begin a word, some to continue one; never all."""
    strings = {
        "".join(draw.python.choices("abc", k=draw.python.choice((1, 1, 2, 2, 3, 4))))
        for _ in range(30)
    }
    vocab = {s for s in strings if draw.python.random() < 0.6}
    return vocab | {"##" + s for s in strings if draw.python.random() < 0.6} | {"[UNK]"}


def _drawn_words(draw: Draw, number: int) -> list[Case]:
    return [
        (
            "".join(draw.python.choices("abc", k=draw.integer(1, 9))),
            _drawn_vocabulary(draw),
            draw.integer(6, 9),
        )
        for _ in range(number)
    ]


# Going back finds abc ##c ##ba; the fewest pieces are ab ##ccba.
LOOKS_AHEAD = ("abccba", {"abc", "##c", "##ba", "ab", "##ccba"}, 9)


def _always_fitting(draw: Draw) -> list[Case]:
    """Drawn words that any way of splitting gets through, none too long."""
    letters = {sign + letter for letter in "abc" for sign in ("", "##")}
    return [(word, vocab | letters, 100) for word, vocab, _ in _drawn_words(draw, 100)]


def _never_too_long(draw: Draw) -> list[Case]:
    return [(word, vocab, 100) for word, vocab, _ in _drawn_words(draw, 300)]


def _any_words(draw: Draw) -> list[Case]:
    return _drawn_words(draw, 300)


def _expect_pieces(answer: Answer, case: Case, draw: Draw, like: Cases) -> None:
    word, vocab, max_chars = case
    given, right = call(answer, *case), wordpiece(*case)
    if not isinstance(given, (list, tuple)) or not all(isinstance(piece, str) for piece in given):
        raise Mistake(
            "wrong type",
            f"Your function returned {given!r} ({type(given).__name__}); expected a list of "
            "strings.",
        )
    if list(given) == right:
        return
    used = sorted(piece for piece in vocab if piece.removeprefix("##") in word)
    said = (
        f"For {word!r} with the fitting pieces {used} and max_chars={max_chars} you have "
        f"{list(given)}; it is {right}."
    )
    found = find_suspect(answer, [case, LOOKS_AHEAD, *like(draw)], WORDPIECE_SUSPECTS, _same_pieces)
    raise Mistake(found.key if found else "", f"{found.message}\n{said}" if found else said)


def _same_pieces(mine: Any, theirs: list[str], _case: Any) -> bool:
    return list(mine) == theirs


def _ask_words(cases: Cases, like: Cases = _any_words) -> Callable[[Answer, Draw], None]:
    """A stage on these cases; a mistake is named on drawn ones like them.

    They ask no more than the stage does: what an answer cannot do yet must not hide what is wrong
    with it here.
    """

    def ask(answer: Answer, draw: Draw) -> None:
        found = sorted(
            cases(draw), key=lambda case: len(case[0])
        )  # so that the shortest fails first
        for case in found:
            _expect_pieces(answer, case, draw, like)

    return ask


def _known_words(draw: Draw) -> list[Case]:
    return [(word, {"river", "lamp", "clouds", "##s"}, 100) for word in ("lamp", "river", "clouds")]


def _longest_wins(draw: Draw) -> list[Case]:
    # No piece stands here both with and without ##, so that leaving it out shows.
    inside = ("light", "s", "m", "p", "l", "i", "g", "h", "t")
    vocab = {"la", "lam", "lamp", *("##" + piece for piece in inside)}
    return [("lamps", vocab, 100), ("lamplight", vocab, 100)]


def _nothing_fits(draw: Draw) -> list[Case]:
    vocab = {"ri", "##v", "##er", "river", "##bed", "[UNK]"}
    return [("riverbank", vocab, 100), ("rivet", vocab, 100), ("zebra", vocab, 100)]


def _too_long(draw: Draw) -> list[Case]:
    limit = draw.integer(5, 12)
    return [("a" * n, {"a", "##a"}, limit) for n in (limit - 1, limit, limit + 1)]


WORDS = Exercise(
    id="02.7",
    title="WordPiece for one word",
    purpose="how 30,522 pieces spell every word, almost",
    difficulty=3,
    minutes=15,
    signature="my_wordpiece(word, vocab, max_chars)",
    statement=(
        "Split one lower-case word into pieces of `vocab` (a set of strings) the way BERT does: "
        "from the left, always the longest piece that fits. Pieces after the first stand in the "
        "vocabulary, and in the result, with `##` in front. "
        'Where no piece fits, the result is `["[UNK]"]` for the whole word; so it is for a word of '
        "more than `max_chars` characters."
    ),
    hints=(
        "Keep a start position. Try the end at the last letter first, then one letter less each "
        "time.",
        "At start 0 look up word[start:end]; later look up '##' + word[start:end].",
        "When no end fits, return ['[UNK]'] at once: no going back, no half words.",
    ),
    solution=wordpiece,
    library=(
        "course_lib.text.wordpiece:longest_match",
        "course_lib.text.wordpiece:WordPiece.pieces",
    ),
    stages=(
        Check("a word that is in the vocabulary", _ask_words(_known_words, _always_fitting)),
        Check("the longest piece wins", _ask_words(_longest_wins, _always_fitting)),
        Check("nothing fits: one [UNK]", _ask_words(_nothing_fits, _never_too_long)),
        Check("too long: [UNK]", _ask_words(_too_long)),
        Check("three hundred drawn words", _ask_words(_any_words)),
    ),
)
