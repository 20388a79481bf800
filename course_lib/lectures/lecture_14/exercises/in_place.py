"""Exercise 14.8: a loss whose gradient takes the place of the logits. K positions, V vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.bench.measuring import peak_bytes
from course_lib.teaching.exercises.form import Answer, Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Number, Numbers, Wrong


@torch.no_grad()
def loss_in_place(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The mean cross-entropy, and its gradient in the memory of the logits."""
    rows = torch.arange(len(labels))
    logits.sub_(logits.amax(1, keepdim=True))
    right = logits[rows, labels]  # (K,), a copy
    logits.exp_()
    total = logits.sum(1)
    loss = (total.log() - right).mean()
    logits.div_(total[:, None])
    logits[rows, labels] -= 1
    logits.div_(len(labels))
    return loss, logits


# ---------------------------------------------------------------- cases, and what is looked at


def by_hand(draw: Draw) -> list[Case]:
    """Probabilities 1/4 and 3/4, of one position and of two."""
    row = torch.tensor([1.0, 3.0]).double().log()  # 0 and ln 3
    return [(row[None].clone(), torch.tensor([0])), (row.repeat(2, 1), torch.tensor([0, 1]))]


def case(draw: Draw, K: int, V: int, scale: float = 1.0) -> Case:
    return scale * draw.normal(K, V), draw.ids(0, V - 1, K)


def many(draw: Draw) -> list[Case]:
    return [case(draw, K, draw.integer(5, 9)) for K in (3, 4, 7)]


def large(draw: Draw) -> list[Case]:
    unlikely = torch.tensor([[1_000.0, 0.0, -3.0]]).double(), torch.tensor([1])  # e^−1000 is 0
    return [case(draw, 3, 6, 900.0), (1_000 + draw.normal(4, 5), draw.ids(0, 4, 4)), unlikely]


def expect_overwritten(function: Answer, logits: Tensor, labels: Tensor) -> None:
    """What is returned is what stands in the logits' memory afterwards."""
    _, gradient = function(logits, labels)
    if not torch.equal(torch.as_tensor(gradient), logits):
        raise Wrong(
            "Your gradient is right, but in new memory. Write it into the logits' own memory, so "
            "that a step's largest tensor exists once, not twice.",
            "copy",
        )


def expect_one_table(function: Answer, logits: Tensor, labels: Tensor) -> None:
    """What is made on the way must be small beside the table."""
    most, table = peak_bytes(lambda: function(logits, labels)), logits.nbytes
    if most > table / 2:
        raise Wrong(
            f"Your numbers are right, but on the way your tensors held {most:,} bytes beside the "
            f"{table:,} of the logits. Operations whose name ends in _ (sub_, exp_, div_) write "
            "into the tensor they read.",
            "memory",
        )


IN_PLACE = Exercise(
    **written("14.8"),
    solution=loss_in_place,
    returns=(Number("loss", "nats"), Numbers("gradient", shape="K V")),
    may_write=True,
    infinite="exp of a large logit overflows (subtract each row's largest logit first: the softmax "
    "stays the same), or a probability was 0 before its logarithm was taken (copy the right logits "
    "before you overwrite them).",
    when_raised=(
        (r"leaf Variable|requires grad",
         "These logits carry no graph and need none: compute the gradient by its formula."),
    ),
    stages=(
        Stage("by hand", by_hand),
        Stage("more positions, a larger vocabulary", many),
        Stage("large logits", large),
        Stage("the gradient stands where the logits stood", many, ask=expect_overwritten),
        Stage("no second tensor of that size", lambda draw: [case(draw, 40, 100)],
              ask=expect_one_table),
    ),
    mistakes=(
        Edit("logits.div_(len(labels))", "pass", "Your gradient is that of the *sum* over the "
             "positions. The loss is their mean: divide by K."),
        Edit("logits[rows, labels] -= 1", "pass", "This is the softmax, divided by K. The gradient "
             "is softmax − 1 at each position's own token: there alone it is negative."),
        Edit("logits.div_(len(labels))", "logits.div_(-len(labels))", "Your gradient points the "
             "other way. The probability of a wrong token has to fall: its entry is positive."),
        Edit("(total.log() - right).mean()", "(right.exp() / total).mean()",
             "This is the mean probability of the right tokens. The loss is the mean of −ln P."),
        Edit("logits[rows, labels] -= 1", "logits[:, labels] -= 1", "You subtract 1 in the columns "
             "of all labels, in every row. Row k has one label: logits[rows, labels], two lists of "
             "the same length."),
        Edit("logits.div_(total[:, None])", "logits.div_(total.sum())", "You divide by the sum "
             "over the whole matrix. Each row is a softmax of its own."),
        Edit("logits.sub_(logits.amax(1, keepdim=True))", "pass",
             "exp of a large logit overflows (subtract each row's largest logit first: the softmax "
             "stays the same), or a probability was 0 before its logarithm was taken (copy the "
             "right logits before you overwrite them)."),
    ),
)  # fmt: skip
