"""Exercise 12.4: three tokens' embeddings as one. B texts, T tokens, E wide."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def trigrams(x: Tensor) -> Tensor:
    """Next, own, previous embedding, joined; zeros past the ends: (B, T, E) -> (B, T, 3E)."""
    edge = torch.zeros_like(x[:, :1])
    following = torch.cat([x[:, 1:], edge], dim=1)
    previous = torch.cat([edge, x[:, :-1]], dim=1)
    return torch.cat([following, x, previous], dim=-1)


# ---------------------------------------------------------------- cases


def case(draw: Draw, texts: int, tokens: int, size: int) -> Case:
    return (draw.normal(texts, tokens, size),)


def by_hand(draw: Draw) -> list[Case]:
    numbers = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64)
    return [(numbers[None, :length, None],) for length in (3, 5)]


FOLLOWING = "torch.cat([x[:, 1:], edge], dim=1)"
PREVIOUS = "torch.cat([edge, x[:, :-1]], dim=1)"
RETURN = "torch.cat([following, x, previous], dim=-1)"


def both(following: str, previous: str, say: str) -> Edit:
    """A mistake in which both neighbours are taken otherwise."""
    return Edit(FOLLOWING, following, say, more=((PREVIOUS, previous),))


TRIGRAMS = Exercise(
    **written("12.4"),
    solution=trigrams,
    returns=Numbers("tensor of joined embeddings", shape="B T 3E"),
    see="course_lib.family.mobilebert.TrigramEmbeddings.words, with the dense layer behind it",
    when_raised=(
        (r"[Ss]izes of tensors must match|size", "All three parts are (B, T, E). A shifted one has "
         "lost a position: add zeros, (B, 1, E), in its place."),
    ),
    stages=(
        Stage("1, 2, 3 on paper", by_hand),
        Stage("wider embeddings", each(case, (1, 4, 2), (1, 5, 4))),
        Stage("several texts", each(case, (2, 4, 3), (3, 5, 2))),
        Stage("texts of one or two tokens", each(case, (2, 1, 3), (3, 2, 2))),
    ),
    mistakes=(
        Edit(RETURN, "torch.cat([previous, x, following], dim=-1)", "The previous token comes "
             "first in your answer, in reading order. In MobileBERT the *next* token does."),
        Edit(RETURN, "torch.cat([x, following, previous], dim=-1)", "The token itself comes first "
             "in your answer. It belongs in the middle: next, own, previous."),
        Edit(RETURN, "torch.cat([x, previous, following], dim=-1)", "The token itself comes first "
             "in your answer, then the previous one. The order is next, own, previous."),
        both("x.roll(-1, dims=1)", "x.roll(1, dims=1)", "Your text is a ring (roll): after the "
             "last token comes the first one. Past the ends there are zeros."),
        both("torch.cat([x[:, 1:], x[:, -1:]], dim=1)", "torch.cat([x[:, :1], x[:, :-1]], dim=1)",
             "Past the ends you repeat the token at the edge. Put zeros there."),
        Edit(FOLLOWING, "x.roll(-1, dims=1)", "In your answer the first token follows the last "
             "(roll). After the end there are zeros."),
        Edit(PREVIOUS, "x.roll(1, dims=1)", "In your answer the last token precedes the first "
             "(roll). Before the beginning there are zeros."),
        Edit(FOLLOWING, "torch.cat([x[:, 1:], x[:, -1:]], dim=1)", "After the end you repeat the "
             "last token. Put zeros there."),
        Edit(PREVIOUS, "torch.cat([x[:, :1], x[:, :-1]], dim=1)", "Before the beginning you repeat "
             "the first token. Put zeros there."),
        both("x", "x", "Nothing is shifted: you have the same token three times."),
        both("torch.cat([x[1:], torch.zeros_like(x[:1])])",
             "torch.cat([torch.zeros_like(x[:1]), x[:-1]])", "Your neighbours are the next and the "
             "previous *text* of the batch. Tokens are the second axis."),
        both("torch.cat([x[..., 1:], torch.zeros_like(x[..., :1])], dim=-1)",
             "torch.cat([torch.zeros_like(x[..., :1]), x[..., :-1]], dim=-1)", "You shift inside "
             "the embedding. Tokens are the second axis, dim=1."),
        both("torch.cat([x.flatten(0, 1)[1:], edge[0]]).view_as(x)",
             "torch.cat([edge[0], x.flatten(0, 1)[:-1]]).view_as(x)", "Your texts run into each "
             "other: a text's last token has the next text's first one as its neighbour."),
        both("torch.cat([x[:, 2:], edge, edge], dim=1)[:, : x.shape[1]]",
             "torch.cat([edge, edge, x[:, :-2]], dim=1)[:, : x.shape[1]]", "You reach two tokens "
             "away. Take the neighbours."),
        Edit(RETURN, "following + x + previous", "You add the three up, which loses which of them "
             "was the token itself. Join them, 3E wide."),
        Edit(RETURN, "(following + x + previous) / 3", "You take the mean of the three. Join them, "
             "3E wide."),
        Edit(RETURN, "torch.stack([following, x, previous], dim=-1).flatten(-2)", "The three are "
             "interleaved, number by number. Put whole embeddings one after the other: join "
             "them with torch.cat, dim=-1."),
        Edit(RETURN, "torch.cat([following, x, previous], dim=1)", "You join over the positions: "
             "the text is three times as long. Join over the last axis."),
        Edit(RETURN, "torch.stack([following, x, previous], dim=2)", "You stack: the three have an "
             "axis of their own. Join them over the last axis, 3E wide."),
        Edit(RETURN, "torch.cat([x, previous, torch.cat([edge, previous[:, :-1]], dim=1)], dim=-1)",
             "You look back only: the token and the two before it. An encoder may look ahead: "
             "next, own, previous."),
        Edit(RETURN, "torch.cat([x, previous], dim=-1)", "The next token is missing. An encoder "
             "may look ahead."),
        Edit(RETURN, "torch.cat([x[:, 2:], x[:, 1:-1], x[:, :-2]], dim=-1)", "The first and the "
             "last token are gone. Keep them, with zeros for the missing neighbour."),
    ),
)  # fmt: skip
