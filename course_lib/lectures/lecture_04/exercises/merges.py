"""Exercise 04.4: byte-pair encoding of one word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

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

Pair = tuple[str, str]


def bpe(word: str, merges: Sequence[Pair]) -> list[str]:
    """The pieces of a word: again and again the pair learned first is joined, everywhere."""
    rank = {pair: place for place, pair in enumerate(merges)}
    pieces = list(word)
    while candidates := [pair for pair in pairwise(pieces) if pair in rank]:
        pieces = join(pieces, min(candidates, key=rank.__getitem__))
    return pieces


def join(pieces: Sequence[str], pair: Pair) -> list[str]:
    """Every occurrence of a pair as one piece, from the left; a piece is used once."""
    joined: list[str] = []
    for piece in pieces:
        if joined and (joined[-1], piece) == pair:
            joined[-1] += piece  # in a·a·a this is a new piece, so it cannot match again
        else:
            joined.append(piece)
    return joined


def join_at(pieces: list[str], i: int) -> list[str]:
    return [*pieces[:i], pieces[i] + pieces[i + 1], *pieces[i + 2 :]]


def one_by_one(key: Callable[[int, int], Any]) -> Answer:
    """One occurrence at a time, that with the smallest key(rank, place)."""

    def answer(word: str, merges: Sequence[Pair]) -> list[str]:
        rank, pieces = {pair: place for place, pair in enumerate(merges)}, list(word)
        while candidates := [(rank[p], i) for i, p in enumerate(pairwise(pieces)) if p in rank]:
            pieces = join_at(pieces, min(candidates, key=lambda at: key(at[0], at[1]))[1])
        return pieces

    return answer


def once_each(word: str, merges: Sequence[Pair]) -> list[str]:
    pieces = list(word)
    for pair in merges:
        at = [i for i, candidate in enumerate(pairwise(pieces)) if candidate == pair]
        pieces = join_at(pieces, at[0]) if at else pieces
    return pieces


def replaced(word: str, merges: Sequence[Pair]) -> list[str]:
    text = " ".join(word)
    for left, right in merges:
        text = text.replace(f"{left} {right}", left + right)
    return text.split(" ")


def longest_match(word: str, merges: Sequence[Pair]) -> list[str]:
    vocabulary, pieces = {left + right for left, right in merges}, list[str]()
    while word:
        size = next((n for n in range(len(word), 1, -1) if word[:n] in vocabulary), 1)
        pieces, word = [*pieces, word[:size]], word[size:]
    return pieces


def fewest(word: str, merges: Sequence[Pair]) -> list[str]:
    vocabulary, best = {left + right for left, right in merges} | set(word), [list[str]()]
    for end in range(1, len(word) + 1):
        options = [[*best[s], word[s:end]] for s in range(end) if word[s:end] in vocabulary]
        best.append(min(options, key=len))
    return best[-1]


def drawn_merges(draw: Draw, count: int) -> list[Pair]:
    """Merges as training leaves them: of pieces that exist by then, each text in one way only."""
    pieces, merges = list("abc"), list[Pair]()
    for _ in range(200):
        left, right = draw.python.choices(pieces, k=2)
        if len(merges) < count and len(left + right) <= 5 and left + right not in pieces:
            pieces.append(left + right)
            merges.append((left, right))
    return merges


def drawn_word(draw: Draw, shortest: int = 3, longest: int = 12) -> str:
    return "".join(draw.python.choices("abc", k=draw.integer(shortest, longest)))


def one_merge(draw: Draw) -> list[Case]:
    words = [drawn_word(draw, 4, 9) for _ in range(8)]
    return [("boat", [("o", "a")]), *((word, [("a", "b")]) for word in words)]


def rank_decides(draw: Draw) -> list[Case]:
    """Two pairs that share a piece: the earlier one wins, on the left or on the right."""
    ab, bc, ca = ("a", "b"), ("b", "c"), ("c", "a")
    pairs = [(x, y) for x in "abc" for y in "abc" if x != y]
    random_cases = [(drawn_word(draw, 4, 9), draw.python.sample(pairs, 4)) for _ in range(40)]
    return [("abc", [bc, ab]), ("abc", [ab, bc]), ("cabcab", [ab, ca, bc]), *random_cases]


def of_joined(draw: Draw) -> list[Case]:
    """Pieces made of pieces, so that one round is not enough."""
    lower = [("l", "o"), ("lo", "w"), ("e", "r"), ("low", "er")]
    nested = [("a", "b"), ("ab", "c"), ("abc", "ab"), ("b", "b")]
    words = ["".join(draw.python.choices(("abc", "ab", "b", "c"), k=4)) for _ in range(30)]
    return [("lower", lower), ("slower", lower), *((word, nested) for word in words)]


def drawn_words(draw: Draw, count: int = 200) -> list[Case]:
    return [(drawn_word(draw), drawn_merges(draw, draw.integer(3, 10))) for _ in range(count)]


NO_PAIR: list[Case] = [("lamp", [("x", "y")]), ("a", [("a", "b")]), ("ba", [("a", "b")])]
RUNS = [x + n * "a" + y for n in (2, 3, 4, 5, 7) for x, y in (("", ""), ("b", "c"))]
FIRST = "min(candidates, key=rank.__getitem__)"

MERGES = Exercise(
    **written("04.4"),
    solution=bpe,
    helpers=(join,),
    returns=Items("list of pieces", of="pieces, each a string"),
    library=("course_lib.text.byte_bpe:apply_merges", "course_lib.text.byte_bpe:merge_pair"),
    when_raised=(
        ("index out of range", "The last piece has no right neighbour: test i + 1 < len(pieces) "
         "before you look at pieces[i + 1]."),
    ),
    stages=(
        Stage("no pair to join", lambda draw: NO_PAIR),
        Stage("one merge, everywhere in the word", one_merge),
        Stage("the pair learned first wins", rank_decides),
        Stage("a·a·a: overlapping pairs", lambda draw: [(run, [("a", "a")]) for run in RUNS]),
        Stage("pieces made of pieces", of_joined),
        Stage("two hundred drawn words", drawn_words),
    ),
    mistakes=(
        Edit("return pieces", "return list(word)", "Nothing is joined: these are the letters."),
        Edit("while candidates :=", "if candidates :=", "One merge is made, then you stop. Look "
             "again: joined pieces have new neighbours, and other pairs are still there. Go on "
             "until no pair of neighbours occurs in merges."),
        Edit("while candidates :=", "if candidates :=", "You go along the word once and join "
             "whatever may be joined. The rank decides, not the place in the word: find the pair "
             "that comes first in merges, join it everywhere, then look again.",
             more=((FIRST, "rank"), ("== pair", "in pair"))),
        Other(longest_match, "You take the longest piece that fits, from the left, as WordPiece "
              "does. BPE does not look for pieces; it repeats the merges in the order they were "
              "learned."),
        Other(once_each, "Each of your merges joins one occurrence and leaves the others. A merge "
              "joins every occurrence in the word."),
        Other(replaced, "You also find pairs *inside* longer pieces. Did you join the pieces with "
              "spaces and replace the pair as text? In 'ba b' there is no piece a. Compare whole "
              "pieces."),
        Other(one_by_one(lambda rank, i: i), "You join the leftmost possible pair first (or the "
              "one that makes the longest piece, which has the same effect). The rank decides, not "
              "the place: take the pair that comes first in merges."),
        Edit(FIRST, "candidates[0]", "You join the leftmost possible pair first, everywhere. The "
             "rank decides, not the place: take the pair that comes first in merges."),
        Other(one_by_one(lambda rank, i: -i), "You join the rightmost possible pair first. The "
              "rank decides, not the place: take the pair that comes first in merges."),
        Edit(FIRST, FIRST.replace("min", "max"), "You join the pair that was learned *last* first. "
             "merges[0] was learned first and comes first."),
        Other(one_by_one(lambda rank, i: (rank, -i)), "You join overlapping pairs from the right: "
              "a·a·a becomes a·aa. Join them from the left: aa·a."),
        Edit(f"pieces = join(pieces, {FIRST})", f"hits = [p == {FIRST} for p in pairwise(pieces)]; "
             "pieces = [a + b if hit else a for a, b, before, hit in "
             "zip(pieces, [*pieces[1:], ''], [False, *hits], [*hits, False]) if hit or not before]",
             "In a·a·a you use the middle piece for two pairs. A piece can be joined only once in "
             "a round: aa·a."),
        Edit(FIRST, "max(candidates, key=candidates.count)", "You join the pair that is most "
             "frequent in this word first. Frequency mattered in training; now only the order of "
             "merges counts."),
        Other(fewest, "You look for the split into the fewest pieces. BPE does not look ahead: it "
              "repeats the merges in the order they were learned."),
        Edit("return pieces",
             "return [word] if word in {a + b for a, b in merges} else list(word)",
             "You keep the word whole where it exists as a piece, and spell it in letters "
             "otherwise. Apply the merges in their order."),
        Edit("return joined", "return joined if joined[-1] != piece else joined[:-1]",
             "Letters are lost: the pieces no longer make the whole word. Do you leave out the "
             "last piece when it has no partner?"),
    ),
)  # fmt: skip
