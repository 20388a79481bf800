"""Exercise 06.4: a student that is initialised from a part of its teacher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.teaching.exercises.form import Answer, Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Exact, Items, Wrong


def begin(student: Any, teacher: Any) -> Encoder:
    """The student, with the teacher's embeddings and evenly chosen layers copied into it."""
    blocks, source = student.stack.blocks, teacher.stack.blocks
    N, M = len(source), len(blocks)
    student.embeddings.load_state_dict(teacher.embeddings.state_dict())
    for i, block in enumerate(blocks):
        n = round(i * (N - 1) / (M - 1))  # from the first layer to the last
        block.load_state_dict(source[n].state_dict())
    return student


# ---------------------------------------------------------------- cases, and what is looked at


def encoder(draw: Draw, layers: int) -> Encoder:
    """An encoder in which no two numbers are the same, as after training."""
    config = BertConfig(
        vocab_size=11, hidden_size=4, num_layers=layers, num_heads=2, intermediate_size=6,
        max_positions=7,
    )  # fmt: skip
    made = Encoder(config)
    for p in made.parameters():
        p.data.normal_(generator=draw.torch)
    return made


def depths(N: int, M: int, frozen: bool = False) -> Callable[[Draw], list[Case]]:
    """A teacher of N layers and a student of M."""
    return lambda draw: [(encoder(draw, M), encoder(draw, N).requires_grad_(not frozen))]


def run(function: Answer, student: Encoder, teacher: Encoder) -> list[nn.Module]:
    """The student's layers after the answer; Wrong where it is another model, or the teacher
    changed."""
    before, M = numbers(teacher), len(list(student.stack.blocks))  # type: ignore[arg-type]
    result = function(student, teacher)
    if result is teacher:
        raise Wrong("Your function returned the teacher; expected the student.")
    if not isinstance(result, nn.Module):
        raise Wrong(f"Your function returned a {type(result).__name__}; expected the student.")
    if result is not student:
        raise Wrong("Your function returned a new model, not the student it was given. Copy into "
                    "that student and return it.")  # fmt: skip
    blocks: list[nn.Module] = list(student.stack.blocks)  # type: ignore[arg-type]
    if len(blocks) != M:
        raise Wrong(f"The student came with {M} layers and has {len(blocks)} now. Keep its blocks "
                    "and copy numbers into them.")  # fmt: skip
    if any(not torch.equal(x, before[name]) for name, x in teacher.state_dict().items()):
        raise Wrong("The teacher's weights changed. Copy into the student: "
                    "student_block.load_state_dict(teacher_block.state_dict()).")  # fmt: skip
    return blocks


def numbers(module: nn.Module) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in module.state_dict().items()}


def layers(function: Answer, student: Encoder, teacher: Encoder) -> Any:
    """For each layer the teacher's layer that it was copied from; the tensors that were not."""
    source = [numbers(block) for block in teacher.stack.blocks]  # type: ignore[union-attr]
    origins, behind = [], set()
    for block in run(function, student, teacher):
        sources = {name: [n for n, of in enumerate(source) if torch.equal(of[name], x)]
                 for name, x in block.state_dict().items()}  # fmt: skip
        copied = [n[0] for n in sources.values() if n]
        origins.append(max(set(copied), key=copied.count) if copied else None)
        behind |= {name for name, n in sources.items() if not n or n[0] != origins[-1]}
    return origins, sorted(behind)


def embeddings(function: Answer, student: Encoder, teacher: Encoder) -> list[str]:
    """The tensors of the embeddings that are not the teacher's."""
    run(function, student, teacher)
    right = numbers(teacher.embeddings)
    ours = student.embeddings.state_dict()
    return [n for n, x in right.items() if n not in ours or not torch.equal(ours[n], x)]


def shared(function: Answer, student: Encoder, teacher: Encoder) -> list[str]:
    """The parts whose tensors lie where the teacher's lie."""
    run(function, student, teacher)
    kept = {p.untyped_storage().data_ptr() for p in teacher.parameters()}
    parts = {"layers": student.stack, "embeddings": student.embeddings}
    return [name for name, part in parts.items()
            if any(p.untyped_storage().data_ptr() in kept for p in part.parameters())]  # fmt: skip


def frozen(function: Answer, student: Encoder, teacher: Encoder) -> list[str]:
    run(function, student, teacher)
    return sorted({n.split(".")[0] for n, p in student.named_parameters() if not p.requires_grad})


NUMBER, LAYER, EMBED = (
    "round(i * (N - 1) / (M - 1))", "block.load_state_dict(source[n].state_dict())",
    "student.embeddings.load_state_dict(teacher.embeddings.state_dict())",
)  # fmt: skip
LAYERS = (
    Items("teacher's layer that each of the student's is copied from", of="layer numbers"),
    Items("tensors of the layers that were not copied", of="names", ordered=False),
)


def some(module: str, keep: str) -> str:
    """Text that copies only the tensors whose name k fulfils a condition."""
    into, of = module.removesuffix(".state_dict())").split(".load_state_dict(")
    return (f"{into}.load_state_dict({{k: v for k, v in {of}.state_dict().items() if {keep}}}, "
            "strict=False)")  # fmt: skip


def part(keep: str, what: str) -> Edit:
    return Edit(LAYER, some(LAYER, keep), f"Of the layers you did not copy {what}. A layer is "
                "attention, feed-forward and two LayerNorms, weights and biases: "
                "block.load_state_dict(...) copies all of them.")  # fmt: skip


def table(name: str, what: str) -> Edit:
    return Edit(EMBED, some(EMBED, f"{name!r} not in k"), f"Of the embeddings you did not "
                f"copy {what}; copy all four parts.")  # fmt: skip


BEGIN = Exercise(
    **written("06.4"),
    solution=begin,
    returns=Exact("result", what="the student"),
    may_write=True,
    library=(
        "course_lib.family.distilbert:spread_layers",
        "course_lib.family.distilbert:initialise_from",
        "course_lib.family.distilbert:_copy",
    ),
    when_raised=(
        ("Missing key|Unexpected key", "The two encoders do not have the same layers, so their "
         "state_dicts do not fit. Copy the embeddings and each block by themselves."),
        ("leaf (V|v)ariable", "You cannot write to weights while gradients are recorded. Use "
         "load_state_dict, or copy under `with torch.no_grad():`."),
        ("index .* out of range|list index out of range",
         "The teacher's layers are counted from 0: the last of N is N − 1."),
    ),
    stages=(
        Stage("two of four layers", depths(4, 2), layers, LAYERS),
        Stage("four of nine layers", depths(9, 4), layers, LAYERS),
        Stage("six of twelve, as released", depths(12, 6), layers, LAYERS),
        Stage("the embeddings", depths(4, 2), embeddings,
              Items("tensors of the embeddings that are not the teacher's", ordered=False)),
        Stage("the student's numbers are its own", depths(5, 3), shared,
              Items("parts shared with the teacher", ordered=False)),
        Stage("a frozen teacher, a student that learns", depths(4, 2, frozen=True), frozen,
              Items("frozen parts of the student", ordered=False)),
    ),
    mistakes=(
        Edit(NUMBER, "i", "You copy the teacher's first layers, so the upper layers are lost. Take "
             "layers spread from bottom to top."),
        Edit(NUMBER, "i + N - M", "You copy the teacher's last layers. In the page's small "
             "experiment such a student is ahead after a few steps; but this exercise, like the "
             "released script, spreads the layers: the first gets the teacher's first."),
        Edit(NUMBER, "i * (N // M)", "You copy every second (third, …) layer from the first on: "
             "that is the paper's wording, and it leaves out the last layer. The released script "
             "and this exercise spread the choice so that it includes the last layer."),
        Edit(NUMBER, "i * (N // M) + N // M - 1", "You copy every second (third, …) layer, the "
             "last of each group, so the first layer is missing."),
        Edit(NUMBER, "round(i * N / M)", "Your steps have length N / M and miss the last layer; "
             "from the first to the last layer they have length (N − 1) / (M − 1)."),
        Edit(NUMBER, "int(i * (N - 1) / (M - 1))", "The first and last layer are correct, but you "
             "round the others down. Round to the nearest: 6.6 becomes 7."),
        Edit(NUMBER, "-int(-i * (N - 1) / (M - 1) // 1)", "The first and last layer are correct, "
             "but you round the others up. Round to the nearest: 2.2 becomes 2."),
        Edit(NUMBER, f"({NUMBER} + 1) % N", "Each layer is copied from the one after the correct "
             "layer: count layers from 0."),
        Edit(NUMBER, f"({NUMBER} - 1) % N", "Each layer is copied from the one before the correct "
             "layer: count layers from 0."),
        Edit(NUMBER, "round((M - 1 - i) * (N - 1) / (M - 1))",
             "You copy the correct layers in reverse order."),
        Edit(NUMBER, "0", "You copy the teacher's first layer into every layer."),
        Edit(LAYER, "pass", "The student's layers still have their random initialisation: nothing "
             "was copied."),
        part("'norm' not in k", "the two LayerNorms"),
        part("'norm' in k or 'bias' not in k", "the biases of the linear layers"),
        part("'bias' not in k", "all biases"),
        part("'norm' not in k and 'bias' not in k", "biases and LayerNorms"),
        part("not k.startswith('feed_forward.')", "the feed-forward part"),
        part("not k.startswith('attention.')", "attention"),
        Edit(EMBED, "pass", "The student's embeddings are not the teacher's. Copied layers expect "
             "the vectors from the teacher's embeddings: copy these too."),
        table("norm", "the LayerNorm"),
        table("token", "the token embeddings"),
        table("position", "the position embeddings"),
        table("segment", "the segment embeddings"),
        Edit(LAYER, "blocks[i] = source[n]", "The weights are correct, but student and teacher "
             "share the layers: they are the same tensors in memory. Training the student then "
             "changes the teacher, whose answers it should learn. Copy the weights with "
             "load_state_dict, copy_ or deepcopy."),
        Edit(EMBED, "student.embeddings = teacher.embeddings",
             "The weights are correct, but student and teacher share the embeddings: they are the "
             "same tensors in memory. Copy the weights with load_state_dict, copy_ or deepcopy."),
        Edit(LAYER, "blocks[i] = source[n]", "The weights are correct, but student and teacher "
             "share layers and embeddings: they are the same tensors in memory. Training the "
             "student then changes the teacher. Copy the weights with load_state_dict, copy_ or "
             "deepcopy.",
             more=((EMBED, "student.embeddings = teacher.embeddings"),)),
        Edit(LAYER, "blocks[i] = __import__('copy').deepcopy(source[n])",
             "The teacher's weights were frozen, and now layers of the student are frozen too: a "
             "deepcopy of a frozen layer is frozen. Copy the weights into the student's own "
             "layers, or call requires_grad_(True)."),
        Edit(EMBED, "student.embeddings = __import__('copy').deepcopy(teacher.embeddings)",
             "The teacher's weights were frozen, and now the student's embeddings are frozen too: "
             "a deepcopy of frozen embeddings is frozen. Call requires_grad_(True)."),
        Edit(LAYER, "blocks[i] = __import__('copy').deepcopy(source[n])",
             "The teacher's weights were frozen, and now the whole student is frozen too: a "
             "deepcopy of a frozen module is frozen. Call requires_grad_(True) on the "
             "student.", more=(
                 (EMBED, "student.embeddings = __import__('copy').deepcopy(teacher.embeddings)"),)),
    ),
)  # fmt: skip
