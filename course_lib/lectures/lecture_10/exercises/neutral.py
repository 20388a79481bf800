"""Exercise 10.4: take each language's mean off. N sentences, H wide."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def neutral(vectors: Tensor, language: Tensor, known: Tensor) -> Tensor:
    """Each vector minus the mean of its language's known rows: (N, H) -> (N, H)."""
    new = vectors.clone()
    for one in language.unique():
        rows = language == one
        new[rows] = vectors[rows] - vectors[rows & known].mean(dim=0)
    return new


# ---------------------------------------------------------------- cases


def case(draw: Draw, n: int, languages: int, some: bool = False) -> Case:
    """Rows of several languages, mixed, each language somewhere else. some: not all rows are
    known, but one at least of each language, and at least one is not."""
    language_ids = draw.python.sample(range(9), languages)
    language = language_ids * 2 + draw.python.choices(language_ids, k=n - 2 * languages)
    draw.python.shuffle(language)
    rows = torch.tensor(language)
    centres = 3 * draw.normal(9, 4)
    known = torch.ones(n, dtype=torch.bool)
    if some:
        known = draw.normal(n) > 0
        for language_id in language_ids:
            own = (rows == language_id).nonzero()[:, 0]
            known[own[0]], known[own[-1]] = True, False
    return centres[rows] + draw.normal(n, 4), rows, known


MEAN = "vectors[rows & known].mean(dim=0)"
NEW = f"vectors[rows] - {MEAN}"
RETURN = "return new"

NEUTRAL = Exercise(
    **written("10.4"),
    solution=neutral,
    returns=Numbers("tensor of new vectors", shape="N H"),
    see="course_lib.train.retrieval.retrieval(…, centred=True), whose means are those of the "
        "sentences that are compared",
    when_raised=(
        (r"index|IndexError", "language == number marks rows with True and False; such a mask is "
         "put in brackets behind the tensor, vectors[mask]."),
        (r"bool|ambiguous", "A comparison of tensors has many answers: join masks with &, not "
         "with `and`."),
    ),
    stages=(
        Stage("one language, all rows known", each(case, (4, 1), (6, 1), (5, 1))),
        Stage("several languages, mixed", each(case, (8, 2), (10, 3), (9, 2))),
        Stage("some rows are for testing", each(case, (9, 2, True), (12, 3, True),
                                                (10, 2, True), (8, 1, True))),
    ),
    mistakes=(
        Edit(MEAN, "vectors[rows].mean(dim=0)", "Your means have seen the rows that are for "
             "testing. What is measured there is then measured with the answer in hand: take them "
             "over the known rows."),
        Edit(MEAN, "vectors[known].mean(dim=0)", "One mean is taken off all rows, whatever their "
             "language. That moves all of them together, and their distances stay."),
        Edit(MEAN, "vectors.mean(dim=0)", "The mean of all rows, of every language and for testing "
             "as well, is taken off. Each language has a mean of its own."),
        Edit(MEAN, "vectors[rows & ~known].mean(dim=0) if not known.all() else 0", "Your means "
             "are those of the rows for testing. Expected the known ones."),
        Edit(MEAN, "torch.stack([vectors[(language == x) & known].mean(0) for x in "
             "language.unique()]).mean(0)", "The mean of the languages' means is taken off every "
             "row. Each row loses the mean of its *own* language."),
        Edit(MEAN, "vectors[~rows & known].mean(dim=0) if (~rows).any() else 0", "The *other* "
             "languages' mean is taken off."),
        Edit(MEAN, "vectors[rows & known].mean()", "One number is taken off, the mean over rows "
             "*and* entries. The mean of vectors is a vector: mean(dim=0)."),
        Edit(MEAN, "vectors[rows].mean(dim=-1, keepdim=True)", "From each row the mean of its own "
             "entries is taken off, as LayerNorm does. Expected the mean vector of the language: "
             "mean(dim=0)."),
        Edit(MEAN, "(vectors * (rows & known)[:, None]).mean(dim=0)", "The known rows of the "
             "language are added up, and divided by the number of *all* rows, N. Divide by as many "
             "as were added."),
        Edit("language.unique()", "range(2)", "Your loop takes the languages to be 0 and 1. They "
             "may have any numbers, and be any number of languages: language.unique()."),
        Edit(MEAN, "vectors[rows & known].median(dim=0).values", "The median is taken off. "
             "Expected the mean."),
        Edit(RETURN, "return new[language.argsort(stable=True)]", "Your rows come language by "
             "language. Each vector stays in its row: write into new[rows]."),
        Edit(NEW, f"{MEAN} - vectors[rows]", "Turned round: mean minus vector. Cosines would not "
             "notice, distances to anything else would."),
        Edit(NEW, f"{MEAN}.expand_as(vectors[rows])", "These are the languages' means, row by "
             "row. Take them off the vectors."),
        Edit(NEW, f"(vectors[rows] - {MEAN}) / vectors[rows].std(dim=0)", "The rows are divided "
             "by their standard deviation as well. Only the mean was to be taken off."),
        Edit(NEW, f"(vectors[rows] - {MEAN}) / vectors[rows & known].std(dim=0)", "The rows are "
             "divided by the standard deviation of the known ones as well (a z-score). Only the "
             "mean was to be taken off."),
        Edit(NEW, f"(vectors[rows] - {MEAN}) / (vectors[rows & known].std(dim=0, unbiased=False) "
             "+ 1e-9)", "The rows are divided by the standard deviation of the known ones as well "
             "(a z-score, by n instead of n − 1). Only the mean was to be taken off."),
        Edit(NEW, f"torch.nn.functional.normalize(vectors[rows] - {MEAN}, dim=-1)", "The new "
             "vectors were given length one. Only the mean was to be taken off; the cosine divides "
             "by the length anyway."),
        Edit(NEW, "torch.nn.functional.normalize(vectors[rows], dim=-1) - torch.nn.functional."
             "normalize(vectors[rows & known], dim=-1).mean(dim=0)", "The vectors were given "
             "length one *before* the mean was taken. Take them as they are."),
        Edit(f"new[rows] = {NEW}", f"new[rows & known] = vectors[rows & known] - {MEAN}", "The "
             "rows for testing kept their language. The mean is *taken over* known rows, and taken "
             "off all of them."),
        Edit(RETURN, "return new[known]", "Only the known rows are returned. Expected all N."),
        Edit(RETURN, "return torch.where((language == language.unique()[0])[:, None], new, "
             "vectors)", "Only one language lost its mean. Each does."),
    ),
)  # fmt: skip
