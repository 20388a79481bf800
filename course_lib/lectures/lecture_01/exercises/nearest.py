"""Exercise 01.2: the nearest words by cosine. V words, D numbers a word."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Items


def neighbours(vectors: Tensor, word: int, k: int) -> list[int]:
    """Numbers of the k words with the greatest cosine, itself left out: (V, D) -> k numbers."""
    rows = F.normalize(vectors, dim=1)
    cosines = rows @ rows[word]  # (V,)
    cosines[word] = -torch.inf
    return cosines.topk(min(k, len(vectors) - 1)).indices.tolist()


# ---------------------------------------------------------------- cases


def case(draw: Draw, V: int, D: int, k: int, lengths: float = 0.0) -> Case:
    """lengths: how unequally long the vectors are; 0 for all of length one."""
    vectors = F.normalize(draw.normal(V, D), dim=1)
    return vectors * (lengths * draw.normal(V, 1)).exp(), draw.integer(0, V - 1), k


def twin(draw: Draw, V: int, D: int, k: int) -> Case:
    """Another word, with a smaller number, points in exactly the same direction."""
    vectors, _, k = case(draw, V, D, k, 1.0)
    word, other = draw.integer(V // 2, V - 1), draw.integer(0, V // 2 - 1)
    vectors[other] = vectors[word] * 2.0 ** draw.integer(-2, 2)
    return vectors, word, k


ROWS, COSINES = "F.normalize(vectors, dim=1)", "rows @ rows[word]"
SELF = "cosines[word] = -torch.inf"
RETURNED = "cosines.topk(min(k, len(vectors) - 1)).indices.tolist()"
BUT_THE_FIRST = "cosines.sort(descending=True, stable=True).indices[1 : k + 1].tolist()"
BY_NUMBER = "Leave the word out by its number: cosines[word] = -torch.inf."

NEAREST = Exercise(
    **written("01.2"),
    solution=neighbours,
    returns=Items("list", of="word numbers"),
    library=("course_lib.text.static_vectors:StaticVectors.neighbours",),
    when_raised=(
        (r"selected index k out of range|k not in range|out of range for tensor",
         "topk cannot give more than there is: ask for min(k, V − 1)."),
        (r"1D tensors expected|shape|size mismatch|vec",
         "(V, D) @ (D,) gives the V dot products: rows @ rows[word], or F.cosine_similarity("
         "vectors, vectors[word][None], dim=1)."),
    ),
    stages=(
        Stage("vectors of length one", each(case, (4, 2, 1), (6, 3, 2), (9, 4, 4))),
        Stage("vectors of many lengths",
              each(case, (5, 2, 2, 1.2), (9, 3, 4, 1.2), (14, 5, 6, 1.2), (20, 4, 5, 1.2))),
        Stage("another word points in the same direction",
              each(twin, (6, 3, 1), (7, 3, 2), (12, 4, 5), (9, 3, 3))),
        Stage("fewer words than asked for", each(case, (4, 3, 4, 1.0), (5, 3, 9, 1.0))),
    ),
    mistakes=(
        Edit(SELF, "", "The word itself is in your list: its cosine with itself is 1. "
             f"{BY_NUMBER}"),
        Edit(SELF, "cosines[word] = 0", "The word's own cosine is 0 in your answer: that is still "
             "more than that of a word that points the other way. Use −2, below all cosines, or "
             "minus infinity: cosines[word] = -torch.inf."),
        Edit(ROWS, "vectors", "These are the greatest dot products: long vectors win, whichever "
             "way they point. Divide each row by its length first."),
        Edit(COSINES, "-(vectors - vectors[word]).norm(dim=1)", "These are the smallest distances. "
             "For vectors of length one the order is the same; for others, their lengths "
             "count. The cosine divides the lengths out."),
        Edit(COSINES, "-(vectors - vectors[word]).abs().sum(1)", "These are the smallest sums of "
             "absolute differences; expected the greatest cosines."),
        Edit(ROWS, "F.normalize(vectors, dim=0)", "You divide by the lengths of the columns. A "
             "word's vector is a row: dim=1."),
        Edit(ROWS, "F.normalize(vectors - vectors.mean(1, keepdim=True), dim=1)", "Each vector's "
             "mean is subtracted first: that is a correlation. The cosine takes the vectors as "
             "they are."),
        Edit(ROWS, "F.normalize(vectors - vectors.mean(0), dim=1)", "The mean of all vectors is "
             "subtracted first. That has its uses, but the cosine takes the vectors as they are."),
        Edit(ROWS, "F.normalize(vectors, dim=1, p=1)", "Each row is divided by the sum of its "
             "absolute values. Its length is the root of the sum of squares."),
        Edit(ROWS, "F.normalize(vectors, dim=1) ** 2", "The numbers are squared, so that their "
             "signs are lost. The length is divided out, nothing else."),
        Edit(ROWS, "vectors / vectors.pow(2).sum(1, keepdim=True)", "You divide by the squared "
             "length. The length is its square root."),
        Edit(COSINES, "(rows @ rows[word]).abs()", "Cosines have lost their sign: a vector that "
             "points the opposite way counts as near."),
        Edit(COSINES, "-(rows @ rows[word])", "These are the words farthest away, with "
             "the smallest cosines."),
        Edit(RETURNED, "cosines.topk(min(k, len(vectors) - 1)).indices.tolist()[::-1]",
             "The words are right, but the nearest comes last. Put it first."),
        Edit(RETURNED, "sorted(cosines.topk(min(k, len(vectors) - 1)).indices.tolist())",
             "The words are right, but sorted by their numbers. Put the nearest first."),
        Edit(SELF, "cosines[cosines > 1 - 1e-9] = -torch.inf", "A word that points in the same "
             f"direction is left out too, because its cosine is 1 as well. {BY_NUMBER}"),
        Edit(SELF, "", "The first of the sorted words is thrown away, as if that were always the "
             "word itself. Another one that points in the same direction may come first. "
             f"{BY_NUMBER}", more=((RETURNED, BUT_THE_FIRST),)),
        Edit(SELF, "", "The greatest dot product is thrown away, as if it were always that of the "
             "word with itself. With dot products long vectors win: divide each row by its length "
             "first.", more=((RETURNED, BUT_THE_FIRST), (ROWS, "vectors"))),
        Edit(SELF, "", "One is missing: you took k and left the word itself out afterwards. Leave "
             "it out first.", more=((RETURNED, "[i for i in cosines.topk(min(k, len(vectors)))"
                                    ".indices.tolist() if i != word]"),)),
        Edit(RETURNED, "cosines.topk(min(k, len(vectors))).indices.tolist()", "Where k is as large "
             "as V or larger, the word itself comes last in your list. At most V − 1 others "
             "exist."),
        Edit(SELF, "cosines = torch.cat([cosines[:word], cosines[word + 1:]])", "After the word, "
             "your numbers are one too small: its row was cut out, and the rows behind it moved "
             f"up. {BY_NUMBER}"),
        Edit(RETURNED, "cosines.topk(min(k - 1, len(vectors) - 1)).indices.tolist()",
             "One is missing: k words are asked for, not counting the word itself."),
    ),
)  # fmt: skip
