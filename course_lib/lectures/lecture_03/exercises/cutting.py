"""Exercise 03.5: a pair into a row of fixed length.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

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

from .slips import pools, slip_suspects

Tokens = list[str]
Case = tuple[Tokens, Tokens, int]  # premise, hypothesis, length
Cases = Callable[[Draw], list[Case]]
Row = tuple[Tokens, list[int]]

CLS, SEP, PAD = "[CLS]", "[SEP]", "[PAD]"


def pack_cut(a: Sequence[str], b: Sequence[str], length: int) -> Row:
    """[CLS] a [SEP] b [SEP] in `length` positions, the longer text cut first, and segment ids."""
    a, b = list(a), list(b)
    while len(a) + len(b) > length - 3:
        longer = a if len(a) > len(b) else b
        longer.pop()
    first, second = [CLS, *a, SEP], [*b, SEP]
    free = length - len(first) - len(second)
    return first + second + [PAD] * free, [0] * len(first) + [1] * len(second) + [0] * free


# ---------------------------------------------------------------- known wrong answers

Cut = Callable[[int, int, int], tuple[int, int]]  # lengths of a, b, room for both -> what is kept


def _longer_first(a: int, b: int, room: int) -> tuple[int, int]:
    while a + b > room:
        a, b = (a - 1, b) if a > b else (a, b - 1)
    return a, b


def _tie_from_a(a: int, b: int, room: int) -> tuple[int, int]:
    return _longer_first(b, a, room)[::-1]


def _second_first(a: int, b: int, room: int) -> tuple[int, int]:
    b = min(b, max(1, room - a))
    return min(a, room - b), b


def _first_first(a: int, b: int, room: int) -> tuple[int, int]:
    return _second_first(b, a, room)[::-1]


def _first_alone(a: int, b: int, room: int) -> tuple[int, int]:
    """Down to nothing, and then the pair still does not fit."""
    return max(0, min(a, room - b)), b


def _second_alone(a: int, b: int, room: int) -> tuple[int, int]:
    return _first_alone(b, a, room)[::-1]


def _longer_alone(a: int, b: int, room: int) -> tuple[int, int]:
    """All that is too much from the text that is longer before anything is cut."""
    surplus = max(0, a + b - room)
    return (max(1, a - surplus), b) if a > b else (a, max(1, b - surplus))


def _turn_by_turn(a: int, b: int, room: int) -> tuple[int, int]:
    last_a = False
    while a + b > room:
        a, b, last_a = (a - 1, b, True) if not last_a and a > 1 else (a, max(1, b - 1), False)
    return a, b


def _half_each(a: int, b: int, room: int) -> tuple[int, int]:
    return (a, b) if a + b <= room else (min(a, room // 2), min(b, room // 2))


def _half_and_rest(a: int, b: int, room: int) -> tuple[int, int]:
    return (a, b) if a + b <= room else (min(a, room // 2), min(b, room - room // 2))


def _in_proportion(a: int, b: int, room: int) -> tuple[int, int]:
    kept = max(1, min(room - 1, a * room // (a + b)))
    return (a, b) if a + b <= room else (kept, room - kept)


def _in_proportion_rounded(a: int, b: int, room: int) -> tuple[int, int]:
    kept = max(1, min(room - 1, round(a * room / (a + b))))
    return (a, b) if a + b <= room else (kept, room - kept)


def _shorter_first(a: int, b: int, room: int) -> tuple[int, int]:
    while a + b > room:
        a, b = (a - 1, b) if a < b else (a, b - 1)
    return a, b


def _half_always(a: int, b: int, room: int) -> tuple[int, int]:
    return min(a, room // 2), min(b, room // 2)


def _one_token(a: int, b: int, room: int) -> tuple[int, int]:
    return _longer_first(a, b, max(room, a + b - 1))


def _with(
    *,
    keep: Cut = _longer_first,
    side: str = "end",
    room: int = 3,
    cls: bool = True,
    middle: int = 1,
    last: bool = True,
    middle_segment: int = 0,
    last_segment: int = 1,
    pad_segment: int = 0,
    pads: str = "behind",
    segments: Callable[[int], int] = lambda segment: segment,
) -> Answer:
    """The answer with switches for going wrong.

    keep: how much of each text; side: where the rest is cut off; room: how many positions are left
    free for special tokens; cls, middle, last: which of these there are; segments: the ids that
    stand for 0 and 1."""

    def answer(a: Sequence[str], b: Sequence[str], length: int) -> Row:
        kept = keep(len(a), len(b), length - room)
        a, b = (_cut(text, many, side) for text, many in zip((a, b), kept, strict=True))
        parts = [
            ([CLS] * cls, 0),
            (a, 0),
            ([SEP] * middle, middle_segment),
            (b, 1),
            ([SEP] * last, last_segment),
        ]
        tokens = [token for part, _ in parts for token in part]
        ids = [segments(segment) for part, segment in parts for _ in part]
        free = max(0, length - len(tokens))
        pad, pad_ids = [PAD] * free, [pad_segment] * free
        if pads == "in front":
            return pad + tokens, pad_ids + ids
        if pads == "tokens alone":
            return tokens + pad, ids
        return (tokens, ids) if pads == "none" else (tokens + pad, ids + pad_ids)

    return answer


def _cut(text: Sequence[str], many: int, side: str) -> Tokens:
    many = max(0, many)
    return list(text[:many]) if side == "end" else list(text[len(text) - many :])


SLIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "always the second": (
        "The hypothesis is cut, even where the premise is longer. Token by token, the text that is "
        "longer at that moment loses one.",
        {"keep": _second_first},
    ),
    "always the first": (
        "The premise is cut, even where the hypothesis is longer. Token by token, the text that is "
        "longer at that moment loses one.",
        {"keep": _first_first},
    ),
    "the shorter first": (
        "The shorter text loses tokens; it is the longer one that does.",
        {"keep": _shorter_first},
    ),
    "only the longer": (
        "All surplus tokens come from the text that was longer at the start. Once both are equally "
        "long, they take turns: compare anew before each token.",
        {"keep": _longer_alone},
    ),
    "turn by turn": (
        "Both texts lose tokens in turn. Only the longer one does, until both are equally long.",
        {"keep": _turn_by_turn},
    ),
    "half for each": (
        "Each text gets half of the room. What a short text does not need belongs to the other "
        "one.",
        {"keep": _half_each},
    ),
    "half for each, always": (
        "Each text is cut to half of the room, even where the pair fits. Ask first whether it is "
        "too long, and then whose turn it is.",
        {"keep": _half_always},
    ),
    "half and the rest": (
        "Each text gets half of the room, the second the odd place. What a short text does not "
        "need belongs to the other one.",
        {"keep": _half_and_rest},
    ),
    "in proportion": (
        "Both texts are shortened in proportion. Only the longer one loses tokens, until both are "
        "equally long.",
        {"keep": _in_proportion},
    ),
    "in proportion, rounded": (
        "Both texts are shortened in proportion. Only the longer one loses tokens, until both are "
        "equally long: short texts stay whole.",
        {"keep": _in_proportion_rounded},
    ),
    "one token only": (
        "One token is cut, however many are too much: repeat until the pair fits.",
        {"keep": _one_token},
    ),
    "nothing cut": (
        "Nothing is cut: pairs that are too long stay so.",
        {"keep": lambda a, b, room: (a, b)},
    ),
    "tie from the first": (
        "Where both texts are equally long, the first loses a token; by BERT's rule it is the "
        "second.",
        {"keep": _tie_from_a},
    ),
    "cut from the front": (
        "Tokens are taken from the front of the texts; for fine-tuning the end is cut off.",
        {"side": "front"},
    ),
    "special tokens not counted": (
        "Room is left for the words alone: [CLS] and two [SEP] come on top. The two texts have "
        "length − 3 positions.",
        {"room": 0},
    ),
    "one special token counted": (
        "One position is left for special tokens; there are three, [CLS] and two [SEP].",
        {"room": 1},
    ),
    "two special tokens counted": (
        "Two positions are left for special tokens; there are three, [CLS] and two [SEP].",
        {"room": 2},
    ),
    "four special tokens counted": (
        "One token more than necessary is cut: a pair that fits exactly loses one, too. Special "
        "are three positions, and `length` itself is allowed.",
        {"room": 4},
    ),
    "no [CLS]": ("[CLS] is missing at the start.", {"cls": False}),
    "no [SEP] between": ("[SEP] is missing between the two texts.", {"middle": 0}),
    "two [SEP] between": (
        "Two [SEP] stand between the texts: that is RoBERTa's way. BERT has one.",
        {"middle": 2},
    ),
    "two [SEP] between, counted": (
        "Two [SEP] stand between the texts: that is RoBERTa's way. BERT has one, and needs three "
        "special positions, not four.",
        {"middle": 2, "room": 4},
    ),
    "no [SEP] at the end": ("[SEP] is missing behind the second text.", {"last": False}),
    "middle [SEP] in segment 1": (
        "The [SEP] between the texts has segment 1. It closes the first text and has its segment, "
        "0.",
        {"middle_segment": 1},
    ),
    "last [SEP] in segment 0": (
        "The last [SEP] has segment 0. It closes the second text and has its segment, 1.",
        {"last_segment": 0},
    ),
    "padding in segment 1": (
        "The padding has segment 1. BERT pads the segment ids with 0.",
        {"pad_segment": 1},
    ),
    "segments 1 and 2": (
        "The segments are numbered 1 and 2; they are 0 and 1.",
        {"segments": lambda segment: segment + 1},
    ),
    "segments exchanged": (
        "The segment ids are the wrong way round: the first text is segment 0.",
        {"segments": lambda segment: 1 - segment},
    ),
    "one segment": (
        "All segment ids are the same; the second text, with its [SEP], is segment 1.",
        {"segments": lambda segment: 0},
    ),
    "no padding": (
        "Short pairs are not padded: both lists have `length` entries.",
        {"pads": "none"},
    ),
    "segment ids not padded": (
        "The tokens are padded, the segment ids are not: both lists have `length` entries.",
        {"pads": "tokens alone"},
    ),
    "padding in front": (
        "The padding stands in front; it belongs behind the last [SEP].",
        {"pads": "in front"},
    ),
}


def _whole_row(a: Sequence[str], b: Sequence[str], length: int) -> Row:
    """The row is built in full, then cut off where it is full."""
    tokens, segments = pack_cut(a, b, max(length, len(a) + len(b) + 3))
    return tokens[:length], segments[:length]


def _whole_row_closed(a: Sequence[str], b: Sequence[str], length: int) -> Row:
    tokens, segments = _whole_row(a, b, length)
    return ([*tokens[:-1], SEP] if len(a) + len(b) > length - 3 else tokens), segments


def _a_by_slice(a: Sequence[str], b: Sequence[str], length: int) -> Row:
    return _with(room=3 - len(a) - len(b))(a[: length - 3 - len(b)], b, length)


def _b_by_slice(a: Sequence[str], b: Sequence[str], length: int) -> Row:
    return _with(room=3 - len(a) - len(b))(a, b[: length - 3 - len(a)], length)


CUTTING_SUSPECTS = slip_suspects(
    _with,
    SLIPS,
    Suspect("always the first", SLIPS["always the first"][0], _a_by_slice),
    Suspect("always the second", SLIPS["always the second"][0], _b_by_slice),
    Suspect("always the first", SLIPS["always the first"][0], _with(keep=_first_alone)),
    Suspect("always the second", SLIPS["always the second"][0], _with(keep=_second_alone)),
    Suspect(
        "texts exchanged",
        "The hypothesis stands first. a comes first, in segment 0; b is segment 1.",
        lambda a, b, length: pack_cut(b, a, length),
    ),
    Suspect(
        "row cut off",
        "The row is built first and then cut off at `length`. The hypothesis alone pays, and the "
        "last [SEP] is lost. Shorten the texts first.",
        _whole_row,
    ),
    Suspect(
        "row cut off, then closed",
        "The row is built first, cut off at `length` and closed with a [SEP]. The hypothesis alone "
        "pays. Shorten the texts first, the longer one token by token.",
        _whole_row_closed,
    ),
)


# ---------------------------------------------------------------- inputs


def _pair(draw: Draw, a: int, b: int, length: int) -> Case:
    """Tokens that tell where they come from: p1 p2 … of the premise, h1 h2 … of the hypothesis."""
    return [f"p{n}" for n in range(1, a + 1)], [f"h{n}" for n in range(1, b + 1)], length


def _exact(draw: Draw) -> list[Case]:
    return [_pair(draw, a, b, a + b + 3) for a, b in ((2, 1), (1, 3), (draw.integer(3, 5), 4))]


def _short(draw: Draw) -> list[Case]:
    return [_pair(draw, 2, 1, 8), _pair(draw, 3, 4, 10 + draw.integer(1, 4))]


def _one_too_long(draw: Draw) -> list[Case]:
    """One text has so much more that the other stays whole; the premise, then the hypothesis."""
    short, surplus = draw.integer(2, 3), draw.integer(2, 3)
    long = short + surplus + draw.integer(1, 3)
    length = short + long - surplus + 3
    return [_pair(draw, long, short, length), _pair(draw, short, long, length)]


def _both_too_long(draw: Draw) -> list[Case]:
    return [
        _pair(draw, 5, 5, 12),
        _pair(draw, 4, 6, 10),
        _pair(draw, 7, 6, 10),
        _pair(draw, 6, 6, 11),
    ]


def _everything(draw: Draw) -> list[Case]:
    sizes = [(draw.integer(2, 10), draw.integer(2, 10)) for _ in range(40)]
    return [_pair(draw, a, b, max(5, a + b + 3 - draw.integer(-3, 8))) for a, b in sizes]


def _fitting(draw: Draw) -> list[Case]:
    return [*_exact(draw), *_short(draw), _pair(draw, 4, 2, 12), _pair(draw, 2, 5, 11)]


def _mild(draw: Draw) -> list[Case]:
    """So little is too much that either text could give all of it."""
    made = _fitting(draw)
    for _ in range(20):
        a, b, surplus = draw.integer(5, 10), draw.integer(5, 10), draw.integer(0, 4)
        made.append(_pair(draw, a, b, a + b + 3 - surplus))
    return made


# ---------------------------------------------------------------- stages


def _ask_row(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case)), pack_cut(*case)
            if given == right:
                continue
            asked = pools(cases, draw, _everything, _mild, _fitting)
            found = name_suspect(answer, case, asked, CUTTING_SUSPECTS, _same)
            raise told(found, _example(case, given, right))

    return ask


def _example(case: Case, given: Row, right: Row) -> str:
    a, b, length = case
    what = 0 if given[0] != right[0] else 1
    mine, theirs = (" ".join(map(str, row[what])) for row in (given, right))
    return (
        f"A premise of {len(a)} and a hypothesis of {len(b)} tokens, length {length}: you have the "
        f"{('tokens', 'segment ids')[what]} {mine} ({len(given[what])}); it is {theirs} "
        f"({len(right[what])})."
    )


def _read(x: Any) -> Row:
    if isinstance(x, (tuple, list)) and len(x) == 3 and all(map(_is_row, x)):
        raise Mistake(
            "three lists",
            "Your function returned three lists; expected two, tokens and segment ids. An "
            "attention mask is not asked for here.",
        )
    if not isinstance(x, (tuple, list)) or len(x) != 2 or not all(map(_is_row, x)):
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r:.60} ({type(x).__name__}); expected two lists: tokens, "
            "and segment ids.",
        )
    tokens, segments = (y.tolist() if isinstance(y, Tensor) else list(y) for y in x)
    if all(isinstance(n, int) for n in tokens) and all(isinstance(t, str) for t in segments):
        raise Mistake(
            "lists exchanged",
            "Your function returned the segment ids first; expected the tokens, then their "
            "segment ids.",
        )
    strange = any(isinstance(token, (list, tuple)) for token in tokens)
    if strange or not all(isinstance(n, (int, float)) for n in segments):
        raise Mistake(
            "not flat",
            f"Your lists begin with {tokens[:2]!r:.60} and {segments[:2]!r:.60}; expected one "
            "token and one number for each position. [CLS, a] holds a list; [CLS, *a] holds its "
            "tokens.",
        )
    return tokens, segments


def _is_row(x: Any) -> bool:
    return isinstance(x, (list, tuple)) or (isinstance(x, Tensor) and x.dim() == 1)


def _same(mine: Any, theirs: Row, _case: Case) -> bool:
    return _read(mine) == theirs


CUTTING = Exercise(
    id="03.5",
    title="What is cut",
    purpose="premise and hypothesis in one row, neither of them lost",
    difficulty=2,
    minutes=12,
    signature="my_pack(a, b, length)",
    statement=(
        "`a` and `b` are lists of tokens, a premise and a hypothesis. Return two lists with "
        "`length` entries each. The tokens: `[CLS] a [SEP] b [SEP]`, then `[PAD]` up to `length`. "
        "The segment ids: 0 for `[CLS]`, a and its `[SEP]`; 1 for b and its `[SEP]`; 0 for the "
        "padding. A pair that does not fit loses tokens one at a time, from the end of the text "
        "that is longer at that moment; where both are equally long, from b. `length` is at least "
        "5."
    ),
    hints=(
        "How many positions are left for the two texts? Three are taken.",
        "A while loop: as long as both together have too many, shorten the longer one.",
        "list.pop() takes the last token off. Work on copies: a, b = list(a), list(b).",
        "Build first = ['[CLS]', *a, '[SEP]'] and second = [*b, '[SEP]']; their lengths give the "
        "segment ids.",
        "With 5 and 3 tokens and length 9, six positions are left: 3 and 3. With length 8: 3 and "
        "2.",
    ),
    solution=pack_cut,
    see=(
        "course_lib.text.packing.pack_pair, with truncate=True (for ids, with the attention mask) "
        "and course_lib.objectives.next_sentence.truncate_pair"
    ),
    when_raised=(
        (
            r"pop from empty",
            "A text has lost all its tokens: does your loop look at both lengths again before each "
            "token?",
        ),
        (
            r"can only concatenate|unsupported operand",
            "Lists are joined with lists: ['[CLS]'] + a, or ['[CLS]', *a].",
        ),
    ),
    stages=(
        Check("a pair that fits exactly", _ask_row(_exact)),
        Check("shorter pairs are padded", _ask_row(_short)),
        Check("one of the two is too long", _ask_row(_one_too_long)),
        Check("both must give", _ask_row(_both_too_long)),
        Check("forty drawn pairs", _ask_row(_everything)),
    ),
)
