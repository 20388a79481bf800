"""Exercise 08.6: one step of SiFT's perturbation. B sequences, T tokens, width H."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers

TOLERANCE = 1e-4  # so that neither the ε of the normalisation nor one below the line matters


def climb(
    embeddings: Tensor, perturbation: Tensor, gradient: Tensor, step: float
) -> tuple[Tensor, Tensor]:
    """(new perturbation, normalised embeddings + that): gradient ascent (section 4, its code)."""
    largest = gradient.abs().amax(-1, keepdim=True)  # (B, T, 1), of each token
    new = perturbation + step * gradient / largest.clamp(min=1e-12)
    normed = F.layer_norm(embeddings, embeddings.shape[-1:])
    return new, normed + new


def case(draw: Draw, B: int, T: int, even: float = 0.0, normed: bool = False) -> Case:
    """even: every token's largest entry of the gradient; normed: embeddings are normalised already.

    Lengths of words and gradients differ from token to token, as they do in a model."""
    H = 6
    embeddings = draw.normal(B, T, H) * draw.ids(2, 30, B, T, 1) + draw.ids(-9, 9, B, T, 1)
    gradient = draw.normal(B, T, H) * draw.ids(1, 40, B, T, 1)
    gradient[..., 0] = -1.2 * gradient.abs().amax(-1)  # the farthest from zero is below it,
    gradient[..., 1] = gradient[..., 1].abs()  # and one at least is above
    gradient = gradient[..., torch.randperm(H, generator=draw.torch)]
    if even:
        gradient = even * gradient / gradient.abs().amax(-1, keepdim=True)
    if normed:
        embeddings = F.layer_norm(embeddings, (H,))
    step = (draw.integer(3, 9) + 10 * draw.integer(0, 1)) / 10  # never 1
    return embeddings, draw.normal(B, T, H), gradient, step


def flat(draw: Draw) -> list[Case]:
    examples = [case(draw, 1, 2), case(draw, 3, 3)]
    for _, _, gradient, _ in examples:
        gradient[0, 1] = 0
    return examples


# Gradients shorter than 1 and than any step, those of a whole sequence together, too.
SHORT = ((1, 1, 0.05, True), (1, 3, 0.05, True))
LARGEST = "gradient.abs().amax(-1, keepdim=True)"
CLIMB = "perturbation + step * gradient / largest.clamp(min=1e-12)"
NORMED = "F.layer_norm(embeddings, embeddings.shape[-1:])"
READ = "normed + new"
CLIPPING = (
    "That is clipping: it leaves short gradients alone and shortens long ones. One lecture prints "
    "it under the name of SiFT. Here each token's gradient, short or long, is divided by its "
    "largest entry, then multiplied by `step`."
)
CLIPPED = tuple(
    Edit(CLIMB, f"perturbation + {rule.replace('|g|', f'gradient.norm({axis})')}",
         f"The gradient of {whose} is cut to {length}. {CLIPPING}")
    for axis, whose in (("", "the whole batch"), ("dim=-1, keepdim=True", "each token"))
    for rule, length in (
        ("gradient / (|g| / step).clamp(min=1)", "length `step`"),
        ("step * gradient / |g|.clamp(min=1)", "length 1 and multiplied by `step`"),
        ("gradient / |g|.clamp(min=1)", "length 1"),
        ("step * gradient / (|g| / step).clamp(min=1)", "length `step` and multiplied by it"),
    )
)  # fmt: skip

PUSH = Exercise(
    **written("08.6"),
    solution=climb,
    returns=(Numbers("new perturbation", shape="B T H", tol=TOLERANCE),
             Numbers("input of the model", shape="B T H", tol=TOLERANCE)),
    see="course_lib.objectives.sift.sift_loss (the perturbation begins at random; one step)",
    when_raised=(
        (r"size of tensor|must match", "The largest entry of each token needs its axis to divide "
         "by: amax(dim=-1, keepdim=True) is (B, T, 1)."),
        (r"namedtuple|unsupported operand|torch.return_types", ".max(dim=…) returns two things, "
         "values and indices. .amax(dim=-1, keepdim=True) returns the values alone."),
        (r"normalized_shape", "F.layer_norm wants the sizes of the axes it normalises over: "
         "x.shape[-1:], for every token by itself."),
    ),
    stages=(
        Stage("the largest entry is 1, the words are normalised already",
              each(case, (1, 1, 1.0, True), (1, 3, 1.0, True))),
        Stage("gradients of a length below 1", each(case, *SHORT)),
        Stage("gradients of any size", each(case, (1, 1, 0, True), (1, 4, 0, True), *SHORT)),
        Stage("words of any length", each(case, (1, 1), (1, 4))),
        Stage("several sequences", each(case, (3, 4), (3, 4), (3, 4, 0.03))),
        Stage("a token without any gradient", flat),
    ),
    mistakes=(
        Edit(CLIMB, CLIMB.replace("+", "-"), "You go *down* the gradient, as an optimiser does "
             "with weights. The perturbation moves to where the output changes most: go up."),
        *CLIPPED,
        Edit(CLIMB, "perturbation + gradient.clamp(-step, step)", "Every entry of the gradient "
             "is cut off at ±`step`. Here each token's gradient is divided by its largest entry "
             "and keeps its direction; nothing is cut."),
        Edit(CLIMB, "perturbation + step * gradient", "The gradient is multiplied by `step` as "
             "it is. Then a token with a large gradient moves far and the others hardly move. "
             "Divide each token's gradient by its largest entry."),
        *(Edit(LARGEST, f"gradient.abs().amax({axes})", f"The gradient is divided by the largest "
               f"entry {what}. Each *token* has its own: .amax(-1, keepdim=True).")
          for axes, what in (("", "of the whole batch"), ("(1, 2), keepdim=True", "of a sequence"),
                             ("1, keepdim=True", "of a *column*, over the tokens"),
                             ("0, keepdim=True", "over the *sequences*, position by position"))),
        Edit(CLIMB, f"F.layer_norm({CLIMB}, gradient.shape[-1:])", "The new perturbation is "
             "normalised as well. Normalise only the embeddings: the perturbation keeps the "
             "length that the steps gave it."),
        Edit(CLIMB, f"{CLIMB}; new = new / new.abs().amax(-1, keepdim=True)",
             "The new perturbation is divided by its largest entry. Only the *gradient* is, before "
             "the step is added."),
        Edit(LARGEST, "gradient.norm(dim=-1, keepdim=True)", "The gradient is divided by its "
             "length, the square root of the sum of squares. Divide by the largest entry: then "
             "that entry moves by exactly `step`."),
        Edit(LARGEST, "gradient.norm()", "The gradient of the whole batch is divided by its "
             "length. Each token's gradient is divided by its own largest entry."),
        Edit(LARGEST, "gradient.abs().sum(-1, keepdim=True)", "The gradient is divided by the "
             "sum of its absolute entries. Divide by the largest of them."),
        Edit(LARGEST, "gradient.amax(-1, keepdim=True)", "The gradient is divided by its "
             "largest signed entry, which is the wrong one where a negative entry is farthest "
             "from zero. Take gradient.abs() first."),
        Edit(CLIMB, "perturbation + step * gradient.sign()", "Every entry moves by the same "
             "amount: only the sign of the gradient is used. Here small entries move less than "
             "large ones."),
        Edit(CLIMB, CLIMB.removeprefix("perturbation + "), "The new perturbation is the step "
             "alone. It is the old perturbation *plus* the step."),
        Edit(CLIMB, CLIMB.replace("step * ", ""), "`step` has no effect: the divided gradient is "
             "multiplied by it."),
        Edit(CLIMB, "perturbation.clone()", "The perturbation comes back as it was: the gradient "
             "has no effect."),
        Edit("largest.clamp(min=1e-12)", "largest", "A token has no gradient at all (padding, "
             "for one). Its gradient divided by its largest entry is 0/0, which is nan. It "
             "keeps the old perturbation: add something tiny to the denominator, such as 1e-6."),
        Edit(NORMED, "embeddings", "The perturbation is added to embeddings that are not "
             "normalised. SiFT normalises them first, so that a perturbation of a given size "
             "means the same in a model with long vectors and in one with short ones."),
        Edit(READ, "F.layer_norm(embeddings + new, new.shape[-1:])", "You perturb first and "
             "normalise afterwards: the perturbation hardly changes long vectors and swamps "
             "short ones. Normalise first."),
        Edit(READ, f"F.layer_norm({READ}, new.shape[-1:])", "The sum of normalised embeddings "
             "and perturbation is normalised once more. The model reads the sum as it is: "
             "normalise before you add the perturbation."),
        Edit(READ, "normed + F.layer_norm(new, new.shape[-1:])", "In your model input the "
             "perturbation is *normalised*, too. Normalise only the embeddings."),
        Edit(NORMED, "embeddings - embeddings.mean(-1, keepdim=True)", "The mean of each token is "
             "subtracted, but it is not divided by the standard deviation."),
        Edit(NORMED, "embeddings / embeddings.std(-1, correction=0, keepdim=True)", "Each token is "
             "divided by its standard deviation, but its mean is not subtracted."),
        Edit(NORMED, "F.normalize(embeddings, dim=-1)", "Each token is made as long as 1. Layer "
             "normalisation subtracts the mean of its entries and divides by their standard "
             "deviation."),
        Edit(NORMED, f"{NORMED} * (1 - 1 / embeddings.shape[-1]) ** 0.5", "Your standard deviation "
             "divides by H − 1, as torch.std does unless told otherwise. Layer normalisation "
             "divides by H: correction=0."),
        Edit(NORMED, f"{NORMED} / embeddings.std(-1, correction=0, keepdim=True)", "Each token "
             "is divided by its variance. Divide by the square root of the variance."),
        Edit(NORMED, "F.layer_norm(embeddings, embeddings.shape)", "Mean and standard deviation "
             "are those of the whole batch. Each token is normalised over its own H entries."),
        Edit(NORMED, "F.layer_norm(embeddings, embeddings.shape[1:])", "Mean and standard "
             "deviation are those of a sequence. Each token is normalised over its H entries."),
        Edit(READ, "normed + perturbation", "Your model input contains the *old* perturbation. "
             "Add the new one."),
        Edit(READ, "normed + new - perturbation", "Your model input contains only the last "
             "step. The perturbation is the old one plus the step."),
        Edit(READ, "normed + perturbation + new", "Your model input contains both "
             "perturbations, the old one and the new one, which includes the old one already."),
        Edit(READ, "normed", "Your model input contains no perturbation: add the new one to the "
             "normalised embeddings."),
        Edit(READ, "new", "The second result is the perturbation alone. The model reads normalised "
             "embeddings plus perturbation."),
    ),
)  # fmt: skip
