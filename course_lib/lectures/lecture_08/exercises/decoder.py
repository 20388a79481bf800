"""Exercise 08.4: an enhanced mask decoder of three visits. B texts, T tokens, width H, P places.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.config import BertConfig
from course_lib.encoder import Block
from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
    expect_tensor,
    writes_into,
)

Case = tuple[Tensor, Tensor, Block, Tensor]  # x (B, T, H), places (P, H), block, hidden (B, T)
Cases = Callable[[Draw], list[Case]]
VISITS = 3


@torch.no_grad()
def decode(x: Tensor, places: Tensor, block: Block, hidden: Tensor) -> Tensor:
    """(N, H): what becomes of the N hidden tokens in three visits to the last block."""
    asking = x + places[: x.shape[1]]  # once, and only in what asks
    for _ in range(VISITS):
        attended = block.attend(x, asking=asking)[0]  # x is read, and stays what it was
        asking = block.feed(attended)
    return asking[hidden]  # askers do not read each other: the others may as well ask, too


# ---------------------------------------------------------------- known wrong answers


def _visit(block: Block, read: Tensor, asking: Tensor) -> Tensor:
    return block.feed(block.attend(read, asking=asking)[0])


def _of(
    begin: Callable[[Tensor, Tensor], Tensor] = lambda x, p: x + p,
    read: Callable[[Tensor, Tensor, Tensor, int], Tensor] = lambda x, p, asking, n: x,
    again: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda asking, x, p: asking,
    end: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda asking, x, p: asking,
    visits: int = VISITS,
    visit: Callable[[Block, Tensor, Tensor], Tensor] = _visit,
) -> Answer:
    """The decoder with switches: begin(x, p) asks first; read(x, p, asking, visit number) is read;
    again(asking, x, p) goes from one visit to the next; end(asking, x, p) is taken."""

    @torch.no_grad()
    def answer(x: Tensor, places: Tensor, block: Block, hidden: Tensor) -> Tensor:
        p = places[: x.shape[1]]
        asking = begin(x, p)
        for number in range(visits):
            asking = again(asking, x, p) if number else asking
            asking = visit(block, read(x, p, asking, number), asking)
        return end(asking, x, p)[hidden]

    return answer


def _added(
    inside: Callable[[Tensor, Tensor], Tensor] | None = None,
    after: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None,
) -> Callable[[Block, Tensor, Tensor], Tensor]:
    """A visit with something added by hand: inside(read, asking) between the halves of the block,
    after(asking, attended, read) behind it."""

    def visit(block: Block, read: Tensor, asking: Tensor) -> Tensor:
        attended = block.attend(read, asking=asking)[0]
        fed = block.feed(attended + inside(read, asking) if inside else attended)
        return fed + after(asking, attended, read) if after else fed

    return visit


def _only_attention(block: Block, read: Tensor, asking: Tensor) -> Tensor:
    return block.attend(read, asking=asking)[0]


@torch.no_grad()
def _feed_once(x: Tensor, places: Tensor, block: Block, hidden: Tensor) -> Tensor:
    asking = x + places[: x.shape[1]]
    for _ in range(VISITS):
        asking = _only_attention(block, x, asking)
    return block.feed(asking)[hidden]


def _row_by_row(
    read: Callable[[Tensor, Tensor], Tensor],
    place: Callable[[Tensor, int], Tensor],
) -> Answer:
    """Only the hidden tokens ask. read(x, hidden): what is read of a text; place: their places."""

    @torch.no_grad()
    def answer(x: Tensor, places: Tensor, block: Block, hidden: Tensor) -> Tensor:
        found, before = [], 0
        for row, asked in zip(x, hidden, strict=True):
            asking = (row[asked] + places[place(asked, before)])[None]
            before += int(asked.sum())
            for _ in range(VISITS if len(asking[0]) else 0):
                asking = _visit(block, read(row, asked)[None], asking)
            found.append(asking[0])
        return torch.cat(found)

    return answer


def _own_place(asked: Tensor, _before: int) -> Tensor:
    return asked.nonzero().flatten()


DECODER_SUSPECTS = (
    Suspect(
        "places read, too",
        "The places are added to what is read as well. They belong to what *asks* alone: keys and "
        "values are made of x as it is.",
        _of(read=lambda x, p, asking, n: x + p),
    ),
    Suspect(
        "places only read",
        "The places are added to what is read, and not to what asks. It is the other way round.",
        _of(begin=lambda x, p: x, read=lambda x, p, asking, n: x + p),
    ),
    Suspect(
        "no places",
        "The places have no effect. What asks first is x plus the vectors of the places.",
        _of(begin=lambda x, p: x),
    ),
    Suspect(
        "x forgotten",
        "What asks first is the vector of the place alone. It is x *plus* that vector.",
        _of(begin=lambda x, p: p.expand_as(x)),
    ),
    Suspect(
        "places added again",
        "The places are added again at every visit. They are added once, before the first.",
        _of(again=lambda asking, x, p: asking + p),
    ),
    Suspect(
        "places added at the end",
        "The places are added after the visits, when nothing asks any more. Add them before the "
        "first.",
        _of(begin=lambda x, p: x, end=lambda asking, x, p: asking + p),
    ),
    Suspect(
        "reads its own answers",
        "From the second visit on, your decoder reads what it has made itself. What is read stays "
        "x, at every visit; only what asks moves on.",
        _of(read=lambda x, p, asking, n: asking if n else x),
    ),
    Suspect(
        "three ordinary layers",
        "This is three ordinary layers on x + places: what asks is also what is read. In the "
        "decoder x is read, at every visit, and without places.",
        _of(read=lambda x, p, asking, n: asking),
    ),
    Suspect(
        "three layers, places at the end",
        "This is three ordinary layers on x, to which the places are added at the end. Add them "
        "before the first visit, to what asks; x alone is read.",
        _of(
            begin=lambda x, p: x,
            read=lambda x, p, asking, n: asking,
            end=lambda asking, x, p: asking + p,
        ),
    ),
    Suspect(
        "three layers without places",
        "This is three ordinary layers on x: the places have no effect, and what is read moves on. "
        "Add the places to what asks; what is read stays x.",
        _of(begin=lambda x, p: x, read=lambda x, p, asking, n: asking),
    ),
    Suspect(
        "one visit",
        "This is what one visit gives. If you have a loop, its outcome is not asked on with: what "
        "came out of a visit asks at the next.",
        _of(visits=1),
    ),
    Suspect(
        "two visits",
        "This is what two visits give, as in the paper and in the source above. Here there are "
        "three.",
        _of(visits=2),
    ),
    Suspect("four visits", "This is what four visits give. There are three.", _of(visits=4)),
    Suspect(
        "added to x",
        "x is added to what comes out of each visit. The block adds what asked already: twice "
        "inside, before each LayerNorm.",
        _of(again=lambda asking, x, p: asking + x),
    ),
    Suspect(
        "added to x at the end",
        "x is added to the outcome. The block adds what asked already, before each LayerNorm.",
        _of(end=lambda asking, x, p: asking + x),
    ),
    Suspect(
        "added by hand",
        "You add what asks to what `block.attend` gives. `attend` has added it already, and "
        "normalised the sum: pass the result to block.feed as it is.",
        _of(visit=_added(inside=lambda read, asking: asking)),
    ),
    Suspect(
        "added by hand",
        "You add x to what `block.attend` gives. `attend` has added what asks already, and "
        "normalised the sum; x is only read. Pass the result to block.feed as it is.",
        _of(visit=_added(inside=lambda read, asking: read)),
    ),
    Suspect(
        "added by hand",
        "You add what asks to what comes out of a visit. `attend` has added it already, and "
        "normalised the sum: block.feed's result asks next, as it is.",
        _of(visit=_added(after=lambda asking, attended, read: asking)),
    ),
    Suspect(
        "added by hand",
        "You add attend's result to what `block.feed` gives. `feed` has added it already, and "
        "normalised the sum: its result asks next, as it is.",
        _of(visit=_added(after=lambda asking, attended, read: attended)),
    ),
    Suspect(
        "last rows",
        "You take the *last* rows of `places`. Token t stands at place t: the first rows, "
        "places[: x.shape[1]].",
        lambda x, places, block, hidden: decode(x, places[-x.shape[1] :], block, hidden),
    ),
    Suspect(
        "no feed-forward",
        "The second half of the block is missing: a visit is block.attend, then block.feed.",
        _of(visit=_only_attention),
    ),
    Suspect(
        "fed forward once",
        "The second half of the block comes once, at the end. A visit is the whole block: "
        "block.attend, then block.feed, three times.",
        _feed_once,
    ),
    Suspect(
        "averaged",
        "What asks first is the *mean* of x and the vectors of the places. It is their sum.",
        _of(begin=lambda x, p: (x + p) / 2),
    ),
    Suspect(
        "only hidden tokens are read",
        "Only the hidden tokens are read. They ask, but what they read is the whole text, x.",
        _row_by_row(lambda row, asked: row[asked], _own_place),
    ),
    Suspect(
        "hidden tokens are not read",
        "The hidden tokens are left out of what is read. The whole text is read, x.",
        _row_by_row(lambda row, asked: row[~asked], _own_place),
    ),
    Suspect(
        "places counted among the hidden",
        "The hidden tokens of a text get the places 0, 1, 2, … A token keeps the place where it "
        "stands: hiding others does not move it.",
        _row_by_row(lambda row, asked: row, lambda asked, before: torch.arange(int(asked.sum()))),
    ),
    Suspect(
        "places counted through the batch",
        "The hidden tokens of the whole batch get the places 0, 1, 2, … A token has the place "
        "where it stands in its own text.",
        _row_by_row(
            lambda row, asked: row,
            lambda asked, before: before + torch.arange(int(asked.sum())),
        ),
    ),
)


# ---------------------------------------------------------------- inputs


class _Drawn(Block):
    """A small block of BERT's with drawn weights, in double precision."""

    def __init__(self, draw: Draw, width: int) -> None:
        super().__init__(
            BertConfig(hidden_size=width, num_heads=2, intermediate_size=2 * width, num_layers=1)
        )
        self.double().eval()
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(0.5 * draw.normal(*weight.shape) + (weight.dim() == 1) * weight)


def _case(draw: Draw, B: int, T: int, spare: int, most: int, still: bool = False) -> Case:
    """Up to `most` hidden tokens in a text; `spare` rows more than places. still: places are 0."""
    H = 6
    hidden = torch.zeros(B, T, dtype=torch.bool)
    for row in hidden:  # never the first, so that "counted among the hidden" shows
        row[1 + torch.randperm(T - 1, generator=draw.torch)[: draw.integer(1, most)]] = True
    places = torch.zeros(T + spare, H) if still else draw.normal(T + spare, H)
    return draw.normal(B, T, H), places.double(), _Drawn(draw, H), hidden


def _still(draw: Draw) -> list[Case]:
    return [_case(draw, 1, 5, 0, 2, still=True) for _ in range(2)]


def _one(draw: Draw) -> list[Case]:
    return [_case(draw, 1, 6, 0, 3) for _ in range(2)]


def _spare(draw: Draw) -> list[Case]:
    return [_case(draw, 1, 6, draw.integer(3, 6), 3) for _ in range(2)]


def _batch(draw: Draw) -> list[Case]:
    return [_case(draw, 3, 7, draw.integer(5, 8), 4) for _ in range(2)]


# ---------------------------------------------------------------- stages


def _ask_decoder(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case), case), decode(*case)
            if close(given, right):
                continue
            pools = [_batch(draw), _spare(draw), _one(draw), cases(draw)]
            found = name_suspect(answer, case, pools, DECODER_SUSPECTS, _same)
            raise told(found, _example(case, given, right))

    return ask


def _example(case: Case, given: Tensor, right: Tensor) -> str:
    at = case[3].nonzero()
    n = int((given - right).abs().nan_to_num(1e9).amax(1).argmax())
    b, t = at[n].tolist()
    mine, theirs = ([f"{x:.3f}" for x in rows[n, :3].tolist()] for rows in (given, right))
    return (
        f"The vector of the hidden token {t} of text {b} begins with {', '.join(mine)} in your "
        f"result; it is {', '.join(theirs)}."
    )


def _read(x: Any, case: Case) -> Tensor:
    shape = (int(case[3].sum()), case[0].shape[2])
    if isinstance(x, (tuple, list)) and x and isinstance(x[0], Tensor) and x[0].dim() == 3:
        raise Mistake(
            "all of attend's results",
            "Your function returned a tuple. block.attend gives three things; the first, [0], are "
            "the vectors.",
        )
    if isinstance(x, Tensor) and x.shape == case[0].shape:
        raise Mistake(
            "all tokens",
            f"Your result has a vector for every token, {tuple(x.shape)}. Only the hidden ones are "
            f"asked for: tensor[hidden] picks them, as {shape}.",
        )
    if isinstance(x, Tensor) and x.shape == case[0][~case[3]].shape != shape:
        raise Mistake(
            "those that are not hidden",
            f"Your result has the vectors of the {len(x)} tokens that are *not* hidden. `hidden` "
            f"is True where a word is hidden: tensor[hidden], without ~, as {shape}.",
        )
    if _is_first_texts(x, case):
        raise Mistake(
            "hidden of the first text",
            "You pick the hidden places of text 0, hidden[0], in every text. Each text has its "
            f"own: tensor[hidden] goes text by text, and gives {shape}.",
        )
    return expect_tensor(x, shape, "a vector for every hidden token, text after text").detach()


def _is_first_texts(x: Any, case: Case) -> bool:
    """Whether these are the right vectors, in every text at the places hidden in text 0."""
    hidden = case[3]
    if not isinstance(x, Tensor) or x.dim() < 2:
        return False
    if x.dim() == 2 and bool((hidden == hidden[0]).all()):  # then they are those asked for
        return False
    picked = decode(*case[:3], hidden[0].expand_as(hidden))  # (B · n, H)
    return x.shape[-1:] == picked.shape[1:] and close(x.flatten(0, -2), picked)


def _same(mine: Any, theirs: Tensor, case: Case) -> bool:
    return close(_read(mine, case), theirs)


def _ask_untouched(answer: Answer, draw: Draw) -> None:
    """What is given is read elsewhere, too."""
    place = writes_into(answer, *_case(draw, 2, 6, 3, 3))
    if place is not None:
        name = ("x", "places", "block", "hidden")[place]
        raise Mistake(
            "writes into its input",
            f"Your function changes {name} itself (+= adds in place). Others still need it: write "
            "a = a + b.",
        )


DECODER = Exercise(
    id="08.4",
    title="Three visits",
    purpose="what asks and what is read, kept apart",
    difficulty=3,
    minutes=15,
    signature="my_decoder(x, places, block, hidden)",
    statement=(
        "Write an enhanced mask decoder that visits the last block *three* times and answers for "
        "the hidden tokens alone. `x` (B, T, H) is what the last block reads; row t of `places` "
        "(P, H) is the vector of place t, and P can be more than T; `hidden` (B, T) is True where "
        "a word is hidden, in each text at other places and not equally often. A visit is "
        "`block.attend(x, asking=asks)[0]`, and then `block.feed(…)` of that. In `attend`, `asks` "
        "(B, T, H) gathers from x; it adds `asks` to what was gathered and normalises the sum "
        "itself. What asks first is x plus the "
        "places; what comes out asks next. What is read stays x. Return the vectors of the hidden "
        "tokens after the third visit, (N, H), text after text."
    ),
    hints=(
        "Two variables: one that is read and never changes (x), one that asks and changes.",
        "places[: x.shape[1]] are the places that the text has; (T, H) is added to every text.",
        "A visit: asks = block.feed(block.attend(x, asking=asks)[0]). Three of them.",
        "Everybody may ask, since askers do not read each other: pick at the end. "
        "asks[hidden] is (N, H).",
    ),
    solution=decode,
    see="course_lib.family.deberta.EnhancedMaskDecoder: two visits, and only some tokens ask",
    when_raised=(
        (
            r"size of tensor|must match|expanded size",
            "places has a row for every place there can be, and the text may be shorter: "
            "places[: x.shape[1]].",
        ),
        (
            r"'tuple' object|tuple",
            "block.attend gives three things; the vectors are the first: block.attend(…)[0].",
        ),
        (
            r"(attend|feed)\(\).*argument",
            "A visit is block.attend(x, asking=asks)[0], then block.feed(…). What asks is passed "
            "by name.",
        ),
    ),
    stages=(
        Check("all places are zero: only the visits count", _ask_decoder(_still)),
        Check("one text, with places", _ask_decoder(_one)),
        Check("a table with more places than tokens", _ask_decoder(_spare)),
        Check("several texts", _ask_decoder(_batch)),
        Check("x stays as it is", _ask_untouched),
    ),
)
