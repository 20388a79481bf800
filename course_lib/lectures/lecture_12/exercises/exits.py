"""Exercise 12.2: at which layer does a text leave? L layers, B texts."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def exit_layers(uncertainties: Tensor, speed: float) -> Tensor:
    """The first layer, from 1, that is sure enough, else the last: (L, B) -> (B,)."""
    sure = uncertainties <= speed
    sure[-1] = True  # somebody must answer
    return sure.int().argmax(dim=0) + 1


# ---------------------------------------------------------------- cases


def case(draw: Draw, speed: float, *texts: str) -> Case:
    """Texts as signs, one a layer: 1 sure, 0 unsure, = exactly at the threshold, + just
    above it."""
    ranges = {"1": (0.05 * speed, 0.95 * speed), "0": (0.95 * speed + 0.05, 1.0),
              "=": (speed,) * 2, "+": (speed + 1e-4,) * 2}  # fmt: skip
    texts = tuple(draw.python.sample(texts, len(texts)))
    columns = [[draw.python.uniform(*ranges[sign]) for sign in text] for text in texts]
    return torch.tensor(columns, dtype=torch.float64).T, speed


def by_hand(draw: Draw) -> list[Case]:
    u = torch.tensor([[0.9, 0.1, 0.9], [0.2, 0.6, 0.8], [0.1, 0.2, 0.2]], dtype=torch.float64)
    four = torch.tensor([[0.35, 0.9], [0.2, 0.8], [0.25, 0.1], [0.05, 0.5]], dtype=torch.float64)
    return [(u, 0.3), (u[:, 1:], 0.7), (u[:, :2], 0.15), (four, 0.3)]


def hard(draw: Draw) -> list[Case]:
    """Texts that are never sure, but less unsure somewhere than at the end; and one that leaves."""
    u = 0.5 + 0.4 * torch.rand(4, 5, generator=draw.torch, dtype=torch.float64)
    u[1, :3] -= 0.1
    u[1, -1] = 0.01
    return [(u, 0.3), (u[:, 3:], 0.05)]


SURE, FORCED, FIRST = "uncertainties <= speed", "sure[-1] = True", "sure.int().argmax(dim=0) + 1"
UNFORCED = ((FORCED, "pass"),)

EXITS = Exercise(
    **written("12.2"),
    solution=exit_layers,
    returns=Numbers("tensor of layers", shape="B", kind="int"),
    see="course_lib.kernels.early_exit.first_confident does this with logits; early_exit takes "
    "the texts out of the batch",
    when_raised=(
        (r"bool input|'Bool'", "argmax wants numbers: .int() makes 0 and 1 "
         "of False and True."),
        (r"shape|size|dimension|ambiguous", "`uncertainties` is (L, B): its rows are layers, its "
         "columns texts. Expected: one layer per text, (B,)."),
    ),
    stages=(
        Stage("three texts on paper", by_hand),
        Stage("once sure, always sure",
              each(case, (0.2, "0001", "0111", "1111"), (0.6, "00011", "01111", "00001"))),
        Stage("sure, then unsure again",
              each(case, (0.3, "0100", "1010", "0110", "0010"), (0.7, "01001", "10110", "00101"))),
        Stage("never sure", hard),
        Stage("at the threshold, and just above it",
              each(case, (0.25, "0=01", "==00", "001=", "+0+1"),
                   (0.0, "0=00", "00=0", "0000", "0+0="), (1.0, "=1=", "1=1"))),
    ),
    mistakes=(
        Edit(SURE, "uncertainties >= speed", "Your texts leave where the uncertainty is *high*: "
             "the hard ones first. Leave where it is at most `speed`."),
        Edit(SURE, "1 - uncertainties >= speed", "You compare how *sure* the text is with `speed`, "
             "as if it were a threshold of confidence. A larger speed then means fewer exits; it "
             "must mean more."),
        Edit(SURE, "uncertainties < speed", "A text exactly at the threshold stays in your answer. "
             "The paper writes <, the authors' code ≤; this exercise uses ≤."),
        Edit(FIRST, "sure.int().argmax(dim=0)", "You count layers from 0. The first layer is 1, "
             "as a text that leaves there has used one layer."),
        Edit(FORCED, "pass", "A text that is never sure leaves at layer 1 in your answer: argmax "
             "of a column of False is 0. Such a text must go through to the last layer."),
        Edit(FIRST, "(sure.int().argmax(dim=0) + 1) * sure.any(dim=0)", "A text that is never sure "
             "has layer 0 in your answer. It gets the last layer's answer.", more=UNFORCED),
        Edit(FIRST, "(~sure).int().cumprod(dim=0).sum(dim=0) + 1", "A text that is never sure "
             "leaves at layer L + 1 in your answer, which does not exist. The last one is L.",
             more=UNFORCED),
        Edit(FIRST, "len(sure) - sure.flip(0).int().argmax(dim=0)", "You take the *last* layer "
             "that is sure. A text has already left at the first sure one.", more=UNFORCED),
        Edit(FIRST, "uncertainties.argmin(dim=0) + 1", "You take the *surest* layer. To know it, "
             "all layers must be computed, and nothing is saved. Take the first sure enough one."),
        Edit(FIRST, "uncertainties.masked_fill(~sure, 2).argmin(dim=0) + 1", "Of the layers that "
             "are sure you take the surest. Take the first: the others are never computed."),
        Edit(FIRST, "torch.where(sure.any(dim=0), sure.int().argmax(dim=0) + 1, -1)", "A text that "
             "is never sure has layer −1 in your answer. It gets the last layer's answer.",
             more=UNFORCED),
        Edit(FIRST, "torch.where(sure.any(dim=0), sure.int().argmax(dim=0) + 1, len(sure) - 1)",
             "A text that is never sure leaves at layer L − 1 in your answer. The first layer is "
             "1, so the last is L.", more=UNFORCED),
        Edit(FIRST, "(~sure).sum(dim=0) + 1", "You count *all* unsure layers before the last. "
             "Those after the exit do not count: the text has left."),
        Edit(FIRST, "(~sure).sum(dim=0) + 1", "You count *all* unsure layers. Those after the "
             "exit do not count: the text has left.", more=UNFORCED),
        Edit(FIRST, "((~sure).sum(dim=0) + 1).clamp(max=len(sure))", "You count *all* unsure "
             "layers, up to L. Those after the exit do not count: the text has left.",
             more=UNFORCED),
        Edit(FIRST, "uncertainties.argmax(dim=0) + 1", "You take the layer that is *least* sure. "
             "Take argmax of the comparison: it gives the first True."),
        Edit(FIRST, "len(sure) - sure.int().argmax(dim=0)", "You count from the last layer down. "
             "Layer 1 is the one that reads the embeddings."),
        Edit(FIRST, "sure.sum(dim=0)", "You count the layers that are sure. Return the number of "
             "the first one."),
        Edit(SURE, "(uncertainties.mean(dim=1, keepdim=True) <= speed).repeat(1, "
             "uncertainties.shape[1])", "The whole batch leaves together in your answer, by its "
             "mean. Each text decides for itself."),
        Edit(SURE, "(uncertainties <= speed).all(dim=1, keepdim=True).repeat(1, "
             "uncertainties.shape[1])", "The batch waits in your answer until every text is sure. "
             "Each text decides for itself."),
        Edit(SURE, "(uncertainties <= speed).any(dim=1, keepdim=True).repeat(1, "
             "uncertainties.shape[1])", "In your answer all texts leave with the first one that is "
             "sure. Each text decides for itself."),
        Edit(SURE, "(uncertainties <= speed).flip(0).int().cumprod(dim=0).flip(0) == 1", "A text "
             "leaves where it is sure *from then on* in your answer. That cannot be known before "
             "all layers are computed: take the first layer that is sure."),
        Edit(FIRST, "(sure.int().argmax(dim=0) + 2).clamp(max=len(sure))", "Your texts leave one "
             "layer late: each classifier comes *after* the layer that it belongs to."),
        Edit("argmax(dim=0)", "argmax(dim=1)", "You search along the texts, so you have one number "
             "per layer. Layers are the first axis, dim=0."),
    ),
)  # fmt: skip
