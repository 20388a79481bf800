"""Exercise 05.4: few blocks, many layers. What an answer does with its blocks is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

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
from course_lib.teaching.exercises.outputs import Exact, Items, Number, Numbers, Wrong, kind_of

MakeBlock = Callable[[], Callable[[Tensor], Tensor]]


def shared_layers(
    x: Tensor, make_block: MakeBlock, num_layers: int, num_groups: int
) -> list[Tensor]:
    """The states before and after each layer; neighbouring layers of a group share one block."""
    size = num_layers // num_groups  # layers in a group
    blocks = [make_block() for _ in range(num_groups)]
    states = [x]
    for layer in range(num_layers):
        block = blocks[layer // size]
        states.append(block(states[-1]))
    return states


# ---------------------------------------------------------------- cases, and what is looked at


class NotedBlock(nn.Module):
    """A small block that writes down each visit; a copy of it says that it is one."""

    def __init__(self, index: int, weight: Tensor, maker: Maker) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.clone())
        self.index, self.maker = index, maker

    def forward(self, x: Tensor) -> Tensor:
        self.maker.visits.append(self.index)
        return 0.5 * x + torch.tanh(x @ self.weight)

    def __deepcopy__(self, memo: Any) -> NotedBlock:
        self.maker.copied = True
        return NotedBlock(self.index, self.weight.detach(), self.maker)


class Maker:
    """make_block, and what was made; a copy of it has made nothing yet."""

    def __init__(self, weights: Tensor) -> None:
        self.weights = weights
        self.made: list[NotedBlock] = []
        self.visits: list[int] = []
        self.copied = False

    def __call__(self) -> NotedBlock:
        n = len(self.made)
        self.made.append(NotedBlock(n, self.weights[n % len(self.weights)], self))
        return self.made[-1]

    def __deepcopy__(self, memo: Any) -> Maker:
        return Maker(self.weights)


def case(draw: Draw, layers: int, groups: int) -> Case:
    B, T, H = draw.integer(1, 2), draw.integer(2, 4), draw.integer(3, 5)
    return draw.normal(B, T, H), Maker(draw.normal(layers, H, H)), layers, groups


one_group = each(case, (3, 1), (4, 1), (5, 1))


def states_of(result: Any, x: Tensor, layers: int) -> list[Tensor]:
    if isinstance(result, Tensor) and result.dim() == x.dim() + 1:
        return list(result)  # the states in one tensor
    if isinstance(result, Tensor) and result.shape == x.shape:
        raise Wrong("Your function returned one tensor, the states after the last layer; expected "
                    f"a list of all {layers + 1}: x, and the states after each layer.")  # fmt: skip
    listed = isinstance(result, (list, tuple)) and len(result) > 0
    if not listed or not all(isinstance(s, Tensor) and s.shape == x.shape for s in result):
        raise Wrong(f"Your function returned {kind_of(result)}; expected a list of {layers + 1} "
                    f"tensors of the shape of x, {tuple(x.shape)}.")  # fmt: skip
    return list(result)


def what_ran(function: Answer, x: Tensor, make_block: Maker, layers: int, groups: int) -> Any:
    states = states_of(function(x, make_block, layers, groups), x, layers)
    ran = "copies of blocks" if make_block.copied else "the blocks themselves"
    return ran, len(make_block.made), make_block.visits, torch.stack(states).detach()


def weight_gradient(function: Answer, x: Tensor, make_block: Maker, *sizes: int) -> Tensor:
    last = states_of(function(x, make_block, *sizes), x, sizes[0])[-1]
    if not last.requires_grad:
        raise Wrong("No gradient leads from the last state back to the weights: is there a "
                    ".detach() or a torch.no_grad()?", "gradient")  # fmt: skip
    weights = torch.linspace(-1, 1, last.numel(), dtype=last.dtype).view(last.shape)
    weight = make_block.made[0].weight
    (gradient,) = torch.autograd.grad((last * weights).sum(), weight, allow_unused=True)
    return torch.zeros_like(weight) if gradient is None else gradient


RAN = (
    Exact("what the layers ran"),
    Number("number of blocks that were made", kind="int"),
    Items("numbers of the blocks that the layers ran", of="blocks"),
    Numbers("list of states", shape="L+1 B T H"),
)
BLOCKS = "blocks = [make_block() for _ in range(num_groups)]"

LAYERS = Exercise(
    **written("05.4"),
    solution=shared_layers,
    returns=Exact("states", what="a list of tensors"),
    see="course_lib.family.albert: sharing_plan and SharedStack (halves of blocks)",
    when_raised=(
        ("list index out of range",
         "With 6 layers in 2 groups the blocks are numbered 0 and 1: the block of a layer is "
         "layer // (num_layers // num_groups)."),
        ("not float", "The number of a block is a whole number: divide with //."),
        (r"__call__\(\) takes 1 positional",
         "make_block takes nothing: block = make_block() gives a block, and block(x) runs it."),
    ),
    stages=(
        Stage("one block for all layers", one_group, what_ran, RAN),
        Stage("a block for each layer", each(case, (3, 3), (4, 4)), what_ran, RAN),
        Stage("groups of neighbours", each(case, (6, 2), (12, 3), (8, 4)), what_ran, RAN),
        Stage("shared weights learn from every visit", one_group, weight_gradient,
              Numbers("gradient of the shared weights")),
    ),
    mistakes=(
        Edit("blocks[layer // size]", "blocks[layer // size].__deepcopy__(None)",
             "Your layers ran copies of a block. A copy starts with the same numbers, but it is a "
             "second set of weights: it takes its own memory and learns something different. Call "
             "the same object again."),
        Edit(BLOCKS, "blocks = [make_block() for _ in range(num_layers)]",
             "You made a block for each layer: that is BERT. Make one block for each *group* "
             "before the loop, and call it again for each layer of the "
             "group.", more=(("layer // size", "layer"),)),
        Edit(BLOCKS, "blocks = [make_block()] * num_groups", "One block serves all groups; each "
             "has a block of its own. Call make_block() for each group. ([make_block()] * "
             "num_groups calls it once, and holds the same block num_groups times.)"),
        Edit("layer // size", "layer % num_groups",
             "Your blocks take turns. A group is a run of *neighbouring* layers: divide the "
             "layer's number by the group's size with //, instead of taking the remainder."),
        Edit("layer // size", "min(layer // num_groups, num_groups - 1)",
             "You divide the layer's number by the number of groups; divide it by the number of "
             "layers in a group, num_layers // num_groups."),
        Edit("layer // size", "-1 - layer // size",
             "You visit the groups in reverse: the last first."),
        Edit("range(num_layers)", "range(num_groups)",
             "Each block ran once. Sharing keeps the depth: every layer of a group runs the "
             "group's block again.", more=(("layer // size", "layer"),)),
        Edit("range(num_layers)", "range(num_layers - 1)",
             "One layer is missing: the loop ends one too early."),
        Edit("range(num_layers)", "range(num_layers + 1)",
             "You ran one layer too many: x itself is the first state, before any layer.",
             more=(("layer // size", "min(layer // size, num_groups - 1)"),)),
        Edit("return states", "return states[1:]", "The first state is missing: the list begins "
             "with x, the embeddings, before any layer."),
        Edit("return states", "return states[:-1]", "The state after the last layer is missing."),
        Edit("return states", "return states[::size]", "You return one state for each group; "
             "return one after every layer: append inside the inner loop."),
        Edit("return states", "return states[::-1]", "Your states are in reverse order: x comes "
             "first."),
        Edit("block(states[-1])", "block(x)",
             "You gave x to every layer. A layer reads the output of the layer before it."),
        Edit("block(states[-1])", "block(states[-1] if layer % size else x)",
             "Every group begins with x again. Its first layer should read the output of the "
             "previous group's last layer."),
        Edit("block(states[-1])", "states[-1] + block(states[-1])",
             "You added the input of a layer to its block's output. block(x) is already the next "
             "state; the residual connection is inside."),
        Edit("block(states[-1])", "block(states[-1].detach())",
             "The states are correct, but the shared weights get the gradient of the last visit "
             "only: the graph is cut between the layers (.detach(), .data). Without the cut, the "
             "gradients of all visits add up."),
    ),
)  # fmt: skip
