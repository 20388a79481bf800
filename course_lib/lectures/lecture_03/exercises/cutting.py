"""Exercise 03.5: a pair into a sequence of fixed length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Items


def pack_cut(a: Sequence[str], b: Sequence[str], length: int) -> tuple[list[str], list[int]]:
    """[CLS] a [SEP] b [SEP] in `length` positions, the longer text cut first, and segment ids."""
    a, b, room = list(a), list(b), length - 3
    while len(a) + len(b) > room:
        longer = a if len(a) > len(b) else b
        longer.pop()
    first, second = ["[CLS]", *a, "[SEP]"], [*b, "[SEP]"]
    segments = [0] * len(first) + [1] * len(second)
    padding = length - len(segments)
    return first + second + ["[PAD]"] * padding, segments + [0] * padding


def pair(draw: Draw, a: int, b: int, length: int) -> Case:
    """Tokens that tell where they come from: p1 p2 … of the premise, h1 h2 … of the hypothesis."""
    return [f"p{n}" for n in range(1, a + 1)], [f"h{n}" for n in range(1, b + 1)], length


def anything(draw: Draw) -> list[Case]:
    sizes = [(draw.integer(2, 10), draw.integer(2, 10)) for _ in range(40)]
    return [pair(draw, a, b, max(5, a + b + 3 - draw.integer(-3, 8))) for a, b in sizes]


LOOP = "while len(a) + len(b) > room:"
WHOSE = "a if len(a) > len(b) else b"
SEGMENTS = "[0] * len(first) + [1] * len(second)"
TOKENS = 'first + second + ["[PAD]"] * padding'
IN_TURN = "Token by token, the text that is longer at that moment loses one."
ONLY_LONGER = "Only the longer one loses tokens, until both are equally long"
whose, special = partial(Edit, WHOSE), partial(Edit, "length - 3")


def at_once(kept: str, say: str, when: str = "len(a) + len(b) > room") -> Edit:
    """Both texts are shortened in one step instead."""
    return Edit(LOOP, f"if {when}:\n        a, b = {kept}\n    while False:", say)


def row(tokens: str, segments: str, say: str, *more: tuple[str, str]) -> Edit:
    """Another end: other tokens, other segment ids."""
    return Edit(f"return {TOKENS}, segments + [0] * padding",
                f"tokens, ids = {TOKENS}, segments + [0] * padding\n"
                f"    return {tokens}, {segments}", say, more=more)  # fmt: skip


CUTTING = Exercise(
    **written("03.5"),
    solution=pack_cut,
    returns=(Items("tokens", of="tokens, one for each position"),
             Items("segment ids", of="whole numbers, one for each position")),
    see="course_lib.text.packing.pack_pair, with truncate=True (for ids, with the attention mask) "
    "and course_lib.objectives.next_sentence.truncate_pair",
    when_raised=(
        (r"pop from empty", "A text has lost all its tokens: does your loop look at both lengths "
         "again before each token?"),
        (r"can only concatenate|unsupported operand",
         "Lists are joined with lists: ['[CLS]'] + a, or ['[CLS]', *a]."),
    ),
    stages=(
        Stage("a pair that fits exactly", each(pair, (2, 1, 6), (1, 3, 7), (4, 4, 11))),
        Stage("shorter pairs are padded", each(pair, (2, 1, 8), (3, 4, 12), (4, 2, 12))),
        Stage("one of the two is too long",  # the other stays whole
              each(pair, (5, 2, 8), (2, 5, 8), (8, 3, 11), (3, 8, 11), (9, 4, 14), (4, 9, 14))),
        Stage("both must give",
              each(pair, (5, 5, 12), (4, 6, 10), (7, 6, 10), (6, 6, 11), (8, 7, 13), (6, 9, 13),
                   (9, 8, 16))),
        Stage("forty drawn pairs", anything),
    ),
    mistakes=(
        whose("b if len(b) > 1 else a",
              f"The hypothesis is cut, even where the premise is longer. {IN_TURN}"),
        whose("a if len(a) > 1 else b",
              f"The premise is cut, even where the hypothesis is longer. {IN_TURN}"),
        whose("a if 0 < len(a) < len(b) or not b else b",
              "The shorter text loses tokens; the longer one should."),
        whose("a if len(a) >= len(b) else b", "Where both texts are equally long, the first loses "
              "a token; by BERT's rule it is the second."),
        Edit(f"{LOOP}\n        longer = {WHOSE}",
             f"longer = {WHOSE}\n    while len(a) + len(b) > room and len(longer) > 1:",
             "All surplus tokens come from the text that was longer at the start. Once both are "
             "equally long, they take turns: compare anew before each token."),
        Edit(f"{LOOP}\n        longer = {WHOSE}",
             f"total = len(a) + len(b)\n    {LOOP}\n        turn = (total - len(a) - len(b)) % 2\n"
             "        longer = a if (turn == 0 and len(a) > 1) or len(b) < 2 else b",
             f"Both texts lose tokens in turn. {ONLY_LONGER}."),
        at_once("a[: room // 2], b[: room // 2]", "Each text gets half of the room. What a short "
                "text does not need belongs to the other one."),
        at_once("a[: room // 2], b[: room - room // 2]",
                "Each text gets half of the room, the second the odd position. What a short text "
                "does not need belongs to the other one."),
        at_once("a[: max(room // 2, room - len(b))], b[: max(room // 2, room - len(a))]",
                "Of an odd number of positions one stays empty. Token by token, the first text "
                "keeps one more."),
        at_once("a[: room // 2], b[: room // 2]",
                "Each text is cut to half of the room, even where the pair fits. Ask first whether "
                "it is too long, and then whose turn it is.", when="True"),
        at_once("a[: max(1, many)], b[: room - max(1, many)]",
                f"Both texts are shortened in proportion. {ONLY_LONGER}.",
                when="(many := len(a) * room // (len(a) + len(b))) < len(a) and "
                "len(a) + len(b) > room"),
        at_once("a[: max(1, many)], b[: room - max(1, many)]",
                f"Both texts are shortened in proportion. {ONLY_LONGER}: short texts stay whole.",
                when="(many := round(len(a) * room / (len(a) + len(b)))) and "
                "len(a) + len(b) > room"),
        Edit(LOOP, LOOP.replace("while", "if"),
             "Only one token is cut, however many are too many: repeat until the pair fits."),
        Edit(LOOP, "while False:", "Nothing is cut: pairs that are too long stay too long."),
        Edit("longer.pop()", "longer.pop(0)",
             "Tokens are taken from the front of the texts; for fine-tuning the end is cut off."),
        special("length", "Room is left for the words alone: [CLS] and two [SEP] come on top. The "
                "two texts have length − 3 positions."),
        special("length - 1",
                "One position is left for special tokens; there are three, [CLS] and two [SEP]."),
        special("length - 2",
                "Two positions are left for special tokens; there are three, [CLS] and two [SEP]."),
        special("length - 4", "One token more than necessary is cut: a pair that fits exactly "
                "loses one, too. Three positions are special, and `length` itself is allowed."),
        Edit('["[CLS]", *a', "[*a", "[CLS] is missing at the start."),
        Edit('*a, "[SEP]"]', "*a]", "[SEP] is missing between the two texts."),
        Edit('*a, "[SEP]"]', '*a, "[SEP]", "[SEP]"]',
             "There are two [SEP] between the texts: RoBERTa does that. BERT has one."),
        Edit('[*b, "[SEP]"]', "[*b]", "[SEP] is missing behind the second text."),
        Edit('["[CLS]", *a, "[SEP]"], [*b, "[SEP]"]', '["[CLS]", a, "[SEP]"], [b, "[SEP]"]',
             "Your tokens hold lists; expected one token for each position. [CLS, a] holds a list; "
             "[CLS, *a] holds its tokens."),
        Edit(SEGMENTS, "[0] * (len(first) - 1) + [1] * (len(second) + 1)", "The [SEP] between the "
             "texts has segment 1. It closes the first text and has its segment, 0."),
        Edit(SEGMENTS, "[0] * len(first) + [1] * len(b) + [0]",
             "The last [SEP] has segment 0. It closes the second text and has its segment, 1."),
        Edit("segments + [0] * padding", "segments + [1] * padding",
             "The padding has segment 1. BERT pads the segment ids with 0."),
        Edit(SEGMENTS, "[1] * len(first) + [2] * len(second)",
             "The segments are numbered 1 and 2; they are 0 and 1."),
        Edit(SEGMENTS, "[1] * len(first) + [0] * len(second)",
             "The segment ids are the wrong way round: the first text is segment 0."),
        Edit(SEGMENTS, "[0] * (len(first) + len(second))",
             "All segment ids are the same; the second text, with its [SEP], is segment 1."),
        Edit("padding = length - len(segments)", "padding = 0",
             "Short pairs are not padded: both lists have `length` entries."),
        Edit("segments + [0] * padding", "segments",
             "The tokens are padded, the segment ids are not: both lists have `length` entries."),
        row("tokens[len(segments):] + tokens[:len(segments)]", "[0] * padding + segments",
            "The padding is in front; it belongs after the last [SEP]."),
        Edit("list(a), list(b)", "list(b), list(a)",
             "The hypothesis comes first. Put a first, in segment 0; b is segment 1."),
        row("tokens[:length]", "ids[:length]",
            "The sequence is built first and then cut off at `length`. The hypothesis alone pays, "
            "and the last [SEP] is lost. Shorten the texts first.", (LOOP, "while False:")),
        row('tokens[: length - 1] + ([*tokens, "[SEP]"][length - 1 : length] if len(tokens) <= '
            'length else ["[SEP]"])', "ids[:length]",
            "The sequence is built first, cut off at `length` and closed with a [SEP]. The "
            "hypothesis alone pays. Shorten the texts first, the longer one token by token.",
            (LOOP, "while False:")),
    ),
)  # fmt: skip
