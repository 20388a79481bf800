"""Exercise 09.6: where a token meets its entity. T tokens, H hidden, K entities, E size of their
vectors, F between the two."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def fusion(
    words: Tensor, entity_ids: Tensor, entities: Tensor, text_in: Tensor, entity_in: Tensor,
    bias: Tensor, text_out: Tensor, entity_out: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Both streams behind one hidden vector, (T, H) and (T, E) (Zhang et al. 2019, equations 3
    and 4, with the residuals of the released program)."""
    there = (entity_ids >= 0)[:, None]  # (T, 1)
    entity = entities[entity_ids] * there  # (T, E)
    hidden = F.gelu(words @ text_in + entity @ entity_in + bias)  # (T, F)
    return words + hidden @ text_out, (entity + hidden @ entity_out) * there


def case(draw: Draw, T: int, entity_ids: str) -> Case:
    """entity_ids: a letter a token, "." for no entity, else its number."""
    H, E, K, inner = 5, 3, 4, 6
    shapes = ((H, inner), (E, inner), (inner,), (inner, H), (inner, E))
    weights = [draw.normal(*shape) for shape in shapes]
    ids = torch.tensor([-1 if letter == "." else int(letter) for letter in entity_ids])
    return draw.normal(T, H), ids, draw.normal(K, E), *weights


THERE, LOOKED_UP = "(entity_ids >= 0)[:, None]", "entities[entity_ids] * there"
GELU, TEXT = "F.gelu(words @ text_in + entity @ entity_in + bias)", "words + hidden @ text_out"
SUM, ENTITY = (
    "words @ text_in + entity @ entity_in + bias",
    "(entity + hidden @ entity_out) * there",
)

FUSION = Exercise(
    **written("09.6"),
    solution=fusion,
    returns=(Numbers("tensor of words", shape="T H"), Numbers("tensor of entities", shape="T E")),
    see="course_lib.family.ernie_tsinghua.FusionBlock (with attention in each stream and "
        "LayerNorms)",
    when_raised=(
        (r"mat1 and mat2|size mismatch|inconsistent tensor", "Put weights on the right: words "
         "(T, H) @ text_in (H, F). Entities have width E and a matrix of their own."),
        (r"must match the size|expanded size", "Every token has a row, with zeros where there "
         "is no entity. To multiply rows, a mask of shape (T,) needs one more axis: [:, None]."),
        (r"dtypes match", "torch.zeros has the default dtype. words.new_zeros(…) has the dtype "
         "of the words, and so has a row multiplied by zero."),
        (r"boolean mask|indexed tensor|shape mismatch", "Tokens without an entity have a row of "
         "zeros. Start from torch.zeros(T, E), or multiply by zero where there is no entity."),
        (r"out of range|out of bounds", "−1 is not the number of an entity: such a token gets "
         "zeros instead of a vector."),
    ),
    stages=(
        Stage("every token has an entity", each(case, (1, "2"), (2, "31"), (3, "012"))),
        Stage("some have none", each(case, (3, ".1."), (4, "20.."), (6, ".33..0"), (3, "..."))),
    ),
    mistakes=(
        Edit(LOOKED_UP, "entities[entity_ids]", "Tokens without an entity get the last one: "
             "entities[−1] is the last row and raises no error. Put zeros there."),
        Edit(LOOKED_UP, "entities[entity_ids.clamp(min=0)]", "Tokens without an entity get "
             "entity 0 in the hidden vector. Put zeros there."),
        Edit(ENTITY, "entity + hidden @ entity_out", "Tokens without an entity have one in your "
             "second result. They have zeros before and after."),
        Edit(TEXT, "hidden @ text_out", "The words themselves are missing from the first result. "
             "The paper's equations have no residual; the released program adds it, and so does "
             "this exercise.", more=((ENTITY, "(hidden @ entity_out) * there"),)),
        Edit(TEXT, "hidden @ text_out ", "The words themselves are missing from the first result: "
             "it is words *plus* hidden @ text_out."),
        Edit(ENTITY, "(hidden @ entity_out) * there", "The entities themselves are missing from "
             "the second result: it is entity *plus* hidden @ entity_out."),
        Edit(GELU, SUM, "The GELU is missing: without it the two streams only add up."),
        Edit(GELU, f"F.relu({SUM})", "This is ReLU, which Baidu's ERNIE has. Tsinghua's has GELU."),
        Edit(GELU, f"torch.tanh({SUM})", "This is tanh. Use GELU."),
        Edit(GELU, f'F.gelu({SUM}, approximate="tanh")', "This is GELU's tanh approximation. "
             "Use the exact one, the default of F.gelu."),
        Edit(GELU, "F.gelu(words @ text_in + bias) + F.gelu(entity @ entity_in)", "Each stream "
             "goes through a GELU by itself. Add them first: only then does each stream change "
             "what the other passes on."),
        Edit(GELU, "F.gelu(words @ text_in) + F.gelu(entity @ entity_in) + bias", "Each stream "
             "goes through a GELU by itself, and the bias is added afterwards. Add all three "
             "first."),
        Edit(GELU, "F.gelu(words @ text_in + bias) + F.gelu(entity @ entity_in + bias)", "Each "
             "stream goes through a GELU by itself, with the bias in both. There is one sum, with "
             "one bias, and one GELU over it."),
        Edit(GELU, "F.gelu(words @ text_in + bias) + entity @ entity_in", "Your GELU covers "
             "only the words' part. Apply it to the whole sum."),
        Edit(GELU, "F.gelu(words @ text_in + entity @ entity_in) + bias", "The bias is added "
             "after the GELU. It belongs to the sum inside."),
        Edit(GELU, SUM, "You apply the GELU to the outputs. Apply it to the hidden vector, "
             "before `text_out` and `entity_out`.",
             more=((TEXT, "words + F.gelu(hidden @ text_out)"),
                   (ENTITY, "(entity + F.gelu(hidden @ entity_out)) * there"))),
        Edit(GELU, f"F.silu({SUM})", "This is SiLU, x · sigmoid(x). Use GELU."),
        Edit(GELU, f"torch.sigmoid({SUM})", "This is the sigmoid. Use GELU."),
        Edit(ENTITY, "(entity + F.gelu((words + hidden @ text_out) @ text_in + entity @ entity_in "
             "+ bias) @ entity_out) * there", "Your second result is made with the *new* words. "
             "Both results come from the same hidden vector, made from the old words."),
        Edit(ENTITY, "entities[entity_ids] + (hidden @ entity_out) * there", "Tokens without an "
             "entity have the last one in your second result: entities[−1] is added again. "
             "Their result is zeros."),
        Edit(SUM, "words @ text_in + (entity @ entity_in + bias) * there", "The bias is left "
             "out where there is no entity. It belongs to the sum, at every token."),
        Edit(SUM, "words @ text_in + entity @ entity_in + bias + bias * there", "The bias is "
             "added twice where there is an entity. The sum has one."),
        Edit(SUM, "(words @ text_in) * (entity @ entity_in) + bias", "Words and entities are "
             "multiplied. Add them."),
        Edit(TEXT, "words + (hidden @ text_out) * there", "Words without an entity are returned "
             "unchanged. They go through the same layer; only the entity's part of it is zero."),
        Edit(TEXT, "(words + hidden @ text_out) * there", "Words without an entity are set to "
             "zero. Only the entity's stream is zero there."),
        Edit(ENTITY, "(entity + (words @ text_in + bias) @ entity_out) * there", "Your second "
             "result is made from the words alone. Make it from the hidden vector of both."),
        Edit(THERE, "(entity_ids > 0)[:, None]", "Entity 0 is treated as no entity. Only −1 "
             "means none."),
        Edit(THERE, "(entity_ids >= 0).any()", "If any token has an entity, all get one. Each "
             "token has its own."),
    ),
)  # fmt: skip
