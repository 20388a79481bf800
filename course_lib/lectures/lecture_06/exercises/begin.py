"""Exercise 06.4: a student that begins as a part of its teacher.

The solution first, then the stages: they look at each layer's numbers, where they came from, and
whether they are the student's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.teaching.exercises.legacy import Answer, Check, Draw, Exercise, Mistake, call

State = Mapping[str, Tensor]

EMBEDDINGS = {
    "token": "the token table", "position": "the position table", "segment": "the segment table",
    "norm": "the LayerNorm",
}  # fmt: skip


def begin(student: Encoder, teacher: Encoder) -> Encoder:
    """The student, with the teacher's embeddings and evenly chosen layers copied into it."""
    blocks: Any = student.stack.blocks
    source: Any = teacher.stack.blocks
    step = (len(source) - 1) / (len(blocks) - 1)  # from the first layer to the last
    student.embeddings.load_state_dict(teacher.embeddings.state_dict())
    for number, block in enumerate(blocks):
        block.load_state_dict(source[round(number * step)].state_dict())
    return student


def chosen(teacher_layers: int, student_layers: int) -> list[int]:
    """The teacher's layer, from 0, that each layer of the student begins as."""
    step = (teacher_layers - 1) / (student_layers - 1)
    return [round(number * step) for number in range(student_layers)]


def known_choices(N: int, M: int) -> dict[str, tuple[list[int], str]]:
    """Other ways to choose M of N layers, and what to say of each."""
    every, step = N // M, (N - 1) / (M - 1)
    last = [i + N - M for i in range(M)]
    return {
        "first layers": (
            list(range(M)),
            "The student's layers are the teacher's first ones. The work of the teacher's upper "
            "layers is lost; take layers from bottom to top.",
        ),
        "last layers": (
            last,
            "The student's layers are the teacher's last ones. Its first layer then expects states "
            "that no layer below it makes; take layers from bottom to top.",
        ),
        "every other layer": (
            [i * every for i in range(M)],
            "Every second (third, …) layer from the first on: that is the paper's wording, and it "
            "leaves out the last layer. The released script, and this exercise, stretch the choice "
            "so that the last layer is in.",
        ),
        "every other layer, from the second": (
            [i * every + every - 1 for i in range(M)],
            "Every second (third, …) layer, the last of each group. The first layer is missing.",
        ),
        "rounded down": (
            [int(i * step) for i in range(M)],
            "First and last are right; between them the numbers are rounded down. Round to the "
            "nearest: 6.6 becomes 7.",
        ),
        "one layer off": (
            [(i + 1) % N for i in chosen(N, M)],
            "Each layer begins as the one after the right one: layers are counted from 0.",
        ),
        "one layer off, below": (
            [(i - 1) % N for i in chosen(N, M)],
            "Each layer begins as the one before the right one: layers are counted from 0.",
        ),
        "reversed": (chosen(N, M)[::-1], "The layers are right, in reverse order."),
        "one layer for all": ([0] * M, "Every layer begins as the teacher's first."),
    }


# ---------------------------------------------------------------- inputs


def _encoders(draw: Draw, teacher_layers: int, student_layers: int) -> tuple[Encoder, Encoder]:
    """Two encoders of one width in which no two numbers are the same, as after training."""
    made = []
    for layers in (student_layers, teacher_layers):
        config = BertConfig(
            vocab_size=11, hidden_size=4, num_layers=layers, num_heads=2, intermediate_size=6,
            max_positions=7,
        )  # fmt: skip
        encoder = Encoder(config)
        for p in encoder.parameters():
            p.data.normal_(generator=draw.torch)
        made.append(encoder)
    student, teacher = made
    return student, teacher


# ---------------------------------------------------------------- stages


@dataclass
class Trace:
    """Student and teacher as the answer left them, and their numbers as they were drawn."""

    student: Encoder
    teacher: Encoder
    fresh: State  # the student's numbers
    right: State  # the teacher's
    depths: tuple[int, int]  # layers of the teacher, of the student

    @property
    def choice(self) -> list[int]:
        return chosen(*self.depths)


def _run(answer: Answer, draw: Draw, depths: tuple[int, int], frozen: bool = False) -> Trace:
    student, teacher = _encoders(draw, *depths)
    teacher.requires_grad_(not frozen)
    trace = Trace(student, teacher, _numbers(student), _numbers(teacher), depths)
    result = call(lambda: answer(student, teacher))  # they are this run's own: no copies needed
    if not isinstance(result, nn.Module):
        raise Mistake(
            "wrong type",
            f"Your function returned a {type(result).__name__}; expected the student, an encoder.",
        )
    if result is teacher:
        raise Mistake("the teacher", "Your function returned the teacher; expected the student.")
    if result is not student:
        raise Mistake(
            "another model",
            "Your function returned another model than the student it was given. Copy into that "
            "student and return it.",
        )
    if len(_blocks(student)) != depths[1]:
        raise Mistake(
            "number of layers changed",
            f"The student came with {depths[1]} layers and has {len(_blocks(student))} now. Keep "
            "its blocks and copy numbers into them.",
        )
    return trace


def _numbers(module: nn.Module) -> State:
    return {name: x.clone() for name, x in module.state_dict().items()}


def _part(state: State, prefix: str) -> State:
    """The numbers of one part, by their names within it."""
    return {name[len(prefix) :]: x for name, x in state.items() if name.startswith(prefix)}


def _layers(state: State, depth: int) -> list[State]:
    return [_part(state, f"stack.blocks.{layer}.") for layer in range(depth)]


def _blocks(encoder: Encoder) -> list[nn.Module]:
    return list(encoder.stack.blocks)  # type: ignore[arg-type]


def _same(a: State, b: State) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def _storages(module: nn.Module) -> set[int]:
    return {p.untyped_storage().data_ptr() for p in module.parameters()}


def _expect_embeddings(trace: Trace) -> None:
    mine = trace.student.embeddings.state_dict()
    right = _part(trace.right, "embeddings.")
    wrong = [
        name for name in EMBEDDINGS if not _same(_part(mine, f"{name}."), _part(right, f"{name}."))
    ]
    if not wrong:
        return
    if wrong == list(EMBEDDINGS):
        raise Mistake(
            "embeddings not copied",
            "The student's embeddings are not the teacher's. Copied layers expect the vectors that "
            "the teacher's embeddings make: copy those too.",
        )
    which = ", ".join(EMBEDDINGS[name] for name in wrong)
    key = "embedding LayerNorm not copied" if wrong == ["norm"] else "embeddings copied in part"
    raise Mistake(
        key, f"Of the embeddings, {which} did not become the teacher's; copy all four parts."
    )


def _expect_layers(trace: Trace) -> None:
    N, M = trace.depths
    source = _layers(trace.right, N)
    mine = [block.state_dict() for block in _blocks(trace.student)]
    origins = [_origins(block, source) for block in mine]
    if all(set(found) == {n} for found, n in zip(origins, trace.choice, strict=True)):
        return
    if all(_same(a, b) for a, b in zip(mine, _layers(trace.fresh, M), strict=True)):
        raise Mistake(
            "layers not copied",
            "The student's layers still have the numbers they began with: nothing was copied.",
        )
    _expect_parts(list(mine[0]), origins)
    found = [of[0] for of in origins]
    said = (
        f"A teacher of {N} layers and a student of {M}: your student's layers begin as {found}; "
        f"expected {trace.choice}."
    )
    for key, (numbers, message) in known_choices(N, M).items():
        if found == numbers:
            raise Mistake(key, f"{message}\n{said}")
    raise Mistake("", said)


def _origins(block: State, source: Sequence[State]) -> list[int | None]:
    """For each tensor of the block the teacher's layer that holds the same, None if none does."""
    return [
        next((i for i, of in enumerate(source) if torch.equal(of[name], mine)), None)
        for name, mine in block.items()
    ]


def _expect_parts(names: list[str], origins: Sequence[Sequence[int | None]]) -> None:
    """A block takes all its numbers from one layer or none; name what stayed behind."""
    behind = {
        name
        for found in origins
        if any(layer is not None for layer in found)
        for name, layer in zip(names, found, strict=True)
        if layer is None
    }
    if not behind:
        return
    norms = {name for name in names if "norm" in name}
    biases = {name for name in names if name.endswith("bias")}
    known = {
        "LayerNorms not copied": (norms, "the two LayerNorms"),
        "biases not copied": (biases - norms, "the biases of the linear layers"),
        "all biases not copied": (biases, "all biases"),
        "only linear weights copied": (biases | norms, "biases and LayerNorms"),
        "feed-forward not copied": (
            {name for name in names if name.startswith("feed_forward.")}, "the feed-forward part",
        ),
        "attention not copied": (
            {name for name in names if name.startswith("attention.")}, "attention",
        ),
    }  # fmt: skip
    some = ", ".join(sorted(behind)[:3]) + (", …" if len(behind) > 3 else "")
    key, what = next(
        ((key, what) for key, (which, what) in known.items() if behind == which),
        ("parts not copied", some),
    )
    raise Mistake(
        key,
        f"Of the layers, {what} did not become the teacher's. A layer is attention, feed-forward "
        "and two LayerNorms, weights and biases: block.load_state_dict(...) copies all of them.",
    )


def _expect_own(trace: Trace) -> None:
    """The student's numbers lie in memory of its own."""
    kept = _storages(trace.teacher)
    layers = any(_storages(block) & kept for block in _blocks(trace.student))
    if layers or _storages(trace.student.embeddings) & kept:
        which = "layers" if layers else "embeddings"
        raise Mistake(
            "shared with the teacher" if layers else "embeddings shared with the teacher",
            f"The numbers are right, but student and teacher share the {which}: they are the same "
            "tensors in memory. Training the student then changes the teacher, whose answers it is "
            "to learn. Copy the numbers: load_state_dict, copy_ or a deepcopy.",
        )


def _expect_teacher(trace: Trace) -> None:
    """Copied the wrong way, the student has nothing new and the teacher has."""
    if not _same(dict(trace.teacher.state_dict()), trace.right):
        raise Mistake(
            "the teacher changed",
            "The teacher's numbers changed. It is the student that receives: "
            "student_block.load_state_dict(teacher_block.state_dict()).",
        )


def _ask(teacher_layers: int, student_layers: int) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        trace = _run(answer, draw, (teacher_layers, student_layers))
        _expect_teacher(trace)
        _expect_layers(trace)

    return ask


def _ask_embeddings(answer: Answer, draw: Draw) -> None:
    _expect_embeddings(_run(answer, draw, (4, 2)))


def _ask_own(answer: Answer, draw: Draw) -> None:
    _expect_own(_run(answer, draw, (5, 3)))


def _ask_frozen(answer: Answer, draw: Draw) -> None:
    trace = _run(answer, draw, (4, 2), frozen=True)
    still = [name for name, p in trace.student.named_parameters() if not p.requires_grad]
    if still:
        raise Mistake(
            "frozen like the teacher",
            f"The teacher's weights were frozen, and {still[0]} of the student is frozen now too: "
            "a deepcopy of a frozen layer is frozen. Copy the numbers into the student's own "
            "layers, or call requires_grad_(True).",
        )


BEGIN = Exercise(
    id="06.4",
    title="Begin as your teacher",
    purpose="what a student has before it learns anything",
    difficulty=2,
    minutes=15,
    signature="my_begin(student, teacher)",
    statement=(
        "Both are encoders of the same width; the student has fewer layers. `.embeddings` and each "
        "of `.stack.blocks` are modules with `.state_dict()` and `.load_state_dict(...)`. Make the "
        "student begin as its teacher: the teacher's embeddings, whole, and in each layer a whole "
        "layer of the teacher. The first layer begins as the teacher's first, the last as its "
        "last, those between evenly, rounded to the nearest: 12 and 6 layers give 0, 2, 4, 7, 9, "
        "11, as in the script that DistilBERT's authors released. Return the student. Training it "
        "must not change the teacher."
    ),
    hints=(
        "First the numbers of the layers. From 0 to N − 1 in M steps: i · (N − 1) / (M − 1), "
        "rounded, for i from 0 to M − 1.",
        "mine.load_state_dict(theirs.state_dict()) copies all numbers of a module into another of "
        "the same shape, LayerNorms and biases included.",
        "Assigning a block (student.stack.blocks[i] = teacher.stack.blocks[j]) copies nothing: "
        "both models then own the same tensors.",
        "Do the embeddings in one line, the layers in a loop over enumerate(student.stack.blocks).",
    ),
    solution=begin,
    library=(
        "course_lib.family.distilbert:spread_layers",
        "course_lib.family.distilbert:initialise_from",
        "course_lib.family.distilbert:_copy",
    ),
    when_raised=(
        (
            "Missing key|Unexpected key",
            "The two encoders do not have the same layers, so their state_dicts do not fit. Copy "
            "the embeddings and each block by themselves.",
        ),
        (
            "leaf (V|v)ariable",
            "Weights cannot be written to while gradients are recorded. Use load_state_dict, or "
            "copy under `with torch.no_grad():`.",
        ),
        (
            "index .* out of range|list index out of range",
            "The teacher's layers are counted from 0: the last of N is N − 1.",
        ),
    ),
    stages=(
        Check("two of four layers", _ask(4, 2)),
        Check("four of nine layers", _ask(9, 4)),
        Check("six of twelve, as released", _ask(12, 6)),
        Check("the embeddings", _ask_embeddings),
        Check("the student's numbers are its own", _ask_own),
        Check("a frozen teacher, a student that learns", _ask_frozen),
    ),
)
