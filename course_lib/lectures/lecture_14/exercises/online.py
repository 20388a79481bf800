"""Exercise 14.5: a softmax that sees its row in pieces. T scores, D numbers in a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.teaching.exercises.calling import Guarded
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers, Wrong


def online_softmax(scores: Tensor, values: Tensor, chunk: int) -> Tensor:
    """softmax(scores) @ values, (D,), from one chunk after another."""
    largest = torch.full((), -math.inf, dtype=scores.dtype)
    total, output = scores.new_zeros(()), values.new_zeros(values.shape[1])
    for begin in range(0, len(scores), chunk):
        s, v = scores[begin : begin + chunk], values[begin : begin + chunk]
        before, largest = largest, torch.maximum(largest, s.max())
        shrink = (before - largest).exp()  # what was added up was too large by this
        weights = (s - largest).exp()
        total = total * shrink + weights.sum()
        output = output * shrink + weights @ v
    return output / total


# ---------------------------------------------------------------- cases


def case(draw: Draw, T: int, chunk: int, D: int = 2, lift: Sequence[float] = ()) -> Case:
    """lift: what is added to the scores of each chunk; else scores in falling order."""
    scores = 2 * draw.normal(T)
    if lift:
        scores += torch.tensor([lift[t // chunk] for t in range(T)], dtype=torch.float64)
    else:
        scores = scores.sort(descending=True).values
    return scores, draw.normal(T, D), chunk


def one_chunk(draw: Draw) -> list[Case]:
    T = draw.integer(4, 7)
    return [case(draw, T, T, 3), case(draw, T, T + 2, 2)]


def short_end(draw: Draw) -> list[Case]:
    return [case(draw, 4 * n + draw.integer(1, 3), 4, 3) for n in (2, 3)]


def lifted(*lift: float) -> Callable[[Draw], list[Case]]:
    return each(case, (13, 4, 2, lift), (14, 4, 2, lift))


# ---------------------------------------------------------------- what is looked at


class Watch(TorchDispatchMode):
    """Raises Wrong where an operation works on more than a chunk, or on an earlier one.

    Views (slices, splits) work on nothing, and new_zeros or zeros_like look at no number of what
    they are given."""

    def __init__(self, scores: Tensor, values: Tensor, chunk: int) -> None:
        super().__init__()
        self.chunk, self.most = chunk, values.shape[1] * chunk
        sizes = {scores: chunk, values: self.most}
        self.size = {x.untyped_storage().data_ptr(): size for x, size in sizes.items()}
        self.latest, self.kept = dict.fromkeys(self.size, 0), -1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        op = func._schema.name.split("::")[-1]
        shape_only = op.startswith("new_") or op.endswith("_like")
        if not func.is_view:
            for x in tree_leaves(result if shape_only else (args, kwargs, result)):
                if isinstance(x, Tensor):
                    self.see(op, x)
        return result

    def see(self, op: str, x: Tensor) -> None:
        if x.numel() > self.most:
            raise Wrong(
                f"Your numbers are right, but {op} works on {x.numel()} numbers at once. A chunk "
                f"has {self.chunk} scores, with their values {self.most} numbers: use no more."
            )
        memory = x.untyped_storage().data_ptr()
        if memory in self.size and x.numel():
            place = int(x.storage_offset())
            if not x.dim() and self.kept == place:
                return  # one number that is carried on, such as a first score
            self.kept = self.kept if x.dim() else place
            number = place // self.size[memory]
            if number < self.latest[memory]:
                raise Wrong(
                    f"Your numbers are right, but chunk {number} is read again after chunk "
                    f"{self.latest[memory]}. Read each chunk once: with the largest score *so "
                    "far*, one pass is enough."
                )
            self.latest[memory] = number


class Lists(TorchFunctionMode):
    """Lets a Watch see .tolist(), which reads numbers without an operation."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.tolist:
            self.watch.see("tolist", args[0])
        return func(*args, **(kwargs or {}))


def expect_chunks(function: Guarded, scores: Tensor, values: Tensor, chunk: int) -> None:
    def watched(*inputs: Any) -> Any:
        with Watch(scores, values, chunk) as watch, Lists(watch):
            return function.function(*inputs)

    with Watch(scores, values, chunk):
        torch.zeros(())  # the first use imports much: not on the answer's time
    Guarded(function.exercise, watched, function.left)(scores, values, chunk)


SHRINK = "shrink = (before - largest).exp()"

ONLINE = Exercise(
    **written("14.5"),
    solution=online_softmax,
    returns=Numbers("output", shape="D"),
    see="course_lib.kernels.disentangled_triton does this for blocks of queries, forward and "
    "backward",
    when_raised=(
        (r"size mismatch|inconsistent tensor|must match|mat1|vector",
         "The last chunk can be shorter than the others: cut scores and values at the same "
         "places."),
    ),
    forbidden={"numpy": "Stay with torch, whose operations are watched."},
    infinite="Not all of it is a finite number: exp(1,000) is infinite, exp(−1,000) is 0, and 0/0, "
    "0 · ∞ and ∞/∞ are not numbers.",
    stages=(
        Stage("one chunk holds all", one_chunk),
        Stage("several chunks, the largest score in the first", each(case, (12, 4, 3), (15, 5, 2))),
        Stage("the last chunk is shorter", short_end),
        Stage("a larger score comes later",  # in the middle chunk, and in the last
              each(case, (15, 4, 3, (0, 2, 5, 1)), (15, 4, 3, (0, 3, 1, 4)))),
        Stage("scores near 1,000", lifted(1_000, 1_001, 1_000, 1_001)),
        Stage("scores near −1,000", lifted(-1_000, -1_001, -1_000, -1_001)),
        Stage("steeply rising", lifted(-1_000, 0, 1_000, 2_000)),
        Stage("steeply falling", lifted(2_000, 1_000, 0, -1_000)),
        Stage("a chunk at a time, each once", each(case, (50, 6, 4)), ask=expect_chunks),
    ),
    mistakes=(
        Edit(SHRINK, "shrink = 1.0",
             "You do not rescale the earlier sums when a larger score comes. They were made with "
             "exp(s − old largest) and must be multiplied by exp(old largest − new largest)."),
        Edit("total * shrink", "total", "When a larger score comes, you rescale the output but not "
             "the sum of the weights. Both hold weights made with the old largest score."),
        Edit("output * shrink", "output", "When a larger score comes, you rescale the sum of the "
             "weights but not the output. Both hold weights made with the old largest score."),
        Edit(SHRINK, "shrink = (largest - before).exp() if begin else 0.0",
             "You multiply by exp(new − old). The sums made with the smaller score are too large: "
             "they must shrink, by exp(old − new)."),
        Edit(SHRINK, "shrink = (largest - before).exp()", "Is the factor inverted? With old at "
             "−infinity exp(new − old) is infinite, and infinite times 0 is nan. The earlier sums "
             "must shrink: exp(old − new), at first 0."),
        Edit("(s - largest)", "(s - (before if begin else largest))",
             "You make a chunk's weights with the largest score before it, but treat them as if "
             "made with the new one. Make them with the new one."),
        Edit("weights @ v", "weights @ v / weights.sum()", "You divide each chunk's output by its "
             "sum of weights, and the total again at the end. Divide once, at the end."),
        Edit("torch.maximum(largest, s.max())", "s.max()", "You make each chunk's weights with its "
             "own largest score and just add the sums. Each has a different factor: keep the "
             "largest score *so far*, and rescale the earlier sums by exp(old − new).",
             more=((SHRINK, "shrink = 1.0"),)),
        Edit("weights = (s - largest).exp()", "weights = s.softmax(0)", "Each chunk has a softmax "
             "of its own, and you average the results. A chunk of large scores must count for "
             "more than one of small scores.", more=((SHRINK, "shrink = 1.0"),)),
        Edit("weights = (s - largest).exp()", "weights = len(s) * s.softmax(0)", "Each chunk has a "
             "softmax of its own, and you average the results by length. A chunk of large scores "
             "must count for more than one of small scores.", more=((SHRINK, "shrink = 1.0"),)),
        Edit("weights = (s - largest).exp()", "weights = s.softmax(0)", "Each chunk has a softmax "
             "of its own, and you add up the results. The weights of *all* scores together must "
             "sum to 1.", more=((SHRINK, "shrink = 1.0"), ("output / total", "output"))),
        Edit("total * shrink + ", "", "This is the softmax of the last chunk alone: you overwrite "
             "the earlier sums.", more=(("output * shrink + ", ""),)),
        Edit("len(scores), chunk)", "len(scores) - chunk + 1, chunk)", "The last, shorter chunk is "
             "left out. T need not be a multiple of `chunk`: a slice that reaches too far simply "
             "ends early. (If T is less than `chunk`, you skip everything: 0/0.)"),
        Edit("output / total", "output / len(scores)",
             "The output is divided by T. Divide it by the sum of the weights."),
        Edit("weights = (s - largest).exp()", "weights = torch.ones_like(s)", "This is the plain "
             "mean of the values: the scores have no effect.", more=((SHRINK, "shrink = 1.0"),)),
        Edit("torch.maximum(largest, s.max())", "torch.zeros_like(largest)",
             "Subtract the largest score so far before exp."),
        Edit("-math.inf", "0.0", "With scores near −1,000 all weights are 0. Does your largest "
             "score begin at 0? Begin at −infinity."),
        Edit("torch.maximum(largest, s.max())", "largest if begin else s.max()",
             "You keep the largest score of the first chunk for all. When scores rise it must "
             "rise, too, and the earlier sums must shrink."),
        Edit("torch.maximum(largest, s.max())", "s.max() * 1.0",
             "Each chunk's own largest score replaces a larger earlier one. When scores fall "
             "steeply exp(old − new) is infinite: keep the largest *so far*."),
    ),
)  # fmt: skip
