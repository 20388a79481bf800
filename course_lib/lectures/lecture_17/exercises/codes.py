"""Exercise 17.6: short codes for long vectors. N documents, H hidden."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def codes_and_scores(vectors: Tensor, query: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """int8 codes (N, H) and what they score (N,); sign codes (N, H) and what they score (N,)."""
    scale = vectors.abs().amax(dim=0) / 127  # (H,)
    codes = (vectors / scale.clamp(min=1e-12)).round().to(torch.int8)
    scores = codes.double() @ (scale * query)
    signs = (vectors > 0).to(torch.int8)
    agreeing = (signs == (query > 0)).sum(dim=1)
    return codes, scores, signs, 2 * agreeing - len(query)


# ---------------------------------------------------------------- cases


def case(draw: Draw, documents: int, hidden: int) -> Case:
    """Dimensions of very different size; in each the largest number is a negative one."""
    size = 10.0 ** draw.ids(-1, 1, hidden)
    vectors = draw.normal(documents, hidden)
    vectors[draw.integer(0, documents - 1)] = -3 - draw.normal(hidden).abs()
    return vectors * size, draw.normal(hidden)


def by_hand(draw: Draw) -> list[Case]:
    vectors = torch.tensor([[1.27, -25.4], [0.6, 10]], dtype=torch.float64)
    return [(vectors, torch.tensor([2.0, -1]).double()), case(draw, 3, 2)]


def with_zeros(draw: Draw, documents: int, hidden: int) -> Case:
    """Numbers that are 0, in the query as well, and a dimension that is 0 everywhere."""
    vectors, query = case(draw, documents, hidden)
    vectors[0, : hidden // 2], vectors[:, 1], query[:2] = 0, 0, 0
    return vectors, query


SCALE, ROUNDED = "vectors.abs().amax(dim=0) / 127", ".round().to(torch.int8)"
CODES = "(vectors / scale.clamp(min=1e-12))"
SCORES, SIGNS = "codes.double() @ (scale * query)", "(vectors > 0).to(torch.int8)"
AGREEING, OTHER_SCORES = "(signs == (query > 0)).sum(dim=1)", "2 * agreeing - len(query)"

CODED = Exercise(
    **written("17.6"),
    solution=codes_and_scores,
    returns=(Numbers("int8 codes", shape="N H", kind="int"), Numbers("int8 scores", shape="N"),
             Numbers("sign codes", shape="N H", kind="int"),
             Numbers("sign scores", shape="N", kind="int")),
    see="course_lib.train.searching.QuantisedIndex packs eight signs into a byte, and can score "
    "its best candidates again by the vectors themselves",
    infinite="Your result is not finite: a dimension that is 0 in every document has scale 0, and "
    "0/0 is nan. Its codes are 0.",
    stages=(
        Stage("two documents, on paper", by_hand),
        Stage("int8 codes", each(case, (5, 3), (6, 4), (4, 8)), only=("int8 codes",)),
        Stage("int8 scores", each(case, (5, 3), (7, 6)), only=("int8 codes", "int8 scores")),
        Stage("signs as well", each(case, (5, 3), (6, 4), (4, 9))),
        Stage("numbers that are 0", each(with_zeros, (4, 5), (6, 8))),
    ),
    mistakes=(
        Edit(SCALE, "(vectors.abs().amax() / 127).expand(vectors.shape[1])", "You use one scale "
             "for all dimensions. A dimension of small numbers is then rounded to almost nothing: "
             "each has its own scale."),
        Edit(SCALE, "vectors.amax(dim=0).abs() / 127", "Your scale comes from the largest number. "
             "The number with the largest *absolute* value may be negative, and its code would not "
             "fit into int8."),
        Edit(SCALE, "vectors.abs().mean(dim=0) / 127", "Your scale comes from the mean absolute "
             "value, so larger values do not fit into int8. Take the largest absolute value."),
        Edit(SCALE, "vectors.abs().amax(dim=0) / 100", "Your largest code is 100. It must be 127, "
             "the largest that int8 has with both signs."),
        Edit(SCALE, "vectors.abs().amax(dim=0) / 128", "Your largest code is 128. An int8 ends at "
             "127; 128 becomes −128."),
        Edit(ROUNDED, ".trunc().to(torch.int8)", "You drop the decimals, as .to(torch.int8) does "
             "by itself. Round first: 12.9 becomes 13."),
        Edit(ROUNDED, ".floor().to(torch.int8)", "You round down. Round to the nearest."),
        Edit(SCORES, "vectors @ query", "These are the exact scores. The index has only its "
             "codes: use codes · scale instead of the vectors."),
        Edit(SCORES, "codes.double() @ query", "The scale is missing from your scores: a step in "
             "one dimension is worth more than one in another."),
        Edit(SCORES, "codes.double() @ (query / scale.clamp(min=1e-12))", "You divide by the "
             "scale. Multiply: a code times its scale is about the original number."),
        Edit(SCORES, "codes.double() @ (query * scale.clamp(min=1e-12) / scale.clamp(min=1e-12)"
             ".max())", "Your scales are relative to the largest, so the scores do not estimate "
             "the dot product."),
        Edit(SIGNS, "(vectors >= 0).to(torch.int8)", "A 0 has code 1 in your answer. Only numbers "
             "above 0 have code 1."),
        Edit(SIGNS, "vectors.sign().to(torch.int8)", "Your codes are −1, 0 and 1. One bit has only "
             "two values: 1 above 0, and 0 for all else."),
        Edit(SIGNS, "(vectors > vectors.mean(dim=0)).to(torch.int8)", "You compare with the mean "
             "of each dimension. Compare with 0."),
        Edit(OTHER_SCORES, "agreeing", "You count the signs that agree. Subtract those that "
             "differ, which gives the dot product of vectors of +1 and −1."),
        Edit(OTHER_SCORES, "len(query) - agreeing", "You count the signs that *differ*, the "
             "Hamming distance, which is smallest for the best document. A score must be largest."),
        Edit(AGREEING, "((signs == 1) & (query > 0)).sum(dim=1)", "You count where both are above "
             "0. Two numbers that are not above 0 agree as well."),
        Edit(OTHER_SCORES, "((2 * signs - 1).double() @ query).round().long()", "You multiply the "
             "signs by the query's own numbers. Code the query by its signs, too."),
    ),
)  # fmt: skip
