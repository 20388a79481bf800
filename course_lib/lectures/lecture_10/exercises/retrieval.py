"""Exercise 10.3: find the translation. N sentences of T and U positions, H wide."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def mean_vectors(states: Tensor, ids: Tensor) -> Tensor:
    """The mean of the states at words: (N, T, H) and (N, T) -> (N, H)."""
    mask = (ids > 4)[..., None].to(states.dtype)
    return (states * mask).sum(dim=1) / mask.sum(dim=1)


def retrieval(
    first: Tensor, first_ids: Tensor, second: Tensor, second_ids: Tensor
) -> tuple[float, float]:
    """Accuracy of the nearest neighbour by cosine, in both directions (Pires et al. 2019)."""
    a, b = mean_vectors(first, first_ids), mean_vectors(second, second_ids)
    near = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T
    own = torch.arange(len(near))
    forward, backward = near.argmax(dim=1) == own, near.argmax(dim=0) == own
    return float(forward.double().mean()), float(backward.double().mean())


# ---------------------------------------------------------------- cases


def side(draw: Draw, meaning: Tensor, noise: float, length: int, pad: bool, ends: bool) -> Case:
    """States that mean this, with their ids, few of which are different words. pad: sentences are
    of unequal length; ends: [CLS], [SEP] and one more special token, [UNK] or [MASK], whose states
    mean something else."""
    n, h = meaning.shape
    states = meaning[:, None] + noise * draw.normal(n, length, h)
    ids = draw.ids(5, 10, n, length)
    used = torch.tensor([draw.integer(2 + 2 * ends, length) if pad else length for _ in range(n)])
    where = torch.arange(length).expand(n, length)
    if ends:
        rare = 1 + 3 * draw.ids(0, 1, n)
        for place, special in ((0, 2), (1, rare), (used - 1, 3)):
            ids[torch.arange(n), place] = special
            states[torch.arange(n), place] = 8 * draw.normal(n, h)
    padding = where >= used[:, None]
    ids[padding] = 0
    states[padding] = 4 * draw.normal(int(padding.sum()), h)
    return states, ids


def case(draw: Draw, n: int, pad: bool = False, ends: bool = False, large: bool = False) -> Case:
    """large: sentences whose vectors are much longer than others', as long texts' may be. Drawn
    again until the two directions differ."""
    meaning = draw.normal(n, 6)
    sides = [side(draw, meaning, 1.5, length, pad, ends) for length in (5, 7)]
    if large:
        for states, _ in sides:
            states *= 10 ** draw.normal(n, 1, 1).clamp(-1, 1)
    (first, first_ids), (second, second_ids) = sides
    inputs = first, first_ids, second, second_ids
    forward, backward = retrieval(*inputs)
    return inputs if forward != backward else case(draw, n, pad, ends, large)


WORDS, MEAN = "(ids > 4)", "(states * mask).sum(dim=1) / mask.sum(dim=1)"
NEAR = "F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T"
HITS = "near.argmax(dim=1) == own, near.argmax(dim=0) == own"

RETRIEVAL = Exercise(
    **written("10.3"),
    solution=retrieval,
    helpers=(mean_vectors,),
    returns=(Number("accuracy forward"), Number("accuracy backward")),
    library=("course_lib.train.retrieval:retrieval",),
    see="course_lib.train.retrieval.sentence_vectors (of every layer)",
    when_raised=(
        (r"must match the size|size of tensor", "To multiply states (N, T, H), a mask (N, T) "
         "needs a last axis: mask[..., None]. The two languages differ in length, T and U."),
        (r"can only be computed|Input dtype|mean\(\)", "A comparison gives True and False: "
         "apply .double() before the mean."),
        (r"same dtype|expected m1 and m2|Float but found Double|Double but found Float", "The "
         "states are float64: convert the mask, too, with .double()."),
        (r"at least two|1D tensors|matrix multiplication|shapes cannot be multiplied",
         "All cosines at once: (N, H) @ (H, N)."),
    ),
    stages=(
        Stage("words only, all sentences of one length", each(case, (12,), (16,), (20,))),
        Stage("vectors of very different length",
              each(case, (14, False, False, True), (18, False, False, True),
                   (20, False, False, True))),
        Stage("special tokens", each(case, (16, False, True), (20, False, True),
                                      (18, False, True, True))),
        Stage("padding", each(case, (16, True), (20, True), (18, True, False, True))),
        Stage("all of it", each(case, (18, True, True), (24, True, True, True),
                                (20, True, True))),
    ),
    mistakes=(
        Edit(WORDS, "(ids >= 0)", "Padding and special tokens are counted in your means. A "
             "sentence's vector then encodes its length; count words only."),
        Edit(WORDS, "(ids != 0)", "Special tokens are counted in your means: of the ids 0 to 4 "
             "you leave out 0 alone. Count words only."),
        Edit(WORDS, "(ids > 3)", "The special token with id 4 is counted in your means. Words have "
             "the ids from 5 on."),
        Edit(WORDS, "((ids != 0) & (ids != 2) & (ids != 3))", "The special tokens with the ids 1 "
             "and 4 are counted in your means. Words have the ids from 5 on."),
        Edit(WORDS, "(ids > 5)", "The word with id 5 is left out. Special are the ids 0 to 4."),
        Edit(WORDS, "((ids > 4) | (ids == 0))", "Padding is counted in your means. A short "
             "sentence's vector is then mostly padding."),
        Edit(WORDS, "(ids > 4).roll(1, 1)", "Your mask is shifted by one position."),
        Edit(MEAN, "states[:, 0]", "This is the vector at the first position. [CLS] was not "
             "trained to represent a sentence here. Use the mean over words."),
        Edit(MEAN, "(states * mask).amax(dim=1)", "You take the largest value over the words. "
             "Take their mean."),
        Edit(MEAN, "(states * mask)[:, -1]", "This is the vector at the last position. Use the "
             "mean over words."),
        Edit(NEAR, "a @ b.T", "These are dot products: the sentence with the longest vector is "
             "nearest to many. Divide each vector by its length, then they are cosines."),
        Edit(NEAR, "-torch.cdist(a, b)", "You use the Euclidean distance. Use the largest "
             "cosine, which ignores the length of vectors."),
        Edit(NEAR, "F.normalize(a, dim=0) @ F.normalize(b, dim=0).T", "The columns are divided by "
             "their length. Divide each sentence's vector by its own: the last axis."),
        Edit(NEAR, "F.normalize(a, dim=-1) @ b.T", "Only the first language's vectors are "
             "divided by their length."),
        Edit(NEAR, "a @ F.normalize(b, dim=-1).T", "Only the second language's vectors are "
             "divided by their length."),
        Edit(NEAR, "F.normalize(a - a.mean(dim=0), dim=-1) @ F.normalize(b - b.mean(dim=0), "
             "dim=-1).T", "You subtract each language's mean first. That is exercise 10.4; here "
             "the vectors are not centred."),
        Edit(HITS, "near.argmax(dim=1) == own, near.argmax(dim=1) == own", "You return the same "
             "direction twice. Backward goes down the columns: which first sentence is nearest "
             "to each second one?"),
        Edit(HITS, "near.argmax(dim=0) == own, near.argmax(dim=0) == own", "You return the same "
             "direction twice. Forward goes along the rows: which second sentence is nearest to "
             "each first one?"),
        Edit(HITS, "near.topk(2, dim=1).indices.eq(own[:, None]).any(1), "
             "near.topk(2, dim=0).indices.eq(own).any(0)", "You count a translation that is "
             "among the two nearest. Count only the nearest."),
        Edit("float(forward.double().mean())", "float((forward & backward).double().mean())",
             "You count a pair only if both directions find it. Each direction has its own "
             "number.", more=(("float(backward.double().mean())",
             "float((forward & backward).double().mean())"),)),
        Edit("float(forward.double().mean())", "float(near.diagonal().mean())", "This is the mean "
             "cosine of sentence and translation. It can be near 1 while nothing is found: all "
             "sentences may be alike.", more=(("float(backward.double().mean())",
             "float(near.diagonal().mean())"),)),
    ),
)  # fmt: skip
