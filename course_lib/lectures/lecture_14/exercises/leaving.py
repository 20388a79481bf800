"""Exercise 14.7: rows that are done leave the batch. B rows, H hidden, C classes, L layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import (
    Answer,
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Number, Numbers

Step = Callable[[Tensor], Tensor]


@torch.no_grad()
def early_exit(
    x: Tensor, layers: Sequence[Step], exits: Sequence[Step], confident: Step
) -> tuple[Tensor, Tensor]:
    """(B, C) the logits of the exit each row took, and (B,) how many layers it went through."""
    rows = torch.arange(len(x))  # which row of the batch each row of x is
    used, answers = torch.zeros_like(rows), x.new_zeros(0)
    for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), start=1):
        x = layer(x)
        logits = leave(x)
        if depth == 1:
            answers = logits.new_zeros(len(rows), logits.shape[-1])
        done = confident(logits) | (depth == len(layers))
        at = rows[done]
        answers[at], used[at] = logits[done], depth
        rows, x = rows[~done], x[~done]
        if not len(rows):
            break
    return answers, used


# ---------------------------------------------------------------- cases


def case(draw: Draw, depths: Sequence[int], L: int = 4, threshold: float = 0.7) -> Case:
    """Row n is picked, of many, so that it leaves after layer depths[n]."""
    H, C = 6, 3

    def layer() -> Step:
        matrix = draw.normal(H, H) / H**0.5
        return lambda x: (x @ matrix).tanh()

    def leave() -> Step:
        matrix = 1.5 * draw.normal(H, C)
        return lambda x: x @ matrix

    while True:
        many = draw.normal(100, H)
        steps, ends = [layer() for _ in range(L)], [leave() for _ in range(L)]
        others = steps, ends, lambda logits: logits.softmax(-1).amax(-1) > threshold
        left: dict[int, list[int]] = {depth: [] for depth in range(L + 1)}
        for row, depth in enumerate(early_exit(many, *others)[1].tolist()):
            left[depth].append(row)
        if all(len(left[depth]) >= len(depths) for depth in depths):
            return many[[left[depth].pop() for depth in depths]], *others


# Rows leave after every one of four layers, in no order; more than one goes to the end.
one_by_one = each(case, *([[3, 1, 4, 2, 4, *more]] for more in ([1], [2, 2], [3, 1, 1])))


def together(draw: Draw) -> Case:
    """Nobody leaves after the first layer, and all are confident at the third exit."""
    while True:
        x, layers, exits, confident = inputs = case(draw, [2, 3, 2], threshold=0.5)
        for layer in layers[:3]:
            x = layer(x)
        if bool(confident(exits[2](x)).all()):
            return inputs


# ---------------------------------------------------------------- what is looked at


def row_counts(
    function: Answer, x: Tensor, layers: Sequence[Step], exits: Sequence[Step], confident: Step
) -> Tensor:
    """How many rows each layer was given; −1 where it was not called."""
    rows = torch.full((len(layers),), -1)

    def counting(n: int) -> Step:
        def step(part: Tensor) -> Tensor:
            rows[n] = max(0, int(rows[n])) + len(part)
            return layers[n](part)

        return step

    function(x, [counting(n) for n in range(len(layers))], exits, confident)
    return rows


def layers_called(function: Answer, *inputs: object) -> int:
    return int((row_counts(function, *inputs) >= 0).sum())  # type: ignore[arg-type]


SURE = "confident(logits) | (depth == len(layers))"
WRITE = "answers[at], used[at] = logits[done], depth"
SHRINK = "rows, x = rows[~done], x[~done]"
ONCE = ((SHRINK, "pass"), (SURE, f"({SURE}) & (used == 0)"))  # nobody leaves the batch

LEAVING = Exercise(
    **written("14.7"),
    solution=early_exit,
    returns=(
        Numbers("logits", shape="B C"),
        Numbers("number of layers used", shape="B", kind="int"),
    ),
    library=("course_lib.kernels.early_exit:early_exit",),
    when_raised=(
        (r"shape mismatch|must match|does not match the shape|IndexError",
         "x shrinks as rows leave, so a mask over the whole batch no longer fits it. Keep the "
         "indices of the remaining rows, and let them shrink with x."),
        (r"Boolean value of Tensor",
         "confident gives a value for each row, not a single yes or no: pick rows with x[done], "
         "and use done.all() or done.any() where you need a single one."),
    ),
    stages=(
        Stage("one row", each(case, [[2]], [[4]])),
        Stage("nobody is ever confident", each(case, ([3, 3, 3], 3, 2.0), ([3, 3, 3, 3], 3, 2.0))),
        Stage("rows leave one by one", lambda draw: [*one_by_one(draw), together(draw)]),
        Stage("each layer meets only rows under way", one_by_one, row_counts,
              Numbers("numbers of rows given to each layer", shape="L", kind="int")),
        Stage("when all have left, stop",  # all at once; some earlier than others
              each(case, ([1, 1, 1], 3, 0.0), [[2, 1, 1, 2]], [[1, 2, 1]]),
              layers_called, Number("number of layers called", kind="int")),
    ),
    mistakes=(
        Edit(SURE, "torch.full(rows.shape, depth == len(layers))", "Every row gets the answer of "
             "the last exit. A row takes that of the first exit at which it is confident."),
        Edit(WRITE, "answers, used[at] = logits, depth",
             "Your layer counts are right, but every row gets the answer of the last exit. Take "
             "that of the exit at which it left.", more=ONCE),
        Edit(SURE, "torch.ones_like(rows).bool()",
             "Every row leaves after the first layer. Only confident rows may leave."),
        Edit("at = rows[done]", "at = (used > 0).sum() + torch.arange(int(done.sum()))",
             "Your answers are in the order in which rows left. Keep the index of each row in the "
             "batch, and write each answer there."),
        Edit("answers[at]", "answers[(used > 0).sum() + torch.arange(len(at))]",
             "Your logits are in the order in which rows left; the numbers of layers are not. "
             "Write each answer at its row's index in the batch."),
        Edit(f"done = {SURE}", "sure = confident(logits); done = (late if depth > 1 else sure & "
             "False) | (depth == len(layers)); late = sure[~done]", "A confident row goes through "
             "one more layer and takes that layer's answer. It must take the answer of the exit "
             "where it was confident."),
        Edit("confident(logits) |", "confident(logits).any().expand(len(rows)) |",
             "The whole batch stops when the first row is confident. The others must go on."),
        Edit("confident(logits) |", "confident(logits).all().expand(len(rows)) |",
             "The whole batch goes on until all rows are confident at the same exit. Each row must "
             "leave as soon as it is confident itself."),
        Edit(SURE, "confident(logits) if depth < len(layers) else used == 0",
             "A later exit overwrites the answer of a row that was already confident. A row that "
             "has left must not be computed again.", more=((SHRINK, "pass"),)),
        Edit("| (depth == len(layers))", "| ((used == 0) & (depth == len(layers)))",
             "Later exits, the last one included, overwrite the answer of a row that was already "
             "confident. A row that has left must not be computed again.",
             more=((SHRINK, "pass"),)),
        Edit("confident(logits) |", "~confident(logits) |",
             "Your rows leave when they are *not* confident."),
        Edit(" | (depth == len(layers))", "", "Rows that are never confident have no answer and "
             "no layers. At the last exit all remaining rows leave."),
        Edit(" | (depth == len(layers))", "",
             "Rows that are never confident have zeros instead of an answer. At the last exit all "
             "remaining rows leave.",
             more=(("torch.zeros_like(rows)", "torch.full_like(rows, len(layers))"),)),
        Edit(SURE, "confident(logits) & (depth < len(layers))",
             "Rows that reach the last exit have no answer and no layers. They must leave there."),
        Edit(SURE, "confident(logits) & (depth < len(layers))",
             "Rows that reach the last exit have zeros, not an answer. They must leave there.",
             more=(("torch.zeros_like(rows)", "torch.full_like(rows, len(layers))"),)),
        Edit("logits[done], depth", "logits[done], depth % len(layers)", "By your count, rows that "
             "are never confident used 0 layers. They went through all."),
        Edit("logits[done], depth", "logits[done], depth - 1", "Your answers are right, but you "
             "count layers from 0. A row that leaves after the first layer has used 1."),
        Edit("logits[done], depth", "logits[done], len(layers) - depth",
             "Your answers are right, but you count the layers that a row did *not* use."),
        Edit("logits[done], depth", "logits[done], len(layers)",
             "Your answers are right, but you report all layers for every row."),
        Edit(SHRINK, "pass", "Your answers are right, but every layer got all rows, which saves "
             "nothing: remove the rows that have left from x.", more=ONCE[1:]),
        Edit(SHRINK, "rows, x = rows[stay], x[stay]", "Your answers are right, but rows leave the "
             "batch one layer after they were confident: remove them before the next layer.",
             more=((f"done = {SURE}", f"stay = used[rows] == 0; done = ({SURE}) & stay"),)),
        Edit("if not len(rows):", "if False:",
             "All rows have left, but you still call further layers with no rows. Each call costs "
             "time: leave the loop when no row remains."),
    ),
)  # fmt: skip
