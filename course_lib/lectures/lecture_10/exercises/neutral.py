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
        (r"index|IndexError", "language == number is a mask of True and False; use it as an "
         "index, vectors[mask]."),
        (r"bool|ambiguous", "A comparison of tensors has a result for each entry: combine masks "
         "with &, not with `and`."),
    ),
    stages=(
        Stage("one language, all rows known", each(case, (4, 1), (6, 1), (5, 1))),
        Stage("several languages, mixed", each(case, (8, 2), (10, 3), (9, 2))),
        Stage("some rows are for testing", each(case, (9, 2, True), (12, 3, True),
                                                (10, 2, True), (8, 1, True))),
    ),
    mistakes=(
        Edit(MEAN, "vectors[rows].mean(dim=0)", "Your means include the rows for testing, so "
             "any measurement there has seen the test. Take them over the known rows only."),
        Edit(MEAN, "vectors[known].mean(dim=0)", "You subtract one mean from all rows, whatever "
             "their language. That moves all of them together and keeps their distances."),
        Edit(MEAN, "vectors.mean(dim=0)", "You subtract the mean of all rows, of every language "
             "and including those for testing. Each language has its own mean."),
        Edit(MEAN, "vectors[rows & ~known].mean(dim=0) if not known.all() else 0", "Your means "
             "are those of the rows for testing. Use the known rows."),
        Edit(MEAN, "torch.stack([vectors[(language == x) & known].mean(0) for x in "
             "language.unique()]).mean(0)", "You subtract the mean of the languages' means from "
             "every row. Subtract the mean of the row's *own* language."),
        Edit(MEAN, "vectors[~rows & known].mean(dim=0) if (~rows).any() else 0", "You subtract "
             "the mean of the *other* languages."),
        Edit(MEAN, "vectors[rows & known].mean()", "You subtract one number, the mean over rows "
             "*and* entries. The mean of vectors is a vector: mean(dim=0)."),
        Edit(MEAN, "vectors[rows].mean(dim=-1, keepdim=True)", "You subtract from each row the "
             "mean of its own entries, as LayerNorm does. Subtract the mean vector of the "
             "language: mean(dim=0)."),
        Edit(MEAN, "(vectors * (rows & known)[:, None]).mean(dim=0)", "The known rows of the "
             "language are added up, and divided by the number of *all* rows, N. Divide by as many "
             "as were added."),
        Edit("language.unique()", "range(2)", "Your loop takes the languages to be 0 and 1. They "
             "may have any numbers, and be any number of languages: language.unique()."),
        Edit(MEAN, "vectors[rows & known].median(dim=0).values", "You subtract the median. "
             "Subtract the mean."),
        Edit(RETURN, "return new[language.argsort(stable=True)]", "Your rows are sorted by "
             "language. Each vector must stay in its row: write into new[rows]."),
        Edit(NEW, f"{MEAN} - vectors[rows]", "This is mean minus vector, the wrong sign. "
             "Cosines do not change, but distances to other vectors do."),
        Edit(NEW, f"{MEAN}.expand_as(vectors[rows])", "These are the languages' means, row by "
             "row. Subtract them from the vectors."),
        Edit(NEW, f"(vectors[rows] - {MEAN}) / vectors[rows].std(dim=0)", "The rows are also "
             "divided by their standard deviation. Only subtract the mean."),
        Edit(NEW, f"(vectors[rows] - {MEAN}) / vectors[rows & known].std(dim=0)", "The rows are "
             "also divided by the standard deviation of the known ones (a z-score). Only "
             "subtract the mean."),
        Edit(NEW, f"(vectors[rows] - {MEAN}) / (vectors[rows & known].std(dim=0, unbiased=False) "
             "+ 1e-9)", "The rows are also divided by the standard deviation of the known ones "
             "(a z-score, by n instead of n − 1). Only subtract the mean."),
        Edit(NEW, f"torch.nn.functional.normalize(vectors[rows] - {MEAN}, dim=-1)", "The new "
             "vectors are normalised to length one. Only subtract the mean; the cosine divides "
             "by the length anyway."),
        Edit(NEW, "torch.nn.functional.normalize(vectors[rows], dim=-1) - torch.nn.functional."
             "normalize(vectors[rows & known], dim=-1).mean(dim=0)", "The vectors are "
             "normalised to length one *before* the mean is taken. Do not normalise them."),
        Edit(f"new[rows] = {NEW}", f"new[rows & known] = vectors[rows & known] - {MEAN}", "The "
             "rows for testing are unchanged. The mean is *computed over* known rows, but "
             "subtracted from all of them."),
        Edit(RETURN, "return new[known]", "You return only the known rows. Return all N."),
        Edit(RETURN, "return torch.where((language == language.unique()[0])[:, None], new, "
             "vectors)", "You subtract the mean of only one language. Do it for each."),
    ),
)  # fmt: skip
