"""TinyBERT: a BERT of any smaller shape that learns its teacher's inner steps (Jiao et al. 2020).

The model is BERT's, narrower and shorter. New is what stands beside it in training: which layer
learns from which, and one matrix that widens the student's vectors to the teacher's. The matrix is
thrown away afterwards. The losses are in objectives/distillation.py.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from course_lib.config import BertConfig, check_choice, published
from course_lib.encoder import Encoder, Pooler, initialise
from course_lib.heads import BertForMaskedLM

MAPPINGS = ("uniform", "top", "bottom")


def tinybert_encoder(config: BertConfig, pooler: bool = True) -> Encoder:
    """BERT's encoder, at the configuration's shape."""
    return Encoder(config, pooler=Pooler(config) if pooler else None)


def tinybert(size: str = "4", *, pooler: bool = True, **changes: Any) -> Encoder:
    """A TinyBERT encoder, randomly initialised; `changes` override settings of the published
    size."""
    return tinybert_encoder(published("tinybert", size, **changes), pooler)


def tinybert_for_masked_lm(size: str = "4", **changes: Any) -> BertForMaskedLM:
    """The encoder, without pooler, and the masked-word head."""
    return BertForMaskedLM(tinybert(size, pooler=False, **changes))


def fit_matrix(student: BertConfig, teacher: BertConfig) -> nn.Linear:
    """W_h and W_e of equations 8 and 9 as in the released code: one matrix for all layers, with a
    bias; (…, H student) -> (…, H teacher). 4 layers of 312 under BERT-base: 240,384 numbers."""
    matrix = nn.Linear(student.hidden_size, teacher.hidden_size)
    initialise(matrix, student.initializer_range)
    return matrix


def layer_mapping(
    student_layers: int, teacher_layers: int, kind: str = "uniform"
) -> tuple[int, ...]:
    """g(1) … g(M): which layer of the teacher, counted from 1, each layer of the student learns
    from (section 3.1; g(0) = 0, the embeddings, is understood).

    uniform: g(m) = m·N/M; top: the last M layers; bottom: the first M. Raises ValueError for an
    unknown kind, and where a uniform mapping does not come out even.
    """
    M, N = student_layers, teacher_layers
    check_choice("kind", kind, MAPPINGS)
    if not 1 <= M <= N or (kind == "uniform" and N % M):
        needed = f"1 to {N} layers" + (", a divisor of it" if kind == "uniform" else "")
        raise ValueError(
            f"a student of {M} layers and a teacher of {N} were given for the {kind} mapping; "
            f"expected a student of {needed}."
        )
    step = N // M if kind == "uniform" else 1
    shift = N - M if kind == "top" else 0
    return tuple(layer * step + shift for layer in range(1, M + 1))
