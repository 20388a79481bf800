"""Exercise 05.3: few blocks, many layers.

The solution first, then the stages. What an answer does with its blocks is written down while it
runs, so that mistakes are seen directly and not guessed from the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    call,
    close,
)

Case = tuple[Tensor, Tensor, int, int]  # x (B, T, H), weights (L, H, H), layers, groups
MakeBlock = Callable[[], Callable[[Tensor], Tensor]]


def shared_layers(
    x: Tensor, make_block: MakeBlock, num_layers: int, num_groups: int
) -> list[Tensor]:
    """The states before and after each layer; neighbouring layers of a group share one block."""
    size = num_layers // num_groups  # layers in a group
    blocks = [make_block() for _ in range(num_groups)]
    states = [x]
    for layer in range(num_layers):
        states.append(blocks[layer // size](states[-1]))
    return states


class NotedBlock(nn.Module):
    """A small block that writes down each visit; a copy of it says that it is one."""

    def __init__(
        self, number: int, weight: Tensor, visits: list[tuple[int, bool]], copied: bool = False
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.number, self.visits, self.copied = number, visits, copied

    def forward(self, x: Tensor) -> Tensor:
        self.visits.append((self.number, self.copied))
        return self.apply_to(x)

    def apply_to(self, x: Tensor) -> Tensor:
        """The block without a note, (B, T, H) -> (B, T, H)."""
        return 0.5 * x + torch.tanh(x @ self.weight)

    def __deepcopy__(self, memo: dict[int, Any]) -> NotedBlock:
        return NotedBlock(self.number, self.weight.detach().clone(), self.visits, copied=True)


@dataclass
class Trace:
    """What an answer returned, the blocks it made, and which one it visited at each step."""

    result: Any
    made: list[NotedBlock]
    visits: list[tuple[int, bool]]


def _run(answer: Answer, case: Case) -> Trace:
    x, weights, num_layers, num_groups = case
    made: list[NotedBlock] = []
    visits: list[tuple[int, bool]] = []

    def make_block() -> NotedBlock:
        made.append(NotedBlock(len(made), weights[len(made) % len(weights)].clone(), visits))
        return made[-1]

    return Trace(call(answer, x, make_block, num_layers, num_groups), made, visits)


def _case(draw: Draw, num_layers: int, num_groups: int) -> Case:
    B, T, H = draw.integer(1, 2), draw.integer(2, 4), draw.integer(3, 5)
    return draw.normal(B, T, H), draw.normal(num_layers, H, H), num_layers, num_groups


def _ask_layers(shapes: Sequence[tuple[int, int]]) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for shape in shapes:
            case = _case(draw, *shape)
            trace = _run(answer, case)
            states = _states(trace.result, case)
            _expect_blocks(trace, case)
            _expect_visits(trace, case)
            _expect_states(states, trace, case)

    return ask


def _states(result: Any, case: Case) -> list[Tensor]:
    x, _, num_layers, _ = case
    if isinstance(result, Tensor) and result.dim() == x.dim() + 1:
        result = list(result)  # the states in one tensor
    if isinstance(result, Tensor) and result.shape == x.shape:
        raise Mistake(
            "only the last state",
            "Your function returned one tensor, the states after the last layer; expected a list "
            f"of all {num_layers + 1}: x, and the states after each layer.",
        )
    right = isinstance(result, (list, tuple)) and all(
        isinstance(state, Tensor) and state.shape == x.shape for state in result
    )
    if not right:
        raise Mistake(
            "wrong type",
            f"Your function returned a {type(result).__name__}; expected a list of "
            f"{num_layers + 1} tensors of the shape of x, {tuple(x.shape)}.",
        )
    return list(result)


def _expect_blocks(trace: Trace, case: Case) -> None:
    _, _, num_layers, num_groups = case
    number = len(trace.made)
    if any(copied for _, copied in trace.visits):
        raise Mistake(
            "copies",
            "Layers ran copies of a block. A copy begins with the same numbers, but it is a second "
            "set of weights: it takes memory of its own and learns something of its own. Call the "
            "same object again.",
        )
    if number == num_groups:
        return
    said = f"For {num_layers} layers in {num_groups} groups make_block was called {number} times"
    if number == num_layers:
        raise Mistake(
            "a block for each layer",
            f"{said}, once a layer: that is BERT. Make one block for each *group* before the loop, "
            "and call it again for each layer of the group.",
        )
    if number == 1:
        raise Mistake(
            "one block for all",
            f"{said}: one block for all layers. That is ALBERT with num_groups=1; here each group "
            "has a block of its own.",
        )
    raise Mistake("", f"{said}; expected {num_groups}, one a group.")


def _expect_visits(trace: Trace, case: Case) -> None:
    _, _, L, G = case
    size = L // G
    visits = [number for number, _ in trace.visits]
    right = [layer // size for layer in range(L)]
    if visits == right:
        return
    said = f"With {L} layers in {G} groups the layers ran the blocks {visits}; expected {right}."
    known = {
        "in turn": (
            [layer % G for layer in range(L)],
            "The blocks take turns. A group is a run of *neighbouring* layers: divide the layer's "
            "number by the layers in a group, //, instead of taking the remainder.",
        ),
        "size and number confused": (
            [min(layer // G, G - 1) for layer in range(L)],
            "The layer's number is divided by the number of groups; it must be divided by the "
            "number of layers in a group, num_layers // num_groups.",
        ),
        "last group first": (right[::-1], "The groups are visited in reverse: the last first."),
        "one visit a block": (
            list(range(G)),
            "Each block ran once. Sharing keeps the depth: every layer of a group runs the group's "
            "block again.",
        ),
        "one layer short": (right[:-1], "One layer is missing: the loop ends one too early."),
        "one layer too many": (
            [*right, right[-1]],
            "One layer too many was run: x itself is the first state, before any layer.",
        ),
    }
    for key, (numbers, message) in known.items():
        if visits == numbers:
            raise Mistake(key, f"{message}\n{said}")
    raise Mistake("", said)


def _expect_states(states: list[Tensor], trace: Trace, case: Case) -> None:
    x, _, L, G = case
    blocks = [trace.made[layer // (L // G)] for layer in range(L)]
    right = [x]
    for block in blocks:
        right.append(block.apply_to(right[-1]))
    if _same(states, right):
        return
    known = {
        "first state missing": (
            right[1:],
            "The first state is missing: the list begins with x, the embeddings, before any layer.",
        ),
        "last state missing": (right[:-1], "The state after the last layer is missing."),
        "not chained": (
            [x, *(block.apply_to(x) for block in blocks)],
            "Every layer was given x. A layer reads what the layer before it made.",
        ),
        "reversed": (right[::-1], "The states stand in reverse: x comes first."),
    }
    for key, (theirs, message) in known.items():
        if _same(states, theirs):
            raise Mistake(key, message)
    if len(states) != L + 1:
        raise Mistake("", f"{len(states)} states were returned; expected {L + 1}, x among them.")
    place = next(i for i, pair in enumerate(zip(states, right, strict=True)) if not close(*pair))
    raise Mistake("", f"The state after layer {place} of {L} is not what its block makes of it.")


def _same(mine: Sequence[Tensor], theirs: Sequence[Tensor]) -> bool:
    return len(mine) == len(theirs) and all(map(close, mine, theirs))


def _ask_gradient(answer: Answer, draw: Draw) -> None:
    """The gradient of a shared weight is the sum over its visits."""
    case = _case(draw, 4, 1)
    probe = draw.normal(*case[0].shape)
    trace = _run(answer, case)
    (block,), states = trace.made, _states(trace.result, case)
    if not states[-1].requires_grad:
        raise Mistake(
            "no gradient",
            "No gradient leads from the last state back to the weights: is there a .detach() or a "
            "torch.no_grad()?",
        )
    given = _gradient(states[-1], probe, block)
    reference = _run(shared_layers, case)
    right = _gradient(reference.result[-1], probe, reference.made[0])
    if close(given, right):
        return
    last = _gradient(block.apply_to(states[-2].detach()), probe, block)
    if close(given, last):
        raise Mistake(
            "only the last visit learns",
            "The states are right, but the shared weights get the gradient of the last visit only. "
            "The path is cut between the layers (.detach(), .data). Left alone, the gradients of "
            "all visits add up.",
        )
    raise Mistake("", "The states are right, but the gradient of the shared weights is not.")


def _gradient(last: Tensor, probe: Tensor, block: NotedBlock) -> Tensor:
    """The gradient of a weighted sum of the last states; zero where none arrives."""
    (found,) = torch.autograd.grad((last * probe).sum(), block.weight, allow_unused=True)
    return torch.zeros_like(block.weight) if found is None else found


LAYERS = Exercise(
    id="05.3",
    title="Few blocks, many layers",
    purpose="what sharing changes, and what it does not",
    difficulty=2,
    minutes=12,
    signature="my_shared_layers(x, make_block, num_layers, num_groups)",
    statement=(
        "`make_block()` gives a new block with weights of its own; `block(x)` gives the next "
        "states, of the shape of `x`. Run `num_layers` layers in `num_groups` groups. A group is a "
        "run of neighbouring layers, all groups are equally long, and all layers of a group run "
        "*the same* block. Return the list of all `num_layers + 1` states, `x` first. ALBERT is "
        "the case of one group; BERT is the case of as many groups as layers."
    ),
    hints=(
        "First one group: make the block before the loop, and call it num_layers times, each time "
        "on the last state.",
        "A group has size = num_layers // num_groups layers. Make num_groups blocks in a list.",
        "With 6 layers in 2 groups the layers 0 to 5 run the blocks 0, 0, 0, 1, 1, 1: layer // "
        "size.",
        "Keep a list states = [x] and append what blocks[layer // size] makes of states[-1].",
    ),
    solution=shared_layers,
    see="course_lib.family.albert.sharing_plan and course_lib.encoder.Stack (halves of blocks)",
    when_raised=(
        (
            "list index out of range",
            "With 6 layers in 2 groups the blocks are numbered 0 and 1: the block of a layer is "
            "layer // (num_layers // num_groups).",
        ),
    ),
    stages=(
        Check("one block for all layers", _ask_layers([(3, 1), (5, 1)])),
        Check("a block for each layer", _ask_layers([(3, 3), (4, 4)])),
        Check("groups of neighbours", _ask_layers([(6, 2), (12, 3), (8, 4)])),
        Check("shared weights learn from every visit", _ask_gradient),
    ),
)
