"""DistilBERT: BERT with half the layers, no segments and no pooler (Sanh et al. 2019, section 2).

It is initialised from every other layer of its teacher, and learns from the teacher's answers; how,
is in objectives/distillation.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Encoder, pooler_for
from course_lib.heads import BertForMaskedLM

RELEASED_LAYERS = (0, 2, 4, 7, 9, 11)  # of the teacher's twelve, counted from 0; official script


@dataclass(frozen=True)
class DistilBertConfig(BertConfig):
    """The shape of a DistilBERT; defaults are distilbert-base-uncased."""

    num_layers: int = 6
    type_vocab_size: int = 0  # no segments

    pooler: ClassVar[str] = "relu"


def distilbert_encoder(config: DistilBertConfig, pooler: bool = False) -> Encoder:
    """BERT's encoder; a pooler only if a comparison needs one."""
    return Encoder(config, pooler=pooler_for(config) if pooler else None)


def distilbert(size: str = "base", **changes: Any) -> Encoder:
    """A DistilBERT encoder, randomly initialised; `changes` override settings of the published
    size."""
    return distilbert_encoder(published("distilbert", size, DistilBertConfig, **changes))


def distilbert_for_masked_lm(size: str = "base", **changes: Any) -> BertForMaskedLM:
    """The encoder and the masked-word head."""
    return BertForMaskedLM(distilbert(size, **changes))


def spread_layers(teacher_layers: int, student_layers: int) -> tuple[int, ...]:
    """Which of the teacher's layers, counted from 0, initialise the student's: first and last, and
    between them evenly. 12 and 6 give RELEASED_LAYERS."""
    check_depths(teacher_layers, student_layers)
    if student_layers == 1:
        return (teacher_layers - 1,)
    last = teacher_layers - 1
    return tuple(round(layer * last / (student_layers - 1)) for layer in range(student_layers))


def every_other_layer(teacher_layers: int, student_layers: int) -> tuple[int, ...]:
    """The paper's wording, "one layer out of two", for any step: 12 and 6 give 0, 2, 4, 6, 8,
    10."""
    check_depths(teacher_layers, student_layers)
    step = teacher_layers // student_layers
    return tuple(range(0, step * student_layers, step))


@torch.no_grad()
def initialise_from(
    student: BertForMaskedLM, teacher: BertForMaskedLM, layers: Sequence[int] | None = None
) -> BertForMaskedLM:
    """The student, with the teacher's embeddings, head and layers `layers` copied into it.

    layers: for each layer of the student one of the teacher, from 0; `spread_layers` if None. The
    teacher's segment table has no use in a student without segments: as every text is then
    segment A, that row is added to each position, so the sum is the teacher's.
    Raises ValueError when widths or vocabularies differ, or layers do not fit."""
    ours, theirs = student.encoder, teacher.encoder
    _check_shapes(ours.config, theirs.config)
    depth, full = ours.config.num_layers, theirs.config.num_layers
    layers = spread_layers(full, depth) if layers is None else tuple(layers)
    if len(layers) != depth or not all(0 <= layer < full for layer in layers):
        raise ValueError(
            f"layers={list(layers)} was given for a student of {depth} layers and a teacher of "
            f"{full}; expected {depth} numbers from 0 to {full - 1}."
        )
    for name in ("token", "position", "norm"):
        _copy(getattr(ours.embeddings, name), getattr(theirs.embeddings, name))
    if theirs.embeddings.segment is not None:  # then the student has none, or one of its shape
        if ours.embeddings.segment is None:
            ours.embeddings.position.weight += theirs.embeddings.segment.weight[0]  # type: ignore
        else:
            _copy(ours.embeddings.segment, theirs.embeddings.segment)  # type: ignore[arg-type]
    for block, layer in zip(ours.stack.blocks, layers, strict=True):  # type: ignore[arg-type]
        _copy(block, theirs.stack.blocks[layer])  # type: ignore[index, arg-type]
    _copy(student.mlm, teacher.mlm)
    return student


def check_depths(teacher_layers: int, student_layers: int) -> None:
    """Raise ValueError unless the student has 1 to `teacher_layers` layers."""
    if not 1 <= student_layers <= teacher_layers:
        raise ValueError(
            f"student_layers={student_layers!r} was given for a teacher of {teacher_layers}; "
            f"expected 1 to {teacher_layers}."
        )


def _copy(into: nn.Module, source: nn.Module) -> None:
    into.load_state_dict(source.state_dict())


def _check_shapes(ours: BertConfig, theirs: BertConfig) -> None:
    same = ("vocab_size", "hidden_size", "num_heads", "intermediate_size", "max_positions")
    for name in same:
        if getattr(ours, name) != getattr(theirs, name):
            raise ValueError(
                f"a student with {name}={getattr(ours, name)} and a teacher with "
                f"{getattr(theirs, name)} were given; expected the same: layers are copied whole. "
                "A student of another width starts from random initialisation."
            )
    if ours.type_vocab_size not in (0, theirs.type_vocab_size):
        raise ValueError(
            f"a student with type_vocab_size={ours.type_vocab_size} and a teacher with "
            f"{theirs.type_vocab_size} were given; expected the same, or 0 for a student without "
            "segments."
        )
