"""Exercise 16.5: what attention costs in a stack of local and global layers. T tokens, H hidden."""

from __future__ import annotations

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Exact, Number


def pairs_seen(tokens: int, window: int) -> int:
    """Pairs of a query and a key at most window // 2 apart, in a text of T tokens."""
    reach = min(window // 2, tokens - 1)
    return tokens * (2 * reach + 1) - reach * (reach + 1)  # without those past the ends


def cost(tokens: int, hidden: int, layers: int, every: int, window: int) -> tuple[int, int | None]:
    """Attention's FLOPs, and the length from which on an all-global stack takes twice as many."""
    whole = len(range(0, layers, every))
    local = layers - whole
    flops = 4 * hidden * (whole * tokens**2 + local * pairs_seen(tokens, window))
    if whole >= local:
        return flops, None
    length = 1
    while 2 * (whole * length**2 + local * pairs_seen(length, window)) > layers * length**2:
        length += 1
    return flops, length


# ---------------------------------------------------------------- cases


def case(draw: Draw, tokens: int, layers: int, every: int, window: int) -> Case:
    return tokens + draw.integer(0, 5), draw.integer(5, 40), layers, every, window


def by_hand(draw: Draw) -> list[Case]:
    return [(4, 1, 3, 3, 1), (6, 10, 3, 3, 2)]


BASE, LARGE = (768, 22, 3, 128), (1_024, 28, 3, 128)


def released(draw: Draw) -> list[Case]:
    return [(512, *BASE), (8_192, *LARGE)]


def message() -> str:
    """Said when ModernBERT's own sizes are passed."""
    part = cost(8_192, *BASE)[0] / (4 * 8_192**2 * BASE[0] * BASE[1])
    return (
        f"ModernBERT-base's attention costs half of an all-global stack's from {cost(1, *BASE)[1]} "
        f"tokens on, the large one's from {cost(1, *LARGE)[1]}; at 8,192 tokens the base model's "
        f"costs {part:.0%}."
    )


REACH = "min(window // 2, tokens - 1)"
SEEN = "tokens * (2 * reach + 1) - reach * (reach + 1)"
WHOLE, PAIR, NEVER = "len(range(0, layers, every))", "4 * hidden *", "whole >= local"
PAIRS = "(whole * tokens**2 + local * pairs_seen(tokens, window))"
LONG = "2 * (whole * length**2 + local * pairs_seen(length, window)) > layers * length**2"
FOUND = "return flops, length"

FLOPS = Exercise(
    **written("16.5"),
    solution=cost,
    helpers=(pairs_seen,),
    returns=(Number("count of FLOPs", "FLOPs", kind="int"),
             Exact("length", what="a whole number, or None")),
    see="course_lib.config.encoder_flops counts BERT's, dense layers included",
    stages=(
        Stage("three layers, on paper", by_hand),
        Stage("a global layer in three",
              each(case, (40, 7, 3, 8), (60, 6, 3, 12), (30, 9, 3, 6), (50, 11, 3, 9))),
        Stage("texts shorter than the window",
              each(case, (1, 6, 3, 30), (8, 7, 3, 40), (3, 9, 3, 28))),
        Stage("other patterns", each(case, (50, 9, 4, 10), (40, 12, 5, 7), (60, 10, 10, 16))),
        Stage("half of them global, and more",
              each(case, (20, 6, 2, 6), (30, 7, 2, 8), (25, 5, 1, 4), (40, 4, 3, 6))),
        Stage("ModernBERT, base and large", released, remark=message),
    ),
    mistakes=(
        Edit(PAIR, "2 * hidden *", "This is half of it: you left out one of the two products "
             "(queries with keys, weights with values), or count a multiply-add as one. Each pair "
             "costs 2 · 2 · H."),
        Edit(PAIR, "hidden *", "You count one product, and a multiply-add as one. There are two "
             "products, and a multiply-add is two FLOPs: 4 · H per pair."),
        Edit(PAIR, "4 *", "The hidden size is missing: a pair costs 4 · H over all heads."),
        Edit(PAIR, "4 * hidden**2 *", "You have H twice. That is true of dense layers; a "
             "pair of tokens costs 4 · H."),
        Edit(PAIR, "8 * layers * tokens * hidden**2 + 4 * hidden *", "You also count the four "
             "dense layers of attention. Count only its two products."),
        Edit(PAIRS, "(whole * tokens**2 + local * pairs_seen(tokens, window)) // layers", "This is "
             "the mean of a layer. Return that of the whole stack."),
        Edit(REACH, "min(window, tokens - 1)", "You look `window` tokens to *either* side. It is "
             "window // 2."),
        Edit(REACH, "min((window - 1) // 2, tokens - 1)", "Your window has `window` tokens at "
             "most, with the token itself. It is window // 2 on either side, so one more if "
             "`window` is even."),
        Edit(SEEN, "tokens * (2 * reach + 1)", "At the ends of the text windows are cut off, and "
             "you count them whole: the first token has none before it.",
             more=((REACH, "window // 2"),)),
        Edit(SEEN, "tokens * min(tokens, 2 * reach + 1)", "At the ends of the text windows are "
             "cut off, and you count them whole (though never more than the text).",
             more=((REACH, "window // 2"),)),
        Edit(SEEN, "tokens * min(tokens, window)", "You count `window` keys for each token. It is "
             "window // 2 on either side and the token itself, and fewer at the ends of the "
             "text."),
        Edit(SEEN, "tokens * (2 * reach) - reach * (reach + 1)", "A token does not see itself in "
             "your count. It does."),
        Edit(SEEN, "tokens * (reach + 1) - reach * (reach + 1) // 2", "You look to one side only. "
             "An encoder's window goes both ways."),
        Edit(REACH, "window // 2", "Texts shorter than the window are wrong: no token can look "
             "further than T − 1 away."),
        Edit(WHOLE, "layers // every", "You round down. Layers 0, n, 2n … are global, including "
             "the very first: with 22 layers and every third that makes 8."),
        Edit(WHOLE, "layers - len(range(0, layers, every))", "Local and global layers are "
             "exchanged: every n-th is *global*."),
        Edit(WHOLE, "0", "All layers are local in your count. Every n-th one is global."),
        Edit(WHOLE, "layers", "All layers are global in your count. Only every n-th one is."),
        Edit(WHOLE, "1", "One layer is global in your count. Every n-th one is: 0, n, 2n …"),
        Edit(PAIRS, "(tokens**2 + pairs_seen(tokens, window))", "You count one global and one "
             "local layer. Count how many there are of each."),
        Edit(NEVER, "False", "If half of the layers or more are global, no length is enough: "
             "return None before you look.", endless=True),
        Edit(NEVER, "whole > local", "If exactly half of the layers are global, the others still "
             "cost something: no length is enough. Return None there, too.", endless=True),
        Edit(FOUND, "return flops, length - 1", "You are one too low: this is the last length at "
             "which the stack still costs *more* than half."),
        Edit(FOUND, "return flops, length + 1", "You are one too high: at the length before, the "
             "stack costs half already."),
        Edit(LONG, "2 * pairs_seen(length, window) > length**2", "You compare one local with one "
             "global layer. The stack has global layers, too, so its text must be longer."),
        Edit(LONG, "2 * (whole * length**2 + local * pairs_seen(length, window)) >= "
             "layers * length**2", "You continue when it is exactly half. Half is enough."),
        Edit(LONG, "whole * length**2 + local * pairs_seen(length, window) >= layers * length**2",
             "This is the length from which it is cheaper at all. Return the length for half the "
             "cost."),
    ),
)  # fmt: skip
