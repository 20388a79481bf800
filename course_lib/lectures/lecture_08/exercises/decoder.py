"""Exercise 08.5: an enhanced mask decoder of three visits. B sequences, T tokens, width H, P
positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from course_lib.config import BertConfig
from course_lib.encoder import SelfAttention
from course_lib.family.deberta import DebertaBlock
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def decode(x: Tensor, positions: Tensor, block: DebertaBlock, masked: Tensor) -> Tensor:
    """(N, H): what becomes of the N masked tokens in three visits to the last block."""
    p = positions[: x.shape[1]]
    query = x + p  # once, and only in the query; x is key and value, and stays what it was
    for _ in range(3):
        attended = block.attend(x, query_states=query)[0]
        query = block.apply_feed_forward(attended)
    return query[masked]  # queries do not read each other: the other tokens may have one, too


class PlainAttention(SelfAttention):
    """BERT's attention, called as DeBERTa's is."""

    def forward(  # type: ignore[override]
        self, x: Tensor, mask: Any, keep: bool, positions: Any, query_states: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        queries = self.query(x if query_states is None else query_states)
        return self.multi_head(queries, self.key(x), self.value(x), mask, keep)


class RandomBlock(DebertaBlock):
    """A small block of BERT's with drawn weights, in double precision."""

    def __init__(self, draw: Draw, width: int) -> None:
        config = BertConfig(
            hidden_size=width, num_heads=2, intermediate_size=2 * width, num_layers=1
        )
        super().__init__(config, PlainAttention(config))
        self.double().eval().requires_grad_(False)
        for weight in self.parameters():
            weight.copy_(0.5 * draw.normal(*weight.shape) + (weight.dim() == 1) * weight)


def case(draw: Draw, B: int, T: int, spare: int, most: int, zero: int = 0) -> Case:
    """Up to `most` masked tokens in a sequence; `spare` rows more than positions."""
    H = 6
    masked = torch.zeros(B, T, dtype=torch.bool)
    for row in masked:  # never the first, so that "counted among the masked" shows
        row[1 + torch.randperm(T - 1, generator=draw.torch)[: draw.integer(1, most)]] = True
    positions = draw.normal(T + spare, H) * (not zero)
    return draw.normal(B, T, H), positions, RandomBlock(draw, H), masked


FIRST = "query = x + p"
LOOP = "for _ in range(3):"
READ = "block.attend(x, "
FEED_FORWARD = "query = block.apply_feed_forward(attended)"
END = "query[masked]"
ADDED = "has added it already, and normalised the sum"

DECODER = Exercise(
    **written("08.5"),
    solution=decode,
    returns=Numbers("result", shape="N H"),
    see="course_lib.family.deberta.EnhancedMaskDecoder: two visits, and queries for some tokens",
    when_raised=(
        (r"size of tensor|must match|expanded size", "positions has a row for every possible "
         "position, and the sequence may be shorter: positions[: x.shape[1]]."),
        (r"'tuple' object|tuple", "block.attend returns three things; the vectors come first: "
         "block.attend(…)[0]."),
        (r"(attend|feed_forward)\(\).*argument", "A visit is "
         "block.attend(x, query_states=query)[0], then "
         "block.apply_feed_forward(…). The query is passed by name."),
    ),
    stages=(
        Stage("all positions are zero: only the visits count", each(case, *[(1, 5, 0, 2, 1)] * 2)),
        Stage("one sequence, with positions", each(case, *[(1, 6, 0, 3)] * 2)),
        Stage("a table with more positions than tokens", each(case, *[(1, 6, 4, 3)] * 2)),
        Stage("several sequences", each(case, *[(3, 7, 6, 4)] * 2)),
    ),
    mistakes=(
        Edit(READ, "block.attend(x + p, ", "The positions are added to key and value as well. "
             "They belong in the *query* alone: key and value are made from x without them."),
        Edit(READ, "block.attend(x + p, ", "The positions are added to key and value, and not to "
             "the query. It is the other way round.", more=((FIRST, "query = x"),)),
        Edit(FIRST, "query = x", "The positions have no effect. The first query is x plus the "
             "vectors of the positions."),
        Edit(FIRST, "query = p.expand_as(x)", "The first query is the vector of the position "
             "alone. It is x *plus* that vector."),
        Edit(FIRST, "query = (x + p) / 2", "The first query is the *mean* of x and the vectors of "
             "the positions. It is their sum."),
        Edit(LOOP, f"query = x\n    {LOOP}\n        query = query + p", "The positions are added "
             "again at every visit. They are added once, before the first."),
        Edit(END, "(query + p)[masked]", "The positions are added after the last visit, when no "
             "attention follows. Add them before the first.", more=((FIRST, "query = x"),)),
        Edit(FEED_FORWARD, "query = x = block.apply_feed_forward(attended)", "From the second "
             "visit on, your key and value come from the decoder's own output. They are made "
             "from x at every visit; only the query changes."),
        Edit(READ, "block.attend(query, ", "This is three ordinary layers on x + positions: the "
             "query is key and value as well. In the decoder key and value come from x at every "
             "visit, without positions."),
        Edit(READ, "block.attend(query, ", "This is three ordinary layers on x, to which the "
             "positions are added at the end. Add them before the first visit, to the query; x "
             "alone is key and value.", more=((FIRST, "query = x"), (END, "(query + p)[masked]"))),
        Edit(READ, "block.attend(query, ", "This is three ordinary layers on x: the positions "
             "have no effect, and key and value change. Add the positions to the query; key and "
             "value stay x.", more=((FIRST, "query = x"),)),
        Edit(LOOP, "for _ in range(1):", "This is the result of one visit. If you have a loop, "
             "you do not use its result: the output of a visit is the query of the next."),
        Edit(LOOP, "for _ in range(2):", "This is the result of two visits, as in the paper and "
             "in the source above. Here there are three."),
        Edit(LOOP, "for _ in range(4):", "This is the result of four visits. There are three."),
        Edit(LOOP, f"query = p\n    {LOOP}\n        query = query + x",
             "x is added to what comes out of each visit. The block adds its query already: twice "
             "inside, before each LayerNorm."),
        Edit(END, "(query + x)[masked]", "x is added to the result. The block adds its query "
             "already, before each LayerNorm."),
        Edit("[0]", "[0] + query", f"You add the query to what `block.attend` gives. `attend` "
             f"{ADDED}: pass the result to block.apply_feed_forward as it is."),
        Edit("[0]", "[0] + x", "You add x to what `block.attend` gives. `attend` has added the "
             "query already, and normalised the sum. Pass the result to block."
             "apply_feed_forward as it is."),
        Edit(FEED_FORWARD, f"{FEED_FORWARD} + query", "You add the query to what comes out of a "
             f"visit. `attend` {ADDED}: block.apply_feed_forward's result is the next query, as it "
             "is."),
        Edit(FEED_FORWARD, f"{FEED_FORWARD} + attended", f"You add attend's result to what "
             f"`block.apply_feed_forward` gives. "
             f"`apply_feed_forward` {ADDED}: its result is the next query, as it is."),
        Edit("positions[: x.shape[1]]", "positions[-x.shape[1] :]", "You take the *last* rows "
             "of `positions`. Token t is at position t, so take the first rows: positions[: "
             "x.shape[1]]."),
        Edit(FEED_FORWARD, "query = attended", "The second half of the block is missing: a visit "
             "is block.attend, then block.apply_feed_forward."),
        Edit(FEED_FORWARD, "query = attended", "The second half of the block comes once, at the "
             "end. A visit is the whole block: block.attend, then block.apply_feed_forward, three "
             "times.",
             more=((END, "block.apply_feed_forward(query)[masked]"),)),
        Edit(READ, "block.attend(x, masked, ", "Key and value are made from the masked tokens "
             "alone. Masked tokens provide the queries; they attend to the whole sequence, x."),
        Edit(READ, "block.attend(x, ~masked, ", "The masked tokens are left out of key and "
             "value. Queries attend to the whole sequence, x."),
        Edit(FIRST, "query = x + positions[(masked.cumsum(1) - 1).clamp(min=0)]",
             "The masked tokens of a sequence get the positions 0, 1, 2, … A token keeps its "
             "position in the sequence: masking others does not move it."),
        Edit(FIRST, "query = x + positions[(masked.flatten().cumsum(0) - 1).clamp(min=0)"
             ".view_as(masked)]", "The masked tokens of the whole batch get the positions 0, 1, 2, "
             "… A token has its position in its own sequence."),
        Edit(END, "query", "Your result has a vector for every token. Expected are the masked ones "
             "only: tensor[masked] picks them, as (N, H)."),
        Edit(END, "query[~masked]", "Your result has the vectors of the tokens that are *not* "
             "masked. `masked` is True where a token is masked: tensor[masked], without ~."),
        Edit(END, "query[:, masked[0]]", "You pick the masked positions of sequence 0, masked[0], "
             "in every sequence. Each has its own: tensor[masked] gives (N, H)."),
        Edit(END, "query[:, masked[0]].flatten(0, 1)", "You pick the positions masked[0] of "
             "sequence 0 in every sequence. Each has its own: tensor[masked] goes one by one."),
    ),
)  # fmt: skip
