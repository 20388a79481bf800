"""Exercise 04.4: byte-pair encoding of one word.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
)

Pair = tuple[str, str]
Case = tuple[str, list[Pair]]  # word, merges in the order they were learned
Cases = Callable[[Draw], list[Case]]


def bpe(word: str, merges: Sequence[Pair]) -> list[str]:
    """The pieces of a word: again and again the pair learned first is joined, everywhere."""
    rank = {pair: place for place, pair in enumerate(merges)}
    pieces = list(word)
    while known := [pair for pair in pairwise(pieces) if pair in rank]:
        pieces = _join(pieces, min(known, key=rank.__getitem__))
    return pieces


def _join(pieces: Sequence[str], pair: Pair) -> list[str]:
    """Every occurrence of a pair as one piece, from the left; a piece is used once."""
    joined: list[str] = []
    for piece in pieces:
        if joined and (joined[-1], piece) == pair:
            joined[-1] += piece
            # An overlap such as a·a·a: the joined piece is a new one, so it cannot match again.
        else:
            joined.append(piece)
    return joined


# ---------------------------------------------------------------- known wrong answers


def _repeat(step: Callable[[list[str], dict[Pair, int]], list[str]], rounds: int = 99) -> Answer:
    """step(pieces, rank) again and again until it changes nothing."""

    def answer(word: str, merges: Sequence[Pair]) -> list[str]:
        rank, pieces = {pair: place for place, pair in enumerate(merges)}, list(word)
        for _ in range(rounds):
            after = step(pieces, rank)
            if after == pieces:
                break
            pieces = after
        return pieces

    return answer


def _known(pieces: Sequence[str], rank: dict[Pair, int]) -> list[tuple[int, int]]:
    """(rank, place) of every pair of neighbours that was learned."""
    return [(rank[pair], i) for i, pair in enumerate(pairwise(pieces)) if pair in rank]


def _join_at(pieces: list[str], i: int) -> list[str]:
    return [*pieces[:i], pieces[i] + pieces[i + 1], *pieces[i + 2 :]]


def _first_rank(pieces: list[str], rank: dict[Pair, int]) -> list[str]:
    known = _known(pieces, rank)
    return _join(pieces, _pair_at(pieces, min(known)[1])) if known else pieces


def _last_rank(pieces: list[str], rank: dict[Pair, int]) -> list[str]:
    known = _known(pieces, rank)
    return _join(pieces, _pair_at(pieces, max(known)[1])) if known else pieces


def _pair_at(pieces: Sequence[str], i: int) -> Pair:
    return pieces[i], pieces[i + 1]


def _leftmost(pieces: list[str], rank: dict[Pair, int]) -> list[str]:
    known = _known(pieces, rank)
    return _join_at(pieces, min(i for _, i in known)) if known else pieces


def _rightmost(pieces: list[str], rank: dict[Pair, int]) -> list[str]:
    known = _known(pieces, rank)
    return _join_at(pieces, max(i for _, i in known)) if known else pieces


def _from_the_right(pieces: list[str], rank: dict[Pair, int]) -> list[str]:
    known = _known(pieces, rank)
    if not known:
        return pieces
    left, right = _pair_at(pieces, min(known)[1])
    return [piece[::-1] for piece in _join([p[::-1] for p in reversed(pieces)],
                                           (right[::-1], left[::-1]))][::-1]  # fmt: skip


def _most_frequent(pieces: list[str], rank: dict[Pair, int]) -> list[str]:
    known = [_pair_at(pieces, i) for _, i in _known(pieces, rank)]
    return _join(pieces, max(known, key=known.count)) if known else pieces


def _longest(pieces: list[str], rank: dict[Pair, int]) -> list[str]:
    known = _known(pieces, rank)
    if not known:
        return pieces
    sizes = [(len("".join(_pair_at(pieces, i))), -i) for _, i in known]
    return _join_at(pieces, -max(sizes)[1])


def _sweep(pieces: list[str], rank: dict[Pair, int]) -> list[str]:
    """Once along the word, joining whatever may be joined, whatever its rank."""
    joined: list[str] = []
    for piece in pieces:
        if joined and (joined[-1], piece) in rank:
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def _twice(pieces: list[str], rank: dict[Pair, int]) -> list[str]:
    """Overlaps: the middle a of a·a·a is used for both pairs."""
    known = _known(pieces, rank)
    if not known:
        return pieces
    pair, joined, skip = _pair_at(pieces, min(known)[1]), [], False
    for i, piece in enumerate(pieces):
        if i + 1 < len(pieces) and (piece, pieces[i + 1]) == pair:
            joined.append("".join(pair))
            skip = True
        elif skip:
            skip = False
        else:
            joined.append(piece)
    return joined


def _once_each(word: str, merges: Sequence[Pair]) -> list[str]:
    """Each merge joins its first occurrence in the word, and no other."""
    pieces = list(word)
    for pair in merges:
        places = [i for i, found in enumerate(pairwise(pieces)) if found == pair]
        pieces = _join_at(pieces, places[0]) if places else pieces
    return pieces


def _replaced(word: str, merges: Sequence[Pair]) -> list[str]:
    """Spaces between the pieces, and str.replace: it also finds pairs inside longer pieces."""
    text = " ".join(word)
    for left, right in merges:
        text = text.replace(f"{left} {right}", left + right)
    return text.split(" ")


def _longest_match(word: str, merges: Sequence[Pair]) -> list[str]:
    """WordPiece's way: from the left, the longest piece there is."""
    known, pieces, start = {left + right for left, right in merges}, [], 0
    while start < len(word):
        ends = (e for e in range(len(word), start, -1) if word[start:e] in known)
        end = next(ends, start + 1)
        pieces.append(word[start:end])
        start = end
    return pieces


def _fewest(word: str, merges: Sequence[Pair]) -> list[str]:
    """The split into the fewest pieces that exist."""
    known = {left + right for left, right in merges} | set(word)
    best: list[list[str]] = [[]]
    for end in range(1, len(word) + 1):
        options = [[*best[s], word[s:end]] for s in range(end) if word[s:end] in known]
        best.append(min(options, key=len))
    return best[-1]


MERGE_SUSPECTS = (
    Suspect(
        "nothing joined",
        "Nothing is joined: these are the letters.",
        lambda w, m: list(w),
    ),
    Suspect(
        "one merge only",
        "One merge is made, then you stop. Look again: joined pieces have new neighbours, and "
        "other pairs are still there. Go on until no pair of neighbours stands in merges.",
        _repeat(_first_rank, rounds=1),
    ),
    Suspect(
        "one sweep",
        "You go along the word once and join whatever may be joined. The rank decides, not the "
        "place: find the pair that stands first in merges, join it everywhere, then look again.",
        _repeat(_sweep, rounds=1),
    ),
    Suspect(
        "longest match",
        "You take the longest piece that fits, from the left, as WordPiece does. BPE does not look "
        "for pieces; it repeats the merges in the order they were learned.",
        _longest_match,
    ),
    Suspect(
        "first occurrence only",
        "Each merge joins one occurrence and leaves the others. It joins every occurrence in the "
        "word.",
        _once_each,
    ),
    Suspect(
        "inside pieces",
        "Pairs are also found *inside* longer pieces: were the pieces joined with spaces and the "
        "pair replaced as text? In 'ba b' there is no piece a. Compare whole pieces.",
        _replaced,
    ),
    Suspect(
        "leftmost first",
        "The leftmost pair that may be joined is joined first. Not the place decides but the rank: "
        "the pair that stands first in merges, wherever it is in the word.",
        _repeat(_leftmost),
    ),
    Suspect(
        "rightmost first",
        "The rightmost pair that may be joined is joined first. Not the place decides but the "
        "rank: the pair that stands first in merges.",
        _repeat(_rightmost),
    ),
    Suspect(
        "latest first",
        "The pair that was learned *last* is joined first. merges[0] was learned first and goes "
        "first.",
        _repeat(_last_rank),
    ),
    Suspect(
        "overlaps from the right",
        "Overlapping pairs are joined from the right: a·a·a becomes a·aa. It is from the left: "
        "aa·a.",
        _repeat(_from_the_right),
    ),
    Suspect(
        "a piece used twice",
        "In a·a·a the middle piece is used for two pairs. A piece can be joined once in a round: "
        "aa·a.",
        _repeat(_twice),
    ),
    Suspect(
        "longest pair first",
        "The pair that makes the longest piece is joined first; it is the one that stands first in "
        "merges.",
        _repeat(_longest),
    ),
    Suspect(
        "most frequent in the word",
        "The pair that is most frequent in this word is joined first. Frequency was for learning; "
        "now only the order of merges counts.",
        _repeat(_most_frequent),
    ),
    Suspect(
        "fewest pieces",
        "You look for the split into the fewest pieces. BPE does not look ahead: it repeats the "
        "merges in the order they were learned.",
        _fewest,
    ),
    Suspect(
        "whole words only",
        "The word is kept whole where it exists as a piece, and spelt in letters otherwise.",
        lambda w, m: [w] if w in {a + b for a, b in m} else list(w),
    ),
)


# ---------------------------------------------------------------- inputs


def _drawn_merges(draw: Draw, number: int, longest: int = 5) -> list[Pair]:
    """Merges as training leaves them: of pieces that exist by then, each text in one way only."""
    pieces, merges = list("abc"), list[Pair]()
    for _ in range(200):
        left, right = draw.python.choices(pieces, k=2)
        if len(left + right) <= longest and left + right not in pieces:
            pieces.append(left + right)
            merges.append((left, right))
        if len(merges) == number:
            break
    return merges


def _drawn_word(draw: Draw, low: int = 3, high: int = 12) -> str:
    return "".join(draw.python.choices("abc", k=draw.integer(low, high)))


def _drawn_words(draw: Draw, number: int = 200) -> list[Case]:
    drawn = [(_drawn_word(draw), _drawn_merges(draw, draw.integer(3, 10))) for _ in range(number)]
    return sorted(drawn, key=lambda case: len(case[0]))  # so that the shortest fails first


def _no_pair(draw: Draw) -> list[Case]:
    return [("lamp", [("x", "y")]), ("a", [("a", "b")]), ("ba", [("a", "b")])]


def _one_merge(draw: Draw) -> list[Case]:
    words = [_drawn_word(draw, 4, 9) for _ in range(8)]
    return [("boat", [("o", "a")]), *((word, [("a", "b")]) for word in words)]


def _rank_decides(draw: Draw) -> list[Case]:
    """Two pairs that share a piece: the earlier one wins, on the left or on the right."""
    fixed = [
        ("abc", [("b", "c"), ("a", "b")]),
        ("abc", [("a", "b"), ("b", "c")]),
        ("cabcab", [("a", "b"), ("c", "a"), ("b", "c")]),
    ]
    pairs = [(x, y) for x in "abc" for y in "abc" if x != y]
    return fixed + [(_drawn_word(draw, 4, 9), draw.python.sample(pairs, 4)) for _ in range(40)]


def _overlaps(draw: Draw) -> list[Case]:
    return [(before + n * "a" + after, [("a", "a")])
            for n in (2, 3, 4, 5, 7) for before, after in (("", ""), ("b", "c"))]  # fmt: skip


def _of_joined(draw: Draw) -> list[Case]:
    """Pieces made of pieces, so that one round is not enough."""
    lower = [("l", "o"), ("lo", "w"), ("e", "r"), ("low", "er")]
    nested = [("a", "b"), ("ab", "c"), ("abc", "ab"), ("b", "b")]
    words = ["".join(draw.python.choices(("abc", "ab", "b", "c"), k=4)) for _ in range(30)]
    return [("lower", lower), ("slower", lower), *((word, nested) for word in words)]


# ---------------------------------------------------------------- stages


def _ask_merges(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _pieces(answer, case), bpe(*case)
            if given != right:
                pools = [[*_of_joined(draw), *_drawn_words(draw)], cases(draw)]
                found = name_suspect(answer, case, pools, MERGE_SUSPECTS, _same_pieces)
                raise told(found, _example(case, given, right))

    return ask


def _pieces(answer: Answer, case: Case) -> list[str]:
    given, word = call(answer, *case), case[0]
    if not isinstance(given, (list, tuple)) or not all(isinstance(piece, str) for piece in given):
        raise Mistake(
            "wrong type",
            f"Your function returned {given!r:.80} ({type(given).__name__}); expected a list of "
            "strings.",
        )
    if "".join(given) != word and len("".join(given)) < len(word):
        raise Mistake(
            "letters lost",
            f"For {word!r} you return {list(given)}, which is not the whole word: "
            f"{''.join(given)!r}. Is the last piece left out, or a piece that found no partner?",
        )
    return list(given)


def _same_pieces(mine: Any, theirs: list[str], _case: Any) -> bool:
    return list(mine) == theirs


def _example(case: Case, given: list[str], right: list[str]) -> str:
    word, merges = case
    inside = [f"{a}·{b}" for a, b in merges if a + b in word]
    fitting = f"with the merges {', '.join(inside)}, in this order," if inside else "no merge fits:"
    return f"For {word!r} {fitting} you have {'·'.join(given)}; it is {'·'.join(right)}."


MERGES = Exercise(
    id="04.4",
    title="Byte-pair encoding of one word",
    purpose="how RoBERTa cuts every text into pieces, none unknown",
    difficulty=3,
    minutes=15,
    signature="my_bpe(word, merges)",
    statement=(
        "Cut one word into pieces the way GPT-2 and RoBERTa do. Begin with its letters (in the "
        "real thing: its bytes). `merges` is a list of pairs `(left, right)` in the order in which "
        "they were learned. Of all pairs of neighbours in the word that stand in `merges`, take "
        "the one that stands *first* there, and join every occurrence of it, from the left. Then "
        "look again, until no pair of neighbours stands in `merges`. Return the list of pieces."
    ),
    hints=(
        "Give every pair its rank: {pair: place for place, pair in enumerate(merges)}.",
        "A round: list the pairs of neighbours, zip(pieces, pieces[1:]), keep those with a rank, "
        "take the smallest rank. No pair left: you are done.",
        "Joining: walk over the pieces with a while loop. Where pieces[i] and pieces[i + 1] are "
        "the pair, append both as one and go on with i + 2; otherwise append one and go on with "
        "i + 1.",
        "'abcab' with a·b, then ab·c: a·b·c·a·b, ab·c·ab, abc·ab.",
    ),
    solution=bpe,
    library=("course_lib.text.byte_bpe:apply_merges", "course_lib.text.byte_bpe:merge_pair"),
    when_raised=(
        (
            "index out of range",
            "The last piece has no right neighbour: test i + 1 < len(pieces) before you look at "
            "pieces[i + 1].",
        ),
    ),
    stages=(
        Check("no pair to join", _ask_merges(_no_pair)),
        Check("one merge, everywhere in the word", _ask_merges(_one_merge)),
        Check("the pair learned first wins", _ask_merges(_rank_decides)),
        Check("a·a·a: overlapping pairs", _ask_merges(_overlaps)),
        Check("pieces made of pieces", _ask_merges(_of_joined)),
        Check("two hundred drawn words", _ask_merges(_drawn_words)),
    ),
)
